"""What the copy of a run consists of at one moment.

Contents lie in `files/`, each under the name of its digest, and are never changed; a snapshot says which of them the
files of the run are. So a copy that is cut off, or a writer whose place was taken, changes nothing of what is there.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from jaxreward.errors import FileProblem, UnusableFile
from jaxreward.storage.place import Place

FILES, SNAPSHOTS = "files", "snapshots"
_DIGEST, _SNAPSHOT = re.compile(r"[0-9a-f]{64}"), re.compile(r"(\d{9})-[01]\.json")
LOG = "events.jsonl"


class Piece(NamedTuple):
    """A content: its SHA-256 and how many bytes it has."""

    digest: str
    size: int


class Whole(NamedTuple):
    """A file that is replaced as a whole, and when it was last, in nanoseconds since 1970."""

    piece: Piece
    changed_ns: int


@dataclass(frozen=True)
class Snapshot:
    """Attributes:
    whole: files that are replaced, by their paths in the run's folder.
    appended: files that grow (the log, transcripts), each in pieces.
    """

    whole: Mapping[str, Whole] = field(default_factory=dict)
    appended: Mapping[str, Sequence[Piece]] = field(default_factory=dict)

    @property
    def digests(self) -> set[str]:
        """Of all that it refers to."""
        return {file.piece.digest for file in self.whole.values()} | {
            piece.digest for pieces in self.appended.values() for piece in pieces
        }

    def size(self, name: str) -> int:
        """Of an appended file, in bytes; 0 where there is none."""
        return sum(piece.size for piece in self.appended.get(name, ()))

    def encode(self, count: int) -> bytes:
        return json.dumps({"count": count, "whole": self.whole, "appended": self.appended}).encode()


def digest_of(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def write(place: Place, snapshot: Snapshot, writer: int, count: int) -> None:
    """Write the snapshot number `count` of a writer. Two files take turns, so that one is whole at any moment."""
    place.write(f"{SNAPSHOTS}/{writer:09d}-{count % 2}.json", snapshot.encode(count))


def forget(place: Place, before: int) -> None:
    """Delete the snapshots of earlier writers."""
    for name in place.names(SNAPSHOTS):
        if (found := _SNAPSHOT.fullmatch(name)) and int(found[1]) < before:
            place.delete(f"{SNAPSHOTS}/{name}")


def digests_in(place: Place) -> set[str]:
    """Of the contents that are there. What has another name is not of a copy."""
    return {name for name in place.names(FILES) if _DIGEST.fullmatch(name)}


def latest(place: Place) -> Snapshot:
    """The last snapshot of the last writer that wrote one; an empty one where there is none.

    Raises:
        OSError: the place cannot be reached.
    """
    best, found = (-1, -1), Snapshot()
    for name in place.names(SNAPSHOTS):
        try:
            if (number := _SNAPSHOT.fullmatch(name)) is None:
                continue
            content: Any = json.loads(place.read(f"{SNAPSHOTS}/{name}") or b"")
            order = int(number[1]), int(content["count"])
            if order > best:
                best, found = order, _decoded(content)
        except (ValueError, TypeError, KeyError, AttributeError):
            continue  # being written, or cut off
    return found


def _decoded(content: Any) -> Snapshot:
    whole = {str(name): Whole(_piece(piece), int(changed)) for name, (piece, changed) in content["whole"].items()}
    return Snapshot(whole, {str(name): [_piece(p) for p in pieces] for name, pieces in content["appended"].items()})


def _piece(values: Any) -> Piece:
    digest, size = values
    if not _DIGEST.fullmatch(digest):
        raise ValueError("no digest")
    return Piece(digest, int(size))


def content(place: Place, piece: Piece) -> bytes:
    """Raises:
    UnusableFile: it is missing, or not what it was.
    OSError: the place cannot be reached.
    """
    data = place.read(f"{FILES}/{piece.digest}")
    if data is None or digest_of(data) != piece.digest:
        what = "is missing" if data is None else "is damaged"
        raise UnusableFile(
            f"the copy {place.address} cannot be used: its file {FILES}/{piece.digest} {what}",
            place.address,
            FileProblem.DAMAGED,
        )
    return data


def joined(place: Place, pieces: Sequence[Piece]) -> bytes:
    """The content of an appended file."""
    return b"".join(content(place, piece) for piece in pieces)
