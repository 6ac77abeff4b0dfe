"""How well agents learn from rewards that were recovered from demonstrations, by how the data were expanded and by how
the agents are trained.

    python benchmarks/recovered.py --out benchmarks/results/recovered.json

For every task and search seed: 8 episodes of its scripted expert, one search with the defaults of `jaxreward evolve
--objective demonstrations` and one without expansions of the data. What all searches of a task found, the sparse reward
and one that says nothing are then trained side by side, with the quick learner and with that of recovered rewards,
without and with absorbing ends. docs/appendix/benchmarks.md has the results.
"""

from __future__ import annotations

import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.command import save, status_of
from jaxreward.commands.resolve import parse
from jaxreward.config import Arg, check_bounds

PARCEL = Path(__file__).parent / "parcel.py"
"""The task of docs/demonstrations.md, as `jaxreward new-task` writes it, with the page's expert."""
EPISODES = 8
"""Of the expert, and as many of random play."""
LEARNERS = ("quick", "cut", "recovered")
"""The quick learner; with the horizon as a cut and centred values; and with absorbing ends besides."""


@dataclass(frozen=True)
class RecoveredSettings:
    """Train agents with rewards that searches on demonstrations find."""

    tasks: tuple[str, ...] = (
        "babyai/GoToRedBall", "babyai/GoToObj", "babyai/PickupDist", "babyai/OpenTwoDoors", str(PARCEL),
    )  # fmt: skip
    """Tasks with a scripted expert, by name, or Python files."""
    search_seeds: Annotated[int, Arg(least=1)] = 2
    """Searches of each, and of each number of expansions."""
    expansions: tuple[int, ...] = (0, 2)
    """How often the data are expanded."""
    candidates: Annotated[int, Arg(least=1)] = 100
    """Rewards that a search scores."""
    seeds: Annotated[int, Arg(least=1)] = 3
    """Agents of each reward."""
    steps: Annotated[int, Arg(least=1)] = 200_000
    """Environment steps of each agent."""
    out: Path | None = None
    """File for the results, written after every task."""


def found(task: Any, seed: int, expansions: int, s: RecoveredSettings, folder: Path) -> dict[str, Any]:
    """What one search finds, and what it says of it."""
    import jaxreward as jr
    from jaxreward.demonstrations import record_expert, save_trajectories
    from jaxreward.records import ACCURACY

    name = task.name.replace("/", "-")
    data = folder / f"{name}-{seed}.npz"
    if not data.exists():
        save_trajectories(data, record_expert(task, EPISODES, seed=seed, solved=True))
    begin = time.perf_counter()
    run = jr.evolve(
        task, objective="demonstrations", demonstrations={"data": [str(data)]}, seed=seed,
        candidates=s.candidates, option={"expansions": expansions}, final_seeds=0, baselines=(), progress=False,
        out=folder, name=f"{name}-{seed}-{expansions}",
    )  # fmt: skip
    best = run.best
    assert best is not None and best.score is not None and best.result.feedback is not None
    return {
        "fitness": best.score.mean, "accuracy": best.result.feedback.extra_metrics[ACCURACY], "program": best.source,
        "search_s": round(time.perf_counter() - begin, 1),
    }  # fmt: skip


def constant(task: Any) -> str:
    """A program whose reward is -1 in all states, but for a millionth of something of no interest, without which it
    would be refused: it says nothing."""
    from jaxreward.tasks.documentation import state_leaves

    first = next(iter(state_leaves(task)))
    return (
        "import jax.numpy as jnp\n\n\ndef compute_reward(state, action, next_state):\n"
        f"    pay = -1.0 - 1e-6 * jnp.sum(next_state.{first}).astype(jnp.float32)\n"
        '    return pay, {"cost": pay}\n'
    )


def task_rows(name: str, s: RecoveredSettings, folder: Path) -> list[dict[str, Any]]:
    """A row for each reward, the sparse one first: the success of its agents by learner."""
    import jaxreward as jr
    from jaxreward.programs import Program
    from jaxreward.training import quick
    from jaxreward.training.learners import for_recovered_rewards

    task = jr.make_task(name)
    rows: list[dict[str, Any]] = [{"task": task.name, "reward": kind} for kind in ("sparse", "constant")]
    programs = [Program.default(task), jr.load_program(constant(task), task)]
    for expansions in s.expansions:
        for seed in range(s.search_seeds):
            told = found(task, seed, expansions, s, folder)
            programs.append(jr.load_program(told["program"], task))
            rows.append({"task": task.name, "reward": "found", "expansions": expansions, "seed": seed, **told})
    last = for_recovered_rewards(quick(task))
    for learner, ppo in zip(LEARNERS, (quick(task), last.replace(absorbing=False), last), strict=True):
        result = jr.train(task, programs, ppo, seeds=s.seeds, steps=s.steps, checkpoints=1)
        for row, values in zip(rows, result.success.tolist(), strict=True):
            row[learner] = values
    for row in rows:
        words = f"{row['expansions']} expansions, seed {row['seed']}" if row["reward"] == "found" else row["reward"]
        means = [f"{learner} {sum(row[learner]) / s.seeds:.3f}" for learner in LEARNERS]
        print(f"{task.name}, {words}: {', '.join(means)}", flush=True)
    return rows


def run(s: RecoveredSettings) -> dict[str, Any]:
    """All tasks; the file is written after each."""
    from benchmarks.machine import machine

    check_bounds(s)
    report: dict[str, Any] = {"benchmark": "recovered", **machine(), "steps": s.steps, "rows": []}
    with tempfile.TemporaryDirectory() as folder:
        for name in s.tasks:
            report["rows"] += task_rows(name, s, Path(folder))
            save(report, s.out)
    return report


def main(argv: list[str] | None = None) -> int:
    return status_of("recovered", lambda: run(parse(RecoveredSettings, None, argv, "recovered.py")))


if __name__ == "__main__":
    sys.exit(main())
