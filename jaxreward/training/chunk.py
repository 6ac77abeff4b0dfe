"""One chunk of a population on one device: compile, start, advance, evaluate.

Two compiled functions do the work. `collect` holds the environment and the programs and is compiled for each
population, in one piece or in several that other populations may use again; `learn` holds the learner, depends on
shapes alone, and is compiled once for many populations. The host alternates them, so a training can be watched,
stopped and saved between any two updates.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property, lru_cache, partial
from typing import Any, cast

import jax
import jax.numpy as jnp
import numpy as np
from flax import struct

from jaxreward.devices import FAST, exact, on_cpu
from jaxreward.tasks import Task, compiler_options, metric_names
from jaxreward.training.algorithms import algorithm_of
from jaxreward.training.collector import Collection, Collector
from jaxreward.training.compiled import LEARNERS, bytes_of, compile_for, signature, xla_options
from jaxreward.training.distributions import Distribution
from jaxreward.training.fused import Fused
from jaxreward.training.hyperparameters import CollectorName, CompileName
from jaxreward.training.imitation import Adversarial, Cloning, Experts, ImitationRows, Method
from jaxreward.training.imitation.cloning import clone
from jaxreward.training.imitation.discriminator import init_discriminator, new_discriminator
from jaxreward.training.imitation.learning import learn_adversarially
from jaxreward.training.learn_stats import LearnStats
from jaxreward.training.networks import PolicyNetwork, Variables, pad
from jaxreward.training.plan import Device
from jaxreward.training.population import Population
from jaxreward.training.rollout import RolloutState, Trajectory, action_noise, reset_pool, start_rollout
from jaxreward.training.rollout_statistics import Stats
from jaxreward.training.sac_hyperparameters import Learner
from jaxreward.training.stepwise import Stepwise, compile_structure

# What a seed's random numbers are for; each purpose is folded into the key before anything else is.
_ORDER, _POOL, _START, _NOISE, _LEVELS, _PLAY = range(6)


Agents = Any
"""Of an algorithm: `ppo.Agent` or `sac.SoftAgent`."""


class TrainerState(struct.PyTreeNode):
    """Everything that a chunk's training depends on from here: leaves (C, S, ...), on the device."""

    agents: Agents
    rollout: RolloutState


Shapes = tuple[Agents, RolloutState, Any, Stats]
"""Of agents, episodes, initial states and statistics."""


class Chunk:
    """Programs x seeds trained together on one device."""

    def __init__(
        self,
        task: Task,
        population: Population,
        ppo: Learner,
        seeds: Sequence[int],
        device: Device,
        collector: CollectorName = "fused",
        compilation: CompileName = "full",
        lanes: int | None = None,
        imitation: ImitationRows | None = None,
    ) -> None:
        """Args:
        lanes: environments of an evaluation; those of training, whose collector then serves both, unless given.
        imitation: what the agents of each program learn from in place of its rewards.
        """
        self.collector: CollectorName = collector
        self.compilation: CompileName = compilation
        self.task, self.population, self.ppo, self.device = task, population, ppo, device
        self.seeds = tuple(seeds)
        self.algorithm = algorithm_of(ppo)
        self.network: PolicyNetwork = self.algorithm.network(task, ppo)
        self.lanes, self.imitation = lanes or ppo.envs, imitation
        self.compile_s = 0.0
        self._hyper = jax.device_put(jax.tree.map(jnp.float32, ppo), device)
        self._keys = jax.device_put(jnp.stack([jax.random.key(s) for s in self.seeds]), device)
        self._collect: Collector | None = None
        self._play: Collector | None = None
        self._learn: Any = None
        self._method = imitation and imitation.method

    @property
    def _plays(self) -> bool:
        """Whether agents learn from episodes of their own."""
        return self._method is None or self._method.plays

    @property
    def shape(self) -> tuple[int, int]:
        return len(self.population), len(self.seeds)

    # ---- compile

    def compile(self) -> None:
        """Trace and compile; the wall time goes to `compile_s`. Does nothing the second time."""
        if self._collect is not None:
            return
        start = time.perf_counter()
        with jax.default_device(self.device):
            shapes = self._shapes(self.ppo.envs)
        with ThreadPoolExecutor(1) as other:  # the compiler lets other threads run
            learn = other.submit(self._compile_rest, shapes)
            with jax.default_device(self.device):
                own = self.lanes != self.ppo.envs
                play = self._collector(self._shapes(self.lanes), self.device) if own or not self._plays else None
                collect = self._collector(shapes, self.device) if self._plays else play
                self._play = play or collect
            self._learn = learn.result()
        self._collect = collect
        self.compile_s += time.perf_counter() - start

    def compiled_for(self, device: Device) -> tuple[Collector, Any]:
        """`collect` and `learn` for `device`: that of this chunk, or one that is only described and cannot run them."""
        with jax.default_device(self.device):
            shapes = self._shapes(self.ppo.envs)
            return self._collector(shapes, device), self._compile_learn(shapes, device)

    def _collector(self, shapes: Shapes, device: Device) -> Collector:
        what = self._collection(*shapes, device)
        return Stepwise(what) if self.collector == "stepwise" else Fused(what, fast=self.compilation == "fast")

    def _compile_learn(self, of: Shapes, device: Device) -> Any:
        agents, rollout, _, stats = of
        seen = (self._trajectory(rollout), stats.finite) if self._plays else (None, None)
        experts = self.imitation and self.imitation.shapes(self.population.width)
        shapes = (agents, *seen, self._keys, jnp.float32(0), jnp.int32(0), self._hyper, experts)
        key = (self.network, jax.tree.structure(self.ppo), type(self._method), self._method, signature(shapes), device)
        return LEARNERS.get(key, lambda: compile_for(self._learn_all, shapes, device, donate=(0,)))

    def _compile_rest(self, shapes: Shapes) -> Any:
        """The learner, which is returned; and the small functions, by calling them."""
        with jax.default_device(self.device):
            learn = self._compile_learn(shapes, self.device)
            for envs in {self.ppo.envs, self.lanes}:
                jax.block_until_ready((self._resets(self._keys, envs), self._noise(self._keys, envs)))
        return learn

    def compile_program(self) -> None:
        """Compile what a stepwise collector has for the only program of this chunk, and nothing else."""
        assert len(self.population) == 1
        with jax.default_device(self.device):
            for envs in {self.ppo.envs, self.lanes}:
                compile_structure(self._collection(*self._shapes(envs), self.device))

    def _shapes(self, envs: int) -> Shapes:
        """Of agents, episodes in `envs` environments, initial states and statistics."""
        one = self.algorithm.shapes(self.network, self.ppo, self.population.width)
        params = jax.tree.map(lambda x: jax.ShapeDtypeStruct((*self.shape, *x.shape), x.dtype), one)
        pool = _pool_shapes(self.task, len(self.seeds), envs)
        agents = jax.eval_shape(
            partial(_new_agents, self.ppo, self.population.width, self.network, self._method), params, self._judges()
        )
        rollout = jax.eval_shape(partial(_new_rollout, self.task, self.network, self.shape[0]), pool)
        return agents, rollout, pool, jax.eval_shape(self.fresh_stats)

    def _collection(self, agents: Agents, rollout: RolloutState, pool: Any, stats: Stats, device: Device) -> Collection:
        ppo, envs = self.ppo, rollout.elapsed.shape[-1]
        noise = jax.eval_shape(partial(action_noise, self.network.distribution, envs, ppo.length + 1), self._keys)
        shapes = (agents.variables, rollout, pool, noise, stats)
        return Collection(self.task, self.population, self.network, ppo.length, ppo.action_repeat, device, shapes)

    def _trajectory(self, start: RolloutState) -> Trajectory:
        """Shapes of a trajectory; tracing `collect` for them would trace every program."""
        envs = (*self.shape, self.ppo.envs)
        steps, more = (self.ppo.length, *envs), (self.ppo.length + 1, *envs)

        def shape(shape: tuple[int, ...], dtype: Any = jnp.float32) -> Any:
            return jax.ShapeDtypeStruct(shape, dtype)

        over = self.network.distribution
        outputs = jax.ShapeDtypeStruct((*steps, over.outputs), jnp.float32)
        action = jax.eval_shape(lambda k, o: over.sample(o, over.noise(k, steps)), self._keys[0], outputs)
        return Trajectory(
            obs=shape((*more, self.population.width)), action=action, logp=shape(steps), value=shape(more),
            reward=shape(steps), done=shape(steps, jnp.bool_), truncated=shape(steps, jnp.bool_), memory=start.memory,
        )  # fmt: skip

    def peak_bytes(self) -> int:
        """Device memory that the largest of the compiled functions needs, as the compiler reports it."""
        assert self._collect is not None and self._play is not None, "compile() comes first"
        return max(self._collect.peak_bytes(), self._play.peak_bytes(), bytes_of(self._learn))

    def _learn_all(
        self,
        agents: Agents,
        trajectory: Trajectory | None,
        finite: jax.Array | None,
        keys: jax.Array,
        progress: jax.Array,
        update: jax.Array,
        hyper: Any,
        experts: Experts | None,
    ) -> tuple[Agents, LearnStats]:
        """An update of every agent; of what an agent learns from, the trajectory or the experts may be None."""
        network, method = cast(Any, self.network), self._method

        def agent(a: Any, t: Any, f: Any, k: jax.Array, of: Any) -> tuple[Any, LearnStats]:
            if method is None or experts is None:
                return self.algorithm.learn(a, t, f, k, progress, update, network, hyper)
            e = experts.replace(of=of)
            if isinstance(method, Cloning):
                return clone(a, e, k, progress, network, hyper)
            return learn_adversarially(a, t, f, k, progress, network, hyper, e, method)

        axes: Any = Trajectory(1, 1, 1, 1, 1, 1, 1, memory=0) if trajectory is not None else None  # type: ignore[arg-type]
        by_seed = jax.vmap(agent, in_axes=(0, axes, 0, 0, None))
        of = None if experts is None else experts.of
        return jax.vmap(by_seed, in_axes=(0, axes, 0, None, 0))(agents, trajectory, finite, keys, of)

    # ---- run

    @cached_property
    def _experts(self) -> Experts | None:
        """On the device: only now, since chunks wait for their turn."""
        return self.imitation and jax.device_put(self.imitation.stacked(self.population.width), self.device)

    def _resets(self, keys: jax.Array, envs: int) -> Any:
        return _resets_of(self.task, envs, self.device.platform)(keys)

    def _noise(self, keys: jax.Array, envs: int) -> jax.Array:
        return _noise_of(self.network.distribution, envs, self.ppo.length + 1, self.device.platform)(keys)

    def start(self, policy: Variables | None = None) -> TrainerState:
        """The state before the first update; `policy` is that of one agent, which all agents begin with."""
        params = self._by_width(partial(self.algorithm.init, self.network, self.ppo))
        with jax.default_device(self.device):
            pool = self._resets(_fold(self._keys, _START), self.ppo.envs)
            agents = _new_agents(self.ppo, self.population.width, self.network, self._method, params, self._judges())
            if policy is not None:
                agents = _with_policy(self.ppo, agents, pad(policy, self.population.width))
            return TrainerState(agents, _new_rollout(self.task, self.network, self.shape[0], pool))

    def _judges(self) -> Any:
        """The first parameters of the discriminators, None where there are none."""
        network, method = cast(Any, self.network), self._method
        if not isinstance(method, Adversarial):
            return None
        return self._by_width(lambda *of: init_discriminator(network, method, *of))

    def _by_width(self, init: Callable[..., Any]) -> Any:
        """Leaves (C, S, ...) of what `init(seed, width, padded width)` makes, once for all programs of a width."""
        stack, padded = partial(jax.tree.map, lambda *x: np.stack(x)), self.population.width
        made = {
            width: stack(*[init(seed, width, padded) for seed in self.seeds]) for width in set(self.population.widths)
        }
        return stack(*[made[width] for width in self.population.widths])

    def fresh_stats(self, first_only: bool = False) -> Stats:
        with jax.default_device(self.device):
            extra = len(metric_names(self.task))
            return _zero_stats(*self.shape, self.population.width, self.population.terms, first_only, extra)

    def update(
        self, state: TrainerState, stats: Stats, index: int, progress: float
    ) -> tuple[TrainerState, Stats, LearnStats]:
        """One update of every agent, number `index`, with `progress` of the budget spent."""
        with jax.default_device(self.device):
            rollout, trajectory, finite = state.rollout, None, None
            if self._plays:
                rollout, trajectory, stats = self.collect(state, stats, index)
                finite = stats.finite
            when = jax.device_put((np.float32(progress), np.int32(index)), self.device)
            order = _fold(self._keys, _ORDER, index)
            agents, learned = self._learn(state.agents, trajectory, finite, order, *when, self._hyper, self._experts)
        return TrainerState(agents, rollout), stats, learned

    def collect(self, state: TrainerState, stats: Stats, index: int) -> tuple[RolloutState, Trajectory, Stats]:
        """The unroll of update `index`, which uses up the running episodes of `state`, and `stats`."""
        assert self._collect is not None, "compile() comes first"
        with jax.default_device(self.device):
            pool = self._resets(_fold(self._keys, _POOL, index), self.ppo.envs)
            noise = self._noise(_fold(self._keys, _NOISE, index), self.ppo.envs)
            return self._collect(state.agents.variables, state.rollout, pool, noise, stats)

    def evaluate(self, state: TrainerState, rounds: int) -> Stats:
        """Held-out episodes: `rounds` x `lanes` full episodes an agent. A round is over when all of them are, which
        may be long before the horizon.

        Their levels come from a stream of the seed's own that training does not use: the same for
        all candidates, so that comparisons are paired, and others for every seed, so that seeds are
        independent and a final training on fresh seeds is judged on fresh levels.
        """
        assert self._play is not None, "compile() comes first"
        stats = self.fresh_stats(first_only=True)
        with jax.default_device(self.device):
            for number in range(rounds):
                pool = self._resets(_fold(self._keys, _LEVELS, number), self.lanes)
                rollout = _new_rollout(self.task, self.network, self.shape[0], pool)
                for part in range(-(-self.task.horizon // (self.ppo.length * self.ppo.action_repeat))):
                    noise = self._noise(_fold(self._keys, _PLAY, number, part), self.lanes)
                    rollout, _, stats = self._play(state.agents.variables, rollout, pool, noise, stats)
                    if _over(stats, (number + 1) * self.lanes):
                        break
        return stats


def _over(stats: Stats, episodes: int) -> bool:
    """Whether every agent has played so many."""
    return bool((np.asarray(stats.episodes) >= episodes).all())


@lru_cache(maxsize=64)
def _resets_of(task: Task, envs: int, platform: str) -> Callable[[jax.Array], Any]:
    """Fresh initial states from keys (S,); the one place where `task.reset` is compiled."""
    options = {**on_cpu(FAST, platform), **compiler_options(task, platform)}
    return jax.jit(exact(partial(reset_pool, task, envs=envs)), compiler_options=xla_options(platform, options))


@lru_cache(maxsize=64)
def _pool_shapes(task: Task, seeds: int, envs: int) -> Any:
    """Of fresh initial states. Tracing `task.reset` takes a second for a robot, and every program asks."""
    keys = jax.eval_shape(lambda: jax.random.split(jax.random.key(0), seeds))
    return jax.eval_shape(partial(reset_pool, task, envs=envs), keys)


@lru_cache(maxsize=64)
def _noise_of(over: Distribution, envs: int, steps: int, platform: str) -> Callable[[jax.Array], jax.Array]:
    """The noise of an unroll's actions from keys (S,): a function apart, since it is the same for all programs."""
    options = xla_options(platform, on_cpu(FAST, platform))
    return jax.jit(partial(action_noise, over, envs, steps), compiler_options=options)


@jax.jit
def _fold(keys: jax.Array, *numbers: int) -> jax.Array:
    """Keys (S,) for a purpose."""

    def one(key: jax.Array) -> jax.Array:
        for number in numbers:
            key = jax.random.fold_in(key, number)
        return key

    return jax.vmap(one)(keys)


# jit, and not eager calls, also because donated arguments must not share a buffer of zeros
@partial(jax.jit, static_argnums=(0, 1, 2, 3))
def _new_agents(
    learner: Learner, width: int, network: PolicyNetwork, method: Method | None, params: Any, judges: Any
) -> Agents:
    begin = algorithm_of(learner).new_agent
    agents = jax.vmap(jax.vmap(lambda p: begin(p, learner, width, network)))(params)
    if not isinstance(method, Adversarial):
        return agents
    return agents.replace(discriminator=jax.vmap(jax.vmap(new_discriminator))(judges))


@partial(jax.jit, static_argnums=0)
def _with_policy(learner: Learner, agents: Agents, policy: Variables) -> Agents:
    one = partial(algorithm_of(learner).with_policy, variables=policy)
    return jax.vmap(jax.vmap(one))(agents)


@partial(jax.jit, static_argnums=(0, 1, 2))
def _new_rollout(task: Task, network: PolicyNetwork, candidates: int, pool: Any) -> RolloutState:
    return start_rollout(task, pool, candidates, network)


@partial(jax.jit, static_argnums=(0, 1, 2, 3, 4, 5))
def _zero_stats(candidates: int, seeds: int, width: int, terms: int, first_only: bool, extra: int) -> Stats:
    return Stats.zeros(candidates, seeds, width, terms, first_only, extra)
