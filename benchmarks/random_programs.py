"""How many programs from scratch solve a task, of the genetic proposer without blocks, with them, and with blocks of
shuffled subgoals.

    python benchmarks/random_programs.py --out benchmarks/results/random_programs.json

The tasks are by default the generated rulesets of `xland_generator.LADDER`. Shuffled subgoals are of the task's
vocabulary too, but say nothing of what leads to its goal: every fragment that a subgoal names is replaced by another of
its kind, the same everywhere. The task's own reward stays. All programs of a task train side by side. The same command
goes on with the tasks that its file lacks; each row has its commit.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import numpy as np

from benchmarks.command import begun, save, status_of
from jaxreward.commands.resolve import parse
from jaxreward.config import Arg, check_bounds
from jaxreward.records import Subgoal, Subgoals, TaskCard
from jaxreward.records.subgoals import FEATURES, TERMS
from jaxreward.runs.provenance import commit
from jaxreward.tasks.xland_generator import LADDER

Kind = Literal["plain", "blocks", "shuffled"]


@dataclass(frozen=True)
class RandomProgramsSettings:
    """Train programs from scratch."""

    tasks: tuple[str, ...] = LADDER
    """Tasks that say what leads to their goal."""
    kinds: tuple[Kind, ...] = ("plain", "blocks", "shuffled")
    """How the proposer builds programs."""
    programs: Annotated[int, Arg(least=1)] = 200
    """Programs of each kind and task."""
    steps: Annotated[int, Arg(least=1)] = 150_000
    """Environment steps of each program, with one training seed."""
    solved: float = 0.5
    """Success rate above which a program counts."""
    population: Literal["bank", "rows"] = "bank"
    """Programs as data, which compiles once for a task, or as code."""
    unsafe_no_sandbox: bool = False
    """Check programs without the sandbox. For systems that have none."""
    out: Path | None = None
    """File for the results, written after every task."""


def shuffled(subgoals: Subgoals, card: TaskCard, rng: np.random.Generator) -> Subgoals:
    """Subgoals that name other fragments in place of theirs."""
    fragments = subgoals.joined(card.vocabulary).fragments
    other = dict[str, str]()
    for roles, kind in ((FEATURES, "feature"), (TERMS, "term")):
        named = {n for subgoal in subgoals.chain for role in roles for n in getattr(subgoal, role)}
        pool = [f.name for f in fragments if f.kind == kind and f.name not in named and f.name != subgoals.reward]
        drawn = rng.permutation(len(pool))
        other |= {name: pool[int(drawn[k % len(pool)])] for k, name in enumerate(sorted(named))}

    def renamed(subgoal: Subgoal) -> Subgoal:
        roles = {role: tuple(other.get(name, name) for name in getattr(subgoal, role)) for role in (*FEATURES, *TERMS)}
        return subgoal.model_copy(update=roles)

    return subgoals.model_copy(update={"chain": tuple(map(renamed, subgoals.chain))})


def sources_of(card: TaskCard, kind: Kind, count: int) -> list[str]:
    """Programs from scratch, all of them different."""
    from jaxreward.proposers.genetic.genetic_proposer import GeneticProposer
    from jaxreward.records import Request

    if kind == "shuffled":
        mixed = shuffled(card.subgoals, card, np.random.default_rng(0))
        card = card.model_copy(update={"subgoals": mixed})
    proposer, found = GeneticProposer(card, blocks=kind != "plain"), dict[str, None]()
    for seed in range(20 * count):
        request = Request(id=f"r{seed}", generation=0, operator="scratch", evolve="both")
        found[proposer.propose(request, np.random.default_rng(seed)).source] = None
        if len(found) == count:
            break
    return list(found)


def task_row(name: str, s: RandomProgramsSettings) -> dict[str, Any]:
    """Success of all programs by kind."""
    from jaxreward.programs import Checker
    from jaxreward.tasks import card, make_task
    from jaxreward.training import Execution, quick, train

    task = make_task(name)
    sources = {kind: sources_of(card(task), kind, s.programs) for kind in s.kinds}
    flat = [source for of in sources.values() for source in of]
    with Checker(unsafe_no_sandbox=s.unsafe_no_sandbox) as checker:
        checked = [program for _, program in checker.check_many(flat, task)]
    sound = [program for program in checked if program is not None]
    result = train(
        task, sound, quick(task), seeds=1, steps=s.steps, checkpoints=1, execution=Execution(population=s.population)
    )
    reached = iter(result.success[:, 0].tolist())
    values = [None if program is None else next(reached) for program in checked]
    row: dict[str, Any] = {
        "task": name,
        "commit": commit() or "unknown",
        "compile_s": round(result.compile_s, 1),
        "run_s": round(result.run_s, 1),
    }
    begin = 0
    for kind, of in sources.items():
        own = values[begin : begin + len(of)]
        begin += len(of)
        row[kind] = {"success": own, "solved": _share(own, s.solved)}
    return row


def _share(values: Sequence[float | None], above: float) -> float:
    return sum(v is not None and v > above for v in values) / len(values)


def run(s: RandomProgramsSettings) -> dict[str, Any]:
    """All tasks; the file is written after each."""
    from benchmarks.machine import machine

    check_bounds(s)
    how = {"programs": s.programs, "steps": s.steps, "solved_above": s.solved, "kinds": list(s.kinds)}
    report = begun(s.out, how) or {"benchmark": "random_programs", **machine(), **how, "rows": []}
    known = {row["task"] for row in report["rows"]}
    for name in (name for name in s.tasks if name not in known):
        row = task_row(name, s)
        report["rows"].append(row)
        save(report, s.out)
        print(f"{name}: " + ", ".join(f"{kind} {row[kind]['solved']:.3f}" for kind in s.kinds), flush=True)
    for kind in s.kinds:
        shares = [row[kind]["solved"] for row in report["rows"]]
        print(f"{kind}: {np.mean(shares):.3f} of the programs, on {sum(x > 0 for x in shares)} of {len(shares)} tasks")
    return report


def main(argv: list[str] | None = None) -> int:
    return status_of("random_programs", lambda: run(parse(RandomProgramsSettings, None, argv, "random_programs.py")))


if __name__ == "__main__":
    sys.exit(main())
