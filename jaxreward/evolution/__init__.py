"""The search: ask for programs, check them, train them, tell the strategy, until a budget is spent.

    from jaxreward.evolution import run_search

A name is imported when it is first used: settings can be read without JAX.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from jaxreward.evolution.api import Outcome, ask, run_search

__all__ = ["Outcome", "ask", "run_search"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'jaxreward.evolution' has no attribute {name!r}")
    from jaxreward.evolution import api

    value = getattr(api, name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return list(__all__)
