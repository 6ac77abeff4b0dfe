"""The learner's network: policy and value, on observations that are normalised first if asked for, with a memory if
asked for.

One agent's network is a plain flax module; the population vmaps it. Its variables are `params`, which are
learned, and with `normalize` also `moments`, the running mean and spread of its observations.

Observations of a population are zero-padded to a common width, and padding must not matter: first
layers are initialised at the program's own width and get zero rows for the rest. Those rows meet zeros
only, normalised or not, so their gradients are zero and they stay what they are.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol, cast

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
from flax import struct

from jaxreward.kernels.gru import gru
from jaxreward.tasks import Task
from jaxreward.training.distributions import Categorical, TanhNormal, distribution_over
from jaxreward.training.hyperparameters import PPO

Params = Any
Variables = Mapping[str, Any]
"""`params`, and `moments` where observations are normalised."""

FIRST = ("encoder_0", "value_encoder_0")
"""Layers that read observations; the second is there where the value has a network of its own."""

ACTIVATIONS = {"tanh": nn.tanh, "relu": nn.relu, "swish": nn.swish}
PRECISIONS = {"float32": "float32", "tf32": "tensorfloat32", "bfloat16": "BF16_BF16_F32"}
"""Precisions of matrix products by the names of `jax.default_matmul_precision`. A TPU has three bfloat16 products in
place of `tf32`; on a GPU its `bfloat16` would be TF32, so that is said as an algorithm."""

_STD_RANGE = (1e-6, 1e6)
_LARGEST_REWARD = 10.0


class Memory(struct.PyTreeNode):
    """What a recurrent agent knows of the steps before: the GRU's hidden state (..., H), the last action as its
    distribution encodes it (..., a) and the last reward (...). All zeros where nothing was before."""

    hidden: jax.Array
    action: jax.Array
    reward: jax.Array


class GRU(nn.Module):
    """What `flax.linen.GRUCell` computes, with the kernels of its gates side by side, so that a step takes two
    products."""

    units: int
    precision: str

    @nn.compact
    def __call__(self, hidden: jax.Array, x: jax.Array) -> jax.Array:
        """hidden (..., H) and x (..., d) to the hidden state that follows."""
        normal, zeros, H = nn.initializers.lecun_normal(), nn.initializers.zeros, self.units
        wi, wh = self.param("wi", normal, (x.shape[-1], 3 * H)), self.param("wh", normal, (H, 3 * H))
        bi, bn = self.param("bi", zeros, (3 * H,)), self.param("bn", zeros, (H,))
        rows = hidden.reshape(-1, H), x.reshape(-1, x.shape[-1])
        after = cast(jax.Array, gru(*rows, wi, wh, bi, bn, self.precision))
        return after.reshape(hidden.shape)


class PolicyNetwork(Protocol):
    """What chooses actions: a flax module of one agent, hashable, whatever the learner.

    Attributes:
        distribution: over actions.
        precision: of matrix products.
        gru: units of a memory, 0 without one.
    """

    @property
    def distribution(self) -> Any: ...
    @property
    def precision(self) -> str: ...
    @property
    def gru(self) -> int: ...
    def memory(self, shape: tuple[int, ...]) -> Memory | None:
        """Nothing known yet, for agents of leading `shape`; None if they have no memory."""
        ...

    def remember(self, hidden: Any, sample: jax.Array, reward: jax.Array, done: jax.Array) -> Memory | None:
        """The memory after a step that left this hidden state."""
        ...

    def apply(self, variables: Any, *args: Any) -> Any:
        """What `networks.apply` returns, of observations and a memory."""
        ...


class ActorCritic(nn.Module):
    """MLPs for the policy, which parametrises `distribution`, and for the value.

    With `value_hidden` the value has a network of its own; without it is a second head on the policy's. With `gru`
    units both stand, with `heads` of their own, on a GRU that reads the encoded observation, an embedding of the action
    before and the reward before (LIMEN, appendix A.2.1).
    """

    distribution: Categorical | TanhNormal
    hidden: tuple[int, ...]
    value_hidden: tuple[int, ...]
    activation: str
    normalize: bool
    clip: float = float("inf")
    gru: int = 0
    action_embedding: int = 0
    heads: tuple[int, ...] = ()
    reset_memory: bool = True
    precision: str = "float32"

    @classmethod
    def of(cls, task: Task, ppo: PPO) -> ActorCritic:
        """The network that `ppo` trains on `task`."""
        space = distribution_over(task.action_space)
        normalize, clip = ppo.normalize_observations, ppo.observation_clip
        memory = (ppo.gru, ppo.action_embedding, ppo.heads, ppo.reset_memory)
        return cls(space, ppo.hidden, ppo.value_hidden, ppo.activation, normalize, clip, *memory, ppo.precision)

    def memory(self, shape: tuple[int, ...]) -> Memory | None:
        """Nothing known yet, for agents of leading `shape`; None if they have no memory."""
        if not self.gru:
            return None
        encoded = self.distribution.encoded
        return Memory(jnp.zeros((*shape, self.gru)), jnp.zeros((*shape, encoded)), jnp.zeros(shape))

    def remember(
        self, hidden: jax.Array | None, sample: jax.Array, reward: jax.Array, done: jax.Array
    ) -> Memory | None:
        """The memory after a step that left this hidden state. Where the episode is `done` it is empty, unless
        `reset_memory` is False; rewards, which come in all units, are cut at 10 and -10."""
        if hidden is None:
            return None
        reward = jnp.clip(reward, -_LARGEST_REWARD, _LARGEST_REWARD)
        after = Memory(hidden, self.distribution.encode(sample), reward)
        if not self.reset_memory:
            return after
        return jax.tree.map(lambda x: jnp.where(done.reshape(done.shape + (1,) * (x.ndim - done.ndim)), 0.0, x), after)

    @nn.compact
    def __call__(self, obs: jax.Array, memory: Memory | None = None) -> tuple[jax.Array, jax.Array, jax.Array | None]:
        """obs (..., d) to parameters of the distribution (..., outputs), value (...), and the hidden state that
        follows (..., H), None without a GRU."""
        act = ACTIVATIONS[self.activation]
        if self.normalize:
            moments = self.variable("moments", "running", new_moments, obs.shape[-1]).value
            obs = normalized(moments, obs)
        if self.clip < np.inf:
            obs = jnp.clip(obs, -self.clip, self.clip)

        def trunk(x: jax.Array, widths: tuple[int, ...], name: str, act: Any = act) -> jax.Array:
            for i, width in enumerate(widths):
                x = act(nn.Dense(width, name=f"{name}_{i}")(x))
            return x

        shared, hidden = trunk(obs, self.hidden, "encoder"), None
        own = trunk(obs, self.value_hidden, "value_encoder") if self.value_hidden else shared
        if memory is not None:
            before = nn.Dense(self.action_embedding, name="action")(memory.action)
            read = jnp.concatenate([shared, before, memory.reward[..., None]], -1)
            hidden = GRU(self.gru, PRECISIONS[self.precision], name="gru")(memory.hidden, read)
            shared, own = (trunk(hidden, self.heads, name, nn.tanh) for name in ("policy_head", "value_head"))
        outputs = nn.Dense(self.distribution.outputs, name="policy")(shared)
        return outputs, nn.Dense(1, name="value")(own)[..., 0], hidden


def apply(
    network: PolicyNetwork, variables: Variables, obs: jax.Array, memory: Memory | None = None
) -> tuple[jax.Array, jax.Array, jax.Array | None]:
    """Parameters of the distribution (..., outputs), value (...) and, with a GRU, the hidden state that follows
    (..., H), of observations (..., d)."""
    with jax.default_matmul_precision(PRECISIONS[network.precision]):  # gradients are computed as the products are
        return cast(tuple[jax.Array, jax.Array, jax.Array | None], network.apply(variables, obs, memory))


def variables_of(params: Params, moments: Any) -> Variables:
    """What a network is applied with."""
    return {"params": params} if moments is None else {"params": params, "moments": {"running": moments}}


def parts_of(variables: Variables) -> tuple[Params, Any]:
    """The parameters and the moments in what `variables_of` made."""
    return variables["params"], variables["moments"]["running"] if "moments" in variables else None


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

    `orthogonal`: gains sqrt 2 in the trunk, 1 in a GRU and before it, 2 in heads on it, 0.01 for the policy and 1 for
    the value. `lecun`: uniform, of variance 1 / inputs, as in Brax. Biases are zero. Drawn on the host by numpy: a
    population has as many first layers as it has widths, and each would be compiled by itself.
    """
    rng = np.random.default_rng([seed, 0x6E6574])
    layers: dict[str, tuple[int, int, float]] = {}

    def add(inputs: int, widths: tuple[int, ...], name: str, gain: float) -> int:
        """Layers of these widths; the size of what comes out."""
        sizes = [inputs, *widths]
        layers.update({f"{name}_{i}": (sizes[i], sizes[i + 1], gain) for i in range(len(widths))})
        return sizes[-1]

    distribution, H = network.distribution, network.gru
    last = add(width, network.hidden, "encoder", 2**0.5)
    if H:
        layers["action"] = (distribution.encoded, network.action_embedding, 1.0)
        last, read = add(H, network.heads, "policy_head", 2.0), last + network.action_embedding + 1
        layers.update({f"gru/{gate}": (read, H, 1.0) for gate in ("ir", "iz", "in")})
        layers.update({f"gru/{gate}": (H, H, 1.0) for gate in ("hr", "hz", "hn")})
    layers["policy"] = (last, distribution.outputs, 0.01)
    if H:
        last = add(H, network.heads, "value_head", 2.0)
    elif network.value_hidden:
        last = add(width, network.value_hidden, "value_encoder", 2**0.5)
    layers["value"] = (last, 1, 1.0)
    params: dict[str, Any] = {
        name: {"kernel": initial_kernel(rng, rows, columns, gain, initializer), "bias": np.zeros(columns, np.float32)}
        for name, (rows, columns, gain) in layers.items()
    }
    if H:
        gates = {name: params.pop(f"gru/{name}")["kernel"] for name in ("ir", "iz", "in", "hr", "hz", "hn")}
        kernels = [np.concatenate([gates[f"{side}{gate}"] for gate in "rzn"], -1) for side in "ih"]
        params["gru"] = {
            "wi": kernels[0], "wh": kernels[1], "bi": np.zeros(3 * H, np.float32), "bn": np.zeros(H, np.float32)
        }  # fmt: skip
    for name in FIRST:
        if name in params:
            params[name]["kernel"] = np.pad(params[name]["kernel"], ((0, padded - width), (0, 0)))
    return params


def initial_kernel(
    rng: np.random.Generator, rows: int, columns: int, gain: float, initializer: str = "orthogonal"
) -> np.ndarray:
    """A layer's first weights (rows, columns), see `init_padded`."""
    if initializer == "lecun":
        bound = (3.0 / rows) ** 0.5
        return rng.uniform(-bound, bound, (rows, columns)).astype(np.float32)
    return gain * _orthogonal(rng, rows, columns)


def _orthogonal(rng: np.random.Generator, rows: int, columns: int) -> np.ndarray:
    """A uniformly random matrix with orthonormal rows or columns, whichever are fewer (Saxe et al. 2014)."""
    q, r = np.linalg.qr(rng.normal(size=(max(rows, columns), min(rows, columns))))
    q = q * np.sign(np.diag(r))
    return (q if rows >= columns else q.T).astype(np.float32)


def pad(variables: Variables, width: int) -> Variables:
    """The variables of one agent for observations that are carried in vectors of `width`; the inverse of `unpad`."""
    params = dict(variables["params"])
    for name in FIRST:
        if name in params:
            kernel = np.asarray(params[name]["kernel"])
            rows = ((0, width - kernel.shape[-2]), (0, 0))
            params[name] = {**params[name], "kernel": np.pad(kernel, ((0, 0),) * (kernel.ndim - 2) + rows)}
    if "moments" not in variables:
        return {"params": params}
    running = variables["moments"]["running"]
    wide = {k: x if k == "count" else np.pad(np.asarray(x), (0, width - np.shape(x)[-1])) for k, x in running.items()}
    return {"params": params, "moments": {"running": wide}}


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
