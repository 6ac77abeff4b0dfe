"""What a person or a model should know of a training before reading its curves."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from jaxreward.records import Feedback, Measure, Notice

_SURE = 6.0
"""Standard errors of a point of a curve, by which the best of its points and the last one differ for certain."""
_SMALL = 0.2
"""A correlation of return and metric that no policy would be guided by."""
_WON = 0.95
"""Of all episodes: the task is solved."""
_RARE = 0.05


def notices(feedback: Feedback, observation_size: int, noise: float = 0.0) -> Iterator[Notice]:
    """Remarks on a training, its terms, its features and its seeds; `noise` is the standard error of a point of the
    curve, below some of which nothing has changed."""
    measure = feedback.measure
    value, ret = np.asarray(feedback.success), np.asarray(feedback.episode_return)
    # Of a rate, shares of 1; of another value, of the range that it went through.
    scale, clear = 1.0, 0.0
    if not measure.rate:
        references = [value, [x for x in (measure.sparse, measure.human) if x is not None]]
        scale = max(float(np.ptp(np.concatenate(references))) if value.size else 0.0, 1e-9)
        clear = _SURE * noise
    farmed = _farmed(feedback, value, ret, scale, _SURE * noise)
    yield from farmed
    correlation, interval = feedback.return_success_correlation, feedback.return_success_interval
    unsolved = not farmed and not _solved(value, measure, _WON)
    if unsolved and correlation is not None and interval is not None and interval[1] < _SMALL:
        won = feedback.return_solved is not None and feedback.return_failed is not None
        what = "tells success from failure" if won else f"goes with the {measure.name}"
        text = f"the return hardly {what}: correlation {_interval(correlation, interval)}"
        yield Notice(kind="uncorrelated", message=text)
    for term in feedback.terms:
        if term.share > 0.9 and len(feedback.terms) > 1:
            yield Notice(kind="dominant_term", message=f"the term '{term.name}' is {term.share:.0%} of the reward")
        if max(term.maximum) - min(term.minimum) <= 1e-9:
            yield Notice(kind="flat_term", message=f"the term '{term.name}' never changed")
    if dead := len(feedback.dead_features):
        text = f"{dead} of {observation_size} features never changed in training"
        yield Notice(kind="dead_features", message=text)
    seeds = np.asarray(feedback.seed_success)
    if len(seeds) > 1 and seeds.max() - seeds.min() > max(0.3 * scale, clear * np.sqrt(len(seeds))):
        text = f"{measure.name} ranges from {_number(seeds.min())} to {_number(seeds.max())} over seeds"
        yield Notice(kind="seed_spread", message=text)
    late = value[len(value) // 2 :]
    if len(value) >= 6 and not _solved(value, measure, 0.9) and np.ptp(late) < max(0.02 * scale, clear):
        text = f"{measure.name} has stood still near {_number(value[-1])} since half-time"
        yield Notice(kind="plateau", message=text)
    if feedback.diverged:
        yield Notice(kind="diverged", message=f"{feedback.diverged} of {len(seeds)} seeds diverged")


def _number(value: float) -> str:
    small = 0.0 < abs(value) < 0.1
    return f"{value:.2g}" if small else f"{value:.2f}" if abs(value) < 100 else f"{value:.0f}"


def _solved(value: np.ndarray, measure: Measure, level: float) -> bool:
    """Whether the task is solved at the end as far as that is known."""
    reached = measure.level(float(value[-1])) if value.size else None
    return reached is not None and reached >= level


def _interval(value: float, interval: tuple[float, float]) -> str:
    return f"{value:.2f} ({interval[0]:.2f} to {interval[1]:.2f})"


def _farmed(feedback: Feedback, value: np.ndarray, ret: np.ndarray, scale: float, clear: float) -> list[Notice]:
    """Signs that the reward is collected without reaching the goal: none, or the clearest one."""
    solved, failed, measure = feedback.return_solved, feedback.return_failed, feedback.measure
    correlation, interval = feedback.return_success_correlation, feedback.return_success_interval
    if correlation is not None and interval is not None and interval[1] < -_SMALL:
        shown = f"correlation {_interval(correlation, interval)}"
        if solved is not None and failed is not None:
            shown = f"episodes that fail return {failed:.3g} and episodes that succeed {solved:.3g}, {shown}"
        if _solved(value, measure, _WON):
            text = f"{shown}: the agent succeeds although failing is paid more, and longer training may undo that"
            return [Notice(kind="failure_pays", message=text)]
        return [Notice(kind="farmed", message=f"at the end of training, {shown}: the reward pays for failing")]
    if len(value) < 4:
        return []
    good = value if measure.higher_is_better else -value
    best, half = int(good.argmax()), len(good) // 2
    span = max(float(np.ptp(ret)), 1e-9)
    # The whole range of another value may be noise: it must have lost half of it.
    lost = max((0.15 if measure.rate else 0.5) * scale, clear)
    if good[best] - good[-1] > lost and ret[-1] - ret[best] > -0.05 * span:
        worse = "fell" if measure.higher_is_better else "rose"
        text = (
            f"{measure.name} {worse} from {_number(value[best])} to {_number(value[-1])} while the return went from "
            f"{ret[best]:.3g} to {ret[-1]:.3g}: the reward is collected without reaching the goal"
        )
        return [Notice(kind="farmed", message=text)]
    if not measure.rate or value[-1] >= _RARE or failed is None:
        return []  # the scale of another value is not known
    if solved is None:  # too few episodes succeed to say what success is paid
        if failed <= 0.1 * abs(ret[-1]) or ret[-1] < 0.9 * ret.max():
            return []
        text = f"episodes return {failed:.3g} and almost none succeeds"
        return [Notice(kind="unreached", message=f"{text}: the reward leads elsewhere, or training is too short")]
    rose = ret[-1] - ret[half] > 0.1 * span and ret[-1] > ret[0] + 0.5 * span
    related = correlation is not None and correlation >= 0.3
    if not rose or related or (solved > failed and solved * value[-1] >= ret[-1] / 3):
        return []  # what it rose by is at least partly the goal
    went = f"the return rose from {ret[0]:.3g} to {ret[-1]:.3g} while {measure.name} stayed at {value[-1]:.2f}"
    return [Notice(kind="farmed", message=f"{went}: what is rewarded is not the goal")]
