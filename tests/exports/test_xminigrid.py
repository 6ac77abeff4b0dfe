"""Modules for XLand-MiniGrid against the tasks themselves."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from xminigrid.wrappers import GymAutoResetWrapper

from jaxreward.exports import export
from tests.compilation import jit
from tests.exports.modules import INTERFACES, exported, imported, same, unchecked, unplayed

pytestmark = pytest.mark.usefixtures("unoptimised")


CASES = [("xland-medium", "sparse"), pytest.param("xland-hard", "expert", marks=pytest.mark.slow)]


@pytest.mark.slow
@pytest.mark.parametrize(("name", "file"), CASES)
def test_the_exported_environment_steps_as_the_task(name, file, checker, task_of, tmp_path):
    """Observation, reward, its terms, and the ends of episodes."""
    horizon, lanes = 40, 64
    task = task_of(name, (f"horizon={horizon}",))
    source = (INTERFACES / name.replace("-", "_") / f"{file}.py").read_text()
    program = checker.load(source, unplayed(task))
    module = imported(exported(source, task, "xminigrid", checker, name).text, tmp_path)
    env, params = module.make()
    assert env.observation_shape(params) == (program.observation_size,) and env.num_actions(params) == 6

    def play(key):
        actions = jax.random.choice(key, np.array([0, 0, 0, 1, 3, 4, 5]), (horizon,))
        first, start = env.reset(params, key), task.reset(key)

        def step(carry, action):
            timestep, state = carry
            following, after = env.step(params, timestep, action), task.step(state, action)
            named = env.terms(timestep, action, following)
            ours = following.observation, following.reward, jnp.stack([named[name] for name in module.TERMS])
            views = task.view(state), action, task.view(after)
            theirs = program.observe(views[2]), *program.reward(*views)
            over = task.terminated(after) | (after.step_num >= horizon)
            ends = following.last(), following.discount
            true_ends = over, jnp.where(task.terminated(after), 0.0, 1.0)
            return (following, after), ((*ours, *ends), (*theirs, *true_ends))

        ours, theirs = jax.lax.scan(step, (first, start), actions)[1]
        return (first.observation, *ours), (program.observe(task.view(start)), *theirs)

    ours, theirs = jit(jax.vmap(play))(jax.random.split(jax.random.key(0), lanes))
    same(ours, theirs)
    over, discount = ours[-2:]
    assert over.all(1).sum() == 0 and over[:, -1].all() and (discount == 0).any() == (name == "xland-medium")


def test_wrappers_of_xminigrid_go_around_it(task_of, tmp_path):
    """What they reset is a time step like any other."""
    source = (INTERFACES / "xland_medium" / "sparse.py").read_text()
    text = export(source, task_of("xland-medium"), "xland-medium", "xminigrid", lambda _: unchecked(source, 98)).text
    env, params = imported(text, tmp_path).make(max_steps=5)
    assert params.max_steps == 5
    env = GymAutoResetWrapper(env)
    first = jax.eval_shape(env.reset, params, jax.random.key(0))
    later = jax.eval_shape(env.step, params, first, jnp.int32(0))
    assert jax.tree.map(lambda x: (x.shape, x.dtype), later) == jax.tree.map(lambda x: (x.shape, x.dtype), first)
