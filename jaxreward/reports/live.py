"""Progress of a search while it runs: redrawn lines on a terminal or in a notebook, or plain lines in a log."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

from rich.console import Console
from rich.live import Live as Screen
from rich.text import Text

from jaxreward.formatting import printable
from jaxreward.operators import WORDS
from jaxreward.records import Measure, Result
from jaxreward.reports.model_costs import cost_line
from jaxreward.reports.notebook import NotebookScreen
from jaxreward.reports.run_tables import score_text
from jaxreward.reports.status import Status, TrainingBar
from jaxreward.reports.tables import figure
from jaxreward.reports.watched import watched_line
from jaxreward.runs import Asked, Entry, Progress
from jaxreward.runs.fold import Spent

QUIET_S = 60.0
"""Least seconds between two lines in a log while something long is running."""

_PULSE_S = 5.0
_BARS = 8
"""Trainings that are drawn at a time, at most."""


class Live:
    """Shows the progress of a run; a context manager around `jaxreward.evolution.run_search` or a training.

    Without a terminal it writes a line for each generation and, while something long is running, at most one a minute.

    Args:
        console: where it is shown.
        candidates: budget of the search, for the lines of its generations.
        clock: monotonic seconds.
    """

    def __init__(self, console: Console, candidates: int = 0, clock: Callable[[], float] = time.monotonic) -> None:
        self.console, self.candidates, self._clock = console, candidates, clock
        self.status = Status(clock())
        self.part = ""  # of a larger work, `cell 3 of 12`: named with what is done in it
        self._said = clock()
        self._ended = threading.Event()
        self._screen: Screen | NotebookScreen | None = None
        if console.is_jupyter and not console.quiet:
            self._screen = NotebookScreen(self._draw)
        elif console.is_terminal and not console.is_dumb_terminal:
            # what a program prints to a file stays there
            redirect = not console.stderr or sys.stdout.isatty()
            self._screen = Screen(
                get_renderable=self._draw, console=console, refresh_per_second=2, transient=True,
                redirect_stdout=redirect,
            )  # fmt: skip

    def __enter__(self) -> Live:
        if self._screen is not None:
            self._screen.start()
        else:
            threading.Thread(target=self._pulse, daemon=True, name="progress").start()
        return self

    def __exit__(self, *exception: object) -> None:
        self._ended.set()
        if self._screen is not None:
            self._screen.stop()

    def note(self, text: str) -> None:
        """Print a line."""
        self.console.print(text)
        self._said = self._clock()

    def proposing(self, text: str) -> None:
        """What the proposer is doing now."""
        self.status.asking = f"{self.part}: {text}" if self.part else text

    def training(self, label: str, progress: Any) -> None:
        """`progress` is a `jaxreward.training.Progress`."""
        self.status.training(f"{self.part}, {label}" if self.part else label, progress, self._clock())

    def logged(self, entry: Entry, progress: Progress[Any]) -> None:
        """An event of a run, and the run after it."""
        self.status.logged(entry, progress, self._clock())
        if self._screen is not None and isinstance(entry.event, Asked):
            # A person who votes on the terminal types undisturbed.
            votes = any(request.operator == "prefer" for request in entry.event.requests)
            if votes and progress.config.get("judge") == "terminal":
                self._screen.stop()
            else:
                self._screen.start()

    # ---- a terminal

    def _draw(self) -> Text:
        status, now, width = self.status, self._clock(), self.console.width
        lines = [_fitting([status.generation()], width, style="bold"), _fitting(status.head(), width)]
        bars = list(status.bars.values())
        for bar in bars[:_BARS]:
            lines += self._bar(bar, width, now)
        if len(bars) > _BARS:
            lines.append(_fitting([f"{len(bars) - _BARS} more in training"], width))
        if not bars or len(bars) > 1:
            lines.append(_fitting([status.now_doing()], width))
        lines.append(_fitting([*status.times(now), *status.shares()], width))
        lines.append(_fitting([status.cost()], width))
        return Text("\n", no_wrap=True).join(line for line in lines if line)

    def _bar(self, bar: TrainingBar, width: int, now: float) -> list[Text]:
        full, empty = ("#", "-") if self.console.options.ascii_only else ("\u2501", "\u2500")
        cells = min(30, width // 4)
        done = round(cells * bar.share)
        line = Text.assemble((full * done, "green"), (empty * (cells - done), "dim"), f" {bar.share:4.0%} ")
        line.append_text(_fitting(bar.words(now), width - len(line)))
        named = self.status.generation().startswith(f"{bar.label}:")
        return [*([] if named else [_fitting([bar.label], width)]), line]

    # ---- a log

    def _pulse(self) -> None:
        while not self._ended.wait(_PULSE_S):
            self.beat()

    def beat(self) -> None:
        """Write a line if something has run for `QUIET_S` without one."""
        if self._clock() - self._said >= QUIET_S and self.status.under_way:
            self.note(self.status.sentence(self._clock()))

    # ---- generations

    def generation(self, index: int, results: Sequence[Result], best: Result | None, spent: Spent) -> None:
        """One line for a complete generation."""
        if results and all(r.candidate.operator in WORDS for r in results):
            self.note(_words_line(index, results))
            return
        trained = sorted((r.score for r in results if r.score), key=lambda score: score.merit, reverse=True)
        failed = [r.failure.stage for r in results if r.failure]
        only_scored = bool(trained) and not any(r.env_steps for r in results)  # on demonstrations
        text = f"generation {index}: {len(trained)} {'scored' if only_scored else 'trained'}"
        if trained:
            shown = trained if len(trained) <= _MOST else trained[:_FEW]
            text += f", {trained[0].measure.name} {' '.join(_short(s.mean, s.measure) for s in shown)}"
            text += f" and {len(trained) - len(shown)} others" if len(shown) < len(trained) else ""
        if failed:
            text += f"; without a score: {', '.join(sorted(failed))}"
        if best is not None and best.score is not None:
            text += f"; best so far {score_text(best.score)}, {best.candidate.id}"
        if self.candidates:
            text += f"; {spent.trained}/{self.candidates} candidates"
            text += "" if only_scored else f", {spent.compile_s + spent.run_s:.0f} device s"
        if spent.calls:
            text += f"; {cost_line(spent)}"
        self.note(text)


_MOST, _FEW = 64, 8
"""Scores of a generation in a line, and how many of more."""


def _short(value: float, measure: Measure) -> str:
    """A value in a line of many, with two digits for a rate."""
    return figure(value, 2 if measure.rate else 3, rate=measure.rate)


def _words_line(index: int, results: Sequence[Result]) -> str:
    """One line for a generation of requests for words."""
    asked = ", ".join(sorted({r.candidate.operator for r in results}))
    failed = [r.failure for r in results if r.failure]
    if len(failed) == len(results):
        return f"generation {index}: {asked}: {failed[0].message}; the search goes on without"
    if asked == "expand":  # few words, about what they cost
        return f"generation {index}: more data, {'; '.join(r.words for r in results if r.words)}"
    if asked == "watch" and (line := watched_line(results)):
        return f"generation {index}: {line}"
    return f"generation {index}: {asked}: {len(results) - len(failed)} of {len(results)} answered"


def _fitting(parts: Sequence[str], width: int, style: str = "") -> Text:
    """The first parts that fit into a line; a first one that is too long is cut."""
    line = ""
    for part in filter(None, parts):
        longer = f"{line}, {part}" if line else part
        if len(longer) > width:
            break
        line = longer
    if not line:
        line = next(iter(filter(None, parts)), "")[:width]
    return Text(printable(line).replace("\n", " "), style)
