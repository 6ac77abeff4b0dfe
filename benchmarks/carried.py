"""Programs that were checked elsewhere, in a file: a machine that measures need not check them again.

Nothing of a file is executed but tapes, whose operations `programs.interpret` knows.
"""

from __future__ import annotations

import dataclasses
import gzip
import json
from pathlib import Path
from typing import Any

from benchmarks.mixture import mixed_programs
from jaxreward.errors import UserError, why_unreadable
from jaxreward.programs import Program, Spec
from jaxreward.programs.constants import FloatLiteral
from jaxreward.programs.program import Skeleton
from jaxreward.records import ProgramSummary
from jaxreward.tasks import Task, make_task


def write_programs(path: Path, programs: list[Program]) -> None:
    """Programs of one task as a file of compressed JSON."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with gzip.open(path, "wt", encoding="utf-8") as file:
        json.dump([_as_json(program) for program in programs], file)


def read_programs(path: Path, task: Task) -> list[Program]:
    """The programs of a file of `write_programs`.

    Raises:
        UserError: a file that cannot be read, or programs of another task.
    """
    try:
        with gzip.open(path, "rt", encoding="utf-8") as file:
            entries = json.load(file)
        return [_from_json(entry, Spec.of(task)) for entry in entries]
    except (OSError, EOFError, ValueError, KeyError, TypeError) as error:
        raise UserError(f"{path} cannot be read as programs: {why_unreadable(error)}") from error


def programs_of(name: str, n: int, folder: Path) -> list[Program]:
    """The first `n` programs of `mixed_programs` for a task, from `folder` where a file there has as many; else they
    are checked and written there."""
    task, path = make_task(name), folder / f"{name.replace('/', '-')}.json.gz"
    known = read_programs(path, task) if path.exists() else []
    if len(known) < n:
        known = mixed_programs(task, n)
        write_programs(path, known)
    return known[:n]


def _as_json(program: Program) -> dict[str, Any]:
    skeleton = program.skeleton and {
        "tape": program.skeleton.tape, "constants": [dataclasses.astuple(c) for c in program.skeleton.constants],
    }  # fmt: skip
    return {
        "source": program.source, "name": program.name, "summary": program.summary.model_dump(mode="json"),
        "observation": program.observation_tape, "reward": program.reward_tape, "skeleton": skeleton,
        "leaves": [str(leaf) for leaf in program.spec.leaves],
    }  # fmt: skip


def _from_json(entry: dict[str, Any], spec: Spec) -> Program:
    if entry["leaves"] != [str(leaf) for leaf in spec.leaves]:
        raise ValueError("they read the state of another task")
    found = entry["skeleton"]
    skeleton = found and Skeleton(found["tape"], tuple(FloatLiteral(*c) for c in found["constants"]))
    return Program(
        entry["source"], entry["name"], spec, ProgramSummary(**entry["summary"]), entry["observation"],
        entry["reward"], skeleton,
    )  # fmt: skip
