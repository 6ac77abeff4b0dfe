"""Searches without training: programs are sets of weighted terms, scores are formulas with a known optimum.

A program is a subset of `TERMS` terms with a log10-weight each, written as JSON. Every landscape has one
best program, of value 1. Which terms are good, and at which weights, is drawn anew for every seed.
docs/appendix/landscapes.md says why each landscape is there.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar

import numpy as np

from jaxreward.records import Stage
from jaxreward.search.seeding import derive_rng

TERMS = 24
"""Terms that a program can have."""

BOUND = 2.0
"""Log10-weights lie in [-BOUND, BOUND]."""

Program = Mapping[int, float]
"""Active terms and their log10-weights."""


def write(program: Program) -> str:
    """The source of a program; the same program, the same source."""
    return json.dumps({str(j): round(program[j], 3) + 0.0 for j in sorted(program)})  # no -0.0


@lru_cache(maxsize=65536)
def read(source: str) -> Program:
    """The program of a source. Shared: do not change it."""
    return {int(j): weight for j, weight in json.loads(source).items()}


@dataclass(frozen=True)
class Goal:
    """Terms that are right together, each at its weight. A term that is there counts `PRESENT`, the
    rest of its share comes as its weight comes near; every term too many costs `EXTRA`."""

    weights: Program
    tolerance: float = 0.35

    PRESENT: ClassVar[float] = 0.4
    EXTRA: ClassVar[float] = 0.03

    def match(self, term: int, program: Program) -> float:
        """How far `term` is right in `program`, from 0 (absent) to 1."""
        if term not in program:
            return 0.0
        error = (program[term] - self.weights[term]) / self.tolerance
        return self.PRESENT + (1.0 - self.PRESENT) * math.exp(-0.5 * error * error)

    def extra(self, program: Program) -> float:
        """What the terms cost that are too many."""
        return self.EXTRA * (len(program) - len(program.keys() & self.weights.keys()))

    def closeness(self, program: Program) -> float:
        """0 to 1; 1 for the goal alone."""
        matched = 0.0
        for term in program:  # a plain loop: this is most of a search's time
            if term in self.weights:
                matched += self.match(term, program)
        return max(0.0, matched / len(self.weights) - self.extra(program))


@dataclass(frozen=True)
class Landscape:
    """What programs are worth.

    `plausibility` weighs the terms that somebody thinks of who knows the task's words only. `noise` is
    the standard deviation of a score about the truth. Where `informative` is false, the feedback on a
    program says nothing about what would be better.
    """

    seed: int
    goal: Goal
    plausibility: tuple[float, ...]

    name: ClassVar[str]
    noise: ClassVar[float] = 0.0
    informative: ClassVar[bool] = True

    @classmethod
    def make(cls, seed: int) -> Landscape:
        """Eight good terms, twice as plausible as the sixteen others; the same in all that have one hill."""
        return cls(seed, *_hill(seed))

    @property
    def optimum(self) -> Program:
        """The best program, of value 1."""
        return self.goal.weights

    def truth(self, program: Program) -> float:
        """The value of a program that does not fail, in [0, 1]."""
        return self.goal.closeness(program) ** 2

    def failure(self, program: Program) -> Stage | None:
        """Where a program fails, None if it does not."""
        return None

    def hint(self, program: Program) -> float:
        """What an edit can be judged by before it is tried, given perfect insight: the truth, if
        feedback can tell; -1 for a failure."""
        if self.failure(program) is not None:
            return -1.0
        return self.truth(program) if self.informative else 0.0

    def potential(self, program: Program) -> float:
        """How near an expert would say that a program is to the best one, in [0, 1]."""
        return self.goal.closeness(program)

    def score(self, program: Program, rng: np.random.Generator) -> float:
        """The truth as one training shows it, in [0, 1]."""
        value = self.truth(program)
        return min(1.0, max(0.0, value + rng.normal(0.0, self.noise))) if self.noise else value


class Smooth(Landscape):
    """One hill: every right step helps."""

    name = "smooth"


class Noisy(Landscape):
    """The same hill, seen with an error as large as most programs are worth."""

    name = "noisy"
    noise = 0.1


class Plateau(Landscape):
    """The same hill above a plain of exact zeros that holds about 19 of 20 programs from scratch."""

    name = "plateau"
    SHORE: ClassVar[float] = 0.36

    def truth(self, program: Program) -> float:
        return max(0.0, (self.goal.closeness(program) - self.SHORE) / (1.0 - self.SHORE))


@dataclass(frozen=True)
class Deceptive(Landscape):
    """A wide hill of height 0.6 that catches the eye, and a narrow one of height 1 whose foot is lower.

    Two terms belong to both, with other weights. From one top to the other every path leads down.
    """

    trap: Goal

    name: ClassVar[str] = "deceptive"
    HEIGHT: ClassVar[float] = 0.6

    @classmethod
    def make(cls, seed: int) -> Deceptive:
        rng = derive_rng(seed, "landscape", cls.name)
        order = rng.permutation(TERMS)
        goal, trap = Goal(_weights(order[:8], rng)), Goal(_weights(order[6:10], rng), tolerance=1.0)
        return cls(seed, goal, _plausibility(trap, 3.0), trap)

    def truth(self, program: Program) -> float:
        return max(self.HEIGHT * self.trap.closeness(program), self.goal.closeness(program) ** 2)


@dataclass(frozen=True)
class Failures(Landscape):
    """The smooth hill, where about half of all programs fail: those with both terms of a bad pair.

    Failures come in clusters, for a child shares most pairs with its parent. Half of the pairs are
    found before training; the others spend one.
    """

    pairs: tuple[tuple[int, int], ...]

    name: ClassVar[str] = "failures"
    PAIRS: ClassVar[int] = 15

    @classmethod
    def make(cls, seed: int) -> Failures:
        goal, plausibility = _hill(seed)
        rng = derive_rng(seed, "landscape", cls.name)
        possible = [(i, j) for i in range(TERMS) for j in range(i) if not {i, j} <= goal.weights.keys()]
        pairs = tuple(possible[int(k)] for k in rng.permutation(len(possible))[: cls.PAIRS])
        return cls(seed, goal, plausibility, pairs)

    def failure(self, program: Program) -> Stage | None:
        for k, (i, j) in enumerate(self.pairs):
            if i in program and j in program:
                return "numeric" if k % 2 else "diverged"
        return None


class Modular(Landscape):
    """Four blocks of three neighbouring terms; a block that lacks one is worth nothing."""

    name = "modular"
    BLOCKS: ClassVar[int] = 4

    @classmethod
    def make(cls, seed: int) -> Landscape:
        rng = derive_rng(seed, "landscape", cls.name)
        places = sorted(int(k) for k in rng.permutation(TERMS // 3)[: cls.BLOCKS])
        goal = Goal(_weights(np.asarray([3 * k + i for k in places for i in range(3)]), rng))
        return cls(seed, goal, _plausibility(goal, 2.0))

    def blocks(self, program: Program) -> list[float]:
        """How far each block is right."""
        terms = list(self.goal.weights)
        return [math.prod(self.goal.match(t, program) for t in terms[k : k + 3]) for k in range(0, len(terms), 3)]

    def truth(self, program: Program) -> float:
        return max(0.0, sum(self.blocks(program)) / self.BLOCKS - self.goal.extra(program))


class Needle(Landscape):
    """No structure: the value of every program is an independent draw, but for the best one."""

    name = "needle"
    informative = False

    def truth(self, program: Program) -> float:
        if program == self.optimum:
            return 1.0
        digest = hashlib.blake2b(f"{self.seed} {write(program)}".encode(), digest_size=8).digest()
        return 0.9 * (int.from_bytes(digest, "little") / 2.0**64) ** 20

    def potential(self, program: Program) -> float:
        return 0.5


def _hill(seed: int) -> tuple[Goal, tuple[float, ...]]:
    """Eight good terms, and the plausibility of all."""
    rng = derive_rng(seed, "landscape", "hill")
    goal = Goal(_weights(rng.permutation(TERMS)[:8], rng))
    return goal, _plausibility(goal, 2.0)


def _plausibility(goal: Goal, factor: float) -> tuple[float, ...]:
    return tuple(factor if term in goal.weights else 1.0 for term in range(TERMS))


def _weights(terms: np.ndarray, rng: np.random.Generator) -> Program:
    return {int(term): round(float(rng.uniform(-0.8, 0.8)), 3) for term in terms}


LANDSCAPES: dict[str, Callable[[int], Landscape]] = {
    cls.name: cls.make for cls in (Smooth, Deceptive, Noisy, Plateau, Failures, Modular, Needle)
}
"""Landscapes by name, each a function of the seed."""
