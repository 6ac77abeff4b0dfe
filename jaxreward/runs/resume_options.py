"""The options by which a command finds a run."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Protocol

from jaxreward.config import class_of, file_of, is_file, label_of, named
from jaxreward.runs.folders import RUNS

COPIES = {"task": "task.py", "strategy": "strategy.py", "proposer": "proposer.py"}
"""Files in the folder of a run that are copies of the user's own, by the option that names them."""


class Named(Protocol):
    """What names a task, a strategy and a proposer: settings, or the first event of a run."""

    @property
    def task(self) -> str: ...
    @property
    def strategy(self) -> str: ...
    @property
    def proposer(self) -> str: ...


def resume_options(path: Path, run: Named, store: str = "") -> str:
    """The options of `jaxreward evolve` and `tell` by which they find the run in `path`, to be typed into a shell where
    this process runs: its folder, its name, the files of its task, strategy and proposer, which are named again since
    they are executed, and where a copy of it is kept.

    A file that is not below the working directory is named by its copy in the run, which any folder has.
    """
    words = [] if path.parent == RUNS else ["--out", str(path.parent)]
    for option in COPIES:
        if is_file(name := getattr(run, option)):
            words += [f"--{option}", named(_typed(path, option, name), class_of(name))]
    words += ["--name", path.name, *(["--store", store] if store else [])]
    return shlex.join(words)


def names_copies(path: Path, run: Named) -> bool:
    """Whether `resume_options` name files that lie in the folder of the run."""
    names = {option: getattr(run, option) for option in COPIES}
    return any(is_file(name) and _typed(path, option, name) == path / COPIES[option] for option, name in names.items())


def _typed(path: Path, option: str, name: str) -> Path:
    """A file as it is typed here."""
    file, copy = file_of(name), path / COPIES[option]
    if file.is_file() and file.absolute().is_relative_to(Path.cwd()):
        return file.absolute().relative_to(Path.cwd())
    return copy if copy.is_file() else file_of(label_of(name))
