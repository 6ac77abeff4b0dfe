"""Choosing among scored results: an order of merit, and draws that depend on the generator alone."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

import numpy as np

from jaxreward.records import Result, Score
from jaxreward.records.measure import episodes_interval

T = TypeVar("T")

_ORDERS = 256


def scored(result: Result) -> Score:
    """The score of a result that must have one."""
    if result.score is None:
        raise ValueError(f"candidate {result.candidate.id} has no score and cannot be selected")
    return result.score


def tells(result: Result) -> bool:
    """Whether success says something of a program: always, but where a search looks at progress only if its interval is
    above that of random actions."""
    feedback = result.feedback
    if feedback is None or feedback.untrained is None:
        return True
    return episodes_interval(scored(result), feedback.episode_error)[0] > episodes_interval(feedback.untrained)[1]


def stages(result: Result) -> np.ndarray:
    """How far the episodes of a program came, (stages, seeds), and as the last stage their success, where it is a rate;
    empty where that is not known."""
    feedback = result.feedback
    if feedback is None or not feedback.progress:
        return np.zeros((0, 0))
    success = [feedback.seed_success] if scored(result).measure.rate else []
    return np.array([*feedback.progress.values(), *success], np.float64)


def merit(result: Result) -> tuple[float, ...]:
    """Sort key, larger is better: mean score in the direction of its measure, then a smaller standard error.

    Where a search looks at progress, a success that is not above that of random actions counts as theirs, and the mean
    over all stages decides; success does among equals.

    The length of a program is no part of it: where nothing works yet all scores are 0, and preferring
    the shorter program there leaves nothing to build upon (docs/appendix/landscapes.md, `plateau`).
    """
    score = scored(result)
    # NaN would make the order depend on who is compared with whom: an unknown error ranks last.
    se = score.se if score.se == score.se else float("inf")
    untrained = result.feedback.untrained if result.feedback is not None else None
    if untrained is None:
        return (score.merit, 0.0, score.merit, -se)
    known = stages(result)
    come = float(known.mean()) if known.size else 0.0
    return (score.merit if tells(result) else untrained.merit, come, score.merit, -se)


def better(challenger: Result, incumbent: Result) -> bool:
    """Whether `challenger` takes the place of `incumbent`; a tie keeps the incumbent."""
    return merit(challenger) > merit(incumbent)


def top(results: Sequence[Result], k: int) -> tuple[Result, ...]:
    """The `k` best, best first; among equals the order of `results` decides."""
    return tuple(sorted(results, key=merit, reverse=True)[:k])


def fitness_weights(results: Sequence[Result]) -> np.ndarray:
    """Probabilities by fitness, shape (len(results),).

    Of rates they are proportional to the mean score, and all equal where every score is 0. Of any other value they
    are proportional to the place from the worst, 1, 2, ..., and equal values share theirs: neither the zero nor the
    unit of such a value means anything, and a single program that is far off would make all others alike. Where a
    search looks at progress, and no success is above that of random actions, they are those of `lexicase_weights`.
    """
    if not any(map(tells, results)):
        return lexicase_weights([stages(result) for result in results])
    merits = np.asarray([scored(result).merit for result in results], np.float64)
    if not all(scored(result).measure.rate for result in results):
        merits = places(merits)
    total = float(merits.sum())
    return merits / total if total > 0.0 else np.full(len(results), 1.0 / len(results))


def lexicase_weights(cases: Sequence[np.ndarray]) -> np.ndarray:
    """The chances by which epsilon-lexicase selection draws programs, shape (len(cases),), over orders of the cases.

    The cases of a program, (stages, seeds), are taken in a random order, and of each only those programs stay that are
    within the median absolute deviation of the best; those that are left share the draw (La Cava et al. 2016, "Epsilon
    lexicase selection for regression"). So a program that is the best at one stage has its chance, whatever its mean.
    The chances are of a fixed sample of orders. All equal where nothing is known.
    """
    seeds = min((c.shape[1] for c in cases), default=0)
    if not seeds or len({c.shape[0] for c in cases}) != 1:
        return np.full(len(cases), 1.0 / len(cases))
    values = np.stack([c[:, :seeds].reshape(-1) for c in cases])  # (programs, cases)
    spread = np.median(np.abs(values - np.median(values, axis=0)), axis=0)
    weights, rng = np.zeros(len(cases)), np.random.default_rng(0)
    for _ in range(_ORDERS):
        left = np.arange(len(cases))
        for case in rng.permutation(values.shape[1]):
            own = values[left, case]
            left = left[own >= own.max() - spread[case]]
        weights[left] += 1.0 / len(left)
    return weights / _ORDERS


def places(values: Sequence[float] | np.ndarray) -> np.ndarray:
    """The place of each of `values` from the lowest, 1 to len(values); equal values share the mean of theirs."""
    values = np.asarray(values, np.float64)
    below, upto = (np.searchsorted(np.sort(values), values, side=side) for side in ("left", "right"))
    return (below + upto + 1) / 2.0


def fitness_proportional(results: Sequence[Result], rng: np.random.Generator) -> Result:
    """One result with the probabilities of `fitness_weights`."""
    return results[int(rng.choice(len(results), p=fitness_weights(results)))]


def uniform(results: Sequence[Result], rng: np.random.Generator) -> Result:
    """One result, all equally likely."""
    return results[int(rng.integers(len(results)))]


def sample(items: Sequence[T], k: int, rng: np.random.Generator) -> tuple[T, ...]:
    """Up to `k` different items in random order, all equally likely."""
    order = rng.permutation(len(items))[:k]
    return tuple(items[int(i)] for i in order)


def without(results: Sequence[Result], others: Sequence[Result]) -> tuple[Result, ...]:
    """`results` less those whose candidate id occurs in `others`."""
    taken = {other.candidate.id for other in others}
    return tuple(result for result in results if result.candidate.id not in taken)


def softmax(logits: Sequence[float] | np.ndarray) -> np.ndarray:
    """Probabilities proportional to exp(logits), shape (len(logits),)."""
    values = np.asarray(logits, np.float64)
    weights = np.exp(values - values.max())
    return weights / weights.sum()


def unit_range(values: Sequence[float] | np.ndarray) -> np.ndarray:
    """`values` mapped linearly so that the lowest is 0 and the highest 1; all 0 where they are equal.

    Makes a temperature mean the same for every metric, also for a negative or an unbounded one.
    """
    values = np.asarray(values, np.float64)
    # Halved first, so that the range of huge scores stays finite.
    span = float(values.max() / 2 - values.min() / 2)
    return (values / 2 - values.min() / 2) / span if span > 0.0 else np.zeros(len(values))


def rank_logits(n: int) -> np.ndarray:
    """Logits of weights 1 / (rank + 2) for ranks 0 to n - 1, best first."""
    return -np.log(np.arange(n) + 2.0)


def draw(items: Sequence[T], logits: Sequence[float] | np.ndarray, k: int, rng: np.random.Generator) -> tuple[T, ...]:
    """Up to `k` different items in the order drawn, each by softmax of `logits` among those not yet drawn.

    The largest of the logits with Gumbel noise have that distribution, and no probability can vanish.
    """
    noisy = np.asarray(logits, np.float64) + rng.gumbel(size=len(items))
    return tuple(items[int(i)] for i in np.argsort(-noisy, kind="stable")[:k])


def pair_weights(results: Sequence[Result]) -> tuple[np.ndarray, np.ndarray]:
    """All unordered pairs of `results`, shape (pairs, 2) of positions i < j, and their probabilities.

    FORGE, equation 6: proportional to the sum of the two scores, uniform where all are 0. The paper
    divides by the sum W of the K scores, but over pairs the sums add up to (K - 1) W: it is that which
    makes them probabilities. Of a value that is no rate the places take the place of the scores.
    """
    pairs = np.stack(np.triu_indices(len(results), 1), axis=1)
    shares = fitness_weights(results)
    weights = shares[pairs].sum(axis=1)
    return pairs, weights / weights.sum()


def fitness_pairs(results: Sequence[Result], k: int, rng: np.random.Generator) -> list[tuple[Result, Result]]:
    """`k` pairs of different results, independent draws with the probabilities of `pair_weights`."""
    pairs, weights = pair_weights(results)
    drawn = pairs[rng.choice(len(pairs), size=k, p=weights)]
    return [(results[int(i)], results[int(j)]) for i, j in drawn]
