"""The events of a run as plain lines, one each."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable

from jaxreward.config import label_of
from jaxreward.formatting import dollars, shortened, span
from jaxreward.records import Proposal, Result
from jaxreward.reports.run_tables import score_text
from jaxreward.reports.tables import figure
from jaxreward.reports.timeline import Timeline
from jaxreward.runs import Entry, events
from jaxreward.runs.toml import flat


class EventFormatter:
    """Formats the entries of a log, in their order; a line may depend on those before it.

    Args:
        search: name of a search inside a run, put before each line.
        clock: from Unix seconds to the time that a line begins with.
    """

    def __init__(self, search: str = "", clock: Callable[[float], str] | None = None) -> None:
        self._prefix = f"{search}: " if search else ""
        self._clock = clock or (lambda at: time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(at)))
        self._timeline = Timeline()
        self._config: dict[str, object] = {}

    def line(self, entry: Entry) -> str:
        """`time  generation  what happened`, without a line break."""
        took = self._timeline.add(entry)
        index = self._timeline.of(entry.event).index
        where = "" if index is None or isinstance(entry.event, events.Paused) else f"g{index}"
        return f"{self._clock(entry.at)}  {where:<5}  {self._prefix}{' '.join(self._text(entry.event, took).split())}"

    def _text(self, event: events.Event, took: float) -> str:
        match event:
            case events.RunStarted():
                self._config = dict(flat(event.config))
                what = ", ".join(
                    [*map(label_of, (event.task, event.strategy, event.proposer)), f"search seed {event.seed}"]
                )
                versions = ", ".join(f"{k} {v}" for k, v in event.versions.items() if k in ("jaxreward", "jax"))
                text = f"started: {what}, {event.config.get('candidates', '?')} candidates"
                return text + (f" ({versions})" if versions else "")
            case events.Resumed():
                return "resumed" + self._changes(event)
            case events.Baseline():
                name = "the best" if event.name == "best" else event.name
                outcome = f"failed: {event.failure}" if event.failure else score_text(event.score)
                return f"final training, {name}: {outcome}"
            case events.Asked():
                counts = Counter(r.operator for r in event.requests)
                return f"asked for {len(event.requests)}: " + ", ".join(f"{n} {name}" for name, n in counts.items())
            case events.Repair():
                pairs = ", ".join(f"{r.failed} as {r.id}" for r in event.requests)
                return f"sent back to the proposer: {pairs}"
            case events.Withdrawn():
                return f"not asked any more: {event.reason}"
            case events.Proposed():
                return self._proposed(event.proposal)
            case events.Checked():
                return _checked(event)
            case events.Trained():
                results = ", ".join(map(_result, event.results))
                return f"trained {len(event.results)} in {span(took)}: {results}{self._best()}"
            case events.Told():
                return f"generation {event.generation} is complete{self._best()}"
            case events.Finished():
                return f"finished: {event.reason}" + (f"; the best is {event.best}" if event.best else "")
            case events.Paused() | events.Failed():
                return f"{event.type}: {event.reason}"

    def _changes(self, event: events.Resumed) -> str:
        before, self._config = self._config, dict(flat(event.config))
        changed = [
            f"{name} {before.get(name, 'none')} -> {value}"
            for name, value in self._config.items()
            if before and value != before.get(name)
        ]
        return f" with {', '.join(changed)}" if changed else ""

    def _proposed(self, p: Proposal) -> str:
        by = f" by {p.model or p.proposer}" if p.model or p.proposer else ""
        cost = f", {dollars(p.cost_usd)}" if p.cost_usd else f", {p.tokens:,} tokens" if p.tokens else ""
        if p.failure is not None:
            what = "words" if p.request_id in self._timeline.words else "program"
            return f"{p.request_id}: no {what}{by}{cost}: {p.failure}"
        if p.words:
            return f"{p.request_id}: words{by}{cost}: {shortened(' '.join(p.words.split()), 80)}"
        return f"{p.request_id}: proposed{by}{cost}, {len(p.source.splitlines())} lines"

    def _best(self) -> str:
        best = self._timeline.best
        return f"; best so far {score_text(best.score)}, {best.candidate.id}" if best else ""


def _checked(event: events.Checked) -> str:
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
    return f"{result.candidate.id} {figure(result.score.mean, rate=result.score.measure.rate)}"
