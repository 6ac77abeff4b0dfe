"""What a training showed, checkpoint by checkpoint, on the host."""

from __future__ import annotations

from collections.abc import Sequence

import jax
import numpy as np
from flax import struct

from jaxreward.training.learn_stats import LearnStats
from jaxreward.training.rollout_statistics import Stats

_PER_CANDIDATE = {"obs_min", "obs_max"}
"""What has no axis of checkpoints, but one of features."""

_PER_TERM = ("term_mean", "term_abs", "term_min", "term_max")


class History(struct.PyTreeNode):
    """float32 arrays (P, C, S) over P checkpoints, NaN where not reached; with K terms (P, C, S, K), and with B extra
    metrics (P, C, S, B). In a `TrainResult`, d features and K terms are the program's own, without padding.

    `success` (the value of the task's metric), `ret`, `ret_var` (the variance), `covariance` (of the two), `length`,
    `solved` (a count), `ret_solved` and `ret_failed` are of held-out episodes, and so is `extra`; terms are of
    training since the checkpoint before, the entropy and the value fit of its last update; `diverged` says that an
    agent has diverged by then.
    `obs_min` and `obs_max` (C, S, d) run over all of training.
    """

    success: np.ndarray
    success_se: np.ndarray
    episodes: np.ndarray
    ret: np.ndarray
    ret_var: np.ndarray
    covariance: np.ndarray
    solved: np.ndarray
    ret_solved: np.ndarray
    ret_failed: np.ndarray
    length: np.ndarray
    term_mean: np.ndarray
    term_abs: np.ndarray
    term_min: np.ndarray
    term_max: np.ndarray
    entropy: np.ndarray
    value_fit: np.ndarray
    diverged: np.ndarray
    extra: np.ndarray
    obs_min: np.ndarray
    obs_max: np.ndarray

    @classmethod
    def empty(cls, points: int, candidates: int, seeds: int, width: int, terms: int, extra: int = 0) -> History:
        sizes = {"extra": extra} | dict.fromkeys(_PER_TERM, terms)
        shape = (points, candidates, seeds)
        nan = {
            name: np.full((*shape, sizes[name]) if name in sizes else shape, np.nan, np.float32)
            for name in cls.__annotations__
            if name not in _PER_CANDIDATE
        }
        least = np.full((candidates, seeds, width), np.inf, np.float32)
        return cls(**nan, obs_min=least, obs_max=-least)

    def record(
        self, point: int, held_out: Stats, training: Stats, learned: LearnStats, diverged: jax.Array, worst: float = 0.0
    ) -> None:
        """Write checkpoint `point`. An agent that has diverged counts as `worst` from here on."""
        held_out, training, learned = jax.device_get((held_out, training, learned))
        # held-out episodes count too: what is not finite there is not either
        gone = np.asarray(diverged) | ~held_out.finite
        n = np.maximum(held_out.episodes, 1)
        failed, ret_sum = held_out.episodes - held_out.solved, held_out.ret * held_out.episodes
        steps = np.maximum(training.steps, 1)[..., None]
        with np.errstate(invalid="ignore", divide="ignore"):
            rows = {
                "success": np.where(gone, worst, held_out.success),
                "success_se": np.where(gone, 0.0, np.sqrt(held_out.success_dev / n / np.maximum(n - 1, 1))),
                "episodes": held_out.episodes,
                "ret": held_out.ret,
                "ret_var": held_out.ret_dev / n,
                "covariance": held_out.co_dev / n,
                "solved": held_out.solved,
                "ret_solved": held_out.ret_solved / held_out.solved,
                "ret_failed": (ret_sum - held_out.ret_solved) / failed,
                "length": held_out.length / n,
                "term_mean": training.term_sum / steps,
                "term_abs": training.term_abs / steps,
                "term_min": training.term_min,
                "term_max": training.term_max,
                "entropy": learned.entropy,
                "value_fit": learned.value_fit,
                "diverged": gone,
                "extra": held_out.extra / n[..., None],
            }
        for name, row in rows.items():
            getattr(self, name)[point] = row
        np.minimum(self.obs_min, training.obs_min, out=self.obs_min)
        np.maximum(self.obs_max, training.obs_max, out=self.obs_max)

    @property
    def last(self) -> int:
        """The last checkpoint that the first candidate reached."""
        return int(np.flatnonzero(np.isfinite(self.success[:, 0, 0]))[-1])

    def held_out_steps(self, points: Sequence[int], candidates: Sequence[int]) -> int:
        """Environment steps of the held-out episodes of these candidates at these checkpoints."""
        rows = np.ix_(list(points), list(candidates))
        return int((self.length[rows].astype(float) * self.episodes[rows]).round().sum())

    def rows(self, index: Sequence[int]) -> History:
        """The history of the candidates in `index`."""
        rows = np.asarray(index, int)
        return History(
            **{name: (value[rows] if name in _PER_CANDIDATE else value[:, rows]) for name, value in vars(self).items()}
        )

    def cut(self, width: int, terms: int) -> History:
        """Without what features and terms were padded with: the first `width` and `terms` of them."""
        sizes = dict.fromkeys(_PER_CANDIDATE, width) | dict.fromkeys(_PER_TERM, terms)
        return self.replace(**{name: getattr(self, name)[..., :size] for name, size in sizes.items()})

    @classmethod
    def join(cls, parts: Sequence[History], axis: int = 1) -> History:
        """Histories of different candidates, one after the other, or of different seeds with `axis=2`."""
        return cls(
            **{
                name: np.concatenate([getattr(part, name) for part in parts], axis - (name in _PER_CANDIDATE))
                for name in vars(parts[0])
            }
        )
