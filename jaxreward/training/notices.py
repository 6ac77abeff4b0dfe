"""What a person or a model should know of a training before reading its curves."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from jaxreward.records import SUCCESS, Feedback, Measure, Notice
from jaxreward.training.history import History

FEW = 5
"""Episodes below which a mean return says nothing."""


def correlation(history: History, point: int, measure: Measure = SUCCESS) -> float | None:
    """Correlation of return with the metric over the held-out episodes of all seeds (of success: point-biserial),
    positive where more return goes with a better value.

    None where all episodes have the same value or the same return, or where fewer than five succeed or fail.
    """
    held = _Held.of(history, point)
    n, won = held.episodes, held.solved
    if n < 2 * FEW or (measure.rate and held.decided and min(won, n - won) < FEW):
        return None
    # float32 knows them no better
    if held.ret_variance <= 1e-10 * held.ret**2 or held.variance <= 1e-10 * held.value**2:
        return None
    found = held.covariance / np.sqrt(held.ret_variance * held.variance)
    return float(np.clip(measure.oriented(found), -1.0, 1.0))


def won_or_lost(history: History, point: int, measure: Measure) -> bool:
    """Whether every held-out episode was won or lost: the metric is a rate, and its values lie near 0 or 1."""
    return measure.rate and _Held.of(history, point).decided


@dataclass(frozen=True)
class _Held:
    """The held-out episodes of all seeds of the first candidate together, without those that diverged: how many they
    are and how many have a value above a half, means and variances of value and return, and their covariance."""

    episodes: float
    solved: float
    value: float
    ret: float
    variance: float
    ret_variance: float
    covariance: float

    @classmethod
    def of(cls, history: History, point: int) -> _Held:
        names = ("episodes", "solved", "success", "success_se", "ret", "ret_var", "covariance")
        rows = {name: getattr(history, name)[point, 0].astype(np.float64) for name in names}
        known = np.isfinite(rows["ret_var"]) & ~(history.diverged[point, 0] > 0)
        rows = {name: row[known] for name, row in rows.items()}
        episodes = rows["episodes"]
        n = float(episodes.sum())
        over = lambda row: float((row * episodes).sum()) / max(n, 1.0)  # noqa: E731
        value, ret = over(rows["success"]), over(rows["ret"])
        off, ret_off = rows["success"] - value, rows["ret"] - ret
        # within the seeds and between them; the error of a seed's mean is the spread of its episodes
        return cls(
            n, float(rows["solved"].sum()), value, ret,
            over(rows["success_se"] ** 2 * np.maximum(episodes - 1, 1) + off**2),
            over(rows["ret_var"] + ret_off**2), over(rows["covariance"] + off * ret_off),
        )  # fmt: skip

    @property
    def decided(self) -> bool:
        """Whether the values of a rate lie near 0 or 1: no others with the same mean have so large a variance."""
        return self.variance >= 0.8 * self.value * (1.0 - self.value)


def notices(feedback: Feedback, observation_size: int, noise: float = 0.0) -> list[Notice]:
    """Remarks on the course of a training, its terms, its features and its seeds; `noise` is the standard error of a
    point of the curve, below some of which nothing has changed."""
    found, measure = list[Notice](), feedback.measure
    value, ret = np.asarray(feedback.success), np.asarray(feedback.episode_return)
    # Of a rate, shares of 1; of another value, of the range that it went through.
    scale, clear = 1.0, 0.0
    if not measure.rate:
        references = [value, [x for x in (measure.sparse, measure.human) if x is not None]]
        scale = max(float(np.ptp(np.concatenate(references))) if value.size else 0.0, 1e-9)
        clear = 6.0 * noise
    farmed = _farmed(feedback, value, ret, scale, clear)
    if farmed:
        found.append(Notice(kind="farmed", message=farmed))
    told = feedback.return_success_correlation
    if not farmed and told is not None and told < 0.2 and not _solved(value, measure, 0.95):
        won = feedback.return_solved is not None and feedback.return_failed is not None
        what = "tells success from failure" if won else f"goes with the {measure.name}"
        found.append(Notice(kind="uncorrelated", message=f"the return hardly {what}: correlation {told:.2f}"))
    for term in feedback.terms:
        if term.share > 0.9 and len(feedback.terms) > 1:
            found.append(
                Notice(kind="dominant_term", message=f"the term '{term.name}' is {term.share:.0%} of the reward")
            )
        if max(term.maximum) - min(term.minimum) <= 1e-9:
            found.append(Notice(kind="flat_term", message=f"the term '{term.name}' never changed"))
    dead = len(feedback.dead_features)
    if dead:
        found.append(
            Notice(kind="dead_features", message=f"{dead} of {observation_size} features never changed in training")
        )
    seeds = np.asarray(feedback.seed_success)
    if len(seeds) > 1 and seeds.max() - seeds.min() > max(0.3 * scale, clear * np.sqrt(len(seeds))):
        text = f"{measure.name} ranges from {_number(seeds.min())} to {_number(seeds.max())} over seeds"
        found.append(Notice(kind="seed_spread", message=text))
    late = value[len(value) // 2 :]
    if len(value) >= 6 and not _solved(value, measure, 0.9) and np.ptp(late) < max(0.02 * scale, clear):
        text = f"{measure.name} has stood still near {_number(value[-1])} since half-time"
        found.append(Notice(kind="plateau", message=text))
    if feedback.diverged:
        found.append(Notice(kind="diverged", message=f"{feedback.diverged} of {len(seeds)} seeds diverged"))
    return found


def _number(value: float) -> str:
    small = 0.0 < abs(value) < 0.1
    return f"{value:.2g}" if small else f"{value:.2f}" if abs(value) < 100 else f"{value:.0f}"


def _solved(value: np.ndarray, measure: Measure, level: float) -> bool:
    """Whether the task is solved at the end as far as that is known."""
    reached = measure.level(float(value[-1])) if value.size else None
    return reached is not None and reached >= level


def _farmed(feedback: Feedback, value: np.ndarray, ret: np.ndarray, scale: float, clear: float) -> str:
    """Signs that the reward is collected without reaching the goal, in words, or nothing."""
    solved, failed, measure = feedback.return_solved, feedback.return_failed, feedback.measure
    if solved is not None and failed is not None and value[-1] < 0.95 and failed > solved:
        return (
            f"at the end of training, episodes that fail return {failed:.3g} and episodes that succeed {solved:.3g}: "
            "the reward pays for not reaching the goal"
        )
    if len(value) < 4:
        return ""
    good = value if measure.higher_is_better else -value
    best, half = int(good.argmax()), len(good) // 2
    span = max(float(np.ptp(ret)), 1e-9)
    # The whole range of another value may be noise: it must have lost half of it.
    lost = max((0.15 if measure.rate else 0.5) * scale, clear)
    if good[best] - good[-1] > lost and ret[-1] - ret[best] > -0.05 * span:
        worse = "fell" if measure.higher_is_better else "rose"
        return (
            f"{measure.name} {worse} from {_number(value[best])} to {_number(value[-1])} while the return went from "
            f"{ret[best]:.3g} to {ret[-1]:.3g}: the reward is collected without reaching the goal"
        )
    if not measure.rate:
        return ""  # nothing says what value would be little
    if failed is not None and abs(failed) <= 0.1 * abs(ret[-1]):
        return ""  # what was earned came from the few episodes that succeed
    told = feedback.return_success_correlation
    earned = solved is not None and failed is not None and solved > failed and solved * value[-1] >= ret[-1] / 3
    if earned or (told is not None and told >= 0.3):
        return ""  # what it rose by is at least partly the goal
    if value[-1] < 0.05 and ret[-1] - ret[half] > 0.1 * span and ret[-1] > ret[0] + 0.5 * span:
        return (
            f"the return rose from {ret[0]:.3g} to {ret[-1]:.3g} while {measure.name} stayed at {value[-1]:.2f}: "
            "what is rewarded is not the goal"
        )
    return ""
