"""`train`: a population through rungs, chunks and devices.

A chunk is a group of candidates that one device trains at a time. Cutting a population into chunks
changes nothing but rounding, since nothing in a chunk depends on its neighbours. While one chunk
trains, the next is compiled in a thread.
"""

from __future__ import annotations

import dataclasses
import hashlib
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from dataclasses import dataclass, field
from typing import Any, Protocol

import jax
import jax.numpy as jnp
import numpy as np

from jaxreward.clock import CLOCK
from jaxreward.errors import UserError
from jaxreward.programs import Program
from jaxreward.records import SUCCESS, Measure
from jaxreward.tasks import Task, digest_of, measure_of, options_of, told_beside
from jaxreward.training.chunk import Chunk, TrainerState
from jaxreward.training.config import PPO, How
from jaxreward.training.fused import FUSED
from jaxreward.training.history import History
from jaxreward.training.learners import quick
from jaxreward.training.linked import COMMON, common_size
from jaxreward.training.plan import (
    EVAL_EPISODES,
    Device,
    Schedule,
    cut,
    even,
    first_chunk,
    is_linked,
    make_schedule,
    memory_limit,
    worth_compacting,
)
from jaxreward.training.population import Population, padded_sizes
from jaxreward.training.result import TrainResult
from jaxreward.training.rungs import Rung, Standing, verdicts


class Interrupted(Exception):
    """`should_stop` said so; what was trained so far is in the store, if one was given."""


class Store(Protocol):
    """Where a training is kept between updates (`jaxreward.runs.checkpoint.Checkpoints` is one)."""

    def save(self, tag: str, tree: Any) -> None: ...
    def restore(self, tag: str, like: Any) -> Any | None: ...


@dataclass(frozen=True)
class Progress:
    """Where a training stands. `success` maps a candidate's position to its latest value, that of `measure`."""

    steps: int
    total: int
    phase: str
    chunk: int
    chunks: int
    success: dict[int, float] = field(default_factory=dict)
    measure: Measure = SUCCESS


@dataclass
class _Group:
    """Candidates of one chunk, in the order of its rows, with their state once it is known. What rows there are beyond
    them are of no interest."""

    members: list[int]
    chunk: Chunk
    state: TrainerState | None = None
    history: History | None = None


def train(
    task: Task,
    programs: Sequence[Program],
    ppo: PPO | None = None,
    *,
    seeds: int | Sequence[int] = 3,
    steps: int = 1_000_000,
    rungs: Sequence[Rung] = (),
    checkpoints: int = 20,
    eval_episodes: int = EVAL_EPISODES,
    memory_gb: float | None = None,
    chunk: int | None = None,
    devices: Sequence[Device] | None = None,
    collector: How = "auto",
    room: tuple[int, int] = (0, 0),
    store: Store | None = None,
    tag: str = "train",
    save_every_s: float = 120.0,
    progress: Callable[[Progress], None] | None = None,
    should_stop: Callable[[], bool] | None = None,
) -> TrainResult:
    """Train an agent for every program and seed, side by side.

    A candidate's result depends on its program and the seed alone, up to rounding: not on its
    position, its neighbours, the chunk or the device.

    Args:
        task: what to solve.
        programs: the candidates, C of them.
        ppo: hyperparameters; those of `quick(task)` if omitted.
        seeds: a number S, for seeds 0 .. S-1, or the seeds themselves.
        steps: environment steps of each agent, rounded up to whole updates.
        rungs: cuts on the way; the learning rate always follows the whole budget.
        checkpoints: number of points of the curves, evenly spaced; each costs `ppo.envs` held-out
            episodes an agent.
        eval_episodes: held-out episodes an agent at a rung and at the end.
        memory_gb: limit for what a chunk takes on a device, in 10^9 bytes; by default most of what
            is free.
        chunk: candidates of a chunk at most; by default what fits.
        devices: which to use, by default all local ones, each with chunks of its own.
        collector: `fused`, one compiled function for the programs, the environment and the networks; `linked`,
            one for each structure of programs, which others can use again, called by the host at every step; `auto`
            chooses what should be done first. Their results are equal up to rounding.
        room: features and terms to have room for, where later programs may have more: what is compiled for these serves
            those.
        store: where to keep the training every `save_every_s` seconds, under names that start with
            `tag`; a training found there goes on from where it was.
        progress: called with where the training stands.
        should_stop: asked before every update.

    Returns:
        Scores, curves and diagnostics.

    Raises:
        UserError: impossible settings.
        Interrupted: `should_stop` returned True.
    """
    ppo = quick(task) if ppo is None else ppo
    ppo.check()
    if isinstance(seeds, str | float):
        raise UserError(f"seeds are a number of seeds or a sequence of integers, not {seeds!r}")
    seed_list = tuple(range(seeds)) if isinstance(seeds, int) else tuple(int(s) for s in seeds)
    if not seed_list or min(seed_list) < 0 or len(set(seed_list)) < len(seed_list):
        raise UserError(f"seeds must be distinct non-negative integers, at least one, not {seeds}")
    if eval_episodes < 1:
        raise UserError(f"there must be at least 1 held-out episode, not {eval_episodes}")
    if chunk is not None and chunk < 1:
        raise UserError(f"a chunk holds at least 1 candidate, not {chunk}")
    if not programs:
        raise UserError("there is no program to train; give at least one")
    rates = [r.threshold for r in rungs if r.threshold is not None] if measure_of(task).rate else []
    if rates and not 0.0 <= min(rates) <= max(rates) <= 1.0:
        raise UserError(f"the threshold of a rung is a success rate in [0, 1], not {min(rates)} to {max(rates)}")
    schedule = make_schedule(ppo, steps, checkpoints, rungs)
    run = _Run(
        task=task,
        programs=tuple(programs),
        ppo=ppo,
        seeds=seed_list,
        schedule=schedule,
        rounds=-(-eval_episodes // ppo.envs),
        devices=tuple(devices or jax.local_devices()),
        memory=memory_gb,
        largest=chunk,
        collector=collector,
        room=room,
        store=store,
        tag=tag,
        save_every_s=save_every_s,
        progress=progress or (lambda _: None),
        should_stop=should_stop or (lambda: False),
    )
    return run.train()


@dataclass
class _Run:
    task: Task
    programs: tuple[Program, ...]
    ppo: PPO
    seeds: tuple[int, ...]
    schedule: Schedule
    rounds: int
    devices: tuple[Device, ...]
    memory: float | None
    largest: int | None
    collector: How
    room: tuple[int, int]
    store: Store | None
    tag: str
    save_every_s: float
    progress: Callable[[Progress], None]
    should_stop: Callable[[], bool]

    def __post_init__(self) -> None:
        self.width, self.terms = padded_sizes(self.programs, self.room)
        steps = len(self.seeds) * self.schedule.updates * self.ppo.batch
        self.linked = is_linked(self.collector, self.task, self.ppo, steps, self.devices[0].platform)
        self.measure = measure_of(self.task)
        self.compile_s = self.run_s = 0.0
        self.env_steps = self.eval_steps = self.peak = 0
        self.sizes: tuple[int, ...] = ()
        self._lock, self._telling = threading.Lock(), threading.Lock()
        self._failed = threading.Event()
        self._done_steps = 0
        FUSED.at_least(4 * len(self.devices))
        COMMON.at_least(24 * len(self.devices))

    # ---- the whole

    def train(self) -> TrainResult:
        begin = time.perf_counter()
        C, S = len(self.programs), len(self.seeds)
        histories: list[History | None] = [None] * C
        agents: list[Any] = [None] * C
        stopped, reasons = np.zeros(C, int), [""] * C
        alive = list(range(C))
        groups = self._first_groups()
        self.sizes = tuple(len(g.members) for g in groups)
        for number, (first, last, rungs) in enumerate(self.schedule.segments()):
            self._run_segment(groups, number, first, last)
            for group in groups:
                assert group.state is not None and group.history is not None
                variables = jax.device_get(group.state.agents.variables)
                for row, member in enumerate(group.members):
                    if member in alive:
                        histories[member] = group.history.rows([row])
                        agents[member] = jax.tree.map(lambda x, r=row: x[r], variables)
            if not rungs:
                break
            known: list[History] = [histories[i] for i in alive]  # type: ignore[misc]
            points = np.asarray(self.schedule.checkpoints[: self._point(last) + 1])
            left = (self.schedule.updates - last) * self.ppo.batch
            standing = Standing.of(self.measure, known, points * self.ppo.batch, left)
            for i, reason in zip(alive, verdicts(rungs, standing), strict=True):
                reasons[i] = reason
                stopped[i] = last * self.ppo.batch if reason else 0
            passed = [i for i in alive if not reasons[i]]
            alive = passed
            if not alive:
                break
            groups = [g for g in groups if set(g.members) & set(alive)]
            self.sizes = tuple(len(g.members) for g in groups)
            if self._worth_compacting(alive, left * S):
                groups = self._regroup(groups, alive)
                self.sizes = tuple(len(g.members) for g in groups)
        ends = [self._end(h) for h in histories]  # type: ignore[arg-type]
        return TrainResult(
            programs=self.programs,
            seeds=self.seeds,
            steps=np.asarray(self.schedule.checkpoints) * self.ppo.batch,
            success=np.stack([h.success[e, 0] for h, e in zip(histories, ends, strict=True)]).astype(float),  # type: ignore[union-attr]
            diverged=np.stack([h.diverged[e, 0] > 0 for h, e in zip(histories, ends, strict=True)]),  # type: ignore[union-attr]
            stopped=stopped,
            reasons=tuple(reasons),
            histories=tuple(histories),  # type: ignore[arg-type]
            agents=tuple(agents),
            env_steps=self.env_steps,
            eval_steps=self.eval_steps,
            compile_s=self.compile_s,
            run_s=self.run_s,
            wall_s=time.perf_counter() - begin,
            chunks=self.sizes,
            peak_bytes=self.peak,
            told=told_beside(self.task),
            measure=self.measure,
        )

    @staticmethod
    def _end(history: History) -> int:
        return int(np.flatnonzero(np.isfinite(history.success[:, 0, 0]))[-1])

    def _point(self, update: int) -> int:
        return self.schedule.checkpoints.index(update)

    # ---- groups

    def _group(self, members: list[int], number: int) -> _Group:
        # in one order for all populations of the same structures, which share what is compiled
        members = sorted(members, key=lambda i: self.programs[i].structure)
        programs = [self.programs[i] for i in members]
        if self.linked:
            programs += programs[-1:] * (common_size([p.structure for p in programs]) - len(programs))
        population = Population(programs, self.width, self.terms)
        device = self.devices[number % len(self.devices)]
        return _Group(members, Chunk(self.task, population, self.ppo, self.seeds, device, self.linked))

    def _first_groups(self) -> list[_Group]:
        """Chunks that fit: sized by estimate, then by what the compiler says of the first."""
        device = self.devices[0]
        limit = memory_limit(self.memory, self.devices)
        fits = first_chunk(self.width, len(self.seeds), self.ppo, limit, device)
        largest = min(fits, self.largest or fits)
        while True:
            largest = even(len(self.programs), largest, len(self.devices))
            groups = [self._group(part, n) for n, part in enumerate(cut(range(len(self.programs)), largest))]
            first = groups[0]
            self._report("compile", 0, len(groups))
            begin, firsts = time.perf_counter(), groups[: len(self.devices)]
            with ThreadPoolExecutor(len(self.devices)) as pool:  # the first of each device
                list(pool.map(lambda group: group.chunk.compile(), firsts))
            CLOCK.add("wait", len(firsts) * (time.perf_counter() - begin))
            self.peak = first.chunk.peak_bytes()
            if self.peak <= limit or len(first.members) == 1:
                return groups
            largest = min(len(first.members) - 1, max(1, int(limit / (self.peak / len(first.members)))))

    def _worth_compacting(self, alive: Sequence[int], steps_left: int) -> bool:
        dropped, platform = sum(self.sizes) - len(alive), self.devices[0].platform
        return worth_compacting(dropped, len(alive), steps_left, platform, self.linked)

    def _regroup(self, groups: Sequence[_Group], alive: list[int]) -> list[_Group]:
        """The survivors in as few chunks of the size known to fit as possible, with their states."""
        home = self.devices[0]
        rows = {m: (g, r) for g in groups for r, m in enumerate(g.members)}
        regrouped = []
        for number, part in enumerate(cut(alive, even(len(alive), max(self.sizes), len(self.devices)))):
            group = self._group(part, number)
            picked = [rows[m] for m in group.members]
            picked += picked[-1:] * (len(group.chunk.population) - len(picked))
            states = [jax.device_put(jax.tree.map(lambda x, r=r: x[r : r + 1], g.state), home) for g, r in picked]
            group.state = jax.tree.map(lambda *x: jnp.concatenate(x), *states)
            group.history = History.join([g.history.rows([r]) for g, r in picked])  # type: ignore[union-attr]
            regrouped.append(group)
        return regrouped

    # ---- one segment

    def _run_segment(self, groups: Sequence[_Group], number: int, first: int, last: int) -> None:
        """Train every group from update `first` to `last`, one group a device at a time."""
        shares = [[(k, g) for k, g in enumerate(groups) if g.chunk.device == device] for device in self.devices]
        shares = [share for share in shares if share]
        if len(shares) == 1:
            return self._run_share(shares[0], len(groups), number, first, last)
        with ThreadPoolExecutor(len(shares)) as pool:
            jobs = [pool.submit(self._run_share, share, len(groups), number, first, last) for share in shares]
            try:
                for job in as_completed(jobs):
                    job.result()
            except BaseException:  # a failure on one device, or Ctrl-C here: the others stop at their next update
                self._failed.set()
                raise

    def _run_share(self, share: list[tuple[int, _Group]], total: int, number: int, first: int, last: int) -> None:
        with ThreadPoolExecutor(1) as compiler:
            ready: Future[None] = compiler.submit(share[0][1].chunk.compile)
            for position, (index, group) in enumerate(share):
                self._report("compile", index, total)
                with CLOCK.part("wait"):
                    ready.result()
                with self._lock:
                    self.peak = max(self.peak, group.chunk.peak_bytes())
                if position + 1 < len(share):
                    ready = compiler.submit(share[position + 1][1].chunk.compile)
                name = f"{self.tag}-{number}-{index}-{self._fingerprint(group)}"
                self._run_group(group, name, (index, total), first, last)
                with self._lock:
                    self.compile_s += group.chunk.compile_s
                    group.chunk.compile_s = 0.0

    def _run_group(self, group: _Group, name: str, where: tuple[int, int], first: int, last: int) -> None:
        """Updates `first` to `last` of one group. The end is saved as well: more may follow, here or for the caller."""
        begin = time.perf_counter()
        with CLOCK.part("update"):
            self._updates(group, name, where, first, last)
        with self._lock:
            self.run_s += time.perf_counter() - begin

    def _updates(self, group: _Group, name: str, where: tuple[int, int], first: int, last: int) -> None:
        chunk = group.chunk
        if group.state is None:
            group.state = chunk.start()
            points = len(self.schedule.checkpoints)
            sizes = (chunk.population.width, chunk.population.terms, len(told_beside(self.task)))
            group.history = History.empty(points, *chunk.shape, *sizes)
        state, stats, at = jax.device_put(group.state, chunk.device), chunk.fresh_stats(), first
        history = group.history
        assert history is not None
        if self.store is not None:
            like = {"state": state, "stats": stats, "history": history, "update": at}
            found = self.store.restore(name, like)
            if found is not None:
                history, at = found["history"], found["update"]
                state, stats = jax.device_put((found["state"], found["stats"]), chunk.device)
        steps = len(group.members) * len(self.seeds) * self.ppo.batch
        with self._lock:
            self._done_steps += steps * (at - first)
            self.env_steps += steps * (at - first)
        saved = time.perf_counter()
        while at < last:
            if self.should_stop() or self._failed.is_set():
                self._save(name, state, stats, history, at)
                raise Interrupted(f"stopped after {at} of {self.schedule.updates} updates")
            state, stats, learned = chunk.update(state, stats, at, at / self.schedule.updates)
            at += 1
            with self._lock:
                self._done_steps += steps
                self.env_steps += steps
            if at in self.schedule.checkpoints:
                rounds = self.rounds if at == last else 1
                jax.block_until_ready(state)  # so that the clock tells learning from what follows
                with CLOCK.part("evaluate"):
                    held_out, worst = chunk.evaluate(state, rounds), self.measure.worst
                    history.record(self._point(at), held_out, stats, learned, state.agents.diverged, worst)
                stats = chunk.fresh_stats()
                with self._lock:
                    self.eval_steps += steps // self.ppo.batch * rounds * self.ppo.envs * self.task.horizon
                success = history.success[self._point(at)].mean(-1)
                self._report("train", *where, {m: float(s) for m, s in zip(group.members, success, strict=False)})
                if time.perf_counter() - saved > self.save_every_s and at < last:
                    self._save(name, state, stats, history, at)
                    saved = time.perf_counter()
        self._save(name, state, stats, history, at)
        group.state, group.history = jax.block_until_ready(state), history

    def _fingerprint(self, group: _Group) -> str:
        """A name for everything that a saved training is only good for."""
        hyper = [(f.name, getattr(self.ppo, f.name)) for f in dataclasses.fields(self.ppo)]
        task = (self.task.name, self.task.horizon, sorted(options_of(self.task).items()), digest_of(self.task))
        what = (task, group.chunk.identity(), self.seeds, hyper, self.schedule, self.rounds, self.width)
        return hashlib.sha256(repr(what).encode()).hexdigest()[:12]

    def _save(self, name: str, state: TrainerState, stats: Any, history: History, at: int) -> None:
        if self.store is not None:
            jax.block_until_ready(state)
            with CLOCK.part("keep"):
                self.store.save(name, {"state": state, "stats": stats, "history": history, "update": at})

    def _report(self, phase: str, chunk: int, chunks: int, success: dict[int, float] | None = None) -> None:
        total = self.schedule.updates * self.ppo.batch * len(self.seeds) * len(self.programs)
        with self._telling:  # who listens need not know of threads
            self.progress(Progress(self._done_steps, total, phase, chunk, chunks, success or {}, self.measure))
