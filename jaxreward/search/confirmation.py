"""The winner of noisy candidates: those that may be the best are scored again, by what did not select them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType

from jaxreward.records import Result, Score
from jaxreward.records.measure import interval_95
from jaxreward.search.draft import Draft
from jaxreward.search.selection import scored, top

KEPT = 32
"""Programs that may become contenders, the best so far."""

AT_ONCE, MOST = 4, 12
"""Programs that are scored again together, and in all."""


@dataclass(frozen=True)
class Confirmation:
    """The best programs by the scores of the search, best first, and by source the `confirmed` ones."""

    best_so_far: tuple[Result, ...] = ()
    confirmed: Mapping[str, Result] = field(default_factory=lambda: MappingProxyType({}))

    def updated(self, results: Sequence[Result], again: Sequence[Result]) -> Confirmation:
        """With new results of the search, and of programs that were scored `again`; of these one without a score counts
        as the worst."""
        known = {result.candidate.source: result for result in self.best_so_far}
        new = [result for result in results if result.score is not None and result.candidate.source not in known]
        confirmed = {**self.confirmed, **{result.candidate.source: result for result in again}}
        return Confirmation(top((*self.best_so_far, *new), KEPT), MappingProxyType(confirmed))

    @property
    def leader(self) -> Result | None:
        """The best of those that were scored again; None where none has a score."""
        found = top([result for result in self.confirmed.values() if result.score is not None], 1)
        return found[0] if found else None

    @property
    def best(self) -> Result | None:
        """The best by what is known now; where no more are to be scored again, the best of those that were."""
        if self.leader is not None and not self.drafts():
            return self.leader
        standing = self._standing
        return standing[0] if standing else None

    def drafts(self) -> list[Draft]:
        """Requests to score again the best, where that was not done, and what else may be: whose 95 % interval reaches
        that of the best. One that nothing can exceed is the first alone: others at most equal it."""
        standing, left = self._standing, MOST - len(self.confirmed)
        if not standing or self._is_confirmed(standing[0]):
            return []
        lower = interval_95(scored(standing[0]))[0]
        waiting = [r for r in standing if not self._is_confirmed(r) and interval_95(scored(r))[1] >= lower]
        alone = not self.confirmed and _is_perfect(scored(standing[0]))
        together = min(1 if alone else AT_ONCE, left)
        return [Draft("keep", result.candidate.island, parents=(result,)) for result in waiting[:together]]

    @property
    def _standing(self) -> tuple[Result, ...]:
        """The best programs by what is known of them now, best first."""
        now = [self.confirmed.get(result.candidate.source, result) for result in self.best_so_far]
        return top([result for result in now if result.score is not None], KEPT)

    def _is_confirmed(self, result: Result) -> bool:
        return result.candidate.source in self.confirmed


def _is_perfect(score: Score) -> bool:
    """Whether it is a rate of 1 by more than one seed."""
    return score.measure.rate and score.mean >= 1.0 and score.n > 1
