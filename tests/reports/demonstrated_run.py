"""A made run as one that searched on demonstrations."""

from __future__ import annotations

import json
from pathlib import Path

from jaxreward.reports.run_view import RunView
from jaxreward.runs.episode_rewards import (
    BestRewards,
    EpisodeRewards,
    GroupRewards,
    Who,
    write_best_rewards,
)
from tests.reports.made_run import make_run

EDGES = (-2.0, -1.0, 0.0, 1.0)


def episode(length: int, last: float, positive: bool) -> EpisodeRewards:
    """-1 on every step but the last."""
    return EpisodeRewards(
        length=length, success=float(last > 0), steps=tuple(range(1, length + 1)),
        rewards=(*(-1.0,) * (length - 2), None, last), positive=(*(False,) * (length - 1), positive),
    )  # fmt: skip


def group(who: Who, last: float, states: tuple[int, ...], held_out: bool = False, expansion: str = "") -> GroupRewards:
    shown = tuple(episode(length, last, who == "expert") for length in (4, 7))
    return GroupRewards(who=who, held_out=held_out, expansion=expansion, count=9, shown=shown, states=states)


def make_demonstrated_run(path: Path) -> Path:
    """Write the run, with held-out episodes and one expansion of its data."""
    make_run(path, 24, strategy="grace")
    log = path / "events.jsonl"
    lines = list(map(json.loads, log.read_text().splitlines()))
    lines[0]["event"]["config"]["objective"] = "demonstrations"
    for line in lines:
        for k, result in enumerate(line["event"].get("results", ())):
            values = {"accuracy": 0.9 + 0.01 * k, "held_out_accuracy": 0.8, "held_out_fitness": 0.5}
            result["feedback"]["beside"] = values
    log.write_text("".join(json.dumps(line, separators=(",", ":")) + "\n" for line in lines))
    best = RunView.read(path).best
    assert best is not None and best.candidate.summary is not None
    (path / "demonstrations").mkdir()
    write_best_rewards(path, BestRewards(
        digest=best.candidate.summary.digest, edges=EDGES,
        groups=(
            group("expert", 1.0, (0, 0, 9)), group("expert", 0.5, (0, 1, 3), held_out=True),
            group("others", -1.0, (0, 40, 1)), group("policy", -0.5, (10, 0, 5), expansion="g0001-00"),
        ),
    ))  # fmt: skip
    return path
