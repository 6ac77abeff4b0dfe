"""A search without training: candidates are points, their score is a formula."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

from jaxreward.operators import WORDS
from jaxreward.records import (
    SUCCESS,
    Candidate,
    Failure,
    Measure,
    ProgramSummary,
    Request,
    Result,
    Score,
    Seen,
    Watched,
)
from jaxreward.search.seeding import derive_rng
from jaxreward.search.selection import scored

RETURN = Measure(name="return", rate=False, worst=-300.0)
Formula = Callable[[int, int, np.ndarray], "float | None"]


def make_result(id: str, mean: float | None, size: int = 10, nodes: int = 50, **kwargs: Any) -> Result:
    """A result with a score, or with a guard failure where `mean` is None; further fields of the
    candidate, the score or the result by name."""
    fields = {name: kwargs.pop(name) for name in Candidate.model_fields if name in kwargs}
    summary = ProgramSummary(digest=id, observation_size=size, reward_nodes=nodes)
    defaults = {"generation": 0, "operator": "scratch", "source": f"# {id}", "summary": summary}
    candidate = Candidate(id=id, **{**defaults, **fields})
    if kwargs.get("words"):
        return Result(candidate=candidate, **kwargs)
    if mean is None:
        stage = kwargs.pop("stage", "guard")
        return Result(candidate=candidate, failure=Failure(stage=stage, message="no"), **kwargs)
    score = {"se": 0.0, "n": 3, "measure": SUCCESS}
    score |= {key: kwargs.pop(key) for key in tuple(score) if key in kwargs}
    return Result(candidate=candidate, score=Score(mean=mean, episodes=96, **score), **kwargs)


def fluent(request: Request, rng: np.random.Generator) -> str:
    """Words of the right form: judgements at random, the better agent preferred, with a remark."""
    if request.operator == "prefer":
        one, two = (scored(parent).mean for parent in request.parents)
        return ("equal" if one == two else "first" if one > two else "second") + f"\nremark on {request.id}"
    if request.operator == "watch":
        return Watched(subtasks={"reach": (Seen(score=float(rng.uniform()), why="as drawn"),)}).as_words()
    return {"verify": f"{rng.uniform(-1, 1):.2f}", "align": f"thought anew in {request.id}"}.get(
        request.operator, "- reach: come closer"
    )


@dataclass
class Landscape:
    """Programs are (observation size, reward nodes, `dims` numbers in [0, 1]); `formula` scores them.

    Requests for words are answered by `words`, or declined. With `repairs`, a failed program comes back
    once within its generation. A share `withdrawn` of the requests is withdrawn.
    """

    formula: Formula
    dims: int = 3
    words: Callable[[Request, np.random.Generator], str] | None = None
    measure: Measure = SUCCESS
    repairs: bool = False
    withdrawn: float = 0.0
    results: list[Result] = field(default_factory=list)
    requests: list[Request] = field(default_factory=list)
    generations: list[list[Result]] = field(default_factory=list)

    def propose(self, request: Request, rng: np.random.Generator) -> dict[str, Any]:
        if not request.parents:
            return {
                "d": int(rng.integers(1, 513)),
                "r": int(rng.integers(0, 2000)),
                "x": rng.random(self.dims).tolist(),
            }
        genes = json.loads(request.parents[0].candidate.source)
        if len(request.parents) > 1:
            other = json.loads(request.parents[1].candidate.source)["x"]
            genes["x"] = np.where(rng.random(self.dims) < 0.5, genes["x"], other)
        step = rng.normal(0, 0.2, self.dims) * (rng.random(self.dims) < max(2 / self.dims, 0.2))
        return {
            "d": int(np.clip(genes["d"] + rng.normal(0, 20), 1, 512)),
            "r": int(np.clip(genes["r"] + rng.normal(0, 80), 0, 2500)),
            "x": np.clip(np.asarray(genes["x"]) + step, 0, 1).tolist(),
        }

    def evaluate(self, request: Request, rng: np.random.Generator) -> Result:
        candidate = Candidate(
            id=request.id,
            generation=request.generation,
            operator=request.operator,
            island=request.island,
            parents=tuple(parent.candidate.id for parent in request.parents),
            plan=request.plan.candidate.id if request.plan else "",
            repairs=request.failed.candidate.id if request.failed else "",
            group=request.group,
        )
        if request.operator in WORDS:
            if self.words is None:
                return Result(candidate=candidate, failure=Failure(stage="declined", message="no words"))
            return Result(candidate=candidate, words=self.words(request, rng))
        genes = self.propose(request, rng)
        summary = ProgramSummary(digest=request.id, observation_size=genes["d"], reward_nodes=genes["r"])
        depth = 1 + max((parent.candidate.depth for parent in request.parents), default=-1)
        candidate = candidate.model_copy(update={"source": json.dumps(genes), "summary": summary, "depth": depth})
        mean = self.formula(genes["d"], genes["r"], np.asarray(genes["x"]))
        if mean is None:
            return Result(candidate=candidate, failure=Failure(stage="numeric", message="not finite"))
        return Result(candidate=candidate, score=Score(mean=mean, se=0.01, n=3, episodes=96, measure=self.measure))

    def answer(self, requests: list[Request], seed: int) -> list[Result]:
        """The results of a generation, in its order, repairs last."""
        kept = [r for r in requests if derive_rng(seed, "withdraw", r.id).random() >= self.withdrawn]
        results = [self.evaluate(request, derive_rng(seed, "propose", request.id)) for request in kept]
        if self.repairs:
            failed = [(q, r) for q, r in zip(kept, results, strict=True) if r.failure and q.operator not in WORDS]
            again = [q.model_copy(update={"id": f"{q.id}-r1", "failed": r}) for q, r in failed]
            results += [self.evaluate(request, derive_rng(seed, "propose", request.id)) for request in again]
        return results

    def search(self, strategy: Any, candidates: int, batch: int, seed: int = 0) -> Any:
        """The final state of a search of `candidates` in generations of `batch`."""
        state = strategy.init()
        while state.num_results < candidates:
            assert state.generation < 20 * candidates + 100, "the search gets nowhere"
            n = min(batch, candidates - state.num_results)
            requests = strategy.ask(state, n, derive_rng(seed, "ask", state.generation))
            results = self.answer(requests, seed)
            self.requests += requests
            self.results += results
            self.generations.append(results)
            state = strategy.tell(state, results)
        return state


def bumpy(d: int, r: int, x: np.ndarray) -> float | None:
    """Smooth in `x`, best for small observations and medium rewards; half of it always fails."""
    if x[0] > 0.5:
        return None
    niche = np.exp(-((d - 60) ** 2) / 200.0**2 - (r - 600) ** 2 / 900.0**2)
    return float(niche * np.exp(-4.0 * np.sum((x - np.asarray([0.3, 0.7, 0.5])) ** 2)))


def narrow(d: int, r: int, x: np.ndarray) -> float | None:
    """One narrow peak, far from where most random programs lie."""
    return float(np.exp(-12.0 * np.sum((x - np.asarray([0.9, 0.1, 0.9])) ** 2)))


def plateau(d: int, r: int, x: np.ndarray) -> float | None:
    """A wide hill that rises from a plain of zeros; a fifth of all programs fails."""
    if x[0] > 0.8:
        return None
    height = float(np.exp(-18.0 * np.mean((x - np.linspace(0.2, 0.8, len(x))) ** 2)))
    return height if height > 0.2 else 0.0


def nowhere(d: int, r: int, x: np.ndarray) -> float | None:
    """Everything fails."""
    return None


def level(d: int, r: int, x: np.ndarray) -> float | None:
    """All scores are equal, and zero."""
    return 0.0


def depths(d: int, r: int, x: np.ndarray) -> float | None:
    """`bumpy`, with scores below zero and of another size."""
    height = bumpy(d, r, x)
    return None if height is None else 300.0 * (height - 1.0)


@pytest.fixture
def result() -> Callable[..., Result]:
    return make_result


@pytest.fixture
def landscape() -> Callable[..., Landscape]:
    formulas = {f.__name__: f for f in (bumpy, narrow, plateau, nowhere, level, depths)}

    def make(formula: str = "bumpy", dims: int = 3, words: bool = False, **kwargs: Any) -> Landscape:
        measure = RETURN if formula == "depths" else SUCCESS
        return Landscape(formulas[formula], dims, fluent if words else None, measure, **kwargs)

    return make
