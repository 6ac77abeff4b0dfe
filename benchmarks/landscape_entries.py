"""What is compared on the landscapes, and what was expected of it before anything had run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Entry:
    """A strategy with options; whether its proposer has words, and how often its judgements are right."""

    label: str
    strategy: str
    options: Mapping[str, Any] = field(default_factory=dict)
    words: bool = True
    fidelity: float = 0.5


BASELINE = Entry("best-of-n", "best-of-n")

STRATEGIES = (
    BASELINE,
    Entry("limen", "limen"),
    Entry("eureka", "eureka"),
    Entry("revolve", "revolve"),
    Entry("rf-agent", "rf-agent"),
    Entry("rf-agent, no words", "rf-agent", words=False),
    Entry("forge", "forge"),
    Entry("forge, no words", "forge", words=False),
    Entry("forge, early stop", "forge", {"patience": 3}),
)

_HILLS = ("smooth", "deceptive", "noisy", "plateau", "failures")
EXPECTED: dict[str, tuple[str, ...]] = {
    "best-of-n": (),
    "limen": (*_HILLS, "modular"),
    "eureka": _HILLS,
    "revolve": (*_HILLS, "modular"),
    "rf-agent": (*_HILLS, "modular"),
    "forge": ("smooth", "plateau", "failures", "modular"),
}
"""Where a strategy's idea should beat best-of-n with 80 candidates and more; docs/appendix/landscapes.md says why."""

LEFT_OUT = {
    "grace": "it draws parents by softmax of a fitness in nats; scores of 0 to 1 would be nearly alike to it",
    "rda": "it goes by a judge who sees agents, and there are none",
}
"""Strategies that are not compared, and why."""

FULL = Entry("full", "rf-agent")

_ACTIONS = ("structure", "weights", "crossover", "path", "different")
_COUNTS = (2, 2, 2, 1, 1)


def _without(action: int) -> tuple[int, ...]:
    """The counts with one action's share given to the basic action, `improve`."""
    return (*(0 if k == action else n for k, n in enumerate(_COUNTS)), _COUNTS[action])


ABLATIONS: dict[str, tuple[Entry, ...]] = {
    "search (figure 6a)": tuple(Entry(rule, "rf-agent", {"search": rule}) for rule in ("dfs", "bfs", "greedy")),
    "actions (figure 6b)": (
        *(Entry(f"no {name}", "rf-agent", {"counts": _without(k)}) for k, name in enumerate(_ACTIONS)),
        Entry("no actions", "rf-agent", {"counts": (0, 0, 0, 0, 0, 8)}),
    ),
    "reasoning (figure 6c)": (
        Entry("no self-verify", "rf-agent", {"verify": False}),
        Entry("self-verify always right", "rf-agent", fidelity=1.0),
        Entry("no thought-align", "rf-agent", {"align": False}),
    ),
    "combinations of actions (table 7)": (
        Entry("mutation", "rf-agent", {"counts": (4, 4, 0, 0, 0)}),
        Entry("mutation + crossover", "rf-agent", {"counts": (3, 3, 2, 0, 0)}),
        Entry("mutation + reasoning", "rf-agent", {"counts": (3, 3, 0, 2, 0)}),
        Entry("crossover + reasoning", "rf-agent", {"counts": (0, 0, 5, 3, 0)}),
        Entry("mutation + crossover + reasoning", "rf-agent", {"counts": (3, 2, 2, 1, 0)}),
    ),
    "thought (table 8)": (
        Entry("no first thought", "rf-agent", {"thoughts": False}),
        Entry("no second thought", "rf-agent", {"align": False}),
        Entry("no thought at all", "rf-agent", {"thoughts": False, "align": False}),
    ),
}
"""What is taken from RF-Agent, by where the paper does the same. Every expansion still has eight children."""
