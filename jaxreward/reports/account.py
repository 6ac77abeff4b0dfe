"""Where the time and the money of a run went, from the times of its events and its transcript."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from jaxreward.records import Exchange
from jaxreward.reports.facts import BEST_OF_N
from jaxreward.reports.timeline import FINAL, Stopwatch, phase
from jaxreward.runs import Asked, Baseline, Entry, Failed, Finished, Trained


@dataclass
class Stretch:
    """A generation, or what came outside of any.

    Attributes:
        name: e.g. `generation 3`, `best-of-n`, `final`.
        seconds: of the wall clock by `course.phase`.
        compile_s: device seconds of compiling.
        run_s: device seconds of training.
        candidates: programs trained.
    """

    name: str
    seconds: dict[str, float] = field(default_factory=dict)
    compile_s: float = 0.0
    run_s: float = 0.0
    candidates: int = 0

    @property
    def wall_s(self) -> float:
        return sum(self.seconds.values())


def stretches(entries: Sequence[Entry], samples: Sequence[Entry] = ()) -> list[Stretch]:
    """The generations of a run in order, the search of independent samples that it is compared with, and its final
    training.

    Args:
        entries: the log of the run.
        samples: the log of that other search, which ends before the first event of the final training.
    """
    found = _of_log(entries)
    final = next((s for s in found if s.name == "final"), None)
    if final is not None and samples:
        other = Stretch(BEST_OF_N)
        for part in _of_log(samples):
            other.compile_s, other.run_s = other.compile_s + part.compile_s, other.run_s + part.run_s
            other.candidates += part.candidates
            for name, seconds in part.seconds.items():
                other.seconds[name] = other.seconds.get(name, 0.0) + seconds
        final.seconds[FINAL] = max(0.0, final.seconds.get(FINAL, 0.0) - other.wall_s)
        found.insert(found.index(final), other)
    return [s for s in found if s.wall_s > 0.05 or s.candidates]


def _of_log(entries: Sequence[Entry]) -> list[Stretch]:
    found: list[Stretch] = []
    watch = Stopwatch()
    for entry in entries:
        event, took = entry.event, watch.add(entry)
        if isinstance(event, Asked):
            found.append(Stretch(f"generation {event.generation}"))
        elif isinstance(event, Baseline | Finished | Failed) and (not found or found[-1].name != "final"):
            found.append(Stretch("final"))
        if not found:
            found.append(Stretch("start"))
        name, last = phase(event), found[-1]
        last.seconds[name] = last.seconds.get(name, 0.0) + took
        if isinstance(event, Trained | Baseline):
            last.compile_s += event.compile_s
            last.run_s += event.run_s
            last.candidates += len(event.results) if isinstance(event, Trained) else 1
    return found


@dataclass
class ModelBill:
    """What one language model was asked and cost; `unpriced` counts tokens whose price is unknown."""

    model: str
    calls: int = 0
    failed: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    unpriced: int = 0
    usd: float = 0.0
    seconds: float = 0.0


def bills(exchanges: Sequence[Exchange]) -> list[ModelBill]:
    """A bill for each model, the dearest first."""
    found: dict[str, ModelBill] = {}
    for e in exchanges:
        bill = found.setdefault(e.model, ModelBill(e.model))
        bill.calls += 1
        bill.failed += bool(e.error)
        bill.prompt_tokens += e.prompt_tokens
        bill.completion_tokens += e.completion_tokens
        bill.usd += e.cost_usd or 0.0
        bill.seconds += e.latency_s
        bill.unpriced += 0 if e.cost_usd is not None else e.prompt_tokens + e.completion_tokens
    return sorted(found.values(), key=lambda bill: (-bill.usd, bill.model))
