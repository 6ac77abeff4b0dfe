"""Demonstrations in words: statistics, and states with the rewards of a program, for whoever improves it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

import numpy as np

from jaxreward.demonstrations import Trajectories
from jaxreward.objectives.demonstrations.scoring import Array, DemonstrationData, Separation
from jaxreward.programs import Spec
from jaxreward.records import ExampleChoice

STATES = 3
"""States shown of each kind."""

TRAJECTORY = 10
"""States shown of a whole trajectory."""

MARKED = 4
"""States of it that solve the task which are shown in any case."""

STATISTICS = 16
"""Numbers of the state whose statistics are shown."""

_LONGEST, _LONGEST_DEBUG = 4_000, 1_500
"""Characters of a state, and of what `debug` returns on it."""

_WHOLE, _WHOLE_DEBUG = 2_000, 100
"""Numbers of an array of these that are all shown."""

_WIDEST = 256
"""Numbers of an array whose statistics are looked at."""

Debug = Callable[[Sequence[Array]], dict[str, Array]]
"""What a program's `debug` returns on states, whose arrays have a leading axis, by name."""


def illustrations(
    choice: ExampleChoice, found: Separation | None, data: DemonstrationData, expert: Trajectories,
    rng: np.random.Generator, debug: Debug | None = None,
) -> tuple[str, ...]:  # fmt: skip
    """Texts about the data, the most important first.

    Args:
        choice: what to show.
        found: what one program makes of the data; without one, states are shown without rewards.
        expert: the episodes of which a trajectory is shown.
        rng: chooses what no reward chooses.
        debug: that of the program, whose numbers stand below each state.
    """
    states, leaves = data.transitions.next_states, [leaf.name for leaf in expert.spec.leaves]
    shown = debug(states) if debug is not None else {}
    lines = [summary(found, data.experts)] if found is not None else []
    lines += _statistics("Numbers of the state", zip(leaves, states, strict=True), data.experts)
    lines += _statistics("Numbers that debug returns", shown.items(), data.experts)
    lines += _states(choice, found, data, expert.spec, rng, shown)
    if choice.trajectory:
        lines.append(_trajectory(found, data, expert, int(rng.integers(len(expert))), debug))
    return tuple(lines)


def state_text(spec: Spec, arrays: Sequence[Array]) -> str:
    """The arrays of a view, `name: values`, a line for each; large ones are cut."""
    return arrays_text(zip((leaf.name for leaf in spec.leaves), arrays, strict=True))


def arrays_text(named: Iterable[tuple[str, Array]]) -> str:
    """Arrays of a view by name, as `state_text` has them."""
    return _text(named, _LONGEST, _WHOLE)


def debug_text(values: Iterable[tuple[str, Array]]) -> str:
    """What `debug` returns on one state, by name, as `state_text` has the arrays of a view."""
    return _text(((f"debug, {name}", array) for name, array in values), _LONGEST_DEBUG, _WHOLE_DEBUG)


def _text(named: Iterable[tuple[str, Array]], longest: int, whole: int) -> str:
    lines = []
    for name, array in named:
        values = np.asarray(array)
        if values.dtype.kind not in "biu":
            values = values.astype(np.float32)
        elif values.dtype.kind == "b" and values.ndim:
            values = values.astype(np.uint8)  # masks are long enough with a digit for each
        text = np.array2string(
            values, max_line_width=10_000, threshold=whole, separator=" ",
            formatter={"float_kind": lambda x: f"{x + 0.0:.3g}"},  # type: ignore[arg-type]
        )  # fmt: skip
        lines.append(f"{name}: {' '.join(text.split())}")
    text = "\n".join(lines)
    return text if len(text) <= longest else text[: longest - 1] + "…"


def summary(found: Separation, experts: int) -> str:
    """Which rewards a program pays, of which those of the expert's states come first."""
    own, others = found.rewards[0][:experts], found.rewards[0][experts:]
    return f"Rewards of the expert's states: {_range(own)}.\nRewards of other states: {_range(others)}."


def examples(
    choice: ExampleChoice, found: Separation | None, count: int, experts: int, of_expert: int, rng: np.random.Generator
) -> Iterator[tuple[int, str]]:
    """Single states by number, each with whose it is and what it is paid: those that add least to the fitness first;
    without rewards, some by chance. Of all `count` the first `of_expert` are the expert's, and the first `experts` of
    these are told from all others."""
    is_expert = np.arange(count) < experts
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
            whose = "the expert, which does not solve the task" if experts <= k < of_expert else who
            yield int(k), f"State of {whose}{paid}"


def _states(
    choice: ExampleChoice, found: Separation | None, data: DemonstrationData, spec: Spec, rng: np.random.Generator,
    debug: dict[str, Array],
) -> Iterator[str]:  # fmt: skip
    for k, head in examples(choice, found, len(data.transitions), data.experts, data.of_expert, rng):
        arrays = [x[k] for x in data.transitions.next_states]
        head = f"{head}, after action {action_text(data.transitions.actions[k])}:"
        yield "\n".join([head, state_text(spec, arrays), *_debug_of(debug, k)])


def _debug_of(debug: dict[str, Array], k: int) -> list[str]:
    """What is written below state k."""
    return [debug_text((name, values[k]) for name, values in debug.items())] if debug else []


def _trajectory(
    found: Separation | None, data: DemonstrationData, expert: Trajectories, episode: int, debug: Debug | None
) -> str:
    """States of an episode of the expert from the first to the last, with the rewards of those that are data, and which
    of them are to be told from others, if not all are."""
    own, length = expert.take([episode]), int(expert.lengths[episode])
    first = int(expert.lengths[:episode].sum())
    known = {}
    if found is not None:
        known = {int(step): found.rewards[0][k] for k, step in enumerate(data.steps[: data.of_expert])}
    told = data.steps[: data.experts if data.experts < data.of_expert else 0] - first
    solving = np.unique(told[(told >= 0) & (told < length)])
    few = solving[np.linspace(0, len(solving) - 1, min(len(solving), MARKED)).round().astype(int)]
    steps = np.union1d(shown_steps(length), few)
    at = [0, *(int(t) + 1 for t in steps)]
    shown = debug([x[at] for x in own.states]) if debug is not None else {}
    states = ["\n".join([state_text(own.spec, [x[t] for x in own.states]), *_debug_of(shown, k)])
              for k, t in enumerate(at)]  # fmt: skip
    lines = [f"An episode of the expert, {length} steps. Before the first step:\n{states[0]}"]
    for t, state in zip(steps, states[1:], strict=True):
        paid = f", reward {known[first + int(t)]:.4g}" if first + int(t) in known else ""
        solves = ", which solves the task" if int(t) in solving else ""
        lines.append(f"After step {t + 1}, action {action_text(own.actions[t])}{solves}{paid}:\n{state}")
    return "\n".join(lines)


def shown_steps(length: int) -> Array:
    """The steps of an episode that are shown, its first and its last among them."""
    return np.unique(np.linspace(0, length - 1, min(length, TRAJECTORY)).round().astype(int))


def _statistics(what: str, named: Iterable[tuple[str, Array]], experts: int) -> list[str]:
    """Of numbers, but for those of grids, how the expert's differ from others': mean, standard deviation, the 5th and
    the 95th percentile, and Cohen's d; the largest differences first.

    Args:
        named: arrays (n, ...) of states, of which the first `experts` are the expert's. What is not finite is left out.
    """
    rows = list[tuple[float, str]]()
    for label, array in named:
        if array.ndim > 2 or array[0].size > _WIDEST:
            continue
        for k, x in enumerate(array.reshape(len(array), -1).astype(np.float64).T):
            one, other = (part[np.isfinite(part)] for part in (x[:experts], x[experts:]))
            if not (len(one) and len(other)):
                continue
            pooled, apart = float(np.sqrt((one.var() + other.var()) / 2)), float(one.mean() - other.mean())
            if pooled > 0.0 or apart != 0.0:
                effect = apart / pooled if pooled > 0.0 else float(np.copysign(np.inf, apart))
                name = label + (f"[{k}]" if array.ndim > 1 else "")
                rows.append((abs(effect), f"{name}: d {effect:.2f}; expert {_spread(one)}; others {_spread(other)}"))
    rows.sort(key=lambda row: -round(row[0], 2))  # equal ones in the order of the arrays
    if not rows:
        return []
    head = f"{what} in which the expert's differ most: Cohen's d, then mean, standard deviation, 5 % to 95 %"
    return ["\n".join([head, *(line for _, line in rows[:STATISTICS])])]


def _spread(x: Array) -> str:
    low, high = np.quantile(x, [0.05, 0.95])
    return f"{x.mean():.3g}, {x.std():.2g}, {low:.3g} to {high:.3g}"


def action_text(action: Array) -> str:
    """An action: its number, or its numbers."""
    return str(int(action)) if np.ndim(action) == 0 else "[" + " ".join(f"{x:.3g}" for x in np.ravel(action)) + "]"


def _range(values: Array) -> str:
    return f"{values.min():.4g} to {values.max():.4g}, mean {values.mean():.4g}"
