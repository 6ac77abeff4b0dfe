"""The candidate suite: every program gets the verdict that it deserves."""

from __future__ import annotations

import pytest
import suite_faulty
import suite_good
import suite_hostile


@pytest.fixture(scope="module")
def verdicts(checker, task):
    """Verdicts on what is not good, from two workers at a time."""
    sources = {("hostile", n): case[1] for n, case in suite_hostile.CASES.items()}
    sources |= {("faulty", n): case[1] for n, case in suite_faulty.CASES.items()}
    return dict(zip(sources, checker.check_many(list(sources.values()), task), strict=True))


def test_the_suite_is_large():
    assert len(suite_hostile.CASES) + len(suite_faulty.CASES) + len(suite_good.CASES) >= 150


@pytest.mark.parametrize("name", suite_hostile.CASES)
def test_hostile_programs_end_at_the_expected_stage(verdicts, name):
    stages, _ = suite_hostile.CASES[name]
    verdict, _ = verdicts["hostile", name]
    got = verdict.failure.stage if verdict.failure else "ok"
    assert got in stages.split("|"), str(verdict.failure)
    if got != "ok":
        assert verdict.failure.message


@pytest.mark.parametrize("name", suite_faulty.CASES)
def test_faulty_programs_are_rejected_with_a_helpful_message(verdicts, name):
    stages, _, pieces = suite_faulty.CASES[name]
    verdict, program = verdicts["faulty", name]
    assert program is None and verdict.failure is not None
    assert verdict.failure.stage in stages.split("|"), str(verdict.failure)
    for piece in pieces:
        assert piece in str(verdict.failure)


@pytest.mark.parametrize("name", suite_good.CASES)
def test_good_programs_pass_with_the_expected_notices(good, name):
    _, kinds = suite_good.CASES[name]
    verdict, program = good[name]
    assert verdict.ok, str(verdict.failure)
    assert program is not None and program.summary == verdict.summary
    assert {n.kind for n in verdict.notices} >= set(kinds), verdict.notices


def test_large_terms_that_cancel_sum_to_the_reward(good):
    verdict, _ = good["reward_terms_that_cancel"]
    assert "terms_do_not_sum" not in {n.kind for n in verdict.notices}
