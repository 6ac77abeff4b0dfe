"""The events of a run as plain lines, one each."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Sequence

from jaxreward.config import label_of
from jaxreward.formatting import dollars, span
from jaxreward.records import Measure, Result, Score
from jaxreward.reports.run_tables import told_score
from jaxreward.reports.tables import figure
from jaxreward.reports.timeline import better
from jaxreward.runs import (
    Asked,
    AskedRequest,
    Baseline,
    Checked,
    Entry,
    Event,
    Failed,
    Finished,
    Paused,
    Proposed,
    Repair,
    Resumed,
    RunStarted,
    Told,
    Trained,
    Withdrawn,
)
from jaxreward.runs.toml import flat


class Narrator:
    """Tells events in the order of a log; what a line says may depend on those before it.

    Args:
        of: what the log is of, where it is that of a search inside a run.
        clock: from Unix seconds to the time that a line begins with.
    """

    def __init__(self, of: str = "", clock: Callable[[float], str] | None = None) -> None:
        self.of = of
        self._clock = clock or (lambda at: time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(at)))
        self._generation = ""
        self._config: dict[str, object] = {}
        self._best: Score | None = None
        self._best_id = ""
        self._since = 0.0

    def line(self, entry: Entry) -> str:
        """`time  generation  what happened`, without a line break."""
        event = entry.event
        if isinstance(event, Asked):
            self._generation = f"g{event.generation}"
        said = " ".join(self._words(event, entry.at).split())
        where = self._generation if not isinstance(event, RunStarted | Finished | Failed | Paused | Baseline) else ""
        self._since = entry.at
        return f"{self._clock(entry.at)}  {where:<5}  {f'{self.of}: ' if self.of else ''}{said}"

    def _words(self, event: Event, at: float) -> str:
        match event:
            case RunStarted():
                self._config = dict(flat(event.config))
                what = f"{label_of(event.task)}, {event.strategy}, {event.proposer}, search seed {event.seed}"
                versions = ", ".join(f"{k} {v}" for k, v in event.versions.items() if k in ("jaxreward", "jax"))
                return f"started: {what}, {event.config.get('candidates', '?')} candidates" + (
                    f" ({versions})" if versions else ""
                )
            case Resumed():
                return "resumed" + self._changes(event)
            case Baseline():
                name = "the best" if event.name == "best" else event.name
                came = f"failed: {event.failure}" if event.failure else f"{told_score(event.score)}"
                return f"final training, {name}: {came}"
            case Asked():
                return f"asked for {_operators(event.requests)}"
            case Repair():
                pairs = ", ".join(f"{r.failed} as {r.id}" for r in event.requests)
                return f"goes back to the proposer: {pairs}"
            case Withdrawn():
                return f"not asked any more: {event.reason}"
            case Proposed():
                return self._proposed(event)
            case Checked():
                return _checked(event)
            case Trained():
                return self._trained(event, at)
            case Told():
                return f"generation {event.generation} is complete" + self._so_far()
            case Paused():
                return f"paused: {event.reason}"
            case Failed():
                return f"failed: {event.reason}"
            case Finished():
                return f"finished: {event.reason}" + (f"; the best is {event.best}" if event.best else "")

    def _changes(self, event: Resumed) -> str:
        before, self._config = self._config, dict(flat(event.config))
        changed = [
            f"{name} {before.get(name, 'none')} -> {value}"
            for name, value in self._config.items()
            if before and value != before.get(name)
        ]
        return f" with {', '.join(changed)}" if changed else ""

    def _proposed(self, event: Proposed) -> str:
        p = event.proposal
        by = f" by {p.model or p.proposer}" if p.model or p.proposer else ""
        cost = f", {dollars(p.cost_usd)}" if p.cost_usd else f", {p.tokens:,} tokens" if p.tokens else ""
        if p.failure is not None:
            return f"{p.request_id}: no program{by}{cost}: {p.failure}"
        if p.words:
            return f"{p.request_id}: words{by}{cost}: {_cut(p.words)}"
        return f"{p.request_id}: proposed{by}{cost}, {len(p.source.splitlines())} lines"

    def _trained(self, event: Trained, at: float) -> str:
        for result in event.results:
            best = better(self._best, result.score)
            if best is not self._best:
                self._best, self._best_id = best, result.candidate.id
        took = f" in {span(at - self._since)}" if self._since else ""
        return f"trained {len(event.results)}{took}: {', '.join(map(_result, event.results))}" + self._so_far()

    def _so_far(self) -> str:
        return f"; best so far {told_score(self._best)}, {self._best_id}" if self._best else ""


def _operators(requests: Sequence[AskedRequest]) -> str:
    counts = Counter(r.operator for r in requests)
    return f"{len(requests)}: " + ", ".join(f"{number} {name}" for name, number in counts.items())


def _checked(event: Checked) -> str:
    verdict, id = event.verdict, event.request_id
    if verdict.failure is not None:
        return f"{id}: rejected, {verdict.failure}"
    if event.duplicate_of is not None:
        how = "its outputs equal those of" if event.by_outputs else "computes the same as"
        return f"{id}: duplicate, {how} {event.duplicate_of}"
    s = verdict.summary
    return f"{id}: passed" + (f", {s.observation_size} features, {len(s.terms)} reward terms" if s else "")


def _result(result: Result) -> str:
    if result.score is None:
        return f"{result.candidate.id} {result.failure.stage if result.failure else 'no score'}"
    measure: Measure = result.score.measure
    return f"{result.candidate.id} {figure(result.score.mean, rate=measure.rate)}"


def _cut(text: str, longest: int = 80) -> str:
    words = " ".join(text.split())
    return words if len(words) <= longest else f"{words[: longest - 3]}..."
