"""The learner's network and its action distribution.

One agent's network is a plain flax module; the population vmaps it. Observations of a population
are zero-padded to a common width, and padding must not matter: the first layer is initialised at
the program's own width and gets zero rows for the rest. Those rows meet zeros only, so their
gradients are zero and they stay what they are.
"""

from __future__ import annotations

from typing import Any, cast

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np

Params = Any
FIRST = "encoder_0"


class ActorCritic(nn.Module):
    """An MLP with a policy head (logits of `actions` choices) and a value head."""

    actions: int
    hidden: tuple[int, ...]
    activation: str

    @nn.compact
    def __call__(self, obs: jax.Array) -> tuple[jax.Array, jax.Array]:
        """obs (..., d) to logits (..., actions) and value (...)."""
        act = {"tanh": nn.tanh, "relu": nn.relu}[self.activation]
        x = obs
        for i, width in enumerate(self.hidden):
            x = act(nn.Dense(width, name=f"encoder_{i}")(x))
        logits = nn.Dense(self.actions, name="policy")(x)
        value = nn.Dense(1, name="value")(x)
        return logits, value[..., 0]


def init_padded(network: ActorCritic, seed: int, width: int, padded: int) -> Params:
    """Parameters of one agent, for observations of `width` features carried in vectors of `padded`.

    Orthogonal weights, gains sqrt 2 in the trunk, 0.01 for the policy and 1 for the value, zero
    biases. Drawn on the host by numpy: a population has as many first layers as it has widths, and
    each would be compiled by itself.
    """
    rng = np.random.default_rng([seed, 0x6E6574])
    sizes = [width, *network.hidden]
    layers = {f"encoder_{i}": (sizes[i], sizes[i + 1], 2**0.5) for i in range(len(network.hidden))}
    layers |= {"policy": (sizes[-1], network.actions, 0.01), "value": (sizes[-1], 1, 1.0)}
    params = {
        name: {"kernel": gain * _orthogonal(rng, rows, columns), "bias": np.zeros(columns, np.float32)}
        for name, (rows, columns, gain) in layers.items()
    }
    params[FIRST]["kernel"] = np.pad(params[FIRST]["kernel"], ((0, padded - width), (0, 0)))
    return params


def _orthogonal(rng: np.random.Generator, rows: int, columns: int) -> np.ndarray:
    """A uniformly random matrix with orthonormal rows or columns, whichever are fewer (Saxe et al. 2014)."""
    q, r = np.linalg.qr(rng.normal(size=(max(rows, columns), min(rows, columns))))
    q = q * np.sign(np.diag(r))
    return (q if rows >= columns else q.T).astype(np.float32)


def unpad(params: Params, width: int) -> Params:
    """The parameters of one agent without the padding of its first layer."""
    first = params[FIRST]
    return {**params, FIRST: {**first, "kernel": first["kernel"][..., :width, :]}}


def apply(network: ActorCritic, params: Params, obs: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Logits (..., actions) and value (...) of observations (..., d)."""
    logits, value = cast(tuple[jax.Array, jax.Array], network.apply({"params": params}, obs))
    return logits, value


def sample_action(logits: jax.Array, noise: jax.Array) -> jax.Array:
    """A categorical draw by the Gumbel-max trick, so that agents can share one draw of `noise`.

    logits and noise (..., actions), noise standard Gumbel; returns int32 (...).
    """
    return jnp.argmax(logits + noise, -1).astype(jnp.int32)


def log_prob(logits: jax.Array, action: jax.Array) -> jax.Array:
    return jnp.take_along_axis(jax.nn.log_softmax(logits), action[..., None], -1)[..., 0]


def entropy(logits: jax.Array) -> jax.Array:
    logp = jax.nn.log_softmax(logits)
    return -(jnp.exp(logp) * logp).sum(-1)
