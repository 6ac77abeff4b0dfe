"""Checking a candidate's program a second time, in a later process than the one that admitted it."""

from __future__ import annotations

from typing import Any

from jaxreward.errors import UserError
from jaxreward.programs import Checker, Program
from jaxreward.records import Candidate

CHECKS = 3
"""How often a program is checked whose check ends for its time or memory: on a busy machine that is not the program's
fault."""


def checked_again(checker: Checker, candidate: Candidate, task: Any, debug: bool) -> Program:
    """The program of a candidate that passed its check.

    Raises:
        UserError: it fails its check now.
    """
    failure, killed = None, False
    for _ in range(CHECKS):
        verdict, program = checker.check_many([candidate.source], task, debug=debug)[0]
        if program is not None:
            return program
        failure = verdict.failure
        killed = failure is not None and failure.stage == "killed"
        if not killed:
            break
    why = (
        "the machine is busy or short of memory; resume the run when it is not"
        if killed
        else "the run was started with other versions; install those of its log"
    )
    raise UserError(
        f"candidate {candidate.id} passed its check when it was proposed and now fails it ({failure}): {why}"
    )
