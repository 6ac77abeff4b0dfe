"""Random edits of one program, as bold as its success is low."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from jaxreward.function_source.statements import Statement
from jaxreward.proposers.genetic.blocks import EDITS as BLOCK_EDITS
from jaxreward.proposers.genetic.genome import Genome, Part
from jaxreward.proposers.genetic.guidance import band
from jaxreward.proposers.genetic.lexicon import pick
from jaxreward.proposers.genetic.variation import Variation
from jaxreward.records import Result

STRUCTURAL = frozenset(
    {"retarget", "add feature", "replace feature", "remove feature", "add term", "replace term", "remove term"}
)
"""Edits after which every gene that is still there has the weight it had."""

WEIGHING = frozenset({"rescale", "reweight"})
"""Edits that change a weight and nothing else."""

ONE_GENE = WEIGHING | STRUCTURAL - {"retarget"}
"""Edits of a single gene."""

RARE = 0.2
"""How often an edit is drawn that the band of a parent does not list, where only some kinds are asked for."""


def edited(genome: Genome, result: Result, variation: Variation) -> Genome:
    """The genome after one edit or more; opaque halves are perturbed or opened first."""
    here = band(result)
    rng = variation.rng
    for part in variation.parts:
        if isinstance(genome.half(part), Statement):
            genome = variation.perturb(genome, part) if rng.random() < 0.5 else variation.open(genome, part)
        elif genome.half(part) is None and rng.random() < 0.3:
            genome = variation.fresh_half(genome, part, variation.theme(genome))
    chances = edits_of(result, variation)
    while True:
        genome = edit(pick(rng, chances), genome, variation)
        if rng.random() >= here.go_on:
            return genome


def edits_of(result: Result, variation: Variation) -> dict[str, float]:
    """The chances of the edits of a program that has come so far."""
    return applying(band(result).edits, variation.parts) | (BLOCK_EDITS if variation.blocks is not None else {})


def edit(kind: str, genome: Genome, variation: Variation, literals: int = 0) -> Genome:
    """One edit; the genome itself where the kind does not apply to it.

    Opaque halves stay unless `literals` is given: then up to so many of its literals are changed, or it is opened.
    """
    if kind == "retarget":
        return variation.retarget(genome)
    if kind in BLOCK_EDITS:
        return variation.blocks.edit(kind, genome, variation) if variation.blocks is not None else genome
    if kind == "fresh":
        part = variation.parts[int(variation.rng.integers(len(variation.parts)))]
        theme = variation.theme(genome) if variation.rng.random() < 0.5 else variation.lexicon.theme(variation.rng)
        return variation.fresh_half(genome, part, theme)
    part = part_of(kind)
    if literals and isinstance(genome.half(part), Statement):
        if kind in WEIGHING:
            return variation.perturb(genome, part, literals)
        opened = variation.open(genome, part)
        if opened.genes(part):
            return variation.add_one(opened, part)
        return variation.fresh_half(genome, part, variation.theme(genome))
    if not genome.genes(part):  # opaque, or left to the default
        return genome
    verbs = {"add": variation.add_one, "remove": variation.remove, "replace": variation.replace}
    return verbs.get(kind.partition(" ")[0], variation.reweight)(genome, part)


def part_of(kind: str) -> Part:
    """The half that an edit of one gene is of."""
    return "observation" if kind.endswith("feature") or kind == "rescale" else "reward"


def applying(
    edits: Mapping[str, float], parts: Sequence[Part], kinds: Collection[str] | None = None
) -> dict[str, float]:
    """The chances of the edits that a search over `parts` may make.

    Of a band's own, or of `kinds`, those that the band does not list being rare.
    """
    chances = edits if kinds is None else {kind: edits.get(kind, RARE) for kind in sorted(kinds)}
    whole = ("retarget", "fresh")
    return {kind: chance for kind, chance in chances.items() if kind in whole or part_of(kind) in parts}


def completed(genome: Genome, variation: Variation, paid: bool = True) -> Genome:
    """A half that a parent lacked is left to the task's default; one that came out empty is new, and a reward of
    constant terms alone, which the checks refuse, gets another term; in blocks, the task's own reward is one, if
    `paid`."""
    for part in variation.parts:
        if genome.half(part) == ():
            genome = variation.fresh_half(genome, part, variation.theme(genome))
    genome = variation.with_varying_term(genome)
    return variation.blocks.with_reward(genome, variation) if variation.blocks is not None and paid else genome
