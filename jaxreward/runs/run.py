"""A run directory: its lock and the places of its files."""

from __future__ import annotations

import re
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from jaxreward import files
from jaxreward.config import Malformed, parse_toml
from jaxreward.errors import (
    FileProblem,
    InvalidSetting,
    UnknownName,
    UnusableFile,
    nearest,
    why_unreadable,
)
from jaxreward.runs.disk import make_folder, write_atomic
from jaxreward.runs.events import Asked, Event, Failed, Paused, Resumed, RunStarted
from jaxreward.runs.log import Entry, EventLog
from jaxreward.runs.provenance import Provenance, with_header
from jaxreward.runs.resume_options import COPIES
from jaxreward.runs.toml import to_toml

SAFE_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")


class Run:
    """An open run, its directory locked until `close`; use as a context manager.

    Made by `Run.create` or `Run.resume`. Reading a run needs none of this: `read_log(path)`.
    """

    def __init__(self, path: Path, config: Mapping[str, Any], log: EventLog) -> None:
        self.path = path
        self.config = dict(config)
        self.log = log

    @classmethod
    def create(cls, path: Path, config: Mapping[str, Any]) -> Run:
        """Start a run in `path`, a new or empty directory; `UnusableFile` where one has started.

        A run in `path` in which nothing was trained and nothing was paid for is cleared away.
        """
        check_name(path.name, "run")
        if (path / "events.jsonl").is_dir() or (path.exists() and not path.is_dir()):
            message = f"{path} is not a directory for a run: choose another name."
            raise UnusableFile(message, path, FileProblem.WRONG_KIND)
        _make_folders(path)
        log = EventLog(path / "events.jsonl")
        try:
            if log.entries:
                _require_replaceable(path, log.entries)
                _clear(path, log)
            write_atomic(path / "config.toml", to_toml(config))
            return cls(path, read_config(path), log)
        except BaseException:
            log.close()
            raise

    @classmethod
    def resume(cls, path: Path) -> Run:
        """Take up the run in `path`, with the configuration that it was created with."""
        config = read_config(path)
        _make_folders(path)
        return cls(path, config, EventLog(path / "events.jsonl"))

    def update_config(self, config: Mapping[str, Any]) -> None:
        """Replace the configuration, e.g. by one with larger budgets."""
        write_atomic(self.path / "config.toml", to_toml(config))
        self.config = read_config(self.path)

    @property
    def checkpoints(self) -> Path:
        return self.path / "checkpoints"

    @property
    def transcripts(self) -> Path:
        return self.path / "transcripts"

    def program(self, digest: str) -> Path:
        """Where the source of the candidate with this digest lies."""
        return self.path / "programs" / f"{check_name(digest, 'digest')}.py"

    @property
    def entries(self) -> list[Entry]:
        """The events so far."""
        return self.log.entries

    def append(self, event: Event) -> Entry:
        """Log an event; returns once it is on the disk."""
        return self.log.append(event)

    def save_program(self, digest: str, source: str) -> Path:
        """Keep a program under its digest; the first source with a digest stays."""
        path = self.program(digest)
        if not files.is_file(path, below=self.path):
            write_atomic(path, source, below=self.path)
        return path

    def save_best(self, source: str, provenance: Provenance) -> Path:
        """Write `best_interface.py` with its provenance in place of the one before."""
        path = self.path / "best_interface.py"
        write_atomic(path, with_header(source, provenance))
        return path

    def close(self) -> None:
        """Release the run to other processes."""
        self.log.close()

    def __enter__(self) -> Run:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()


_FOLDERS = ("programs", "transcripts", "checkpoints")


def _make_folders(path: Path) -> None:
    for folder in _FOLDERS:
        make_folder(path / folder, below=path)


LARGEST_CONFIG = 1 << 20
"""Bytes of a config.toml that is read."""


_OF_A_START = (
    *COPIES.values(),
    "observation.py",
    "report.html",
    "search.png",
    "profile",
    "tensorboard",
)
"""Files of a run without results, apart from its log, which the next run of its name would take for its own."""


def require_new(path: Path) -> None:
    """Raise `UnusableFile` if `path` holds a run that `Run.create` would not replace, or that is being written."""
    if (path / "events.jsonl").is_file():
        with EventLog(path / "events.jsonl") as log:
            if log.entries:
                _require_replaceable(path, log.entries)


def _require_replaceable(path: Path, entries: Sequence[Entry]) -> None:
    """Raise `UnusableFile` if something would be lost with a run: what a model or a person was asked, or the steps of a
    search that has not failed."""
    begun = all(isinstance(entry.event, RunStarted | Asked | Paused | Resumed) for entry in entries)
    if _asked_others(path) or not (begun or isinstance(entries[-1].event, Failed)):
        message = f"{path} holds a run already: resume it, or choose another name for a new one."
        raise UnusableFile(message, path, FileProblem.EXISTS)


def _asked_others(path: Path) -> bool:
    """Whether a model or a person was asked something."""
    folders = (path / name for name in ("transcripts", "requests", "replies", "votes"))
    return any(file.stat().st_size for folder in folders if folder.is_dir() for file in folder.iterdir())


def _clear(path: Path, log: EventLog) -> None:
    """Remove the files of a run without results; its log last."""
    for name in _OF_A_START:
        left = path / name
        if left.is_dir() and not left.is_symlink():
            shutil.rmtree(left)
        else:
            left.unlink(missing_ok=True)
    log.clear()


def read_config(path: Path) -> dict[str, Any]:
    """The configuration of the run in `path`; `UnknownName` where there is no run."""
    file = path / "config.toml"
    try:
        text = files.read_text(file, largest=LARGEST_CONFIG)
    except (FileNotFoundError, NotADirectoryError) as error:
        raise no_run(path) from error
    except (OSError, UnicodeDecodeError) as error:
        message = f"{file} cannot be read ({why_unreadable(error)}): put it back from a copy of the run"
        raise UnusableFile(message, file, FileProblem.UNREADABLE) from error
    try:
        return parse_toml(text)
    except Malformed as error:
        message = f"{file} is not valid TOML ({error}): undo the last edit of it."
        raise UnusableFile(message, file, FileProblem.DAMAGED) from error


def check_name(name: str, what: str) -> str:
    """`name`, if it is safe as a file name; `what` has that name, for the error."""
    if not SAFE_NAME.fullmatch(name):
        raise InvalidSetting(
            f"{name!r} cannot be the name of a {what}: use up to 100 letters, digits, dots, dashes and "
            "underscores, starting with a letter or a digit.",
            "name",
        )
    return name


def no_run(path: Path, otherwise: str = "name the folder of one that was started") -> UnknownName:
    """The error of a folder without a run; `otherwise` is the advice where none beside it has a similar name."""
    near = similar_run(path)
    advice = f"did you mean {near.name}?" if near else otherwise
    return UnknownName("run", path.name, _names_beside(path), message=f"there is no run in {path}; {advice}")


def similar_run(path: Path) -> Path | None:
    """The run in the folder of `path` with the most similar name, if any."""
    near = nearest(path.name, _names_beside(path))
    return path.parent / near if near else None


def _names_beside(path: Path) -> list[str]:
    """The names of the other runs in the folder of `path`."""
    found = path.parent.glob("*/config.toml") if path.parent.is_dir() else ()
    return sorted({config.parent.name for config in found} - {path.name})
