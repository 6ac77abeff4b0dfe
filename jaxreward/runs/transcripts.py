"""What was said to and by language models: one JSON line an exchange, on the disk before it is used.

The transcript is written ahead of the log: a run that is killed between a reply and the event that
books it finds the reply here when it is resumed.
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path

from jaxreward.errors import UserError, why_unreadable
from jaxreward.records import Exchange
from jaxreward.runs.disk import explain_full_disk, fsync_directory

TRANSCRIPT = "exchanges.jsonl"
TRANSCRIPT_VERSION = 1


class TranscriptLog:
    """The exchanges of a run, appended to `path`.

    A run holds one while it has the lock of its directory. The file is made by the first exchange.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._exchanges, self._size = _read(path)
        self._of: dict[str, list[Exchange]] = {}
        for exchange in self._exchanges:
            self._of.setdefault(exchange.request_id, []).append(exchange)

    def add(self, exchange: Exchange) -> None:
        """Append; returns once it is on the disk."""
        line = json.dumps({"v": TRANSCRIPT_VERSION, **exchange.model_dump()}, separators=(",", ":")).encode() + b"\n"
        with explain_full_disk(self.path), open(self.path, "ab") as file:
            if file.tell() != self._size:
                file.truncate(self._size)  # a torn last line of an earlier process, or of a full disk
            file.write(line)
            file.flush()
            os.fsync(file.fileno())
        if not self._size:
            fsync_directory(self.path.parent)
        self._size += len(line)
        self._exchanges.append(exchange)
        self._of.setdefault(exchange.request_id, []).append(exchange)

    def exchanges(self) -> Sequence[Exchange]:
        """All exchanges in the order in which they were added."""
        return tuple(self._exchanges)

    def of(self, request_id: str) -> Sequence[Exchange]:
        """Those for one request."""
        return tuple(self._of.get(request_id, ()))


def read_transcript(path: Path) -> list[Exchange]:
    """The exchanges in a file, also while another process writes it; [] where there is none.

    Raises:
        UserError: a line other than a torn last one cannot be read.
    """
    return _read(path)[0]


def _read(path: Path) -> tuple[list[Exchange], int]:
    if not path.exists():
        return [], 0
    found: list[Exchange] = []
    size = 0
    try:
        *lines, torn = path.read_bytes().split(b"\n")
    except OSError as error:
        raise UserError(f"the transcript {path} cannot be read ({why_unreadable(error)}): move it away") from error
    for number, line in enumerate(lines, start=1):
        try:
            fields = json.loads(line)
            if not isinstance(fields, dict) or fields.pop("v", None) != TRANSCRIPT_VERSION:
                raise ValueError("it is no exchange of this version")
            found.append(Exchange.model_validate(fields))
        except ValueError as error:
            if number == len(lines) and not torn:
                break  # a last line whose end reached the disk before its middle
            reason = "it is not text" if isinstance(error, UnicodeDecodeError) else str(error).splitlines()[0]
            raise UserError(
                f"{path} line {number} is damaged ({reason}): restore the file from a copy, or cut it before that line"
            ) from error
        size += len(line) + 1
    return found, size
