"""A proposer for landscapes: every operator as a stochastic edit, about as good as its limits let it be."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from benchmarks.landscapes import BOUND, TERMS, Landscape, Program, read, write
from jaxreward.operators import WORDS
from jaxreward.records import Failure, Proposal, Request, Result, Seen, Watched

TRIES = 8
"""Draws among which an informed edit looks for one that helps, and among which `different` takes the farthest."""

SPREAD = 0.6
"""Standard deviation of log10-weights from nothing; the best lie uniformly in [-0.8, 0.8]."""

SEEING = ("improve", "structure", "weights", "term", "crossover", "path")
"""Operators that are shown feedback. `reflect`, which analyses it first, is informed twice as often."""

Edit = Callable[[], dict[int, float]]


@dataclass(frozen=True)
class SyntheticProposer:
    """Answers requests about one landscape.

    Args:
        insight: the chance that an edit goes where feedback rightly points; it is then the first of
            `TRIES` draws that is truly better than the first parent, if one is.
        words: whether it has words; without, it declines what asks for them.
        fidelity: the chance that a judgement (`verify`, `prefer`) is right; else it is drawn at random.
        blur: the error (standard deviation) with which a thought sees what a term adds to the value; it
            says nothing of a term that seems to add less than that.
        drift: the chance that a thought from before the program is about another program.
        heed: the chance that `crossover` and `path` follow what a thought says of a term.
    """

    landscape: Landscape
    insight: float = 0.25
    words: bool = True
    fidelity: float = 0.5
    blur: float = 0.02
    drift: float = 0.3
    heed: float = 0.5

    def propose(self, request: Request, rng: np.random.Generator) -> Proposal:
        """The answer to a request; what it says depends on the request and `rng` alone."""
        if request.operator in WORDS:
            return self._in_words(request, rng)
        shown = (*request.parents, *request.best, *request.diverse, *request.failures)
        avoid = {result.candidate.source for result in shown}
        for _ in range(TRIES):
            child = self._program(request, rng)
            if (source := write(child)) not in avoid:
                break
        thought = self._first_thought(child, rng) if request.thought and self.words else ""
        return Proposal(request_id=request.id, proposer="synthetic", source=source, thought=thought)

    # ---- programs

    def _program(self, request: Request, rng: np.random.Generator) -> Program:
        parents = [read(parent.candidate.source) for parent in request.parents]
        if request.failed is not None and request.failed.candidate.source:
            failed = read(request.failed.candidate.source)
            return self._informed(lambda: self._removed(failed, rng), failed, self.insight, rng)
        if request.operator == "implement" and request.plan is not None:
            return self.implemented(request.plan.words, rng)
        if not parents:
            return self.scratch(rng)
        edits: dict[str, Edit] = {
            "structure": lambda: self.structure(parents[0], rng),
            "weights": lambda: self.weights(parents[0], rng),
            "term": lambda: self.term(parents[0], rng),
            "crossover": lambda: self.crossover(request.parents, rng),
            "path": lambda: self.path(request.parents, rng),
            "different": lambda: self.different([*parents, *_programs(request.best, request.diverse)], rng),
        }
        edit = edits.get(request.operator, lambda: self.improve(parents[0], rng))
        chance = {"reflect": 2.0 * self.insight, **dict.fromkeys(SEEING, self.insight)}.get(request.operator, 0.0)
        return self._informed(edit, parents[0], chance, rng)

    def _informed(self, edit: Edit, parent: Program, chance: float, rng: np.random.Generator) -> Program:
        child = edit()
        if chance and rng.random() < chance:
            level = self.landscape.hint(parent)
            for _ in range(TRIES):
                if self.landscape.hint(child) > level:
                    break
                child = edit()
        return child

    def scratch(self, rng: np.random.Generator, fewest: int = 3, most: int = 9) -> dict[int, float]:
        """Terms by their plausibility, at usual weights."""
        likely = np.log(self.landscape.plausibility) + rng.gumbel(size=TERMS)
        terms = np.argsort(-likely)[: int(rng.integers(fewest, most + 1))]
        return {int(term): float(w) for term, w in zip(terms, rng.normal(0.0, SPREAD, len(terms)))}

    def structure(self, parent: Program, rng: np.random.Generator) -> dict[int, float]:
        """One or, three times in ten, two terms added, removed or replaced."""
        child = dict(parent)
        for _ in range(1 + (rng.random() < 0.3)):
            kind = rng.random()
            if kind > 1 / 3:
                child = self._removed(child, rng)
            if kind < 2 / 3:
                child = self._added(child, rng)
        return child

    def weights(self, parent: Program, rng: np.random.Generator) -> dict[int, float]:
        """About half of the weights moved, at least one."""
        child, terms = dict(parent), list(parent)
        moved = {terms[int(rng.integers(len(terms)))], *(term for term in terms if rng.random() < 0.5)}
        for term in sorted(moved):
            child[term] = _bounded(child[term] + rng.normal(0.0, 0.4))
        return child

    def term(self, parent: Program, rng: np.random.Generator) -> dict[int, float]:
        """Exactly one term weighted anew, replaced, added or removed."""
        kind, child = rng.random(), dict(parent)
        if kind < 0.4:
            chosen = list(child)[int(rng.integers(len(child)))]
            child[chosen] = _bounded(child[chosen] + rng.normal(0.0, 0.6))
            return child
        if kind < 0.7:
            return self._added(self._removed(child, rng), rng, but=tuple(child))
        return self._added(child, rng) if kind < 0.85 or len(child) == 1 else self._removed(child, rng)

    def improve(self, parent: Program, rng: np.random.Generator) -> dict[int, float]:
        """Structure, weights, or both."""
        kind = rng.random()
        child = self.structure(parent, rng) if kind < 0.6 else dict(parent)
        return self.weights(child, rng) if kind >= 0.4 else child

    def crossover(self, parents: Sequence[Result], rng: np.random.Generator) -> dict[int, float]:
        """The first parent with a run of neighbouring terms of every other, then what the thoughts say;
        three times in ten also an edit of its own, as the genetic proposer does."""
        programs = _programs(parents)
        child = dict(programs[0])
        for donor in programs[1:]:
            start, length = int(rng.integers(TERMS)), int(rng.integers(1, TERMS // 2 + 1))
            run = {(start + k) % TERMS for k in range(length)}
            child = {j: w for j, w in child.items() if j not in run} | {j: w for j, w in donor.items() if j in run}
        child = self._heeding(child or dict(programs[0]), parents, rng)
        return self.improve(child, rng) if len(programs) == 1 or rng.random() < 0.3 else child

    def path(self, parents: Sequence[Result], rng: np.random.Generator) -> dict[int, float]:
        """The weights moved on as they moved from the oldest ancestor to the parent, then what the
        thoughts say, and half of the time an edit."""
        programs = _programs(parents)
        newest, oldest, stride = programs[0], programs[-1], rng.random()
        child = {j: _bounded(w + stride * (w - oldest.get(j, w))) for j, w in newest.items()}
        child = self._heeding(child, parents, rng)
        return self.improve(child, rng) if len(programs) == 1 or rng.random() < 0.5 else child

    def different(self, shown: Sequence[Program], rng: np.random.Generator) -> dict[int, float]:
        """Of several programs from nothing, that which shares fewest terms with any shown."""
        return max((self.scratch(rng) for _ in range(TRIES)), key=lambda p: min(distance(p, q) for q in shown))

    def implemented(self, plan: str, rng: np.random.Generator) -> dict[int, float]:
        """Four in five terms of a plan, at usual weights."""
        planned = [int(term) for term in re.findall(r"^- term_(\d+):", plan, re.MULTILINE)]
        built = [term for term in planned if rng.random() < 0.8] or planned[:1]
        return {term: float(rng.normal(0.0, SPREAD)) for term in built}

    def _added(self, program: Program, rng: np.random.Generator, but: Sequence[int] = ()) -> dict[int, float]:
        """With a plausible term more, not one of `but`."""
        likely = np.log(self.landscape.plausibility) + rng.gumbel(size=TERMS)
        likely[[*program, *but]] = -np.inf
        added = int(np.argmax(likely))
        return dict(program) if np.isinf(likely[added]) else {**program, added: float(rng.normal(0.0, SPREAD))}

    def _removed(self, program: Program, rng: np.random.Generator) -> dict[int, float]:
        """Less one term, unless it is the last."""
        if len(program) == 1:
            return dict(program)
        gone = list(program)[int(rng.integers(len(program)))]
        return {term: weight for term, weight in program.items() if term != gone}

    # ---- thoughts and other words

    def thought(self, program: Program, rng: np.random.Generator) -> str:
        """Which terms of a program help and which hurt, as far as it can be seen; of others, nothing."""
        useful: dict[bool, list[int]] = {True: [], False: []}
        whole = self.landscape.hint(program)
        for term in sorted(program):
            rest = {j: w for j, w in program.items() if j != term}
            gain = whole - (self.landscape.hint(rest) if rest else 0.0) + rng.normal(0.0, self.blur)
            if abs(gain) > self.blur:
                useful[gain > 0].append(term)
        return f"Useful: {_list(useful[True])}. Useless: {_list(useful[False])}."

    def _first_thought(self, program: Program, rng: np.random.Generator) -> str:
        return self.thought(self.scratch(rng) if rng.random() < self.drift else program, rng)

    def _heeding(
        self, child: dict[int, float], parents: Sequence[Result], rng: np.random.Generator
    ) -> dict[int, float]:
        """`child` with useful terms of the parents and without useless ones, as their thoughts say."""
        for parent in parents:
            program = read(parent.candidate.source)
            for term, useful in opinions(parent.candidate.thought).items():
                if term not in program or rng.random() >= self.heed:
                    continue
                if useful:
                    child.setdefault(term, program[term])
                elif term in child and len(child) > 1:
                    del child[term]
        return child

    def _in_words(self, request: Request, rng: np.random.Generator) -> Proposal:
        if not self.words:
            failure = Failure(stage="declined", message="this proposer has no words")
            return Proposal(request_id=request.id, proposer="synthetic", failure=failure)
        programs = _programs(request.parents)
        right = rng.random() < self.fidelity
        match request.operator:
            case "plan" | "divide" | "revise":
                words = "\n".join(f"- term_{term}: it came to mind" for term in self.scratch(rng, 8, 12))
            case "align":
                words = self.thought(programs[0], rng)
            case "watch":
                seen = self.landscape.potential(programs[0]) if right else rng.uniform()
                words = Watched(subtasks={"whole": (Seen(score=float(np.clip(seen, 0.0, 1.0))),)}).as_words()
            case "verify":
                judged = 2.0 * self.landscape.potential(programs[0]) - 1.0
                words = f"{judged if right else rng.uniform(-1.0, 1.0):.1f}"
            case _:  # prefer
                gain = self.landscape.hint(programs[0]) - self.landscape.hint(programs[1])
                gain = gain if right else rng.integers(-1, 2)
                words = "first" if gain > 0 else "second" if gain < 0 else "equal"
        return Proposal(request_id=request.id, proposer="synthetic", words=words)


def distance(one: Program, other: Program) -> float:
    """The share of the terms of two programs that only one of them has."""
    return 1.0 - len(one.keys() & other.keys()) / len(one.keys() | other.keys())


def opinions(thought: str) -> dict[int, bool]:
    """The terms of which a thought says that they are useful, or useless."""
    useful, _, useless = thought.partition("Useless:")
    return {int(term): useful_ for text, useful_ in ((useful, True), (useless, False)) for term in _numbers(text)}


def _numbers(text: str) -> list[str]:
    return re.findall(r"\d+", text)


def _list(terms: Sequence[int]) -> str:
    return ", ".join(map(str, terms)) or "none known"


def _programs(*groups: Sequence[Result]) -> list[Program]:
    return [read(result.candidate.source) for group in groups for result in group]


def _bounded(weight: float) -> float:
    return float(min(BOUND, max(-BOUND, weight)))
