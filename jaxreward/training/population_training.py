"""A population that trains, through rungs, chunks and the slots of an executor."""

from __future__ import annotations

import sys
import threading
import time
import warnings
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from dataclasses import dataclass, field
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxreward.errors import JaxrewardWarning
from jaxreward.identity import Identity
from jaxreward.programs import Program
from jaxreward.records import SUCCESS, Measure
from jaxreward.tasks import Task, measure_of, metric_names, progress_names
from jaxreward.tasks.documentation import subtask_metrics
from jaxreward.timing import CLOCK
from jaxreward.training.chunk import TrainerState
from jaxreward.training.execution import Execution
from jaxreward.training.executor import Checkpointing, Done, Executor, Job, Supervisor, WorkerLost, WorkersLost
from jaxreward.training.history import History
from jaxreward.training.hyperparameters import CollectorName, CompileName, PopulationName
from jaxreward.training.imitation import ImitationRows
from jaxreward.training.networks import Variables
from jaxreward.training.plan import Evaluation, Schedule, chunks_of, first_chunk, most_structures, worth_compacting
from jaxreward.training.population import padded_sizes, size_in_bank
from jaxreward.training.result import TrainResult
from jaxreward.training.rungs import Standing, verdicts
from jaxreward.training.sac_hyperparameters import Learner
from jaxreward.training.stepwise import common_size

_LOSSES = 3
"""A job that is lost so many times ends the training."""


@dataclass(frozen=True)
class Progress:
    """The state of a training. `success` maps a candidate's position to its latest value, that of `measure`."""

    steps: int
    total: int
    phase: str
    chunk: int
    chunks: int
    success: dict[int, float] = field(default_factory=dict)
    measure: Measure = SUCCESS


@dataclass
class _Group:
    """Candidates of one chunk, in the order of its rows, with their state once it is known; `index` is its own as long
    as it is the same chunk."""

    index: int
    members: list[int]
    programs: tuple[Program, ...]
    state: TrainerState | None = None
    history: History | None = None


@dataclass
class PopulationTraining:
    """The training of candidates in chunks; its arguments are those of `train`, checked."""

    task: Task
    programs: tuple[Program, ...]
    ppo: Learner
    seeds: tuple[int, ...]
    schedule: Schedule
    evaluation: Evaluation
    execution: Execution
    executor: Executor
    checkpointing: Checkpointing | None
    progress: Callable[[Progress], None]
    should_stop: Callable[[], bool]
    imitation: ImitationRows | None
    start: Variables | None = None

    def __post_init__(self) -> None:
        self.slots = self.executor.slots if self.execution.slot is None else 1
        self.form: PopulationName = self.execution.form(self.executor.platform)
        self.width, self.terms = padded_sizes(self.programs, self.execution.room, bank=self.form == "bank")
        seeds, steps = len(self.seeds), self.schedule.updates * self.ppo.batch
        shared = len(self.programs) // len({program.structure for program in self.programs})
        self.collector: CollectorName
        self.compilation: CompileName
        self.collector, self.compilation = self.execution.resolve(
            self.task, self.ppo, seeds, steps, self.executor.platform, shared
        )
        self.measure = measure_of(self.task)
        self.compile_s = self.run_s = 0.0
        self.env_steps = self.eval_steps = self.peak = 0
        self._code = Identity.of_code(self.task).text if self.checkpointing is not None else ""
        self._reporting, self._failed = threading.Lock(), threading.Event()
        self._running_steps = Counter[int]()  # environment steps of the jobs that are running, by their index

    # ---- the whole

    def run(self) -> TrainResult:
        begin = time.perf_counter()
        C, S = len(self.programs), len(self.seeds)
        histories: list[History | None] = [None] * C
        agents: list[Any] = [None] * C
        stopped, reasons = np.zeros(C, int), [""] * C
        alive = list(range(C))
        groups = self._first_groups()
        for number, (first, last, rungs) in enumerate(self.schedule.segments()):
            self._segment(groups, number, first, last, set(alive))
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
            points = np.asarray([at for at in self.schedule.checkpoints if at <= last])
            left = (self.schedule.updates - last) * self.ppo.batch
            stages = [metric_names(self.task).index(name) for name in progress_names(self.task)]
            standing = Standing.of(self.measure, known, points * self.ppo.batch, left, stages)
            for i, reason in zip(alive, verdicts(rungs, standing), strict=True):
                reasons[i] = reason
                stopped[i] = last * self.ppo.batch if reason else 0
            alive = [i for i in alive if not reasons[i]]
            if not alive:
                break
            groups = [g for g in groups if set(g.members) & set(alive)]
            dropped = sum(len(g.members) for g in groups) - len(alive)
            structures, platform = {self.programs[i].structure for i in alive}, self.executor.platform
            if worth_compacting(dropped, len(structures), left * S, platform, self.collector == "stepwise"):
                groups = self._regroup(groups, alive)
        ends = tuple(
            history.cut(program.observation_size, len(program.terms))
            for program, history in zip(self.programs, histories, strict=True)
            if history is not None
        )
        return TrainResult(
            programs=self.programs,
            seeds=self.seeds,
            steps=np.asarray(self.schedule.checkpoints) * self.ppo.batch,
            success=np.stack([h.success[h.last, 0] for h in ends]).astype(float),
            diverged=np.stack([h.diverged[h.last, 0] > 0 for h in ends]),
            stopped=stopped,
            reasons=tuple(reasons),
            histories=ends,
            agents=tuple(agents),
            env_steps=self.env_steps if self.imitation is None or self.imitation.method.plays else 0,
            eval_steps=self.eval_steps,
            compile_s=self.compile_s,
            run_s=self.run_s,
            wall_s=time.perf_counter() - begin,
            chunks=tuple(len(g.members) for g in groups),
            peak_bytes=self.peak,
            extra_metrics=metric_names(self.task),
            progress=progress_names(self.task),
            subtask_metrics=subtask_metrics(self.task),
            measure=self.measure,
            collector=self.collector,
            compilation=self.compilation,
            population=self.form,
            task=self.task,
            ppo=self.ppo,
            imitation=self.imitation.method.name if self.imitation is not None else "",
        )

    # ---- groups

    def _group(self, index: int, members: Sequence[int]) -> _Group:
        # in one order for all populations of the same structures, which share what is compiled
        members = sorted(members, key=lambda i: self.programs[i].structure)
        programs = [self.programs[i] for i in members]
        if self.collector == "stepwise":
            programs += programs[-1:] * (common_size([p.structure for p in programs]) - len(programs))
        elif self.form == "bank":  # a generation of which one failed is of the size of the others
            size = min(size_in_bank(len(programs)), max(len(programs), self.execution.chunk or sys.maxsize))
            programs += programs[-1:] * (size - len(programs))
        return _Group(index, members, tuple(programs))

    def _groups(self, members: Sequence[int], largest: int) -> list[_Group]:
        structures = [self.programs[i].structure for i in members]
        most = None if self.form == "bank" else most_structures(self.executor.platform)
        parts = chunks_of(structures, largest, self.slots, most)
        return [self._group(index, [members[k] for k in part]) for index, part in enumerate(parts)]

    def _first_groups(self) -> list[_Group]:
        """Chunks that fit: sized by estimate, then by what the compiler says of the first; of a training that was saved
        those that it had, since another chunk rounds otherwise."""
        slots, limit = self.slots, self.executor.limit
        fits = first_chunk(self.width, len(self.seeds), self.ppo, limit)
        store = self.checkpointing and self.checkpointing.store
        name = self._name_of_size() if store else ""
        known = store.restore(name, {"largest": 0}) if store else None
        saved = int(known["largest"]) if known else 0
        largest = saved or min(fits, self.execution.chunk or fits)
        while True:
            groups = self._groups(range(len(self.programs)), largest)
            self._report("compile", 0, len(groups))
            begin, firsts = time.perf_counter(), [self._job(g, 0, 0, 0) for g in groups[:slots]]
            self.peak = self.executor.prepare(firsts)  # the first of each device
            CLOCK.add("wait", len(firsts) * (time.perf_counter() - begin))
            rows = max(len(group.members) for group in groups)
            if self.peak <= limit or rows == 1:
                if store and largest != saved:
                    store.save(name, {"largest": largest})
                return groups
            if saved and largest == saved:
                text = f"what was saved of this training needs {self.peak / 1e9:.1f} GB, more than {limit / 1e9:.1f}"
                text = f"{text}: it begins again, with fewer candidates at a time"
                warnings.warn(text, JaxrewardWarning, stacklevel=2)
            largest = min(rows - 1, max(1, int(limit / (self.peak / rows))))

    def _name_of_size(self) -> str:
        """The name under which the largest number of candidates of a chunk is saved."""
        whole = self._job(_Group(0, list(range(len(self.programs))), self.programs), 0, 0, 0).name
        return f"{whole.rpartition('-')[0]}-chunk{self.execution.chunk or ''}-{whole.rpartition('-')[2]}"

    def _regroup(self, groups: Sequence[_Group], alive: list[int]) -> list[_Group]:
        """The survivors in as few chunks of the size known to fit as possible, with their states."""
        rows = {m: (g, r) for g in groups for r, m in enumerate(g.members)}
        regrouped = []
        for group in self._groups(alive, max(len(g.members) for g in groups)):
            picked = [rows[m] for m in group.members]
            picked += picked[-1:] * (len(group.programs) - len(picked))
            first = jax.tree.leaves(picked[0][0].state)[0]
            home = next(iter(first.devices())) if isinstance(first, jax.Array) else None
            states = [jax.device_put(jax.tree.map(lambda x, r=r: x[r : r + 1], g.state), home) for g, r in picked]
            group.state = jax.tree.map(lambda *x: jnp.concatenate(x), *states)
            group.history = History.join([g.history.rows([r]) for g, r in picked])  # type: ignore[union-attr]
            regrouped.append(group)
        return regrouped

    # ---- one segment

    def _job(self, group: _Group, number: int, first: int, last: int) -> Job:
        tag = self.checkpointing.tag if self.checkpointing else "train"
        rows = [*group.members, *group.members[-1:] * (len(group.programs) - len(group.members))]
        imitation = self.imitation and self.imitation.take(rows)
        return Job(
            tag=f"{tag}-{number}", index=group.index, task=self.task, programs=group.programs,
            members=len(group.members), width=self.width, terms=self.terms, ppo=self.ppo, seeds=self.seeds,
            schedule=self.schedule, first=first, last=last, evaluation=self.evaluation, collector=self.collector,
            compilation=self.compilation, population=self.form, imitation=imitation, start=self.start,
            state=group.state, history=group.history, slot=self.execution.slot, code=self._code,
        )  # fmt: skip

    def _segment(self, groups: Sequence[_Group], number: int, first: int, last: int, alive: set[int]) -> None:
        """Train every group from update `first` to `last`. Steps count of those that are `alive`: who has stopped may
        train on beside them where that is cheaper than to compile anew."""
        jobs = [self._job(group, number, first, last) for group in groups]
        place = {group.index: k for k, group in enumerate(groups)}
        count = {group.index: len(alive & set(group.members)) for group in groups}

        def steps(job: Job, at: int) -> int:
            return count[job.index] * len(self.seeds) * self.ppo.batch * (at - job.first)

        def reached(job: Job, at: int, history: History) -> None:
            points = sum(point <= at for point in job.schedule.checkpoints)
            success = history.success[points - 1].mean(-1) if points else ()
            with self._reporting:
                self._running_steps[job.index] = steps(job, at)
            latest = zip(groups[place[job.index]].members, success, strict=False)
            self._report("train", place[job.index], len(jobs), {m: float(s) for m, s in latest})

        supervisor = Supervisor(
            compiling=lambda job: self._report("compile", place[job.index], len(jobs)),
            reached=reached,
            should_stop=lambda: self._failed.is_set() or self.should_stop(),
            checkpointing=self.checkpointing,
        )
        ends = [k for k, at in enumerate(self.schedule.checkpoints) if first < at <= last]
        for group, done in zip(groups, self._done(jobs, supervisor), strict=True):
            group.state, group.history = done.state, done.history
            rows = [row for row, member in enumerate(group.members) if member in alive]
            self.eval_steps += done.history.held_out_steps(ends, rows)
            self.compile_s, self.run_s = self.compile_s + done.compile_s, self.run_s + done.run_s
            self.peak = max(self.peak, done.peak_bytes)
        with self._reporting:
            self._running_steps.clear()
            self.env_steps += sum(steps(job, last) for job in jobs)

    def _done(self, jobs: Sequence[Job], supervisor: Supervisor) -> list[Done]:
        """The results of all jobs; one whose worker was lost is submitted again."""
        done, lost, running = dict[int, Done](), Counter[int](), dict[Future[Done], Job]()
        try:
            for job in jobs:
                running[self.executor.submit(job, supervisor)] = job
            while running:
                for future in wait(running, return_when=FIRST_COMPLETED).done:
                    job = running.pop(future)
                    try:
                        done[job.index] = future.result()
                    except WorkerLost as error:
                        lost[job.index] += 1
                        if lost[job.index] == _LOSSES:
                            raise WorkersLost(job.index, _LOSSES, error) from error
                        warnings.warn(
                            f"a worker is lost ({error}): its chunk goes on elsewhere", JaxrewardWarning, stacklevel=2
                        )
                        running[self.executor.submit(job, supervisor)] = job
        except BaseException:  # a failure of one job, or Ctrl-C here: the others stop at their next update
            self._failed.set()
            wait([future for future in running if not future.cancel()])
            raise
        return [done[job.index] for job in jobs]

    def _report(self, phase: str, chunk: int, chunks: int, success: dict[int, float] | None = None) -> None:
        total = self.schedule.updates * self.ppo.batch * len(self.seeds) * len(self.programs)
        with self._reporting:  # so that `progress` need not be thread-safe
            steps = self.env_steps + self._running_steps.total()
            self.progress(Progress(steps, total, phase, chunk, chunks, success or {}, self.measure))
