"""Atomic writes, and clear errors for full disks and refused paths."""

from __future__ import annotations

import errno
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from jaxreward import files
from jaxreward.errors import FileProblem, UnusableFile, why_unreadable

FULL = frozenset({errno.ENOSPC, errno.EDQUOT})


@contextmanager
def explain_full_disk(path: Path) -> Iterator[None]:
    """Turn "no space left", "quota exceeded", "file too large" and a refused path (`files.NotAFile`) inside the block
    into an `UnusableFile`."""
    try:
        yield
    except files.NotAFile as error:
        raise UnusableFile(
            f"{error.filename} cannot be used: {error.strerror}; a run has nothing but files and folders of its own: "
            "move that away",
            error.filename,
            FileProblem.WRONG_KIND,
        ) from error
    except OSError as error:
        if error.errno == errno.EFBIG:
            raise UnusableFile(
                f"{path} cannot grow: this process may not write files so large (`ulimit -f` says how large); raise "
                "that, then resume the run. Nothing logged so far is lost.",
                path,
                FileProblem.TOO_LARGE,
            ) from error
        if error.errno not in FULL:
            raise
        raise UnusableFile(
            f"The disk that holds {path.parent} is full: free some space there, then resume the run. "
            "Nothing logged so far is lost.",
            path,
            FileProblem.FULL,
        ) from error


def make_folder(path: Path, *, below: Path | None = None) -> None:
    """Make a folder and those that it lies in; `UnusableFile` where that cannot be, or where one of those after `below`
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
            problem, why = _hindrance(path, error)
            raise UnusableFile(f"cannot make the folder {path}: {why}; name another", path, problem) from error


def _hindrance(folder: Path, error: OSError) -> tuple[FileProblem, str]:
    """Why a folder cannot be made: a file in its place, or the error of the system."""
    file = next((p for p in (folder, *folder.parents) if p.exists() and not p.is_dir()), None)
    if file is not None:
        return FileProblem.WRONG_KIND, f"{file} is a file"
    return FileProblem.UNWRITABLE, why_unreadable(error)


def check_target(path: Path) -> None:
    """Make the folder of a file that is about to be written; `UnusableFile` where the file cannot be."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=path.parent):
            pass
    except OSError as error:
        problem, why = _hindrance(path.parent, error)
        raise UnusableFile(f"cannot write {path}: {why}; name another file", path, problem) from error
    if path.is_dir():
        raise UnusableFile(f"cannot write {path}: it is a folder; name a file", path, FileProblem.WRONG_KIND)


def write_atomic(path: Path, content: str | bytes, *, below: Path | None = None) -> None:
    """Write `content` to `path`: readers and crashes see the old content or the new, nothing else.

    Args:
        below: the trusted folder that `path` lies in, at any depth, as in `files`; by default its own.

    Raises:
        UnusableFile: a full disk, a limit on the size of files, or something else than a file in its place.
    """
    with explain_full_disk(path):
        files.replace(path, content.encode() if isinstance(content, str) else content, below=below)
