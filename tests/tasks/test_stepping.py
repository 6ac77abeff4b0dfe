"""Steps of many environments, whole and in slices."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxreward import PPO, tasks, train
from jaxreward.programs import Program
from jaxreward.tasks import (
    SlicedTask,
    batched_step,
    has_real_actions,
    make_task,
    measure_of,
    metrics,
    simulation,
    slice_limit,
    task_names,
)
from jaxreward.tasks.probe import Probe
from jaxreward.tasks.stepping import slice_size
from jaxreward.training.networks import ActorCritic, init_padded
from jaxreward.training.population import Population
from jaxreward.training.rollout import action_noise, collect, reset_pool, start_rollout
from jaxreward.training.rollout_statistics import Stats

PHYSICS = [name for name in task_names() if has_real_actions(name) and not name.startswith("probe")]


@dataclass(frozen=True)
class Few(Probe):
    """The probe, stepped four environments at a time on CPU."""

    kind: str = "aim"

    def max_envs_per_step(self, platform: str) -> int:
        return 4 if platform == "cpu" else 0


def test_slices_divide_the_lanes():
    assert [slice_size(n, 128) for n in (2048, 128, 100, 1600, 254, 192)] == [128, 128, 100, 100, 127, 96]
    assert [slice_size(n, 128) for n in (64 * 131, 1, 131, 2 * 131, 63 * 131)] == [64, 1, 131, 262, 63 * 131]
    assert [slice_size(n, most) for n, most in ((1, 0), (2048, 0), (6, 1), (6, 2), (9, 3))] == [
        1,
        2048,
        1,
        2,
        3,
    ]


@pytest.mark.parametrize(("platform", "loops"), [("cpu", 1), ("gpu", 0)])
def test_a_step_in_slices_is_the_step(platform, loops):
    task = Few()
    states = jax.vmap(task.reset)(jax.random.split(jax.random.key(0), 12))
    actions = jnp.linspace(-1.0, 1.0, 12)[:, None]
    whole, cut = jax.vmap(task.step)(states, actions), batched_step(task, platform)
    jax.tree.map(partial(np.testing.assert_allclose, rtol=1e-6), cut(states, actions), whole)
    names = [e.primitive.name for e in jax.make_jaxpr(cut)(states, actions).eqns]
    assert names.count("scan") == loops


@pytest.mark.long
@pytest.mark.parametrize(("platform", "together"), [("cpu", 4), ("gpu", 16)])
def test_the_trainer_steps_in_slices(platform, together):
    """16 environments step four at a time where the task asks for it."""
    task, keys = Few(), jax.random.split(jax.random.key(0), 2)
    population = Population([Program.default(task)] * 2)
    network = ActorCritic.of(task, PPO(hidden=(4,)))
    params = init_padded(network, 0, population.widths[0], population.width)
    variables = {"params": jax.tree.map(lambda x: jnp.broadcast_to(x, (2, 2, *x.shape)), params)}
    pool, stats = reset_pool(task, keys, 4), Stats.zeros(2, 2, population.width, population.terms)
    lanes, noise = start_rollout(task, pool, 2), action_noise(network.distribution, 4, 7, keys)
    play = partial(collect, task, population, network, 6, 1, platform)
    loops = list(scans(jax.make_jaxpr(play)(population.constants, variables, lanes, pool, noise, stats).jaxpr))
    assert (4 in loops) == (together == 4), "the slices are a loop of 4 in the loop over steps"


def scans(jaxpr: Any) -> Iterator[int]:
    """The lengths of all loops, those within loops too."""
    for equation in jaxpr.eqns:
        if equation.primitive.name == "scan":
            yield equation.params["length"]
        for inner in equation.params.values():
            if hasattr(inner, "jaxpr"):
                yield from scans(inner.jaxpr)


@pytest.mark.slow
@pytest.mark.usefixtures("unoptimised")
def test_training_in_slices_is_training():
    ppo = PPO(envs=8, unroll=4, minibatches=2, epochs=1, hidden=(8,))
    found = [train(t, [Program.default(t)] * 2, ppo, seeds=2, steps=64, checkpoints=2) for t in (Probe("aim"), Few())]
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-5), found[0].agents, found[1].agents)
    np.testing.assert_allclose(found[0].success, found[1].success, atol=1e-5)


@pytest.mark.parametrize("name", PHYSICS)
def test_simulations_of_bodies_step_in_slices_on_cpu_alone(name, monkeypatch):
    task = make_task(name)
    assert isinstance(task, SlicedTask) and task.max_envs_per_step("gpu") == 0
    for cores in (1, 2, 16):
        monkeypatch.setattr(simulation, "cores_of_a_device", lambda n=cores: n)
        assert task.max_envs_per_step("cpu") == 64 * cores
    assert slice_limit(make_task("xland-easy"), "cpu") == 0


@pytest.mark.slow
@pytest.mark.parametrize("name", PHYSICS)
def test_a_task_can_be_traced_before_anything_else_is_asked_of_it(name):
    task = make_task(name)
    jax.eval_shape(lambda: task.score().init())
    jax.eval_shape(task.reset, jax.random.key(0))
    assert np.isfinite(measure_of(task).worst)


def test_names_of_earlier_versions_still_work():
    class Old(Probe):
        def lanes_at_once(self, platform: str) -> int:
            return 7

    assert slice_limit(Old("aim"), "cpu") == 7
    for old, new in tasks._OLD_NAMES.items():
        assert getattr(tasks, old) is getattr(tasks, new)
    assert metrics.Beside is metrics.WithExtraMetrics
