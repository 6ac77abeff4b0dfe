"""Blocks of a program: for a subgoal of the task a direction, a flag, and terms that lead there and pay for it.

A block is no structure of its own: its genes are those of a program that a subgoal names.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from jaxreward.proposers.genetic.genome import Gene, Genome, Part
from jaxreward.proposers.genetic.lexicon import pick
from jaxreward.proposers.genetic.variation import Variation
from jaxreward.records import Subgoal, Subgoals
from jaxreward.records.subgoals import FEATURES, TERMS

ROLES: Mapping[Part, tuple[str, ...]] = {"observation": FEATURES, "reward": TERMS}

CHANCES = {"directions": 1.0, "flags": 0.8, "approaches": 0.9, "completions": 0.7, "events": 0.25}
"""How often a new block has a fragment of a role."""

WHOLE = 0.7
"""How often a new program has a block for every subgoal; else for the first ones, or the last ones."""

IN_BLOCKS = 0.8
"""How often a program from scratch is built in blocks, the rest as without them."""

FURTHER: Mapping[Part, int] = {"observation": 4, "reward": 2}
"""How many other features and terms, fewer than this, a new program has."""

EDITS = {"add block": 2.0, "redo block": 1.5, "drop block": 0.5}
"""Edits of blocks, beside those of genes (`guidance.BANDS`)."""


@dataclass(frozen=True)
class Blocks:
    """Operators on genomes by the subgoals of a task; each returns its argument where it does not apply."""

    subgoals: Subgoals
    share: float = IN_BLOCKS

    @property
    def chain(self) -> tuple[Subgoal, ...]:
        return tuple(subgoal for subgoal in self.subgoals.chain if subgoal.names())

    @property
    def reward(self) -> str:
        """The name of the term that pays as the task does."""
        return self.subgoals.reward

    def names_of_stages(self) -> list[frozenset[str]]:
        """The names of each subgoal's fragments, but for those that another names as well."""
        names = [frozenset(subgoal.names()) for subgoal in self.chain]
        others = [frozenset[str]().union(*names[:k], *names[k + 1 :]) for k in range(len(names))]
        return [own - rest for own, rest in zip(names, others, strict=True)]

    def roles_played(self, genome: Genome) -> list[list[bool]]:
        """For each subgoal, whether a genome has a gene in each of its roles; events are left out."""
        have = {part: {gene.name for gene in genome.genes(part)} for part in ROLES}
        roles = [(have[part], role) for part in ROLES for role in ROLES[part] if role != "events"]
        named = [[(mine, getattr(subgoal, role)) for mine, role in roles] for subgoal in self.chain]
        return [[not mine.isdisjoint(names) for mine, names in own if names] for own in named]

    # ---- from nothing

    def scratch(self, variation: Variation) -> Genome:
        """A program for all subgoals or some, with a few other features and terms."""
        return self._new(Genome(), variation)

    def half(self, genome: Genome, part: Part, variation: Variation) -> Genome:
        """With a half for all subgoals or some in place of its own."""
        return self._new(genome, variation.of(part))

    def _new(self, genome: Genome, variation: Variation) -> Genome:
        rng, chain = variation.rng, self.chain
        chosen = range(len(chain))
        if len(chain) > 1 and rng.random() >= WHOLE:
            count = int(rng.integers(1, len(chain)))
            chosen = chosen[:count] if rng.random() < 0.5 else chosen[-count:]
        for part in variation.parts:
            genome = variation.with_basic(genome.with_half(part, ()), part)
        for index in chosen:
            genome = self.add(genome, index, variation)
        for part in variation.parts:
            for _ in range(int(rng.integers(0, FURTHER[part]))):
                genome = variation.add_one(genome, part)
        return self.with_reward(genome, variation)

    # ---- edits

    def edit(self, kind: str, genome: Genome, variation: Variation) -> Genome:
        """One of `EDITS`."""
        if not any(genome.genes(part) for part in variation.parts):
            return genome
        have = [k for k in range(len(self.chain)) if self.has(genome, k)]
        lack = [k for k in range(len(self.chain)) if k not in have]
        if kind == "drop block" and len(have) > 1:
            return self.drop(genome, _one(have, variation.rng))
        if kind == "add block" and lack:
            return self.add(genome, _one(lack, variation.rng), variation)
        return self.redo(genome, _one(have, variation.rng), variation) if have else genome

    def has(self, genome: Genome, index: int) -> bool:
        """Whether a genome has a gene of every half for a subgoal."""
        names = self.chain[index].names()
        halves = [genome.genes(part) for part in ROLES if genome.genes(part)]
        return all(any(gene.name in names for gene in half) for half in halves)

    def add(self, genome: Genome, index: int, variation: Variation) -> Genome:
        """With genes for a subgoal of the roles that it lacks."""
        for part in variation.parts:
            for role in ROLES[part]:
                names = [n for n in getattr(self.chain[index], role) if n in variation.lexicon.fragments]
                have = {gene.name for gene in genome.genes(part)}
                if names and have.isdisjoint(names) and variation.rng.random() < CHANCES[role]:
                    name = pick(variation.rng, {name: 0.5**k for k, name in enumerate(names)})
                    genome = variation.add(genome, part, variation.lexicon.fragments[name])
        return genome

    def drop(self, genome: Genome, index: int, last: bool = False) -> Genome:
        """Without the genes of a subgoal that no other names; the last gene of a half goes only with `last`."""
        going = self.names_of_stages()[index]
        for part in ROLES:
            left = tuple(gene for gene in genome.genes(part) if gene.name not in going)
            if genome.genes(part) and (left or last):
                genome = genome.with_half(part, left)
        return genome

    def redo(self, genome: Genome, index: int, variation: Variation) -> Genome:
        """With other genes for a subgoal, drawn anew."""
        child = self.add(self.drop(genome, index, last=True), index, variation)
        for part in ROLES:
            if child.half(part) == ():
                child = child.with_half(part, genome.half(part))
        return child

    def repaired(self, genome: Genome, dead: Collection[str], variation: Variation) -> Genome:
        """The first subgoal that no episode reached, as its flags show, is pursued in another way."""
        for index, subgoal in enumerate(self.chain):
            flags = [gene.name for gene in genome.genes("observation") if gene.name in subgoal.flags]
            if flags and set(flags) <= set(dead):
                return self.redo(genome, index, variation)
        return genome

    def needs(self, name: str) -> bool:
        """Whether a subgoal names a fragment."""
        return any(name in subgoal.names() for subgoal in self.chain)

    def with_reward(self, genome: Genome, variation: Variation) -> Genome:
        """With the task's own reward among the terms."""
        name = self.subgoals.reward
        genes = genome.genes("reward")
        if not genes or "reward" not in variation.parts or name not in variation.lexicon.fragments:
            return genome
        if any(gene.name == name for gene in genes):
            return genome
        fragment = variation.lexicon.fragments[name]
        added = variation.add(genome, "reward", fragment)
        return added if added is not genome else variation.add(variation.remove(genome, "reward"), "reward", fragment)

    # ---- two parents

    def crossover(self, one: Genome, other: Genome, variation: Variation) -> Genome:
        """Every block from one of the two, and what is of no block with even chances."""
        chosen = [bool(variation.rng.random() < 0.5) for _ in self.chain]
        for part in variation.parts:
            if one.genes(part) and other.genes(part):
                one = self._crossed(one, other, part, chosen, variation)
        return one

    def _crossed(
        self, one: Genome, other: Genome, part: Part, chosen: Sequence[bool], variation: Variation
    ) -> Genome:  # fmt: skip
        base, renamed = one.with_statements(other.needed(part))
        theirs = {renamed.get(gene.name, gene.name): gene.weight for gene in other.genes(part)}
        mine = {gene.name: gene.weight for gene in one.genes(part)}
        genes = list[Gene]()
        for name in dict.fromkeys([*mine, *theirs]):
            of = [chosen[k] for k, subgoal in enumerate(self.chain) if name in subgoal.names()]
            sources = [source for source, first in ((mine, True), (theirs, False)) if not of or first in of]
            weights = [source[name] for source in sources if name in source]
            if weights and (of or len(weights) == 2 or variation.rng.random() < 0.5):
                genes.append(Gene(name, weights[int(variation.rng.integers(len(weights)))]))
        return variation.fitted(base.with_half(part, tuple(genes)), part) if genes else one


def _one(options: Sequence[int], rng: np.random.Generator) -> int:
    return options[int(rng.integers(len(options)))]
