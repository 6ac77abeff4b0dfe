"""Bringing the folder of a run up to a copy of it."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

from jaxreward import files
from jaxreward.errors import FileProblem, UnusableFile
from jaxreward.runs.disk import explain_full_disk, make_folder, write_atomic
from jaxreward.storage.contents import differing, is_safe, relation, surplus
from jaxreward.storage.place import Place
from jaxreward.storage.snapshot import LOG, Snapshot, content, joined, latest


def fetch(place: Place, path: Path, required: bool = True) -> int:
    """Bring the folder of a run up to its copy; how many bytes were fetched, 0 where it lacks nothing.

    The copy is as any run of somebody else: its files are read as data. A fetch that is interrupted is repeated.

    Args:
        required: False: where there is no run, nothing is done.

    Raises:
        UnusableFile: there is no run, its copy is damaged, or the folder has events that the copy does not.
    """
    try:
        copy = latest(place)
        if not copy.size(LOG) and not required:
            return 0
        while True:
            try:
                return _brought(place, path, copy)
            except UnusableFile as error:
                before, copy = copy, latest(place)
                if error.problem is not FileProblem.DAMAGED or copy == before:
                    raise  # else it was written meanwhile, and what nothing refers to any more was removed
    except files.NotAFile as error:
        message = (
            f"{error.filename} cannot be replaced ({error.strerror}): remove it, or name another folder with --out"
        )
        raise UnusableFile(message, Path(str(error.filename)), FileProblem.WRONG_KIND) from error
    except OSError as error:
        raise place.unreachable(error) from error


def _brought(place: Place, path: Path, copy: Snapshot) -> int:
    if not copy.size(LOG):
        message = f"there is no run at {place.address}: name the folder of one"
        raise UnusableFile(message, place.address, FileProblem.MISSING)
    how = relation(path, place, copy)
    if how == "other":
        raise UnusableFile(
            f"{path} has other events than {place.address}: two processes went on with one run; name another folder "
            "with --out",
            path,
            FileProblem.EXISTS,
        )
    return _fetched(place, path, copy) if how == "behind" else 0


def _fetched(place: Place, path: Path, copy: Snapshot) -> int:
    make_folder(path)
    total = 0
    for name in differing(path, copy):
        file = copy.whole[name]
        total += _written(path, name, content(place, file.piece))
        os.utime(path / name, ns=(file.changed_ns, file.changed_ns))
    for name in surplus(path, copy):  # another process went on with what they are of
        with contextlib.suppress(FileNotFoundError):
            (path / name).unlink()
    for name in sorted((name for name in copy.appended if is_safe(name)), key=lambda name: name == LOG):
        total += _written(path, name, joined(place, copy.appended[name]))  # the log last: else all is repeated
    return total


def _written(path: Path, name: str, data: bytes) -> int:
    with explain_full_disk(path / name):
        files.make_folder((path / name).parent, below=path) if "/" in name else None
    write_atomic(path / name, data, below=path)
    return len(data)
