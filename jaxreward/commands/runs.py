"""`jaxreward runs`: list runs, show or follow one, compare several.

Nothing here needs a device, a task or a strategy, and nothing is imported that would import JAX.
"""

from __future__ import annotations

import heapq
import json
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from shutil import get_terminal_size
from typing import Annotated, Any

from jaxreward.commands.resolve import Command, Resolved
from jaxreward.config import Arg
from jaxreward.errors import InvalidSetting, UserError
from jaxreward.formatting import printable
from jaxreward.reports.run_events import EventFormatter
from jaxreward.reports.run_tables import SideBySide, list_lines, summary_json
from jaxreward.reports.run_text import run_json, run_lines
from jaxreward.reports.run_view import BEST_OF_N, RunView, is_written
from jaxreward.runs.events import OVER, json_ready
from jaxreward.runs.folders import LOG, RUNS, find_run, runs_under
from jaxreward.runs.follow import LogReader
from jaxreward.runs.malformed import explain_malformed
from jaxreward.runs.resume_options import resume_options
from jaxreward.runs.run import check_name
from jaxreward.secrets import Secrets
from jaxreward.storage import Place, fetch
from jaxreward.tracking import SinkName, Tracker, require

POLL_S = 0.5
"""Seconds between two looks at a run that is followed."""


@dataclass(frozen=True)
class ListSettings:
    """List the runs in a folder, those of comparisons included, the last one that was worked on first."""

    folder: Annotated[Path, Arg(positional="FOLDER")] = RUNS
    """Folder of runs."""
    json: bool = False
    """Print one JSON object in place of the table."""


@dataclass(frozen=True)
class _OneRun:
    run: Annotated[str, Arg(positional="RUN")]
    """Its folder, or its name below --out."""
    out: Path = RUNS
    """Folder of runs."""


@dataclass(frozen=True)
class ShowSettings(_OneRun):
    """Show a run on a screen: what was found, what it took, where the time went, how to go on."""

    json: bool = False
    """Print one JSON object in place of the text."""


@dataclass(frozen=True)
class TailSettings(_OneRun):
    """Print the last events of a run, one a line."""

    follow: Annotated[bool, Arg(short="-f")] = False
    """Go on with what happens, until the run is finished."""
    lines: Annotated[int, Arg(short="-n")] = 20
    """How many of the last events to begin with."""


@dataclass(frozen=True)
class CompareSettings:
    """Set runs side by side: settings that differ, scores, and what it took to reach them."""

    runs: Annotated[tuple[str, ...], Arg(positional="RUN")]
    """Their folders, or their names below --out."""
    levels: tuple[float, ...] = ()
    """Scores to say who reached them first. By default 0.25, 0.5, 0.75 and 0.9 of a rate, and the best that all of the
    runs reached."""
    out: Path = RUNS
    """Folder of runs."""
    json: bool = False
    """Print one JSON object in place of the table."""


@dataclass(frozen=True)
class TrackSettings(_OneRun):
    """Feed TensorBoard or Weights & Biases with a run that has ended, or goes on."""

    to: tuple[SinkName, ...] = ("tensorboard",)
    """What to feed: tensorboard, wandb or both. wandb is Weights & Biases."""
    follow: Annotated[bool, Arg(short="-f")] = False
    """Go on with what happens while a process works on the run."""


@dataclass(frozen=True)
class FetchSettings:
    """Bring a run from where `evolve --store` keeps a copy of it, to go on with it here."""

    address: Annotated[str, Arg(positional="ADDRESS")]
    """Of the run: the --store of its command, a slash and its name, such as s3://bucket/runs/first."""
    out: Path = RUNS
    """Folder of runs."""


def _say(text: str) -> None:
    """Print text of a log with what a terminal would obey escaped: models, servers and programs wrote into it."""
    print(printable(text), flush=True)


def _width() -> int | None:
    """Characters of a line of the terminal; None where output goes elsewhere."""
    return get_terminal_size().columns if sys.stdout.isatty() else None


def _print_json(value: dict[str, Any]) -> None:
    print(json.dumps(json_ready(value), allow_nan=False))


# ---- commands


def list_command(resolved: Resolved[ListSettings]) -> int:
    """List the runs in a folder, the last one that was worked on first."""
    settings = resolved.settings
    found: list[tuple[str, RunView]] = []
    unreadable: list[tuple[str, str]] = []
    for path in runs_under(settings.folder):
        name = path.name if path == settings.folder else str(path.relative_to(settings.folder))
        try:
            with explain_malformed(path):
                view = RunView.read(path)
                summary_json(view, name)  # so that one that fails hides no other
                list_lines([(name, view)])
            found.append((name, view))
        except (UserError, OSError, MemoryError) as error:
            unreadable.append((name, " ".join(str(error).split()) or type(error).__name__))
    found.sort(key=lambda run: run[1].last_at, reverse=True)
    if settings.json:
        rows = [summary_json(view, name) for name, view in found]
        _print_json({"runs": rows, "unreadable": [{"run": name, "reason": why} for name, why in unreadable]})
        return 0
    for line in list_lines(found, _width()) if found else [f"there is no run in {settings.folder} that can be read"]:
        _say(line)
    for name, why in unreadable:
        _say(f"cannot read {name}: {why}")
    return 0


def show_command(resolved: Resolved[ShowSettings]) -> int:
    """Show one run on a screen."""
    settings = resolved.settings
    path = find_run(settings.run, settings.out)
    with explain_malformed(path):
        view = RunView.read(path)
        value, lines = run_json(view), run_lines(view, _width() or 100)
    if settings.json:
        _print_json(value)
    else:
        _say("\n".join(lines))
    return 0


def compare_command(resolved: Resolved[CompareSettings]) -> int:
    """Set runs side by side."""
    settings = resolved.settings
    if len(settings.runs) < 2:
        raise UserError("name at least two runs to set side by side; `jaxreward runs show RUN` shows one")
    paths = [find_run(run, settings.out) for run in settings.runs]
    names = [path.name for path in paths]
    if len(set(names)) < len(names):  # of several comparisons
        names = list(settings.runs)
    runs: list[tuple[str, RunView]] = []
    for name, path in zip(names, paths, strict=True):
        with explain_malformed(path):
            runs.append((name, RunView.read(path)))
            SideBySide(runs[-1:], settings.levels).lines()
    sheet = SideBySide(runs, settings.levels)
    if settings.json:
        _print_json(sheet.json())
    else:
        _say("\n".join(sheet.lines(_width())))
    return 0


def tail_command(resolved: Resolved[TailSettings]) -> int:
    """Print the last events of a run; -f goes on with what happens."""
    settings = resolved.settings
    if settings.lines < 0:
        raise InvalidSetting(f"--lines must not be negative, not {settings.lines}", "lines")
    path = find_run(settings.run, settings.out)
    tail = Tail(path, time.sleep)
    begun = list(tail.new())
    for line in chain(begun[max(0, len(begun) - settings.lines) :], tail.until_finished() if settings.follow else ()):
        _say(line)
    return 0


def track_command(resolved: Resolved[TrackSettings]) -> int:
    """Feed TensorBoard or Weights & Biases with a run."""
    settings = resolved.settings
    require(settings.to)
    path = find_run(settings.run, settings.out)
    reader = LogReader(path / LOG)
    with Tracker(settings.to, path, print, Secrets().redact) as tracker:
        while True:
            written = is_written(path)
            entries, again = reader.read()
            if again:
                raise UserError(f"the log of {path} was cut or replaced while it was read: give the command again")
            for entry in entries:
                tracker.feed(entry)
            ended = entries and isinstance(entries[-1].event, OVER)
            if tracker.failed or ended or not settings.follow or not written:
                return 1 if tracker.failed else 0
            time.sleep(POLL_S)


# ---- tail


class Tail:
    """The events of the run in `path` as lines, those of a search inside it among them; `finished` is whether the last
    event of the run says so."""

    def __init__(self, path: Path, sleep: Callable[[float], None]) -> None:
        self.path, self.sleep, self.finished = path, sleep, False
        self._readers = {search: LogReader(path / search / LOG) for search in ("", BEST_OF_N)}
        self._formatters = {search: EventFormatter(search) for search in self._readers}

    def new(self) -> Iterator[str]:
        """Lines of the entries since the last call, in the order of time."""
        lines = [self._lines(search) for search in self._readers]
        yield from (line for _, line in heapq.merge(*lines, key=lambda timed: timed[0]))

    def _lines(self, search: str) -> list[tuple[float, str]]:
        """The new lines of one log, each with its time."""
        entries, again = self._readers[search].read()
        if not search and (entries or again):
            self.finished = bool(entries) and isinstance(entries[-1].event, OVER)
        if again:
            self._formatters[search] = EventFormatter(search)
        with explain_malformed(self.path):
            lines = [(entry.at, self._formatters[search].line(entry)) for entry in entries]
        if not again:
            return lines  # else they were printed before
        where = f"{search}: " if search else ""
        return [(time.time(), f"{where}the log was cut or replaced: {len(entries)} events are left")]

    def until_finished(self) -> Iterator[str]:
        """Lines as they come; a note and waiting where no process works on the run."""
        idle = False
        while True:
            written = is_written(self.path)  # asked first, so that what is logged before it ends is printed
            yield from self.new()
            if self.finished:
                return
            if not written and not idle:
                yield "no process works on this run now; waiting for one that resumes it (Ctrl-C ends)"
            idle = not written
            self.sleep(POLL_S)


# ---- fetch


def fetch_command(resolved: Resolved[FetchSettings]) -> int:
    """Bring a run from where a copy of it is kept."""
    settings = resolved.settings
    place = Place(settings.address)
    path = settings.out / check_name(place.address.rpartition("/")[2], "run")
    fetched = fetch(place, path)
    what = f"fetched {fetched / 1e6:.1f} MB into {path}" if fetched else f"{path} has all of it"
    with explain_malformed(path):
        started = RunView.read(path).started
    _say(f"{what}; go on with: jaxreward evolve {resume_options(path, started, place.parent)} --resume")
    return 0


COMMANDS = (
    Command("runs list", ListSettings, run=list_command, config=False),
    Command("runs show", ShowSettings, run=show_command, config=False),
    Command("runs tail", TailSettings, run=tail_command, config=False, examples=("runs tail first --follow",)),
    Command("runs compare", CompareSettings, run=compare_command, config=False),
    Command("runs fetch", FetchSettings, run=fetch_command, config=False,
            examples=("runs fetch s3://bucket/runs/first",)),
    Command("runs track", TrackSettings, run=track_command, config=False,
            examples=("runs track first --to tensorboard wandb",)),
)  # fmt: skip
