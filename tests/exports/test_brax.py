"""Modules for Brax against the tasks themselves, and in Brax's own training."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from brax import base
from brax.envs.base import State

from jaxreward.tasks import make_task
from tests.compilation import jit
from tests.exports.modules import INTERFACES, exported, imported, same, unplayed

pytestmark = [
    pytest.mark.usefixtures("unoptimised"),
    pytest.mark.filterwarnings("ignore:.*Brax:UserWarning"),
]


def parts(name: str, checker: Any, task_of: Any, folder: Any, *arguments: str) -> tuple[Any, Any, Any]:
    """The task, its expert program and the module."""
    task = task_of(name, arguments)
    source = (INTERFACES / name.replace("-", "_") / "expert.py").read_text()
    text = exported(source, task, "brax", checker, name).text
    return task, checker.load(source, unplayed(task)), imported(text, folder)


def moments(task: Any, module: Any, lanes: int = 64) -> tuple[Any, Any]:
    """Random states of the task and the same as the module has them, where Brax could have left them or not."""
    rng = np.random.default_rng(0)

    def some(x: Any) -> Any:
        if x.dtype == bool:
            return jnp.asarray(rng.random((lanes, *x.shape)) < 0.2)
        if np.issubdtype(x.dtype, np.integer):
            return jnp.asarray(rng.integers(0, 2, (lanes, *x.shape)), x.dtype)
        return jnp.asarray(rng.normal(size=(lanes, *x.shape)), x.dtype)

    state = jax.tree.map(some, jax.eval_shape(task.reset, jax.random.key(0)))
    rot = state.pipeline.x.rot / jnp.linalg.norm(state.pipeline.x.rot, axis=-1, keepdims=True)
    state = state.replace(pipeline=state.pipeline.replace(x=state.pipeline.x.replace(rot=rot)))
    fields = {k: v for k, v in vars(state).items() if k != "own"} | state.own
    return state, module.Moment(**fields)


SAID = [
    pytest.param("ant-patrol-return", "checkpoint=2.5"),
    pytest.param("ant-lie-down", "horizon=50", marks=pytest.mark.slow),
    pytest.param("humanoid", "metric=speed", marks=pytest.mark.slow),
    pytest.param("hopper", "metric=speed", marks=pytest.mark.slow),
]


@pytest.mark.long
@pytest.mark.parametrize(("name", "argument"), SAID)
def test_the_exported_module_observes_and_scores_as_the_task(name, argument, checker, task_of, tmp_path):
    """Views, ends and metrics, without a simulation."""
    task, program, module = parts(name, checker, task_of, tmp_path, argument)
    simulation, metric = module.Simulation(), task.score()
    state, moment = moments(task, module)
    after, following = jax.tree.map(lambda x: x[::-1], (state, moment))

    def theirs(state: Any, after: Any) -> Any:
        reported = metric.value(metric.update(metric.init(), state, None, after))
        return program.observe(task.view(state)), task.terminated(state), reported

    def ours(moment: Any, following: Any) -> Any:
        score = simulation.score(moment, None, following)
        return module.get_observation(simulation.view(moment)), simulation.terminated(moment), score

    said, true = jit(lambda: (jax.vmap(ours)(moment, following), jax.vmap(theirs)(state, after)))()
    same(said, true, 1e-4)
    np.testing.assert_array_equal(simulation.env.sys.geom_contype, task.env.sys.geom_contype)  # what touches the floor


class Stub:
    """In place of Brax's hopper what compiles in no time: it moves as it is told, falls, and fails."""

    action_size, backend, _n_frames = 3, "spring", 4

    def __init__(self) -> None:
        self.sys = self
        self.opt, self.geom_contype = SimpleNamespace(timestep=0.002), np.zeros(1)

    def replace(self, **_: Any) -> Stub:
        return self

    def _state(self, q: jax.Array, qd: jax.Array, **reported: Any) -> State:
        pos = jnp.zeros((4, 3)).at[:, 0].set(q[0]).at[:, 2].set(1.0 + q[1])
        x = base.Transform(pos=pos, rot=jnp.tile(jnp.array([1.0, 0.0, 0.0, 0.0]), (4, 1)))
        xd = base.Motion(ang=jnp.zeros((4, 3)), vel=jnp.zeros((4, 3)).at[:, 0].set(qd[0]))
        pipeline = base.State(q=q, qd=qd, x=x, xd=xd, contact=None)
        return State(pipeline, q, reported.get("reward", jnp.zeros(())), reported.get("done", jnp.zeros(())))

    def reset(self, key: jax.Array) -> State:
        return self._state(*(0.01 * jax.random.normal(key, (2, 6))))

    def step(self, state: Any, action: jax.Array) -> State:
        q = state.pipeline_state.q + 0.1 * jnp.concatenate([action, -action])
        q = q.at[4].set(jnp.where(q[2] > 0.4, jnp.nan, q[4]))
        done = (jnp.abs(q[1]) > 0.4).astype(jnp.float32)
        return self._state(q, jnp.tile(action, 2), reward=q[0], done=done)


@pytest.mark.parametrize("stub", [True, pytest.param(False, marks=pytest.mark.slow)])
def test_the_exported_environment_steps_as_the_task(stub, checker, tmp_path, monkeypatch):
    """On Brax's wrappers for training, which reset what has ended: all that belongs to an episode begins anew."""
    from brax.envs.wrappers.training import wrap

    if stub:
        monkeypatch.setattr("brax.envs.get_environment", lambda *_, **__: Stub())
    horizon, lanes, steps = 12, 16, 40
    make = lambda name, arguments: make_task(name, horizon=horizon)  # noqa: E731
    task, program, module = parts("hopper", checker, make, tmp_path)
    env = module.Env()
    assert (env.observation_size, env.action_size, env.backend) == (program.observation_size, 3, "spring")
    wrapped = wrap(env, episode_length=module.HORIZON)
    keys = jax.random.split(jax.random.PRNGKey(0), lanes)  # as Brax has them

    def play(keys: jax.Array) -> Any:
        first = wrapped.reset(keys)
        start = jax.vmap(task.reset)(keys)

        def step(carry: Any, key: jax.Array) -> Any:
            state, true = carry
            action = jax.random.uniform(key, (lanes, 3), minval=-1.3, maxval=1.3)
            following = wrapped.step(state, action)
            action = jnp.clip(action, -1.0, 1.0)
            after = jax.vmap(task.step)(true, action)
            paid, terms = jax.vmap(program.reward)(jax.vmap(task.view)(true), action, jax.vmap(task.view)(after))
            over = jax.vmap(task.terminated)(after) | (after.step_count >= horizon)
            chosen = lambda new, old: jnp.where(over.reshape(lanes, *[1] * (old.ndim - 1)), new, old)  # noqa: E731
            goes_on = jax.tree.map(chosen, start, after)
            reported = [following.metrics[f"reward/{name}"] for name in module.TERMS]
            ours = (
                following.obs,
                following.reward,
                jnp.stack(reported, 1),
                following.done > 0.5,
                following.metrics["return"],
            )
            worth = jnp.where(after.broken, jnp.nan, after.reward)
            theirs = jax.vmap(lambda s: program.observe(task.view(s)))(goes_on), paid, terms, over, worth
            moment: Any = following.pipeline_state
            return (following, goes_on), (
                (*ours, moment.step_count, moment.last_action),
                (*theirs, goes_on.step_count, goes_on.last_action),
                after.broken,
            )

        return jax.lax.scan(step, (first, start), jax.random.split(jax.random.key(1), steps))[1]

    ours, theirs, failed = jit(play)(keys)
    same(ours, theirs, 1e-3)
    assert ours[3].sum() >= 2 * lanes
    if stub:  # by the horizon, by falling, and where the simulation fails
        assert 0 < failed.sum() < ours[3].sum()


@pytest.mark.slow  # compiles a training
def test_brax_trains_on_it(checker, task_of, tmp_path, monkeypatch):
    from brax.training.agents.ppo import networks
    from brax.training.agents.ppo.train import train

    if not hasattr(jax, "device_put_replicated"):  # Brax 0.14 calls it, jax 0.10 has dropped it
        one_device = lambda tree, _: jax.tree.map(lambda x: jnp.asarray(x)[None], tree)  # noqa: E731
        monkeypatch.setattr(jax, "device_put_replicated", one_device, raising=False)
    _, program, module = parts("hopper", checker, task_of, tmp_path, "horizon=100")
    reported: list[Any] = []
    train(
        module.Env(), num_timesteps=4096, episode_length=module.HORIZON, num_envs=16, num_eval_envs=4, num_evals=2,
        unroll_length=8, batch_size=16, num_minibatches=2, num_updates_per_batch=1, normalize_observations=True,
        network_factory=lambda *a, **k: networks.make_ppo_networks(
            *a, policy_hidden_layer_sizes=(8,), value_hidden_layer_sizes=(8,), **k
        ),
        progress_fn=lambda steps, metrics: reported.append((steps, metrics)),
    )  # fmt: skip
    steps, metrics = reported[-1]
    assert steps >= 4096 and np.isfinite(metrics["eval/episode_reward"])
    terms = sum(metrics[f"eval/episode_reward/{name}"] for name in program.terms)
    same(terms, metrics["eval/episode_reward"], 1e-3)
    same(metrics["eval/episode_return"], metrics["eval/episode_reward"], 1e-2)  # the expert's reward is Brax's own
