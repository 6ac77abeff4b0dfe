"""Modules for XLand-MiniGrid against the tasks themselves."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from xminigrid.wrappers import GymAutoResetWrapper

from jaxreward.programs import Spec
from tests.exports.modules import INTERFACES, exported, imported, same

pytestmark = pytest.mark.usefixtures("hasty")


@pytest.mark.parametrize(("name", "file"), [("xland-medium", "expert"), ("xland-hard", "sparse")])
def test_its_time_steps_are_those_of_the_task(name, file, checker, task_of, tmp_path):
    """With xminigrid's own resets around it, in one scan: observation, reward and the ends of episodes."""
    horizon, lanes, steps = 30, 32, 75
    task = task_of(name, (f"horizon={horizon}",))
    source = (INTERFACES / name.replace("-", "_") / f"{file}.py").read_text()
    program = checker.load(source, Spec.of(task))
    module = imported(exported(source, task, "xminigrid", checker, name).text, tmp_path)
    env, params = module.make()
    assert env.observation_shape(params) == (program.observation_size,) and env.num_actions(params) == 6
    resetting = GymAutoResetWrapper(env)

    def play(key):
        actions = jax.random.choice(key, np.array([0, 0, 0, 1, 3, 4, 5]), (steps,))
        first = resetting.reset(params, key)

        def step(carry, action):
            timestep, state = carry
            following = resetting.step(params, timestep, action)
            after = task.step(state, action)
            views = task.view(state), action, task.view(after)
            paid, terms = program.reward(*views)
            over = task.terminated(after) | (after.step_num >= horizon)
            named = env.terms(timestep, action, env.step(params, timestep, action))
            ours = following.reward, following.last(), jnp.stack([named[t] for t in module.TERMS]), following.discount
            theirs = paid, over, terms, jnp.where(task.terminated(after), 0.0, 1.0)
            fresh = following.state  # after the end of an episode the task goes on where xminigrid does
            view = module.view_of(fresh)
            begun = after.replace(
                grid=fresh.grid, agent=task.reset(key).agent.replace(**vars(view.agent)), step_num=view.step_num,
                solved=jnp.zeros((), bool),
            )  # fmt: skip
            state = jax.tree.map(lambda new, old: jnp.where(over, new, old), begun, after)
            seen = following.observation, program.observe(task.view(state))
            return (following, state), ((ours, seen[0]), (theirs, seen[1]))

        ours, theirs = jax.lax.scan(step, (first, task.reset(key)), actions)[1]
        return (first.observation, *ours), (program.observe(task.view(task.reset(key))), *theirs)

    ours, theirs = jax.jit(jax.vmap(play))(jax.random.split(jax.random.key(0), lanes))
    same(ours, theirs)
    (_, over, _, discount), _ = ours[1:]
    assert over.sum() >= 2 * lanes and (discount == 0).any() == (name == "xland-medium")
