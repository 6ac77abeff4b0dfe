"""What of a run's folder is copied, and how the folder stands to a copy of it."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from jaxreward import files
from jaxreward.storage.place import Place
from jaxreward.storage.snapshot import LOG, Piece, Snapshot, digest_of, joined

LARGEST = 4 << 30
"""Bytes of a file at most."""
CHECKPOINTS = "checkpoints/"
_SAFE = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9._-]{0,199}")
_LOCK = "events.lock"

Relation = Literal["ahead", "behind", "other"]
"""A run that has all that its copy has, one that lacks some of it, and one with another history."""


def names_of(folder: Path) -> list[str]:
    """The files of a run that are copied, in order: neither locks nor what is still being written."""
    found = list[str]()
    for root, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if _SAFE.fullmatch(name) and ".orbax" not in name]
        for name in names:
            path = Path(root, name)
            if _SAFE.fullmatch(name) and name != _LOCK and not path.is_symlink() and path.is_file():
                found.append(path.relative_to(folder).as_posix())
    return sorted(found)


def is_safe(name: str) -> bool:
    """Whether a name of a copy may be one of a file in a run's folder."""
    return all(_SAFE.fullmatch(part) for part in name.split("/")) and name.rpartition("/")[2] != _LOCK


def complete(text: bytes) -> bytes:
    """Its complete lines."""
    return text[: text.rfind(b"\n") + 1]


def relation(path: Path, place: Place, copy: Snapshot) -> Relation:
    """How the run in `path` stands to a copy: by its events, and where these are equal by its checkpoints.

    Raises:
        OSError: the place cannot be reached.
        UnusableFile: the copy is damaged.
    """
    here, pieces = complete(content_of(path, LOG)), copy.appended.get(LOG, ())
    if not begins_with(here, pieces):
        there = joined(place, pieces)
        return "ahead" if here.startswith(there) else "behind" if there.startswith(here) else "other"
    return "behind" if len(here) == copy.size(LOG) and _has_later_checkpoints(path, copy) else "ahead"


def begins_with(text: bytes, pieces: Sequence[Piece]) -> bool:
    """Whether a text begins with these pieces, whose content need not be read."""
    begin = 0
    for piece in pieces:
        if digest_of(text[begin : begin + piece.size]) != piece.digest:
            return False
        begin += piece.size
    return True


def differing(path: Path, copy: Snapshot) -> list[str]:
    """The files that are replaced, and are others here than in the copy, or missing here."""
    names = [name for name in copy.whole if is_safe(name)]
    return [name for name in names if digest_of(content_of(path, name)) != copy.whole[name].piece.digest]


def surplus(path: Path, copy: Snapshot) -> list[str]:
    """The files of checkpoints that the copy lacks."""
    return [name for name in names_of(path) if name.startswith(CHECKPOINTS) and name not in copy.whole]


def _has_later_checkpoints(path: Path, copy: Snapshot) -> bool:
    others = [name for name in differing(path, copy) if name.startswith(CHECKPOINTS)]
    ours = [name for name in {*others, *surplus(path, copy)} if (path / name).exists()]
    there = max((copy.whole[name].changed_ns for name in others), default=0)
    return bool(others) and there > max(((path / name).stat().st_mtime_ns for name in ours), default=0)


def content_of(path: Path, name: str) -> bytes:
    """A file here; empty where there is none."""
    try:
        return files.read_bytes(path / name, below=path, largest=LARGEST)
    except FileNotFoundError:
        return b""
