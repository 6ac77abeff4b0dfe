"""One search on a landscape, through the same requests and results as a real run."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from benchmarks.landscape_proposer import SyntheticProposer
from benchmarks.landscapes import LANDSCAPES, read
from jaxreward.operators import WORDS
from jaxreward.records import Candidate, Failure, ProgramSummary, Request, Result, Score
from jaxreward.runs.generation import candidate_of
from jaxreward.search import SearchStrategy, make_strategy
from jaxreward.search.seeding import derive_rng

NODES = 50
"""Reward nodes of a term, for strategies that look at a program's size."""

ATTEMPTS = 4
"""Candidates that may be asked for, for each to be trained; as in a real run."""


@dataclass(frozen=True)
class Trial:
    """What to search with which strategy, for `budget` trained candidates in generations of `generation`."""

    landscape: str
    strategy: str
    budget: int
    seed: int
    options: Mapping[str, Any] = field(default_factory=dict)
    words: bool = True
    fidelity: float = 0.5
    insight: float = 0.25
    generation: int = 8


@dataclass(frozen=True)
class Outcome:
    """The outcome of a trial.

    `truth` is the true value of the candidate that the strategy says is best, 0 if it names none;
    `curve` holds (trained candidates, the same) after every generation. `asked` counts requests for
    words, `strategy_s` the processor seconds inside the strategy, `seconds` all; `ended` is why it stopped early.
    """

    truth: float
    curve: tuple[tuple[int, float], ...]
    trained: int
    attempts: int
    asked: int
    strategy_s: float
    seconds: float
    ended: str


class World:
    """Answers requests: a proposer, a check for duplicates, a formula in place of training.

    Chance depends on the seed and the place alone, so that two strategies that ask for the same get
    the same: the k-th program from scratch is the same in every search of a seed.
    """

    def __init__(self, trial: Trial) -> None:
        self.seed = trial.seed
        self.landscape = LANDSCAPES[trial.landscape](trial.seed)
        self.proposer = SyntheticProposer(self.landscape, trial.insight, trial.words, trial.fidelity)
        self.first: dict[str, str] = {}
        self.scratches = 0

    def answer(self, request: Request) -> Result:
        place: tuple[str | int, ...] = ("propose", request.id)
        if request.operator == "scratch":
            self.scratches += 1
            place = ("scratch", self.scratches)
        rng = derive_rng(self.seed, *place)
        proposal = self.proposer.propose(request, rng)
        candidate = candidate_of(request, proposal, _summary(proposal.source) if proposal.source else None)
        if proposal.failure is not None or proposal.words:
            return Result(candidate=candidate, failure=proposal.failure, words=proposal.words)
        failure = self._failure(candidate)
        if failure is not None:
            return Result(candidate=candidate, failure=failure)
        if self.landscape.noise:  # apart from the proposer's chance, which words would shift
            rng = derive_rng(self.seed, "score", request.id)
        mean = self.landscape.score(read(proposal.source), rng)
        return Result(candidate=candidate, score=Score(mean=mean, se=self.landscape.noise, n=3, episodes=96))

    def truth(self, result: Result | None) -> float:
        return self.landscape.truth(read(result.candidate.source)) if result else 0.0

    def _failure(self, candidate: Candidate) -> Failure | None:
        earlier = self.first.setdefault(candidate.source, candidate.id)
        if earlier != candidate.id:
            return Failure(stage="duplicate", message=f"computes the same as {earlier}", same_as=earlier)
        stage = self.landscape.failure(read(candidate.source))
        return None if stage is None else Failure(stage=stage, message="two terms do not go together")


def run(trial: Trial) -> Outcome:
    """The outcome of a trial; the same trial, the same outcome but for the seconds."""
    begin = time.process_time()
    world = World(trial)
    strategy: SearchStrategy = make_strategy(trial.strategy, budget=trial.budget, **trial.options)
    state, attempts, asked, inside, ended = strategy.init(), 0, 0, 0.0, ""
    curve: list[tuple[int, float]] = []
    while state.counts.trained < trial.budget:
        ended = strategy.finished(state) or ("all attempts are spent" if attempts >= ATTEMPTS * trial.budget else "")
        if ended:
            break
        n = min(trial.generation, trial.budget - state.counts.trained, ATTEMPTS * trial.budget - attempts)
        start = time.process_time()
        requests = strategy.ask(state, n, derive_rng(trial.seed, "ask", state.generation))
        inside += time.process_time() - start
        results = [world.answer(request) for request in requests]
        start = time.process_time()
        state = strategy.tell(state, results)
        inside += time.process_time() - start
        programs = sum(request.operator not in WORDS for request in requests)
        attempts, asked = attempts + programs, asked + len(requests) - programs
        if programs:
            curve.append((state.counts.trained, world.truth(strategy.best(state))))
    truth = curve[-1][1] if curve else 0.0
    return Outcome(
        truth, tuple(curve), state.counts.trained, attempts, asked, inside, time.process_time() - begin, ended
    )


def _summary(source: str) -> ProgramSummary:
    terms = len(read(source))
    return ProgramSummary(digest=source, observation_size=10, reward_nodes=NODES * terms)
