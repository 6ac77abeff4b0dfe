"""The devices of a Ray cluster as an executor.

Every device has an actor (`ray_worker.Worker`) that keeps its task, its programs and what it compiled. States come to
the host before they are sent, progress and checkpoints to this process, which alone writes them: workers need no common
file system. Where an actor or its node is gone, its jobs are, and another takes its place as soon as the cluster has
room; nodes that join get workers too.
"""

from __future__ import annotations

import atexit
import dataclasses
import functools
import hashlib
import itertools
import os
import pickle
import threading
import time
import warnings
from collections.abc import Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any

import jax

from jaxreward.errors import JaxrewardWarning, MissingPackage, UserError
from jaxreward.training.compiled import Cache
from jaxreward.training.executor import Done, ExecutorLost, Job, Supervisor, WorkerLost
from jaxreward.training.ray_cluster import begin_ray, by_value, difference, first_line
from jaxreward.training.ray_worker import KEPT, Letter, Mailbox, Parcel, Worker, versions

AT_ONCE = 2
"""Jobs of a worker: one trains, and the next is compiled."""
_BEGIN_S = 300.0
"""Seconds in which the first worker must begin."""
_POLL_S, _GROW_S, _SLOWEST_GROW_S = 0.2, 5.0, 300.0
"""How often workers are listened to and devices without a worker looked for, the latter seldom where workers fail."""
_ALONE_S = 30.0
"""Seconds without a worker after which a user is told."""
_SENT_WITH = ("JAX_", "XLA_", "JAXREWARD_")
"""Beginnings of the names of environment variables that workers have too."""


@dataclass
class _Seat:
    """A worker that is there, and the numbers of the jobs that it has."""

    actor: Any
    about: dict[str, Any]
    jobs: set[int] = field(default_factory=set)


@dataclass(frozen=True)
class _Order:
    job: Job
    supervisor: Supervisor
    future: Future[Done]


class RayExecutor:
    """Trains on a Ray cluster; use as a context, or call `close`.

    Keep one for several trainings: its workers keep what they compiled.
    """

    def __init__(self, address: str | None = None, workers: int | None = None, memory_gb: float | None = None) -> None:
        """Args:
            address: of the cluster, as `ray.init` takes it: `auto`, or the host and port of its head; None for that of
                RAY_ADDRESS, or a cluster of this machine that ends with the executor.
            workers: at most; by default one for every GPU of the cluster, and one for every CPU where it has none.
            memory_gb: as for `LocalExecutor`, of every worker.

        Raises:
            MissingPackage: Ray is not installed.
            UserError: there is no cluster, no worker begins, or one has another version of JAX or of this package.
        """
        try:
            import ray
        except ImportError as error:
            message = 'an executor on Ray needs ray, which is not installed: pip install "jaxreward[ray]"'
            raise MissingPackage(message, "ray", "executor") from error
        from ray import cloudpickle
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

        self._cloudpickle = cloudpickle
        self._ray, self._memory_gb, self._most = ray, memory_gb, workers
        self._owns = not ray.is_initialized()
        if self._owns:
            begin_ray(address)
        self._lock, self._closed = threading.RLock(), threading.Event()
        self._numbers = itertools.count()
        self._orders, self._running = dict[int, _Order](), dict[int, _Seat]()
        self._seats, self._beginning, self._failure = list[_Seat](), 0, ""
        self._grow_s, self._told = _GROW_S, ""
        self._lost_cluster: ExecutorLost | None = None
        self._homes = dict[int, _Seat]()
        self._sent = Cache(KEPT)
        here = NodeAffinitySchedulingStrategy(ray.get_runtime_context().get_node_id(), soft=False)
        self._mailbox = ray.remote(Mailbox).options(num_cpus=0, scheduling_strategy=here).remote()
        self.slots = self._wanted()
        self._thread: threading.Thread | None = None
        if not self.slots:
            self.close()
            raise UserError("the Ray cluster has neither GPUs nor CPUs: start nodes that have some")
        self._grow()
        self.wait_for(1)
        self.platform: str = self._seats[0].about["platform"]
        self.limit: int = min(seat.about["limit"] for seat in self._seats)
        self._thread = threading.Thread(target=self._serve, name="ray-executor", daemon=True)
        self._thread.start()

    def __enter__(self) -> RayExecutor:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the workers, and the cluster if the executor began it."""
        if self._closed.is_set():
            return
        self._closed.set()
        if self._thread is not None:
            self._thread.join()
        with self._lock:
            for actor in (*(seat.actor for seat in self._seats), self._mailbox):
                self._ray.kill(actor)
            self._seats.clear()
        if self._owns:
            self._ray.shutdown()

    # ---- the protocol

    def prepare(self, jobs: Sequence[Job]) -> int:
        """As `Executor.prepare`: 0 where a worker was lost meanwhile."""
        with self._lock:
            seats = list(self._seats)
            if not seats:
                return 0
            for k, job in enumerate(jobs):
                self._homes[job.place] = seats[k % len(seats)] if job.slot is None else self._home(job.place, seats)
            asked = [self._homes[job.place].actor.prepare.remote(self._parcel(job)) for job in jobs]
        try:
            return max(self._ray.get(asked))
        except self._lost:
            return 0

    def submit(self, job: Job, supervisor: Supervisor) -> Future[Done]:
        future: Future[Done] = Future()
        with self._lock:
            if self._lost_cluster is not None:
                raise self._lost_cluster
            self._orders[next(self._numbers)] = _Order(job, supervisor, future)
            self._deal()
        return future

    # ---- jobs

    def _deal(self) -> None:
        """Send what waits to workers that have room, if possible to those that have it compiled."""
        for number, order in list(self._orders.items()):
            if number in self._running:
                continue
            free = [seat for seat in self._seats if len(seat.jobs) < AT_ONCE]
            if not free:
                if not self._seats and not self._beginning and self._failure:
                    del self._orders[number]
                    order.future.set_exception(UserError(self._failure))
                    continue
                return
            if not order.future.set_running_or_notify_cancel():
                del self._orders[number]
                continue
            home = self._homes.get(order.job.place)
            alone = order.job.slot is not None  # others train on other slots meanwhile: a worker that is idle
            seat = min(free, key=lambda seat: (alone and bool(seat.jobs), seat is not home, len(seat.jobs)))
            self._homes[order.job.place] = self._running[number] = seat
            seat.jobs.add(number)
            saving = order.supervisor.checkpointing
            ended = seat.actor.run.remote(number, self._parcel(order.job), saving and saving.every_s)
            ended.future().add_done_callback(lambda result, n=number, s=seat: self._ended(n, s, result))

    def _home(self, place: int, seats: Sequence[_Seat]) -> _Seat:
        """The worker of a slot: the one that it had, or that the fewest others have."""
        if (home := self._homes.get(place)) in seats:
            return home  # type: ignore[return-value]
        taken = [id(seat) for other, seat in self._homes.items() if other != place]
        return min(seats, key=lambda seat: taken.count(id(seat)))

    def _ended(self, number: int, seat: _Seat, result: Future[Any]) -> None:
        """Called by a thread of Ray's."""
        with self._lock:
            order = self._orders.pop(number, None)
            self._running.pop(number, None)
            seat.jobs.discard(number)
            lost = isinstance(error := result.exception(), self._lost)
            if lost and seat in self._seats:
                self._seats.remove(seat)
                if not self._closed.is_set():
                    self._grow()
            self._deal()
        if order is None:  # it has failed already
            return
        if error is not None:
            order.future.set_exception(WorkerLost(first_line(error)) if lost else error)
            return
        done, failure = result.result()
        if done is None:
            order.future.set_exception(pickle.loads(failure))
        else:
            order.future.set_result(done)

    def _parcel(self, job: Job) -> Parcel:
        values = {f.name: getattr(job, f.name) for f in dataclasses.fields(Job)}
        values["state"] = jax.device_get(values["state"])
        programs = tuple(self._where(program) for program in values.pop("programs"))
        kept = {name: self._where(values.pop(name)) for name in ("task", "imitation", "start")}
        return Parcel(values, kept, programs)

    def _where(self, value: Any) -> tuple[str, Any]:
        """The name of a value, made of its content, and where workers find it; put there once."""

        def put() -> tuple[str, Any]:
            by_value(type(value).__module__)
            text = self._cloudpickle.dumps(value)
            return hashlib.sha256(text).hexdigest(), self._ray.put(text)

        return self._sent.get(id(value), put, keep=value)

    # ---- workers

    @property
    def _lost(self) -> tuple[type[BaseException], ...]:
        """What Ray raises where a worker or its node is gone."""
        of = self._ray.exceptions
        return of.RayActorError, of.WorkerCrashedError, of.NodeDiedError, of.ObjectLostError, of.OutOfMemoryError

    def _wanted(self) -> int:
        """Workers for the devices that the cluster has now."""
        resources = self._ray.cluster_resources()
        found = int(resources.get("GPU", 0)) or int(resources.get("CPU", 0))
        return min(found, self._most) if self._most else found

    def _grow(self) -> None:
        """Begin workers on devices that have none; Ray holds those back that have no room yet."""
        with self._lock:
            new = self._wanted() - len(self._seats) - self._beginning
            for _ in range(new):
                self._begin()

    def _begin(self) -> None:
        passed = {name: value for name, value in os.environ.items() if name.startswith(_SENT_WITH)}
        gpu = bool(self._ray.cluster_resources().get("GPU"))
        device = {"num_gpus": 1, "num_cpus": 0} if gpu else {"num_cpus": 1}
        passed |= {} if gpu else {"JAX_NUM_CPU_DEVICES": "1", "JAX_PLATFORMS": "cpu"}
        actor = (
            self._ray.remote(Worker)
            .options(**device, max_concurrency=2 * AT_ONCE, runtime_env={"env_vars": passed})
            .remote(self._mailbox, self._memory_gb)
        )
        self._beginning += 1
        actor.about.remote().future().add_done_callback(lambda about: self._begun(actor, about))

    def _begun(self, actor: Any, about: Future[dict[str, Any]]) -> None:
        """Called by a thread of Ray's."""
        with self._lock:
            self._beginning -= 1
            if (error := about.exception()) is not None:
                self._failed(f"a worker of the Ray cluster did not begin: {first_line(error)}")
            elif wrong := difference(versions(), about.result()["versions"]):
                self._failed(f"a worker of the Ray cluster has {wrong}: install the same on all nodes")
                self._ray.kill(actor)
            elif self._closed.is_set():
                self._ray.kill(actor)
            else:
                self._grow_s = _GROW_S
                self._seats.append(_Seat(actor, about.result()))
            self._deal()

    def _failed(self, why: str) -> None:
        """A worker did not begin: that is said once, and tried again ever later."""
        if self._seats and why != self._told and not self._closed.is_set():
            warnings.warn(why, JaxrewardWarning, stacklevel=2)
            self._told = why
        self._failure, self._grow_s = why, min(2.0 * self._grow_s, _SLOWEST_GROW_S)

    def wait_for(self, workers: int) -> None:
        """Return once so many workers have begun; a training may begin with fewer.

        Raises:
            UserError: they do not within some minutes. The executor is closed then.
        """
        end = time.monotonic() + _BEGIN_S
        while time.monotonic() < end:
            with self._lock:
                if len(self._seats) >= workers:
                    return
                if len(self._seats) + self._beginning < workers:
                    break
            time.sleep(0.05)
        late = f"{len(self._seats)} of {workers} workers of the Ray cluster began in {_BEGIN_S:g} s: are devices taken?"
        failure = self._failure or late
        self.close()
        raise UserError(failure)

    # ---- what workers say

    def _serve(self) -> None:
        try:
            self._listen()
        except Exception as error:  # the mailbox, or the cluster, is gone
            if not self._closed.is_set():
                self._end_all(error)

    def _end_all(self, error: Exception) -> None:
        why = f"the Ray cluster is lost ({first_line(error)}): the same command with --resume goes on, on a new one"
        with self._lock:
            self._lost_cluster = ExecutorLost(why)
            orders, self._orders, self._running = list(self._orders.values()), {}, {}
        for order in orders:
            order.future.set_exception(self._lost_cluster)

    def _listen(self) -> None:
        told, grown, manned = set[int](), time.monotonic(), time.monotonic()
        while not self._closed.is_set():
            for letter in self._ray.get(self._mailbox.collect.remote(_POLL_S)):
                self._read(letter)
            with self._lock:
                running = {number: self._orders[number] for number in self._running}
            stop = {number for number, order in running.items() if number not in told and self._stops(number, order)}
            if stop:
                told |= stop
                self._ray.get(self._mailbox.stop.remote(stop))
            manned = time.monotonic() if self._seats or not self._orders else manned
            if time.monotonic() - manned > _ALONE_S:
                warnings.warn("the Ray cluster has no worker now: waiting for one", JaxrewardWarning, stacklevel=2)
                manned = float("inf")
            if time.monotonic() - grown > self._grow_s:
                self._grow()
                grown = time.monotonic()

    def _stops(self, number: int, order: _Order) -> bool:
        try:
            return order.supervisor.should_stop()
        except BaseException as error:
            self._fail(number, error)
            return True

    def _read(self, letter: Letter) -> None:
        with self._lock:
            order = self._orders.get(letter.job)
        answer: tuple[bytes, bytes] = pickle.dumps(None), b""
        try:
            if order is not None:
                answer = pickle.dumps(self._done_as_told(order, letter)), b""
        except BaseException as error:
            if letter.answer is None:
                self._fail(letter.job, error)
            answer = b"", self._cloudpickle.dumps(error)
        if letter.answer is not None:
            self._mailbox.answer.remote(letter.answer, answer)

    def _done_as_told(self, order: _Order, letter: Letter) -> Any:
        supervisor, job = order.supervisor, order.job
        if letter.what == "compiling":
            return supervisor.compiling(job)
        if letter.what == "reached":
            return supervisor.reached(job, *letter.content)
        assert supervisor.checkpointing is not None
        store, (tag, tree) = supervisor.checkpointing.store, letter.content
        if letter.what == "save":
            return store.save(tag, pickle.loads(tree))
        return jax.device_get(store.restore(tag, pickle.loads(tree)))

    def _fail(self, number: int, error: BaseException) -> None:
        """A job ends with an error of this process; its worker is told to stop."""
        with self._lock:
            order = self._orders.pop(number, None)
            self._running.pop(number, None)
        if order is not None:
            order.future.set_exception(error)
            self._mailbox.stop.remote({number})


@functools.cache
def shared_executor(address: str | None, workers: int | None, memory_gb: float | None) -> RayExecutor:
    """One for all trainings of this process, which ends with it."""
    executor = RayExecutor(address, workers, memory_gb)
    atexit.register(executor.close)
    return executor
