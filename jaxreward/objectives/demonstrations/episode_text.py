"""A whole episode in words: its first state, and what every step changes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np

from jaxreward.demonstrations import Trajectories, WrongTrajectories
from jaxreward.objectives.demonstrations.illustrations import action_text, arrays_text, state_text
from jaxreward.objectives.demonstrations.scoring import Array
from jaxreward.programs import Spec

_CHANGES = 24
"""Changed places of an array that are listed; with more of them the whole state is shown."""

_CHANNELS = 4
"""Numbers of a place of a grid at most: an array of rank 2 or more whose last axis is not longer is such a grid."""

Size = Callable[[str], int]
"""The size of a text, in whatever unit its bound has."""


class EpisodeText(NamedTuple):
    """An episode in words, and the steps that are shown, from 1, int (k,)."""

    text: str
    steps: Array


def episode_text(episodes: Trajectories, episode: int, size: Size, most: int) -> EpisodeText:
    """The steps of an episode by number from 1: what is before the first, then of each the action and what of the state
    it changed.

    Where that is larger than `most`, every second step is shown, or every fourth, and so on; the last one always.

    Raises:
        WrongTrajectories: even two states are larger.
    """
    own = episodes.take([episode])
    apart = 1
    while True:
        steps = shown_every(own.steps, apart)
        if size(text := _text(own, steps)) <= most:
            return EpisodeText(text, steps + 1)
        if apart >= own.steps:
            raise WrongTrajectories(
                f"two states of {own.task or 'these episodes'} take {size(text):,} tokens, and a prompt has room for "
                f"{most:,}: mark the steps yourself, with solves of jaxreward.demonstrations.from_arrays"
            )
        apart *= 2


def shown_every(steps: int, apart: int) -> Array:
    """Every so many of `steps` steps, counted back from the last one, from 0, int (k,)."""
    return np.arange(steps - 1, -1, -apart)[::-1]


def _text(own: Trajectories, steps: Array) -> str:
    text = state_text(own.spec, [x[0] for x in own.states])
    lines, before = [f"An episode of the expert, {own.steps} steps. Before step 1:\n{text}"], 0
    for t in map(int, steps):
        states = [(x[before], x[t + 1]) for x in own.states]
        changes = "\n".join(_changes(own.spec, states)) or "nothing of the state changes"
        since = f" (since step {before})" if before and before < t else ""
        lines.append(f"Step {t + 1}, action {action_text(own.actions[t])}{since}:\n{changes}")
        before = t + 1
    return "\n".join(lines)


def _changes(spec: Spec, states: list[tuple[Array, Array]]) -> Iterator[str]:
    """What differs between the arrays of two views: places of grids one by one, other arrays whole."""
    for leaf, (old, new) in zip(spec.leaves, states, strict=True):
        differs = old != new
        if not np.any(differs):
            continue
        if np.ndim(new) >= 2 and np.shape(new)[-1] <= _CHANNELS:
            differs = differs.any(-1)
        places = np.argwhere(differs) if np.ndim(new) >= 2 else ()
        if not 0 < len(places) <= _CHANGES:
            yield arrays_text([(leaf.name, new)])
            continue
        for place in map(tuple, places):
            yield f"{leaf.name}[{', '.join(map(str, place))}]: {_numbers(old[place])} -> {_numbers(new[place])}"


def _numbers(values: Array) -> str:
    whole = values.dtype.kind in "biu"
    return " ".join(str(int(x)) if whole else f"{float(x):.3g}" for x in np.ravel(values))
