"""Timings from a cold start: nothing compiled before may serve what is measured now."""

from __future__ import annotations

import gc
import statistics
import threading
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
from jax.experimental.compilation_cache import compilation_cache

from benchmarks.machine import peak_resident, start_peak
from jaxreward.programs import Program
from jaxreward.tasks import Discrete, Task, batched_step, compiler_options
from jaxreward.training import SAC, Learner, TrainResult, chunk, train
from jaxreward.training.compiled import POPULATIONS, forget_compiled
from jaxreward.training.population import Population, padded_sizes
from jaxreward.training.rollout import reset_pool

_MANY = 10**6


def forget() -> None:
    """Drop every compiled function and every trace, as if the process had just started."""
    jax.config.update("jax_enable_compilation_cache", False)
    compilation_cache.reset_cache()  # JAX decides once whether it asks the disk
    forget_compiled()
    jax.clear_caches()
    gc.collect()


@dataclass(frozen=True)
class Seconds:
    """Times of one or several trainings. `compile` and `wall` are of a cold one, `run` of a second one
    with everything compiled where there was one; so they need not add up."""

    compile: float = 0.0
    run: float = 0.0
    wall: float = 0.0

    @classmethod
    def of(cls, result: TrainResult) -> Seconds:
        return cls(result.compile_s, running(result), result.wall_s)

    def __add__(self, other: Seconds) -> Seconds:
        return Seconds(self.compile + other.compile, self.run + other.run, self.wall + other.wall)

    def __mul__(self, factor: float) -> Seconds:
        return Seconds(self.compile * factor, self.run * factor, self.wall * factor)


def used(result: TrainResult) -> int:
    """Devices that trained."""
    return min(len(jax.local_devices()), len(result.chunks))


def running(result: TrainResult) -> float:
    """Seconds of running as a person waits for them: those of all devices by how many there are."""
    return result.run_s / used(result)


def mean(times: Sequence[Seconds]) -> Seconds:
    return sum(times, Seconds()) * (1 / len(times))


def median(repeats: Sequence[Seconds]) -> Seconds:
    """The repeat with the (lower) median wall time, whole, so that its values belong together."""
    return sorted(repeats, key=lambda s: s.wall)[(len(repeats) - 1) // 2]


# ---- fused


@dataclass(frozen=True)
class Fused:
    """A cold training of all candidates side by side; `seconds.run` is of a second one, if there was one.

    `resident` is the largest memory of the process, in bytes, compiling included.
    """

    seconds: Seconds
    result: TrainResult
    resident: int


def fused(task: Task, programs: Sequence[Program], second_pass: bool, **options: Any) -> Fused:
    """Train `programs` together from a cold start.

    The cold training's `run_s` holds more than running: small functions are compiled at their first
    use, and with several chunks the next one compiles meanwhile and takes cores. The second pass has
    nothing to compile.
    """
    forget()
    with POPULATIONS.room_for(_MANY):  # the second pass must find every chunk
        start_peak()
        result = train(task, programs, **options)
        resident, run = peak_resident(), running(result)
        if second_pass:
            run = running(train(task, programs, **options))
    return Fused(Seconds(result.compile_s, run, result.wall_s), result, resident)


@dataclass(frozen=True)
class Training:
    """A chunk compiled from a cold start, and the median of its updates; held-out episodes, which every training has
    some of, are not in it. `peak_bytes` is what the compiler says that it needs."""

    compile_s: float
    steps_per_s: float
    peak_bytes: int


def training(task: Task, programs: Sequence[Program], ppo: Learner, seeds: int = 1, updates: int = 4) -> Training:
    """Compile all `programs` as one chunk and time `updates` of it, after one more that warms up."""
    forget()
    if isinstance(ppo, SAC):  # gradient steps from the first update on
        ppo = ppo.for_updates(updates + 1).replace(warmup=0)
    whole = chunk.Chunk(task, Population(programs), ppo, tuple(range(seeds)), jax.local_devices()[0])
    whole.compile()
    state, stats, took = whole.start(), whole.fresh_stats(), list[float]()
    for at in range(updates + 1):
        begin = time.perf_counter()
        state, stats, _ = jax.block_until_ready(whole.update(state, stats, at, 0.0))
        took.append(time.perf_counter() - begin)
    steps = len(programs) * seeds * ppo.batch
    return Training(whole.compile_s, steps / statistics.median(took[1:]), whole.peak_bytes())


# ---- one by one


@dataclass(frozen=True)
class Apart:
    """Trainings of single candidates, one after the other; `sizes` are what they are padded to."""

    times: tuple[Seconds, ...]
    sizes: tuple[Any, ...]
    shared: bool

    def total(self, candidates: int) -> Seconds:
        """Time of the first `candidates`, extrapolated where fewer were measured.

        Where what is common is compiled once, a candidate that had to compile it stands for no other: only those
        that found it compiled are carried forward. That errs in favour of one by one.
        """
        n = min(candidates, len(self.times))
        measured = self.times[:n]
        first = {self.sizes.index(size) for size in self.sizes[:n]} if self.shared else set()
        typical = [t for i, t in enumerate(measured) if i not in first] or list(measured)
        return sum(measured, Seconds()) + mean(typical) * (candidates - n)


def one_by_one(task: Task, programs: Sequence[Program], shared: bool, second_pass: bool, **options: Any) -> Apart:
    """Train each program alone.

    With `shared`, in one process by this library: what one program compiled and another can use (the learner, resets,
    and, with the stepwise collector, the environment) stays. Without, as if each had a process of its own, whose start
    is not counted.
    """
    times = []
    forget()
    for program in programs:
        if not shared:
            forget()
        cold = Seconds.of(train(task, [program], **options))
        again = running(train(task, [program], **options)) if second_pass else cold.run
        times.append(Seconds(cold.compile, again, cold.wall))
    return Apart(tuple(times), tuple(padded_sizes([p]) for p in programs), shared)


def combine(repeats: Sequence[Apart]) -> Apart:
    """Per program, the median repeat."""
    times = tuple(median([r.times[i] for r in repeats]) for i in range(len(repeats[0].times)))
    return Apart(times, repeats[0].sizes, repeats[0].shared)


# ---- the ceiling


def ceiling(
    task: Task, candidates: int, seeds: int, envs: int, unroll: int, devices: int = 1, seconds: float = 3.0
) -> dict[str, Any]:
    """Environment steps alone: random actions, resets from a pool as in training, for `candidates` on each of so many
    devices at once.

    Neither program nor network nor metric is computed. Returns lanes and steps a second of all devices, and the seconds
    of compiling; the steps are the median over calls within about `seconds`.
    """
    local = jax.local_devices()[:devices]
    ready = threading.Barrier(len(local))
    with ThreadPoolExecutor(len(local)) as threads:
        found = list(threads.map(lambda d: _alone(task, candidates, seeds, envs, unroll, d, ready, seconds), local))
    return {
        "lanes": sum(lanes for lanes, *_ in found), "devices": len(local),
        "steps_per_s": sum(rate for _, rate, _ in found), "compile_s": max(took for *_, took in found),
    }  # fmt: skip


def _alone(
    task: Task, candidates: int, seeds: int, envs: int, unroll: int, device: Any, ready: threading.Barrier,
    seconds: float,
) -> tuple[int, float, float]:  # fmt: skip
    """Lanes, steps a second and seconds of compiling on one device; all begin when all are compiled."""
    with jax.default_device(device):
        try:
            return _rolled(task, candidates, seeds, envs, unroll, ready, seconds)
        except BaseException:
            ready.abort()
            raise


def _rolled(
    task: Task, candidates: int, seeds: int, envs: int, unroll: int, ready: threading.Barrier, seconds: float
) -> tuple[int, float, float]:
    lanes, take_step = candidates * seeds * envs, batched_step(task, jax.default_backend())
    spread = partial(
        jax.tree.map, lambda x: jnp.tile(x.reshape((seeds * envs, *x.shape[2:])), (candidates,) + (1,) * (x.ndim - 2))
    )

    def roll(state: Any, elapsed: jax.Array, key: jax.Array) -> tuple[Any, jax.Array]:
        pool = reset_pool(task, jax.random.split(jax.random.fold_in(key, 0), seeds), envs)
        actions = _random_actions(task, jax.random.fold_in(key, 1), (unroll, lanes))

        def step(carry: tuple[Any, jax.Array], x: tuple[jax.Array, Any]) -> tuple[tuple[Any, jax.Array], None]:
            state, elapsed = carry
            t, action = x
            state, elapsed = take_step(state, action), elapsed + 1
            done = jax.vmap(task.terminated)(state) | (elapsed >= task.horizon)
            fresh = spread(jax.tree.map(lambda p: jnp.roll(p, -t, axis=1), pool))
            pick = lambda new, old: jnp.where(done.reshape((-1,) + (1,) * (old.ndim - 1)), new, old)  # noqa: E731
            return (jax.tree.map(pick, fresh, state), jnp.where(done, 0, elapsed)), None

        return jax.lax.scan(step, (state, elapsed), (jnp.arange(unroll), actions))[0]

    keys = jax.random.split(jax.random.key(1), seeds)
    options = compiler_options(task, jax.default_backend()) or None
    first = jax.jit(lambda k: spread(reset_pool(task, k, envs)), compiler_options=options)
    state, elapsed = first(keys), jnp.zeros(lanes, jnp.int32)
    begin = time.perf_counter()
    lowered = jax.jit(roll, donate_argnums=(0, 1)).lower(state, elapsed, jax.random.key(0))
    compiled = lowered.compile(options)
    compile_s = time.perf_counter() - begin
    ready.wait()
    took, begin = [], time.perf_counter()
    while len(took) < 4 or time.perf_counter() - begin < seconds:
        start = time.perf_counter()
        state, elapsed = jax.block_until_ready(compiled(state, elapsed, jax.random.key(len(took))))
        took.append(time.perf_counter() - start)
    return lanes, lanes * unroll / statistics.median(took[1:]), compile_s


def _random_actions(task: Task, key: jax.Array, shape: tuple[int, ...]) -> jax.Array:
    space = task.action_space
    if isinstance(space, Discrete):
        return jax.random.randint(key, shape, 0, space.n, jnp.int32)
    return jax.random.uniform(key, (*shape, *space.shape), jnp.float32, space.low, space.high)
