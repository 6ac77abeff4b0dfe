"""Warnings about a run, each with what it means or what to do."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from jaxreward.records import Notice
from jaxreward.reports.baselines import WINNER, ScoredProgram, gap
from jaxreward.reports.chart_data import programs
from jaxreward.reports.run_view import RunView
from jaxreward.reports.tables import figure

_MEANS = {
    "farmed": "The reward pays for something that is not the goal: watch the agent before you use it.",
    "failure_pays": "The agent succeeds in spite of its reward: train it for longer before you rely on it.",
    "unreached": "Compare it with a longer training, and watch what the agent does instead.",
    "uncorrelated": "The agent maximises something other than the metric: the curve may fall with longer training.",
    "dominant_term": "The other terms have little effect: try the program without them, or scale them up.",
    "flat_term": "It gives no learning signal: delete it, or reward something that happens.",
    "dead_features": "These inputs carry no information: an observation without them learns as well.",
    "seed_spread": "The mean depends on a few seeds: train it on more.",
    "plateau": "More steps of the same will hardly help.",
    "diverged": "Divisions, logarithms or powers are not finite: guard them before you train it for longer.",
}

_FEW_SEEDS, _SHOWN = 3, 5


@dataclass(frozen=True)
class RunWarning:
    """A warning: its `kind`, what was observed, and what it means; `candidate` is the one that it is about, if any."""

    kind: str
    text: str
    means: str = ""
    candidate: str = ""


def run_warnings(view: RunView, programs: Sequence[ScoredProgram]) -> list[RunWarning]:
    """The warnings of a run: about the winner's score first, then its training, then the search."""
    winner = next((p for p in programs if p.name == WINNER), None)
    listed = list(_of_the_score(view, winner, programs)) if winner else []
    if view.best is not None and winner is not None and winner.feedback is not None:
        notices = {n.kind + n.message: n for n in winner.feedback.notices if is_about(n, view)}
        for n in notices.values():
            message = f"{n.message[:1].upper()}{n.message[1:]}."
            listed.append(RunWarning(n.kind, message, _MEANS.get(n.kind, ""), view.best.candidate.id))
    return [*listed, *_of_the_search(view)]


def is_about(notice: Notice, view: RunView) -> bool:
    """Whether a notice is one to follow. A recovered reward has a cost of every state, which is what tells the expert's
    states from others: that it never changes, or is most of the reward, says nothing against it."""
    return view.progress.config.get("objective") != "demonstrations" or notice.kind not in _OF_SIZES


_OF_SIZES = ("flat_term", "dominant_term")


def _of_the_score(view: RunView, winner: ScoredProgram, programs: Sequence[ScoredProgram]) -> Iterator[RunWarning]:
    score, best = winner.score, view.best
    if score is None or best is None:
        return
    if not winner.fresh:
        yield RunWarning(
            "not_fresh", "The winner was not trained again on fresh seeds.",
            "It was selected by this score, which is therefore biased upwards: train it again (see Reproduce).",
        )  # fmt: skip
    if score.n < _FEW_SEEDS:
        text = f"The winner's score is that of {score.n} seed{'s' * (score.n > 1)}."
        yield RunWarning("few_seeds", text, "More seeds make the interval narrower.")
    if winner.fresh and best.score is not None and gap(score, best.score).verdict == "worse":
        searched, fresh = (figure(s.mean, rate=score.measure.rate) for s in (best.score, score))
        text = f"The search measured {searched}, fresh seeds {fresh}."
        yield RunWarning("selection", text, "It was selected partly by luck: believe the fresh seeds.")
    for baseline in programs:
        if baseline is winner or baseline.score is None or gap(score, baseline.score).verdict == "better":
            continue
        worse = gap(score, baseline.score).verdict == "worse"
        text = "is worse than" if worse else "is not significantly different from"
        yield RunWarning(
            "not_better", f"The winner {text} {baseline.name}.",
            "The search may not have helped here: try more candidates or steps, or more seeds to tell them apart.",
        )  # fmt: skip


def _of_the_search(view: RunView) -> Iterator[RunWarning]:
    notices_of = {id: r.feedback.notices for id, r in view.results.items() if r.feedback}
    farmed = [id for id, notices in notices_of.items() if any(n.kind == "farmed" for n in notices)]
    if farmed:
        shown, more = ", ".join(farmed[:_SHOWN]), len(farmed) - _SHOWN
        text = f"{len(farmed)} candidate{'s' * (len(farmed) > 1)} collected reward without reaching the goal: {shown}"
        won = view.best is not None and view.best.candidate.id in farmed
        means = "The winner is one of them." if won else "The winner is none of them: the metric uses the true state."
        yield RunWarning("farmed_candidates", f"{text}{f' and {more} more' if more > 0 else ''}.", means)
    attempts = view.progress.spent.attempts
    failed = sum(r.failure is not None for r in programs(view.results.values()))
    if attempts >= 4 and failed > attempts / 2:
        means = "See Failures for why: the search had fewer programs to select from than it seems."
        yield RunWarning("many_failures", f"{failed} of {attempts} programs have no score.", means)
    if view.progress.exhausted:
        yield RunWarning("budget", f"The proposer's budget ended: {view.progress.exhausted.reason}.")
