"""What a judge saw of agents, as text."""

from __future__ import annotations

from collections.abc import Iterable

from jaxreward.records import Result, Watched


def watched_of(id: str, results: Iterable[Result]) -> Watched | None:
    """What was seen of a candidate's agent, None where nobody watched it."""
    answers = (r.words for r in results if r.candidate.operator == "watch" and id in r.candidate.parents)
    return next((found for words in answers if (found := Watched.read(words)) is not None), None)


def seen_text(watched: Watched) -> str:
    """The visual score, and that of each subtask."""
    each = ", ".join(f"{name} {score:.2f}" for name, score in watched.scores().items())
    return f"{watched.score:.2f} ({each})"


def watched_line(results: Iterable[Result]) -> str:
    """Of the answers of a judge: all visual scores, and the highest in full."""
    seen = [(r.candidate.parents[0], found) for r in results if (found := Watched.read(r.words)) is not None]
    if not seen:
        return ""
    seen.sort(key=lambda pair: -pair[1].score)
    id, best = seen[0]
    return f"seen {' '.join(f'{found.score:.2f}' for _, found in seen)}; {id} {seen_text(best)}"
