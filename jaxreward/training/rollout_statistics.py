"""What a collection of experience says about each candidate and seed, as running sums and moments.

Axes: C candidates, S seeds, d features (padded), K terms (padded), B extra metrics.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
from flax import struct


class Stats(struct.PyTreeNode):
    """Running sums since the last reset; float32 (C, S) unless said otherwise.

    `success`, the value of the task's metric, whatever that is, and `ret` are means over episodes; `success_dev` and
    `ret_dev` are the sums of their squared deviations, `co_dev` that of the products, so that the spread of large
    values is not lost in rounding. `solved` counts the episodes whose value is above a half, which means something
    where it is a rate.

    With `first_only` (a bool scalar) only the first episode of each lane counts: that is how
    held-out episodes are measured, each lane one episode and no bias towards short ones. What a lane does after it
    changes `steps` and the figures of terms and observations alone.
    """

    first_only: jax.Array
    steps: jax.Array
    episodes: jax.Array
    success: jax.Array
    success_dev: jax.Array
    length: jax.Array
    ret: jax.Array
    ret_dev: jax.Array
    co_dev: jax.Array
    solved: jax.Array
    ret_solved: jax.Array
    term_sum: jax.Array  # (C, S, K)
    term_abs: jax.Array  # (C, S, K)
    term_min: jax.Array  # (C, S, K)
    term_max: jax.Array  # (C, S, K)
    extra: jax.Array  # (C, S, B)
    obs_min: jax.Array  # (C, S, d)
    obs_max: jax.Array  # (C, S, d)
    finite: jax.Array  # bool (C, S): every observation and reward so far

    @classmethod
    def zeros(
        cls, candidates: int, seeds: int, width: int, terms: int, first_only: bool = False, extra: int = 0
    ) -> Stats:
        shape = (candidates, seeds)
        zero, per_term, per_feature = jnp.zeros(shape), jnp.zeros((*shape, terms)), jnp.zeros((*shape, width))
        return cls(
            first_only=jnp.asarray(first_only),
            steps=zero, episodes=zero, success=zero, success_dev=zero, length=zero, ret=zero,
            ret_dev=zero, co_dev=zero, solved=zero, ret_solved=zero,
            term_sum=per_term, term_abs=per_term, term_min=per_term + jnp.inf, term_max=per_term - jnp.inf,
            extra=jnp.zeros((*shape, extra)), obs_min=per_feature + jnp.inf, obs_max=per_feature - jnp.inf,
            finite=jnp.ones(shape, bool),
        )  # fmt: skip

    def add(
        self,
        obs: jax.Array,
        terms: jax.Array,
        finite: jax.Array,
        done: jax.Array,
        episode: jax.Array,
        success: jax.Array,
        ret: jax.Array,
        length: jax.Array,
        extra: jax.Array,
    ) -> Stats:
        """One step of every environment: obs (C, S, E, d), terms (C, S, E, K), the others (C, S, E), `extra`
        (C, S, E, B). It, `success`, `ret` and `length` count where an episode ends (`done`)."""
        counts = ~self.first_only | (episode == 0)
        counted = (done & counts).astype(jnp.float32)
        ret = jnp.where(counted > 0, ret, 0.0)  # it may overflow after a held-out episode, and 0 times infinity is NaN
        terms = jnp.nan_to_num(terms, nan=0.0, posinf=0.0, neginf=0.0)
        won = counted * (success > 0.5)
        # Chan, Golub and LeVeque (1983): moments of two samples from those of each.
        new = counted.sum(-1)
        share = new / jnp.maximum(self.episodes + new, 1.0)
        mean = lambda x: (counted * x).sum(-1) / jnp.maximum(new, 1.0)  # noqa: E731
        means = mean(success), mean(ret)
        off = tuple(counted * (x - m[..., None]) for x, m in zip((success, ret), means, strict=True))
        apart = tuple(m - before for m, before in zip(means, (self.success, self.ret), strict=True))

        def deviations(i: int, j: int) -> jax.Array:
            return (off[i] * off[j]).sum(-1) + apart[i] * apart[j] * self.episodes * share

        return self.replace(
            steps=self.steps + done.shape[-1],
            episodes=self.episodes + new,
            success=self.success + apart[0] * share,
            success_dev=self.success_dev + deviations(0, 0),
            length=self.length + (counted * length).sum(-1),
            ret=self.ret + apart[1] * share,
            ret_dev=self.ret_dev + deviations(1, 1),
            co_dev=self.co_dev + deviations(0, 1),
            solved=self.solved + won.sum(-1),
            ret_solved=self.ret_solved + (won * ret).sum(-1),
            term_sum=self.term_sum + terms.sum(-2),
            term_abs=self.term_abs + jnp.abs(terms).sum(-2),
            term_min=jnp.minimum(self.term_min, terms.min(-2)),
            term_max=jnp.maximum(self.term_max, terms.max(-2)),
            extra=self.extra + (counted[..., None] * extra).sum(-2),
            obs_min=jnp.minimum(self.obs_min, obs.min(-2)),
            obs_max=jnp.maximum(self.obs_max, obs.max(-2)),
            finite=self.finite & (finite | ~counts).all(-1),
        )
