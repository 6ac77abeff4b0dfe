"""What compiling costs a search: generation after generation by each collector, and many weights of few structures; and
whether collectors agree."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import jax
import numpy as np

from benchmarks.measure import forget, used
from jaxreward.errors import InvalidSetting, UserError
from jaxreward.programs import Program
from jaxreward.tasks import Task
from jaxreward.training import PPO, Execution, TrainResult, train
from jaxreward.training.compiled import POPULATIONS
from jaxreward.training.execution import steppable


def collectors(ppo: PPO, platform: str = "", chunk: int | None = None) -> dict[str, Execution]:
    """The collectors that differ for this learner on a platform, JAX's own unless given, by name."""
    found = {"fused": Execution(chunk=chunk, collector="fused", compile="full")}
    if (platform or jax.default_backend()) == "cpu":
        found["fused, fast"] = Execution(chunk=chunk, collector="fused", compile="fast")
    return found | {"stepwise": Execution(chunk=chunk, collector="stepwise")} if steppable(ppo) else found


def generations(
    task: Task, programs: Sequence[Program], size: int, execution: Execution, **options: Any
) -> list[dict[str, Any]]:
    """Train `programs` in generations of `size` from a cold start, as a search does: what one compiled the next may
    use, and there is room for the largest program so far. The last row has the programs of the one before it with
    other constants, so that nothing of them is new."""
    forget()
    batches = [list(programs[k : k + size]) for k in range(0, len(programs), size)]
    batches.append([reweighted(program, 1) for program in batches[-1]])
    rows, room = list[dict[str, Any]](), (0, 0)
    with POPULATIONS.room_for(4):
        for number, batch in enumerate(batches):
            room = (
                max(room[0], *(p.observation_size for p in batch)), max(room[1], *(len(p.terms) for p in batch))
            )  # fmt: skip
            done = train(task, batch, execution=replace(execution, room=room), **options)
            reused = number == len(batches) - 1
            rows.append({"generation": number, "same_structures": reused, **_row(done)})
    return rows


def tuning(
    task: Task, programs: Sequence[Program], settings: int, chunk: int | None = None, **options: Any
) -> dict[str, Any]:
    """Compile and train structures once, and then so many weight settings of each, both from a cold start.

    Raises:
        UserError: none of the programs has a number in its reward.
    """
    weighted = [program for program in programs if len(program.constants)]
    if not weighted:
        raise UserError("none of these programs has a number in its reward: there is nothing to tune")
    many = [reweighted(program, k) for program in weighted for k in range(settings)]
    budget = options["ppo"], options["seeds"], options["steps"]
    collector, compilation = Execution().resolve(task, *budget, jax.default_backend(), settings)  # of the many
    compilation = "auto" if collector == "stepwise" else compilation
    options |= {"execution": Execution(chunk=chunk, collector=collector, compile=compilation)}
    alone, tuned = _cold(task, weighted, **options), _cold(task, many, **options)
    return {
        "structures": len(weighted), "settings": settings, "alone": alone, "tuned": tuned,
        "compile_ratio": tuned["compile_s"] / alone["compile_s"],
    }  # fmt: skip


def agreement(task: Task, programs: Sequence[Program], chunk: int | None = None, **options: Any) -> dict[str, Any]:
    """By how much the agents of every other collector differ from those of the fused one after the same training: in
    any of their parameters, and in success. Not a number where one of them is not.

    Raises:
        InvalidSetting: here this learner has one collector only.
    """
    known = collectors(options["ppo"], chunk=chunk)
    if len(known) < 2:
        raise InvalidSetting("here this learner has one collector, fused: leave --agree away", "agree")
    fused, *others = (train(task, programs, execution=execution, **options) for execution in known.values())
    found: dict[str, Any] = {
        "programs": len(programs), "steps": int(fused.steps[-1]), "seeds": len(fused.seeds), "collectors": {}
    }  # fmt: skip
    for name, other in zip(list(known)[1:], others, strict=True):
        pairs = zip(map(jax.tree.leaves, fused.agents), map(jax.tree.leaves, other.agents), strict=True)
        apart = [np.max(np.abs(a - b)) for one, two in pairs for a, b in zip(one, two, strict=True)]
        found["collectors"][name] = {
            "max_parameter_difference": float(np.max(apart)),
            "max_success_difference": float(np.max(np.abs(fused.success - other.success))),
        }  # fmt: skip
    return found


def _cold(task: Task, programs: Sequence[Program], **options: Any) -> dict[str, Any]:
    """A training from a cold start, and what it takes to compile for it: in one of a single update before, since a
    compiler whose cores train meanwhile takes longer."""
    forget()
    once: dict[str, Any] = options | {"steps": 1, "checkpoints": 1, "eval_episodes": 1}
    compiled = train(task, programs, **once)
    forget()
    return _row(train(task, programs, **options)) | {"compile_s": compiled.compile_s}


def reweighted(program: Program, k: int) -> Program:
    """The program with other constants, a little larger for every `k`; itself for 0, and if it has none."""
    if not k or not len(program.constants):
        return program
    return program.with_constants([float(c) for c in np.asarray(program.constants) * 1.01**k])


def _row(done: TrainResult) -> dict[str, Any]:
    devices = used(done)
    return {
        "candidates": len(done.programs), "collector": done.collection, "chunks": list(done.chunks), "devices": devices,
        "compile_s": done.compile_s, "run_s": done.run_s, "wall_s": done.wall_s,
        "compile_share": done.compile_s / (devices * done.wall_s), "steps_per_s": done.env_steps / done.wall_s,
    }  # fmt: skip
