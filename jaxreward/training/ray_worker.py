"""What runs on the machines of a Ray cluster: workers that train, and the mailbox by which they reach the process whose
jobs they have."""

from __future__ import annotations

import asyncio
import dataclasses
import itertools
import pickle
import time
from collections.abc import Callable, Mapping
from importlib import metadata
from typing import Any

from jaxreward.training.compiled import Cache
from jaxreward.training.executor import Checkpointing, Done, Job, Supervisor

KEPT = 4096
"""Tasks, programs and the like that are kept on either side, the last used."""
_ASK_S = 0.2
"""Seconds between two questions of a worker whether it shall stop."""


@dataclasses.dataclass(frozen=True)
class Parcel:
    """A job as it is sent: values of its fields, and of the large ones that workers keep a name each.

    Attributes:
        kept: by the name of a field, what a worker may have already: a name and where it is.
        programs: the same of every program.
    """

    fields: Mapping[str, Any]
    kept: Mapping[str, tuple[str, Any]]
    programs: tuple[tuple[str, Any], ...]


@dataclasses.dataclass(frozen=True)
class Letter:
    """What a worker says of the job of this number; one with an `answer` number is waited for."""

    job: int
    what: str
    content: tuple[Any, ...]
    answer: int | None = None


class Mailbox:
    """Between workers and the process that sent them jobs, which no worker can call; an actor of its node."""

    def __init__(self) -> None:
        self._letters = asyncio.Queue[Letter]()
        self._waiting = dict[int, asyncio.Future[Any]]()
        self._numbers = itertools.count()
        self._stopped = set[int]()

    async def tell(self, job: int, what: str, *content: Any) -> None:
        await self._letters.put(Letter(job, what, content))

    async def ask(self, job: int, what: str, *content: Any) -> Any:
        """Put a letter and wait for its answer."""
        number = next(self._numbers)
        self._waiting[number] = asyncio.get_running_loop().create_future()
        await self._letters.put(Letter(job, what, content, number))
        try:
            return await self._waiting[number]
        finally:
            del self._waiting[number]

    async def collect(self, seconds: float) -> list[Letter]:
        """The letters so far, or the first that comes within `seconds`."""
        try:
            found = [await asyncio.wait_for(self._letters.get(), seconds)]
        except TimeoutError:
            return []
        while not self._letters.empty():
            found.append(self._letters.get_nowait())
        return found

    async def answer(self, number: int, value: Any) -> None:
        if number in self._waiting:
            self._waiting[number].set_result(value)

    async def stop(self, jobs: set[int]) -> None:
        self._stopped |= jobs

    async def stopped(self, job: int) -> bool:
        return job in self._stopped


class Worker:
    """Trains on one device; keeps tasks, programs and what it compiled. An actor."""

    def __init__(self, mailbox: Any, memory_gb: float | None) -> None:
        import jax

        from jaxreward.training.local import LocalExecutor

        self._mailbox = mailbox
        self._local = LocalExecutor(jax.local_devices()[:1], memory_gb)
        self._kept = Cache(KEPT)

    def about(self) -> dict[str, Any]:
        """The platform and the memory limit of its device, and versions."""
        return {"platform": self._local.platform, "limit": self._local.limit, "versions": versions()}

    def prepare(self, parcel: Parcel) -> int:
        """Compile for a job; the bytes that it takes."""
        return self._local.prepare([self._job(parcel)])

    def run(self, number: int, parcel: Parcel, every_s: float | None) -> tuple[Done | None, bytes]:
        """The result of a job, its arrays on the host, or an error, pickled: Ray would give it another type."""
        import jax

        try:
            done = self._local.submit(self._job(parcel), self._supervisor(number, every_s)).result()
            return dataclasses.replace(done, state=jax.device_get(done.state)), b""
        except BaseException as error:
            return None, _pickled(error)

    def _job(self, parcel: Parcel) -> Job:
        kept = {name: self._of(*one) for name, one in parcel.kept.items()}
        programs = tuple(self._of(*one) for one in parcel.programs)
        return Job(**parcel.fields, **kept, programs=programs)

    def _of(self, name: str, reference: Any) -> Any:
        """What was sent by a name, fetched once: what is compiled for a task is good while that very task lives."""
        import ray

        return self._kept.get(name, lambda: pickle.loads(ray.get(reference)))

    def _supervisor(self, number: int, every_s: float | None) -> Supervisor:
        tell = self._mailbox.tell.remote
        saving = Checkpointing(_Store(self._mailbox, number), every_s=every_s) if every_s is not None else None
        return Supervisor(
            compiling=lambda job: tell(number, "compiling"),
            reached=lambda job, at, history: tell(number, "reached", at, history),
            should_stop=_asking(lambda: self._mailbox.stopped.remote(number)),
            checkpointing=saving,
        )


class _Store:
    """The store of the process whose job this is, which alone reads and writes it."""

    def __init__(self, mailbox: Any, job: int) -> None:
        self._mailbox, self._job = mailbox, job

    def save(self, tag: str, tree: Any) -> None:
        import jax

        self._ask("save", tag, jax.device_get(tree))

    def restore(self, tag: str, like: Any) -> Any | None:
        import jax

        def shape(leaf: Any) -> Any:
            return jax.ShapeDtypeStruct(leaf.shape, leaf.dtype) if hasattr(leaf, "dtype") else leaf

        return self._ask("restore", tag, jax.tree.map(shape, like))

    def _ask(self, what: str, tag: str, tree: Any) -> Any:
        import ray

        # as bytes: the mailbox, through which they go, need not know what they are
        value, error = ray.get(self._mailbox.ask.remote(self._job, what, tag, pickle.dumps(tree)))
        if error:
            raise pickle.loads(error)
        return pickle.loads(value)


def versions() -> dict[str, str]:
    """Of what the results of a job depend on, and must be one on all nodes."""
    return {name: metadata.version(name) for name in ("jaxreward", "jax")}


def _asking(question: Callable[[], Any]) -> Callable[[], bool]:
    """Whether a remote question was ever answered by yes. It is asked again and again, and no answer is waited for."""
    import ray

    stopped, open_, asked = False, None, 0.0

    def should_stop() -> bool:
        nonlocal stopped, open_, asked
        if open_ is None and not stopped and time.monotonic() - asked >= _ASK_S:
            open_, asked = question(), time.monotonic()
        if open_ is not None and ray.wait([open_], timeout=0)[0]:
            stopped, open_ = bool(ray.get(open_)), None
        return stopped

    return should_stop


def _pickled(error: BaseException) -> bytes:
    """An error as bytes; one that cannot be pickled as a RuntimeError with its words."""
    try:
        text = pickle.dumps(error)
        pickle.loads(text)
    except Exception:
        text = pickle.dumps(RuntimeError(f"{type(error).__name__}: {error}"))
    return text
