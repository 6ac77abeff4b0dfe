"""Sends the events of a run to trackers; a tracker that fails never stops the run."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Literal, Protocol, get_args

from jaxreward import extras, files
from jaxreward.errors import UserError
from jaxreward.runs import Entry
from jaxreward.sentences import mention
from jaxreward.tracking.items import Item, ItemBuilder

SinkName = Literal["tensorboard", "wandb"]
SINKS: tuple[SinkName, ...] = get_args(SinkName)


class Sink(Protocol):
    """A tool that shows runs.

    Attributes:
        name: of the tool.
        fed: the number of the last event that it has, -1 for none.
        where: how to look at it; empty before there is anything.
    """

    name: str
    fed: int

    @property
    def where(self) -> str: ...
    def remember(self, items: Iterable[Item]) -> None:
        """Items of events that it has already."""
        ...

    def write(self, seq: int, items: Sequence[Item]) -> None:
        """The items of event number `seq`."""
        ...

    def close(self, *, whole: bool = True) -> None:
        """The end of this process; not `whole` after an error."""
        ...


def require(names: Iterable[SinkName]) -> None:
    """Raise a UserError if a sink cannot work here: its package is missing, or nobody is logged in."""
    for name in names:
        extras.require(name, mention("track", [name]), "track")
        if name == "wandb":
            from jaxreward.tracking.weights_and_biases import require_key

            require_key()


def make_sink(name: SinkName, run: Path) -> Sink:
    """The sink of this name for the run in the folder `run`."""
    if name == "tensorboard":
        from jaxreward.tracking.tensorboard import TensorBoard

        return TensorBoard(run)
    from jaxreward.tracking.weights_and_biases import WeightsAndBiases

    return WeightsAndBiases(run)


class Tracker:
    """Feeds the sinks called `names` with the run in `path`; use as a context manager.

    Give `feed` every entry of the log, from the first on: a sink takes those that it does not have. The failure of one
    is noted once and it gets no more; no exception but a `UserError` before the first entry leaves this class.

    Args:
        names: of sinks.
        path: the run's folder.
        note: shows a message.
        redact: hides secrets in text.
        make: makes a sink.

    Raises:
        UserError: a sink that cannot work here, see `require`.
    """

    def __init__(
        self,
        names: Sequence[SinkName],
        path: Path,
        note: Callable[[str], None],
        redact: Callable[[str], str] = lambda text: text,
        make: Callable[[SinkName, Path], Sink] = make_sink,
    ) -> None:
        self.path, self.note, self._redact = path, note, redact
        self._builder = ItemBuilder(redact)
        self._sinks: list[Sink] = []
        self._shown: list[Sink] = []
        self._locks: list[int] = []
        self.failed: list[str] = []
        for name in dict.fromkeys(names):
            try:
                self._locks.append(_lock(path / f".{name}.lock"))
                sink = make(name, path)
            except UserError:
                self.close()
                raise
            except Exception as error:
                self._lost(name, error)
                continue
            self._sinks.append(sink)

    def feed(self, entry: Entry) -> None:
        """The next entry of the log."""
        if not self._sinks:
            return
        try:
            items = self._builder.add(entry)
        except Exception as error:  # no error here may stop the run
            for sink in self._sinks:
                self._drop(sink, error)
            return
        for sink in list(self._sinks):
            try:
                if entry.seq <= sink.fed:
                    sink.remember(items)
                    continue
                sink.write(entry.seq, items)
                if sink.where and sink not in self._shown:
                    self._shown.append(sink)
                    self.note(sink.where)
            except Exception as error:
                self._drop(sink, error)

    def close(self) -> None:
        """Let the sinks finish."""
        for sink in list(self._sinks):
            try:
                sink.close()
            except Exception as error:
                self._lost(sink.name, error)
        self._sinks = []
        for lock in self._locks:
            os.close(lock)
        self._locks = []

    def _drop(self, sink: Sink, error: Exception) -> None:
        self._sinks = [other for other in self._sinks if other is not sink]
        self._lost(sink.name, error)
        try:
            sink.close(whole=False)
        except Exception:  # noted already
            return

    def _lost(self, name: str, error: Exception) -> None:
        self.failed.append(name)
        first = next(iter(self._redact(str(error)).strip().splitlines()), "")
        why = ": ".join(filter(None, (type(error).__name__, first)))
        self.note(
            f"{name} is not fed any more ({why}); that is no harm to the run, and "
            f"`jaxreward runs track {self.path} --to {name}` feeds it later"
        )

    def __enter__(self) -> Tracker:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()


def _lock(path: Path) -> int:
    """A descriptor that holds the lock of a sink, so that no two processes feed it.

    Raises:
        BlockingIOError: another process holds it.
    """
    lock = files.open_file(path, os.O_RDWR | os.O_CREAT)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        if isinstance(error, BlockingIOError):  # any other: a file system without locks
            os.close(lock)
            raise BlockingIOError("another process feeds it") from None
    return lock
