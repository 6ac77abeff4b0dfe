"""The event log: one JSON line an event, appended and synced, read back after any crash.

Only the last line can be torn, because every line is synced before the next is begun. A torn
last line is ignored by readers and cut off by the next append; anything else that cannot be read
is an error that names its line, for silently losing part of a search would be worse.
"""

from __future__ import annotations

import fcntl
import json
import os
import socket
import time
import warnings
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, TypeVar

from pydantic import ValidationError

from jaxreward import files
from jaxreward.config import Garbled, Malformed, parse_json
from jaxreward.errors import FileProblem, JaxrewardWarning, UnusableFile, why_unreadable
from jaxreward.formatting import printable, shortened
from jaxreward.runs.disk import explain_full_disk
from jaxreward.runs.events import EVENT_TYPES, Event, event_adapter, json_ready

LOG_VERSION = 1

T = TypeVar("T")


@dataclass(frozen=True)
class Entry:
    """An event with its position in the log (from 0) and when it was written (Unix seconds)."""

    seq: int
    at: float
    event: Event


def read_log(path: Path) -> list[Entry]:
    """The events of a log, also while another process writes it; [] where there is none."""
    return _read(path)[0]


class EventLog:
    """The one writer of a log. Holds a lock file in the same folder until `close`; use as a context manager.

    `entries` are the events so far, those that were there before included.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock = _take_lock(path.with_suffix(".lock"))
        try:
            self.entries, self._size = _read(path)
            with explain_full_disk(path):
                self._file = files.open_file(path, os.O_RDWR | os.O_CREAT)
                files.sync_folder(path.parent)
        except BaseException:
            os.close(self._lock)
            raise
        self._torn = True  # a crash may have left part of a line
        self._open = True

    def append(self, event: Event) -> Entry:
        """Write `event` and return once it is on the disk; on `UnusableFile` nothing was appended."""
        if not self._open:
            raise ValueError(f"{self.path} is closed")
        entry = Entry(len(self.entries), time.time(), event)
        line = _encode(entry)
        with explain_full_disk(self.path):
            try:
                self._make_ready()
                _write_all(self._file, line, self._size)
                os.fsync(self._file)
            except OSError:
                self._cut_back()
                raise
        self._size += len(line)
        self.entries.append(entry)
        return entry

    def clear(self) -> None:
        """Remove all events."""
        os.ftruncate(self._file, 0)
        os.fsync(self._file)
        self.entries, self._size, self._torn = [], 0, False

    def close(self) -> None:
        """Release the lock; closing twice is harmless."""
        if self._open:
            self._open = False
            os.close(self._file)
            os.close(self._lock)

    def __enter__(self) -> EventLog:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def _make_ready(self) -> None:
        """Cut off a torn last line; without one, check that no other process has written."""
        if self._torn:
            os.ftruncate(self._file, self._size)
            self._torn = False
        elif os.fstat(self._file).st_size != self._size:
            raise UnusableFile(
                f"Another process writes to {self.path}: stop one of the two, then resume the run.",
                self.path,
                FileProblem.IN_USE,
            )

    def _cut_back(self) -> None:
        self._torn = True
        with suppress(OSError):  # the next append tries again, and readers ignore a torn line
            self._make_ready()


def _write_all(file: int, data: bytes, offset: int) -> None:
    while data:
        written = os.pwrite(file, data, offset)
        data, offset = data[written:], offset + written


def _encode(entry: Entry) -> bytes:
    record = {"v": LOG_VERSION, "seq": entry.seq, "at": entry.at}
    record["event"] = json_ready(event_adapter.dump_python(entry.event, mode="json"))
    return json.dumps(record, ensure_ascii=True, allow_nan=False, separators=(",", ":")).encode() + b"\n"


def _read(path: Path) -> tuple[list[Entry], int]:
    """The entries of a log and the number of bytes that they fill."""
    try:
        with files.open_binary(path) as file:
            return decode_lines(file, path)
    except FileNotFoundError:
        return [], 0
    except OSError as error:
        raise unreadable(path, error) from error


def unreadable(path: Path, error: OSError) -> UnusableFile:
    """The error for a log that exists and cannot be read."""
    message = f"the log {path} cannot be read ({why_unreadable(error)}): put it back from a copy of the run"
    return UnusableFile(message, path, FileProblem.UNREADABLE)


LONGEST_LINE = 256 << 20
"""Bytes of a line: a generation of a thousand candidates with the longest sources and curves has far less."""

LATEST = 253_402_300_799.0
"""The last second that has a date."""


def read_lines(file: BinaryIO, path: Path, decode: Callable[[bytes, int], T], known: int = 0) -> tuple[list[T], int]:
    """The decoded lines of a file from its position on, and the number of bytes that they fill. A torn last line, of
    which a part did not reach the disk, is left out.

    Args:
        file: of which at most a line of `LONGEST_LINE` is in memory at a time.
        path: of it, for errors.
        decode: called with a line and its number in the file, from 1.
        known: the number of lines before the position.

    Raises:
        UnusableFile: another line is `Malformed`.
    """
    found: list[T] = []
    size = 0
    torn: Malformed | None = None
    while True:
        number = known + len(found) + 1
        try:
            line = file.readline(LONGEST_LINE + 1)
            if len(line) > LONGEST_LINE:
                raise Malformed(f"it is longer than {LONGEST_LINE >> 20} MiB")
            if torn is not None and line:
                raise torn  # it is not the last line
            if not line.endswith(b"\n"):
                return found, size
            found.append(decode(line[:-1], number))
        except Malformed as error:
            if torn is None and isinstance(error, Garbled):
                torn = error
                continue
            raise UnusableFile(
                f"{path} line {number} is damaged ({error}): restore the file from a copy, or cut it before that line "
                f"to keep the {number - 1} lines that precede it.",
                path,
                FileProblem.DAMAGED,
                number,
            ) from error
        size += len(line)


def decode_lines(file: BinaryIO, path: Path, known: int = 0) -> tuple[list[Entry], int]:
    """The entries in `file`, as `read_lines`; an `UnusableFile` for one that does not follow the one before it."""
    return read_lines(file, path, lambda line, number: _decode(parse_json(line), path, number), known)


def _decode(record: Any, path: Path, number: int) -> Entry:
    def unusable(problem: FileProblem, message: str) -> UnusableFile:
        return UnusableFile(f"{path} line {number} {message}", path, problem, number)

    if not isinstance(record, dict) or not {"v", "seq", "at", "event"} <= record.keys():
        raise unusable(FileProblem.WRONG_KIND, "is not an event: this file is no log of jaxreward, or was edited.")
    if record["v"] != LOG_VERSION:
        raise unusable(
            FileProblem.OTHER_VERSION,
            f"is of log version {_shown(record['v'])} and this jaxreward reads version {LOG_VERSION}: "
            "use the jaxreward that wrote this run.",
        )
    if record["seq"] != number - 1 or type(record["seq"]) is not int:
        raise unusable(
            FileProblem.DAMAGED,
            f"has number {_shown(record['seq'])} where {number - 1} was expected: lines were removed, "
            "repeated or reordered; restore the file from a copy.",
        )
    at = record["at"]
    if type(at) not in (int, float) or not 0 <= at <= LATEST:
        raise unusable(
            FileProblem.DAMAGED,
            f"says that it was written at {_shown(at)}, which is no time: it was edited; restore the file from a copy.",
        )
    event = record["event"]
    kind = event.get("type") if isinstance(event, dict) else None
    if not isinstance(kind, str) or kind not in EVENT_TYPES:
        raise unusable(
            FileProblem.OTHER_VERSION,
            f"has an event of unknown type {_shown(kind)}: use the jaxreward that wrote this run.",
        )
    try:
        return Entry(record["seq"], float(at), event_adapter.validate_python(event))
    except ValidationError as error:
        first = error.errors()[0]
        field = ".".join(str(part) for part in first["loc"])
        raise unusable(
            FileProblem.OTHER_VERSION,
            f"has a malformed event of type {kind} at {field} ({first['msg']}): use the jaxreward that wrote this run.",
        ) from error


def _shown(value: Any) -> str:
    return shortened(repr(value), 80)


def _take_lock(path: Path) -> int:
    """A descriptor that holds the lock `path` until it is closed or this process ends."""
    with explain_full_disk(path):
        lock = files.open_file(path, os.O_RDWR | os.O_CREAT)
    try:
        for wait_s in (0.05, 0.2, 0.75, None):
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:  # a reader that asks whether the run is being written holds it for a moment
                if wait_s is None:
                    raise
                time.sleep(wait_s)
    except BlockingIOError as error:
        owner = printable(os.read(lock, 200).decode(errors="replace").strip()) or "another process"
        os.close(lock)
        raise UnusableFile(
            f"The run {path.parent} is being written by {owner}: wait until it ends or stop it, or choose another "
            "name.",
            path.parent,
            FileProblem.IN_USE,
        ) from error
    except OSError as error:
        warnings.warn(
            f"{path.parent} has a file system without locks ({error}): start no second writer",
            JaxrewardWarning,
            stacklevel=3,
        )
    try:
        with explain_full_disk(path):
            os.ftruncate(lock, 0)
            os.pwrite(lock, f"process {os.getpid()} on {socket.gethostname()}\n".encode(), 0)
    except BaseException:
        os.close(lock)
        raise
    return lock
