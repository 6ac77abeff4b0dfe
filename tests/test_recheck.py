"""A candidate's program is checked again when a search goes on, also on a machine that is busy."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from jaxreward.errors import UserError
from jaxreward.evolution.recheck import CHECKS, checked_again
from jaxreward.records import Candidate, Failure, Verdict

CANDIDATE = Candidate(id="g0001-02", generation=1, operator="scratch", source="", proposer="genetic")
LATE = Failure(stage="killed", message="the worker was lost: no answer in time")
REFUSED = Failure(stage="guard", message="import of 'os'")


class Verdicts:
    """A checker with given failures, None for a program that passes."""

    def __init__(self, *failures: Failure | None) -> None:
        self.failures, self.asked = failures, 0

    def check_many(self, sources: list[str], task: Any, *, debug: bool) -> list[Any]:
        failure = self.failures[min(self.asked, len(self.failures) - 1)]
        self.asked += 1
        return [(Verdict(failure=failure), None if failure else SimpleNamespace(source=sources[0]))]


def check(checker: Any) -> Any:
    return checked_again(checker, CANDIDATE, None, debug=False)


def test_a_check_that_was_late_is_repeated():
    checker = Verdicts(LATE, LATE, None)
    assert check(checker).source == CANDIDATE.source and checker.asked == 3


def test_a_machine_that_stays_busy_is_named_and_not_other_versions():
    checker = Verdicts(LATE)
    with pytest.raises(UserError, match=r"g0001-02 .* no answer in time.*busy or short of memory") as caught:
        check(checker)
    assert checker.asked == CHECKS and "versions" not in str(caught.value)


def test_a_program_that_is_refused_is_of_other_versions():
    checker = Verdicts(REFUSED)
    with pytest.raises(UserError, match="import of 'os'.*other versions"):
        check(checker)
    assert checker.asked == 1
