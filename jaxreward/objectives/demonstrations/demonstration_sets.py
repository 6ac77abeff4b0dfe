"""The episodes of a search: the expert's and others, to search with and held out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from jaxreward.demonstrations import (
    Trajectories,
    joined,
    load_trajectories,
    record_random,
    save_trajectories,
)
from jaxreward.demonstrations.trajectories import Positives
from jaxreward.errors import FileProblem, UnusableFile
from jaxreward.objectives.demonstrations.demonstration_options import DemonstrationOptions
from jaxreward.objectives.demonstrations.scoring import DemonstrationData
from jaxreward.runs.episode_rewards import FOLDER
from jaxreward.search.seeding import derive_rng
from jaxreward.tasks import Task, measure_of

_MOST_HELD_OUT = 256
_FILES = ("expert", "negative", "expert-held-out", "negative-held-out")


@dataclass(frozen=True)
class DemonstrationSets:
    """Episodes to search with, and held-out ones; those are None where there are no more of the expert."""

    expert: Trajectories
    negative: Trajectories
    held_out: tuple[Trajectories, Trajectories] | None
    positives: Positives

    @staticmethod
    def of(task: Task, options: DemonstrationOptions, seed: int, task_arg: Sequence[str] = ()) -> DemonstrationSets:
        """The sets of a new search; `seed` chooses the episodes, and plays the random ones.

        Raises:
            UserError: files that cannot be read, or of another task.
        """
        experts = _experts(options.data)
        DemonstrationData.require(task, experts)
        order = derive_rng(seed, "expert episodes").permutation(len(experts))
        used, rest = order[: options.expert_episodes], order[options.expert_episodes :]
        if _chosen(experts, options) == "marked":
            _share_marked(used, rest, experts)
        used, rest = np.sort(used), np.sort(rest)[:_MOST_HELD_OUT]
        wanted = options.negative_episodes + len(rest)
        if options.negative:
            others = joined([load_trajectories(path) for path in options.negative])
            DemonstrationData.require(task, others)
            others = others.take(derive_rng(seed, "negative episodes").permutation(len(others))[:wanted])
        else:
            number = int(derive_rng(seed, "random episodes").integers(1 << 31))
            others = record_random(task, wanted, seed=number, task_arg=task_arg)
        negative = others.take(np.arange(min(options.negative_episodes, len(others))))
        expert = experts.take(used)
        positives = _positives(task, expert, options)
        held_out = None
        if len(rest) and len(others) > options.negative_episodes:
            held_out = experts.take(rest), others.take(np.arange(options.negative_episodes, len(others)))
            if positives == "marked" and not _has_marked(held_out[0]).any():
                held_out = None
        return DemonstrationSets(expert, negative, held_out, positives)

    @staticmethod
    def read(task: Task, folder: Path, options: DemonstrationOptions) -> DemonstrationSets:
        """The sets that a run in `folder` began with."""
        paths = [folder / FOLDER / f"{name}.npz" for name in _FILES]
        found = [load_trajectories(path) for path in paths[: 4 if paths[2].exists() else 2]]
        for episodes in found:
            DemonstrationData.require(task, episodes)
        held_out = (found[2], found[3]) if len(found) > 2 else None
        return DemonstrationSets(found[0], found[1], held_out, _positives(task, found[0], options))

    def write(self, folder: Path) -> None:
        """Write the sets into the folder of a run; what `is_there` looks for comes last."""
        sets = dict(zip(_FILES, (self.expert, self.negative, *(self.held_out or ())), strict=False))
        for name in sorted(sets, key=lambda name: name == _FILES[1]):
            save_trajectories(folder / FOLDER / f"{name}.npz", sets[name])


def _experts(paths: Sequence[Path]) -> Trajectories:
    """The episodes of all files."""
    sets = [load_trajectories(path) for path in paths]
    unmarked = [path for path, episodes in zip(paths, sets, strict=True) if episodes.solves is None]
    if unmarked and len(unmarked) < len(sets):
        marked = next(path for path in paths if path not in unmarked)
        raise UnusableFile(
            f"steps of {marked} are marked as solving the task, and none of {unmarked[0]}: mark those too with "
            f"`jaxreward clean {unmarked[0]}`, or search on one kind of file",
            unmarked[0], FileProblem.WRONG_KIND,
        )  # fmt: skip
    return joined(sets)


def _has_marked(episodes: Trajectories) -> np.ndarray:
    """Which episodes have a step that is marked as solving the task, bool (N,)."""
    if episodes.solves is None:
        return np.zeros(len(episodes), bool)
    return np.isin(np.arange(len(episodes)), episodes.episode_of_step[episodes.solves == 1])


def _share_marked(used: np.ndarray, rest: np.ndarray, experts: Trajectories) -> None:
    """Exchange two episodes where one side alone has any with a marked step, if there are enough for both."""
    marked = _has_marked(experts)
    for one, other, least in ((used, rest, 1), (rest, used, 2)):
        if len(one) and not marked[one].any() and marked[other].sum() >= least:
            k = int(np.argmax(marked[other]))
            one[-1], other[k] = other[k], one[-1]


def _chosen(expert: Trajectories, options: DemonstrationOptions) -> str:
    return "marked" if options.positives == "auto" and expert.solves is not None else options.positives


def _positives(task: Task, expert: Trajectories, options: DemonstrationOptions) -> Positives:
    if (chosen := _chosen(expert, options)) != "auto":
        return chosen  # type: ignore[return-value]
    won = measure_of(task).rate and bool((expert.success == 1.0).all())
    return "last" if won and bool(expert.ended.all()) else "all"


def is_there(folder: Path) -> bool:
    """Whether a run in `folder` has all of its sets."""
    return (folder / FOLDER / f"{_FILES[1]}.npz").is_file()
