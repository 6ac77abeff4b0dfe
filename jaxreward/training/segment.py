"""One job: its updates, points of the curves, saving."""

from __future__ import annotations

import time
from typing import Any

import jax
import numpy as np

from jaxreward.tasks import measure_of, metric_names
from jaxreward.timing import CLOCK
from jaxreward.training.chunk import Chunk, TrainerState
from jaxreward.training.executor import Interrupted, Job, Supervisor
from jaxreward.training.history import History


def advance(chunk: Chunk, job: Job, supervisor: Supervisor) -> tuple[TrainerState, History]:
    """Take the job's updates; `job.state` is used up. The end is saved as well: more may follow, here or for the
    caller."""
    name, saving, schedule, worst = job.name, supervisor.checkpointing, job.schedule, measure_of(job.task).worst
    state = chunk.start(job.start) if job.state is None else jax.device_put(job.state, chunk.device)
    history = jax.tree.map(np.copy, job.history) if job.history else _empty(job)
    stats, at = chunk.fresh_stats(), job.first
    if saving is not None:
        found = saving.store.restore(name, {"state": state, "stats": stats, "history": history, "update": at})
        if found is not None:
            history, at = found["history"], found["update"]
            state, stats = jax.device_put((found["state"], found["stats"]), chunk.device)
    supervisor.reached(job, at, history)

    def save() -> None:
        if saving is not None:
            jax.block_until_ready(state)
            with CLOCK.part("keep"):
                saving.store.save(name, {"state": state, "stats": stats, "history": history, "update": at})

    saved = time.perf_counter()
    while at < job.last:
        if supervisor.should_stop():
            save()
            raise Interrupted(f"stopped after {at} of {schedule.updates} updates")
        learned: Any
        state, stats, learned = chunk.update(state, stats, at, at / schedule.updates)
        at += 1
        if at in schedule.checkpoints:
            jax.block_until_ready(state)  # so that the clock tells learning from what follows
            with CLOCK.part("evaluate"):
                held_out = chunk.evaluate(state, job.evaluation.rounds if at == job.last else 1)
                history.record(schedule.checkpoints.index(at), held_out, stats, learned, state.agents.diverged, worst)
            stats = chunk.fresh_stats()
            supervisor.reached(job, at, history)
        if saving is not None and time.perf_counter() - saved > saving.every_s and at < job.last:
            save()
            saved = time.perf_counter()
    save()
    return jax.block_until_ready(state), history


def _empty(job: Job) -> History:
    shape = (len(job.schedule.checkpoints), len(job.programs), len(job.seeds))
    return History.empty(*shape, job.width, job.terms, len(metric_names(job.task)))
