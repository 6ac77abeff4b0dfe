"""Choosing among scored results: an order of merit, and draws that depend on the generator alone."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from jaxreward.records import Result, Score


def scored(result: Result) -> Score:
    """The score of a result that must have one."""
    if result.score is None:
        raise ValueError(f"candidate {result.candidate.id} has no score and cannot be selected")
    return result.score


def merit(result: Result) -> tuple[float, float, int]:
    """Sort key, larger is better: mean score, then a smaller standard error, then a shorter source."""
    score = scored(result)
    # NaN would make the order depend on who is compared with whom: an unknown error ranks last.
    se = score.se if score.se == score.se else float("inf")
    return (score.mean, -se, -len(result.candidate.source))


def better(challenger: Result, incumbent: Result) -> bool:
    """Whether `challenger` takes the place of `incumbent`; a draw keeps the incumbent."""
    return merit(challenger) > merit(incumbent)


def top(results: Sequence[Result], k: int) -> tuple[Result, ...]:
    """The `k` best, best first; among equals the order of `results` decides."""
    return tuple(sorted(results, key=merit, reverse=True)[:k])


def fitness_weights(results: Sequence[Result]) -> np.ndarray:
    """Probabilities proportional to the mean score, shape (len(results),).

    Scores are measured from 0 where none is negative, else from the lowest. Where all weights
    vanish (every score 0, or all equal and negative) every result is equally likely.
    """
    means = np.asarray([scored(result).mean for result in results], np.float64)
    weights = means - min(0.0, float(means.min()))
    largest = float(weights.max())
    if largest <= 0.0:
        return np.full(len(results), 1.0 / len(results))
    weights = weights / largest  # first, so that the sum of huge scores stays finite
    return weights / weights.sum()


def fitness_proportional(results: Sequence[Result], rng: np.random.Generator) -> Result:
    """One result with the probabilities of `fitness_weights`."""
    return results[int(rng.choice(len(results), p=fitness_weights(results)))]


def uniform(results: Sequence[Result], rng: np.random.Generator) -> Result:
    """One result, all equally likely."""
    return results[int(rng.integers(len(results)))]


def sample(results: Sequence[Result], k: int, rng: np.random.Generator) -> tuple[Result, ...]:
    """Up to `k` different results in random order, all equally likely."""
    order = rng.permutation(len(results))[:k]
    return tuple(results[int(i)] for i in order)


def without(results: Sequence[Result], others: Sequence[Result]) -> tuple[Result, ...]:
    """`results` less those whose candidate id occurs in `others`."""
    taken = {other.candidate.id for other in others}
    return tuple(result for result in results if result.candidate.id not in taken)
