"""Programs without one group of their genes, and what such programs say of the genes."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from jaxreward.proposers.genetic.genome import ENTRY, Genome, Part
from jaxreward.proposers.genetic.lexicon import subjects
from jaxreward.proposers.genetic.variation import Variation
from jaxreward.records import Fragment, Result
from jaxreward.records.measure import interval_95

Named = tuple[Part, str]
"""A gene: its half and its name."""


class Parent(NamedTuple):
    """A program that a request shows, taken apart."""

    result: Result
    genome: Genome


@dataclass(frozen=True)
class Worth:
    """Genes without which a program did worse, and those without which it did better."""

    needed: frozenset[Named] = frozenset()
    harmful: frozenset[Named] = frozenset()


def groups(parent: Parent, variation: Variation) -> list[frozenset[Named]]:
    """Groups of a program's genes, each of which can be left out: all bonuses for states, all that can be farmed, what
    each stage of the task needs, what is about each subject, then single terms, those with most of the reward first,
    and single features."""
    genome, lexicon = parent.genome, variation.lexicon
    always = variation.blocks.reward if variation.blocks is not None else ""
    known: dict[Named, Fragment | None] = {
        (part, gene.name): lexicon.get(gene, genome.statements)
        for part in variation.parts
        for gene in genome.genes(part)
        if gene.name != always
    }
    found: list[set[Named]] = [
        {gene for gene, f in known.items() if f is not None and tag in f.tags} for tag in ("bonus", "farmable")
    ]
    stages = variation.blocks.names_of_stages() if variation.blocks is not None else ()
    found += [{gene for gene in known if gene[1] in names} for names in stages]
    about = {gene: subjects(f) if f is not None else () for gene, f in known.items()}
    found += [
        {gene for gene, named in about.items() if subject in named}
        for subject in dict.fromkeys(s for named in about.values() for s in named)
    ]
    curves = parent.result.feedback.terms if parent.result.feedback is not None else ()
    share = {curve.name: curve.share for curve in curves}
    order = sorted(known, key=lambda gene: (gene[0] == "observation", -share.get(gene[1], 0.0)))
    found += [{gene} for gene in order]
    kept = [frozenset(group) for group in found if group and without(genome, group) is not None]
    return list(dict.fromkeys(kept))


def without(genome: Genome, genes: Collection[Named]) -> Genome | None:
    """The genome without these genes; None where nothing would be left of a half."""
    for part in ENTRY:
        own = genome.genes(part)
        left = tuple(gene for gene in own if (part, gene.name) not in genes)
        if own and not left:
            return None
        if len(left) < len(own):
            genome = genome.with_half(part, left)
    return genome


def worth(parent: Parent, ablations: Sequence[Parent]) -> Worth:
    """What programs that lack a group of the parent's genes, and are as it is otherwise, each say of them, where their
    95 % intervals are apart. A gene that one of them needed is not harmful."""
    needed, harmful, own = set[Named](), set[Named](), parent.result.score
    mine = _genes(parent.genome)
    for child in ablations:
        score, theirs = child.result.score, _genes(child.genome)
        if own is None or score is None or len(theirs) == len(mine) or not theirs.items() <= mine.items():
            continue
        (low, high), (least, most) = interval_95(own), interval_95(score)
        if most < low:
            needed |= mine.keys() - theirs.keys()
        elif least > high:
            harmful |= mine.keys() - theirs.keys()
    return Worth(frozenset(needed), frozenset(harmful - needed))


def _genes(genome: Genome) -> dict[Named, float]:
    """The weight of each gene."""
    return {(part, gene.name): gene.weight for part in ENTRY for gene in genome.genes(part)}
