"""Run by test_devices.py in a process of its own, in which JAX has three CPU devices."""

from __future__ import annotations

import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import jax
import numpy as np

from jaxreward.devices import supported
from jaxreward.programs import Checker
from jaxreward.tasks import make_task
from jaxreward.training import (
    PPO,
    Checkpointing,
    Execution,
    Interrupted,
    Progress,
    Rung,
    compiled,
    population_training,
    train,
)
from jaxreward.training.ahead import compile_ahead
from jaxreward.training.chunk import Chunk
from jaxreward.training.compiled import STRUCTURES
from jaxreward.training.local import LocalExecutor
from tests.compilation import UNOPTIMISED
from tests.training.conftest import FAST, STEPWISE

TEXT = """
import jax.numpy as jnp

def get_observation(state):
    return jnp.stack([state.place / 3.0, {feature}]).astype(jnp.float32)

def compute_reward(state, action, next_state):
    return {reward}
"""
REWARDS = (
    "1.0 * next_state.hit",
    "0.5 * (next_state.place - state.place)",
    "2.0 * next_state.place - 0.1",
    "-0.3 * action",
)
TASK = make_task("probe-corridor", length=3)
SMALL = PPO(envs=8, unroll=8, minibatches=2, hidden=(8,))
OPTIONS: dict[str, Any] = {"seeds": 2, "steps": 6 * SMALL.batch, "checkpoints": 2, "eval_episodes": 8}
THREE = jax.local_devices()
RUNG = Rung(2 * SMALL.batch, keep=0.5)


class Store:
    def __init__(self) -> None:
        self.trees = dict[str, Any]()

    def save(self, tag: str, tree: Any) -> None:
        self.trees[tag] = jax.device_get(tree)

    def restore(self, tag: str, like: Any) -> Any:
        return self.trees.get(tag)


def same(one: Any, other: Any, candidates: Any = range(5)) -> None:
    for c in candidates:
        for a, b in zip(jax.tree.leaves(one.agents[c]), jax.tree.leaves(other.agents[c]), strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-3, atol=2e-5)


def results_do_not_depend_on_devices(programs: Any, execution: Execution) -> Any:
    alone = train(TASK, programs, SMALL, execution=replace(execution, devices=THREE[:1]), **OPTIONS)
    busy = []

    def listen(progress: Progress) -> None:
        assert not busy, "the listener is called by one thread at a time"
        busy.append(1)
        time.sleep(0.001)
        busy.clear()

    spread = train(TASK, programs, SMALL, progress=listen, execution=replace(execution, devices=THREE), **OPTIONS)
    assert (alone.chunks, spread.chunks) == ((5,), (2, 2, 1)), (alone.chunks, spread.chunks)
    same(alone, spread)
    assert spread.env_steps == alone.env_steps
    return alone


def trainings_share_the_devices(programs: Any, execution: Execution, alone: Any) -> None:
    with LocalExecutor(THREE) as shared, ThreadPoolExecutor(3) as threads:

        def on(slot: int) -> Any:
            return train(TASK, programs, SMALL, execution=replace(execution, executor=shared, slot=slot), **OPTIONS)

        for found in threads.map(on, range(3)):
            assert found.chunks == (5,), found.chunks
            same(alone, found)
        chunks = {place: chunk for (place, _), (_, chunk) in shared._chunks.items()}
        assert {place: chunk.device for place, chunk in chunks.items()} == dict(enumerate(THREE))
    own = train(TASK, programs, SMALL, execution=replace(execution, devices=THREE, slot=1), **OPTIONS)
    assert own.chunks == (5,)
    same(alone, own)


def survivors_are_dealt_out_anew(programs: Any, execution: Execution, alone: Any) -> None:
    population_training.worth_compacting = lambda *_: True
    cut = train(TASK, programs, SMALL, rungs=[RUNG], execution=replace(execution, devices=THREE), **OPTIONS)
    assert cut.chunks == (1, 1, 1), cut.chunks
    same(alone, cut, np.flatnonzero(cut.stopped == 0))
    population_training.worth_compacting = lambda *_: False
    carried = train(TASK, programs, SMALL, rungs=[RUNG], execution=replace(execution, devices=THREE), **OPTIONS)
    assert set(carried.chunks) <= {1, 2}
    same(alone, carried, np.flatnonzero(carried.stopped == 0))


def what_was_stopped_goes_on(programs: Any, alone: Any, execution: Execution) -> None:
    store, asked, execution = Store(), [0], replace(execution, devices=THREE)

    def stop() -> bool:
        asked[0] += 1
        return asked[0] > 7

    try:
        train(
            TASK,
            programs,
            SMALL,
            should_stop=stop,
            checkpointing=Checkpointing(store),
            execution=execution,
            **OPTIONS,
        )
        raise AssertionError("it should have been stopped")
    except Interrupted:
        assert store.trees
    same(
        alone,
        train(TASK, programs, SMALL, checkpointing=Checkpointing(store), execution=execution, **OPTIONS),
    )


def a_failure_on_one_device_stops_the_others(programs: Any, execution: Execution) -> None:
    update, taken = Chunk.update, [0]

    def failing(self: Chunk, state: Any, stats: Any, index: int, progress: float) -> Any:
        if self.device == THREE[1] and index == 3:
            raise OSError("no space left")
        taken[0] += 1
        return update(self, state, stats, index, progress)

    Chunk.update = failing  # type: ignore[method-assign]
    try:
        train(
            TASK, programs, SMALL, execution=replace(execution, devices=THREE),
            **{**OPTIONS, "steps": 20_000 * SMALL.batch},
        )  # fmt: skip
        raise AssertionError("it should have failed")
    except OSError as error:
        assert "no space" in str(error)
    assert taken[0] < 10_000, taken


def what_was_compiled_ahead_is_found(programs: Any) -> None:
    for place, program in enumerate(programs):
        compile_ahead(
            TASK, program, SMALL, seeds=range(2), steps=OPTIONS["steps"], execution=STEPWISE, place=place,
            of=len(programs),
        )  # fmt: skip
    ahead = set(STRUCTURES)
    assert len(ahead) == len(programs)
    train(TASK, programs, SMALL, execution=replace(STEPWISE, devices=THREE), **OPTIONS)
    assert set(STRUCTURES) == ahead


if __name__ == "__main__":
    assert len(THREE) == 3
    compiled.xla_options = lambda platform, *_: supported(UNOPTIMISED, platform)
    features = ("state.t / 9.0", "state.signal")
    sources = [TEXT.format(reward=REWARDS[k % 4], feature=features[k // 4]) for k in range(5)]
    with Checker() as checker:
        found = [program for _, program in checker.check_many(sources, TASK)]
    execution = {"stepwise": STEPWISE, "fused": FAST}[sys.argv[1]]
    if execution is STEPWISE:
        what_was_compiled_ahead_is_found(found)
    whole = results_do_not_depend_on_devices(found, execution)
    trainings_share_the_devices(found, execution, whole)
    survivors_are_dealt_out_anew(found, execution, whole)
    what_was_stopped_goes_on(found, whole, execution)
    a_failure_on_one_device_stops_the_others(found, execution)
    print("all held")
