"""Search strategies: what to request next, given the results so far."""

from jaxreward.search.draft import Draft
from jaxreward.search.registry import STRATEGIES, make_strategy
from jaxreward.search.strategy import SearchStrategy, State

__all__ = ["STRATEGIES", "Draft", "SearchStrategy", "State", "make_strategy"]
