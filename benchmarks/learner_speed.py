"""Steps a second of soft actor-critic beside PPO, by how many candidates train side by side.

    python benchmarks/learner_speed.py --out benchmarks/results/learner_speed.json
    python benchmarks/learner_speed.py --table benchmarks/results/learner_speed.json

Every row compiles its chunk from a cold start and takes the median of its updates; held-out episodes are not in it.
Learners are those that `--learner` has by default on this machine. Steps of both are of the environment; SAC takes
`sac.updates` gradient steps after every `sac.envs` x `sac.unroll` of them, from the first update on.
"""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.brax_parity import different_programs
from benchmarks.command import save, status_of
from jaxreward.commands.resolve import parse
from jaxreward.errors import UserError
from jaxreward.tasks import make_task
from jaxreward.training import SAC, Learner, quick

_MOST = 16  # what `different_programs` has


@dataclass(frozen=True)
class LearnerSpeedSettings:
    """Time the training of PPO and SAC with 1 and more candidates."""

    tasks: tuple[str, ...] = ("inverted-pendulum", "hopper")
    """Brax's environments, by the names of `jaxreward tasks`."""
    learners: tuple[Literal["ppo", "sac"], ...] = ("ppo", "sac")
    """What trains."""
    candidates: tuple[int, ...] = (1, 16)
    """Numbers of candidates, a row each."""
    seeds: int = 1
    """Training seeds of a candidate."""
    updates: int = 20
    """Updates of which the median counts."""
    out: Path | None = None
    """File for the results, written after every row."""
    table: Path | None = None
    """Print the rows of such a file as a table in Markdown, and measure nothing."""

    def check(self) -> None:
        """Raise a UserError for the first invalid setting."""
        if not self.candidates or min(self.candidates) < 1 or max(self.candidates) > _MOST:
            raise UserError(f"--candidates are 1 to {_MOST}")
        if min(self.seeds, self.updates) < 1:
            raise UserError("--seeds and --updates are at least 1")


def timed(name: str, learner: Learner, candidates: int, s: LearnerSpeedSettings) -> dict[str, Any]:
    """One row: seconds of compiling, environment steps and gradient steps a second, bytes."""
    from benchmarks.measure import training

    task = make_task(name)
    done = training(task, different_programs(task, candidates), learner, s.seeds, s.updates)
    gradients = learner.updates if isinstance(learner, SAC) else learner.epochs * learner.minibatches
    return {
        "task": name, "learner": "sac" if isinstance(learner, SAC) else "ppo", "candidates": candidates,
        "envs": learner.envs, "batch": learner.batch, "gradient_steps": gradients, "compile_s": done.compile_s,
        "steps_per_s": done.steps_per_s, "gradient_steps_per_s": done.steps_per_s / learner.batch * gradients,
        "peak_bytes": done.peak_bytes,
    }  # fmt: skip


def run(s: LearnerSpeedSettings) -> None:
    """All rows, or the table of those that were measured."""
    from benchmarks.machine import machine

    s.check()
    if s.table is not None:
        print(as_table(json.loads(s.table.read_text(encoding="utf-8"))))
        return
    report: dict[str, Any] = {
        "benchmark": "learner_speed", "seeds": s.seeds, "updates": s.updates, **machine(), "rows": []
    }  # fmt: skip
    for name in s.tasks:
        for learner in s.learners:
            for candidates in s.candidates:
                hyper = SAC() if learner == "sac" else quick(make_task(name))
                row = timed(name, hyper, candidates, s)
                report["rows"].append(row)
                print(
                    f"{name}, {learner}, {candidates} candidates: {row['steps_per_s']:,.0f} steps/s after "
                    f"{row['compile_s']:.1f} s of compiling", flush=True,
                )  # fmt: skip
                save(report, s.out)


def as_table(report: dict[str, Any]) -> str:
    """The rows in Markdown. The last column is steps a second by those of the row of the same task and learner with the
    fewest candidates."""
    lines = [
        "| task | learner | candidates | compile s | steps/s | gradient steps/s | MB | x fewest |",
        "|---|---|--:|--:|--:|--:|--:|--:|",
    ]
    for row in report["rows"]:
        alike = [r for r in report["rows"] if (r["task"], r["learner"]) == (row["task"], row["learner"])]
        one = min(alike, key=lambda r: r["candidates"])
        lines.append(
            f"| {row['task']} | {row['learner']} | {row['candidates']} | {row['compile_s']:.1f} | "
            f"{row['steps_per_s']:,.0f} | {row['gradient_steps_per_s']:,.0f} | {row['peak_bytes'] / 1e6:,.0f} | "
            f"{row['steps_per_s'] / one['steps_per_s']:.1f} |"
        )
    return "\n".join(lines)


def main(argv: list[str] | None = None) -> int:
    return status_of("learner_speed", lambda: run(parse(LearnerSpeedSettings, None, argv, "learner_speed.py")))


if __name__ == "__main__":
    sys.exit(main())
