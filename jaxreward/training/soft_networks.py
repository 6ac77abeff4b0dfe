"""The networks of soft actor-critic: a policy, and two values of an action.

SimBa (Lee et al. 2024, arXiv 2410.09754): a linear layer, residual blocks of layer norm and an MLP of four times the
width, and layer norm before the last linear layer. First layers of padded observations are as in `networks`.
"""

from __future__ import annotations

from typing import Any

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np

from jaxreward.errors import InvalidSetting
from jaxreward.tasks import Box, Task
from jaxreward.training.distributions import TanhNormal
from jaxreward.training.networks import ACTIVATIONS, PRECISIONS, Memory, Params, initial_kernel, new_moments, normalized
from jaxreward.training.sac_hyperparameters import SAC

_EXPANSION = 4


def trunk(x: jax.Array, widths: tuple[int, ...], simba: bool, activation: str) -> jax.Array:
    """What comes before the last layer of a policy or a value: layers of the module that calls it."""
    act = ACTIVATIONS[activation]
    if not simba:
        for i, width in enumerate(widths):
            x = act(nn.Dense(width, name=f"encoder_{i}")(x))
        return x
    x = nn.Dense(widths[0], name="encoder_0")(x)
    for i, width in enumerate(widths):
        inner = act(nn.Dense(_EXPANSION * width, name=f"up_{i}")(nn.LayerNorm(name=f"norm_{i}")(x)))
        x = x + nn.Dense(width, name=f"down_{i}")(inner)
    return nn.LayerNorm(name="norm")(x)


class SoftActor(nn.Module):
    """The policy. Called as `networks.ActorCritic` is; it estimates no value of a state, which is 0 here."""

    distribution: TanhNormal
    widths: tuple[int, ...]
    simba: bool
    activation: str
    normalize: bool
    clip: float = float("inf")
    precision: str = "float32"

    @classmethod
    def of(cls, task: Task, sac: SAC) -> SoftActor:
        """The policy that `sac` trains on `task`.

        Raises:
            InvalidSetting: its actions are not continuous.
        """
        if not isinstance(task.action_space, Box):
            message = f"SAC is for continuous actions, and those of {task.name} are discrete: use PPO"
            raise InvalidSetting(message, "learner", "task")
        simba, over = sac.network == "simba", TanhNormal(task.action_space)
        shape = (sac.activation, sac.normalize_observations, sac.observation_clip, sac.precision)
        return cls(over, sac.hidden, simba, *shape)

    @property
    def gru(self) -> int:
        return 0

    def memory(self, shape: tuple[int, ...]) -> Memory | None:
        return None

    def remember(self, hidden: Any, sample: jax.Array, reward: jax.Array, done: jax.Array) -> Memory | None:
        return None

    @nn.compact
    def __call__(self, obs: jax.Array, memory: Memory | None = None) -> tuple[jax.Array, jax.Array, jax.Array | None]:
        """obs (..., d) to parameters of the distribution (..., outputs), zeros (...) and None."""
        moments = self.variable("moments", "running", new_moments, obs.shape[-1]).value if self.normalize else None
        x = seen(moments, obs, self.clip)
        x = trunk(x, self.widths, self.simba, self.activation)
        return nn.Dense(self.distribution.outputs, name="policy")(x), jnp.zeros(obs.shape[:-1]), None


class SoftCritic(nn.Module):
    """One value of an action in a state, both as networks read them."""

    widths: tuple[int, ...]
    simba: bool
    activation: str

    @classmethod
    def of(cls, sac: SAC) -> SoftCritic:
        return cls(sac.value_hidden, sac.network == "simba", sac.activation)

    @nn.compact
    def __call__(self, obs: jax.Array, action: jax.Array) -> jax.Array:
        """obs (..., d) and action (..., a) to (...)."""
        x = jnp.concatenate([obs, action], -1)
        x = trunk(x, self.widths, self.simba, self.activation)
        return nn.Dense(1, name="value")(x)[..., 0]


def seen(moments: Any, obs: jax.Array, clip: float) -> jax.Array:
    """Observations (..., d) as networks read them: normalised where there are `moments`, and clipped."""
    obs = obs if moments is None else normalized(moments, obs)
    return jnp.clip(obs, -clip, clip) if clip < np.inf else obs


def both(critic: SoftCritic, params: Params, obs: jax.Array, action: jax.Array, precision: str) -> jax.Array:
    """Both values (2, ...), with parameters of leading axis 2."""
    with jax.default_matmul_precision(PRECISIONS[precision]):
        return jax.vmap(lambda p: critic.apply({"params": p}, obs, action))(params)  # type: ignore[return-value]


# ---- initial values


def shapes_of(actor: SoftActor, critic: SoftCritic, width: int) -> dict[str, Any]:
    """Shapes of the parameters of one agent, for observations of `width` features: `actor`, and `critic` with a leading
    axis of 2."""
    key, obs = jax.random.key(0), jnp.zeros(width)
    action = jnp.zeros(actor.distribution.encoded)
    of_actor = jax.eval_shape(actor.init, key, obs)["params"]
    of_critic = jax.eval_shape(critic.init, key, obs, action)["params"]
    twice = jax.tree.map(lambda x: jax.ShapeDtypeStruct((2, *x.shape), x.dtype), of_critic)
    return {"actor": of_actor, "critic": twice}


def init_soft(
    actor: SoftActor, critic: SoftCritic, seed: int, width: int, padded: int, initializer: str
) -> dict[str, Any]:
    """Parameters of one agent, for observations of `width` features carried in vectors of `padded`, as `shapes_of`
    lists them. Drawn on the host, layer by layer: gains 0.01 for the policy, 1 for the values, sqrt 2 elsewhere."""
    rng = np.random.default_rng([seed, 0x736163])
    shapes = shapes_of(actor, critic, width)
    one = jax.tree.map(lambda x: jax.ShapeDtypeStruct(x.shape[1:], x.dtype), shapes["critic"])
    critics = [_drawn(rng, one, width, padded, initializer) for _ in range(2)]
    return {
        "actor": _drawn(rng, shapes["actor"], width, padded, initializer),
        "critic": jax.tree.map(lambda *x: np.stack(x), *critics),
    }


def _drawn(rng: np.random.Generator, shapes: Any, width: int, padded: int, initializer: str) -> Any:
    """First values of a network whose first layer reads `width` features and perhaps more after them."""

    def one(path: Any, shape: Any) -> np.ndarray:
        layer, kind = path[-2].key, path[-1].key
        if kind != "kernel":
            return (np.ones if kind == "scale" else np.zeros)(shape.shape, np.float32)
        gain = {"policy": 0.01, "value": 1.0}.get(layer, 2**0.5)
        kernel = initial_kernel(rng, shape.shape[0], shape.shape[1], gain, initializer)
        if layer != "encoder_0":
            return kernel
        return np.insert(kernel, [width] * (padded - width), 0.0, axis=0)

    return jax.tree_util.tree_map_with_path(one, shapes)
