"""What parts of a good program are worth: programs that lack one group of them each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType

from jaxreward.records import Result
from jaxreward.search.draft import Draft

ABLATE = "ablate"


@dataclass(frozen=True)
class Ablations:
    """The results of programs by operator `ablate`, by the id of the program that each lacks a group of."""

    results: Mapping[str, tuple[Result, ...]] = field(default_factory=lambda: MappingProxyType({}))

    def updated(self, results: Sequence[Result]) -> Ablations:
        """With further results, in order; of a repaired program the last."""
        known = dict(self.results)
        for result in results:
            parent = result.candidate.parents[0]
            earlier = tuple(r for r in known.get(parent, ()) if r.candidate.id != result.candidate.repairs)
            known[parent] = (*earlier, result)
        return Ablations(MappingProxyType(known))

    def drafts(self, program: Result, groups: int) -> list[Draft]:
        """Requests for what `program` is without each of its first `groups` groups, as far as that is not known."""
        known = {result.candidate.group for result in self.results.get(program.candidate.id, ())}
        missing = [group for group in range(groups) if group not in known]
        return [Draft(ABLATE, program.candidate.island, parents=(program,), group=group) for group in missing]

    def shown(self, draft: Draft) -> Draft:
        """`draft` with what is known of its first parent, where that has a score."""
        known = self.results.get(draft.parents[0].candidate.id, ()) if draft.parents else ()
        return replace(draft, ablations=tuple(result for result in known if result.score is not None))
