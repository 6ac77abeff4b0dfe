"""Episodes of a task, as programs see them."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal

import numpy as np

from jaxreward.errors import UserError
from jaxreward.programs.samples import Samples
from jaxreward.programs.spec import Leaf, Spec, dtype_of
from jaxreward.sentences import mention

Array = np.ndarray[Any, Any]
Source = Literal["expert", "policy", "random", "imported"]
"""Who acted: a scripted expert, a trained policy, uniformly random actions, or whoever a user's data are of."""


Positives = Literal["all", "last", "marked"]
"""Which steps of an expert's episodes count as the expert's: all; the last, of tasks that end on success; or those that
are marked as solving the task."""


class WrongTrajectories(UserError):
    """Arrays that are no episodes, or episodes of another task."""


@dataclass(frozen=True, eq=False)
class Trajectories:
    """Episodes of one task, one after the other.

    Episode i has `lengths[i]` steps and one state more. With N episodes, T = `lengths.sum()` steps and S = T + N
    states:

    Attributes:
        spec: the view and the action of the task.
        states: the arrays of the views in the order of `spec.leaves`, (S, ...).
        actions: as the task takes them, (T, ...).
        lengths: steps of each episode, int32 (N,), at least 1.
        log_probabilities: of each action under the policy that chose it, float32 (T,); NaN where that is not known.
        success: of each episode by the task's metric, float32 (N,); NaN where that is not known.
        ended: whether the task ended the episode, bool (N,), and not the horizon or the end of the recording.
        solves: whether a step leads to a state that solves the task, int8 (T,), as somebody has marked it: 1, 0, or -1
            where they do not say. None where nobody has marked any.
        texts: words that belong to each episode, such as its mission; none, or one for each.
        task: the name of the task, for messages and files.
        task_arg: its options as KEY=VALUE.
        source: who acted.
        seed: of the recording; None where there was none.
    """

    spec: Spec = field(repr=False)
    states: tuple[Array, ...] = field(repr=False)
    actions: Array = field(repr=False)
    lengths: Array = field(repr=False)
    log_probabilities: Array = field(repr=False)
    success: Array = field(repr=False)
    ended: Array = field(repr=False)
    solves: Array | None = field(default=None, repr=False)
    texts: tuple[str, ...] = field(default=(), repr=False)
    task: str = ""
    task_arg: tuple[str, ...] = ()
    source: Source = "imported"
    seed: int | None = None

    def __post_init__(self) -> None:
        n = self.lengths.size
        _require("lengths", self.lengths, (n,), "int32")
        steps = int(self.lengths.sum())
        if n == 0 or self.lengths.min() < 1:
            raise WrongTrajectories("there must be an episode, and every episode must have a step")
        leaves = [*zip(self.spec.leaves, self.states, strict=True), (self.spec.action, self.actions)]
        for leaf, array in leaves:
            _require(leaf.name, array, (steps if leaf is self.spec.action else steps + n, *leaf.shape), leaf.dtype)
        _require("log_probabilities", self.log_probabilities, (steps,), "float32")
        _require("success", self.success, (n,), "float32")
        _require("ended", self.ended, (n,), "bool")
        if self.solves is not None:
            _require("solves", self.solves, (steps,), "int8")
            if not np.isin(self.solves, (-1, 0, 1)).all():
                raise WrongTrajectories("solves holds another number than 1, 0 and -1")
        if len(self.texts) not in (0, n):
            raise WrongTrajectories(f"texts has {len(self.texts)} entries for {n} episodes")
        if self.spec.actions and not ((self.actions >= 0) & (self.actions < self.spec.actions)).all():
            raise WrongTrajectories(f"an action is not one of 0 to {self.spec.actions - 1}")
        for leaf, array in leaves:
            if dtype_of(leaf.dtype).kind not in "biu" and not np.isfinite(array.astype(np.float32)).all():
                raise WrongTrajectories(f"{leaf.name} holds numbers that are not finite")

    def __len__(self) -> int:
        """The number of episodes."""
        return len(self.lengths)

    def __repr__(self) -> str:
        return f"Trajectories({len(self)} episodes of {self.task}, {self.steps} steps, {self.source})"

    @property
    def steps(self) -> int:
        """The number of steps of all episodes."""
        return len(self.actions)

    @cached_property
    def episode_of_step(self) -> Array:
        """The episode of each step, int (T,)."""
        return np.repeat(np.arange(len(self)), self.lengths)

    @cached_property
    def last_steps(self) -> Array:
        """The last step of each episode, int (N,)."""
        return np.cumsum(self.lengths) - 1

    def positive_steps(self, positives: Positives) -> Array:
        """The steps that count as the expert's, int (k,).

        Raises:
            WrongTrajectories: none is marked.
        """
        if positives != "marked":
            return self.last_steps if positives == "last" else np.arange(self.steps)
        if self.solves is None:
            raise WrongTrajectories(
                f"no step of these episodes of {self.task} is marked as solving the task: mark them with "
                "`jaxreward clean FILE`, or when you make them of arrays"
            )
        if not (self.solves == 1).any():
            raise WrongTrajectories(
                f"of these episodes of {self.task} no step is marked as solving the task, so that nothing is to be "
                f"told from others: give others, or take all steps with {mention('positives', 'all')}"
            )
        return np.flatnonzero(self.solves == 1)

    def other_steps(self, positives: Positives) -> Array:
        """The steps that count as not the expert's, though of its episodes, int (k,): not those of which it is not
        known."""
        steps = np.setdiff1d(np.arange(self.steps), self.positive_steps(positives))
        return steps[self.solves[steps] == 0] if positives == "marked" and self.solves is not None else steps

    def transitions(self, steps: Array | None = None) -> Samples:
        """States, actions and next states of `steps` (k,), by default of all."""
        steps = np.arange(self.steps) if steps is None else np.asarray(steps)
        before = steps + self.episode_of_step[steps]  # every episode before it has one state more than steps
        return Samples([x[before] for x in self.states], self.actions[steps], [x[before + 1] for x in self.states])

    def take(self, episodes: Sequence[int] | Array) -> Trajectories:
        """Only these episodes, in this order."""
        chosen = np.asarray(episodes, np.int64)
        ends = np.cumsum(self.lengths)
        steps = _ranges((ends - self.lengths)[chosen], self.lengths[chosen])
        states = _ranges((ends - self.lengths + np.arange(len(self)))[chosen], self.lengths[chosen] + 1)
        return dataclasses.replace(
            self, states=tuple(x[states] for x in self.states), actions=self.actions[steps],
            lengths=self.lengths[chosen], log_probabilities=self.log_probabilities[steps],
            success=self.success[chosen], ended=self.ended[chosen],
            solves=None if self.solves is None else self.solves[steps],
            texts=tuple(self.texts[int(k)] for k in chosen) if self.texts else (),
        )  # fmt: skip

    def require_of(self, spec: Spec) -> None:
        """Raise `WrongTrajectories` unless a task with this spec has such views and actions."""
        own, others = {x.name: x for x in self.spec.leaves}, {x.name: x for x in spec.leaves}
        what = f"these episodes are of {self.task or 'another task'}"
        if lacking := [name for name in others if name not in own]:
            raise WrongTrajectories(f"{what}: their states have no {lacking[0]}; record them with this task")
        if more := [name for name in own if name not in others]:
            raise WrongTrajectories(f"{what}: the states of this task have no {more[0]}; record them with this task")
        pairs = [*((own[name], others[name]) for name in others), (self.spec.action, spec.action)]
        if differs := next(((a, b) for a, b in pairs if a != b), None):
            raise WrongTrajectories(f"{what}: {differs[0]} is {differs[1]} in this task; record them with this task")
        if self.spec.leaves != spec.leaves or self.spec.actions != spec.actions:
            raise WrongTrajectories(f"{what}: its actions are others; record them with this task")


def joined(sets: Sequence[Trajectories]) -> Trajectories:
    """The episodes of several sets of one task, in this order; `source` and `seed` are those of the first. Steps are
    marked as solving the task where those of all sets are."""
    first = sets[0]
    for other in sets[1:]:
        other.require_of(first.spec)
    texts = tuple(text for one in sets for text in (one.texts or ("",) * len(one)))
    marks = [one.solves for one in sets if one.solves is not None]
    return dataclasses.replace(
        first, states=tuple(np.concatenate(arrays) for arrays in zip(*(one.states for one in sets), strict=True)),
        **{name: np.concatenate([getattr(one, name) for one in sets]) for name in _ARRAYS},
        solves=np.concatenate(marks) if len(marks) == len(sets) else None,
        texts=texts if any(texts) else (),
    )  # fmt: skip


_ARRAYS = ("actions", "lengths", "log_probabilities", "success", "ended")


def _ranges(starts: Array, counts: Array) -> Array:
    """start, start + 1, ... for each start, as many as its count."""
    offsets = np.repeat(np.cumsum(counts) - counts, counts)
    return np.repeat(starts, counts) + np.arange(int(counts.sum())) - offsets


def _require(name: str, array: Array, shape: tuple[int, ...], dtype: str) -> None:
    expected = Leaf(name, shape, dtype)
    found = Leaf(name, tuple(array.shape), array.dtype.name)
    if found != expected:
        raise WrongTrajectories(f"{expected} is wanted, not {array.dtype.name} {tuple(array.shape)}")
