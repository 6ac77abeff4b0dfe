"""Search strategies: what to ask for next, given what became of what was asked before."""

from jaxreward.search.registry import STRATEGIES, make_strategy
from jaxreward.search.strategy import Draft, SearchStrategy, State, Strategy

__all__ = ["STRATEGIES", "Draft", "SearchStrategy", "State", "Strategy", "make_strategy"]
