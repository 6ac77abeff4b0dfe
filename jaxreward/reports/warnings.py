"""What speaks against believing a run: warnings, each with what it means or what to do."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from jaxreward.reports.baselines import WINNER, Contender, gap
from jaxreward.reports.facts import RunFacts
from jaxreward.reports.tables import figure

_MEANS = {
    "farmed": "The reward pays for something that is not the goal: watch the agent before you use it.",
    "failure_pays": "The agent succeeds in spite of its reward: train it for longer before you rely on it.",
    "unreached": "Compare it with a longer training, and watch what the agent does instead.",
    "uncorrelated": "What the agent maximises is hardly what you measure: the curve may fall with longer training.",
    "dominant_term": "The other terms may as well not be there: try the program without them, or scale them up.",
    "flat_term": "It teaches nothing: delete it, or reward something that happens.",
    "dead_features": "The policy carries inputs that say nothing; an observation without them learns as well.",
    "seed_spread": "A few seeds decide: train it on more before you believe the mean.",
    "plateau": "More steps of the same will hardly help.",
    "diverged": "Divisions, logarithms or powers leave the numbers: guard them before you train it for longer.",
}

_FEW_SEEDS, _SHOWN = 3, 5


@dataclass(frozen=True)
class Doubt:
    """A warning: its `kind`, what was seen, and what it means; `candidate` is whom it is about, if one."""

    kind: str
    text: str
    means: str = ""
    candidate: str = ""


def doubts(facts: RunFacts, found: Sequence[Contender]) -> list[Doubt]:
    """The warnings of a run: those about the winner's figures first, then its training, then the search."""
    winner = next((c for c in found if c.name == WINNER), None)
    listed = [*_of_the_figures(facts, winner, found)] if winner else []
    if facts.best is not None and winner is not None and winner.feedback is not None:
        notices = {n.kind + n.message: n for n in winner.feedback.notices}
        own = facts.best.candidate.id
        listed += [Doubt(n.kind, f"{_capital(n.message)}.", _MEANS.get(n.kind, ""), own) for n in notices.values()]
    return [*listed, *_of_the_search(facts)]


def _of_the_figures(facts: RunFacts, winner: Contender, found: Sequence[Contender]) -> list[Doubt]:
    listed: list[Doubt] = []
    score, best = winner.score, facts.best
    if score is None or best is None:
        return listed
    if not winner.fresh:
        listed.append(Doubt(
            "not_fresh", "The winner was not trained again on fresh seeds.",
            "Its score is that by which it was chosen, and so too good: train it again (see Reproduce).",
        ))  # fmt: skip
    if score.n < _FEW_SEEDS:
        listed.append(Doubt(
            "few_seeds", f"The winner's score is that of {score.n} seed{'s' * (score.n > 1)}.",
            "The interval says how much that leaves open; more seeds make it narrower.",
        ))  # fmt: skip
    if winner.fresh and best.score is not None and gap(score, best.score).verdict == "worse":
        rate = score.measure.rate
        listed.append(Doubt(
            "selection", f"The search measured {figure(best.score.mean, rate=rate)}, fresh seeds "
            f"{figure(score.mean, rate=rate)}.", "It was lucky when it was chosen: believe the fresh seeds.",
        ))  # fmt: skip
    for rival in found:
        if rival is winner or rival.score is None:
            continue
        verdict = gap(score, rival.score).verdict
        if verdict == "better":
            continue
        told = "is worse than" if verdict == "worse" else "cannot be told by these seeds from"
        listed.append(Doubt(
            "not_better", f"The winner {told} {rival.name}.",
            "The search may not have been worth it here: more candidates, more steps, or more seeds to tell.",
        ))  # fmt: skip
    return listed


def _of_the_search(facts: RunFacts) -> list[Doubt]:
    listed: list[Doubt] = []
    own = facts.best.candidate.id if facts.best else ""
    told = {id: r.feedback.notices for id, r in facts.results.items() if r.feedback}
    farmed = [id for id, notices in told.items() if any(n.kind == "farmed" for n in notices)]
    if farmed:
        shown, more = ", ".join(farmed[:_SHOWN]), len(farmed) - _SHOWN
        listed.append(Doubt(
            "farmed_candidates", f"{len(farmed)} candidate{'s' * (len(farmed) > 1)} collected reward without reaching "
            f"the goal: {shown}{f' and {more} more' if more > 0 else ''}.",
            "The winner is one of them." if own in farmed else "The metric saw it, so none of them won by it.",
        ))  # fmt: skip
    attempts, lost = facts.progress.spent.attempts, sum(facts.failures.values())
    if attempts >= 4 and lost > attempts / 2:
        listed.append(Doubt(
            "many_failures", f"{lost} of {attempts} programs have no score.",
            "See Failures for why: what the search could choose from was less than it looks.",
        ))  # fmt: skip
    if facts.progress.exhausted:
        listed.append(Doubt("budget", f"The proposer's budget ended: {facts.progress.exhausted}."))
    return listed


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]
