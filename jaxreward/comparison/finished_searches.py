"""Finished searches read from their logs: rows of a table, curves of a plot."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product, starmap
from pathlib import Path
from statistics import mean
from typing import Any, NamedTuple

import numpy as np
from pydantic import Field, ValidationError

from jaxreward import files
from jaxreward.config import Malformed, label_of, parse_json
from jaxreward.errors import FileProblem, UnusableFile
from jaxreward.evolution.learner_options import LearnerName
from jaxreward.operators import REPEATS
from jaxreward.records import ALIGNMENT, SUCCESS, Measure, Record, Score
from jaxreward.records.ratings import ALIGNMENT_RATE
from jaxreward.reports.tables import Difference, mean_over, paired_difference, task_title
from jaxreward.reports.timeline import BEST_OF_N, Timeline
from jaxreward.runs import Finished, Spent, fold, read_log
from jaxreward.runs.events import OVER, Config
from jaxreward.runs.malformed import explain_malformed
from jaxreward.runs.ratings import read_ratings


class SearchKey(NamedTuple):
    """Which search of a comparison."""

    task: str
    strategy: str
    proposer: str
    seed: int

    @property
    def label(self) -> str:
        return ", ".join([*map(label_of, self[:3]), f"search seed {self.seed}"])

    @property
    def name(self) -> str:
        """Its folder in that of its task."""
        return folder_of(f"{label_of(self.strategy)}-{label_of(self.proposer)}-{self.seed}")

    def path(self, out: Path) -> Path:
        """Its folder in that of the comparison."""
        return out / folder_of(self.task) / self.name


class Grid(Record):
    """What is compared: every strategy with every proposer on every task, with search seeds from 0."""

    tasks: tuple[str, ...]
    strategies: tuple[str, ...]
    proposers: tuple[str, ...]
    search_seeds: int

    def searches(self) -> Iterator[SearchKey]:
        return starmap(SearchKey, product(self.tasks, self.strategies, self.proposers, range(self.search_seeds)))


def joined(grids: Sequence[Grid]) -> Grid:
    """The smallest grid that has all of `grids`, of which there is at least one."""

    def all_of(name: str) -> tuple[str, ...]:
        return tuple(dict.fromkeys(value for grid in grids for value in getattr(grid, name)))

    most = max(grid.search_seeds for grid in grids)
    return Grid(
        tasks=all_of("tasks"), strategies=all_of("strategies"), proposers=all_of("proposers"), search_seeds=most
    )


def searches_of(grids: Sequence[Grid]) -> list[SearchKey]:
    """Every search of one of `grids`, in the order of `joined`, which may have more."""
    asked = {search for grid in grids for search in grid.searches()}
    return [search for search in joined(grids).searches() if search in asked] if grids else []


def folder_of(task: str) -> str:
    """The folder of a task in that of a comparison."""
    return re.sub(r"[^A-Za-z0-9._-]", "-", task).lstrip("-.")


@dataclass(frozen=True)
class Search:
    """One search, read from its log.

    `score` is of the best on fresh seeds, `search_score` what the search itself measured of it; both
    are None where no candidate has a score. `scores` are those of the trained candidates in order,
    None for a failure, and `device_s` the seconds of compiling and training after which each was known.
    `spent`, `compile_s` and `run_s` are of the search, without the training on fresh seeds. `reason`
    is why it ended, or last paused. `alignment` is how far the best does the subtasks of the instruction, on fresh
    seeds, where the task has one, and `rate` its alignment rate by a model, where one rated it: `rated_by` says
    which, and how.
    """

    path: Path
    key: SearchKey
    config: Mapping[str, Any]
    finished: bool
    reason: str
    score: Score | None
    search_score: Score | None
    spent: Spent
    compile_s: float
    run_s: float
    scores: tuple[float | None, ...]
    device_s: tuple[float, ...]
    measure: Measure = SUCCESS
    alignment: Score | None = None
    rate: Score | None = None
    rated_by: str = ""

    @property
    def budget(self) -> int:
        """Candidates that it was to train."""
        return int(self.config.get("candidates", 0))

    @property
    def used(self) -> dict[str, float]:
        """What it used, by name."""
        names = ("attempts", "trained", "failed", "duplicate", "words", "env_steps", "calls", "tokens",
                 "unpriced_tokens", "cost_usd")  # fmt: skip
        return {name: getattr(self.spent, name) for name in names} | {"compile_s": self.compile_s, "run_s": self.run_s}

    @cached_property
    def best_so_far(self) -> np.ndarray:
        """Best score among the first k candidates, k = 0 .. N: the worst, 0 of a rate, before the first, and a failure
        changes nothing."""
        worst, sign = self.measure.worst, self.measure.oriented(1.0)
        scores = np.asarray([worst, *(worst if s is None else s for s in self.scores)])
        return sign * np.maximum.accumulate(sign * scores)


def read_search(path: Path) -> Search | None:
    """The search in the run directory `path`, None where none has begun.

    Raises:
        UserError: a log that is damaged or contradicts itself.
    """
    with explain_malformed(path):
        entries = read_log(path / "events.jsonl")
        progress = fold((entry.event for entry in entries), None, lambda state, _: state)  # no state of a strategy
        timeline = Timeline(entries)
        ended, best = progress.ended, timeline.best
        if isinstance(ended, Finished):
            best = progress.results[ended.best] if ended.best else None
    started, fresh = progress.started, progress.baselines.get("best")
    if started is None:
        return None
    found = best.score if best else None
    rated = read_ratings(path, {"best": fresh.digest}) if fresh is not None else None
    training = progress.config.get("objective", "training") == "training"
    # what is scored again is no new candidate; on other data it is
    candidates = [c for c in timeline.candidates if not (training and c.result.candidate.operator in REPEATS)]
    return Search(
        path=path, key=SearchKey(started.task, started.strategy, started.proposer, started.seed),
        config=progress.config, finished=isinstance(ended, OVER),  # one that found nothing counts as the worst
        reason=ended.reason if ended else "it was killed, or still runs",
        score=fresh.score if fresh and found else None, search_score=found,
        spent=progress.spent, compile_s=timeline.compile_s, run_s=timeline.run_s,
        scores=tuple(c.result.score.mean if c.result.score else None for c in candidates),
        device_s=tuple(c.device_s for c in candidates),
        measure=started.measure,
        alignment=fresh.feedback.alignment if fresh and fresh.feedback else None,
        rate=rated.programs["best"].score if rated is not None else None,
        rated_by=rated.by if rated is not None else "",
    )  # fmt: skip


class Dense(Record):
    """What a person's dense reward reaches, with the task's own observation."""

    digest: str
    score: Score
    alignment: Score | None = Field(default=None, exclude_if=lambda score: score is None)


class Sparse(Record):
    """The task's own observation and reward, trained on the seeds that the best of each search is trained on, and its
    `dense` reward beside, where it has one; comparisons of before lack that.

    Kept as `sparse.json` in the folder of the task's searches; `ppo` are the hyperparameters of the `learner`,
    `env_steps` are of all `seeds` and both rewards together and `steps` of one seed. `identity` is that of a task that
    was an object of Python, `code` that of one in a file, and `parts` are what either consists of.
    """

    task: str
    digest: str
    seeds: int
    steps: int
    task_arg: tuple[str, ...] = ()
    learner: LearnerName = "ppo"
    ppo: Config = Field(default_factory=dict)
    score: Score
    alignment: Score | None = Field(default=None, exclude_if=lambda score: score is None)
    dense: Dense | None = Field(default=None, exclude_if=lambda dense: dense is None)
    env_steps: int = 0
    compile_s: float = 0.0
    run_s: float = 0.0
    identity: str = ""
    code: str = ""
    parts: dict[str, str] = Field(default_factory=dict)
    versions: dict[str, str] = Field(default_factory=dict)

    def rows(self) -> dict[str, tuple[Score, Score | None]]:
        """By the name of the reward its score and the alignment with the task's instruction, as far as that is
        measured."""
        dense = {"dense": (self.dense.score, self.dense.alignment)} if self.dense else {}
        return {"sparse": (self.score, self.alignment), **dense}


def read_sparse(path: Path) -> Sparse | None:
    """The training in the file `path`, None where there is none.

    Raises:
        UnusableFile: the file is damaged, or cannot be read.
    """
    if not files.is_there(path):
        return None
    try:
        return Sparse.model_validate(parse_json(files.read_text(path)))
    except (ValidationError, Malformed, UnicodeDecodeError) as error:
        message = f"{path} is damaged: delete it, and it is trained again"
        raise UnusableFile(message, path, FileProblem.DAMAGED) from error
    except OSError as error:
        message = f"{path} cannot be read ({error.strerror or error}): correct that, or move it away"
        raise UnusableFile(message, path, FileProblem.UNREADABLE) from error


# ---- rows


@dataclass(frozen=True)
class Row:
    """The searches of one strategy with one proposer on one task: `searches` have finished of those `asked` for."""

    task: str
    strategy: str
    proposer: str
    searches: tuple[Search, ...]
    asked: int
    versus_best_of_n: Difference | None = None

    @property
    def title(self) -> str:
        """The task with its options, where a search has begun."""
        return task_title(self.task, self.searches[0].config.get("task_arg", ()) if self.searches else ())

    @property
    def measure(self) -> Measure:
        """The metric of the task."""
        return self.searches[0].measure if self.searches else SUCCESS

    @property
    def score(self) -> Score | None:
        """On fresh seeds: mean over searches; None where none has finished."""
        return mean_over([s.score for s in self.searches], self.measure)

    @property
    def search_score(self) -> Score | None:
        """As measured by the searches themselves, mean over searches."""
        return mean_over([s.search_score for s in self.searches], self.measure)

    @property
    def alignment(self) -> Score | None:
        """How far what was found does the subtasks of the instruction, on fresh seeds: mean over searches; None where
        that is not measured."""
        known = [s.alignment for s in self.searches]
        return mean_over(known, ALIGNMENT) if any(score is not None for score in known) else None

    @property
    def rate(self) -> Score | None:
        """The alignment rate of what was found, by a model: mean over searches; None where one of them is not rated, or
        not in the same way over as many seeds."""
        known = [s.rate for s in self.searches]
        alike = len({(s.rated_by, s.rate.n if s.rate is not None else 0) for s in self.searches}) == 1
        return mean_over(known, ALIGNMENT_RATE) if alike and None not in known else None

    @property
    def used(self) -> dict[str, float]:
        """What one search used, by name, mean over searches; {} where none has finished."""
        each = [s.used for s in self.searches]
        return {name: mean(used[name] for used in each) for name in (each[0] if each else ())}


def rows_of(searches: Iterable[Search], *grids: Grid, wanted: Grid | None = None) -> list[Row]:
    """A row for every task, strategy and proposer of one of `grids`, in this order; searches that have not finished
    are left out.

    Args:
        wanted: what of that is asked for now; of the rest only what has finished counts.
    """
    found = {s.key: s for s in searches if s.finished}
    asked: dict[tuple[str, str, str], list[int]] = {}
    now = set(wanted.searches()) if wanted else None
    for key in searches_of(grids):
        if now is None or key in now or key in found:
            asked.setdefault(key[:3], []).append(key.seed)
    rows = []
    for (task, strategy, proposer), seeds in asked.items():
        mine, samples = (
            {k: found[key] for k in seeds if (key := SearchKey(task, name, proposer, k)) in found}
            for name in (strategy, BEST_OF_N)
        )
        pairs = [] if strategy == BEST_OF_N else [(mine[k].score, samples[k].score) for k in mine if k in samples]
        measure = next((s.measure for s in mine.values()), SUCCESS)
        delta = paired_difference(pairs, measure)
        rows.append(Row(task, strategy, proposer, tuple(mine.values()), len(seeds), delta))
    return rows


# ---- curves


@dataclass(frozen=True)
class Curve:
    """A step function for each of S searches: `values` (S, P), each holding from its place in `at` (P,) to the next."""

    at: np.ndarray
    values: np.ndarray


def over_candidates(searches: Sequence[Search]) -> Curve:
    """Best so far after k candidates, to the most that one of the searches trained; the others keep what they had."""
    last = max(1, *(len(s.scores) for s in searches))
    at = np.arange(1, last + 1)
    return Curve(at, np.stack([s.best_so_far[np.minimum(at, len(s.scores))] for s in searches]))


def over_seconds(searches: Sequence[Search]) -> Curve:
    """Best so far after so many device seconds, from when each search knows its first candidates to the end of the
    longest; the others keep what they had."""
    times = [np.asarray(s.device_s or (0.0,)) for s in searches]
    at = np.unique(np.concatenate(times))
    at = at[at >= max(t[0] for t in times)]
    known = [np.searchsorted(np.asarray(s.device_s), at, side="right") for s in searches]
    return Curve(at, np.stack([s.best_so_far[k] for s, k in zip(searches, known, strict=True)]))
