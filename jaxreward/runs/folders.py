"""Finding runs: all below a folder, and one by its name."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from jaxreward.errors import FileProblem, UnknownName, UnusableFile, UserError, nearest
from jaxreward.files import is_there

LOG = "events.jsonl"

RUNS = Path("runs")
"""Where runs are written to and looked for unless another folder is named."""

_DEEPEST = 4
"""Folders between that of all runs and a run: a comparison may lie among runs, and has a folder for each task."""


def is_run(folder: Path) -> bool:
    """Whether a run was started in `folder`, by the names of its files, which are not read."""
    return is_there(folder / LOG) or (is_there(folder / "config.toml") and is_there(folder / "programs"))


def runs_under(folder: Path) -> list[Path]:
    """The runs in `folder`, itself included if it is one, and those in the folders of comparisons, by name.

    What lies inside a run is a part of it. Links in `folder` are followed: a run, or a folder of runs, may lie on
    another disk. Those further inside are not.

    Raises:
        UnusableFile: there is no such folder.
    """
    if not folder.is_dir():
        raise UnusableFile(
            f"there is no folder {folder}: name the one that runs are in, as --out did when they began",
            folder,
            FileProblem.MISSING,
        )
    return sorted(_walk(folder, _DEEPEST, links=True))


def _walk(folder: Path, deeper: int, links: bool = False) -> Iterator[Path]:
    if is_run(folder):
        yield folder
        return
    try:
        entries = [entry for entry in os.scandir(folder) if not entry.name.startswith(".")]
        inner = [Path(entry.path) for entry in entries if entry.is_dir(follow_symlinks=links)]
    except OSError:  # one that may not be read
        return
    for path in inner if deeper else ():
        yield from _walk(path, deeper - 1)


def find_run(name: str, out: Path = RUNS) -> Path:
    """The run in the folder `name`, or of that name below `out`.

    Raises:
        UnknownName: there is none; the nearest is named.
        UserError: there are several.
    """
    for path in (Path(name), out / name):
        if is_run(path):
            return path
    below = runs_under(out) if out.is_dir() else []
    names = {str(path.relative_to(out)): path for path in below if path != out}
    ends = [path for path in names.values() if path.name == name]
    if len(ends) == 1:  # of a comparison, without its folders
        return ends[0]
    if ends:
        choices = ", ".join(sorted(str(path.relative_to(out)) for path in ends))
        raise UserError(f"{name} is the name of several runs: say which, {choices}")
    parent = Path(name).parent
    if parent.is_dir() and parent != Path():
        names |= {str(parent / path.name): path for path in parent.iterdir() if is_run(path)}
    near = nearest(name, names)
    if near is None:  # without the folders that it lies in
        like = nearest(Path(name).name, [path.name for path in names.values()])
        near = next((full for full, path in names.items() if path.name == like), None)
    hint = f", here or in {out}: `jaxreward runs list` names those in a folder"
    message = f"there is no run {name}" + (f"; did you mean {near}?" if near else hint)
    raise UnknownName("run", name, names, message=message, near=near)
