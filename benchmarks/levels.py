"""The BabyAI levels beside MiniGrid: steps that agree, what the expert reaches, and steps a second.

    python benchmarks/levels.py --out benchmarks/results/levels.json

A row for each level. Of the three that MiniGrid does not have, the steps that agree are missing.
"""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.command import save, status_of
from jaxreward.commands.resolve import parse
from jaxreward.config import Arg, check_bounds
from jaxreward.tasks.levels.catalogue import LEVELS


@dataclass(frozen=True)
class LevelsSettings:
    """Compare the BabyAI levels with MiniGrid's own, and time them."""

    levels: tuple[str, ...] = tuple(LEVELS)
    """Levels by name."""
    episodes: Annotated[int, Arg(least=1)] = 220
    """Episodes of each that are compared: of MiniGrid's bot, with errors, and of random actions, in turns."""
    expert_episodes: Annotated[int, Arg(least=1)] = 100
    """Episodes of the scripted expert."""
    envs: tuple[int, ...] = (256, 1024)
    """Numbers of environments that step together."""
    steps: Annotated[int, Arg(least=1)] = 200
    """Steps of each that are timed."""
    out: Path | None = None
    """File for the results, written after every level."""


def agreement(name: str, episodes: int) -> dict[str, int]:
    """Steps that were compared, those that differ, and episodes that succeeded."""
    from benchmarks.minigrid_levels import compared

    return dict(zip(("steps", "mismatches", "solved"), compared(name, episodes), strict=True))


def expert(name: str, episodes: int) -> dict[str, float]:
    """Success of the scripted expert, mean and longest length, and milliseconds of planning an episode."""
    from jaxreward.demonstrations import record_expert
    from jaxreward.tasks.levels.task import BabyAI

    task = BabyAI(name, horizon=1000)
    begin = time.perf_counter()
    found = record_expert(task, episodes)
    seconds = time.perf_counter() - begin
    return {
        "episodes": episodes, "success": float(found.success.mean()), "mean_length": float(found.lengths.mean()),
        "longest": int(found.lengths.max()), "ms_an_episode": round(1e3 * seconds / episodes, 1),
    }  # fmt: skip


def speed(name: str, envs: int, steps: int) -> dict[str, float]:
    """Random actions with resets from the bank: seconds of compiling, and steps a second, the best of three."""
    import jax
    import jax.numpy as jnp

    from jaxreward.tasks.levels.task import BabyAI

    task = BabyAI(name)

    def one(state: Any, key: jax.Array) -> Any:
        act, new = jax.random.split(key)
        after = jax.vmap(task.step)(state, jax.random.randint(act, (envs,), 0, 7))
        over = after.solved | (after.step_num >= task.horizon)
        fresh = jax.vmap(task.reset)(jax.random.split(new, envs))
        pick = lambda a, b: jnp.where(over.reshape(envs, *[1] * (a.ndim - 1)), b, a)  # noqa: E731
        return jax.tree.map(pick, after, fresh), task.view(jax.tree.map(lambda x: x[0], after)).grid.sum()

    run = jax.jit(lambda state, key: jax.lax.scan(one, state, jax.random.split(key, steps)))
    state = jax.vmap(task.reset)(jax.random.split(jax.random.key(0), envs))
    begin = time.perf_counter()
    compiled = run.lower(state, jax.random.key(0)).compile()
    compile_s = time.perf_counter() - begin
    seconds = []
    for seed in range(4):
        begin = time.perf_counter()
        state, _ = jax.block_until_ready(compiled(state, jax.random.key(seed)))
        seconds.append(time.perf_counter() - begin)
    return {"envs": envs, "compile_s": round(compile_s, 2), "steps_per_s": round(envs * steps / min(seconds[1:]))}


def run(s: LevelsSettings) -> dict[str, Any]:
    from benchmarks.machine import machine

    report: dict[str, Any] = {"benchmark": "levels", **machine(), "rows": []}
    for name in s.levels:
        row: dict[str, Any] = {"level": name}
        if LEVELS[name].minigrid:
            row["beside_minigrid"] = agreement(name, s.episodes)
        row["expert"] = expert(name, s.expert_episodes)
        row["speed"] = [speed(name, envs, s.steps) for envs in s.envs]
        report["rows"].append(row)
        save(report, s.out)
        print(row)
    compared = [row["beside_minigrid"] for row in report["rows"] if "beside_minigrid" in row]
    report["steps"] = sum(c["steps"] for c in compared)
    report["mismatches"] = sum(c["mismatches"] for c in compared)
    print(f"{report['steps']:,} steps beside MiniGrid, {report['mismatches']} differ")
    save(report, s.out)
    return report


def main() -> int:
    def work() -> None:
        settings = parse(LevelsSettings, None, sys.argv[1:], "levels.py")
        check_bounds(settings)
        run(settings)

    return status_of("levels.py", work)


if __name__ == "__main__":
    sys.exit(main())
