"""The winner of noisy candidates: those that may be the best are scored again, by what did not select them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType

from jaxreward.records import Result
from jaxreward.records.measure import Z95, wilson
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
    def standing(self) -> tuple[Result, ...]:
        """The best programs by what is known of them now, best first."""
        now = [self.confirmed.get(result.candidate.source, result) for result in self.best_so_far]
        return top([result for result in now if result.score is not None], KEPT)

    @property
    def best(self) -> Result | None:
        return self.standing[0] if self.standing else None

    def drafts(self) -> list[Draft]:
        """Requests to score again the best, where that was not done, and what else may be: whose 95 % interval reaches
        that of the best."""
        standing = self.standing
        if not standing or self._is_confirmed(standing[0]) or len(self.confirmed) >= MOST:
            return []
        lower = _interval(standing[0])[0]
        waiting = [result for result in standing if not self._is_confirmed(result) and _interval(result)[1] >= lower]
        return [Draft("keep", result.candidate.island, parents=(result,)) for result in waiting[:AT_ONCE]]

    def _is_confirmed(self, result: Result) -> bool:
        return result.candidate.source in self.confirmed


def _interval(result: Result) -> tuple[float, float]:
    """The merit of a result, less and more what its errors allow: those of its seeds, or of a rate of its episodes,
    whichever are larger."""
    score = scored(result)
    margin = Z95 * score.se if score.se == score.se else 0.0
    low, high = score.merit - margin, score.merit + margin
    if score.measure.rate:
        low, high = min(low, wilson(score)[0]), max(high, wilson(score)[1])
    return low, high
