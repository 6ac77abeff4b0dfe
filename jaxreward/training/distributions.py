"""What a policy chooses from: distributions over actions whose randomness comes from outside.

Noise is drawn once and shared by all candidates of a seed, so that comparisons between them are paired.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import jax
import jax.numpy as jnp

from jaxreward.errors import InvalidSetting
from jaxreward.tasks import Box, Discrete

MIN_STD = 0.001
_WITHIN = 1.0 - 1e-3
"""How near a bound an action, of a box from -1 to 1, may be that becomes a sample: nearer ones would be so far out that
they decide alone what is learned from them."""


class Distribution(Protocol):
    """A family of distributions, with `outputs` parameters from the policy network.

    What is sampled is the action as the learner sees it; `action` turns it into what the task takes.
    """

    @property
    def outputs(self) -> int: ...
    def noise(self, key: jax.Array, shape: tuple[int, ...]) -> jax.Array:
        """Standard noise of leading `shape` for `sample` and `entropy`."""
        ...

    def sample(self, outputs: jax.Array, noise: jax.Array) -> jax.Array:
        """outputs (..., outputs) and noise to samples."""
        ...

    def action(self, sample: jax.Array) -> jax.Array: ...

    def sample_of(self, action: jax.Array) -> jax.Array:
        """The sample that an action (..., *shape) of the task is made of: the inverse of `action`."""
        ...

    def log_prob(self, outputs: jax.Array, sample: jax.Array) -> jax.Array:
        """Log density of a sample, of the action that it stands for, (...)."""
        ...

    def entropy(self, outputs: jax.Array, noise: jax.Array) -> jax.Array:
        """The entropy (...), estimated with `noise` where it has no closed form."""
        ...

    @property
    def encoded(self) -> int:
        """Numbers of an action as a network reads it."""
        ...

    def encode(self, sample: jax.Array) -> jax.Array:
        """Samples to what a network reads of them, (..., encoded); never all zeros but by chance."""
        ...


@dataclass(frozen=True)
class Categorical:
    """One of `n` choices by logits; samples are int32 (...)."""

    n: int

    @property
    def outputs(self) -> int:
        return self.n

    def noise(self, key: jax.Array, shape: tuple[int, ...]) -> jax.Array:
        return jax.random.gumbel(key, (*shape, self.n))

    def sample(self, outputs: jax.Array, noise: jax.Array) -> jax.Array:
        return jnp.argmax(outputs + noise, -1).astype(jnp.int32)

    def action(self, sample: jax.Array) -> jax.Array:
        return sample

    def sample_of(self, action: jax.Array) -> jax.Array:
        return action.astype(jnp.int32)

    def log_prob(self, outputs: jax.Array, sample: jax.Array) -> jax.Array:
        return jnp.take_along_axis(jax.nn.log_softmax(outputs), sample[..., None], -1)[..., 0]

    def entropy(self, outputs: jax.Array, noise: jax.Array) -> jax.Array:
        logp = jax.nn.log_softmax(outputs)
        return -(jnp.exp(logp) * logp).sum(-1)

    @property
    def encoded(self) -> int:
        return self.n

    def encode(self, sample: jax.Array) -> jax.Array:
        return jax.nn.one_hot(sample, self.n)


@dataclass(frozen=True)
class TanhNormal:
    """A diagonal normal, squashed by tanh into the box `space`; samples are float32 (..., size) before the tanh.

    The network gives means and, through softplus, standard deviations of at least `MIN_STD`, as in Brax.
    Densities are those of tanh(sample): the linear map onto the box would only add a constant.
    """

    space: Box

    @property
    def outputs(self) -> int:
        return 2 * self.space.size

    def noise(self, key: jax.Array, shape: tuple[int, ...]) -> jax.Array:
        return jax.random.normal(key, (*shape, self.space.size))

    def sample(self, outputs: jax.Array, noise: jax.Array) -> jax.Array:
        mean, std = self._moments(outputs)
        return mean + std * noise

    def action(self, sample: jax.Array) -> jax.Array:
        low, high = self.space.low, self.space.high
        squashed = low + (high - low) * (jnp.tanh(sample) + 1.0) / 2.0
        return squashed.reshape((*sample.shape[:-1], *self.space.shape))

    def sample_of(self, action: jax.Array) -> jax.Array:
        """Actions at a bound, of which there is no sample, are taken from just within it."""
        low, high = self.space.low, self.space.high
        flat = action.reshape((*action.shape[: action.ndim - len(self.space.shape)], self.space.size))
        squashed = 2.0 * (flat - low) / (high - low) - 1.0
        return jnp.arctanh(jnp.clip(squashed, -_WITHIN, _WITHIN))

    def log_prob(self, outputs: jax.Array, sample: jax.Array) -> jax.Array:
        mean, std = self._moments(outputs)
        normal = -0.5 * jnp.square((sample - mean) / std) - jnp.log(std) - 0.5 * jnp.log(2.0 * jnp.pi)
        return (normal - _log_slope(sample)).sum(-1)

    def entropy(self, outputs: jax.Array, noise: jax.Array) -> jax.Array:
        _, std = self._moments(outputs)
        normal = 0.5 + 0.5 * jnp.log(2.0 * jnp.pi) + jnp.log(std)
        return (normal + _log_slope(self.sample(outputs, noise))).sum(-1)

    @property
    def encoded(self) -> int:
        return self.space.size

    def encode(self, sample: jax.Array) -> jax.Array:
        return jnp.tanh(sample)

    def _moments(self, outputs: jax.Array) -> tuple[jax.Array, jax.Array]:
        mean, spread = jnp.split(outputs, 2, axis=-1)
        return mean, jax.nn.softplus(spread) + MIN_STD


def _log_slope(x: jax.Array) -> jax.Array:
    """log of the derivative of tanh, stable where tanh saturates."""
    return 2.0 * (jnp.log(2.0) - x - jax.nn.softplus(-2.0 * x))


def distribution_over(space: Discrete | Box) -> Categorical | TanhNormal:
    """The distribution for an action space.

    Raises:
        UserError: it is neither `Discrete` nor `Box`.
    """
    if isinstance(space, Discrete):
        return Categorical(space.n)
    if isinstance(space, Box):
        return TanhNormal(space)
    message = f"the action space of a task is a jaxreward.tasks.Discrete or Box, not {type(space).__name__}"
    raise InvalidSetting(message, "task.action_space")
