"""Programs without one group of their genes, and what such programs say of the genes."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from jaxreward.proposers.genetic.genome import ENTRY, Genome, Part
from jaxreward.proposers.genetic.lexicon import subjects
from jaxreward.proposers.genetic.variation import Variation
from jaxreward.records import Fragment, Result

Named = tuple[Part, str]
"""A gene: its half and its name."""

SURE = 1.96
"""Standard errors by which a program must differ from its parent."""


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
    """What programs that lack a group of the parent's genes each say of them, where they differ by their errors.

    A gene that one of them needed is not harmful.
    """
    needed, harmful, own = set[Named](), set[Named](), parent.result.score
    for child in ablations:
        score = child.result.score
        lacking = _genes(parent.genome) - _genes(child.genome)
        if own is None or score is None or not lacking:
            continue
        gain, error = score.merit - own.merit, SURE * (score.se**2 + own.se**2) ** 0.5
        if abs(gain) > error:
            (needed if gain < 0 else harmful).update(lacking)
    return Worth(frozenset(needed), frozenset(harmful - needed))


def _genes(genome: Genome) -> set[Named]:
    return {(part, gene.name) for part in ENTRY for gene in genome.genes(part)}
