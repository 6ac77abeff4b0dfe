"""Writing so that a crash leaves the old file or the new one, and a full disk is said in words."""

from __future__ import annotations

import errno
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from jaxreward.errors import UserError, why_unreadable

FULL = frozenset({errno.ENOSPC, errno.EDQUOT})


@contextmanager
def explain_full_disk(path: Path) -> Iterator[None]:
    """Turn "no space left" and "quota exceeded" inside the block into a `UserError`."""
    try:
        yield
    except OSError as error:
        if error.errno not in FULL:
            raise
        raise UserError(
            f"The disk that holds {path.parent} is full: free some space there, then resume the run. "
            "Nothing logged so far is lost."
        ) from error


def make_folder(path: Path) -> None:
    """Make a folder and those that it lies in; `UserError` where that cannot be."""
    with explain_full_disk(path):
        try:
            path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            if error.errno in FULL:
                raise
            raise UserError(f"cannot make the folder {path}: {_hindrance(path, error)}; name another") from error


def _hindrance(folder: Path, error: OSError) -> str:
    """Why a folder cannot be made: a file in its way, which the system says less clearly, or what it says."""
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


def fsync_directory(directory: Path) -> None:
    """Make renames and new files in `directory` survive a power failure."""
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    except OSError as error:
        # Some network file systems cannot sync a directory; the rename itself is still atomic.
        if error.errno not in (errno.EINVAL, errno.ENOTSUP):
            raise
    finally:
        os.close(descriptor)


def write_atomic(path: Path, text: str) -> None:
    """Write `text` to `path`: readers and crashes see the old content or the new, nothing else."""
    with explain_full_disk(path):
        descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        try:
            with os.fdopen(descriptor, "w", encoding="utf-8", newline="") as file:
                file.write(text)
                file.flush()
                os.fsync(file.fileno())
            os.chmod(name, 0o666 & ~_umask())  # mkstemp makes files that only their owner can read
            os.replace(name, path)
        except BaseException:
            with suppress(FileNotFoundError):
                os.unlink(name)
            raise
        fsync_directory(path.parent)


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
