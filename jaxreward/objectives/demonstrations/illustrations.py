"""Demonstrations in words: states with the rewards that a program gives them, for whoever improves it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from jaxreward.demonstrations import Trajectories
from jaxreward.objectives.demonstrations.scoring import Array, DemonstrationData
from jaxreward.programs import Spec
from jaxreward.records import ExampleChoice

STATES = 3
"""States shown of each kind."""

TRAJECTORY = 10
"""States shown of a whole trajectory."""

_LONGEST = 4_000
"""Characters of a state."""


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


def illustrations(
    choice: ExampleChoice, rewards: Array, logs: Array, data: DemonstrationData, expert: Trajectories
) -> tuple[str, ...]:
    """States and their rewards under one program, the worst first.

    Args:
        rewards, logs: of the transitions, (n,), as in `Separation`.
        expert: the episodes of which a trajectory is shown.
    """
    own, others = slice(None, data.experts), slice(data.experts, None)
    least, most = rewards[own].min(), rewards[others].max()
    wrong = np.where(np.arange(len(rewards)) < data.experts, rewards <= most, rewards >= least)
    lines = [
        f"Rewards of the expert's states: {_range(rewards[own])}. Rewards of other states: {_range(rewards[others])}."
    ]
    for name, which in (("the expert", own), ("others", others)):
        if choice.only_expert and which == others:
            continue
        at = np.arange(len(rewards))[which]
        ordered = at[np.argsort(logs[at], kind="stable")]
        shown = [k for k in ordered if wrong[k]][:STATES]
        if not choice.only_wrong:
            shown += [k for k in ordered[::-1] if not wrong[k]][:STATES]
        for k in shown:
            verdict = "wrong" if wrong[k] else "right"
            arrays = [x[k] for x in data.transitions.next_states]
            action = _action(data.transitions.actions[k])
            lines.append(
                f"State of {name}, reward {rewards[k]:.4g} ({verdict}), reached by action {action}:\n"
                f"{state_text(expert.spec, arrays)}"
            )
    if choice.trajectory:
        lines += _trajectory(rewards, data, expert)
    return tuple(lines)


def _trajectory(rewards: Array, data: DemonstrationData, expert: Trajectories) -> list[str]:
    """Steps of the expert's first episode, from its first to its last, and the reward of those that are data."""
    own, length = expert.take([0]), int(expert.lengths[0])
    known = {int(step): rewards[k] for k, step in enumerate(data.steps[: data.experts])}
    lines = [f"An episode of the expert, {length} steps:"]
    for t in np.unique(np.linspace(0, length - 1, min(length, TRAJECTORY)).round().astype(int)):
        paid = f", reward {known[int(t)]:.4g}" if int(t) in known else ""
        arrays = [x[t + 1] for x in own.states]
        lines.append(f"Step {t + 1}, action {_action(own.actions[t])}{paid}:\n{state_text(own.spec, arrays)}")
    return lines


def _action(action: Array) -> str:
    return str(int(action)) if np.ndim(action) == 0 else "[" + " ".join(f"{x:.3g}" for x in np.ravel(action)) + "]"


def _range(values: Array) -> str:
    return f"{values.min():.4g} to {values.max():.4g}, mean {values.mean():.4g}"
