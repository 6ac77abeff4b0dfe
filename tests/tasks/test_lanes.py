"""Steps of many environments, whole and in slices."""

from __future__ import annotations

from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxreward import PPO, train
from jaxreward.programs import Program
from jaxreward.tasks import InSlices, make_task, measure_of, stepper, task_names
from jaxreward.tasks.lanes import slice_of
from jaxreward.tasks.probe import Probe

PHYSICS = [name for name in task_names() if not name.startswith(("xland", "probe"))]


@dataclass(frozen=True)
class Few(Probe):
    """The probe, stepped four environments at a time on CPU."""

    kind: str = "aim"

    def lanes_at_once(self, platform: str) -> int:
        return 4 if platform == "cpu" else 0


def test_slices_divide_the_lanes():
    assert [slice_of(lanes, 128) for lanes in (2048, 128, 100, 1600, 254, 192)] == [128, 128, 100, 100, 127, 96]
    assert [slice_of(lanes, 128) for lanes in (1, 131, 2 * 131)] == [1, 131, 262], "no slice would fit"
    assert [slice_of(lanes, 0) for lanes in (1, 2048)] == [1, 2048]


@pytest.mark.parametrize(("platform", "loops"), [("cpu", 1), ("gpu", 0)])
def test_a_step_in_slices_is_the_step(platform, loops):
    task = Few()
    states = jax.vmap(task.reset)(jax.random.split(jax.random.key(0), 12))
    actions = jnp.linspace(-1.0, 1.0, 12)[:, None]
    whole, cut = jax.vmap(task.step)(states, actions), stepper(task, platform)
    jax.tree.map(np.testing.assert_array_equal, *map(jax.device_get, (cut(states, actions), whole)))
    names = [e.primitive.name for e in jax.make_jaxpr(cut)(states, actions).eqns]
    assert names.count("scan") == loops


def test_training_in_slices_is_training():
    ppo = PPO(envs=8, unroll=4, minibatches=2, epochs=1, hidden=(8,))
    found = [train(t, [Program.default(t)] * 2, ppo, seeds=2, steps=64, checkpoints=2) for t in (Probe("aim"), Few())]
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-5), found[0].agents, found[1].agents)
    np.testing.assert_allclose(found[0].success, found[1].success, atol=1e-5)


@pytest.mark.parametrize("name", PHYSICS)
def test_simulations_of_bodies_step_in_slices_on_cpu_alone(name):
    task = make_task(name)
    assert isinstance(task, InSlices)
    assert task.lanes_at_once("cpu") == 128 and task.lanes_at_once("gpu") == 0


@pytest.mark.parametrize("name", PHYSICS)
def test_a_task_can_be_traced_before_anything_else_is_asked_of_it(name):
    task = make_task(name)
    jax.eval_shape(lambda: task.score().init())
    jax.eval_shape(task.reset, jax.random.key(0))
    assert np.isfinite(measure_of(task).worst)
