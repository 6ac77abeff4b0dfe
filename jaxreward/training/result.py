"""What `train` returns: scores with their errors, and feedback by which a program can be improved."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from jaxreward.programs import Program
from jaxreward.records import SUCCESS, Feedback, Measure, Score, TermCurve
from jaxreward.training.association import FEW, association, won_or_lost
from jaxreward.training.history import History
from jaxreward.training.networks import Variables, unpad
from jaxreward.training.notices import notices
from jaxreward.training.rungs import Standing

_TERM_POINTS = 10


@dataclass(frozen=True)
class TrainResult:
    """Results of C candidates and S seeds, with P checkpoints.

    Attributes:
        programs: the candidates, in the order given.
        seeds: the training seeds.
        steps: environment steps of a seed at each checkpoint, int (P,).
        success: the task's metric over held-out episodes at the end, float (C, S); at the rung that stopped
            the candidate, if one did; the measure's worst, 0 of a rate, for a seed that diverged.
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
        extra_metrics: names of what the task's metric measures besides its value.
        measure: what the value of the task's metric means.
        reasons: why a rung stopped the candidate, "" where none did.
        collector, compilation, population: how experience was collected, see `execution.Execution`.
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
    extra_metrics: tuple[str, ...] = ()
    measure: Measure = SUCCESS
    reasons: tuple[str, ...] = ()
    collector: str = ""
    compilation: str = ""
    population: str = ""

    def __repr__(self) -> str:
        means = self.success.mean(1)
        best = max(range(len(means)), key=lambda i: self.measure.oriented(means[i]), default=None)
        parts = [
            f"candidates={len(self.programs)}", f"seeds={len(self.seeds)}",
            f"steps={self.steps[-1] if len(self.steps) else 0}",
        ]  # fmt: skip
        if best is not None:
            name = self.programs[best].name
            parts.append(f"best {self.measure.name} {means[best]:.3f} by candidate {best} {name!r}")
        if self.diverged.any():
            parts.append(f"{int(self.diverged.sum())} agents diverged")
        if self.stopped.any():
            parts.append(f"{int((self.stopped > 0).sum())} candidates stopped early")
        return f"TrainResult({', '.join(parts)}, {self.wall_s:.1f} s)"

    def __getattr__(self, name: str) -> Any:
        """Attributes under their names of earlier versions."""
        old = {"told": "extra_metrics", "beside": "extra", "beside_curve": "extra_curve"}
        if name in old:
            return getattr(self, old[name])
        raise AttributeError(f"a TrainResult has no {name!r}")

    @property
    def collection(self) -> str:
        """How experience was collected, in words: `fused`, `fused, fast` or `stepwise`, and `bank` where it was one."""
        fast, bank = self.compilation == "fast", self.population == "bank"
        return ", ".join([self.collector, *["fast"] * fast, *["bank"] * bank])

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

    def extra(self, name: str) -> np.ndarray:
        """An extra metric over held-out episodes at the end, (C, S).

        Raises:
            KeyError: a name that is not in `extra_metrics`.
        """
        return np.stack([curve[:, h.last] for curve, h in zip(self.extra_curve(name), self.histories, strict=True)])

    def extra_curve(self, name: str) -> np.ndarray:
        """The same at each checkpoint, (C, S, P), NaN where not reached.

        Raises:
            KeyError: a name that is not in `extra_metrics`.
        """
        if name not in self.extra_metrics:
            raise KeyError(f"there is no extra metric {name!r}; there are: {', '.join(self.extra_metrics) or 'none'}")
        return self._curve("extra")[:, :, self.extra_metrics.index(name)]

    def variables(self, candidate: int, seed: int) -> Variables:
        """The network's variables of one agent, for observations of the program's own size: `params`, and
        `moments` where observations are normalised. `ActorCritic.of(task, ppo).apply` takes them.

        `candidate` and `seed` are positions.
        """
        import jax

        one = jax.tree.map(lambda x: x[seed], self.agents[candidate])
        return unpad(one, self.programs[candidate].observation_size)

    def extended(self, rows: Sequence[int], more: TrainResult) -> TrainResult:
        """The candidates `rows` with the further seeds of `more`, a training of just these with as much room and the
        same points. Steps and seconds are those of both."""
        import jax

        pairs = list(zip(rows, range(len(more.programs)), strict=True))
        join = partial(jax.tree.map, lambda a, b: np.concatenate([a, b]))
        return replace(
            self,
            programs=more.programs, seeds=(*self.seeds, *more.seeds),
            success=np.concatenate([self.success[list(rows)], more.success], 1),
            diverged=np.concatenate([self.diverged[list(rows)], more.diverged], 1),
            stopped=self.stopped[list(rows)], reasons=tuple(self.reasons[k] for k in rows),
            histories=tuple(History.join([self.histories[k], more.histories[j]], axis=2) for k, j in pairs),
            agents=tuple(join(self.agents[k], more.agents[j]) for k, j in pairs),
            env_steps=self.env_steps + more.env_steps, eval_steps=self.eval_steps + more.eval_steps,
            compile_s=self.compile_s + more.compile_s, run_s=self.run_s + more.run_s, wall_s=self.wall_s + more.wall_s,
        )  # fmt: skip

    def standing(self, rows: Sequence[int]) -> Standing:
        """Where candidates that were trained to the end stand."""
        return Standing.of(self.measure, [self.histories[k] for k in rows], self.steps, 0)

    def best_seed(self, candidate: int) -> int:
        """The position of the seed with the best value."""
        return int((self.success[candidate] * self.measure.oriented(1.0)).argmax())

    def score(self, candidate: int) -> Score:
        """The metric with the standard error of the mean over seeds (one seed: over episodes)."""
        values, history = self.success[candidate], self.histories[candidate]
        n = len(values)
        se = float(values.std(ddof=1) / np.sqrt(n)) if n > 1 else float(history.success_se[history.last, 0, 0])
        episodes = int(history.episodes[history.last, 0].sum())
        return Score(mean=float(values.mean()), se=se, n=n, episodes=episodes, measure=self.measure)

    def feedback(self, candidate: int) -> Feedback:
        """Curves, reward terms and warnings of one candidate, averaged over its seeds."""
        program, history = self.programs[candidate], self.histories[candidate]
        last = history.last
        mean = lambda x: tuple(round(float(v), 6) for v in x[: last + 1, 0].mean(-1))  # noqa: E731
        terms, term_steps = _term_curves(program, history, self.steps, last)
        size = program.observation_size
        episodes = history.episodes[last, 0]
        solved = float((history.success[last, 0] * episodes).sum())
        failed, decided = float(episodes.sum()) - solved, won_or_lost(history, last, self.measure)
        related = association(history, last, self.measure)
        flat = (history.obs_max[0] - history.obs_min[0])[:, :size] <= 1e-8
        fields: dict[str, Any] = {
            "steps": tuple(self.steps[: last + 1].tolist()),
            "success": mean(history.success),
            "episode_return": mean(history.ret),
            "length": mean(history.length),
            "by_seed": tuple(tuple(round(float(v), 4) for v in curve) for curve in history.success[: last + 1, 0].T),
            "seed_success": tuple(self.success[candidate].tolist()),
            "term_steps": term_steps,
            "terms": terms,
            "dead_features": tuple(np.flatnonzero(flat.all(0)).tolist()),
            "entropy": float(history.entropy[last, 0].mean()),
            "value_fit": float(history.value_fit[last, 0].mean()),
            "return_solved": _mean_or_none(history.ret_solved[last, 0]) if decided and solved >= FEW else None,
            "return_failed": _mean_or_none(history.ret_failed[last, 0]) if decided and failed >= FEW else None,
            "return_success_correlation": related and related.correlation,
            "return_success_interval": related and (related.low, related.high),
            "diverged": int(self.diverged[candidate].sum()),
            "measure": self.measure,
            "extra_metrics": {name: float(self.extra(name)[candidate].mean()) for name in self.extra_metrics},
        }
        errors = history.success_se[: last + 1, 0]
        noise = float(np.sqrt(np.nanmean(errors**2) / errors.shape[-1]))
        return Feedback(**fields, notices=tuple(notices(Feedback(**fields), size, noise)))


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
    curves = (
        TermCurve(
            name=name,
            mean=tuple(history.term_mean[points, 0, :, k].mean(-1).tolist()),
            minimum=tuple(history.term_min[points, 0, :, k].min(-1).tolist()),
            maximum=tuple(history.term_max[points, 0, :, k].max(-1).tolist()),
            share=float(absolute[k] / total) if total > 0 else 0.0,
        )
        for k, name in enumerate(program.terms)
    )
    return tuple(curves), tuple(steps[points].tolist())
