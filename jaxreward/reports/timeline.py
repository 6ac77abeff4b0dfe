"""One pass over the log of a search: its wall time by phase, its generations, and the candidates that it trained."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from jaxreward.operators import WORDS
from jaxreward.records import TRAINED_STAGES, Measure, Result
from jaxreward.runs import (
    Asked,
    Baseline,
    Checked,
    Entry,
    Event,
    Failed,
    Finished,
    Proposed,
    Repair,
    RunStarted,
    Told,
    Trained,
    Withdrawn,
)

PROPOSING, CHECKING, TRAINING, FINAL, REST = "proposing", "checking", "training", "final training", "rest"

SEARCHING = "searching"
"""What an asynchronous search spends its time on, whose proposing, checking and training overlap."""

BEST_OF_N = "best-of-n"
"""The baseline of independent samples: its name, its strategy's, and that of the folder of its search inside a run."""

_SHORTEST_S = 0.05
"""Periods without candidates that are shorter are not listed."""


_PHASES = {
    "proposed": PROPOSING, "withdrawn": PROPOSING, "checked": CHECKING, "trained": TRAINING, "baseline": FINAL,
}  # fmt: skip
"""What the process spent the time before an event of this type on, if not on the rest."""


def better(mine: Result | None, other: Result) -> Result | None:
    """The result with the better score, the first of equal ones; None where neither has one."""
    if other.score is None:
        return mine
    return other if mine is None or mine.score is None or other.score.merit > mine.score.merit else mine


@dataclass
class Period:
    """A generation, or a part of the run outside of any.

    Attributes:
        name: `start`, `generation 3`, `best-of-n` or `final`.
        index: of a generation, else None.
        seconds: wall seconds by phase; none of a generation of an asynchronous search.
        compile_s: device seconds of compiling, of all devices together.
        run_s: device seconds of training.
        candidates: programs that left the trainer, baselines included.
        scored: candidates with a score.
        failed: candidates without one, duplicates apart.
        duplicate: candidates that compute what an earlier one does.
        best: the best result of its candidates.
        best_so_far: the best result of the search at its end.
        complete: whether all results of the generation are known.
    """

    name: str
    index: int | None = None
    seconds: dict[str, float] = field(default_factory=dict)
    compile_s: float = 0.0
    run_s: float = 0.0
    candidates: int = 0
    scored: int = 0
    failed: int = 0
    duplicate: int = 0
    best: Result | None = None
    best_so_far: Result | None = None
    complete: bool = False

    @property
    def wall_s(self) -> float:
        return sum(self.seconds.values())


@dataclass(frozen=True)
class TrainedCandidate:
    """A candidate that left the trainer, and what the search had used by then.

    Candidates of one `Trained` event share env_steps, device_s, wall_s and cost_usd.

    Attributes:
        number: of trained candidates, from 1.
        result: its score or failure.
        best: the best result so far, this one included.
        env_steps: environment steps of all candidates.
        device_s: seconds of compiling and training, of all devices together.
        wall_s: wall seconds.
        cost_usd: dollars for language models.
    """

    number: int
    result: Result
    best: Result | None
    env_steps: int
    device_s: float
    wall_s: float
    cost_usd: float


class Timeline:
    """What the entries of a log add up to; give `add` each in order.

    Args:
        entries: to begin with.
        best: the best result of earlier entries that are not given.

    Attributes:
        seconds: wall seconds by phase; time during which no process worked on the run does not count.
        periods: the generations in order, and what was done outside of them.
        candidates: the trained candidates in order.
        best: the result with the best score so far.
        words: ids of the requests for words.
        env_steps, compile_s, run_s, cost_usd: totals of the search, without baselines.
    """

    def __init__(self, entries: Iterable[Entry] = (), best: Result | None = None) -> None:
        self.seconds: Mapping[str, float] = {}
        self.periods: list[Period] = []
        self.candidates: list[TrainedCandidate] = []
        self.best = best
        self.words: set[str] = set()
        self.env_steps, self.compile_s, self.run_s, self.cost_usd = 0, 0.0, 0.0, 0.0
        self._last: float | None = None
        self.overlapping = False  # whether generations are in work at the same time
        self._of = dict[str | int, Period]()  # by the ids of requests, and by the index of a generation
        for entry in entries:
            self.add(entry)

    @property
    def wall_s(self) -> float:
        return sum(self.seconds.values())

    @property
    def generations(self) -> list[Period]:
        """The generations in order, the unfinished one included."""
        return [period for period in self.periods if period.index is not None]

    def add(self, entry: Entry) -> float:
        """Add the next entry; returns the wall seconds since the one before."""
        event, name = entry.event, _PHASES.get(entry.event.type, REST)
        took = 0.0 if self._last is None or event.type == "resumed" else max(0.0, entry.at - self._last)
        self._last = entry.at
        if isinstance(event, RunStarted):
            self.overlapping = bool(event.config.get("asynchronous"))
        period = self._period(event)
        if self.overlapping and period.index is not None:  # the time since the last event was of several generations
            name = SEARCHING
        else:
            period.seconds[name] = period.seconds.get(name, 0.0) + took
        self.seconds = {**self.seconds, name: self.seconds.get(name, 0.0) + took}  # new: other threads read the old one
        match event:
            case Asked() | Repair():
                self.words |= {request.id for request in event.requests if request.operator in WORDS}
            case Proposed(proposal=proposal):
                self.cost_usd += proposal.cost_usd
                period.failed += proposal.failure is not None and proposal.request_id not in self.words
            case Withdrawn():
                self.cost_usd += event.cost_usd
            case Checked():
                period.failed += not event.verdict.ok
                period.duplicate += event.verdict.ok and event.duplicate_of is not None
            case Trained():
                self._trained(event, period)
            case Baseline():
                period.candidates += 1
                period.compile_s, period.run_s = period.compile_s + event.compile_s, period.run_s + event.run_s
            case Told():
                period.complete = True
            case _:
                pass
        return took

    def of(self, event: Event) -> Period:
        """The period of an event that was added; of one that belongs to no generation, the last period so far."""
        keys: tuple[str | int | None, ...] = ()
        match event:
            case Asked() | Told() | Withdrawn():
                keys = (event.generation,)
            case Repair():
                keys = tuple(request.failed for request in event.requests)
            case Proposed(proposal=proposal):
                keys = (proposal.request_id,)
            case Checked():
                keys = (event.request_id,)
            case Trained():
                keys = tuple(result.candidate.id for result in event.results)
            case _:
                pass
        return next((self._of[key] for key in keys if key in self._of), self.periods[-1])

    def _period(self, event: Event) -> Period:
        if isinstance(event, Asked):
            self.periods.append(Period(f"generation {event.generation}", event.generation, best_so_far=self.best))
            self._of[event.generation] = self.periods[-1]
        elif isinstance(event, Baseline | Finished | Failed) and (not self.periods or self.periods[-1].name != "final"):
            self.periods.append(Period("final"))
        elif not self.periods:
            self.periods.append(Period("start"))
        period = self.of(event)
        if isinstance(event, Asked | Repair):
            self._of |= {request.id: period for request in event.requests}
        return period

    def _trained(self, event: Trained, period: Period) -> None:
        self.env_steps += sum(result.env_steps for result in event.results)
        self.compile_s, self.run_s = self.compile_s + event.compile_s, self.run_s + event.run_s
        period.compile_s, period.run_s = period.compile_s + event.compile_s, period.run_s + event.run_s
        period.candidates += len(event.results)
        for result in event.results:
            period.best, self.best = better(period.best, result), better(self.best, result)
            period.scored += result.score is not None
            period.failed += result.score is None
            if result.failure is None or result.failure.stage in TRAINED_STAGES:
                number, device_s = len(self.candidates) + 1, self.compile_s + self.run_s
                self.candidates.append(TrainedCandidate(
                    number, result, self.best, self.env_steps, device_s, self.wall_s, self.cost_usd
                ))  # fmt: skip
        period.best_so_far = self.best


def listed_periods(timeline: Timeline, samples: Timeline | None = None) -> list[Period]:
    """The periods of a run for a table.

    Args:
        timeline: of the run.
        samples: of its best-of-n search, which ends before the first event of the final training: it becomes a period
            of its own, and its time is taken off that training.
    """
    found = list(timeline.periods)
    place = next((k for k, period in enumerate(found) if period.name == "final"), None)
    if place is not None and samples is not None and samples.periods:
        final = found[place]
        rest = max(0.0, final.seconds.get(FINAL, 0.0) - samples.wall_s)
        trained = sum(period.candidates for period in samples.periods)
        compile_s, run_s = (sum(getattr(p, name) for p in samples.periods) for name in ("compile_s", "run_s"))
        found[place : place + 1] = [
            Period(BEST_OF_N, None, dict(samples.seconds), compile_s, run_s, trained),
            replace(final, seconds={**final.seconds, FINAL: rest}),
        ]
    return [period for period in found if period.wall_s > _SHORTEST_S or period.candidates]


def first_to_reach(candidates: Sequence[TrainedCandidate], measure: Measure, level: float) -> TrainedCandidate | None:
    """The first candidate whose score is `level` or better."""
    return next((c for c in candidates if c.result.score and measure.reaches(c.result.score.mean, level)), None)
