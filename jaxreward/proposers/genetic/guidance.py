"""What training showed, turned into edits: repairs of a genome, and how far to jump from it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from jaxreward.proposers.genetic.genome import Genome
from jaxreward.proposers.genetic.lexicon import subjects
from jaxreward.proposers.genetic.variation import GUIDING, Variation
from jaxreward.records import ACCURACY, Feedback, Result

DOMINANT, FLAT = 0.9, 0.01


class Band(NamedTuple):
    """How to mutate a program that has come so far: the chance to go on after each edit, and the
    weights of the kinds of edit."""

    below: float
    go_on: float
    edits: Mapping[str, float]


BANDS = (
    Band(0.3, 0.6, {
        "retarget": 2.0, "fresh": 1.5, "add feature": 2.0, "replace feature": 1.5, "remove feature": 0.5,
        "add term": 2.0, "replace term": 2.0, "remove term": 0.5, "rescale": 0.3, "reweight": 1.0,
    }),
    Band(0.7, 0.4, {
        "retarget": 0.3, "fresh": 0.1, "add feature": 2.0, "replace feature": 1.0, "remove feature": 0.5,
        "add term": 1.5, "replace term": 1.5, "remove term": 1.0, "rescale": 0.5, "reweight": 2.0,
    }),
    Band(0.9, 0.3, {
        "add feature": 2.0, "replace feature": 0.7, "remove feature": 0.7,
        "add term": 1.0, "replace term": 0.7, "remove term": 1.0, "rescale": 0.7, "reweight": 2.5,
    }),
    Band(2.0, 0.25, {"add feature": 0.7, "remove feature": 2.0, "remove term": 1.5, "rescale": 1.0, "reweight": 3.0}),
)  # fmt: skip


UNKNOWN = 0.5
"""The level of a score that nothing is known to compare with."""


def level(result: Result) -> float:
    """How far a program has come, about 0 to 1: its success; of another metric between what a sparse reward and a
    person's reach; of a reward that is scored on demonstrations, the share of states that it tells apart."""
    if result.score is None:
        return 0.0
    known = result.score.level
    if known is None and result.feedback is not None:
        known = result.feedback.extra_metrics.get(ACCURACY)
    return UNKNOWN if known is None else known


def band(result: Result) -> Band:
    """Near zero: many edits, and bold ones; near one: one or two small ones."""
    return next((b for b in BANDS if level(result) < b.below), BANDS[-1])


def repaired(genome: Genome, result: Result, variation: Variation) -> Genome:
    """The genome, repaired by the feedback of its training.

    Dead features go, but for those of a subgoal that is still to be reached; a dominant term is scaled down and a flat
    one up; a term that never fired is scaled up no further: it gets a guiding term about the same things, or goes;
    where the reward was farmed, the farmable terms go, the one with the largest share first.
    """
    feedback = result.feedback
    if feedback is None:
        return genome
    dead = dead_features(genome, result, variation)
    if variation.blocks is not None:
        genome = variation.blocks.repaired(genome, dead, variation)
        dead = [name for name in dead if not variation.blocks.needs(name)]
    if "observation" in variation.parts:
        for name in dead:
            genome = variation.remove(genome, "observation", name)
    if "reward" in variation.parts and genome.genes("reward"):
        genome = _rebalanced(genome, feedback, variation)
        if is_farmed(feedback):
            genome = _unfarmed(genome, feedback, variation)
    return genome


def is_farmed(feedback: Feedback) -> bool:
    """Reward is collected without success, as a notice says, or failed episodes of an unsolved task return more."""
    if any(notice.kind in ("farmed", "unreached") for notice in feedback.notices):
        return True
    solved, failed = feedback.return_solved, feedback.return_failed
    if solved is None or failed is None or (feedback.success and feedback.success[-1] >= 0.95):
        return False
    return failed > solved


def dead_features(genome: Genome, result: Result, variation: Variation) -> list[str]:
    """Genes all of whose columns were constant. Columns are counted from both ends, so that one
    gene of unknown size hides only what lies beyond another such."""
    dead = set(result.feedback.dead_features) if result.feedback else set()
    genes = genome.genes("observation")
    known = [variation.lexicon.get(gene, genome.statements) for gene in genes]
    sizes = [fragment.size if fragment else None for fragment in known]
    total = result.candidate.summary.observation_size if result.candidate.summary else None
    if total is not None and sizes.count(None) == 1:
        sizes[sizes.index(None)] = total - sum(s for s in sizes if s is not None)

    def columns(index: int) -> set[int]:
        before, after = sizes[:index], sizes[index:]
        if None not in sizes[: index + 1]:
            start = sum(size or 0 for size in before)
        elif total is not None and None not in after:
            start = total - sum(size or 0 for size in after)
        else:
            return set()
        return set(range(start, start + (sizes[index] or 0)))

    return [gene.name for index, gene in enumerate(genes) if (own := columns(index)) and dead >= own]


def _rebalanced(genome: Genome, feedback: Feedback, variation: Variation) -> Genome:
    curves = {curve.name: curve for curve in feedback.terms}
    names = [gene.name for gene in genome.genes("reward")]
    for name in names:
        curve = curves.get(name)
        if curve is None or len(names) < 2:
            continue
        if curve.share > DOMINANT:
            genome = variation.scale(genome, "reward", name, float(variation.rng.uniform(0.1, 0.4)))
        elif curve.share < FLAT:
            fired = any(curve.minimum) or any(curve.maximum)
            genome = _flat(genome, name, fired, variation)
    return genome


def _flat(genome: Genome, name: str, fired: bool, variation: Variation) -> Genome:
    if fired:
        return variation.scale(genome, "reward", name, float(variation.rng.uniform(2.0, 8.0)))
    gene = next(g for g in genome.genes("reward") if g.name == name)
    fragment = variation.lexicon.get(gene, genome.statements)
    about = subjects(fragment) if fragment else ()
    if not about or variation.rng.random() < 0.3:
        return variation.remove(genome, "reward", name)
    have = {g.name for g in genome.genes("reward")}
    guide = variation.lexicon.draw(variation.rng, "reward", about, have, families=GUIDING)
    return variation.add(genome, "reward", guide)


def _unfarmed(genome: Genome, feedback: Feedback, variation: Variation) -> Genome:
    """Drop bonuses for states, then farmable milestones, each with the largest share first."""
    share = {curve.name: curve.share for curve in feedback.terms}
    farming = " ".join(notice.message for notice in feedback.notices if "farm" in notice.kind)
    suspects = []
    for gene in genome.genes("reward"):
        fragment = variation.lexicon.get(gene, genome.statements)
        tags = fragment.tags if fragment else ()
        named = f"'{gene.name}'" in farming or gene.name in farming.split()
        if named or "farmable" in tags or "bonus" in tags:
            suspects.append((not named, "bonus" not in tags, -share.get(gene.name, 0.0), gene.name))
    bonuses = [name for unnamed, plain, _, name in sorted(suspects) if not unnamed or not plain]
    for name in bonuses or [name for *_, name in sorted(suspects)[:1]]:
        genome = variation.remove(genome, "reward", name)
    return genome
