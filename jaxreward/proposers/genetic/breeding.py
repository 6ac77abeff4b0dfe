"""The operators of the genetic proposer: one function for each, from programs shown to a new one.

Each works on the parts that may change and on nothing else. A half in the genome's form is changed
gene by gene; an opaque one is perturbed where weights are asked for, and opened where genes are.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType

from jaxreward.function_source.statements import Statement
from jaxreward.proposers.genetic.ablation import Named, Parent, groups, without
from jaxreward.proposers.genetic.continuation import next_step
from jaxreward.proposers.genetic.edits import (
    ONE_GENE,
    STRUCTURAL,
    WEIGHING,
    applying,
    completed,
    edit,
    edited,
    edits_of,
    part_of,
)
from jaxreward.proposers.genetic.genome import Gene, Genome, Part
from jaxreward.proposers.genetic.guidance import band, level, repaired
from jaxreward.proposers.genetic.lexicon import pick
from jaxreward.proposers.genetic.planning import carried_out
from jaxreward.proposers.genetic.subtasks import Groups, amended, composed, grouped
from jaxreward.proposers.genetic.variation import MOST, Variation

NEAR_ZERO = 0.05
"""A parent of less success is rewritten as often as repaired, where its feedback is reflected on."""

STRANGERS = 6
"""Themes or programs in blocks, drawn for a program of another kind; the one with most that is new is taken."""


@dataclass(frozen=True)
class BreedingContext:
    """What a new program is made from.

    `others` are the other programs shown, `avoid` the keys of all that is shown, `plan` the
    words to carry out, `group` which group of genes is to be left out; those that are `harmful` go.
    `groups` are subtasks of which the reward has a term each, `seen` how well the first parent's agent did subtasks,
    `paying` which terms pay for these where no term of the reward has to.
    """

    variation: Variation
    parents: Sequence[Parent]
    others: Sequence[Parent] = ()
    avoid: frozenset = frozenset()
    plan: str = ""
    group: int = 0
    harmful: frozenset[Named] = frozenset()
    groups: Groups = field(default_factory=lambda: MappingProxyType({}))
    seen: Mapping[str, float] = field(default_factory=lambda: MappingProxyType({}))
    paying: Groups = field(default_factory=lambda: MappingProxyType({}))

    def is_new(self, genome: Genome) -> bool:
        return genome.key not in self.avoid


def breed(operator: str, context: BreedingContext) -> Genome:
    """A new genome by an operator; one that needs a parent and has none starts from scratch.

    An operator that is not known acts like `improve`.
    """
    if operator not in PARENTLESS and not context.parents:
        bred = context.variation.scratch()
    else:
        bred = BREEDERS.get(operator, improve)(context)
    child = completed(bred, context.variation, paid=not context.groups)  # what no subtask names is no term
    return grouped(child, context.variation, context.groups) if context.groups else child


def scratch(context: BreedingContext) -> Genome:
    return context.variation.scratch()


def improve(context: BreedingContext) -> Genome:
    """Repairs that the feedback suggests, then random edits, more of them the worse the parent."""
    result, genome = context.parents[0]
    child = repaired(_lean(context), result, context.variation)
    if child.key != genome.key and context.variation.rng.random() < 0.5:
        return child
    return edited(child, result, context.variation)


def _lean(context: BreedingContext) -> Genome:
    """The first parent without the genes that harm it."""
    genome = context.parents[0].genome
    left = without(genome, context.harmful)
    return genome if left is None else left


def ablate(context: BreedingContext) -> Genome:
    """The first parent without one group of its genes; an improved one where it has no such group."""
    parent = context.parents[0]
    found = groups(parent, context.variation)
    child = without(parent.genome, found[context.group]) if context.group < len(found) else None
    return improve(context) if child is None else child


def structure(context: BreedingContext) -> Genome:
    """Genes added, removed and replaced; those that stay keep their weights."""
    child = _changed(context, applying(band(context.parents[0].result).edits, context.variation.parts, STRUCTURAL))
    for part in context.variation.parts:  # a gene that went may have come back
        had = dict(context.parents[0].genome.genes(part))
        if had and child.genes(part):
            child = child.with_half(part, tuple(Gene(g.name, had.get(g.name, g.weight)) for g in child.genes(part)))
    return child


def weights(context: BreedingContext) -> Genome:
    """Weights of one gene or more; of opaque halves, literals."""
    return _changed(context, applying(band(context.parents[0].result).edits, context.variation.parts, WEIGHING))


def term(context: BreedingContext) -> Genome:
    """Exactly one gene: another weight, another gene, one more or one less."""
    return _changed(context, applying(band(context.parents[0].result).edits, context.variation.parts, ONE_GENE), most=1)


def _changed(context: BreedingContext, chances: Mapping[str, float], most: int = 20) -> Genome:
    """The first parent after one edit or more of the kinds given, at most `most`."""
    result, genome = context.parents[0]
    variation, rng, here = context.variation, context.variation.rng, band(result)
    kinds = {k: c for k, c in chances.items() if k == "retarget" or genome.half(part_of(k)) is not None}
    for _ in range(most):
        kind = pick(rng, kinds)
        if most == 1 and isinstance(genome.half(part_of(kind)), Statement):
            kind = "rescale" if part_of(kind) == "observation" else "reweight"  # an opaque half: one literal
        genome = edit(kind, genome, variation, literals=min(most, 3))
        if rng.random() >= here.go_on:
            break
    return genome


def reflect(context: BreedingContext) -> Genome:
    """What the feedback suggests; where that is nothing, or shown already, one edit or two. A parent that
    practically never succeeds may be rewritten. A reward of genes whose agent was seen is changed where it was seen
    to fall short."""
    result, genome = context.parents[0]
    variation, rng = context.variation, context.variation.rng
    if context.paying and genome.genes("reward"):
        return amended(genome, context.seen, variation, context.paying)
    if level(result) < NEAR_ZERO and rng.random() < 0.5:
        return _rewritten(genome, variation)
    child = repaired(_lean(context), result, variation)
    # Requests of one generation do not know of each other: most go one edit further than the feedback.
    if context.is_new(child) and rng.random() < 0.3:
        return child
    chances = edits_of(result, variation)
    edits = 1 if context.is_new(child) else int(rng.integers(1, 3))
    for _ in range(edits):
        child = edit(pick(rng, chances), child, variation, literals=3)
    return child


def _rewritten(genome: Genome, variation: Variation) -> Genome:
    """Every half that may change anew, about the same things or about others; or in blocks."""
    if (blocks := variation.drawn_blocks()) is not None:
        return blocks.scratch(variation)
    theme = variation.theme(genome) if variation.rng.random() < 0.5 else variation.lexicon.theme(variation.rng)
    for part in variation.parts:
        genome = variation.themed_half(genome, part, theme)
    return genome


def crossover(context: BreedingContext) -> Genome:
    """The first parent with another, or with two others; alone, with one of the other programs shown."""
    variation, rng = context.variation, context.variation.rng
    result, genome = context.parents[0]
    mates = [p.genome for p in context.parents[1:]] or [p.genome for p in context.others if p.genome.key != genome.key]
    if not mates:
        return improve(context)
    mate = mates.pop(int(rng.integers(len(mates))))
    child = variation.crossover(genome, mate)
    if len(context.parents) > 2 and rng.random() < 0.3:
        child = variation.crossover(child, mates[int(rng.integers(len(mates)))])
    if not context.is_new(child) or rng.random() < 0.3:
        child = edited(child, result, variation)
    return child


def path(context: BreedingContext) -> Genome:
    """The next step of a line of programs; alone like `improve`."""
    if len(context.parents) < 2:
        return improve(context)
    line = [(p.result.score.merit if p.result.score else None, p.genome) for p in context.parents]
    child = next_step(line, context.variation)
    return child if context.is_new(child) else edited(child, context.parents[0].result, context.variation)


def different(context: BreedingContext) -> Genome:
    """A new program about other things than the parents are, with none of their genes as far as that goes; in blocks,
    which are about the same things, the one of several that has the fewest of their genes."""
    variation = context.variation
    genomes = [p.genome for p in context.parents]
    if (blocks := variation.drawn_blocks()) is not None:
        taken: set[Named] = {
            (part, gene.name) for genome in genomes for part in variation.parts for gene in genome.genes(part)
        }
        drawn = [blocks.scratch(variation) for _ in range(STRANGERS)]
        return min(drawn, key=lambda genome: _shared(genome, taken, variation.parts))
    shown = {subject for genome in genomes for subject in variation.theme(genome)}
    themes = [variation.lexicon.theme(variation.rng) for _ in range(STRANGERS)]
    theme = min(themes, key=lambda theme: sum(s in shown for s in theme) / max(1, len(theme)))
    child = Genome()
    for part in variation.parts:
        child = _unlike(child, part, theme, genomes, variation)
    return child


def _shared(genome: Genome, taken: Collection[Named], parts: Sequence[Part]) -> float:
    """The share of a genome's genes that are among those `taken`."""
    own = [(part, gene.name) for part in parts for gene in genome.genes(part)]
    return sum(name in taken for name in own) / max(1, len(own))


def _unlike(child: Genome, part: Part, theme: Sequence[str], genomes: Sequence[Genome], variation: Variation) -> Genome:
    taken = {gene.name for genome in genomes for gene in genome.genes(part)}
    half = variation.themed_half(child, part, theme, avoid=taken)
    return half if half.genes(part) else variation.themed_half(child, part, theme)


def implement(context: BreedingContext) -> Genome:
    return carried_out(context.plan, context.variation)


def compose(context: BreedingContext) -> Genome:
    return composed(context.variation, context.groups) if context.groups else context.variation.scratch()


def amend(context: BreedingContext) -> Genome:
    """The first parent, where its agent was seen to fall short; without subtasks an improved one."""
    if not context.groups:
        return improve(context)
    genome = grouped(context.parents[0].genome, context.variation, context.groups)
    return amended(genome, context.seen, context.variation, context.groups)


def shape(context: BreedingContext) -> Genome:
    """The parent with one more guiding term, in place of another of its terms where there is no room; without a reward
    of genes, an improved one."""
    genome, variation = context.parents[0].genome, context.variation
    genes = genome.genes("reward")
    if "reward" not in variation.parts or not genes:
        return improve(context)
    names = [gene.name for gene in genes]
    theme = variation.theme(genome)
    guide = variation.lexicon.draw(variation.rng, "reward", theme, names, families=("potential",))
    if guide is None:
        return improve(context)
    if len(genes) >= MOST["reward"]:
        genome = variation.remove(genome, "reward")
    return variation.add(genome, "reward", guide)


BREEDERS: Mapping[str, Callable[[BreedingContext], Genome]] = {
    breeder.__name__: breeder
    for breeder in (
        scratch,
        improve,
        ablate,
        structure,
        weights,
        term,
        reflect,
        crossover,
        path,
        different,
        implement,
        compose,
        amend,
        shape,
    )
}

PARENTLESS = frozenset({"scratch", "implement", "compose"})
"""Operators that start from nothing but the task and words."""
