"""What `train` returns: scores with their errors, and feedback by which a program can be improved."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from jaxreward.programs import Program
from jaxreward.records import Feedback, Notice, Score, TermCurve
from jaxreward.training.history import History
from jaxreward.training.networks import Variables, unpad

_TERM_POINTS = 10
_FEW = 5  # episodes below which a mean return says nothing


@dataclass(frozen=True)
class TrainResult:
    """Results of C candidates and S seeds, with P checkpoints.

    Attributes:
        programs: the candidates, in the order given.
        seeds: the training seeds.
        steps: environment steps of a seed at each checkpoint, int (P,).
        success: success over held-out episodes at the end, float (C, S); at the rung that stopped
            the candidate, if one did; 0 for a seed that diverged.
        success_curve: the same at each checkpoint, (C, S, P), NaN where not reached.
        return_curve: mean undiscounted return of held-out episodes, (C, S, P).
        length_curve: mean length of held-out episodes, (C, S, P).
        diverged: bool (C, S).
        stopped: steps at which a rung stopped the candidate, 0 if none did, int (C,).
        env_steps: environment steps taken in training, all candidates and seeds together.
        eval_steps: the same, taken for held-out episodes.
        compile_s, run_s, wall_s: seconds spent compiling, running, and in all; compiling and
            running overlap where there are several chunks.
        chunks: candidates of each chunk.
        peak_bytes: device memory that the largest chunk needs, as the compiler reports it.
        told: names of what the task's metric tells beside its value.
    """

    programs: tuple[Program, ...]
    seeds: tuple[int, ...]
    steps: np.ndarray
    success: np.ndarray
    diverged: np.ndarray
    stopped: np.ndarray
    histories: tuple[History, ...]
    agents: tuple[Variables, ...]
    env_steps: int
    eval_steps: int
    compile_s: float
    run_s: float
    wall_s: float
    chunks: tuple[int, ...]
    peak_bytes: int
    told: tuple[str, ...] = ()

    def _curve(self, name: str) -> np.ndarray:
        return np.stack([np.moveaxis(getattr(h, name)[:, 0], 0, -1) for h in self.histories])

    @property
    def success_curve(self) -> np.ndarray:
        return self._curve("success")

    @property
    def return_curve(self) -> np.ndarray:
        return self._curve("ret")

    @property
    def length_curve(self) -> np.ndarray:
        return self._curve("length")

    def beside(self, name: str) -> np.ndarray:
        """What the task's metric tells beside its value, over held-out episodes at the end, (C, S).

        Raises:
            KeyError: a name that is not in `told`.
        """
        if name not in self.told:
            raise KeyError(f"the metric tells nothing called {name!r}, but {', '.join(self.told) or 'its value'}")
        index = self.told.index(name)
        return np.stack([h.beside[self._last(c), 0, :, index] for c, h in enumerate(self.histories)])

    def variables(self, candidate: int, seed: int) -> Variables:
        """The network's variables of one agent, for observations of the program's own size: `params`, and
        `moments` where observations are normalised. `ActorCritic.of(task, ppo).apply` takes them.

        `candidate` and `seed` are positions.
        """
        import jax

        one = jax.tree.map(lambda x: x[seed], self.agents[candidate])
        return unpad(one, self.programs[candidate].observation_size)

    def score(self, candidate: int) -> Score:
        """Success with the standard error of the mean over seeds (one seed: over episodes)."""
        values, history = self.success[candidate], self.histories[candidate]
        last = self._last(candidate)
        n = len(values)
        se = float(values.std(ddof=1) / np.sqrt(n)) if n > 1 else float(history.success_se[last, 0, 0])
        return Score(mean=float(values.mean()), se=se, n=n, episodes=int(history.episodes[last, 0].sum()))

    def _last(self, candidate: int) -> int:
        return int(np.flatnonzero(np.isfinite(self.histories[candidate].success[:, 0, 0]))[-1])

    def feedback(self, candidate: int) -> Feedback:
        """Curves, reward terms and warnings of one candidate, averaged over its seeds."""
        program, history, last = self.programs[candidate], self.histories[candidate], self._last(candidate)
        mean = lambda x: tuple(round(float(v), 6) for v in x[: last + 1, 0].mean(-1))  # noqa: E731
        terms, term_steps = _term_curves(program, history, self.steps, last)
        size = program.observation_size
        episodes = history.episodes[last, 0]
        solved = float((history.success[last, 0] * episodes).sum())
        failed = float(episodes.sum()) - solved
        flat = (history.obs_max[0] - history.obs_min[0])[:, :size] <= 1e-8
        fields: dict[str, Any] = {
            "steps": tuple(int(s) for s in self.steps[: last + 1]),
            "success": mean(history.success),
            "episode_return": mean(history.ret),
            "length": mean(history.length),
            "seed_success": tuple(float(v) for v in self.success[candidate]),
            "term_steps": term_steps,
            "terms": terms,
            "dead_features": tuple(int(i) for i in np.flatnonzero(flat.all(0))),
            "entropy": float(history.entropy[last, 0].mean()),
            "value_fit": float(history.value_fit[last, 0].mean()),
            "return_solved": _mean_or_none(history.ret_solved[last, 0]) if solved >= _FEW else None,
            "return_failed": _mean_or_none(history.ret_failed[last, 0]) if failed >= _FEW else None,
            "return_success_correlation": correlation(history, last),
            "diverged": int(self.diverged[candidate].sum()),
            "beside": {name: float(self.beside(name)[candidate].mean()) for name in self.told},
        }
        return Feedback(**fields, notices=tuple(notices(Feedback(**fields), size)))


def correlation(history: History, point: int) -> float | None:
    """Point-biserial correlation of return with success over the held-out episodes of all seeds.

    None where there are fewer than five episodes of either kind, or where all returned the same.
    """
    rows = {
        name: getattr(history, name)[point, 0].astype(np.float64) for name in ("episodes", "solved", "ret", "ret_sq")
    }
    known = np.isfinite(rows["ret_sq"])
    episodes, solved = (rows[name][known] for name in ("episodes", "solved"))
    n, won = episodes.sum(), solved.sum()
    if min(won, n - won) < _FEW:
        return None
    mean, square = ((rows[name][known] * episodes).sum() / n for name in ("ret", "ret_sq"))
    variance = square - mean**2
    if variance <= 1e-5 * square:  # of float32 sums, which know it no better
        return None
    of_solved = np.nan_to_num(history.ret_solved[point, 0].astype(np.float64)[known])
    covariance = (of_solved * solved).sum() / n - mean * won / n
    return float(np.clip(covariance / np.sqrt(variance * won / n * (1 - won / n)), -1.0, 1.0))


def _mean_or_none(x: np.ndarray) -> float | None:
    known = x[np.isfinite(x)]
    return float(known.mean()) if known.size else None


def _term_curves(
    program: Program, history: History, steps: np.ndarray, last: int
) -> tuple[tuple[TermCurve, ...], tuple[int, ...]]:
    points = np.unique(np.linspace(0, last, min(_TERM_POINTS, last + 1)).round().astype(int))
    late = slice(max(0, last + 1 - max(1, (last + 1) // 10)), last + 1)
    absolute = history.term_abs[late, 0].mean((0, 1))[: len(program.terms)]
    total = absolute.sum()
    curves = []
    for k, name in enumerate(program.terms):
        curves.append(
            TermCurve(
                name=name,
                mean=tuple(float(v) for v in history.term_mean[points, 0, :, k].mean(-1)),
                minimum=tuple(float(v) for v in history.term_min[points, 0, :, k].min(-1)),
                maximum=tuple(float(v) for v in history.term_max[points, 0, :, k].max(-1)),
                share=float(absolute[k] / total) if total > 0 else 0.0,
            )
        )
    return tuple(curves), tuple(int(steps[p]) for p in points)


def notices(feedback: Feedback, observation_size: int) -> list[Notice]:
    """What a person or a model should know before reading the curves."""
    found = []
    success, ret = np.asarray(feedback.success), np.asarray(feedback.episode_return)
    farmed = _farmed(feedback, success, ret)
    if farmed:
        found.append(Notice(kind="farmed", message=farmed))
    told = feedback.return_success_correlation
    if not farmed and told is not None and told < 0.2 and success[-1] < 0.95:
        text = f"the return hardly tells success from failure: correlation {told:.2f}"
        found.append(Notice(kind="uncorrelated", message=text))
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
    if len(seeds) > 1 and seeds.max() - seeds.min() > 0.3:
        found.append(
            Notice(kind="seed_spread", message=f"success ranges from {seeds.min():.2f} to {seeds.max():.2f} over seeds")
        )
    if len(success) >= 6 and success[-1] < 0.9 and np.ptp(success[len(success) // 2 :]) < 0.02:
        found.append(Notice(kind="plateau", message=f"success has stood still near {success[-1]:.2f} since half-time"))
    if feedback.diverged:
        found.append(Notice(kind="diverged", message=f"{feedback.diverged} of {len(seeds)} seeds diverged"))
    return found


def _farmed(feedback: Feedback, success: np.ndarray, ret: np.ndarray) -> str:
    """Signs that the reward is collected without reaching the goal, in words, or nothing."""
    solved, failed = feedback.return_solved, feedback.return_failed
    if solved is not None and failed is not None and success[-1] < 0.95 and failed > solved:
        return (
            f"at the end of training, episodes that fail return {failed:.3g} and episodes that succeed {solved:.3g}: "
            "the reward pays for not reaching the goal"
        )
    if len(success) < 4:
        return ""
    best = int(success.argmax())
    span = max(float(np.ptp(ret)), 1e-9)
    if success[best] - success[-1] > 0.15 and ret[-1] - ret[best] > -0.05 * span:
        return (
            f"success fell from {success[best]:.2f} to {success[-1]:.2f} while the return went from "
            f"{ret[best]:.3g} to {ret[-1]:.3g}: the reward is collected without reaching the goal"
        )
    half = len(success) // 2
    if failed is not None and abs(failed) <= 0.1 * abs(ret[-1]):
        return ""  # what was earned came from the few episodes that succeed
    told = feedback.return_success_correlation
    earned = solved is not None and failed is not None and solved > failed and solved * success[-1] >= ret[-1] / 3
    if earned or (told is not None and told >= 0.3):
        return ""  # what it rose by is at least partly the goal
    if success[-1] < 0.05 and ret[-1] - ret[half] > 0.1 * span and ret[-1] > ret[0] + 0.5 * span:
        return (
            f"the return rose from {ret[0]:.3g} to {ret[-1]:.3g} while success stayed at {success[-1]:.2f}: "
            "what is rewarded is not the goal"
        )
    return ""
