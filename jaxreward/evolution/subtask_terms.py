"""The contract of rewards with subtasks: the sum of one named term for each, and of nothing else."""

from __future__ import annotations

from jaxreward.operators import OF_SUBTASKS
from jaxreward.programs import Program
from jaxreward.records import Failure, Request, Verdict, read_subtasks


def held_to_contract(request: Request, verdict: Verdict, program: Program | None) -> tuple[Verdict, Program | None]:
    """A check's verdict and program, of which the program goes where it breaks the contract."""
    broken = broken_contract(request, verdict) if program is not None else None
    return (verdict, program) if broken is None else (verdict.model_copy(update={"failure": broken}), None)


def broken_contract(request: Request, verdict: Verdict) -> Failure | None:
    """Why a program that passed its check is not what a request with subtasks asks for; None where it is, or none are
    asked for."""
    operator = request.plan.candidate.operator if request.plan is not None else ""
    of_subtasks = request.operator in OF_SUBTASKS or (request.failed is not None and operator in ("divide", "revise"))
    if not of_subtasks or request.plan is None or verdict.summary is None or request.evolve == "observation":
        return None
    wanted = [subtask.name for subtask in read_subtasks(request.plan.words)]
    terms = list(verdict.summary.terms)
    sums = all(notice.kind != "terms_do_not_sum" for notice in verdict.notices)
    if not wanted or (set(terms) == set(wanted) and sums):
        return None
    lacking, other = [name for name in wanted if name not in terms], [name for name in terms if name not in wanted]
    faults = [f"it lacks {', '.join(lacking)}"] if lacking else []
    faults += [f"it has {', '.join(other)}, which {'is' if len(other) == 1 else 'are'} no subtask"] if other else []
    faults += [] if sums else ["they do not sum to it"]
    return Failure(
        stage="contract",
        message=f"the reward must be the sum of one term for each subtask, and no other: {' and '.join(faults)}",
        hint=f"return the sum of the terms and a dictionary of the terms with the keys {', '.join(wanted)}",
    )
