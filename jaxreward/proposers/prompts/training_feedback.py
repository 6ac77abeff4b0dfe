"""What training showed about a program, as lines of text for whoever writes the next one."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import TypeVar

from jaxreward.records import SUCCESS, Feedback, Result

_T = TypeVar("_T")

POINTS = 10
"""Values shown of a curve."""

_WEAK, _NONE = 0.5, 0.1
"""Correlations of return with success below which the reward ranks episodes loosely, and not at all."""

_POOR_FIT = 0.3
_SAID_IN_FULL = frozenset({"dead_features", "seed_spread", "diverged"})
"""Notices whose facts have lines of their own."""


def feedback_lines(result: Result) -> list[str]:
    """Curves of success, return, length and reward terms, then what they mean; empty without feedback.

    A curve is shown by about ten values at even distances, its maximum, mean and minimum, all to three
    significant digits, steps as `60k` or `1.2M`. Then come facts and warnings, each said once.
    """
    feedback = result.feedback
    if feedback is None:
        return []
    return [*_curves(feedback), *_facts(result, feedback)]


def _curves(feedback: Feedback) -> Iterable[str]:
    if feedback.steps:
        shown = ", ".join(map(steps, _thinned(feedback.steps)))
        yield f"environment steps: {shown}"
    measure = feedback.measure
    for name, curve in (
        ("success rate" if measure == SUCCESS else measure.label, feedback.success),
        ("episode return", feedback.episode_return),
        ("episode length", feedback.length),
    ):
        if curve:
            yield f"{name}: {_curve(curve)}"
    for term in feedback.terms:
        share = f"; {number(100 * term.share)} % of the reward at the end"
        single = ""
        if term.minimum and term.maximum:
            single = f"; single steps from {number(_least(term.minimum))} to {number(_most(term.maximum))}"
        yield f"reward term {one_line(term.name, 60)}, per step: {_curve(term.mean)}{single}{share}"


def _facts(result: Result, feedback: Feedback) -> Iterable[str]:
    seeds = feedback.seed_success
    if len(seeds) > 1:
        yield f"{feedback.measure.name} of each seed: {', '.join(map(number, seeds))}"
    for name, value in feedback.extra_metrics.items():
        yield f"{one_line(name, 60).replace('_', ' ')} at the end: {number(value)}"
    if feedback.diverged:
        yield f"diverged (not a number in training): {feedback.diverged} of {max(len(seeds), feedback.diverged)} seeds"
    yield from _alignment(feedback)
    if feedback.dead_features:
        summary = result.candidate.summary
        of = f" of {summary.observation_size}" if summary else ""
        yield (
            f"features that never changed in training: {len(feedback.dead_features)}{of} "
            f"(index {_ranges(feedback.dead_features)})"
        )
    if feedback.steps:
        fit = f"value function: explains {number(feedback.value_fit)} of the variance of returns (1 is perfect)"
        if not feedback.value_fit >= _POOR_FIT:
            fit += "; the agent can hardly predict its reward from what it observes"
        yield f"{fit}; entropy of the policy at the end: {number(feedback.entropy)} nats"
    for notice in feedback.notices:
        if notice.kind not in _SAID_IN_FULL:
            yield f"note: {one_line(notice.message, 300)}"


def _alignment(feedback: Feedback) -> Iterable[str]:
    """Whether the reward ranks episodes as the task does."""
    solved, failed = feedback.return_solved, feedback.return_failed
    farmed = any(notice.kind in ("farmed", "failure_pays") for notice in feedback.notices)
    if solved is not None and failed is not None:
        if not (farmed and failed > solved):  # the notice has both numbers
            yield f"mean return of episodes that succeed: {number(solved)}, that fail: {number(failed)}"
    elif solved is not None:
        yield f"mean return of episodes that succeed: {number(solved)} (hardly any fail)"
    elif failed is not None:
        yield f"mean return of episodes that fail: {number(failed)} (hardly any succeed)"
    correlation = feedback.return_success_correlation
    if correlation is None:
        return
    won_or_lost, name = solved is not None and failed is not None, feedback.measure.name
    if correlation <= -_NONE:
        verdict = f"; negative: the reward pays for {'not reaching the goal' if won_or_lost else f'a worse {name}'}"
    elif not correlation >= _NONE:
        apart = "success from failure" if won_or_lost else f"a good {name} from a bad one"
        verdict = f"; the reward hardly tells {apart}"
    elif correlation < _WEAK:
        verdict = f"; weak: much of the reward has nothing to do with {name}"
    else:
        verdict = ""
    yield f"correlation of an episode's return with its {name}: {number(correlation)}{verdict}"


def number(value: float) -> str:
    """Three significant digits, and no minus before a zero."""
    return f"{value + 0.0:.3g}"


def steps(count: int) -> str:
    """A number of steps as `60k` or `1.2M`, without a separator that a list could be read by."""
    for unit, size in (("G", 1_000_000_000), ("M", 1_000_000), ("k", 1_000)):
        if count >= 0.9995 * size:
            return f"{number(count / size)}{unit}"
    return str(count)


def one_line(text: str, limit: int) -> str:
    """Text from a program or about one, on one line of at most `limit` characters."""
    text = " ".join("".join(c if c.isprintable() else " " for c in text).split())
    return text if len(text) <= limit else text[: limit - 1].rstrip() + "…"


def _thinned(values: Sequence[_T]) -> Sequence[_T]:
    if len(values) <= POINTS:
        return values
    return [values[round(k * (len(values) - 1) / (POINTS - 1))] for k in range(POINTS)]


def _curve(values: Sequence[float]) -> str:
    known = [v for v in values if math.isfinite(v)]
    mean = sum(known) / len(known) if known else math.nan
    summary = f"max {number(_most(values))}, mean {number(mean)}, min {number(_least(values))}"
    return f"{', '.join(map(number, _thinned(values)))} ({summary})"


def _most(values: Sequence[float]) -> float:
    return max((v for v in values if math.isfinite(v)), default=math.nan)


def _least(values: Sequence[float]) -> float:
    return min((v for v in values if math.isfinite(v)), default=math.nan)


def _ranges(indices: Sequence[int], limit: int = 20) -> str:
    """`0-3, 7, 9-12`; of many ranges the first `limit`."""
    ranges: list[list[int]] = []
    for i in sorted(set(indices)):
        if ranges and i == ranges[-1][1] + 1:
            ranges[-1][1] = i
        else:
            ranges.append([i, i])
    shown = [str(a) if a == b else f"{a}-{b}" for a, b in ranges[:limit]]
    return ", ".join([*shown, "..."] if len(ranges) > limit else shown)
