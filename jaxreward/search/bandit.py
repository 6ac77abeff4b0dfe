"""A cost-aware bandit over operators and over models, an option of every strategy.

An arm is an operator, or a model. Its index is

    (mean gain + EXPLORATION * sqrt(2 ln T / n)) / relative cost

with n pulls of the arm and T of all arms that could be chosen: UCB1 (Auer, Cesa-Bianchi and Fischer,
2002), divided by the cost as in the density-ordered KUBE (Tran-Thanh et al., 2012; Ding et al., 2013,
for random costs). The arm of the highest index is pulled, arms never pulled first,
and ties are broken at random. Requests of the same generation count as pulls at once, so that a
generation does not go to one arm as a whole.

- **Gain** of a program: by how much its score exceeds that of its first parent, at least 0, and 0 for
  a failure. Without parents: by how much it exceeds the mean score of the programs without parents
  before it; that counts for its model alone. Where the metric is no rate, the gain is the
  share of the scores known so far, its own among them, that are better than the reference and not
  better than its own: a single outlier would make all differences look alike. Gains are divided by the
  largest so far, so that the scale of the metric does not matter.
- **Cost** of a program, also of a failed one: dollars where any were paid, else tokens, else 1. An
  arm's mean cost is divided by the mean of the arms', and counts as at least `CHEAPEST`: training a
  program costs something too, however cheap the answer was.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType

import numpy as np

from jaxreward.operators import OPERATORS, REPEATS, WORDS
from jaxreward.records import Candidate, Result
from jaxreward.search.ablation import ABLATE
from jaxreward.search.draft import Draft

EXPLORATION = 0.5
"""Weight of the confidence bound; UCB1 has 1 for gains in [0, 1], of which most here are far below 1."""

CHEAPEST = 0.1
"""The least relative cost of an arm."""

FROM_ONE = ("improve", "structure", "weights", "term", "reflect")
FROM_MORE = ("crossover", "different")
"""What may take the place of a draft's operator. `path` may not: it needs a line of descent."""


@dataclass(frozen=True)
class Arm:
    """Total gain and cost of an arm so far."""

    pulls: int = 0
    gain: float = 0.0
    usd: float = 0.0
    tokens: int = 0

    def pulled(self, gain: float, candidate: Candidate) -> Arm:
        """With one more program."""
        usd, tokens = self.usd + candidate.cost_usd, self.tokens + candidate.tokens
        return Arm(self.pulls + 1, self.gain + gain, usd, tokens)


@dataclass(frozen=True)
class Arms:
    """Arms by name, and the largest gain of any."""

    arms: Mapping[str, Arm] = field(default_factory=lambda: MappingProxyType({}))
    largest: float = 0.0

    def pulled(self, name: str, gain: float, candidate: Candidate) -> Arms:
        """With one more program for the arm `name`."""
        arm = self.arms.get(name, Arm()).pulled(gain, candidate)
        return Arms(MappingProxyType({**self.arms, name: arm}), max(self.largest, gain))

    def indices(self, names: Sequence[str], waiting: Mapping[str, int]) -> np.ndarray:
        """The index of each arm of `names`, shape (len(names),); `waiting` counts pulls without a result."""
        arms = [self.arms.get(name, Arm()) for name in names]
        pulls = np.asarray([arm.pulls for arm in arms], np.float64)
        tried = np.asarray([waiting.get(name, 0) for name in names]) + pulls
        gains = np.asarray([arm.gain for arm in arms]) / np.maximum(pulls, 1.0) / (self.largest or 1.0)
        bounds = EXPLORATION * np.sqrt(2.0 * np.log(max(1.0, tried.sum())) / np.maximum(tried, 1.0))
        return np.where(tried > 0, (gains + bounds) / _relative_costs(arms), np.inf)

    def best(self, names: Sequence[str], waiting: Mapping[str, int], rng: np.random.Generator) -> str:
        """The arm of the highest index; `rng` breaks ties."""
        indices = self.indices(names, waiting)
        return names[int(rng.choice(np.flatnonzero(indices == indices.max())))]


def _relative_costs(arms: Sequence[Arm]) -> np.ndarray:
    """Mean cost of each arm over the mean of those that were pulled; 1 where nothing is known."""
    pulls = np.asarray([arm.pulls for arm in arms], np.float64)
    for totals in ([arm.usd for arm in arms], [float(arm.tokens) for arm in arms]):
        if sum(totals) > 0:
            means = np.asarray(totals) / np.maximum(pulls, 1.0)
            relative = means / means[pulls > 0].mean()
            return np.where(pulls > 0, np.maximum(relative, CHEAPEST), 1.0)
    return np.ones(len(arms))


@dataclass(frozen=True)
class Bandit:
    """The arms, the scores from which gains are computed, and the mean of the `founders`, the
    scored programs without parents."""

    operators: Arms = Arms()
    models: Arms = Arms()
    scores: Mapping[str, float] = field(default_factory=lambda: MappingProxyType({}))
    founders: int = 0
    founded: float = 0.0

    def updated(self, programs: Iterable[Result]) -> Bandit:
        """With the results of programs, in order."""
        bandit, scores = self, dict(self.scores)
        for result in programs:
            candidate = result.candidate
            if candidate.operator in REPEATS:  # the same program on other data
                continue
            mean = None if result.score is None else result.score.merit
            if mean is not None:
                scores[candidate.id] = mean
            known = list(scores.values()) if result.score is not None and not result.score.measure.rate else None
            if candidate.operator == ABLATE:  # nobody chose it
                continue
            if candidate.parents:
                gain = _gain(mean, scores.get(candidate.parents[0]), known)
                bandit = replace(bandit, operators=bandit.operators.pulled(candidate.operator, gain, candidate))
            else:
                gain = _gain(mean, bandit.founded if bandit.founders else None, known)
                if mean is not None:
                    n = bandit.founders + 1
                    bandit = replace(bandit, founders=n, founded=bandit.founded + (mean - bandit.founded) / n)
            if candidate.model:
                bandit = replace(bandit, models=bandit.models.pulled(candidate.model, gain, candidate))
        return replace(bandit, scores=MappingProxyType(scores))

    def assigned(
        self, drafts: Sequence[Draft], models: Sequence[str], declined: frozenset[str], rng: np.random.Generator
    ) -> list[Draft]:
        """`drafts` with the operators, and of several `models` the model, that the arms suggest.

        A program with parents may come from any operator that those allow; one made from the first
        parent alone is shown no other. Programs without parents keep their operator; requests for words, and those to
        score a program again, keep everything.
        """
        operators: Counter[str] = Counter()
        asked: Counter[str] = Counter()
        found = []
        for draft in drafts:
            if draft.operator not in WORDS | REPEATS:
                if draft.parents:
                    name = self.operators.best(_allowed(draft, declined), operators, rng)
                    operators[name] += 1
                    draft = replace(draft.of_first() if name in FROM_ONE else draft, operator=name)
                if len(models) > 1:
                    model = self.models.best(models, asked, rng)
                    asked[model] += 1
                    draft = replace(draft, model=model)
            found.append(draft)
        return found


def _allowed(draft: Draft, declined: frozenset[str]) -> list[str]:
    names = FROM_ONE if len(draft.parents) == 1 else (*FROM_ONE, *FROM_MORE)
    known = [name for name in dict.fromkeys((draft.operator, *names)) if name in OPERATORS]
    return [name for name in known if name not in declined] or [draft.operator]


def _gain(mean: float | None, reference: float | None, known: Sequence[float] | None) -> float:
    """By how much `mean` exceeds `reference`: the difference, or the share of the `known` scores that it passes."""
    if mean is None or reference is None:
        return 0.0
    if known is None:
        return max(0.0, mean - reference)
    return sum(reference < score <= mean for score in known) / len(known)
