"""The episodes of a level: recorded once, whatever how many cells search with them."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np

from jaxreward.demonstrations import Trajectories, load_trajectories, record_expert, record_random, save_trajectories
from jaxreward.errors import UserError
from jaxreward.objectives.demonstrations.demonstration_sets import DemonstrationSets
from jaxreward.objectives.demonstrations.scoring import DemonstrationData
from jaxreward.reproduction.grace.published import MULTI_TASK, TRAJECTORIES
from jaxreward.tasks import Task, make_task_of
from jaxreward.tasks.levels.mix import BETWEEN

HELD_OUT = 200
"""Episodes of the expert, and others, that accuracy is measured on. The paper has about 480 of each."""
MOST = max(TRAJECTORIES)
"""Episodes of each kind that a search has at most, of a level."""
MIXED = (
    "GoToRedBallNoDist", "GoToRedBall", "GoToRedBallGrey", "GoToRedBlueBall", "GoToObj", "GoToLocalS8N7", "PickupLoc",
    "PlaceBetween",
)  # fmt: skip
"""The levels of the multi-task row: those of one room of 8 x 8 cells, whose states have one shape."""
_TRAINING_SEED = 1_000
"""Of the recordings that searches are given; those that are held out have others."""


def levels_of(part: str) -> tuple[str, ...]:
    """The levels of a row of the tables."""
    return MIXED if part == MULTI_TASK else (part,)


def task_name(part: str) -> str:
    return f"babyai/{BETWEEN.join(levels_of(part))}"


@lru_cache(maxsize=2)
def level_task(level: str) -> Task:
    """The level as a task; the same object for all cells, by which programs, compiled functions and so on are kept."""
    return make_task_of(task_name(level))


def level_seconds(env_steps: int) -> float:
    """Of a training on a level with two CPU cores, about."""
    return 25.0 + env_steps / 140_000


@dataclass(frozen=True)
class LevelEpisodes:
    """Episodes of one level, or of all of the multi-task row, in the folder of all cells.

    The expert is the level's scripted one, and all of its episodes succeed; the others are of uniformly random actions,
    cut before those that succeed. Those that searches are given are of start states that the task draws from, those
    that are held out of its held-out start states.
    """

    level: str
    out: Path

    def sets(self, expert: int, negative: int, seed: int) -> DemonstrationSets:
        """What a search is given: the first episodes of the recordings of its seed, so that fewer are a part of more.

        As the paper, only the last state of an expert's episode is one to tell from others.
        """
        number = _TRAINING_SEED + seed
        most = MOST * len(levels_of(self.level))
        experts = self._kept(f"expert-{seed}", lambda: record_expert(self._task, most, seed=number, solved=True))
        others = self._kept(f"random-{seed}", lambda: random_play(self._task, most, number))
        return DemonstrationSets(experts.take(range(expert)), others.take(range(negative)), None, "last")

    def held_out(self) -> DemonstrationData:
        """What rewards are judged by in the end."""
        return _held_out(self)

    def expert(self, episodes: int) -> Trajectories:
        """As many episodes of the expert."""
        return self._kept(
            f"expert-{episodes}-episodes", lambda: record_expert(self._task, episodes, seed=0, solved=True)
        )

    @property
    def _task(self) -> Task:
        return level_task(self.level)

    def _kept(self, name: str, record: Callable[[], Trajectories]) -> Trajectories:
        path = self.out / "episodes" / self.level / f"{name}.npz"
        if path.exists():
            return load_trajectories(path)
        found = record()
        save_trajectories(path, found)
        return found


def random_play(task: Task, episodes: int, seed: int) -> Trajectories:
    """Episodes of random actions without the steps that succeed, which no reward should tell from an expert's.

    Raises:
        UserError: almost every first action succeeds.
    """
    found = before_success(record_random(task, 2 * episodes, seed=seed))
    if len(found) < episodes:
        raise UserError(f"{task.name} has no negative trajectories: the first random action succeeds in most episodes")
    return found.take(range(episodes))


def before_success(found: Trajectories) -> Trajectories:
    """The episodes of a task that ends on success, less the last step of those that succeed; what has no step then is
    left out."""
    won = found.success >= 1.0
    found, won = (found.take(kept := np.flatnonzero(~won | (found.lengths > 1))), won[kept])
    steps, states = np.ones(found.steps, bool), np.ones(found.steps + len(found), bool)
    steps[found.last_steps[won]] = False
    states[(found.last_steps + 1 + np.arange(len(found)))[won]] = False
    return dataclasses.replace(
        found, states=tuple(x[states] for x in found.states), actions=found.actions[steps],
        log_probabilities=found.log_probabilities[steps], lengths=(found.lengths - won).astype(np.int32),
        success=np.where(won, 0.0, found.success).astype(np.float32), ended=found.ended & ~won,
    )  # fmt: skip


@lru_cache(maxsize=1)
def _held_out(episodes: LevelEpisodes) -> DemonstrationData:
    arguments = ("held_out=true",)
    task = make_task_of(task_name(episodes.level), arguments)
    expert = episodes._kept(
        "expert-held-out", lambda: record_expert(task, HELD_OUT, seed=0, solved=True, task_arg=arguments)
    )
    others = episodes._kept("random-held-out", lambda: random_play(task, HELD_OUT, 0))
    return DemonstrationData.of(task, expert, others, "last")
