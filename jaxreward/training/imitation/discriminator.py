"""The discriminator of GAIL and AIRL, for one agent; the population vmaps it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
from flax import struct

from jaxreward.training.hyperparameters import PPO
from jaxreward.training.imitation.experts import Experts, Transition
from jaxreward.training.imitation.methods import AIRL, GAIL
from jaxreward.training.networks import (
    PRECISIONS,
    ActorCritic,
    Variables,
    add_moments,
    apply,
    initial_kernel,
    normalized,
)
from jaxreward.training.rollout import Trajectory

Params = Any
"""`reward`, layers of an MLP, and for AIRL `potential`."""


Seen = Callable[[jax.Array], jax.Array]
"""Observations (..., d) as a discriminator reads them."""


class Discriminator(struct.PyTreeNode):
    """Its MLPs, and Adam's moments. AIRL has a second one, of the potential h."""

    params: Params
    opt_state: Any


class Transitions(struct.PyTreeNode):
    """What a discriminator reads: observations before and after (..., d), the action as the network reads it (..., a),
    its log probability by the agent (...), and whether the episode was over (...)."""

    obs: jax.Array
    action: jax.Array
    next_obs: jax.Array
    logp: jax.Array
    done: jax.Array


# ---- initial values


def init_discriminator(network: ActorCritic, method: GAIL | AIRL, seed: int, width: int, padded: int) -> Params:
    """Parameters for observations of `width` features in vectors of `padded`, by numpy on the host as those of agents;
    the rows of features that are padding are zero, and stay so."""
    rng, encoded = np.random.default_rng([seed, 0x646973]), network.distribution.encoded
    actions = 0 if isinstance(method, AIRL) and method.state_only else encoded
    params = {"reward": _layers(rng, width, padded, actions, method.hidden)}
    if isinstance(method, AIRL):
        params["potential"] = _layers(rng, width, padded, 0, method.hidden)
    return params


def new_discriminator(params: Params) -> Discriminator:
    """A discriminator that has learned nothing."""
    return Discriminator(params, optax.scale_by_adam().init(params))


def _layers(
    rng: np.random.Generator, width: int, padded: int, actions: int, hidden: tuple[int, ...]
) -> list[dict[str, np.ndarray]]:
    """An MLP to one number, which begins near 0 so that no side is believed at first."""
    sizes = [width + actions, *hidden, 1]
    gains = [*[2**0.5] * len(hidden), 0.01]
    kernels = [initial_kernel(rng, a, b, gain) for a, b, gain in zip(sizes, sizes[1:], gains, strict=False)]
    unused = np.zeros((padded - width, sizes[1]), np.float32)
    kernels[0] = np.concatenate([kernels[0][:width], unused, kernels[0][width:]])
    return [{"kernel": kernel, "bias": np.zeros(kernel.shape[1], np.float32)} for kernel in kernels]


# ---- what it says


def logits(method: GAIL | AIRL, params: Params, x: Transitions, hyper: PPO) -> jax.Array:
    """log D - log(1 - D) of transitions, (...): for AIRL f - log pi(a|s) (Fu et al. 2018, eq. 4).

    The potential of the end of an episode is 0. With `hyper.absorbing`, where what the last step pays is paid for ever,
    the last state follows itself: what potentials pay in all is then that of the first state, whenever an episode ends.
    """
    both = jnp.concatenate([x.obs, x.action], -1)
    if isinstance(method, GAIL):
        return _mlp(params["reward"], both)
    gain, potential = _mlp(params["reward"], x.obs if method.state_only else both), _mlp(params["potential"], x.obs)
    after = jnp.where(x.done, potential if hyper.absorbing else 0.0, _mlp(params["potential"], x.next_obs))
    return gain + hyper.discount * after - potential - x.logp


def rewards(method: GAIL | AIRL, logit: jax.Array) -> jax.Array:
    """What an agent is paid for transitions with these logits."""
    form = method.reward if isinstance(method, GAIL) else "difference"
    return {"difference": logit, "positive": jax.nn.softplus(logit), "negative": -jax.nn.softplus(-logit)}[form]


def _mlp(layers: Sequence[dict[str, Any]], x: jax.Array) -> jax.Array:
    for layer in layers[:-1]:
        x = jnp.tanh(x @ layer["kernel"] + layer["bias"])
    return (x @ layers[-1]["kernel"] + layers[-1]["bias"])[..., 0]


# ---- learning


def judge(
    discriminator: Discriminator,
    variables: Variables,
    trajectory: Trajectory,
    experts: Experts,
    key: jax.Array,
    hyper: PPO,
    network: ActorCritic,
    method: GAIL | AIRL,
) -> tuple[Discriminator, jax.Array]:
    """Teach the discriminator, then ask it.

    Args:
        variables: of the agent that acted.
        trajectory: (T, E, ...), of which `reward` is not read.
        experts: of which the set of the agent's row is learned from.

    Returns:
        The discriminator after `method.updates` steps, and the rewards (T, E) that it then gives to the trajectory.
    """
    with jax.default_matmul_precision(PRECISIONS[network.precision]):
        seen = partial(_as_seen, network, _moments(trajectory, variables, network))
        own = _of_agent(trajectory, seen, network)
        rows = jax.tree.map(lambda x: x.reshape((-1, *x.shape[2:])), own)

        def step(state: Discriminator, k: jax.Array) -> tuple[Discriminator, None]:
            one, other, mix = jax.random.split(k, 3)
            mine = jax.random.randint(one, (method.batch,), 0, rows.logp.shape[0])
            agent = jax.tree.map(lambda x: x[mine], rows)
            expert = _of_expert(experts.drawn(other, method.batch), variables, seen, network, method)
            return _improved(state, method, agent, expert, mix, hyper), None

        discriminator, _ = jax.lax.scan(step, discriminator, jax.random.split(key, method.updates))
        return discriminator, rewards(method, logits(method, discriminator.params, own, hyper))


def _improved(
    state: Discriminator, method: GAIL | AIRL, agent: Transitions, expert: Transitions, key: jax.Array,
    hyper: PPO,
) -> Discriminator:  # fmt: skip
    """A step of Adam on the cross entropy, with the penalty of the gradient."""
    share = jax.random.uniform(key, agent.logp.shape)

    def between(a: jax.Array, b: jax.Array) -> jax.Array:
        weight = share.reshape(share.shape + (1,) * (a.ndim - 1))
        return weight * a + (1.0 - weight) * b

    def loss(params: Params) -> jax.Array:
        right = jax.nn.softplus(-logits(method, params, expert, hyper)).mean()
        wrong = jax.nn.softplus(logits(method, params, agent, hyper)).mean()
        if not method.gradient_penalty:
            return right + wrong
        inputs = [between(a, b) for a, b in zip(_inputs(agent), _inputs(expert), strict=True)]

        def total(inputs: list[jax.Array]) -> jax.Array:
            x = Transitions(*inputs, logp=agent.logp, done=agent.done)
            return logits(method, params, x, hyper).sum()

        slopes = jax.grad(total)(inputs)
        norm = jnp.sqrt(sum(jnp.square(slope).sum(-1) for slope in slopes) + 1e-12)
        return right + wrong + method.gradient_penalty * jnp.square(norm - 1.0).mean()

    grads = jax.grad(loss)(state.params)
    updates, opt_state = optax.scale_by_adam().update(grads, state.opt_state)
    params = optax.apply_updates(state.params, jax.tree.map(lambda u: -method.learning_rate * u, updates))
    return Discriminator(params, opt_state)


def _inputs(x: Transitions) -> tuple[jax.Array, ...]:
    return x.obs, x.action, x.next_obs


def _of_agent(trajectory: Trajectory, seen: Seen, network: ActorCritic) -> Transitions:
    """(T, E, ...). The observation after the last step of an episode is of the next one, and `done` masks it."""
    obs, action = seen(trajectory.obs), network.distribution.encode(trajectory.action)
    return Transitions(obs[:-1], action, obs[1:], _bounded(trajectory.logp), trajectory.done)


def _of_expert(
    x: Transition, variables: Variables, seen: Seen, network: ActorCritic, method: GAIL | AIRL
) -> Transitions:
    choice, obs = network.distribution, seen(x.obs)
    if isinstance(method, GAIL):
        return Transitions(obs, choice.encode(x.sample), obs, jnp.zeros(x.done.shape), x.done)
    outputs, _, _ = apply(network, variables, x.obs)  # what the agent would have done there
    logp = _bounded(choice.log_prob(outputs, x.sample))
    return Transitions(obs, choice.encode(x.sample), seen(x.next_obs), logp, x.done)


_LOG_PROBABILITY = 20.0
"""Beyond this a density says nothing more: a narrow policy gives an expert's action any."""


def _bounded(logp: jax.Array) -> jax.Array:
    return jnp.clip(logp, -_LOG_PROBABILITY, _LOG_PROBABILITY)


def _moments(trajectory: Trajectory, variables: Variables, network: ActorCritic) -> Any:
    """Those of the agent with this trajectory, as it will learn with; None where it does not normalise."""
    return add_moments(variables["moments"]["running"], trajectory.obs[:-1]) if network.normalize else None


def _as_seen(network: ActorCritic, moments: Any, obs: jax.Array) -> jax.Array:
    """Observations as the agent's network reads them: normalised and clipped, where it does so."""
    if moments is not None:
        obs = normalized(moments, obs)
    return jnp.clip(obs, -network.clip, network.clip) if network.clip < np.inf else obs
