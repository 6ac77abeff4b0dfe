"""The budgets of a search: which one is spent, and the next requests within them."""

from __future__ import annotations

from typing import Any

from jaxreward.errors import End, EndCause
from jaxreward.evolution.settings import EvolveSettings
from jaxreward.proposers.proposer import Proposer
from jaxreward.records import Request
from jaxreward.runs import Progress
from jaxreward.search import SearchStrategy
from jaxreward.search.seeding import derive_rng


def budget_spent(
    s: EvolveSettings, strategy: SearchStrategy[Any], proposer: Proposer, progress: Progress[Any]
) -> End | None:
    """The exhausted budget, or why the strategy ends the search; None while it goes on."""
    spent, state = progress.spent, progress.state
    if strategy.rescoring(state):
        return None
    if spent.trained >= s.candidates and not strategy.unsettled(state):
        done = "scored" if s.objective == "demonstrations" else "trained"
        return End(f"all candidates are {done}", EndCause.CANDIDATES)
    if spent.attempts >= s.attempts:
        return End("the budget of attempts is spent", EndCause.ATTEMPTS)
    if progress.exhausted and proposer.planned(state.generation) is None:
        return progress.exhausted
    if (end := training_spent(s, progress)) is not None:
        return end
    reason = strategy.finished(state)
    return End(reason, EndCause.STRATEGY) if reason else None


def training_spent(s: EvolveSettings, progress: Progress[Any]) -> End | None:
    """The exhausted budget of training, if any."""
    spent = progress.spent
    if s.max_env_steps and spent.env_steps >= s.max_env_steps:
        return End("the budget of environment steps is spent", EndCause.ENV_STEPS)
    if s.max_device_s and spent.compile_s + spent.run_s >= s.max_device_s:
        return End("the budget of device seconds is spent", EndCause.DEVICE_S)
    return None


def ends(
    s: EvolveSettings, strategy: SearchStrategy[Any], proposer: Proposer, progress: Progress[Any]
) -> tuple[End | None, list[Request]]:
    """The exhausted budget, if any, and what is to be scored again before the search ends for it, which takes
    environment steps and device seconds alone."""
    end = budget_spent(s, strategy, proposer, progress)
    return end, [] if end is None or training_spent(s, progress) else strategy.to_confirm(progress.state)


def unconfirmed(s: EvolveSettings, strategy: SearchStrategy[Any], end: End, progress: Progress[Any]) -> str:
    """Why the best of a search that ends is not confirmed, as a sentence; empty where it is, or was not to be."""
    reason = (training_spent(s, progress) or end).reason
    return f"the best is not confirmed on fresh seeds: {reason}" if strategy.to_confirm(progress.state) else ""


def room_for(settings: EvolveSettings, progress: Progress[Any]) -> int:
    """New candidates that the budgets leave room for beside those in work, a generation at most."""
    spent = progress.spent
    return min(
        settings.generation,
        settings.candidates - spent.trained - progress.seats,
        settings.attempts - spent.attempts - progress.unproposed,
    )


def next_requests(
    settings: EvolveSettings, strategy: SearchStrategy[Any], progress: Progress[Any], planned: int | None = None
) -> list[Request]:
    """The next requests: those that are open and unanswered, or the requests of a new generation, `planned` of
    them if given, else as many as the budgets leave."""
    if progress.in_work:
        return [request for generation in progress.in_work.values() for request in generation.unproposed()]
    state, n = progress.state, planned or room_for(settings, progress)
    goes_on = strategy.owes_votes(state) or strategy.unsettled(state) or strategy.rescoring(state)
    if n < 1 and not goes_on:
        return []
    return strategy.ask(state, max(1, n), derive_rng(settings.seed, "ask", state.generation))
