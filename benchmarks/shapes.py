"""The quick learner in several shapes: what a training of them costs a GPU, beside what their agents learn.

    python benchmarks/shapes.py --groups easy --shapes cpu envs=256,minibatches=8 --first-seed 0 --seeds 4
    python benchmarks/shapes.py --out benchmarks/results/shapes.json
    python benchmarks/shapes_table.py       # writes the table of docs/appendix/quick_learner.md

A shape is `cpu` or `gpu`, the row of the learners' table, or settings of `PPO` in place of those of the CPU's row. Of a
group, programs of one task, all train side by side, with the number of steps of the `quick` preset times --budget.
Success is measured on the devices here. Seconds of a GPU are an estimate from what gpu_compile.py counted for the
shape, which --compiled names.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from rich.console import Console

from benchmarks.command import save, status_of
from benchmarks.described import DEVICES, Described
from benchmarks.machine import machine
from benchmarks.roofline import ASSUMED, seconds_of
from jaxreward.commands.resolve import parse
from jaxreward.devices import use_cores
from jaxreward.errors import UserError, why_unreadable
from jaxreward.evolution.presets import quick_steps
from jaxreward.programs import Checker, Program
from jaxreward.tasks import Task, has_real_actions, make_task
from jaxreward.training import PPO, train
from jaxreward.training.learners import SHAPES, Shape, quick_for
from jaxreward.training.plan import EVAL_EPISODES, Evaluation, curve_points

ROOT = Path(__file__).resolve().parents[1]
COMPILED = tuple(ROOT / "benchmarks" / "results" / name for name in ("gpu_compile.json", "gpu_shapes.json"))
COUNTED = f"{ASSUMED}; here held-out episodes are counted, those of a search"
"""What the seconds take for granted; in every file of results."""

OBSERVATION = "expert observation"
"""A case: the observation of expert.py, completed with the task's sparse reward."""
GROUPS = {
    "easy": ("xland-easy", ("expert", "sparse", "farmed")),
    "medium": ("xland-medium", ("expert", OBSERVATION, "sparse")),
    "hard": ("xland-hard", ("expert", OBSERVATION)),
    "hopper": ("hopper", ("expert", "sparse")),
}
"""The cases of a group, interfaces of one task."""


@dataclass(frozen=True)
class ShapesSettings:
    """Train interfaces with the quick learner in several shapes, and estimate what a GPU would take."""

    groups: tuple[str, ...] = ("easy", "medium")
    """easy, medium, hard, hopper."""
    shapes: tuple[str, ...] = ("cpu", "gpu")
    """Rows of the learners' table, or NAME=VALUE,NAME=VALUE in place of the CPU's; none: only estimate again."""
    budget: float = 1.0
    """Environment steps of a seed, in units of those of the quick preset."""
    seeds: int = 10
    """Training seeds."""
    first_seed: int = 1000
    """The first of them."""
    compiled: tuple[Path, ...] = COMPILED
    """Results of gpu_compile.py, with rows of these shapes."""
    out: Path | None = None
    """File of results, to which rows are appended as they are made."""

    def check(self) -> None:
        """Raise a UserError for the first invalid setting."""
        for name in self.groups:
            if name not in GROUPS:
                raise UserError(f"--groups are {', '.join(GROUPS)}, not '{name}'")
            for text in self.shapes:
                learner(text, GROUPS[name][0]).check()
        if self.seeds < 1 or self.first_seed < 0 or not self.budget > 0:
            raise UserError("--seeds is at least 1, --first-seed not negative and --budget positive")


def learner(text: str, task: str) -> PPO:
    """The quick learner for a task in the shape that `text` names.

    Raises:
        UserError: no such row or setting.
    """
    real = has_real_actions(task)
    if text in SHAPES["discrete"]:
        return quick_for(real, text)
    found = SHAPES["continuous" if real else "discrete"]["cpu"]
    for word in text.split(","):
        name, _, value = word.partition("=")
        if name not in Shape._fields:
            raise UserError(f"a shape is {', '.join(SHAPES['discrete'])} or NAME=VALUE of PPO, not '{text}'")
        try:
            found = found._replace(**{name: float(value) if name == "learning_rate" else int(value)})
        except ValueError as error:
            raise UserError(f"'{word}' of the shape '{text}' has no number") from error
    return found.of(quick_for(real, "cpu"))


# ---- what a GPU takes


def training_s(row: dict[str, Any], task: Task, ppo: PPO, steps: int, device: Described) -> float:
    """Seconds of training a population on `device`, held-out episodes of a search included, compiling not.

    Updates follow each other, and so do the steps of held-out episodes: a round at each point of the curves, the rounds
    of the end, each of whole unrolls that cover the horizon, in as many environments as there are episodes.

    Args:
        row: of `gpu_compile`, for this learner.
        steps: environment steps of each agent.
    """
    functions = row["functions"]
    learn = seconds_of(functions["learn"], device)
    collecting = [f for name, f in functions.items() if name != "learn"]
    evaluation = Evaluation.of(ppo, EVAL_EPISODES)
    share = evaluation.lanes / ppo.envs
    lanes = [f | {"bytes": f["bytes"] * share, "flops": f["flops"] * share} for f in collecting]
    rounds = curve_points(task, ppo, steps) - 1 + evaluation.rounds
    parts = rounds * -(-task.horizon // (ppo.length * ppo.action_repeat))
    updates = -(-steps // ppo.batch)
    return updates * (learn + sum(seconds_of(f, device) for f in collecting)) + parts * sum(
        seconds_of(f, device) for f in lanes
    )


def shape_of(ppo: PPO) -> dict[str, Any]:
    """The fields of a learner that the table has."""
    return {name: getattr(ppo, name) for name in Shape._fields}


def compiled_rows(paths: Sequence[Path], task: str, ppo: PPO) -> dict[int, dict[str, Any]]:
    """The last row of `gpu_compile` for banks of programs of this task and this shape, by the number of candidates.

    Early rows do not say their shape but for the environments: it is that of a CPU.
    """
    rows: list[dict[str, Any]] = []
    for path in paths:
        try:
            rows += json.loads(path.read_text())["rows"] if path.exists() else []
        except (OSError, ValueError, KeyError) as error:
            raise UserError(f"--compiled {path} cannot be read: {why_unreadable(error)}") from error
    usual = quick_for(has_real_actions(task), "cpu")
    same = {name: (getattr(ppo, name), getattr(usual, name)) for name in ("unroll", "epochs", "minibatches")}
    return {
        row["candidates"]: row for row in rows
        if (row["case"], row["device"], row["envs"], row.get("length"), row.get("population"))
        == (task, "h200", ppo.envs, ppo.length, "bank")
        and all(row.get(name, early) == value for name, (value, early) in same.items())
    }  # fmt: skip


# ---- what its agents learn


def programs_of(group: str, task: Task) -> list[Program]:
    """The programs of a group, in the order of its cases."""
    folder = ROOT / "interfaces" / task.name.replace("-", "_")
    sources = []
    for case in GROUPS[group][1]:
        source = (folder / f"{'expert' if case == OBSERVATION else case}.py").read_text()
        sources.append(source.split("def compute_reward")[0] if case == OBSERVATION else source)
    with Checker() as checker:
        found = [(verdict, program) for verdict, program in checker.check_many(sources, task)]
    for case, (verdict, program) in zip(GROUPS[group][1], found, strict=True):
        if program is None:
            raise UserError(f"{case} of {task.name} is not a program: {verdict.failure}")
    return [program for _, program in found if program is not None]


def measured(s: ShapesSettings, group: str, text: str, task: Task, programs: Sequence[Program]) -> dict[str, Any]:
    """A row: success of every case and seed."""
    ppo, steps = learner(text, task.name), round(s.budget * quick_steps(task.name))
    result = train(
        task, programs, ppo, seeds=range(s.first_seed, s.first_seed + s.seeds), steps=steps,
        checkpoints=curve_points(task, ppo, steps),
    )  # fmt: skip
    return {
        "group": group, "task": task.name, "name": text, "shape": shape_of(ppo), "budget": s.budget, "steps": steps,
        "seeds": list(result.seeds), "updates": -(-steps // ppo.batch), "measure": result.measure.label,
        "success": {case: result.success[k].tolist() for k, case in enumerate(GROUPS[group][1])},
        "run_s": round(result.run_s, 1), "compile_s": round(result.compile_s, 1), **machine(),
    }  # fmt: skip


def estimated(row: dict[str, Any], compiled: Sequence[Path]) -> dict[str, Any]:
    """A row with the seconds of an H200 by the number of candidates, as far as its shape was compiled."""
    task = make_task(row["task"])
    ppo = Shape(**row["shape"]).of(quick_for(has_real_actions(task.name), "cpu"))
    known = sorted(compiled_rows(compiled, task.name, ppo).items())
    seconds = {str(n): training_s(of_n, task, ppo, row["steps"], DEVICES["h200"]) for n, of_n in known}
    return row | {"h200_s": {n: round(value, 3) for n, value in seconds.items()}}


def run(s: ShapesSettings) -> int:
    """All rows, one after the other, and the estimates of those of before again."""
    s.check()
    report, console = _report(s.out), Console(stderr=True)
    report["assumed"] = COUNTED
    report["rows"] = [estimated(row, s.compiled) for row in report["rows"]]
    save(report, s.out)
    for group in s.groups:
        task = make_task(GROUPS[group][0])
        programs = programs_of(group, task)
        for text in s.shapes:
            report["rows"].append(row := estimated(measured(s, group, text, task, programs), s.compiled))
            save(report, s.out)
            console.print(line(row), highlight=False, soft_wrap=True)
    return 0


def line(row: dict[str, Any]) -> str:
    """A row for people."""
    means = (f"{case} {sum(v) / len(v):.3f} (worst {min(v):.3f})" for case, v in row["success"].items())
    seconds = (f"{value:.2f} s with {n} candidates" for n, value in row["h200_s"].items())
    return "; ".join([f"{row['task']}, {row['name']}, {row['steps']:,} steps: {', '.join(means)}", *seconds])


def _report(path: Path | None) -> dict[str, Any]:
    """The results so far."""
    if path is None or not path.exists():
        return {"benchmark": "shapes", "assumed": COUNTED, "rows": []}
    try:
        found = json.loads(path.read_text())
    except (OSError, ValueError) as error:
        raise UserError(f"--out {path} cannot be read: {why_unreadable(error)}") from error
    if not isinstance(found, dict) or found.get("benchmark") != "shapes":
        raise UserError(f"--out {path} holds other results; give another file")
    return found


def main(argv: list[str] | None = None) -> int:
    use_cores()
    return status_of("shapes", lambda: run(parse(ShapesSettings, None, argv, "shapes.py")))


if __name__ == "__main__":
    sys.exit(main())
