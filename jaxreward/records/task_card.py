"""How a proposer knows a task."""

from __future__ import annotations

from typing import Literal

from jaxreward.records.base import Record
from jaxreward.records.instruction import Instruction
from jaxreward.records.measure import SUCCESS, Measure
from jaxreward.records.subgoals import Subgoals
from jaxreward.records.vocabulary import Vocabulary


class TaskCard(Record):
    """The words and the vocabulary by which a proposer knows a task, and what its scores mean.

    `observation` is the source of a `get_observation` that is given and not searched for, if one is. `discount` and
    `rewards_scaled` are of the learner, which divides rewards by their running size if so; and `horizon_cuts`, by which
    it takes the horizon for a cut: what the last step before it pays teaches nothing. `objective` is what a program is
    scored by: `training`, or `demonstrations`. `states` is what programs are given: `arrays`, or `text`. `subgoals` are
    what leads to the task's goal, where it says so, `instruction` is how the task is to be done.
    """

    name: str
    description: str
    state_doc: str
    vocabulary: Vocabulary = Vocabulary()
    subgoals: Subgoals = Subgoals()
    instruction: Instruction | None = None
    observation: str = ""
    measure: Measure = SUCCESS
    discount: float = 0.99
    rewards_scaled: bool = True
    horizon_cuts: bool = False
    objective: str = "training"
    states: Literal["arrays", "text"] = "arrays"
