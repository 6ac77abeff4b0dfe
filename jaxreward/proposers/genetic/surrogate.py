"""What a run's own scores say of programs that are not trained yet: a linear model of what programs are made of."""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np

from jaxreward.proposers.genetic.blocks import Blocks
from jaxreward.proposers.genetic.genome import ENTRY, Genome, readable
from jaxreward.proposers.proposer import Known

LEAST = 8
"""Programs with a score before any is predicted."""

PRECISION = 10.0
"""Of the weights before anything is known, in units of the precision of a score."""

_SMALLEST = 1e-3


def features(genome: Genome, blocks: Blocks | None = None) -> dict[str, float]:
    """Which genes a program has, and the order of magnitude of its terms' weights; where a task says its subgoals, how
    many roles of them have a gene, and how many subgoals have one in every role."""
    found: dict[str, float] = {}
    for part in ENTRY:
        for gene in genome.genes(part):
            found[f"{part} {gene.name}"] = 1.0
    for gene in genome.genes("reward"):
        found[f"weight {gene.name}"] = math.log10(max(abs(gene.weight), _SMALLEST))
    if blocks is not None:
        played = blocks.roles_played(genome)
        found["roles"] = float(sum(map(sum, played)))
        found["subgoals"] = float(sum(map(all, played)))
    return found


@dataclass(frozen=True)
class Surrogate:
    """Bayesian linear regression of the normal scores of merit on `features`, so that neither the unit of a metric nor
    many equal zeros matter.

    Attributes:
        names: the features, of length n.
        center: their means (n,), which a program of average merit has.
        weights: the mean of their posterior distribution (n,).
        blocks: of the task's subgoals.
    """

    names: tuple[str, ...]
    center: np.ndarray
    weights: np.ndarray
    blocks: Blocks | None = None

    @classmethod
    def of(cls, known: Sequence[Known], blocks: Blocks | None = None) -> Surrogate | None:
        """Fitted to programs with their merits; None while there are fewer than `LEAST`, or all are alike."""
        read_ones = [(features(g, blocks), x.merit) for x in known if (g := readable(x.source)) is not None]
        return cls.fitted([found for found, _ in read_ones], [merit for _, merit in read_ones], blocks)

    @classmethod
    def fitted(
        cls, made_of: Sequence[Mapping[str, float]], merits: Sequence[tuple[float, ...]], blocks: Blocks | None = None
    ) -> Surrogate | None:
        """As `of`, of programs whose features are known."""
        if len(merits) < LEAST or len(set(merits)) < 2:
            return None
        targets = np.array(_normal_scores(merits))
        names = tuple(sorted({name for found in made_of for name in found}))
        rows = np.array([[found.get(name, 0.0) for name in names] for found in made_of])
        center = rows.mean(axis=0)
        rows = rows - center
        precision = rows.T @ rows + PRECISION * np.eye(len(names))
        return cls(names, center, np.linalg.solve(precision, rows.T @ (targets - targets.mean())), blocks)

    def choice(self, genomes: Sequence[Genome]) -> int:
        """The program of the highest expected score, not by a draw of the weights (Thompson sampling): the programs to
        choose from are random already."""
        return int(np.argmax(self.expected([features(genome, self.blocks) for genome in genomes])))

    def expected(self, made_of: Sequence[Mapping[str, float]]) -> np.ndarray:
        """Expected normal scores (m,) of m programs by their features, the mean of those that it was fitted to being
        0."""
        rows = np.array([[found.get(name, 0.0) for name in self.names] for found in made_of])
        return (rows - self.center) @ self.weights


def _normal_scores(merits: Sequence[tuple[float, ...]]) -> list[float]:
    """Quantiles of the normal distribution by rank, equal merits sharing theirs."""
    ordered, n = sorted(merits), len(merits)
    middle = {merit: (bisect_left(ordered, merit) + bisect_right(ordered, merit)) / 2 for merit in set(merits)}
    return [NormalDist().inv_cdf(middle[merit] / n) for merit in merits]
