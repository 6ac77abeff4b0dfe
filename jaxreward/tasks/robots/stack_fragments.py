"""The vocabulary of the gripper that stacks cubes: what a genetic proposer may build observations and rewards from."""

from __future__ import annotations

from jaxreward.records import Vocabulary
from jaxreward.tasks.fragment_template import Template
from jaxreward.tasks.robots import gripper_fragments as gripper

SUBTASK_TERMS = {
    "grasp": gripper.SUBTASK_TERMS["grasp"],
    "carry": ("lift_height", "is_carried", "higher", "carried_closer", "carried_over"),
    "stack": ("goal_closer", "goal_near", "goal_near_wide", "goal_cost", "time_cost"),
    "still": ("lower_cost", "lower_moved_cost", "low_near_cost"),
    "gently": gripper.SUBTASK_TERMS["gently"],
    "release": gripper.SUBTASK_TERMS["release"],
}  # fmt: skip
"""Terms that pay for each subtask of the instruction."""

FEATURES = (
    Template("lower_way", "position", "How far the lower cube was moved, in tens of centimetres, and its velocity.",
             'jnp.stack([10.0 * state.info["lower_moved"], 2.0 * state.info["lower_vel"]])', 2),
)  # fmt: skip

TERMS = (
    Template("lower_cost", "penalty velocity", "Minus the speed of the lower cube.",
             '-jnp.abs(next_state.info["lower_vel"])', 1, gripper.STEP),
    Template("lower_moved_cost", "penalty position", "Minus how far the lower cube was moved.",
             '-next_state.info["lower_moved"]', 1, gripper.STEP),
    Template("low_near_cost", "penalty cube", "Minus whether the cube is lower than the other one's top, beside it.",
             "-((height(next_state) < 0.05) & (aside(next_state) < 0.07) & (aside(next_state) > 0.012))"
             ".astype(jnp.float32)", 1, gripper.NEAR),
)  # fmt: skip


def vocabulary(horizon: int) -> Vocabulary:
    """Features and terms for the gripper with two cubes, in episodes of `horizon` steps."""
    return gripper.gripper_vocabulary(horizon, FEATURES, TERMS)
