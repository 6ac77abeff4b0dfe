"""Where the time and the money of a run went, from the times of its events and its transcript."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from jaxreward.records import Exchange
from jaxreward.runs import Asked, Baseline, Entry, Trained

PHASES = {
    "proposed": "propose", "withdrawn": "propose", "checked": "verify", "repair": "verify", "trained": "train",
    "told": "tell", "asked": "tell", "baseline": "final training",
}  # fmt: skip
"""What was going on before an event of this type; anything else is `rest`."""


@dataclass
class Stretch:
    """A generation, or what came outside of any.

    Attributes:
        name: e.g. `generation 3`, `final`.
        seconds: of the wall clock by phase; the time in which no process worked on the run is left out.
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


def stretches(entries: Sequence[Entry]) -> list[Stretch]:
    """The generations of a run in order, and its final training."""
    found: list[Stretch] = []
    for before, entry in pairwise(entries):
        event = entry.event
        if isinstance(event, Asked):
            found.append(Stretch(f"generation {event.generation}"))
        elif event.type in ("baseline", "finished") and (not found or found[-1].name != "final"):
            found.append(Stretch("final"))
        if not found:
            found.append(Stretch("start"))
        if event.type == "resumed":
            continue
        phase, last = PHASES.get(event.type, "rest"), found[-1]
        last.seconds[phase] = last.seconds.get(phase, 0.0) + max(0.0, entry.at - before.at)
        if isinstance(event, Trained | Baseline):
            last.compile_s += event.compile_s
            last.run_s += event.run_s
            last.candidates += len(event.results) if isinstance(event, Trained) else 1
    return [s for s in found if s.wall_s > 0.05 or s.candidates]


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
