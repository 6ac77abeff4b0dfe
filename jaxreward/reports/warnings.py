"""Warnings about a run, each with what it means or what to do."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from jaxreward.reports.baselines import WINNER, ScoredProgram, gap
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
    """The warnings of a run: those about the winner's figures first, then its training, then the search."""
    winner = next((c for c in programs if c.name == WINNER), None)
    listed = [*_of_the_figures(view, winner, programs)] if winner else []
    if view.best is not None and winner is not None and winner.feedback is not None:
        notices = {n.kind + n.message: n for n in winner.feedback.notices}
        own = view.best.candidate.id
        listed += [RunWarning(n.kind, f"{_capital(n.message)}.", _MEANS.get(n.kind, ""), own) for n in notices.values()]
    return [*listed, *_of_the_search(view)]


def _of_the_figures(view: RunView, winner: ScoredProgram, programs: Sequence[ScoredProgram]) -> list[RunWarning]:
    listed: list[RunWarning] = []
    score, best = winner.score, view.best
    if score is None or best is None:
        return listed
    if not winner.fresh:
        listed.append(RunWarning(
            "not_fresh", "The winner was not trained again on fresh seeds.",
            "It was selected by this score, which is therefore biased upwards: train it again (see Reproduce).",
        ))  # fmt: skip
    if score.n < _FEW_SEEDS:
        listed.append(RunWarning(
            "few_seeds", f"The winner's score is that of {score.n} seed{'s' * (score.n > 1)}.",
            "More seeds make the interval narrower.",
        ))  # fmt: skip
    if winner.fresh and best.score is not None and gap(score, best.score).verdict == "worse":
        rate = score.measure.rate
        listed.append(RunWarning(
            "selection", f"The search measured {figure(best.score.mean, rate=rate)}, fresh seeds "
            f"{figure(score.mean, rate=rate)}.", "It was selected partly by luck: believe the fresh seeds.",
        ))  # fmt: skip
    for baseline in programs:
        if baseline is winner or baseline.score is None:
            continue
        verdict = gap(score, baseline.score).verdict
        if verdict == "better":
            continue
        text = "is worse than" if verdict == "worse" else "is not significantly different from"
        listed.append(RunWarning(
            "not_better", f"The winner {text} {baseline.name}.",
            "The search may not have helped here: try more candidates or steps, or more seeds to tell them apart.",
        ))  # fmt: skip
    return listed


def _of_the_search(view: RunView) -> list[RunWarning]:
    listed: list[RunWarning] = []
    own = view.best.candidate.id if view.best else ""
    notices_of = {id: r.feedback.notices for id, r in view.results.items() if r.feedback}
    farmed = [id for id, notices in notices_of.items() if any(n.kind == "farmed" for n in notices)]
    if farmed:
        shown, more = ", ".join(farmed[:_SHOWN]), len(farmed) - _SHOWN
        listed.append(RunWarning(
            "farmed_candidates", f"{len(farmed)} candidate{'s' * (len(farmed) > 1)} collected reward without reaching "
            f"the goal: {shown}{f' and {more} more' if more > 0 else ''}.",
            "The winner is one of them." if own in farmed
            else "The winner is none of them: the metric uses the true state.",
        ))  # fmt: skip
    attempts, lost = view.progress.spent.attempts, sum(view.failures.values())
    if attempts >= 4 and lost > attempts / 2:
        listed.append(RunWarning(
            "many_failures", f"{lost} of {attempts} programs have no score.",
            "See Failures for why: the search had fewer programs to select from than it seems.",
        ))  # fmt: skip
    if view.progress.exhausted:
        listed.append(RunWarning("budget", f"The proposer's budget ended: {view.progress.exhausted}."))
    return listed


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]
