"""The right to write at a place, which one process has at a time."""

from __future__ import annotations

import json
import os
import secrets
import socket
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from jaxreward.errors import FileProblem, UnusableFile
from jaxreward.storage.place import Place

WRITER = "writer.json"
BEAT_S = 20.0
"""A writer renews its object so often."""
_STALE_S, _POLL_S = 60.0, 2.0
"""One that has not for so long is gone; how often one who waits looks."""


class Writer:
    """The right to write at a place, held by an object there until `release`.

    A writer whose object does not change for a minute is gone: who waits so long takes its place.

    Raises:
        UnusableFile: another process writes there.
    """

    def __init__(self, place: Place, note: Callable[[str], None]) -> None:
        self._place, self._token, self._count = place, secrets.token_hex(8), 0
        told = False
        while not place.create(WRITER, self._content()):
            before = place.read(WRITER)
            if before is None:
                continue
            if not _dead(before) and not told:
                note(f"{place.address} is held by {_who(before)}: waiting {_STALE_S:g} s to see whether it is alive")
                told = True
            end = time.monotonic() + (0.0 if _dead(before) else _STALE_S)
            while time.monotonic() < end:
                time.sleep(_POLL_S)
                if (now := place.read(WRITER)) != before:
                    if now is None:
                        break
                    raise UnusableFile(
                        f"{place.address} is being written by {_who(now)}: wait until it ends, or choose another name",
                        place.address,
                        FileProblem.IN_USE,
                    )
            if place.read(WRITER) == before:
                place.delete(WRITER)

    def _content(self) -> bytes:
        about = {"host": socket.gethostname(), "pid": os.getpid(), "token": self._token, "count": self._count}
        return json.dumps(about).encode()

    def renew(self) -> bool:
        """Say that this process lives; False where another has taken its place."""
        if self._token not in (self._place.read(WRITER) or b"").decode(errors="replace"):
            return False
        self._count += 1
        self._place.write(WRITER, self._content())
        return True

    def release(self) -> None:
        if self._token in (self._place.read(WRITER) or b"").decode(errors="replace"):
            self._place.delete(WRITER)


def _about(content: bytes) -> dict[str, Any]:
    try:
        found = json.loads(content)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def _who(content: bytes) -> str:
    about = _about(content)
    return f"process {about.get('pid', '?')} on {about.get('host', 'another machine')}"


def _dead(content: bytes) -> bool:
    """Whether it is of a process of this machine that is no more."""
    about = _about(content)
    return about.get("host") == socket.gethostname() and not Path(f"/proc/{about.get('pid')}").exists()
