"""A population's collector as compiled functions that the host strings together, a step at a time.

`act` holds the environment, the networks and the metric, and is compiled once for a task, a number of candidates and
what these have room for. Every structure of programs is a function apart, which serves any population that the
structure is part of, so that nothing is compiled where all are known. What all of them compute together is what
`rollout.collect` computes.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import groupby
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from flax import struct

from jaxreward.devices import FAST, SMALL, on_cpu
from jaxreward.tasks import compiler_options
from jaxreward.training.collector import Collection
from jaxreward.training.compiled import COMMON, STRUCTURES, bytes_of, compile_for, signature
from jaxreward.training.networks import Variables
from jaxreward.training.population import Population
from jaxreward.training.rollout import PopulationEnv, RolloutState, Trajectory, finite_or_zero
from jaxreward.training.rollout_statistics import Stats

Responses = tuple[tuple[jax.Array, jax.Array, jax.Array], ...]
"""What each function of programs made of a step: rewards (W, n), terms (W, n, K), and observations (W, n, d) of what
follows."""


class RolloutBuffer(struct.PyTreeNode):
    """What is written down of every step, (T + 1, C, S, E, ...), before anything is made of it."""

    obs: jax.Array
    finite: jax.Array
    sample: jax.Array
    logp: jax.Array
    value: jax.Array
    reward: jax.Array
    terms: jax.Array
    done: jax.Array
    truncated: jax.Array
    episode: jax.Array
    success: jax.Array
    elapsed: jax.Array
    extra: jax.Array


def structure_size(structures: Sequence[Any]) -> int:
    """How many neighbours are compiled as one: programs of one structure, if all stand in groups of one size."""
    sizes = {len(list(group)) for _, group in groupby(structures)}
    return sizes.pop() if len(sizes) == 1 else 1


_SIZES = (1, 2, 3, 4, 6, 8, 12, 16)


def common_size(structures: Sequence[Any]) -> int:
    """Candidates to make a chunk of these up to, so that most chunks find `act` compiled; groups of settings stay as
    they are."""
    n = len(structures)
    if structure_size(structures) > 1:
        return n
    return next((size for size in _SIZES if size >= n), -(-n // 8) * 8)


class Stepwise:
    """`rollout.collect` as several functions, without repeated actions and recurrent agents."""

    def __init__(self, what: Collection) -> None:
        populations = _units(what.population)
        size = len(populations[0])
        self._data = [jax.device_put(population.data, what.device) for population in populations]
        self._steps = [jax.device_put(np.int32(t), what.device) for t in range(what.length + 1)]
        functions = _Functions(what, size)
        self._no_action = jax.device_put(functions.no_action, what.device)
        shared = (what.key, len(populations))
        make = [
            partial(COMMON.get, (*shared, name), partial(functions.common, name), keep=what.task)
            for name in functions.names
        ]
        make += [partial(functions.unit, population) for population in populations]
        with ThreadPoolExecutor(os.cpu_count() or 1) as threads:  # the compiler lets other threads run
            compiled = list(threads.map(lambda one: one(), make))
        (self._act, self._close, self._open), self._units = (
            compiled[: len(functions.names)],
            compiled[len(functions.names) :],
        )

    def __call__(
        self, variables: Variables, rollout: RolloutState, pool: Any, noise: Any, stats: Stats
    ) -> tuple[RolloutState, Trajectory, Stats]:
        buffer, ret, views = self._open(rollout)
        before, moved = views, [(self._no_action, view, view) for view in views]  # for the observations alone
        for t in self._steps:
            responses = tuple(map(_call, self._units, self._data, before, moved))
            rollout, buffer, moved = self._act(variables, rollout, responses, buffer, pool, noise, t)
            before, views = views, [following for _, _, following in moved]
        return self._close(rollout, buffer, ret, stats)

    def peak_bytes(self) -> int:
        kept = self._act.memory_analysis()
        kept = kept.argument_size_in_bytes if kept is not None else 0  # lies there while programs run
        programs = max(bytes_of(unit) for unit in self._units)
        return max(bytes_of(self._act), bytes_of(self._close), kept + programs)


def _units(population: Population) -> list[Population]:
    """What is compiled apart: every structure, or a bank with all that select from it."""
    if population.bank is not None:
        return [population]
    programs, size = population.programs, structure_size(population.structure)
    groups = [programs[k : k + size] for k in range(0, len(programs), size)]
    return [Population(group, population.width, population.terms) for group in groups]


def _call(unit: Any, data: Any, view: Any, moved: tuple[Any, Any, Any]) -> Any:
    return unit(data, view, *moved)


def compile_structure(what: Collection) -> None:
    """Compile what depends on the only program of a population, for later collectors that it is part of."""
    _Functions(what, 1).unit(what.population)


class _Functions:
    """What is compiled, by the shapes of its arguments. `key` is all that units depend on but for their program."""

    names = ("act", "close", "open")

    def __init__(self, what: Collection, size: int) -> None:
        variables, rollout, pool, noise, stats = what.shapes
        C, S, E = rollout.elapsed.shape
        self.what, self.size = what, size
        self.env = PopulationEnv(what.task, what.network, what.device.platform, C, S, E)
        width, terms = what.population.width, what.population.terms
        buffer, ret, views = jax.eval_shape(self._opening, rollout)
        one = tuple(jax.ShapeDtypeStruct((size, S * E, *more), jnp.float32) for more in ((), (terms,), (width,)))
        self.arguments = {
            "act": (variables, rollout, (one,) * (C // size), buffer, pool, noise, jax.ShapeDtypeStruct((), jnp.int32)),
            "close": (rollout, buffer, ret, stats),
            "open": (rollout,),
        }
        # tracing `act` for these shapes would trace the environment, for every chunk and every program
        action = jax.eval_shape(what.network.distribution.action, buffer.sample)
        action = jax.ShapeDtypeStruct((size, S * E, *action.shape[4:]), action.dtype)
        self.step = (views[0], action, views[0], views[0])
        self.no_action = np.zeros(action.shape, action.dtype)
        self.key = (width, terms, what.device, signature(self.step))

    @property
    def _opening(self) -> Any:
        population = self.what.population
        return partial(_open, self.env, self.what.length, population.width, population.terms, self.size)

    @property
    def _acting(self) -> Any:
        return partial(_act, self.env, self.what.length, self.size)

    def common(self, name: str) -> Any:
        fn = {"act": self._acting, "close": partial(_close, self.what.length), "open": self._opening}[name]
        donated = {"act": (1, 3), "close": (0, 2, 3), "open": ()}[name]
        platform = self.what.device.platform
        # the others are called once an unroll, and as fast with fewer optimisations
        options = compiler_options(self.what.task, platform) if name == "act" else on_cpu(FAST, platform)
        return compile_for(fn, self.arguments[name], self.what.device, donate=donated, options=options)

    def unit(self, programs: Population) -> Any:
        """The function of programs of one structure, or of a bank."""
        key = (*self.key, programs.key, signature(programs.data))
        return STRUCTURES.get(key, partial(self._compiled, programs))

    def _compiled(self, programs: Population) -> Any:
        respond = partial(_respond, programs)
        options = on_cpu(SMALL, self.what.device.platform)
        return compile_for(respond, (programs.data, *self.step), self.what.device, options=options)


def _open(
    env: PopulationEnv, length: int, width: int, terms: int, size: int, rollout: RolloutState
) -> tuple[RolloutBuffer, jax.Array, list[Any]]:
    """An empty buffer, the returns so far, and what the programs of every unit see."""
    shape = (length + 1, *rollout.elapsed.shape)
    over = env.network.distribution
    outputs = jax.ShapeDtypeStruct((*shape, over.outputs), jnp.float32)
    sample = jax.eval_shape(lambda k, o: over.sample(o, over.noise(k, shape)), jax.random.key(0), outputs)
    extra = jax.eval_shape(lambda: env.values(rollout)[1])
    number, flag, count = jnp.zeros(shape), jnp.zeros(shape, bool), jnp.zeros(shape, jnp.int32)
    buffer = RolloutBuffer(
        obs=jnp.zeros((*shape, width)), finite=flag,
        sample=jnp.zeros(sample.shape, sample.dtype), logp=number, value=number, reward=number,
        terms=jnp.zeros((*shape, terms)), done=flag, truncated=flag, episode=count, success=number, elapsed=count,
        extra=jnp.zeros((length + 1, *extra.shape)),
    )  # fmt: skip
    return buffer, rollout.ret, _by_unit(size, env.view(rollout))


def _by_unit(size: int, tree: Any) -> list[Any]:
    """Arrays (C, ...) as one tree for each unit."""
    count = jax.tree.leaves(tree)[0].shape[0]
    return [jax.tree.map(lambda x, k=k: x[k : k + size], tree) for k in range(0, count, size)]


def _respond(
    programs: Population, data: Any, views: Any, actions: Any, next_views: Any, following: Any
) -> tuple[jax.Array, jax.Array, jax.Array]:
    """What the programs of a unit make of a step, arrays (W, n, ...), and see of what follows it."""
    return (*programs.reward(data, views, actions, next_views), programs.observe(data, following))


def _act(
    env: PopulationEnv, length: int, size: int, variables: Variables, rollout: RolloutState,
    responses: Responses, buffer: RolloutBuffer,
    pool: Any, noise: jax.Array, t: jax.Array,
) -> tuple[RolloutState, RolloutBuffer, list[tuple[Any, Any, Any]]]:  # fmt: skip
    """Step `t`: write down what programs made of the step before, and move on. For every unit: the actions, what its
    programs see then, and what they see where an episode that ended has begun again."""
    rewards, terms, obs = (env.split_programs(jnp.concatenate(x)) for x in zip(*responses, strict=True))
    before = jnp.maximum(t, 1) - 1  # before the first step nothing was made of anything; step 1 writes over it
    buffer = buffer.replace(reward=buffer.reward.at[before].set(rewards), terms=buffer.terms.at[before].set(terms))
    chosen = env.choose(variables, obs, None, noise[t])
    ended, next_view, terminated = env.move(rollout, chosen.action)
    truncated = (ended.elapsed >= env.task.horizon) & ~terminated
    done = terminated | truncated
    success, extra = env.values(ended)
    following = env.reset_done(ended, done, pool, t)
    following = jax.tree.map(lambda new, old: jnp.where(t < length, new, old), following, rollout)
    row = {
        "obs": chosen.obs, "finite": chosen.finite, "sample": chosen.sample, "logp": chosen.logp, "value": chosen.value,
        "done": done, "truncated": truncated, "episode": rollout.episode, "success": success, "elapsed": ended.elapsed,
        "extra": extra,
    }  # fmt: skip
    buffer = buffer.replace(**{name: getattr(buffer, name).at[t].set(x) for name, x in row.items()})
    moved = (env.by_program(chosen.action), next_view, env.view(following))
    return following, buffer, _by_unit(size, moved)


def _close(
    length: int, rollout: RolloutState, buffer: RolloutBuffer, ret: jax.Array, stats: Stats
) -> tuple[RolloutState, Trajectory, Stats]:
    """The trajectory and the statistics of what was written down; `ret` are the returns as the buffer was opened."""

    def step(carry: tuple[jax.Array, Stats], row: RolloutBuffer) -> tuple[tuple[jax.Array, Stats], jax.Array]:
        ret, stats = carry
        reward = finite_or_zero(row.reward)
        ret = ret + reward
        finite = row.finite & jnp.isfinite(row.reward)
        ends = (row.success, ret, row.elapsed, row.extra)
        stats = stats.add(row.obs, row.terms, finite, row.done, row.episode, *ends)
        return (jnp.where(row.done, 0.0, ret), stats), reward

    taken = jax.tree.map(lambda x: x[:length], buffer)
    (ret, stats), reward = jax.lax.scan(step, (ret, stats), taken)
    trajectory = Trajectory(buffer.obs, taken.sample, taken.logp, buffer.value, reward, taken.done, taken.truncated)
    return rollout.replace(ret=ret), trajectory, stats
