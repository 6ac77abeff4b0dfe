"""A search without training: candidates are points, their score is a formula."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

from jaxreward.records import Candidate, Failure, ProgramSummary, Request, Result, Score
from jaxreward.search.seeding import derive_rng

Formula = Callable[[int, int, np.ndarray], "float | None"]


def make_result(id: str, mean: float | None, size: int = 10, nodes: int = 50, **kwargs: Any) -> Result:
    """A result with a score, or with a guard failure where `mean` is None."""
    summary = ProgramSummary(digest=id, observation_size=size, reward_nodes=nodes)
    candidate = Candidate(
        id=id,
        generation=0,
        operator=kwargs.pop("operator", "scratch"),
        island=kwargs.pop("island", 0),
        source=kwargs.pop("source", f"# {id}"),
        summary=summary,
    )
    if mean is None:
        stage = kwargs.pop("stage", "guard")
        return Result(candidate=candidate, failure=Failure(stage=stage, message="no"), **kwargs)
    return Result(candidate=candidate, score=Score(mean=mean, se=kwargs.pop("se", 0.0), n=3, episodes=96), **kwargs)


@dataclass
class Landscape:
    """Programs are (observation size, reward nodes, `dims` numbers in [0, 1]); `formula` scores them."""

    formula: Formula
    dims: int = 3
    results: list[Result] = field(default_factory=list)
    requests: list[Request] = field(default_factory=list)

    def propose(self, request: Request, rng: np.random.Generator) -> dict[str, Any]:
        if not request.parents:
            return {
                "d": int(rng.integers(1, 513)),
                "r": int(rng.integers(0, 2000)),
                "x": rng.random(self.dims).tolist(),
            }
        genes = json.loads(request.parents[0].candidate.source)
        if len(request.parents) == 2:
            other = json.loads(request.parents[1].candidate.source)["x"]
            genes["x"] = np.where(rng.random(self.dims) < 0.5, genes["x"], other)
        step = rng.normal(0, 0.2, self.dims) * (rng.random(self.dims) < max(2 / self.dims, 0.2))
        return {
            "d": int(np.clip(genes["d"] + rng.normal(0, 20), 1, 512)),
            "r": int(np.clip(genes["r"] + rng.normal(0, 80), 0, 2500)),
            "x": np.clip(np.asarray(genes["x"]) + step, 0, 1).tolist(),
        }

    def evaluate(self, request: Request, rng: np.random.Generator) -> Result:
        genes = self.propose(request, rng)
        candidate = Candidate(
            id=request.id,
            generation=request.generation,
            operator=request.operator,
            island=request.island,
            parents=tuple(parent.candidate.id for parent in request.parents),
            source=json.dumps(genes),
            summary=ProgramSummary(digest=request.id, observation_size=genes["d"], reward_nodes=genes["r"]),
        )
        mean = self.formula(genes["d"], genes["r"], np.asarray(genes["x"]))
        if mean is None:
            return Result(candidate=candidate, failure=Failure(stage="numeric", message="not finite"))
        return Result(candidate=candidate, score=Score(mean=mean, se=0.01, n=3, episodes=96))

    def search(self, strategy: Any, candidates: int, batch: int, seed: int = 0) -> Any:
        """The final state of a search of `candidates` in generations of `batch`."""
        state = strategy.init()
        while state.told < candidates:
            n = min(batch, candidates - state.told)
            requests = strategy.ask(state, n, derive_rng(seed, "ask", state.generation))
            results: Sequence[Result] = [self.evaluate(r, derive_rng(seed, "propose", r.id)) for r in requests]
            self.requests += requests
            self.results += results
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


@pytest.fixture
def result() -> Callable[..., Result]:
    return make_result


@pytest.fixture
def landscape() -> Callable[..., Landscape]:
    formulas = {"bumpy": bumpy, "narrow": narrow, "plateau": plateau}
    return lambda formula="bumpy", dims=3: Landscape(formulas[formula], dims)
