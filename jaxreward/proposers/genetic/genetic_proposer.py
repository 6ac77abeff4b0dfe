"""The built-in genetic proposer: programs from a task's vocabulary, no network needed."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from jaxreward.errors import InvalidSetting
from jaxreward.operators import OF_SUBTASKS, WORDS
from jaxreward.proposers.genetic.ablation import Parent, Worth, worth
from jaxreward.proposers.genetic.blocks import Blocks
from jaxreward.proposers.genetic.breeding import PARENTLESS, BreedingContext, breed
from jaxreward.proposers.genetic.genome import ENTRY, Genome, Part, readable, write
from jaxreward.proposers.genetic.lexicon import Lexicon
from jaxreward.proposers.genetic.planning import plan
from jaxreward.proposers.genetic.subtasks import groups_of
from jaxreward.proposers.genetic.surrogate import Surrogate
from jaxreward.proposers.genetic.variation import Variation
from jaxreward.proposers.proposer import Answers, Context, Known, OneByOne, RngOf
from jaxreward.records import (
    Failure,
    Proposal,
    Request,
    Result,
    TaskCard,
    Vocabulary,
    Watched,
    read_subtasks,
    write_subtasks,
)
from jaxreward.sentences import mention

ATTEMPTS = 40
"""Draws before giving up on an operator, the last quarter of them by `improve`, and writing from scratch."""

_LAST_RESORT = 200

FARMABLE = 0.2
"""How likely terms that can be farmed are drawn, against others of 1, where subgoals say what to pay for."""


class GeneticProposer(OneByOne):
    """Samples, mutates and crosses over programs; reads nothing but the request's records and, to choose among several
    draws, the scores of the run so far (`propose_all`).

    The operators are in `breeding`; an operator that is not known acts like `improve`, and a request
    without a readable parent starts from scratch. It plans, and has no words for thoughts and
    judgements; subtasks are the task's own. Never proposes a program equal to one that the request shows.
    """

    name = "genetic"

    def __init__(self, card: TaskCard, blocks: bool | None = None, surrogate: int = 0):
        """Args:
        blocks: build programs in blocks, one for each subgoal that the task says; None: where it says any.
        surrogate: programs drawn for each request, of which the one that the run's scores predict to be the best is
            proposed; 0: one is drawn.

        Raises:
            InvalidSetting: blocks for a task that says none of this vocabulary, or no vocabulary.
        """
        vocabulary = card.vocabulary if blocks is False else card.subgoals.joined(card.vocabulary)
        said = Blocks(card.subgoals.within({fragment.name for fragment in vocabulary.fragments}))
        if blocks and not said.chain:
            message = f"{card.name} says no subgoals to build blocks for: leave {mention('blocks', 'on')} out"
            raise InvalidSetting(message, "blocks")
        self.instruction = card.instruction
        self.blocks = said if said.chain and blocks is not False else None
        self.draws = max(1, surrogate)
        self._known: Callable[[], Sequence[Known]] = tuple
        self._surrogate: Surrogate | None = None
        self.build_from(vocabulary)

    def open(self, context: Context) -> None:
        self._known = context.known

    def build_from(self, vocabulary: Vocabulary) -> None:
        """Build programs from another vocabulary from now on."""
        self.vocabulary = vocabulary
        self.lexicon = Lexicon(vocabulary, FARMABLE if self.blocks is not None else 1.0)

    def propose_all(self, requests: Sequence[Request], rng_of: RngOf) -> Answers:
        self._surrogate = Surrogate.of(self._known(), self.blocks) if self.draws > 1 else None
        return super().propose_all(requests, rng_of)

    def propose(self, request: Request, rng: np.random.Generator) -> Proposal:
        if request.operator in WORDS:
            return self._words(request, rng)
        parts: tuple[Part, ...] = tuple(ENTRY) if request.evolve == "both" else (request.evolve,)
        context = self._context(request, parts, rng)
        if unpaid := next((name for name, names in context.groups.items() if not names), ""):
            message = f"no term of the vocabulary is left to pay for the subtask '{unpaid}'"
            failure = Failure(stage="declined", message=message)
            return Proposal(request_id=request.id, failure=failure, proposer=self.name)
        child = _new(request.operator, context)
        if self._surrogate is not None and request.operator != "ablate":
            drawn = [child, *(_new(request.operator, context) for _ in range(self.draws - 1))]
            child = drawn[self._surrogate.choice(drawn)]
        return Proposal(request_id=request.id, source=write(child), proposer=self.name)

    def _context(self, request: Request, parts: tuple[Part, ...], rng: np.random.Generator) -> BreedingContext:
        def taken_apart(results: Sequence[Result]) -> list[Parent]:
            found = ((result, _genome(result, parts)) for result in results)
            return [Parent(result, genome) for result, genome in found if genome is not None]

        parents, others = taken_apart(request.parents), taken_apart((*request.best, *request.diverse))
        failed = taken_apart((*request.failures, *([request.failed] if request.failed else ())))
        ablations = taken_apart(request.ablations)
        plan = request.plan.words if request.plan else ""
        subtasks = read_subtasks(plan) if request.operator in OF_SUBTASKS else ()
        seen = Watched.read(request.watched.words) if request.watched else None
        scores = seen.scores() if seen else {}
        own = [s for s in (self.instruction.subtasks if self.instruction else ()) if s.name in scores]
        terms = [fragment.name for fragment in self.vocabulary.fragments if fragment.kind == "term"]
        known = worth(parents[0], ablations) if parents and parents[0].result is request.parents[0] else Worth()
        return BreedingContext(
            Variation(self.lexicon, rng, parts, self.blocks, known.needed),
            parents,
            others,
            avoid=frozenset(shown.genome.key for shown in (*parents, *others, *failed, *ablations)),
            plan=plan,
            group=request.group,
            harmful=known.harmful,
            groups=groups_of(subtasks, self.instruction, terms) if subtasks else {},
            seen=scores,
            paying=groups_of(own, self.instruction, terms) if own and not subtasks else {},
        )

    def _words(self, request: Request, rng: np.random.Generator) -> Proposal:
        words = ""
        if request.operator == "plan":
            words = plan(Variation(self.lexicon, rng, blocks=self.blocks))
        elif request.operator == "divide" and self.instruction is not None:
            words = write_subtasks(self.instruction.subtasks)
        if words:
            return Proposal(request_id=request.id, words=words, proposer=self.name)
        message = f"the genetic proposer has no words for '{request.operator}'"
        failure = Failure(stage="declined", message=message)
        return Proposal(request_id=request.id, failure=failure, proposer=self.name)


def _new(operator: str, context: BreedingContext) -> Genome:
    """A program that is none of those shown."""
    for attempt in range(ATTEMPTS):
        given_up = attempt >= 0.75 * ATTEMPTS and operator not in PARENTLESS
        child = breed("improve" if given_up else operator, context)
        if context.is_new(child):
            return child
    for _ in range(_LAST_RESORT):
        child = breed("scratch", context)
        if context.is_new(child):
            return child
    for _ in range(_LAST_RESORT):  # a vocabulary so small that only weights are left to differ in
        for part in context.variation.parts:
            child = context.variation.reweight(child, part)
        if context.is_new(child):
            break
    return child


def _genome(result: Result, parts: tuple[Part, ...]) -> Genome | None:
    """The parts of a result's program that may change; None if it cannot be read."""
    genome = readable(result.candidate.source)
    if genome is None:
        return None
    for part in ENTRY:
        if part not in parts:
            genome = genome.with_half(part, None)
    return genome if any(genome.half(part) for part in parts) else None
