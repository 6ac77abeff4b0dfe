"""The budgets of a search: which one is spent, and the next requests within them."""

from __future__ import annotations

from typing import Any

from jaxreward.evolve.settings import EvolveSettings
from jaxreward.proposers.proposer import Proposer
from jaxreward.records import Request
from jaxreward.runs import Progress
from jaxreward.search import SearchStrategy
from jaxreward.search.seeding import derive_rng


def budget_spent(
    s: EvolveSettings, strategy: SearchStrategy[Any], proposer: Proposer, progress: Progress[Any]
) -> str | None:
    """The exhausted budget, in words; None if there is none."""
    spent, state = progress.spent, progress.state
    if spent.trained >= s.candidates:
        return "all candidates are trained"
    if spent.attempts >= s.attempts:
        return "the budget of attempts is spent"
    if progress.exhausted and proposer.planned(state.generation) is None:
        return progress.exhausted
    if s.max_env_steps and spent.env_steps >= s.max_env_steps:
        return "the budget of environment steps is spent"
    if s.max_device_s and spent.compile_s + spent.run_s >= s.max_device_s:
        return "the budget of device seconds is spent"
    return strategy.finished(state) or None


def next_requests(
    settings: EvolveSettings, strategy: SearchStrategy[Any], progress: Progress[Any], planned: int | None = None
) -> list[Request]:
    """The next requests: those that are open and unanswered, or the requests of a new generation, `planned` of
    them if given, else as many as the budgets leave."""
    if progress.open is not None:
        return list(progress.open.unproposed())
    spent, state = progress.spent, progress.state
    n = planned or min(settings.generation, settings.candidates - spent.trained, settings.attempts - spent.attempts)
    if n < 1 and not strategy.owes_votes(state):
        return []
    return strategy.ask(state, max(1, n), derive_rng(settings.seed, "ask", state.generation))
