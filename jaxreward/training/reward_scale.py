"""The unit of a program's rewards, so that it does not matter to a learner."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from flax import struct

# A first reward after long silence is large against the running mean square; one step is not to
# outweigh all before it.
MAX_SCALED_REWARD = 10.0


class RewardScale(struct.PyTreeNode):
    """The running root mean square of the discounted return, by which rewards are divided.

    `ret` (E,) is the discounted sum of past rewards of each running episode, `square` the mean of
    its square over `count` steps. The mean square and not the variance: a constant reward has none.
    `value` () is what values are estimated from, in units of the reward; None unless they are centred.
    """

    ret: jax.Array
    square: jax.Array
    count: jax.Array
    value: jax.Array | None = None

    @property
    def unit(self) -> jax.Array:
        """What rewards are divided by, ()."""
        return jnp.sqrt(self.square + 1e-8)


def new_scale(envs: int, value: jax.Array | None = None) -> RewardScale:
    """Before any reward."""
    zero = jnp.zeros(())
    return RewardScale(ret=jnp.zeros(envs), square=zero, count=zero, value=value)


def add_returns(scale: RewardScale, rewards: jax.Array, done: jax.Array, discount: jax.Array | float) -> RewardScale:
    """The scale with the returns of further steps: rewards (T, E), and `done` where an episode ends with one."""

    def step(ret: jax.Array, x: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
        reward, done = x
        ret = discount * ret + reward
        return jnp.where(done, 0.0, ret), ret

    last, returns = jax.lax.scan(step, scale.ret, (rewards, done))
    count = scale.count + returns.size
    square = scale.square + (jnp.square(returns).mean() - scale.square) * returns.size / count
    return scale.replace(ret=last, square=square, count=count)
