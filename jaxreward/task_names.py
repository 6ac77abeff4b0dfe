"""Names of tasks that are Python files: `swing_up.py`, or `robots.py:SwingUp` where a file has several."""

from __future__ import annotations

from pathlib import Path


def is_file(name: str) -> bool:
    """Whether the name of a task is that of a file."""
    return name.partition(":")[0].endswith(".py")


def file_of(name: str) -> Path:
    """The file in the name of such a task."""
    return Path(name.partition(":")[0])


def class_of(name: str) -> str:
    """The class in the name of such a task; empty where it is left out."""
    return name.partition(":")[2]


def named(file: Path, kind: str) -> str:
    """The name of the task that is the class `kind` in `file`, or its only one."""
    return f"{file}:{kind}" if kind else str(file)


def label_of(name: str) -> str:
    """The name of a task for people: of one in a file without the folders, `swing_up.py:SwingUp`."""
    return named(Path(file_of(name).name), class_of(name)) if is_file(name) else name


def lead_to_the_same(said: str, recorded: str) -> bool:
    """Whether two names are of one file, however the paths to it are written, and of one class, which `said` may leave
    out. A link leads to its target."""
    return file_of(said).resolve() == file_of(recorded).resolve() and class_of(said) in ("", class_of(recorded))
