"""Which rejected candidates, and unusable words, go back to the proposer, and as which requests."""

from __future__ import annotations

from jaxreward.records import Request, Result, Stage
from jaxreward.runs import Generation

REASKS = 1
"""An answer without the program, or the words, that were asked for is asked for again so often."""

MENDABLE: frozenset[Stage] = frozenset(
    {"reply", "guard", "trace", "contract", "limits", "numeric", "killed", "duplicate"}
)
"""Failures before the trainer: their verdicts tell what to do."""


def requests_to_mend(generation: Generation, repairs: int) -> list[Request]:
    """New requests for the rejected candidates of a generation that were not sent back yet.

    A request and those that mend it form a chain with the ids `g0000-03`, `g0000-03-r1`, ...; of one
    chain, `REASKS` requests follow an unusable answer and `repairs` a rejected program.
    A pure function of the generation, so that a resumed run sends back the same.
    """
    by_id = {request.id: request for request in generation.requests}
    sent_back = {request.failed.candidate.id for request in generation.requests if request.failed}
    found = []
    for request in generation.requests:
        result = generation.result(request.id)
        if result is None or result.failure is None or request.id in sent_back:
            continue
        if result.failure.stage in MENDABLE and _may_go_back(request, result, by_id, repairs):
            found.append(_mending(request, result))
    return found


def _may_go_back(request: Request, result: Result, by_id: dict[str, Request], repairs: int) -> bool:
    unusable = [_unusable(past) for past in _chain(request, by_id)]
    if _unusable(result):
        return sum(unusable) < REASKS
    return len(unusable) - sum(unusable) < repairs


def _chain(request: Request, by_id: dict[str, Request]) -> list[Result]:
    """The failed candidates that led to this request."""
    found = []
    while request.failed is not None:
        found.append(request.failed)
        request = by_id[request.failed.candidate.id]
    return found


def _unusable(result: Result) -> bool:
    return result.failure is not None and result.failure.stage == "reply"


def _mending(request: Request, result: Result) -> Request:
    root, _, number = request.id.partition("-r")
    return request.model_copy(update={"id": f"{root}-r{int(number or 0) + 1}", "failed": result})
