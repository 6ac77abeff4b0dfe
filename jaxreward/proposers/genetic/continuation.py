"""The next step of a line of programs: what helped on the way goes further, what hurt is undone."""

from __future__ import annotations

import math
from collections.abc import Sequence

from jaxreward.function_source.statements import Statement
from jaxreward.proposers.genetic.genome import Gene, Genome, Part
from jaxreward.proposers.genetic.variation import MOST, Variation

FURTHER = (0.3, 1.0)
"""How far a weight is moved on, as part of the way that it has come, on the scale of logarithms."""

FARTHEST = 700.0
"""No weight moves by more than this, on the same scale: `math.exp` goes no further."""


def next_step(line: Sequence[tuple[float | None, Genome]], variation: Variation) -> Genome:
    """The nearest program of a line, extrapolated.

    Genes that an improving step brought stay, and weights move on in the direction in which improving
    steps moved them, within what `Variation.scale` allows. What the newest step of a gene's coming or
    going made worse is undone: a gene that came then goes, one that went comes back, and a weight that
    the last step of all moved goes back. Steps between equal scores, or without one, say nothing. An
    opaque half that the last step made worse is that of the program before it.

    Args:
        line: scores and programs, nearest first; at least one.
        variation: the operators on genomes, and the parts that may change.
    """
    child = line[0][1]
    for part in variation.parts:
        if isinstance(child.half(part), Statement) or not child.genes(part):
            child = _opaque(child, part, line, variation)
        else:
            child = _genes(child, part, line, variation)
    return child


def _opaque(child: Genome, part: Part, line: Sequence[tuple[float | None, Genome]], variation: Variation) -> Genome:
    if len(line) > 1 and _gain(line[1][0], line[0][0]) < 0 and line[1][1].half(part) is not None:
        return variation.graft(child, line[1][1], part)
    return variation.perturb(child, part)


def _genes(child: Genome, part: Part, line: Sequence[tuple[float | None, Genome]], variation: Variation) -> Genome:
    came_badly: set[str] = set()
    went_badly: dict[str, Genome] = {}
    moved: dict[str, float] = {}
    for index in range(len(line) - 1, 0, -1):
        (before_score, before), (after_score, after) = line[index], line[index - 1]
        gain = _gain(before_score, after_score)
        old, new = dict(before.genes(part)), dict(after.genes(part))
        if not old or not new or not gain:
            continue
        for name in new.keys() - old.keys():
            went_badly.pop(name, None)
            (came_badly.add if gain < 0 else came_badly.discard)(name)
        for name in old.keys() - new.keys():
            came_badly.discard(name)
            if gain < 0:
                went_badly[name] = before
            else:
                went_badly.pop(name, None)
        for name in old.keys() & new.keys():
            way = _way(old[name], new[name])
            if gain > 0:
                moved[name] = moved.get(name, 0.0) + way * float(variation.rng.uniform(*FURTHER))
            elif index == 1:
                moved[name] = -way
    for name in sorted(moved):
        if moved[name] and name in dict(child.genes(part)):
            child = variation.scale(child, part, name, math.exp(min(max(moved[name], -FARTHEST), FARTHEST)))
    for name in sorted(went_badly):
        child = _restored(child, part, name, went_badly[name])
    for name in sorted(came_badly):
        if name in dict(child.genes(part)):
            child = variation.remove(child, part, name)
    return child


def _gain(before: float | None, after: float | None) -> float:
    return 0.0 if before is None or after is None else after - before


def _way(old: float, new: float) -> float:
    """How far a weight has moved, on the scale of logarithms; 0 where its sign has changed."""
    same_sign = (old > 0 and new > 0) or (old < 0 and new < 0)
    return math.log(abs(new)) - math.log(abs(old)) if same_sign else 0.0


def _restored(child: Genome, part: Part, name: str, ancestor: Genome) -> Genome:
    """The child with a gene that an ancestor has, weight and all."""
    genes = child.genes(part)
    if name in dict(genes) or len(genes) >= MOST[part]:
        return child
    weight = dict(ancestor.genes(part))[name]
    alone = ancestor.with_half(part, (Gene(name, weight),))
    child, renamed = child.with_statements(alone.needed(part))
    return child.with_half(part, (*genes, Gene(renamed.get(name, name), weight)))
