"""How a search ends, or is cut short: its last event, and that requests are taken back."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from jaxreward.config import label_of
from jaxreward.errors import End
from jaxreward.evolution.settings import EvolveSettings
from jaxreward.proposers.llm.cost import Amount
from jaxreward.records import Exchange, Failure, Result
from jaxreward.runs import Failed, Finished, Progress, Withdrawn
from jaxreward.sentences import RESUME, Sentence, mention

_REMEDY = {
    "genetic": "correct the vocabulary of the task (`jaxreward check --task {task}` examines it) and begin again",
    "llm": (
        f"name another {mention('model')} or other {mention('prompts')}, or allow more with {mention('max_attempts')} "
        f"and {RESUME}"
    ),
    "manual": f"correct the programs, allow more with {mention('max_attempts')}, and go on with jaxreward tell",
    "replay": "replay a recording of this task",
}


def ending(settings: EvolveSettings, progress: Progress[Any], end: End, best: Result | None) -> Finished | Failed:
    """The last event of a search that ends for `end`; `best` is its best candidate."""
    if progress.spent.trained:
        return Finished(reason=end.reason, best=best.candidate.id if best else None, cause=end.cause)
    return Failed(reason=why_failed(settings, progress), budget=end.reason, cause=end.cause)


def why_failed(settings: EvolveSettings, progress: Progress[Any]) -> Sentence:
    """Why nothing was trained, and what to do."""
    failures = [result.failure for result in progress.results.values() if result.failure is not None]
    remedy = _REMEDY.get(settings.proposer, "correct the programs and begin again")
    return Sentence(f"nothing was trained: {_why(failures)}; {remedy.replace('{task}', label_of(settings.task))}")


def _why(failures: list[Failure]) -> str:
    """Counts of the programs by outcome, with the most frequent rejection."""
    if not failures:
        return "no program was proposed"
    often, count = Counter(f.model_copy(update={"line": None}) for f in failures).most_common(1)[0]
    said = str(often)
    if len(failures) == 1:
        return f"the only program was rejected, {said}"
    all_so = "all of them so" if count == len(failures) else f"{count} of them so"
    return f"{len(failures)} programs were rejected, {all_so}: {said}"


def withdrawn(end: End, lost: Sequence[Exchange], generation: int | None = None) -> Withdrawn:
    """That the requests without an answer, of the generation in work or of that of an index, are taken back; `lost` are
    the exchanges that they had."""
    amount = Amount.of(lost)
    return Withdrawn(
        reason=end.reason, generation=generation, cause=end.cause, calls=amount.requests, tokens=amount.tokens,
        cost_usd=amount.usd,
        unpriced_tokens=amount.unpriced,
    )  # fmt: skip
