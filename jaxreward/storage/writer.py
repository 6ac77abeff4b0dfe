"""The right to write at a place, which one process has at a time."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from jaxreward.errors import FileProblem, UnusableFile
from jaxreward.storage.place import Place

WRITERS = "writers"
BEAT_S = 20.0
"""A writer renews its file so often."""
_STALE_S, _POLL_S = 60.0, 2.0
"""One that has not for so long is gone; how often one who waits looks."""


class WaitingStopped(Exception):
    """The process is to stop, and no longer waits for the right to write."""


class Writer:
    """The right to write at a place, held by a file there until `release`.

    Writers are numbered. Each creates its file exclusively and is the only one that ever changes it; the highest number
    has the right. So taking over is one atomic step, and nobody can renew a right that was taken over. A writer whose
    file does not change for a minute is gone: who waits so long takes the next number. A thread renews it.

    Args:
        stopped: whether not to wait any longer.
        on_lost: called once, by that thread, where another process has taken the place.

    Raises:
        UnusableFile: another process writes there.
        WaitingStopped: `stopped` said so.
        OSError: the place cannot be reached.
    """

    def __init__(
        self, place: Place, note: Callable[[str], None], stopped: Callable[[], bool], on_lost: Callable[[], None]
    ) -> None:
        self._place, self._count, self._stopped, self._on_lost = place, 0, stopped, on_lost
        self.lost, told = False, False
        while True:
            before = max(_numbers(place), default=0)
            content = place.read(_name(before)) if before else b"{}"
            if content is None:
                continue
            free = _is_free(content)
            if not free and not told:
                note(
                    f"{place.address} is held by {_process(content)}: waiting {_STALE_S:g} s to see whether it is alive"
                )
                told = True
            if free or self._is_gone(before, content):
                self.number = before + 1
                if place.create(_name(self.number), self._content()):
                    break
        if place.create(_name(self.number), self._content()):
            note(f"{place.address} does not create files exclusively: start no second process that writes there")
        for number in _numbers(place):
            if number < self.number:
                place.delete(_name(number))
        self._released = threading.Event()
        self._thread = threading.Thread(target=self._renew, name="store-writer", daemon=True)
        self._thread.start()

    def _is_gone(self, number: int, content: bytes) -> bool:
        """Whether a writer shows no sign of life for a minute; False where another one has followed it meanwhile."""
        end = time.monotonic() + _STALE_S
        while time.monotonic() < end:
            if self._stopped():
                raise WaitingStopped
            time.sleep(_POLL_S)
            now = self._place.read(_name(number))
            if now is None or _is_free(now) or max(_numbers(self._place), default=0) > number:
                return False
            if now != content:
                raise UnusableFile(
                    f"{self._place.address} is being written by {_process(now)}: wait until it ends, or choose another "
                    "name",
                    self._place.address,
                    FileProblem.IN_USE,
                )
        return True

    def _content(self, released: bool = False) -> bytes:
        about = {"host": socket.gethostname(), "machine": _machine(), "pid": os.getpid(), "count": self._count}
        return json.dumps({**about, "released": released}).encode()

    def holds(self) -> bool:
        """Whether no other process has taken its place."""
        if not self.lost and max(_numbers(self._place), default=0) != self.number:
            self.lost = True
        return not self.lost

    def renew(self) -> bool:
        """Say that this process lives; False where another has taken its place."""
        if not self.holds():
            return False
        self._count += 1
        self._place.write(_name(self.number), self._content())
        return True

    def _renew(self) -> None:
        while not self._released.wait(BEAT_S):
            with contextlib.suppress(OSError):  # it is tried again
                if not self.renew():
                    return self._on_lost()

    def release(self) -> None:
        self._released.set()
        if self.holds():
            self._place.write(_name(self.number), self._content(released=True))


def _name(number: int) -> str:
    return f"{WRITERS}/{number:09d}.json"


def _numbers(place: Place) -> list[int]:
    return [int(name.removesuffix(".json")) for name in place.names(WRITERS) if name.removesuffix(".json").isdigit()]


def _machine() -> str:
    """What tells the processes of this machine, and of this container, from those of others; empty where unknown."""
    try:
        return f"{Path('/proc/sys/kernel/random/boot_id').read_text().strip()} {os.readlink('/proc/self/ns/pid')}"
    except OSError:
        return ""


def _about(content: bytes) -> dict[str, Any]:
    try:
        found = json.loads(content)
    except ValueError:
        return {"pid": "?"}
    return found if isinstance(found, dict) else {}


def _process(content: bytes) -> str:
    about = _about(content)
    return f"process {about.get('pid', '?')} on {about.get('host', 'another machine')}"


def _is_free(content: bytes) -> bool:
    """Whether it is no one's: of none, released, or of a process of this machine that is no more."""
    about = _about(content)
    here = bool(_machine()) and about.get("machine") == _machine()
    return not about or bool(about.get("released")) or (here and not Path(f"/proc/{about.get('pid')}").exists())
