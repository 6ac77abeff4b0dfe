"""Atomic writes, and clear errors for full disks and refused paths."""

from __future__ import annotations

import errno
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from jaxreward import files
from jaxreward.errors import UserError, why_unreadable

FULL = frozenset({errno.ENOSPC, errno.EDQUOT})


@contextmanager
def explain_full_disk(path: Path) -> Iterator[None]:
    """Turn "no space left", "quota exceeded", "file too large" and a refused path (`files.NotAFile`) inside the block
    into a `UserError`."""
    try:
        yield
    except files.NotAFile as error:
        raise UserError(
            f"{error.filename} cannot be used: {error.strerror}; a run has nothing but files and folders of its own: "
            "move that away"
        ) from error
    except OSError as error:
        if error.errno == errno.EFBIG:
            raise UserError(
                f"{path} cannot grow: this process may not write files so large (`ulimit -f` says how large); raise "
                "that, then resume the run. Nothing logged so far is lost."
            ) from error
        if error.errno not in FULL:
            raise
        raise UserError(
            f"The disk that holds {path.parent} is full: free some space there, then resume the run. "
            "Nothing logged so far is lost."
        ) from error


def make_folder(path: Path, *, below: Path | None = None) -> None:
    """Make a folder and those that it lies in; `UserError` where that cannot be, or where one of those after `below`
    is a link or no folder."""
    with explain_full_disk(path):
        try:
            if below is not None:
                below.mkdir(parents=True, exist_ok=True)
                files.make_folder(path, below=below)
            else:
                path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            if error.errno in FULL or isinstance(error, files.NotAFile):
                raise
            raise UserError(f"cannot make the folder {path}: {_hindrance(path, error)}; name another") from error


def _hindrance(folder: Path, error: OSError) -> str:
    """Why a folder cannot be made: a file in its place, or the error of the system."""
    file = next((p for p in (folder, *folder.parents) if p.exists() and not p.is_dir()), None)
    return f"{file} is a file" if file else why_unreadable(error)


def check_target(path: Path) -> None:
    """Make the folder of a file that is about to be written; `UserError` where the file cannot be."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=path.parent):
            pass
    except OSError as error:
        raise UserError(f"cannot write {path}: {_hindrance(path.parent, error)}; name another file") from error
    if path.is_dir():
        raise UserError(f"cannot write {path}: it is a folder; name a file")


def write_atomic(path: Path, content: str | bytes, *, below: Path | None = None) -> None:
    """Write `content` to `path`: readers and crashes see the old content or the new, nothing else.

    Args:
        below: the trusted folder that `path` lies in, at any depth, as in `files`; by default its own.

    Raises:
        UserError: a full disk, a limit on the size of files, or something else than a file in its place.
    """
    with explain_full_disk(path):
        files.replace(path, content.encode() if isinstance(content, str) else content, below=below)
