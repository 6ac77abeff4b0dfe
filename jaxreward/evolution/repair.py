"""Repair requests: rejected candidates and unusable replies that go back to the proposer."""

from __future__ import annotations

from jaxreward.records import Request, Result, Stage
from jaxreward.runs import Generation

REASKS = 1
"""Times that a reply without the requested content is requested again."""

REPAIRABLE: frozenset[Stage] = frozenset(
    {"reply", "guard", "trace", "contract", "limits", "numeric", "killed", "duplicate"}
)
"""Failures before the training, whose verdicts a proposer can act on."""


def repair_requests(generation: Generation, repairs: int) -> list[Request]:
    """New requests for the rejected candidates of a generation that were not sent back yet.

    A request and its repairs form a chain with the ids `g0000-03`, `g0000-03-r1`, ...; of one
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
        if result.failure.stage in REPAIRABLE and _may_go_back(request, result, by_id, repairs):
            root, _, number = request.id.partition("-r")
            found.append(request.model_copy(update={"id": f"{root}-r{int(number or 0) + 1}", "failed": result}))
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
