"""Whether the units of a reward matter to the learner of robots, and what its reward scale should be.

    python benchmarks/reward_units.py --out benchmarks/results/reward_units.json

Without `scale_rewards` a `reward_scale` of 0.01 is a program in other units; with it, units do not matter, and the
scale is what the returns are brought to.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import numpy as np

from benchmarks.command import save, status_of
from jaxreward import load_program
from jaxreward.commands.resolve import parse
from jaxreward.errors import UserError
from jaxreward.tasks import make_task
from jaxreward.training import quick_real, train

ROOT = Path(__file__).resolve().parents[1]


@dataclass(frozen=True)
class UnitsSettings:
    """Train one interface with its reward in several units, scaled by its returns and not."""

    tasks: tuple[str, ...] = ("quadcopter-hover",)
    """Tasks, with their `expert.py`."""
    scales: tuple[float, ...] = (0.01, 0.1, 1.0, 10.0, 30.0, 100.0)
    """By which rewards are multiplied."""
    seeds: int = 2
    """Training seeds."""
    steps: int = 300_000
    """Environment steps of each."""
    eval_episodes: int = 64
    """Held-out episodes."""
    out: Path | None = None
    """File for the results."""

    def check(self) -> None:
        """Raise a UserError for the first invalid setting."""
        if not self.scales or min(self.scales) <= 0 or min(self.seeds, self.steps, self.eval_episodes) < 1:
            raise UserError("--scales are positive numbers; --seeds, --steps and --eval-episodes are at least 1")
        for name in self.tasks:
            if not interface(name).is_file():
                raise UserError(f"{name} has no interface {interface(name)}; choose another of --tasks")


def interface(task: str) -> Path:
    return ROOT / "interfaces" / task.replace("-", "_") / "expert.py"


def rows_of(name: str, s: UnitsSettings) -> list[dict[str, Any]]:
    """One row for each learner: the value of the task's metric at the end, by seed."""
    task, rows = make_task(name), list[dict[str, Any]]()
    program = load_program(interface(name), task)
    for scaled in (False, True):
        for scale in s.scales:
            ppo = quick_real(scale_rewards=scaled, reward_scale=scale)
            result = train(
                task, [program], ppo, seeds=s.seeds, steps=s.steps, checkpoints=1, eval_episodes=s.eval_episodes
            )
            values = np.asarray(result.success[0], float)
            rows.append({"task": name, "scale_rewards": scaled, "reward_scale": scale, "values": values.tolist()})
            print(f"| `{name}` | {'yes' if scaled else 'no'} | {scale:g} | {values.mean():.3g} |", flush=True)
    return rows


def run(s: UnitsSettings) -> dict[str, Any]:
    """All tasks; the file is written after each."""
    from benchmarks.machine import machine

    s.check()
    report: dict[str, Any] = {"benchmark": "reward_units", "seeds": s.seeds, "steps": s.steps, **machine(), "rows": []}
    for name in s.tasks:
        report["rows"] += rows_of(name, s)
        save(report, s.out)
    return report


def main(argv: list[str] | None = None) -> int:
    return status_of("reward_units", lambda: run(parse(UnitsSettings, None, argv, "reward_units.py")))


if __name__ == "__main__":
    sys.exit(main())
