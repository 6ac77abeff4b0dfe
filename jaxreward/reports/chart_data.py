"""The rows that the charts of a report are drawn from."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from jaxreward.config import label_of
from jaxreward.operators import WORDS
from jaxreward.records import Feedback, FunctionLibrary, Result
from jaxreward.reports.run_view import RunView
from jaxreward.reports.timeline import BEST_OF_N, CHECKING, FINAL, PROPOSING, REST, TRAINING
from jaxreward.runs import Told

Rows = list[dict[str, Any]]


def state_of(result: Result) -> str:
    """`scored`, `words`, or the stage at which a candidate failed."""
    if result.failure is not None:
        return result.failure.stage
    return "scored" if result.score is not None else "words"


def programs(results: Iterable[Result]) -> list[Result]:
    """The results of requests for a program."""
    return [r for r in results if r.candidate.operator not in WORDS]


# ---- one training


def curve(name: str, feedback: Feedback) -> Rows:
    """A learning curve (`charts.curves`); its band is the range over seeds, where the log holds them."""
    rows: Rows = []
    for i, (steps, mean) in enumerate(zip(feedback.steps, feedback.success, strict=True)):
        seeds = [seed[i] for seed in feedback.by_seed if i < len(seed)] or [mean]
        rows.append({"name": name, "steps": steps, "mean": mean, "low": min(seeds), "high": max(seeds)})
    return rows


def term_rows(feedback: Feedback) -> Rows:
    """Reward terms through training (`charts.terms`), the largest share first."""
    return [
        {"term": t.name, "steps": s, "mean": mean, "minimum": low, "maximum": high}
        for t in sorted(feedback.terms, key=lambda t: -t.share)
        for s, mean, low, high in zip(feedback.term_steps, t.mean, t.minimum, t.maximum, strict=True)
    ]


def shares(feedback: Feedback) -> Rows:
    """The share of each term in the summed absolute reward at the end, the largest first."""
    return [{"term": t.name, "share": t.share} for t in sorted(feedback.terms, key=lambda t: -t.share)]


# ---- the search


def search_rows(view: RunView) -> tuple[Rows, Rows]:
    """Scored candidates in the order of training, and the best so far at each change and at the end
    (`charts.search`), of the search and of its best-of-n search."""
    points: Rows = []
    best: Rows = []
    searches = {label_of(view.started.strategy): view} | ({BEST_OF_N: view.best_of_n} if view.best_of_n else {})
    for name, search in searches.items():
        candidates = search.timeline.candidates
        for c in candidates:
            if c.result.score is None:
                continue
            row = {"search": name, "order": c.number, "mean": c.result.score.mean}
            # Both searches use the same ids; the page has details of the run's own candidates only.
            own = {"own": search is view, "id": c.result.candidate.id, "operator": c.result.candidate.operator}
            points.append({**row, **own})
            if c.best is c.result:
                best.append(row)
        if candidates and (top := candidates[-1].best) is not None and top.score is not None:
            best.append({"search": name, "order": len(candidates), "mean": top.score.mean})
    return points, best


def period_rows(view: RunView) -> Rows:
    """Wall seconds of each period by phase (`charts.time`)."""
    order = (PROPOSING, CHECKING, TRAINING, FINAL, REST)
    return [
        {"period": p.name, "phase": phase, "seconds": round(p.seconds[phase], 2), "order": rank}
        for p in view.periods for rank, phase in enumerate(order) if p.seconds.get(phase, 0.0) > 0.005
    ]  # fmt: skip


def forest(view: RunView) -> tuple[Rows, Rows]:
    """Nodes and edges of the forest of first parents (`charts.tree`).

    Leaves have columns in the order of their requests, a parent the middle column of its children. Q and visits of a
    tree search are added where its strategy logged them.
    """
    shown = {r.candidate.id: r for r in programs(view.results.values())}
    children: dict[str, list[str]] = {id: [] for id in shown}
    roots: list[str] = []
    for id, result in shown.items():
        parent = next((p for p in result.candidate.parents if p in shown and p != id), None)
        (roots if parent is None else children[parent]).append(id)
    at = _layout(roots, children)  # without those of a log whose parents form a cycle
    tree_nodes = _tree_search_nodes(view)
    nodes: Rows = [
        {"x": at[id][0], "depth": at[id][1], "id": id, "operator": r.candidate.operator, "state": state_of(r),
         **({"mean": r.score.mean} if r.score else {}), **tree_nodes.get(id, {})}
        for id, r in shown.items() if id in at
    ]  # fmt: skip
    edges = [
        {"x": at[id][0], "depth": at[id][1], "x2": at[child][0], "depth2": at[child][1]}
        for id, below in children.items() for child in below if id in at and child in at
    ]  # fmt: skip
    return nodes, edges


def _layout(roots: Sequence[str], children: Mapping[str, list[str]]) -> dict[str, tuple[float, int]]:
    """Column and depth of every node; without recursion, for a line of ancestors may be long."""
    at: dict[str, tuple[float, int]] = {}
    column = 0
    stack = [(id, 0, False) for id in reversed(roots)]
    while stack:
        id, depth, done = stack.pop()
        below = children[id]
        if not below:
            at[id] = (float(column), depth)
            column += 1
        elif done:
            columns = [at[child][0] for child in below]
            at[id] = ((min(columns) + max(columns)) / 2, depth)
        else:
            stack.append((id, depth, True))
            stack += [(child, depth + 1, False) for child in reversed(below)]
    return at


def _tree_search_nodes(view: RunView) -> dict[str, dict[str, Any]]:
    """Q and visits of the nodes of a tree search, as its strategy logged them last."""
    return {
        str(node["id"]): {"q": node.get("Q"), "visits": node.get("N")}
        for entry in view.entries if isinstance(entry.event, Told)
        for node in entry.event.account.get("nodes", ()) if isinstance(node, dict) and "id" in node
    }  # fmt: skip


def size_rows(view: RunView) -> Rows:
    """Scored candidates by size of the observation and complexity of the reward (`charts.archive`)."""
    return [
        {"id": r.candidate.id, "operator": r.candidate.operator, "mean": r.score.mean,
         "observation_size": summary.observation_size, "reward_nodes": summary.reward_nodes}
        for r in programs(view.results.values())
        if r.score is not None and (summary := r.candidate.summary) is not None
    ]  # fmt: skip


def function_rows(library: FunctionLibrary) -> Rows:
    """New and reused functions of every generation (`charts.functions`)."""
    return [
        {"generation": g.generation, "kind": kind, "functions": count}
        for g in library.generations for kind, count in (("new", g.new), ("reused", g.reused))
    ]  # fmt: skip


def generation_rows(view: RunView) -> Rows:
    """The best score of every generation that has one."""
    best: dict[int, float] = {}
    for result in view.results.values():
        if result.score is not None:
            generation, merit = result.candidate.generation, result.score.merit
            best[generation] = max(best.get(generation, merit), merit)
    return [{"generation": g, "mean": view.measure.oriented(merit)} for g, merit in sorted(best.items())]


def use_rows(library: FunctionLibrary, most: int) -> Rows:
    """The functions of most programs."""
    return [{"name": function.name, "programs": function.programs} for function in library.shared[:most]]


def cells(view: RunView) -> Rows:
    """The occupied cells of LIMEN's archive with the best of each, over all islands; none of another strategy, or of
    an archive by behaviour."""
    options = dict(o.partition("=")[::2] for o in view.started.config.get("option") or ())
    if options.get("descriptors") == "behaviour":
        return []
    try:
        height, width = int(options["observation_width"]), int(options["reward_width"])
    except (KeyError, ValueError):
        return []
    best: dict[tuple[int, int], dict[str, Any]] = {}
    merit = view.measure.oriented
    for row in size_rows(view):
        cell = (max(row["observation_size"], 1) - 1) // height, row["reward_nodes"] // width
        if cell not in best or merit(row["mean"]) > merit(best[cell]["mean"]):
            best[cell] = row
    return [
        {"x": c * width, "x2": (c + 1) * width, "y": r * height + 0.5, "y2": (r + 1) * height + 0.5,
         "id": row["id"], "mean": row["mean"]}
        for (r, c), row in sorted(best.items())
    ]  # fmt: skip
