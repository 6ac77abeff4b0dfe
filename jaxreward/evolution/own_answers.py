"""Requests that a search answers by itself: to score a program again, and to expand the data of its objective."""

from __future__ import annotations

import dataclasses
from typing import Any

from jaxreward.evolution.settings import EvolveSettings
from jaxreward.evolution.vocabulary import expanded_vocabulary
from jaxreward.objectives.demonstrations.objective import DemonstrationObjective
from jaxreward.objectives.objective import Objective
from jaxreward.programs import Program
from jaxreward.proposers.genetic.coverage import covering
from jaxreward.proposers.genetic.genetic_proposer import GeneticProposer
from jaxreward.proposers.proposer import Known, Proposer
from jaxreward.records import Failure, Proposal, Request
from jaxreward.runs import Progress
from jaxreward.search.selection import merit
from jaxreward.tasks import Task


def training_of(request: Request) -> str:
    """The tag of the checkpoints of what is trained to answer a request."""
    return f"expand-{request.id}"


def own_answer(request: Request, objective: Objective, program: Program | None) -> Proposal:
    """The answer to a request whose operator is one of `OWN`; `program` is its parent's, for data to expand."""
    parent = request.parents[0].candidate
    if program is None:
        who = parent.proposer or "search"
        return Proposal(request_id=request.id, source=parent.source, proposer=who, thought=parent.thought)
    found = objective.expand(training_of(request), "more data", request, program)
    if found is None:
        failure = Failure(stage="declined", message=f"the objective {objective.name} has no data to expand")
        return Proposal(request_id=request.id, failure=failure)
    return Proposal(request_id=request.id, proposer="search", **dataclasses.asdict(found))


def expansions_of(progress: Progress[Any]) -> tuple[str, ...]:
    """Ids of the requests by which the data of the objective were expanded."""
    known = [r for r in progress.results.values() if r.candidate.operator == "expand" and r.words]
    found = [result.candidate.id for result in known]
    for generation in progress.in_work.values():
        asked = [r.id for r in generation.requests if r.operator == "expand"]
        found += [id for id in asked if (p := generation.proposals.get(id)) is not None and p.words]
    return tuple(found)


def follow_expansions(proposer: Proposer, objective: Objective, task: Task, done: int) -> int:
    """Let a proposer that builds programs from a vocabulary of data have terms of what policies showed that expanded
    these; returns how many of them it knows, `done` so far."""
    if not isinstance(proposer, GeneticProposer) or not isinstance(objective, DemonstrationObjective):
        return done
    expansions = objective.expansions
    if len(expansions) > done:
        proposer.build_from(expanded_vocabulary(proposer.vocabulary, task, expansions[done:]))
    return len(expansions)


def covering_of(proposer: Proposer, settings: EvolveSettings) -> tuple[str, ...]:
    """Sources of programs that together have all that a proposer builds programs from; none where that is not known, or
    nothing follows the first generation."""
    if not isinstance(proposer, GeneticProposer) or settings.candidates <= settings.generation:
        return ()
    return covering(proposer.lexicon, settings.evolves)


def known_of(progress: Progress[Any]) -> tuple[Known, ...]:
    """The programs that have a score."""
    results = progress.results.values()
    return tuple(Known(r.candidate.source, merit(r)) for r in results if r.score is not None)


def room_of(progress: Progress[Any]) -> tuple[int, int]:
    """The largest observation and number of terms so far."""
    known = progress.known.values()
    return max((k.observation_size for k in known), default=0), max((len(k.terms) for k in known), default=0)
