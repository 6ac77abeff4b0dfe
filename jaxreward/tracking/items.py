"""What trackers show of a run, computed from its events alone.

The same log gives the same items while the run goes on, after it was resumed, and after it has ended. Steps are trained
candidates, counted from 1; those of a learning curve are environment steps of a seed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from jaxreward.config import label_of
from jaxreward.records import Feedback, Result, Score
from jaxreward.reports.tables import interval
from jaxreward.reports.timeline import Timeline, TrainedCandidate
from jaxreward.runs import Baseline, Entry, Failed, Finished, Paused, Progress, RunStarted, Told, Trained, advance
from jaxreward.runs.events import json_ready
from jaxreward.runs.toml import flat


@dataclass(frozen=True)
class Started:
    """The start of the run, with its settings by name."""

    at: float
    title: str
    config: dict[str, Any]


@dataclass(frozen=True)
class Scalars:
    """Values by name at a step; those of one step may come in several items."""

    at: float
    step: int
    values: dict[str, float]


@dataclass(frozen=True)
class Curve:
    """A series of a candidate over environment steps."""

    at: float
    candidate: str
    name: str
    steps: tuple[int, ...]
    values: tuple[float, ...]


@dataclass(frozen=True)
class Program:
    """The source of the best candidate so far."""

    at: float
    step: int
    candidate: str
    score: Score
    source: str


COLUMNS = (
    *("candidate", "generation", "operator", "parents", "model", "score", "low", "high", "seeds", "failure"),
    "environment_steps",
)


@dataclass(frozen=True)
class Line:
    """The outcome of a candidate, trained or not: values of `COLUMNS`, None or empty where there is none."""

    at: float
    values: tuple[Any, ...]


@dataclass(frozen=True)
class Ended:
    """The run ended or was paused."""

    at: float
    step: int


Item = Started | Scalars | Curve | Program | Line | Ended


class ItemBuilder:
    """Makes items of the entries of a log, in their order.

    Args:
        redact: hides secrets in text. The log has none; what leaves the machine is searched once more.
    """

    def __init__(self, redact: Callable[[str], str] = lambda text: text) -> None:
        self.redact = redact
        self._progress: Progress[None] = Progress(None)
        self._timeline = Timeline()

    def add(self, entry: Entry) -> list[Item]:
        """The items of the next entry."""
        event, before, trained = entry.event, self._progress, len(self._timeline.candidates)
        self._progress = advance(before, event, lambda state, _: state)
        self._timeline.add(entry)
        match event:
            case RunStarted():
                config = {name: self._plain(value) for name, value in flat(event.config)}
                title = ", ".join(
                    [*map(label_of, (event.task, event.strategy, event.proposer)), f"search seed {event.seed}"]
                )
                return [Started(entry.at, self.redact(title), config)]
            case Trained():
                return self._trained(entry.at, self._timeline.candidates[trained:])
            case Told():
                told = before.in_work.get(event.generation)
                results = [self._progress.results[r.id] for r in told.requests] if told else []
                return [self._line(entry.at, result) for result in results]
            case Baseline() if event.score is not None:
                name = "best_on_fresh_seeds" if event.name == "best" else event.name
                return [Scalars(entry.at, trained, {f"final/{name}": event.score.mean})]
            case Paused() | Finished() | Failed():
                return [Ended(entry.at, trained)]
            case _:
                return []

    def _plain(self, value: Any) -> Any:
        """A setting as the tools accept it: redacted text, numbers, truth values."""
        if isinstance(value, list | tuple):
            return ", ".join(str(self._plain(item)) for item in value)
        return self.redact(value) if isinstance(value, str) else json_ready(value)

    def _trained(self, at: float, candidates: Sequence[TrainedCandidate]) -> list[Item]:
        items: list[Item] = []
        for c in candidates:
            score, best = c.result.score, c.best.score if c.best else None
            if score is not None and c.best is c.result:
                source = self.redact(c.result.candidate.source)
                items.append(Program(at, c.number, c.result.candidate.id, score, source))
            values = {"score/candidate": score.mean} if score else {}
            if best is not None:
                values["score/best_so_far"] = best.mean
            items += [Scalars(at, c.number, values), *_curves(at, c.result)]
        spent = self._progress.spent
        used: dict[str, float] = {
            "attempts": spent.attempts, "failed": spent.failed, "duplicate": spent.duplicate,
            "environment_steps": spent.env_steps, "compile_seconds": spent.compile_s, "run_seconds": spent.run_s,
        }  # fmt: skip
        if spent.calls:
            used |= {"requests": spent.calls, "tokens": spent.tokens, "dollars": spent.cost_usd}
        return [*items, Scalars(at, spent.trained, {f"spent/{name}": float(value) for name, value in used.items()})]

    def _line(self, at: float, result: Result) -> Line:
        c, score = result.candidate, result.score
        low, high = interval(score) if score else (None, None)
        return Line(at, (
            c.id, c.generation, c.operator, ", ".join(c.parents), self.redact(c.model), score.mean if score else None,
            low, high, score.n if score else None, self.redact(str(result.failure)) if result.failure else "",
            result.env_steps,
        ))  # fmt: skip


def _curves(at: float, result: Result) -> list[Curve]:
    f, id = result.feedback or Feedback(), result.candidate.id
    series = [
        (f.measure.name, f.steps, f.success),
        ("return", f.steps, f.episode_return),
        ("length", f.steps, f.length),
    ]
    series += [(f"terms/{term.name}", f.term_steps, term.mean) for term in f.terms]
    return [
        Curve(at, id, name, steps, values) for name, steps, values in series if values and len(steps) == len(values)
    ]
