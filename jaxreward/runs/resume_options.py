"""The options by which a command finds a run."""

from __future__ import annotations

import shlex
from pathlib import Path

from jaxreward.config import class_of, file_of, is_file, label_of, named

RUNS = Path("runs")
"""Where commands look for runs unless they are told otherwise."""

COPIES = {"task": "task.py", "strategy": "strategy.py", "proposer": "proposer.py"}
"""Files in the folder of a run that are copies of the user's own, by the option that names them."""


def resume_options(path: Path, *, task: str = "", strategy: str = "", proposer: str = "", store: str = "") -> str:
    """The options of `jaxreward evolve` and `tell` by which they find the run in `path`, to be typed into a shell where
    this process runs: its folder, its name, the files of its task, strategy and proposer, which are named again since
    they are executed, and where a copy of it is kept.

    A file that is not below the working directory is named by its copy in the run, which any folder has.
    """
    own = {"task": task, "strategy": strategy, "proposer": proposer}
    words = [] if path.parent == RUNS else ["--out", str(path.parent)]
    for option, name in own.items():
        if is_file(name):
            words += [f"--{option}", _typed(path, option, name)]
    words += ["--name", path.name, *(["--store", store] if store else [])]
    return shlex.join(words)


def _typed(path: Path, option: str, name: str) -> str:
    """A file's name as it is typed here."""
    file, copy = file_of(name), path / COPIES[option]
    if file.is_file() and file.absolute().is_relative_to(Path.cwd()):
        return named(file.absolute().relative_to(Path.cwd()), class_of(name))
    return named(copy, class_of(name)) if copy.is_file() else label_of(name)
