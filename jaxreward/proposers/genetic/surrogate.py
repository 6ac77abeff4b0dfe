"""What a run's own scores say of programs that are not trained yet: a linear model of what programs are made of."""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np

from jaxreward.proposers.genetic.genome import ENTRY, Genome, readable
from jaxreward.proposers.proposer import Known

LEAST = 12
"""Programs with a score before any is predicted."""

PRECISION = 10.0
"""Of the weights before anything is known, in units of the precision of a score."""

NOISE = 0.7
"""Standard deviation of a score around the model, in units of the scores' own."""

_SMALLEST = 1e-3


def features(genome: Genome) -> dict[str, float]:
    """Which genes a program has, and the order of magnitude of its terms' weights."""
    found: dict[str, float] = {}
    for part in ENTRY:
        for gene in genome.genes(part):
            found[f"{part} {gene.name}"] = 1.0
    for gene in genome.genes("reward"):
        found[f"weight {gene.name}"] = math.log10(max(abs(gene.weight), _SMALLEST))
    return found


@dataclass(frozen=True)
class Surrogate:
    """Bayesian linear regression of the normal scores of merit on `features`, so that neither the unit of a metric nor
    many equal zeros matter.

    Attributes:
        names: the features, of length n.
        center: their means (n,), which a program of average merit has.
        mean, root: of the normal distribution of their weights, (n,) and a square root (n, n) of its covariance.
    """

    names: tuple[str, ...]
    center: np.ndarray
    mean: np.ndarray
    root: np.ndarray

    @classmethod
    def of(cls, known: Sequence[Known]) -> Surrogate | None:
        """Fitted to programs with their merits; None while there are fewer than `LEAST`, or all are alike."""
        read_ones = [(features(genome), x.merit) for x in known if (genome := readable(x.source)) is not None]
        merits = [merit for _, merit in read_ones]
        if len(merits) < LEAST or len(set(merits)) < 2:
            return None
        targets = np.array(_normal_scores(merits))
        names = tuple(sorted({name for found, _ in read_ones for name in found}))
        rows = np.array([[found.get(name, 0.0) for name in names] for found, _ in read_ones])
        center = rows.mean(axis=0)
        rows = rows - center
        precision = rows.T @ rows + PRECISION * np.eye(len(names))
        root = NOISE * np.linalg.inv(np.linalg.cholesky(precision)).T  # root root^T = NOISE^2 precision^-1
        return cls(names, center, np.linalg.solve(precision, rows.T @ (targets - targets.mean())), root)

    def choice(self, genomes: Sequence[Genome], rng: np.random.Generator) -> int:
        """The best of the programs by one draw of the weights (Thompson sampling): what the scores so far do not settle
        is decided differently every time."""
        weights = self.mean + self.root @ rng.standard_normal(len(self.names))
        found = [features(genome) for genome in genomes]
        rows = np.array([[one.get(name, 0.0) for name in self.names] for one in found])
        return int(np.argmax((rows - self.center) @ weights))


def _normal_scores(merits: Sequence[tuple[float, ...]]) -> list[float]:
    """Quantiles of the normal distribution by rank, equal merits sharing theirs."""
    ordered, n = sorted(merits), len(merits)
    middle = {merit: (bisect_left(ordered, merit) + bisect_right(ordered, merit)) / 2 for merit in set(merits)}
    return [NormalDist().inv_cdf(middle[merit] / n) for merit in merits]
