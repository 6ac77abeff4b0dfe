"""The course of a search as its log tells it: where the time went, and what it took to get how far."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from jaxreward.records import TRAINED_STAGES, Measure, Result, Score
from jaxreward.runs import Asked, Baseline, Checked, Entry, Event, Proposed, Told, Trained, Withdrawn

PROPOSING, CHECKING, TRAINING, FINAL, REST = "proposing", "checking", "training", "final training", "rest"


def phase(event: Event) -> str:
    """What a process did until it logged `event`."""
    match event:
        case Proposed() | Withdrawn():
            return PROPOSING
        case Checked():
            return CHECKING
        case Trained():
            return TRAINING
        case Baseline():
            return FINAL
        case _:
            return REST


class Stopwatch:
    """Wall seconds by what they were spent on; the time while no process worked on the run is left out."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self._last: float | None = None

    def add(self, entry: Entry) -> float:
        """Count the time since the entry before; returns it, in seconds."""
        took = 0.0 if self._last is None or entry.event.type == "resumed" else max(0.0, entry.at - self._last)
        self._last = entry.at
        name = phase(entry.event)
        self.seconds = {
            **self.seconds,
            name: self.seconds.get(name, 0.0) + took,
        }  # readers in other threads keep theirs
        return took


@dataclass(frozen=True)
class GenerationCourse:
    """A generation: wall `seconds` by phase, device seconds of all devices together, and what came of it.

    `best` is the best score of its candidates and `best_so_far` that of the search, None where there is none;
    `complete` is False for the one in work.
    """

    index: int
    seconds: Mapping[str, float] = field(default_factory=dict)
    compile_s: float = 0.0
    run_s: float = 0.0
    trained: int = 0
    failed: int = 0
    duplicate: int = 0
    best: Score | None = None
    best_so_far: Score | None = None
    complete: bool = False

    @property
    def wall_s(self) -> float:
        return sum(self.seconds.values())


def better(mine: Score | None, other: Score | None) -> Score | None:
    """The better of two scores, the first of equal ones."""
    if mine is None or other is None:
        return mine or other
    return other if other.merit > mine.merit else mine


def generations(entries: Iterable[Entry]) -> list[GenerationCourse]:
    """The generations of a log in order, the one in work included."""
    found: list[GenerationCourse] = []
    watch, so_far = Stopwatch(), None
    for entry in entries:
        event, took = entry.event, watch.add(entry)
        if isinstance(event, Asked):
            found.append(GenerationCourse(event.generation, best_so_far=so_far))
        if not found or found[-1].complete:
            continue
        now = found[-1]
        name = phase(event)
        now = replace(now, seconds={**now.seconds, name: now.seconds.get(name, 0.0) + took})
        match event:
            case Proposed():
                now = replace(now, failed=now.failed + (event.proposal.failure is not None))
            case Checked():
                duplicate = event.verdict.ok and event.duplicate_of is not None
                failed = now.failed + (not event.verdict.ok)
                now = replace(now, failed=failed, duplicate=now.duplicate + duplicate)
            case Trained():
                for result in event.results:
                    now, so_far = replace(now, best=better(now.best, result.score)), better(so_far, result.score)
                scored = sum(result.score is not None for result in event.results)
                now = replace(
                    now, compile_s=now.compile_s + event.compile_s, run_s=now.run_s + event.run_s,
                    trained=now.trained + scored, failed=now.failed + len(event.results) - scored, best_so_far=so_far,
                )  # fmt: skip
            case Told():
                now = replace(now, complete=True)
            case _:
                pass
        found[-1] = now
    return found


@dataclass(frozen=True)
class Reached:
    """A candidate that left the trainer, and what the search had used when its result was known.

    `number` counts trained candidates from 1. Candidates that trained side by side share the rest: environment steps,
    device seconds of all devices together, wall seconds, and dollars for language models.
    """

    number: int
    result: Result
    env_steps: int
    device_s: float
    wall_s: float
    cost_usd: float


def course_of(entries: Iterable[Entry]) -> list[Reached]:
    """The trained candidates of a log in order."""
    found: list[Reached] = []
    watch, steps, device_s, wall_s, usd = Stopwatch(), 0, 0.0, 0.0, 0.0
    for entry in entries:
        event = entry.event
        wall_s += watch.add(entry)
        if isinstance(event, Proposed):
            usd += event.proposal.cost_usd
        elif isinstance(event, Withdrawn):
            usd += event.cost_usd
        elif isinstance(event, Trained):
            steps += sum(result.env_steps for result in event.results)
            device_s += event.compile_s + event.run_s
            trained = [r for r in event.results if r.failure is None or r.failure.stage in TRAINED_STAGES]
            first = len(found) + 1
            found += [Reached(first + k, r, steps, device_s, wall_s, usd) for k, r in enumerate(trained)]
    return found


def first_to_reach(points: Sequence[Reached], measure: Measure, level: float) -> Reached | None:
    """The first candidate whose score is `level` or better."""
    return next((p for p in points if p.result.score and measure.reaches(p.result.score.mean, level)), None)
