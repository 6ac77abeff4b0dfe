"""What each language model was asked, and what it cost."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from jaxreward.formatting import dollars
from jaxreward.records import Exchange
from jaxreward.runs import Spent


@dataclass
class ModelCost:
    """The calls of one language model; `unpriced` counts tokens whose price is unknown."""

    model: str
    calls: int = 0
    failed: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    unpriced: int = 0
    usd: float = 0.0
    seconds: float = 0.0


def model_costs(exchanges: Sequence[Exchange]) -> list[ModelCost]:
    """The cost of each model, the most expensive first."""
    found: dict[str, ModelCost] = {}
    for e in exchanges:
        cost = found.setdefault(e.model, ModelCost(e.model))
        cost.calls += 1
        cost.failed += bool(e.error)
        cost.prompt_tokens += e.prompt_tokens
        cost.completion_tokens += e.completion_tokens
        cost.usd += e.cost_usd or 0.0
        cost.seconds += e.latency_s
        cost.unpriced += 0 if e.cost_usd is not None else e.prompt_tokens + e.completion_tokens
    return sorted(found.values(), key=lambda cost: (-cost.usd, cost.model))


def cost_line(spent: Spent) -> str:
    """What language models have cost so far."""
    text = f"{dollars(spent.cost_usd)}, {spent.tokens:,} tokens, {spent.calls} requests"
    return text + (f" ({spent.unpriced_tokens:,} tokens of unknown price)" if spent.unpriced_tokens else "")
