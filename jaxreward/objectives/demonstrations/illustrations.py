"""Demonstrations in words: statistics, and states with the rewards of a program, for whoever improves it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from jaxreward.demonstrations import Trajectories
from jaxreward.objectives.demonstrations.scoring import Array, DemonstrationData, Separation
from jaxreward.programs import Spec
from jaxreward.records import ExampleChoice

STATES = 3
"""States shown of each kind."""

TRAJECTORY = 10
"""States shown of a whole trajectory."""

STATISTICS = 16
"""Numbers of the state whose statistics are shown."""

_LONGEST = 4_000
"""Characters of a state."""

_WIDEST = 256
"""Numbers of an array whose statistics are looked at."""


def illustrations(
    choice: ExampleChoice, found: Separation | None, data: DemonstrationData, expert: Trajectories,
    rng: np.random.Generator,
) -> tuple[str, ...]:  # fmt: skip
    """Texts about the data, the most important first.

    Args:
        choice: what to show.
        found: what one program makes of the data; without one, states are shown without rewards.
        expert: the episodes of which a trajectory is shown.
        rng: chooses what no reward chooses.
    """
    lines = [_summary(found, data)] if found is not None else []
    lines += _statistics(data, expert.spec)
    lines += _states(choice, found, data, expert.spec, rng)
    if choice.trajectory:
        lines.append(_trajectory(found, data, expert, int(rng.integers(len(expert)))))
    return tuple(lines)


def state_text(spec: Spec, arrays: Sequence[Array]) -> str:
    """The arrays of a view, `name: values`, a line for each; large ones are cut."""
    lines = []
    for leaf, array in zip(spec.leaves, arrays, strict=True):
        values = np.asarray(array)
        if values.dtype.kind not in "biu":
            values = values.astype(np.float32)
        text = np.array2string(
            values, max_line_width=10_000, threshold=2_000, separator=" ",
            formatter={"float_kind": lambda x: f"{x + 0.0:.3g}"},  # type: ignore[arg-type]
        )  # fmt: skip
        lines.append(f"{leaf.name}: {' '.join(text.split())}")
    text = "\n".join(lines)
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"


def _summary(found: Separation, data: DemonstrationData) -> str:
    rewards = found.rewards[0]
    own, others = rewards[: data.experts], rewards[data.experts :]
    return f"Rewards of the expert's states: {_range(own)}.\nRewards of other states: {_range(others)}."


def _states(
    choice: ExampleChoice, found: Separation | None, data: DemonstrationData, spec: Spec, rng: np.random.Generator
) -> Iterator[str]:
    """Single states: those that add least to the fitness first; without rewards, some by chance."""
    count = len(data.transitions)
    is_expert = np.arange(count) < data.experts
    if found is None:
        wrong, order = np.ones(count, bool), rng.permutation(count)
    else:
        rewards = found.rewards[0]
        least, most = rewards[is_expert].min(), rewards[~is_expert].max()
        wrong, order = np.where(is_expert, rewards <= most, rewards >= least), np.argsort(found.logs[0], kind="stable")
    for who, which in (("the expert", is_expert), ("others", ~is_expert)):
        if choice.only_expert and found is not None and who == "others":
            continue
        shown = [k for k in order if which[k] and wrong[k]][:STATES]
        if not choice.only_wrong:
            shown += [k for k in order[::-1] if which[k] and not wrong[k]][:STATES]
        for k in shown:
            paid = ""
            if found is not None:
                paid = f", reward {found.rewards[0][k]:.4g} ({'wrong' if wrong[k] else 'right'})"
            arrays = [x[k] for x in data.transitions.next_states]
            owner = "the expert before its last" if data.experts <= k < data.of_expert else who
            head = f"State of {owner}{paid}, after action {_action(data.transitions.actions[k])}:"
            yield f"{head}\n{state_text(spec, arrays)}"


def _trajectory(found: Separation | None, data: DemonstrationData, expert: Trajectories, episode: int) -> str:
    """States of an episode of the expert from the first to the last, with the rewards of those that are data."""
    own, length = expert.take([episode]), int(expert.lengths[episode])
    first = int(expert.lengths[:episode].sum())
    known = {}
    if found is not None:
        known = {int(step): found.rewards[0][k] for k, step in enumerate(data.steps[: data.of_expert])}
    lines = [f"An episode of the expert, {length} steps. Before the first step:\n{_at(own, 0)}"]
    for t in np.unique(np.linspace(0, length - 1, min(length, TRAJECTORY)).round().astype(int)):
        paid = f", reward {known[first + int(t)]:.4g}" if first + int(t) in known else ""
        lines.append(f"After step {t + 1}, action {_action(own.actions[t])}{paid}:\n{_at(own, int(t) + 1)}")
    return "\n".join(lines)


def _at(episode: Trajectories, t: int) -> str:
    return state_text(episode.spec, [x[t] for x in episode.states])


def _statistics(data: DemonstrationData, spec: Spec) -> list[str]:
    """Of the numbers of the state, but for those of grids, how the expert's differ from others': mean, standard
    deviation, the 5th and the 95th percentile, and Cohen's d; the largest differences first."""
    rows = list[tuple[float, str]]()
    for leaf, array in zip(spec.leaves, data.transitions.next_states, strict=True):
        if len(leaf.shape) > 1 or np.prod(leaf.shape) > _WIDEST:
            continue
        for k, x in enumerate(array.reshape(len(array), -1).astype(np.float64).T):
            one, other = x[: data.experts], x[data.experts :]
            pooled = float(np.sqrt((one.var() + other.var()) / 2))
            if pooled > 0.0:
                effect, name = float((one.mean() - other.mean()) / pooled), leaf.name + (f"[{k}]" if leaf.shape else "")
                rows.append((abs(effect), f"{name}: d {effect:.2f}; expert {_spread(one)}; others {_spread(other)}"))
    rows.sort(key=lambda row: -row[0])
    if not rows:
        return []
    head = (
        "Numbers of the state in which the expert's differ most: Cohen's d, then mean, standard deviation, 5 % to 95 %"
    )
    return ["\n".join([head, *(line for _, line in rows[:STATISTICS])])]


def _spread(x: Array) -> str:
    low, high = np.quantile(x, [0.05, 0.95])
    return f"{x.mean():.3g}, {x.std():.2g}, {low:.3g} to {high:.3g}"


def _action(action: Array) -> str:
    return str(int(action)) if np.ndim(action) == 0 else "[" + " ".join(f"{x:.3g}" for x in np.ravel(action)) + "]"


def _range(values: Array) -> str:
    return f"{values.min():.4g} to {values.max():.4g}, mean {values.mean():.4g}"
