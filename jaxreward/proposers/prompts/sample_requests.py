"""Requests of every kind, to try the templates of a user on before a run starts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from jaxreward.operators import OF_JUDGES, OPERATORS, OWN, WORDS
from jaxreward.records import (
    Candidate,
    Evolve,
    Failure,
    Feedback,
    Notice,
    ProgramSummary,
    Request,
    Result,
    Score,
    Seen,
    Stage,
    TermCurve,
    Watched,
)

_SOURCE = "def get_observation(state):\n    return state.x\n"
_SUMMARY = ProgramSummary(digest="", observation_size=3, terms=("goal",), operations=5)
_FEEDBACK = Feedback(
    steps=(1, 2),
    success=(0.0, 0.5),
    terms=(TermCurve(name="goal", mean=(0.1,), minimum=(0.0,), maximum=(1.0,), share=1.0),),
    notices=(Notice(kind="plateau", message="success has stood still"),),
)
_SEEN = Watched(subtasks={"goal": (Seen(score=0.2, why="it stops half way"),)}).as_words()
_EVOLVES: tuple[Evolve, ...] = ("both", "observation", "reward")
_STAGES: tuple[Stage, ...] = ("reply", "trace", "duplicate", "diverged")


def _result(name: str, mean: float | None = None, stage: Stage = "trace") -> Result:
    candidate = Candidate(id=name, generation=0, operator="scratch", source=_SOURCE, summary=_SUMMARY, thought="Why.")
    if mean is None:
        failure = Failure(stage=stage, message="wrong", line=1, hint="mend it", same_as="a")
        return Result(candidate=candidate, failure=failure)
    return Result(candidate=candidate, score=Score(mean=mean, se=0.1, n=2, episodes=8), feedback=_FEEDBACK)


def sample_requests(operators: Sequence[str]) -> Iterator[Request]:
    """A request of every operator, half and band, with and without what it may carry, and to repair every kind of
    failure; `operators` are those that have a page of their own."""

    def request(evolve: Evolve, operator: str, *parents: Result, **more: Any) -> Request:
        context: dict[str, Any] = {"best": (_result("b", 0.9),), "diverse": (_result("c", 0.2),)}
        context |= {"failures": (_result("d"),), **more}
        return Request(id="r", generation=1, operator=operator, evolve=evolve, parents=parents, **context)

    planned = _result("p").model_copy(update={"failure": None, "words": "- goal: reaching it"})
    rich: dict[str, Any] = {"plan": planned, "remarks": ("It turns in circles.",), "thought": True}
    rich["watched"] = _result("w").model_copy(update={"failure": None, "words": _SEEN})
    rich |= {"illustrations": ("State of the expert:\nx: 1",), "shared_functions": ("def f(x):\n    return x",)}
    one, two = _result("a", 0.5), _result("e", 0.1)
    smaller = two.candidate.model_copy(update={"summary": _SUMMARY.model_copy(update={"observation_size": 2})})
    rich |= {"ablations": (two.model_copy(update={"candidate": smaller}),), "group": 1}
    for evolve in _EVOLVES:
        for operator in dict.fromkeys(("scratch", "improve", *operators)):
            yield request(evolve, operator)
            yield request(evolve, operator, **rich)
            yield request(evolve, operator, one)
            yield request(evolve, operator, one, two, **rich)
        for mean in (0.0, 0.1, 0.4, 0.7, 1.0):
            yield request(evolve, "improve", _result("a", mean))
        for stage in _STAGES:
            yield request(evolve, "improve", one, failed=_result("r", stage=stage))
        for operator in sorted(WORDS - OWN - OF_JUDGES):
            about = (one, two.with_thought("")) if OPERATORS[operator].parents else ()
            carried = {"identify": ("illustrations",), "revise": ("plan", "watched")}.get(operator, ())
            shown = {name: rich[name] for name in carried}
            yield request(evolve, operator, *about[:1], **shown)
            yield request(evolve, operator, *about[1:], failed=_result("r", stage="reply"), **shown)
