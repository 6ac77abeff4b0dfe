"""The vocabulary of the gripper with a cube: what a genetic proposer may build observations and rewards from."""

from __future__ import annotations

from jaxreward.records import Vocabulary
from jaxreward.tasks.robots import gripper_fragments as gripper

SUBTASK_TERMS = {
    "grasp": gripper.SUBTASK_TERMS["grasp"],
    "carry": ("lift_height", "is_carried", "higher", "carried_closer", "carried_over", "low_cost"),
    "place": ("goal_closer", "goal_near", "goal_near_wide", "goal_cost", "time_cost"),
    "gently": gripper.SUBTASK_TERMS["gently"],
    "release": gripper.SUBTASK_TERMS["release"],
}
"""Terms that pay for each subtask of the instruction."""


def vocabulary(horizon: int) -> Vocabulary:
    """Features and terms for the gripper with a cube, in episodes of `horizon` steps."""
    return gripper.gripper_vocabulary(horizon, (), ())
