"""The calls of language models: one JSON line an exchange, on the disk before it is used.

The transcript is written ahead of the log: a run that is killed between a reply and its event finds
the reply here when it is resumed.
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path

from pydantic import ValidationError

from jaxreward import files
from jaxreward.config import Garbled, parse_json
from jaxreward.errors import FileProblem, UnusableFile, why_unreadable
from jaxreward.records import Exchange
from jaxreward.runs.disk import explain_full_disk
from jaxreward.runs.log import read_lines

TRANSCRIPT = "exchanges.jsonl"
TRANSCRIPT_VERSION = 1


class TranscriptLog:
    """The exchanges of a run, appended to `path`, which lies in a folder of the run's.

    A run holds one while it has the lock of its directory. The file is made by the first exchange.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._exchanges, self._size = _read(path)

    def add(self, exchange: Exchange) -> None:
        """Append; returns once it is on the disk."""
        line = json.dumps({"v": TRANSCRIPT_VERSION, **exchange.model_dump()}, separators=(",", ":")).encode() + b"\n"
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND
        with (
            explain_full_disk(self.path),
            os.fdopen(files.open_file(self.path, flags, below=self.path.parents[1]), "ab") as file,
        ):
            if file.tell() != self._size:
                file.truncate(self._size)  # a torn last line of an earlier process, or of a full disk
            file.write(line)
            file.flush()
            os.fsync(file.fileno())
        if not self._size:
            files.sync_folder(self.path.parent)
        self._size += len(line)
        self._exchanges.append(exchange)

    def exchanges(self) -> Sequence[Exchange]:
        """All exchanges in the order in which they were added."""
        return tuple(self._exchanges)

    def of(self, request_id: str) -> Sequence[Exchange]:
        """Those for one request."""
        return tuple(exchange for exchange in self._exchanges if exchange.request_id == request_id)


def read_transcript(path: Path) -> list[Exchange]:
    """The exchanges in a file of a folder of a run, also while another process writes it; [] where there is none.

    Raises:
        UnusableFile: a line other than a torn last one cannot be read, or it is no file.
    """
    return _read(path)[0]


def _read(path: Path) -> tuple[list[Exchange], int]:
    try:
        with files.open_binary(path, below=path.parents[1]) as file:
            return read_lines(file, path, _exchange)
    except FileNotFoundError:
        return [], 0
    except OSError as error:
        message = f"the transcript {path} cannot be read ({why_unreadable(error)}): move it away"
        raise UnusableFile(message, path, FileProblem.UNREADABLE) from error


def _exchange(line: bytes, number: int) -> Exchange:
    fields = parse_json(line)
    if not isinstance(fields, dict) or fields.pop("v", None) != TRANSCRIPT_VERSION:
        raise Garbled("it is no exchange of this version")
    try:
        return Exchange.model_validate(fields)
    except ValidationError as error:
        raise Garbled(f"{'.'.join(map(str, error.errors()[0]['loc']))}: {error.errors()[0]['msg']}") from None
