"""The right to write at a place, which one process has at a time."""

from __future__ import annotations

import json
import os
import socket
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from jaxreward.errors import FileProblem, UnusableFile
from jaxreward.storage.place import Place

WRITERS = "writers/"
BEAT_S = 20.0
"""A writer renews its object so often."""
_STALE_S, _POLL_S = 60.0, 2.0
"""One that has not for so long is gone; how often one who waits looks."""


class Writer:
    """The right to write at a place, held by an object there until `release`.

    Writers are numbered. Each creates its object exclusively and is the only one that ever changes it; the highest
    number has the right. So taking over is one atomic step, and nobody can renew a right that was taken over. A
    writer whose object does not change for a minute is gone: who waits so long takes the next number.

    Raises:
        UnusableFile: another process writes there.
    """

    def __init__(self, place: Place, note: Callable[[str], None]) -> None:
        self._place, self._count, told = place, 0, False
        while True:
            before = max(_numbers(place), default=0)
            content = (before and place.read(_name(before))) or b"{}"
            if not _free(content) and not told:
                note(f"{place.address} is held by {_who(content)}: waiting {_STALE_S:g} s to see whether it is alive")
                told = True
            if _free(content) or self._gone(before, content):
                self._number = before + 1
                if place.create(_name(self._number), self._content()):
                    break
        for number in _numbers(place):
            if number < self._number:
                place.delete(_name(number))

    def _gone(self, number: int, content: bytes) -> bool:
        """Whether a writer shows no sign of life for a minute; False where another one has followed it meanwhile."""
        end = time.monotonic() + _STALE_S
        while time.monotonic() < end:
            time.sleep(_POLL_S)
            now = self._place.read(_name(number))
            if now is None or _free(now) or self._place.read(_name(number + 1)) is not None:
                return False
            if now != content:
                raise UnusableFile(
                    f"{self._place.address} is being written by {_who(now)}: wait until it ends, or choose another "
                    "name",
                    self._place.address,
                    FileProblem.IN_USE,
                )
        return True

    def _content(self, released: bool = False) -> bytes:
        about = {"host": socket.gethostname(), "pid": os.getpid(), "count": self._count, "released": released}
        return json.dumps(about).encode()

    def holds(self) -> bool:
        """Whether no other process has taken its place."""
        return self._place.read(_name(self._number + 1)) is None

    def renew(self) -> bool:
        """Say that this process lives; False where another has taken its place."""
        if not self.holds():
            return False
        self._count += 1
        self._place.write(_name(self._number), self._content())
        return True

    def release(self) -> None:
        self._place.write(_name(self._number), self._content(released=True))


def _name(number: int) -> str:
    return f"{WRITERS}{number:09d}.json"


def _numbers(place: Place) -> list[int]:
    names = (name.removeprefix(WRITERS).removesuffix(".json") for name in place.contents() if name.startswith(WRITERS))
    return [int(name) for name in names if name.isdigit()]


def _about(content: bytes) -> dict[str, Any]:
    try:
        found = json.loads(content)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def _who(content: bytes) -> str:
    about = _about(content)
    return f"process {about.get('pid', '?')} on {about.get('host', 'another machine')}"


def _free(content: bytes) -> bool:
    """Whether it is no one's: released, or of a process of this machine that is no more."""
    about = _about(content)
    ours = about.get("host") == socket.gethostname()
    return content == b"{}" or bool(about.get("released")) or (ours and not Path(f"/proc/{about.get('pid')}").exists())
