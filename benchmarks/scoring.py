"""How fast rewards are scored on demonstrations: programs x states a second, with 1 to 1,024 programs in one launch.

    python benchmarks/scoring.py --out benchmarks/results/scoring.json
    python benchmarks/demonstration_tables.py     # the table of docs/appendix/benchmarks.md

Compiling and running are apart. Beside them is every program compiled and run by itself, of the first `--alone`.
"""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import numpy as np

from benchmarks.command import save, status_of
from jaxreward.commands.resolve import parse
from jaxreward.config import Arg, check_bounds
from jaxreward.errors import InvalidSetting


@dataclass(frozen=True)
class ScoringSettings:
    """Time the scoring of rewards on demonstrations."""

    tasks: tuple[str, ...] = ("babyai/GoToRedBall", "hopper")
    """Tasks by name."""
    programs: tuple[int, ...] = (1, 4, 16, 64, 256, 1024)
    """Numbers of programs that are scored together."""
    episodes: tuple[int, ...] = (8, 64)
    """Numbers of episodes, of the expert and of random play each."""
    alone: Annotated[int, Arg(least=1)] = 8
    """Programs that are compiled and run one by one."""
    repeats: Annotated[int, Arg(least=1)] = 7
    """Runs that are timed, of which the median counts."""
    checked: Path | None = None
    """Folder with files of checked programs; those that lack are checked and written there."""
    out: Path | None = None
    """File for the results, written after every row."""

    def check(self) -> None:
        """Raise a UserError for the first invalid setting."""
        check_bounds(self)
        for name in ("tasks", "programs", "episodes"):
            if not getattr(self, name) or (name != "tasks" and min(getattr(self, name)) < 1):
                raise InvalidSetting(f"--{name} needs at least one entry, of at least 1", name)


def data_of(task: Any, episodes: int) -> Any:
    """All states of so many episodes of the expert, and of random play. Where the task has no scripted expert, random
    play of another seed stands for it: what a reward is worth is not measured here."""
    from jaxreward.demonstrations import record_expert, record_random
    from jaxreward.objectives.demonstrations.scoring import DemonstrationData

    scripted = hasattr(type(task), "expert_actions")
    expert = record_expert(task, episodes) if scripted else record_random(task, episodes, seed=1)
    return DemonstrationData.of(task, expert, record_random(task, episodes))


def together(programs: Sequence[Any], data: Any, repeats: int) -> dict[str, Any]:
    """One row: seconds of building, compiling and running, and of what is made of the rewards."""
    import jax

    from benchmarks.measure import forget
    from jaxreward.objectives.demonstrations.scoring import separate
    from jaxreward.programs import batched_rewards

    forget()
    batched_rewards._compiled.cache_clear()
    begin = time.perf_counter()
    batched = batched_rewards.BatchedRewards(programs)
    build_s = time.perf_counter() - begin
    first_s, run_s = _timed(lambda: jax.block_until_ready(batched(data.transitions)), repeats)
    _, whole_s = _timed(lambda: separate(programs, data), repeats)
    states = len(data.transitions)
    return {
        "programs": len(programs), "states": states, "nodes": batched.layout.size, "rows": batched.layout.rows,
        "build_s": round(build_s, 4), "compile_s": round(max(0.0, first_s - run_s), 3), "run_s": run_s,
        "scored_s": whole_s, "programs_states_per_s": len(programs) * states / run_s,
    }  # fmt: skip


def one_by_one(programs: Sequence[Any], data: Any, repeats: int) -> dict[str, Any]:
    """Mean seconds of compiling and running a program by itself."""
    import jax

    from benchmarks.measure import forget

    forget()
    samples, compiling, running = data.transitions, [], []
    for program in programs:
        reward = jax.jit(jax.vmap(lambda s, a, n, p=program: p.reward(s, a, n)[0]))
        call = lambda reward=reward: jax.block_until_ready(  # noqa: E731
            reward(samples.states, samples.actions, samples.next_states)
        )
        first_s, run_s = _timed(call, repeats)
        compiling.append(first_s - run_s)
        running.append(run_s)
    return {"programs": len(programs), "compile_s": float(np.mean(compiling)), "run_s": float(np.mean(running))}


def _timed(call: Callable[[], Any], repeats: int) -> tuple[float, float]:
    """Seconds of the first call, and the median of further ones."""
    took = list[float]()
    for _ in range(repeats + 1):
        begin = time.perf_counter()
        call()
        took.append(time.perf_counter() - begin)
    return took[0], statistics.median(took[1:])


def run(s: ScoringSettings) -> dict[str, Any]:
    from benchmarks.carried import programs_of
    from benchmarks.machine import machine
    from benchmarks.mixture import mixed_programs
    from jaxreward.tasks import make_task

    report: dict[str, Any] = {"benchmark": "scoring", **machine(), "tasks": []}
    for name in s.tasks:
        task = make_task(name)
        most = max(*s.programs, s.alone)
        programs = programs_of(name, most, s.checked) if s.checked else mixed_programs(task, most)
        for episodes in s.episodes:
            data = data_of(task, episodes)
            part: dict[str, Any] = {"task": name, "episodes": episodes, "rows": []}
            part["alone"] = one_by_one(programs[: s.alone], data, s.repeats)
            report["tasks"].append(part)
            for n in s.programs:
                part["rows"].append(together(programs[:n], data, s.repeats))
                save(report, s.out)
                print(name, part["rows"][-1], flush=True)
    return report


def main() -> int:
    def work() -> None:
        settings = parse(ScoringSettings, None, sys.argv[1:], "scoring.py")
        settings.check()
        run(settings)

    return status_of("scoring.py", work)


if __name__ == "__main__":
    sys.exit(main())
