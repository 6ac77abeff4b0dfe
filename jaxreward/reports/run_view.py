"""A run read from its folder, without the strategy, the task or a device, also while it is being written."""

from __future__ import annotations

import fcntl
import os
from collections import Counter
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Literal

from jaxreward import files
from jaxreward.errors import FileProblem, UnusableFile, UserError, why_unreadable
from jaxreward.records import SUCCESS, Candidate, Exchange, Measure, Ratings, Result, Score
from jaxreward.reports.timeline import BEST_OF_N, Period, Timeline, listed_periods
from jaxreward.runs import Baseline, Entry, Finished, Progress, RunStarted, fold, read_log, read_transcript
from jaxreward.runs.provenance import lineage, read_header
from jaxreward.runs.ratings import read_ratings
from jaxreward.runs.run import no_run
from jaxreward.runs.transcripts import TRANSCRIPT

FINAL_BEST = "best"
"""Name of the baseline event that is the winner trained again on fresh seeds."""

Standing = Literal["running", "finished", "failed", "paused", "stopped"]
"""`failed`: it ended and nothing was ever trained. `stopped`: no process writes the run, and its log has no end (it was
killed, or the machine went down)."""


@dataclass(frozen=True)
class RunView:
    """A run as its log and transcript hold it.

    Attributes:
        path: the run's folder.
        entries: of its log.
        progress: their fold, without the strategy's state.
        exchanges: of its transcript.
        standing: whether a process writes it now, and if none does, how it ended.
    """

    path: Path
    entries: list[Entry]
    progress: Progress[None]
    exchanges: list[Exchange]
    standing: Standing

    @classmethod
    def read(cls, path: Path) -> RunView:
        """The run in `path`.

        Raises:
            UnknownName: there is no run.
            UnusableFile: its log is damaged before its last line, or a file is not regular.
        """
        entries = read_log(path / "events.jsonl")
        if not entries or not isinstance(entries[0].event, RunStarted):
            raise no_run(path, "a run's folder has an events.jsonl with at least one event")
        progress: Progress[None] = fold((entry.event for entry in entries), None, lambda state, _: state)
        exchanges = read_transcript(path / "transcripts" / TRANSCRIPT)
        ended = progress.ended
        standing: Standing = "running" if is_written(path) else ended.type if ended else "stopped"
        return cls(path, entries, progress, exchanges, standing)

    @property
    def name(self) -> str:
        return self.path.resolve().name

    @property
    def started(self) -> RunStarted:
        """The first event: the settings and versions."""
        assert self.progress.started is not None
        return self.progress.started

    @property
    def measure(self) -> Measure:
        """The metric of the task."""
        return next((r.score.measure for r in self.results.values() if r.score), self.started.measure or SUCCESS)

    @property
    def trained_measure(self) -> Measure:
        """The metric of the final training: of a search on demonstrations another than the one that it searched by."""
        fresh = (baseline.score for baseline in self.progress.baselines.values())
        return next((score.measure for score in fresh if score is not None), self.measure)

    @property
    def treated(self) -> str:
        """What the search does with candidates: they are `trained`, or, on demonstrations, `scored` alone."""
        return "scored" if self.progress.config.get("objective") == "demonstrations" else "trained"

    @cached_property
    def results(self) -> dict[str, Result]:
        """All results by candidate id in the order of the requests, those of unfinished generations included."""
        found = dict(self.progress.results)
        for generation in self.progress.in_work.values():
            for request in generation.requests:
                if (result := generation.result(request.id)) is not None:
                    found[request.id] = result
        return found

    @cached_property
    def ratings(self) -> Ratings | None:
        """What a model rated of the agents; None where nothing is, or what was rated are other programs by now."""
        best = self.best.candidate.summary if self.best is not None else None
        digests = {name: baseline.digest for name, baseline in self.progress.baselines.items()}
        digests.setdefault(FINAL_BEST, best.digest if best is not None else "")
        return read_ratings(self.path, digests)

    @property
    def waiting(self) -> tuple[str, ...]:
        """Ids of the candidates of unfinished generations that have no result yet."""
        return tuple(r.id for generation in self.progress.in_work.values() for r in generation.pending())

    @cached_property
    def best(self) -> Result | None:
        """The best candidate by the strategy: the one in `best_interface.py`.

        That file is written after every generation; where it is missing, the candidate with the best score.
        """
        ended = self.progress.ended
        if isinstance(ended, Finished) and ended.best in self.results:
            return self.results[ended.best]
        digest = self._kept_digest()
        scored = [r for r in self.results.values() if r.score]
        kept = [r for r in scored if r.candidate.summary and r.candidate.summary.digest == digest]
        return max(kept or scored, key=lambda r: r.score.merit if r.score else 0.0, default=None)

    def _kept_digest(self) -> str | None:
        path = self.path / "best_interface.py"
        try:
            return read_header(files.read_text(path)).get("digest")
        except FileNotFoundError:
            return None
        except (OSError, UnicodeDecodeError) as error:
            message = f"{path} cannot be read ({why_unreadable(error)}): move it away"
            raise UnusableFile(message, path, FileProblem.UNREADABLE) from error

    @property
    def ancestry(self) -> tuple[Candidate, ...]:
        """The best candidate and its ancestors, nearest first."""
        return () if self.best is None else lineage(self.results, self.best.candidate.id)

    @property
    def final(self) -> Score | None:
        """The score of the winner on fresh seeds, where it was trained again, and of this very winner."""
        known = self.progress.baselines.get(FINAL_BEST)
        summary = self.best.candidate.summary if self.best else None
        return known.score if known and summary and known.digest == summary.digest else None

    @property
    def baselines(self) -> dict[str, Baseline]:
        """The baselines by name, without the winner's own final training."""
        return {name: b for name, b in self.progress.baselines.items() if name != FINAL_BEST}

    @cached_property
    def best_of_n(self) -> RunView | None:
        """The best-of-n search inside this run, if there is one and its log can be read."""
        try:
            files.require_folder(self.path / BEST_OF_N)
            return RunView.read(self.path / BEST_OF_N)
        except (UserError, OSError):
            return None

    @cached_property
    def timeline(self) -> Timeline:
        """Wall time by phase, generations, trained candidates."""
        return Timeline(self.entries)

    @cached_property
    def periods(self) -> list[Period]:
        """The generations and what was done outside of them, the best-of-n search apart."""
        return listed_periods(self.timeline, self.best_of_n.timeline if self.best_of_n else None)

    @property
    def failures(self) -> dict[str, int]:
        """Candidates without a score by the stage that they failed at, the most frequent first."""
        stages = (r.failure.stage for r in self.results.values() if r.failure)
        return dict(Counter[str](stages).most_common())

    @property
    def tokens(self) -> int:
        """Tokens of language models, those of its best-of-n search included."""
        own = sum(e.prompt_tokens + e.completion_tokens for e in self.exchanges)
        return max(own, self.progress.spent.tokens) + (self.best_of_n.tokens if self.best_of_n else 0)

    @property
    def cost_usd(self) -> float:
        """Dollars for them as far as prices are known, calls without an answer so far included."""
        own = sum(e.cost_usd or 0.0 for e in self.exchanges)
        return max(own, self.progress.spent.cost_usd) + (self.best_of_n.cost_usd if self.best_of_n else 0.0)

    @property
    def reason(self) -> str:
        """Why it ended, or last paused; empty while it runs, and where the log has no end."""
        ended = self.progress.ended
        return ended.reason if ended is not None and self.standing != "running" else ""

    @property
    def wall_s(self) -> float:
        """Seconds in which a process worked on it."""
        return self.timeline.wall_s

    @property
    def last_at(self) -> float:
        """When the last event was written, in Unix seconds."""
        return self.entries[-1].at


def is_written(path: Path) -> bool:
    """Whether a process writes the run in `path`, and so holds the lock of its log: asked by a shared lock that is
    released at once.

    Raises:
        UnusableFile: the lock is not a regular file.
    """
    lock = path / "events.lock"
    try:
        file = files.open_file(lock)
    except files.NotAFile as error:
        message = f"{lock} cannot be used: {error.strerror}; move it away"
        raise UnusableFile(message, lock, FileProblem.WRONG_KIND) from error
    except OSError:
        return False
    try:
        fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError as error:
        return isinstance(error, BlockingIOError)  # any other: a file system without locks
    finally:
        os.close(file)
    return False
