"""The devices of this process as an executor."""

from __future__ import annotations

import time
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import jax

from jaxreward.errors import UserError
from jaxreward.timing import CLOCK
from jaxreward.training.banks import BANKS
from jaxreward.training.chunk import Chunk
from jaxreward.training.compiled import COMMON, POPULATIONS
from jaxreward.training.executor import Done, Interrupted, Job, Supervisor
from jaxreward.training.plan import Device, memory_limit
from jaxreward.training.population import Population
from jaxreward.training.segment import advance


class LocalExecutor:
    """Every device has a thread that trains, and one that compiles what comes next meanwhile.

    Jobs of one place share a device. Use as a context: what has not begun when it ends is dropped.
    """

    def __init__(self, devices: Sequence[Device] | None = None, memory_gb: float | None = None) -> None:
        """Args:
            devices: all local ones, unless given.
            memory_gb: limit for what a job takes, in 10^9 bytes; by default most of what is free.

        Raises:
            UserError: an invalid limit, or a job of several processes.
        """
        if jax.process_count() > 1:
            raise UserError(
                f"this is one of {jax.process_count()} processes of a job on several hosts, and LocalExecutor trains "
                "on the devices of one process alone: give jr.train an executor that spans them, "
                "Execution(executor=...), or start each host by itself, without jax.distributed"
            )
        self.devices = tuple(devices or jax.local_devices())
        self.platform, self.slots = self.devices[0].platform, len(self.devices)
        self.limit = memory_limit(memory_gb, self.devices)
        POPULATIONS.at_least(4 * self.slots)
        COMMON.at_least(24 * self.slots)
        self._chunks = dict[tuple[int, int], tuple[Any, Chunk]]()  # by place and index
        self._trainers = [ThreadPoolExecutor(1) for _ in self.devices]
        self._compilers = [ThreadPoolExecutor(1) for _ in self.devices]

    def __enter__(self) -> LocalExecutor:
        return self

    def __exit__(self, *_: object) -> None:
        for threads in (*self._trainers, *self._compilers):
            threads.shutdown(cancel_futures=True)

    def prepare(self, jobs: Sequence[Job]) -> int:
        ready = [self._ready(job) for job in jobs]
        return max(future.result().peak_bytes() for future in ready)

    def submit(self, job: Job, supervisor: Supervisor) -> Future[Done]:
        ready = self._ready(job)
        return self._trainers[job.place % self.slots].submit(self._run, job, ready, supervisor)

    def _ready(self, job: Job) -> Future[Chunk]:
        """Its chunk, once that is compiled."""

        def compiled(chunk: Chunk) -> Chunk:
            chunk.compile()
            return chunk

        key, chunk = self._chunks.get((job.place, job.index), (None, None))
        if chunk is None or key != job.chunk:
            lanes, rows = job.evaluation.lanes, len(job.programs) * len(job.seeds) * job.ppo.envs
            bank = BANKS.of(job.programs, rows) if job.population == "bank" else None
            population = Population(job.programs, job.width, job.terms, bank)
            device = self.devices[job.place % self.slots]
            chunk = Chunk(
                job.task, population, job.ppo, job.seeds, device, job.collector, job.compilation, lanes, job.imitation
            )
            # a chunk holds its task, so that its id stays its own
            self._chunks[job.place, job.index] = (job.chunk, chunk)
        return self._compilers[job.place % self.slots].submit(compiled, chunk)

    def _run(self, job: Job, ready: Future[Chunk], supervisor: Supervisor) -> Done:
        if supervisor.should_stop():
            raise Interrupted(f"stopped after {job.first} of {job.schedule.updates} updates")
        supervisor.compiling(job)
        with CLOCK.part("wait"):
            chunk = ready.result()
        begin = time.perf_counter()
        with CLOCK.part("update"):
            state, history = advance(chunk, job, supervisor)
        compiling, chunk.compile_s = chunk.compile_s, 0.0
        return Done(state, history, compiling, time.perf_counter() - begin, chunk.peak_bytes())
