"""Modules for MuJoCo Playground against the tasks themselves, where Playground is installed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests.compilation import jit
from tests.exports.modules import INTERFACES, exported, imported, same, unplayed

pytestmark = pytest.mark.usefixtures("unoptimised")
playground: Any = pytest.importorskip("mujoco_playground")


def test_the_exported_environment_steps_as_the_task(checker, task_of, tmp_path):
    """On Playground's wrappers for training, which reset what has ended."""
    horizon, lanes, steps = 12, 4, 30
    name = "quadcopter-hover"
    task: Any = task_of(name, (f"horizon={horizon}",))
    source = (INTERFACES / "quadcopter_hover" / "expert.py").read_text()
    program = checker.load(source, unplayed(task))
    module = imported(exported(source, task, "playground", checker, name).text, tmp_path)
    env = module.Env()
    assert isinstance(env, playground.MjxEnv) and (env.dt, env.n_substeps, env.action_size) == (
        task.control_s,
        task.substeps,
        4,
    )
    assert env.observation_size == program.observation_size and env.mj_model.nu == env.mjx_model.nu == 4
    assert task.xml == Path(env.xml_path).read_text(encoding="utf-8")
    wrapped = playground.wrapper.wrap_for_brax_training(env, episode_length=module.HORIZON)
    reset, step, true_step = jit(wrapped.reset), jit(wrapped.step), jit(jax.vmap(task.step))

    @jit
    @jax.vmap
    def judged(state: Any, action: jax.Array, after: Any) -> Any:
        return program.observe(task.view(after)), *program.reward(task.view(state), action, task.view(after))

    keys = jax.random.split(jax.random.PRNGKey(0), lanes)
    state = reset(keys)
    true = first = state.data.moment.state
    ends = 0
    for number in range(steps):
        action = jax.random.uniform(jax.random.key(number), (lanes, 4), minval=-1.0)
        state, after = step(state, action), true_step(true, action)
        _, paid, terms = judged(true, action, after)
        over = jax.vmap(task.terminated)(after) | (after.info["step_count"] >= horizon)
        true = jax.tree.map(lambda a, b, o=over: jnp.where(o.reshape(lanes, *[1] * (b.ndim - 1)), a, b), first, after)
        seen, _, _ = judged(true, action, true)
        term_values = np.stack([state.metrics[f"reward/{name}"] for name in module.TERMS], 1)
        same(
            (state.obs, state.reward, term_values, state.done > 0.5, state.data.qpos),
            (seen, paid, terms, over, true.data.qpos),
            1e-3,
        )
        ends += int(over.sum())
    assert ends >= 2 * lanes
    with pytest.raises(NotImplementedError, match="cannot be randomised"):
        env._mjx_model = None
