"""Where every candidate of a run stands: in the forest of first parents, and in the cells of an archive."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from jaxreward.operators import WORDS
from jaxreward.records import Result
from jaxreward.reports.facts import RunFacts
from jaxreward.runs import Told

Rows = list[dict[str, Any]]


def state_of(result: Result) -> str:
    """What became of a candidate, in one word: `scored`, `words`, or the stage of its failure."""
    if result.failure is not None:
        return result.failure.stage
    return "scored" if result.score is not None else "words"


def programs(results: Iterable[Result]) -> list[Result]:
    """Those that answer a request for a program."""
    return [r for r in results if r.candidate.operator not in WORDS]


def forest(facts: RunFacts) -> tuple[Rows, Rows]:
    """Nodes and edges of the tree in which every candidate hangs below its first parent (`charts.tree`).

    Leaves stand side by side in the order of their requests, a parent above the middle of its children. What a tree
    search tells of its nodes, Q and visits, stands beside them.
    """
    shown = {r.candidate.id: r for r in programs(facts.results.values())}
    children: dict[str, list[str]] = {id: [] for id in shown}
    roots: list[str] = []
    for id, result in shown.items():
        parent = next((p for p in result.candidate.parents if p in shown and p != id), None)
        (roots if parent is None else children[parent]).append(id)
    told, at = _of_tree_search(facts), dict[str, tuple[float, int]]()
    _place(roots, children, at)
    nodes: Rows = []
    for id, result in shown.items():
        if id not in at:
            continue  # a log whose parents go in a circle
        x, depth = at[id]
        score = {"mean": result.score.mean} if result.score else {}
        base = {"x": x, "depth": depth, "id": id, "operator": result.candidate.operator, "state": state_of(result)}
        nodes.append({**base, **score, **told.get(id, {})})
    edges = [
        {"x": at[id][0], "depth": at[id][1], "x2": at[child][0], "depth2": at[child][1]}
        for id, below in children.items()
        for child in below
        if id in at and child in at
    ]
    return nodes, edges


def _place(roots: list[str], children: Mapping[str, list[str]], at: dict[str, tuple[float, int]]) -> None:
    """Give every node of the forest its place; without recursion, for a line of ancestors may be long."""
    column = 0
    stack = [(id, 0, False) for id in reversed(roots)]
    while stack:
        id, depth, done = stack.pop()
        below = children[id]
        if not below:
            at[id] = (float(column), depth)
            column += 1
        elif done:
            places = [at[child][0] for child in below]
            at[id] = ((min(places) + max(places)) / 2, depth)
        else:
            stack.append((id, depth, True))
            stack += [(child, depth + 1, False) for child in reversed(below)]


def _of_tree_search(facts: RunFacts) -> dict[str, dict[str, Any]]:
    """Q and visits of the nodes of a tree search, as its strategy told them last."""
    found: dict[str, dict[str, Any]] = {}
    for entry in facts.entries:
        if isinstance(entry.event, Told):
            for node in entry.event.account.get("nodes", ()):
                if isinstance(node, dict) and "id" in node:
                    found[str(node["id"])] = {"q": node.get("Q"), "visits": node.get("N")}
    return found


def placed(facts: RunFacts) -> Rows:
    """Scored candidates by size of the observation and complexity of the reward (`charts.archive`)."""
    rows: Rows = []
    for result in programs(facts.results.values()):
        summary = result.candidate.summary
        if result.score is not None and summary is not None:
            rows.append({
                "id": result.candidate.id, "operator": result.candidate.operator, "mean": result.score.mean,
                "observation_size": summary.observation_size, "reward_nodes": summary.reward_nodes,
            })  # fmt: skip
    return rows


def cells(facts: RunFacts) -> Rows:
    """The occupied cells of LIMEN's archive with the best of each, over all islands; none of another strategy."""
    options = dict(o.partition("=")[::2] for o in facts.started.config.get("option") or ())
    try:
        height, width = int(options["observation_width"]), int(options["reward_width"])
    except (KeyError, ValueError):
        return []
    best: dict[tuple[int, int], dict[str, Any]] = {}
    better = facts.measure.oriented
    for row in placed(facts):
        cell = (max(row["observation_size"], 1) - 1) // height, row["reward_nodes"] // width
        if cell not in best or better(row["mean"]) > better(best[cell]["mean"]):
            best[cell] = row
    return [
        {"x": c * width, "x2": (c + 1) * width, "y": r * height + 0.5, "y2": (r + 1) * height + 0.5,
         "id": row["id"], "mean": row["mean"]}
        for (r, c), row in sorted(best.items())
    ]  # fmt: skip
