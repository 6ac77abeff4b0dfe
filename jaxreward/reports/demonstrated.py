"""Rows for the charts of a search on demonstrations: rewards along episodes, and what the best ones were worth."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from jaxreward.records import Result
from jaxreward.reports import charts
from jaxreward.reports.chart_data import Rows
from jaxreward.reports.run_view import RunView
from jaxreward.runs.episode_rewards import BestRewards, GroupRewards, Who, read_best_rewards

SEARCHED, HELD_OUT = "searched with", "held out"

CONFIRMED = "the best reward is confirmed: episodes of its own policy are among the data"
UNCONFIRMED = "the best reward is not confirmed: no episodes of its own policy are among the data"
UNLEARNED = (
    "the best reward is not confirmed: episodes of its own policy are among the data, but that has hardly learned to "
    "earn it; train longer"
)
LEAST_EARNED = 0.1
"""Of the difference between what the expert earns and what others do, what a policy must have learned to earn, so that
its episodes say something about its reward."""

_KINDS: dict[Who, str] = {"expert": "the expert", "others": "others", "policy": "trained policies"}


@dataclass(frozen=True)
class Demonstrated:
    """What the report of a search on demonstrations adds.

    Attributes:
        charts: Vega-Lite specifications by name.
        panels: the name of the chart of each kind of episodes, and what the kind is.
        figures: what the best reward is worth, by name.
        expansions: how often the data were expanded.
        policies: what the policy of each expansion showed, in words.
        verdict: `verdict` as a sentence, empty without an expansion.
    """

    charts: dict[str, dict[str, Any]]
    panels: list[tuple[str, str]]
    figures: list[tuple[str, float]]
    expansions: int
    policies: list[str]
    verdict: str

    @staticmethod
    def of(view: RunView) -> Demonstrated | None:
        """That of a run; None of one with another objective."""
        if view.progress.config.get("objective") != "demonstrations":
            return None
        found, drawn, panels = _best_rewards(view), dict[str, dict[str, Any]](), list[tuple[str, str]]()
        colours = _colours(found)
        if found is not None:
            steps = step_rows(found)
            ends = _ends(steps)
            for who, what in _KINDS.items():
                if rows := [row for row in steps if row["who"] == who]:
                    drawn[name := f"along_{who}"] = charts.along(rows, what, ends, colours)
                    panels.append((name, what))
            drawn["rewards"] = charts.distribution(state_rows(found), colours)
        expansions = _expansions(view)
        for name, value in (("fitness", _fitness), ("accuracy", _accuracy)):
            if rows := best_rows(view, value):
                drawn[f"{name}_over_generations"] = charts.generations(rows, name, expansions)
        said = f"{known.capitalize()}." if (known := verdict(view)) else ""
        policies = [f"{r.candidate.id}: {r.words}" for r in view.results.values() if _expands(r)]
        return Demonstrated(drawn, panels, _figures(view.best), len(expansions), policies, said)


def verdict(view: RunView) -> str:
    """Whether the data hold episodes of a policy that learned the best reward; empty where none were added."""
    results = view.results
    expanding = [r for r in results.values() if _expands(r)]
    if not expanding or view.best is None:
        return ""
    best = view.best.candidate.source
    own = {r.candidate.id for r in expanding if any(_source(results, id) == best for id in r.candidate.parents)}
    if not own:
        return UNCONFIRMED
    found = _best_rewards(view)
    earned = _earned(found, own) if found is not None else None
    return UNLEARNED if earned is not None and earned < LEAST_EARNED else CONFIRMED


def _source(results: Mapping[str, Result], id: str) -> str | None:
    return results[id].candidate.source if id in results else None


def _earned(found: BestRewards, own: Collection[str]) -> float | None:
    """How far policies of the best reward have come from what others earn, 0, to what the expert does, 1: the one that
    has come furthest. None where that is not known."""
    means = {g.who: g.mean for g in found.groups if g.who != "policy" and not g.held_out}
    policies = [g.mean for g in found.groups if g.expansion in own and g.mean is not None]
    expert, others = means.get("expert"), means.get("others")
    if expert is None or others is None or not policies or expert <= others:
        return None
    return (max(policies) - others) / (expert - others)


def step_rows(found: BestRewards) -> Rows:
    """The reward of every step of the episodes that are shown (`charts.along`)."""
    return [
        {"who": group.who, "group": name, "episode": k + 1, "step": step, "reward": reward, "positive": positive}
        for name, group in _named(found)
        for k, one in enumerate(group.shown)
        for step, reward, positive in zip(one.steps, one.rewards, one.positive, strict=True)
    ]


def state_rows(found: BestRewards) -> Rows:
    """The states of each kind by their reward, a row for each bin (`charts.distribution`). Bars are as high as the root
    of the share, so that few states show."""
    rows: Rows = []
    for place, (name, group) in enumerate(_named(found), start=1):
        shares = np.asarray(group.states) / max(1, sum(group.states))
        rows += [
            {"group": name, "place": place, "top": round(place - 0.85 * share**0.5, 4), "reward": low, "to": high,
             "share": round(share, 6), "states": count}
            for low, high, share, count in zip(found.edges, found.edges[1:], shares.tolist(), group.states)
        ]  # fmt: skip
    return rows


def best_rows(view: RunView, value: Callable[[Result], tuple[float | None, float | None]]) -> Rows:
    """A value of the best program after each generation, on the data that the search had and on held-out ones
    (`charts.generations`). After an expansion of the data only the programs that were scored since then count."""
    rows: Rows = []
    best: Result | None = None
    for generation, results in _by_generation(view).items():
        if any(_expands(result) for result in results):
            best = None
        for result in results:
            if result.score is not None and (best is None or result.score.merit > _merit(best)):
                best = result
        if best is not None:
            pairs = zip((SEARCHED, HELD_OUT), value(best), strict=True)
            rows += [{"generation": generation, "of": of, "value": x} for of, x in pairs if x is not None]
    return rows


def _best_rewards(view: RunView) -> BestRewards | None:
    """What the run has kept of its best program."""
    summary, found = view.best.candidate.summary if view.best else None, read_best_rewards(view.path)
    return found if found is not None and summary is not None and found.digest == summary.digest else None


def _named(found: BestRewards) -> list[tuple[str, GroupRewards]]:
    """The groups, with names that differ."""
    named, policies = list[tuple[str, GroupRewards]](), 0
    for group in found.groups:
        policies += group.who == "policy"
        name = f"policy of expansion {policies}" if group.who == "policy" else group.who
        named.append((f"{name}, {HELD_OUT}" if group.held_out else name, group))
    return named


def _colours(found: BestRewards | None) -> dict[str, str]:
    """Of the groups by their names: held-out ones lighter, policies in the order of their expansions."""
    fixed = {("expert", False): 0, ("expert", True): 5, ("others", False): 1, ("others", True): 4}
    rest = [k for k in range(len(charts.COLOURS)) if k not in fixed.values()]
    colours, policies = dict[str, str](), 0
    for name, group in _named(found) if found is not None else ():
        place = fixed.get((group.who, group.held_out))
        if place is None:
            place, policies = rest[policies % len(rest)], policies + 1
        colours[name] = charts.COLOURS[place]
    return colours


def _ends(rows: Rows) -> tuple[float, float]:
    """The ends of the axis of rewards, which all panels share: the least and the greatest, with a margin."""
    values = [row["reward"] for row in rows if row["reward"] is not None]
    low, high = (min(values), max(values)) if values else (0.0, 0.0)
    margin = 0.05 * (high - low) or 1.0
    return low - margin, high + margin


def _by_generation(view: RunView) -> dict[int, list[Result]]:
    found = dict[int, list[Result]]()
    for result in view.results.values():
        found.setdefault(result.candidate.generation, []).append(result)
    return dict(sorted(found.items()))


def _expands(result: Result) -> bool:
    return result.candidate.operator == "expand" and bool(result.words)


def _expansions(view: RunView) -> list[int]:
    """The generations in which the data were expanded."""
    return [g for g, results in _by_generation(view).items() if any(_expands(result) for result in results)]


def _merit(result: Result) -> float:
    return result.score.merit if result.score is not None else float("-inf")


def _extra(result: Result, name: str) -> float | None:
    return result.feedback.extra_metrics.get(name) if result.feedback else None


def _fitness(result: Result) -> tuple[float | None, float | None]:
    return result.score.mean if result.score else None, _extra(result, "held_out_fitness")


def _accuracy(result: Result) -> tuple[float | None, float | None]:
    return _extra(result, "accuracy"), _extra(result, "held_out_accuracy")


def _figures(best: Result | None) -> list[tuple[str, float]]:
    if best is None:
        return []
    pairs = (("fitness", _fitness(best)), ("accuracy", _accuracy(best)))
    found = [(name if k == 0 else f"{name}, {HELD_OUT}", x) for name, both in pairs for k, x in enumerate(both)]
    return [(name, x) for name, x in found if x is not None]
