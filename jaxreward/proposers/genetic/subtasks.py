"""Rewards with one term for each subtask of an instruction (RDA): a sum of fragments that pay for it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from jaxreward.proposers.genetic.genome import Genome
from jaxreward.proposers.genetic.lexicon import pick
from jaxreward.proposers.genetic.variation import MOST, Variation
from jaxreward.records import Instruction, Subtask

Groups = Mapping[str, Sequence[str]]
"""Of each subtask, the names of the fragments that may be parts of its term."""

SECOND = 0.5
"""How often a new term is a sum of two fragments."""

KINDS = {"strengthen": 2.0, "weaken": 0.5, "add": 1.5, "swap": 1.5}
"""Edits of the term of one subtask."""

GO_ON = 0.5
"""Chance of one more edit."""

DONE = 0.05
"""Chance to edit a subtask that was seen to be done, against 1 + DONE for one that was not at all."""


def groups_of(subtasks: Sequence[Subtask], own: Instruction | None, terms: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """Which of the vocabulary's `terms` pay for which subtask, each for one: those that the task's `own` of that name
    lists; one that several list goes to the one with the fewest. Subtasks without any share the rest, dealt in turn."""
    listed = {subtask.name: subtask.terms for subtask in (own.subtasks if own is not None else ())}
    wanted = {s.name: [name for name in terms if name in listed.get(s.name, ())] for s in subtasks}
    found: dict[str, list[str]] = {name: [] for name in wanted}
    for name in sorted(terms, key=lambda name: sum(name in mine for mine in wanted.values())):
        if takers := [subtask for subtask, mine in wanted.items() if name in mine]:
            found[min(takers, key=lambda subtask: len(found[subtask]))].append(name)
    left = [name for name in terms if not any(name in mine for mine in found.values())]
    without = [name for name, mine in found.items() if not mine]
    dealt = {name: left[k :: len(without)] for k, name in enumerate(without)}
    return {name: tuple(mine) for name, mine in (found | dealt).items()}


def composed(variation: Variation, groups: Groups) -> Genome:
    """A reward of one or two fragments for each subtask, with an observation as from scratch."""
    genome = Genome()
    for part in variation.parts:
        if part == "reward":
            genome = _with_all(genome.with_half(part, ()), variation, groups)
        else:
            genome = variation.fresh_half(genome, part, variation.lexicon.theme(variation.rng))
    return genome


def amended(genome: Genome, seen: Mapping[str, float], variation: Variation, groups: Groups) -> Genome:
    """The terms of subtasks that were seen to be done badly are changed most; now and then a feature is."""
    rng = variation.rng
    if "observation" in variation.parts and genome.genes("observation") and rng.random() < 0.3:
        genome = (variation.add_one if rng.random() < 0.5 else variation.replace)(genome, "observation")
    if "reward" not in variation.parts:
        return genome
    chances = {name: DONE + 1.0 - seen.get(name, 0.0) for name in groups}
    while True:
        genome = _edited(genome, pick(rng, chances), variation, groups)
        if rng.random() >= GO_ON:
            return genome


def grouped(genome: Genome, variation: Variation, groups: Groups) -> Genome:
    """A term for each subtask: genes that are of none go, and one without any gets some."""
    if "reward" not in variation.parts or genome.half("reward") is None:
        return genome
    term_of = {gene: term for term, names in groups.items() for gene in names}
    kept = tuple(gene for gene in genome.genes("reward") if gene.name in term_of)
    genome = _with_all(genome.with_half("reward", kept), variation, groups)
    order = list(groups)
    genes = sorted(genome.genes("reward"), key=lambda gene: order.index(term_of[gene.name]))
    pairs = tuple((gene.name, term_of[gene.name]) for gene in genes)
    return replace(genome.with_half("reward", tuple(genes)), groups=pairs)


def _with_all(genome: Genome, variation: Variation, groups: Groups) -> Genome:
    """With a fragment for each subtask that has none, and a second for some of them, as far as there is room."""
    lacking = [names for names in groups.values() if not _own(genome, names)]
    for names in lacking:
        genome = _with_one_more(genome, names, variation)
    for names in lacking:
        if variation.rng.random() < SECOND:
            genome = _with_one_more(genome, names, variation)
    return genome


def _edited(genome: Genome, name: str, variation: Variation, groups: Groups) -> Genome:
    rng, own = variation.rng, _own(genome, groups[name])
    kind = pick(rng, KINDS) if own else "add"
    if kind == "add":
        return _with_one_more(genome, groups[name], variation)
    if kind == "swap":
        more = _with_one_more(genome, groups[name], variation)
        return variation.remove(more, "reward", _one(own, rng)) if more is not genome else genome
    sign = 1.0 if kind == "strengthen" else -1.0
    for gene in own:
        genome = variation.scale(genome, "reward", gene, float(np.exp(sign * abs(rng.normal(0.9, 0.4)))))
    return genome


def _with_one_more(genome: Genome, names: Sequence[str], variation: Variation) -> Genome:
    have = {gene.name for gene in genome.genes("reward")}
    lacking = [name for name in names if name not in have and name in variation.lexicon.fragments]
    if not lacking or len(have) >= MOST["reward"]:
        return genome
    return variation.add(genome, "reward", variation.lexicon.fragments[_one(lacking, variation.rng)])


def _own(genome: Genome, names: Sequence[str]) -> list[str]:
    return [gene.name for gene in genome.genes("reward") if gene.name in names]


def _one(names: Sequence[str], rng: np.random.Generator) -> str:
    return names[int(rng.integers(len(names)))]
