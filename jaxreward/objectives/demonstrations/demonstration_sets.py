"""The episodes of a search: the expert's and others, to search with and held out."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from jaxreward import files
from jaxreward.config import parse_json
from jaxreward.demonstrations import (
    Trajectories,
    joined,
    load_trajectories,
    record_random,
    save_trajectories,
)
from jaxreward.demonstrations.trajectories import Positives, WrongTrajectories
from jaxreward.errors import FileProblem, UnusableFile
from jaxreward.objectives.demonstrations.demonstration_options import DemonstrationOptions
from jaxreward.objectives.demonstrations.scoring import DemonstrationData
from jaxreward.runs.disk import make_folder
from jaxreward.runs.episode_rewards import FOLDER
from jaxreward.search.seeding import derive_rng
from jaxreward.sentences import mention
from jaxreward.tasks import Task, measure_of

_MOST_HELD_OUT = 256
_FILES = ("expert", "negative", "expert-held-out", "negative-held-out")
_CHOICES = Path(FOLDER, "sets.json")
"""Of a run: what `DemonstrationSets` says of its episodes, beside them."""
_COUNTED: dict[Positives, str] = {
    "all": "all of the expert's states are told from others",
    "last": "the last state of each of the expert's episodes is told from others",
    "marked": "the expert's states that are marked as solving the task are told from others",
}


@dataclass(frozen=True)
class DemonstrationSets:
    """Episodes to search with, and held-out ones; those are None where there are no more of the expert. `notes` are
    sentences about the episodes that were chosen from."""

    expert: Trajectories
    negative: Trajectories
    held_out: tuple[Trajectories, Trajectories] | None
    positives: Positives
    notes: tuple[str, ...] = ()

    @staticmethod
    def of(task: Task, options: DemonstrationOptions, seed: int, task_arg: Sequence[str] = ()) -> DemonstrationSets:
        """The sets of a new search; `seed` chooses the episodes, and plays the random ones.

        Raises:
            UserError: files that cannot be read, or of another task.
        """
        sets, notes = _read(task, options.data, task_arg)
        experts = _all_marked(options.data, sets)
        positives = _positives(task, experts, options)
        if positives == "last":
            experts, left_out = _that_succeed(task, experts)
            notes += left_out
        order = derive_rng(seed, "expert episodes").permutation(len(experts))
        used, rest = order[: options.expert_episodes], order[options.expert_episodes :]
        if positives == "marked":
            _share_marked(used, rest, experts)
        used, rest = np.sort(used), np.sort(rest)[:_MOST_HELD_OUT]
        wanted = options.negative_episodes + len(rest)
        if options.negative:
            sets, more = _read(task, options.negative, task_arg)
            notes, others = notes + more, joined(sets)
            others = others.take(derive_rng(seed, "negative episodes").permutation(len(others))[:wanted])
        else:
            number = int(derive_rng(seed, "random episodes").integers(1 << 31))
            others = record_random(task, wanted, seed=number, task_arg=task_arg)
        first = max(1, len(others) * options.negative_episodes // wanted)  # fewer than wanted are shared alike
        negative, expert = others.take(np.arange(first)), experts.take(used)
        held_out = None
        if len(rest) and len(others) > first:
            held_out = experts.take(rest), others.take(np.arange(first, len(others)))
            if positives == "marked" and not _has_marked(held_out[0]).any():
                held_out = None
        return DemonstrationSets(expert, negative, held_out, positives, notes)

    @property
    def summary(self) -> str:
        """What is told from what, in a sentence."""
        held_out = [len(episodes) for episodes in self.held_out or ()]
        counts = f"{len(self.expert)} episodes of the expert and {len(self.negative)} others"
        rest = f"{held_out[0]} and {held_out[1]} are held out" if held_out else "none is held out"
        states = f"{len(self.expert.positive_steps(self.positives)):,} states"
        return f"{counts}; {rest}; {_COUNTED[self.positives]}, {states}"

    @staticmethod
    def read(task: Task, folder: Path, options: DemonstrationOptions) -> DemonstrationSets:
        """The sets that a run in `folder` began with."""
        paths = [folder / FOLDER / f"{name}.npz" for name in _FILES]
        found = [load_trajectories(path) for path in paths[: 4 if paths[2].exists() else 2]]
        for episodes in found:
            DemonstrationData.require(task, episodes)
        held_out = (found[2], found[3]) if len(found) > 2 else None
        return DemonstrationSets(found[0], found[1], held_out, _kept(folder) or _positives(task, found[0], options))

    def write(self, folder: Path) -> None:
        """Write the sets into the folder of a run; what `is_there` looks for comes last."""
        make_folder(folder / FOLDER, below=folder)
        files.replace(folder / _CHOICES, json.dumps({"positives": self.positives}).encode(), below=folder)
        sets = dict(zip(_FILES, (self.expert, self.negative, *(self.held_out or ())), strict=False))
        for name in sorted(sets, key=lambda name: name == _FILES[1]):
            save_trajectories(folder / FOLDER / f"{name}.npz", sets[name])


def _read(task: Task, paths: Sequence[Path], task_arg: Sequence[str]) -> tuple[list[Trajectories], tuple[str, ...]]:
    """The episodes of each file, and a note for each that says it is of another task, whose states have the same
    arrays."""
    sets, notes = [load_trajectories(path) for path in paths], list[str]()
    now = (task.name, *task_arg)
    for path, episodes in zip(paths, sets, strict=True):
        DemonstrationData.require(task, episodes)
        said = (episodes.task, *episodes.task_arg)
        if episodes.source != "imported" and said != now:
            notes.append(f"warning: {path} has episodes of {' '.join(said)}, and this search is on {' '.join(now)}")
    return sets, tuple(notes)


def _all_marked(paths: Sequence[Path], sets: Sequence[Trajectories]) -> Trajectories:
    """The expert's episodes of all files; steps of all or of none are marked."""
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


def _positives(task: Task, expert: Trajectories, options: DemonstrationOptions) -> Positives:
    """What counts as the expert's of all of its episodes. Those that fail do not end with a state to tell from others,
    and do not matter here."""
    if options.positives != "auto":
        return options.positives
    if expert.solves is not None:
        return "marked"
    won = expert.success == 1.0
    known = measure_of(task).rate and bool(won.any()) and bool(np.isfinite(expert.success).all())
    return "last" if known and bool(expert.ended[won].all()) else "all"


def _that_succeed(task: Task, experts: Trajectories) -> tuple[Trajectories, tuple[str, ...]]:
    """The episodes that are not known to fail, and a note where others are left out.

    Raises:
        WrongTrajectories: all fail.
    """
    failed = (experts.success < 1.0) & measure_of(task).rate
    if not failed.any():
        return experts, ()
    count = f"{int(failed.sum())} of {len(experts)} episodes of the expert"
    if failed.all():
        raise WrongTrajectories(
            f"{count} fail, so that no last state is one to tell from others: give others, or take all states with "
            f"{mention('positives', 'all')}"
        )
    return experts.take(np.flatnonzero(~failed)), (f"{count} fail and are left out",)


def _kept(folder: Path) -> Positives | None:
    """What counted as the expert's when the run in `folder` began; None of an earlier version, which did not say."""
    try:
        found = parse_json(files.read_text(folder / _CHOICES, below=folder))["positives"]
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return found if found in _COUNTED else None


def is_there(folder: Path) -> bool:
    """Whether a run in `folder` has all of its sets."""
    return (folder / FOLDER / f"{_FILES[1]}.npz").is_file()
