"""Search strategies: what to request next, given the results so far."""

from jaxreward.search.draft import Draft
from jaxreward.search.registry import STRATEGIES, make_strategy
from jaxreward.search.strategy import SearchStrategy, State

Strategy = SearchStrategy  # a protocol in earlier versions

__all__ = ["STRATEGIES", "Draft", "SearchStrategy", "State", "Strategy", "make_strategy"]
