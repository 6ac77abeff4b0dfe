"""The learner's network: policy and value, on observations that are normalised first if asked for.

One agent's network is a plain flax module; the population vmaps it. Its variables are `params`, which are
learned, and with `normalize` also `moments`, the running mean and spread of its observations.

Observations of a population are zero-padded to a common width, and padding must not matter: first
layers are initialised at the program's own width and get zero rows for the rest. Those rows meet zeros
only, normalised or not, so their gradients are zero and they stay what they are.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np

from jaxreward.tasks import Task
from jaxreward.training.config import PPO
from jaxreward.training.distributions import Categorical, TanhNormal, distribution_over

Params = Any
Variables = Mapping[str, Any]
"""`params`, and `moments` where observations are normalised."""

FIRST = ("encoder_0", "value_encoder_0")
"""Layers that read observations; the second is there where the value has a network of its own."""

ACTIVATIONS = {"tanh": nn.tanh, "relu": nn.relu, "swish": nn.swish}
_STD_RANGE = (1e-6, 1e6)


class ActorCritic(nn.Module):
    """MLPs for the policy, which parametrises `distribution`, and for the value.

    With `value_hidden` the value has a network of its own; without it is a second head on the policy's.
    """

    distribution: Categorical | TanhNormal
    hidden: tuple[int, ...]
    value_hidden: tuple[int, ...]
    activation: str
    normalize: bool
    clip: float = float("inf")

    @classmethod
    def of(cls, task: Task, ppo: PPO) -> ActorCritic:
        """The network that `ppo` trains on `task`."""
        space = distribution_over(task.action_space)
        normalize, clip = ppo.normalize_observations, ppo.observation_clip
        return cls(space, ppo.hidden, ppo.value_hidden, ppo.activation, normalize, clip)

    @nn.compact
    def __call__(self, obs: jax.Array) -> tuple[jax.Array, jax.Array]:
        """obs (..., d) to parameters of the distribution (..., outputs) and value (...)."""
        act = ACTIVATIONS[self.activation]
        if self.normalize:
            moments = self.variable("moments", "running", new_moments, obs.shape[-1]).value
            obs = normalized(moments, obs)
        if self.clip < np.inf:
            obs = jnp.clip(obs, -self.clip, self.clip)

        def trunk(x: jax.Array, widths: tuple[int, ...], name: str) -> jax.Array:
            for i, width in enumerate(widths):
                x = act(nn.Dense(width, name=f"{name}_{i}")(x))
            return x

        shared = trunk(obs, self.hidden, "encoder")
        outputs = nn.Dense(self.distribution.outputs, name="policy")(shared)
        own = trunk(obs, self.value_hidden, "value_encoder") if self.value_hidden else shared
        return outputs, nn.Dense(1, name="value")(own)[..., 0]


def apply(network: ActorCritic, variables: Variables, obs: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Parameters of the distribution (..., outputs) and value (...) of observations (..., d)."""
    return cast(tuple[jax.Array, jax.Array], network.apply(variables, obs))


# ---- running moments of observations


def new_moments(width: int) -> dict[str, jax.Array]:
    """No observation seen: `normalized` changes nothing but the scale of what follows."""
    return {"count": jnp.zeros(()), "mean": jnp.zeros(width), "square": jnp.zeros(width)}


def add_moments(moments: Mapping[str, jax.Array], obs: jax.Array) -> dict[str, jax.Array]:
    """Moments with observations (..., d) added, by Welford's algorithm in batches; `square` is the sum of squared
    deviations from the mean."""
    rows = obs.reshape(-1, obs.shape[-1])
    count = moments["count"] + rows.shape[0]
    before = rows - moments["mean"]
    mean = moments["mean"] + before.sum(0) / count
    return {"count": count, "mean": mean, "square": moments["square"] + (before * (rows - mean)).sum(0)}


def normalized(moments: Mapping[str, jax.Array], obs: jax.Array) -> jax.Array:
    """Observations less their mean, by their standard deviation; unchanged before any was seen."""
    std = jnp.sqrt(jnp.maximum(moments["square"], 0.0) / jnp.maximum(moments["count"], 1.0))
    std = jnp.where(moments["count"] > 0, jnp.clip(std, *_STD_RANGE), 1.0)
    return (obs - moments["mean"]) / std


# ---- initial values


def init_padded(network: ActorCritic, seed: int, width: int, padded: int, initializer: str = "orthogonal") -> Params:
    """Parameters of one agent, for observations of `width` features carried in vectors of `padded`.

    `orthogonal`: gains sqrt 2 in the trunk, 0.01 for the policy and 1 for the value. `lecun`: uniform, of
    variance 1 / inputs, as in Brax. Biases are zero. Drawn on the host by numpy: a population has as many
    first layers as it has widths, and each would be compiled by itself.
    """
    rng = np.random.default_rng([seed, 0x6E6574])
    layers: dict[str, tuple[int, int, float]] = {}

    def add(widths: tuple[int, ...], name: str, head: str, outputs: int, gain: float) -> None:
        sizes = [width, *widths]
        layers.update({f"{name}_{i}": (sizes[i], sizes[i + 1], 2**0.5) for i in range(len(widths))})
        layers[head] = (sizes[-1], outputs, gain)

    add(network.hidden, "encoder", "policy", network.distribution.outputs, 0.01)
    if network.value_hidden:
        add(network.value_hidden, "value_encoder", "value", 1, 1.0)
    else:
        layers["value"] = (network.hidden[-1], 1, 1.0)
    params = {
        name: {"kernel": _kernel(rng, rows, columns, gain, initializer), "bias": np.zeros(columns, np.float32)}
        for name, (rows, columns, gain) in layers.items()
    }
    for name in FIRST:
        if name in params:
            params[name]["kernel"] = np.pad(params[name]["kernel"], ((0, padded - width), (0, 0)))
    return params


def _kernel(rng: np.random.Generator, rows: int, columns: int, gain: float, initializer: str) -> np.ndarray:
    if initializer == "lecun":
        bound = (3.0 / rows) ** 0.5
        return rng.uniform(-bound, bound, (rows, columns)).astype(np.float32)
    return gain * _orthogonal(rng, rows, columns)


def _orthogonal(rng: np.random.Generator, rows: int, columns: int) -> np.ndarray:
    """A uniformly random matrix with orthonormal rows or columns, whichever are fewer (Saxe et al. 2014)."""
    q, r = np.linalg.qr(rng.normal(size=(max(rows, columns), min(rows, columns))))
    q = q * np.sign(np.diag(r))
    return (q if rows >= columns else q.T).astype(np.float32)


def unpad(variables: Variables, width: int) -> Variables:
    """The variables of one agent without the padding of its observations."""
    params = dict(variables["params"])
    for name in FIRST:
        if name in params:
            params[name] = {**params[name], "kernel": params[name]["kernel"][..., :width, :]}
    if "moments" not in variables:
        return {"params": params}
    running = variables["moments"]["running"]
    cut = {name: x if name == "count" else x[..., :width] for name, x in running.items()}
    return {"params": params, "moments": {"running": cut}}
