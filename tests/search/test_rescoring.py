"""Programs that wait to be scored again: no budget ends a search before, and they teach a bandit nothing."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from jaxreward.errors import EndCause
from jaxreward.evolution.budget import budget_spent
from jaxreward.evolution.settings import EvolveSettings
from jaxreward.runs.fold import Spent
from jaxreward.search.bandit import Bandit
from jaxreward.search.grace import Grace


def ended(spent: Spent, rescoring: bool = False, unsettled: bool = False, **settings: Any) -> EndCause | None:
    """The cause by which a search ends that has spent so much."""
    strategy: Any = SimpleNamespace(
        rescoring=lambda _: rescoring, unsettled=lambda _: unsettled, finished=lambda _: "", owes_votes=lambda _: False
    )
    progress: Any = SimpleNamespace(spent=spent, state=SimpleNamespace(generation=3), exhausted=None)
    end = budget_spent(EvolveSettings(candidates=8, **settings), strategy, SimpleNamespace(), progress)  # type: ignore[arg-type]
    return end and end.cause


@pytest.mark.parametrize(
    ("spent", "settings", "cause"),
    [
        (Spent(trained=8), {}, EndCause.CANDIDATES),
        (Spent(attempts=9), {"max_attempts": 9}, EndCause.ATTEMPTS),
        (Spent(env_steps=70), {"max_env_steps": 60}, EndCause.ENV_STEPS),
        (Spent(run_s=7.0), {"max_device_s": 6.0}, EndCause.DEVICE_S),
    ],
)
def test_no_budget_ends_a_search_while_programs_wait_to_be_scored_again(spent, settings, cause):
    assert ended(spent, **settings) == cause
    assert ended(spent, rescoring=True, **settings) is None


def test_a_search_that_is_unsettled_goes_on_without_candidates_but_within_its_other_budgets():
    assert ended(Spent(trained=8), unsettled=True) is None
    assert ended(Spent(trained=8, env_steps=70), unsettled=True, max_env_steps=60) == EndCause.ENV_STEPS


def test_a_program_that_is_scored_again_teaches_a_bandit_nothing(result):
    before = Bandit().updated([result("a", 0.5)])
    again = result("a-again", -3.0, operator="keep", parents=("a",))
    assert before.updated([again]) == before


def test_the_plan_counts_every_policy_that_may_be_trained():
    from jaxreward.evolution.costs import expansions

    grace = EvolveSettings(strategy="grace", option=("expansions=2", "confirmations=4"))
    assert expansions(grace) == 6
    assert expansions(EvolveSettings(strategy="grace", option=("expansions=0",))) == 0
    assert expansions(EvolveSettings()) == 0
    assert expansions(EvolveSettings(strategy="grace", option=("expansions=1",))) == 1 + Grace.confirmations
