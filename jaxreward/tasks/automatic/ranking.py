"""What fragments are worth: their values in random play, and what these tell of reward and progress."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxreward.devices import FAST_COMPILE
from jaxreward.records import Fragment
from jaxreward.tasks.automatic.draft import Draft
from jaxreward.tasks.automatic.information import Signal, binned
from jaxreward.tasks.automatic.play import Array, Play

MOST = {"feature": 60, "term": 90}
"""Fragments of each kind that a vocabulary has."""
_LARGEST = 1e5
"""A value beyond this makes a fragment useless."""
TOLD = 2.0
"""How much more a fragment counts that tells most of the reward than one that tells nothing."""
WRONG_WAY = 0.25
"""What a potential counts that falls where the return rises."""


def ranked(
    drafts: Sequence[Draft], helpers: Mapping[str, str], constants: Mapping[str, str], played: Play
) -> list[Fragment]:
    """The drafts that vary in play as fragments, the most telling first, with weights.

    A draft is left out whose values are constant, are not finite, or are those of an earlier one of its kind.
    """
    values = fragment_values(drafts, helpers, constants, played)
    kept: dict[tuple[str, bytes], tuple[Draft, Array]] = {}
    weights: dict[str, float] = {}
    for draft in drafts:
        x = values[draft.name]
        if not np.isfinite(x).all() or np.abs(x).max() > _LARGEST:
            continue
        if np.ptp(x, axis=0).max() == 0.0 and not draft.is_plain:
            continue
        key = (draft.kind, _signature(x, draft))
        if key in kept:
            weights[kept[key][0].name] = max(weights[kept[key][0].name], draft.weight)
            continue
        kept[key], weights[draft.name] = (draft, x), draft.weight
    signals = [_Signals(now, later) for now, later in played.signals()]
    told = {draft.name: _told(draft, x, signals) for draft, x in kept.values()}
    for kind in MOST:
        names = [d.name for d, _ in kept.values() if d.kind == kind]
        best = max((abs(told[name]) for name in names), default=0.0)
        for name in names:
            part = abs(told[name]) / best if best > 0.005 else 0.0
            weights[name] *= (1.0 + TOLD * part) * (WRONG_WAY if told[name] < 0 else 1.0)
    found = sorted((d for d, _ in kept.values()), key=lambda d: -weights[d.name])
    chosen = {d.name for kind in MOST for d in [d for d in found if d.kind == kind][: MOST[kind]]}
    return [d.fragment(weights[d.name]) for d in found if d.name in chosen]


def fragment_values(
    drafts: Sequence[Draft | Fragment], helpers: Mapping[str, str], constants: Mapping[str, str], played: Play
) -> dict[str, Array]:
    """Of every feature its values on all states that are acted in (N, size); of a term those on all transitions, and in
    a second column those of states that do not change: of a potential, a multiple of it."""
    texts = ["import jax", "import jax.numpy as jnp", *(f"{k} = {v}" for k, v in constants.items())]
    text = "\n\n".join([*texts, *helpers.values(), *(d.source for d in drafts)])
    inputs = played.views, played.actions, played.next_views
    n = len(played.actions)
    size = 1 << (n - 1).bit_length()  # played again with a few steps more or less, it is compiled already
    padded = jax.tree.map(lambda x: np.concatenate([x, np.repeat(x[:1], size - n, axis=0)]), inputs)
    found = jax.device_get(_run(text, tuple((d.name, d.kind) for d in drafts))(*padded))
    return {name: x[:n] for name, x in found.items()}


@lru_cache(maxsize=8)
def _run(text: str, drafts: tuple[tuple[str, str], ...]) -> Any:
    """The values of fragments, by name and kind, that a text defines, compiled for transitions with a leading axis."""
    names: dict[str, Any] = {}
    exec(text, names)  # of this package

    def of_one(state: Any, action: jax.Array, next_state: Any) -> dict[str, jax.Array]:
        found = {}
        for name, kind in drafts:
            function = names[name]
            if kind == "feature":
                found[name] = jnp.asarray(function(state), jnp.float32)
            else:
                pair = function(state, action, next_state), function(next_state, action, next_state)
                found[name] = jnp.stack([jnp.asarray(x, jnp.float32) for x in pair])
        return found

    options = dict(FAST_COMPILE) if jax.default_backend() == "cpu" else None
    return jax.jit(jax.vmap(of_one), compiler_options=options)


def _signature(values: Array, draft: Draft) -> bytes:
    """Equal for fragments whose values are multiples of one another."""
    x = values if draft.kind == "feature" else values[:, :1]
    scale = np.abs(x).max() or 1.0
    return np.round(x / scale, 3).tobytes() + (b"" if draft.kind == "feature" else draft.family.encode())


class _Signals:
    """What a step brings, what comes from it on, and what follows it."""

    def __init__(self, now: Array, later: Array) -> None:
        self.now, self.later, self.following = now, later, later - now
        self.of_now, self.of_later, self.of_following = map(Signal, (now, later, self.following))


def _told(draft: Draft, values: Array, signals: Sequence[_Signals]) -> float:
    """How much a fragment tells of what a step brings or of what follows it; negative for a potential that falls
    where the return rises."""
    best, sign = 0.0, 1.0
    if draft.kind == "feature":
        columns = [binned(column) for column in values.T[:32]]
        return max((s.of_later.told_by(x, in_bins=True) for s in signals for x in columns), default=0.0)
    step, level = values[:, 0], values[:, 1]
    is_potential = draft.family == "potential"
    bins = binned(level if is_potential else step)
    for s in signals:
        if is_potential:
            candidates = [(s.of_following.told_by(bins, in_bins=True), -level, s.following)]
        else:
            candidates = [(s.of_now.told_by(bins, in_bins=True), step, s.now)]
            candidates.append((s.of_later.told_by(bins, in_bins=True), step, s.later))
        told, x, y = max(candidates, key=lambda c: c[0])
        if told > best:
            best, sign = told, _direction(x, y)
    directed = draft.family in ("potential", "shaping", "milestone")
    return best * (sign if directed else 1.0)


def _direction(x: Array, y: Array) -> float:
    if np.std(x) < 1e-9 or np.std(y) < 1e-9:
        return 1.0
    return -1.0 if np.corrcoef(x, y)[0, 1] < -0.02 else 1.0
