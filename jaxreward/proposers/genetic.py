"""The built-in genetic proposer: programs from a task's vocabulary, no network needed."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from jaxreward.proposers.genome import ENTRY, Genome, Part, read, write
from jaxreward.proposers.guidance import band, repaired
from jaxreward.proposers.lexicon import Lexicon
from jaxreward.proposers.proposer import OneByOne
from jaxreward.proposers.statements import Statement
from jaxreward.proposers.variation import Variation
from jaxreward.records import Proposal, Request, Result, TaskCard

ATTEMPTS = 40
"""Draws before giving up on an operator and writing a program from scratch."""


class GeneticProposer(OneByOne):
    """Samples, mutates and crosses over programs; reads nothing but the request's records.

    Operators by `Request.operator`: `scratch`; `crossover`, of the first two parents (or the
    first and one of `best` and `diverse`); any other name mutates the first parent. A request
    without a readable parent starts from scratch. Never proposes a program equal to one that the
    request shows.
    """

    name = "genetic"

    def __init__(self, card: TaskCard):
        self.lexicon = Lexicon(card.vocabulary)

    def propose(self, request: Request, rng: np.random.Generator) -> Proposal:
        parts: tuple[Part, ...] = tuple(ENTRY) if request.evolve == "both" else (request.evolve,)
        variation = Variation(self.lexicon, rng, parts)
        shown = [*request.parents, *request.best, *request.diverse, *request.failures]
        avoid = {genome.key for result in shown if (genome := _genome(result, parts))}
        parents = [(result, genome) for result in request.parents if (genome := _genome(result, parts))]
        others = [(r, g) for r in (*request.best, *request.diverse) if (g := _genome(r, parts))]
        for _ in range(ATTEMPTS):
            child = self._vary(request.operator, parents, others, variation)
            if child.key not in avoid:
                return self._proposal(request, child)
        child = variation.scratch()
        while child.key in avoid:
            child = variation.scratch()
        return self._proposal(request, child)

    def _vary(
        self,
        operator: str,
        parents: Sequence[tuple[Result, Genome]],
        others: Sequence[tuple[Result, Genome]],
        variation: Variation,
    ) -> Genome:
        if operator == "scratch" or not parents:
            return variation.scratch()
        result, genome = parents[0]
        if operator == "crossover":
            mates = list(parents[1:2]) or [(r, g) for r, g in others if g.key != genome.key]
            if mates:
                _, mate = mates[int(variation.rng.integers(len(mates)))]
                child = variation.crossover(genome, mate)
                if child.key in (genome.key, mate.key) or variation.rng.random() < 0.3:
                    child = _edited(child, result, variation)
                return _completed(child, variation)
        return _completed(_mutated(genome, result, variation), variation)

    def _proposal(self, request: Request, genome: Genome) -> Proposal:
        return Proposal(request_id=request.id, source=write(genome), proposer=self.name)


def _genome(result: Result, parts: tuple[Part, ...]) -> Genome | None:
    """The parts of a result's program that may change; None if it cannot be read."""
    try:
        genome = read(result.candidate.source)
    except (SyntaxError, ValueError, RecursionError):
        return None
    for part in ENTRY:
        if part not in parts:
            genome = genome.with_half(part, None)
    return genome if any(genome.half(part) for part in parts) else None


def _completed(genome: Genome, variation: Variation) -> Genome:
    """A half that a parent lacked is left to the task's default; one that came out empty is new."""
    for part in variation.parts:
        if genome.half(part) == ():
            genome = variation.fresh_half(genome, part, variation.theme(genome))
    return genome


def _mutated(genome: Genome, result: Result, variation: Variation) -> Genome:
    """Repairs that the feedback suggests, then random edits, more of them the worse the parent."""
    mended = repaired(genome, result, variation)
    if mended.key != genome.key and variation.rng.random() < 0.5:
        return mended
    return _edited(mended, result, variation)


def _edited(genome: Genome, result: Result, variation: Variation) -> Genome:
    here = band(result)
    rng = variation.rng
    for part in variation.parts:
        if isinstance(genome.half(part), Statement):
            genome = variation.nudge(genome, part) if rng.random() < 0.5 else variation.open(genome, part)
        elif genome.half(part) is None and rng.random() < 0.3:
            genome = variation.fresh_half(genome, part, variation.theme(genome))
    kinds = [k for k in here.edits if _applies(k, variation.parts)]
    chances = np.array([here.edits[k] for k in kinds])
    while True:
        kind = kinds[int(rng.choice(len(kinds), p=chances / chances.sum()))]
        genome = _edit(kind, genome, variation)
        if rng.random() >= here.go_on:
            return genome


def _applies(kind: str, parts: Sequence[Part]) -> bool:
    if kind.endswith("feature") or kind == "rescale":
        return "observation" in parts
    if kind.endswith("term") or kind == "reweight":
        return "reward" in parts
    return True


def _edit(kind: str, genome: Genome, variation: Variation) -> Genome:
    verb, _, noun = kind.partition(" ")
    part: Part = "observation" if noun == "feature" or kind == "rescale" else "reward"
    if kind == "retarget":
        return variation.retarget(genome)
    if kind == "fresh":
        part = variation.parts[int(variation.rng.integers(len(variation.parts)))]
        theme = variation.theme(genome) if variation.rng.random() < 0.5 else variation.lexicon.theme(variation.rng)
        return variation.fresh_half(genome, part, theme)
    if not genome.genes(part):  # opaque, or left to the default
        return genome
    if verb == "add":
        return variation.add_one(genome, part)
    if verb == "remove":
        return variation.remove(genome, part)
    if verb == "replace":
        return variation.replace(genome, part)
    return variation.reweight(genome, part)
