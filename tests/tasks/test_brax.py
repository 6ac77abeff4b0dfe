"""Tasks on Brax's environments against Brax itself."""

from __future__ import annotations

import functools
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxreward.tasks import card, make_task
from jaxreward.tasks.documentation import state_leaves
from jaxreward.tasks.rendering import CannotRender
from tests.compilation import jit
from tests.tasks.cases import every_array_has_words, every_fragment_is_what_it_says, functions_of

pytestmark = pytest.mark.usefixtures("unoptimised")
RUNNERS = ("hopper", "walker2d", "ant", "humanoid")
SMALL = ("inverted-pendulum", "reacher")
ANTS = ("ant-lie-down", "ant-patrol-return")
SLOW = {"walker2d", "humanoid", *SMALL}
TASKS = (*RUNNERS, *SMALL, *ANTS)
SCENES = Path(__file__).parents[2] / "interfaces"
LANES, STEPS = 4, 60


def quick(names: tuple[str, ...]) -> list[Any]:
    """Parameters of a test; what is compiled long is left to the slow tests."""
    return [pytest.param(name, marks=pytest.mark.slow) if name in SLOW else name for name in names]


class Played(NamedTuple):
    """Random play of a task, and what Brax's environment said of it: arrays (LANES, STEPS, ...)."""

    task: Any
    first: Any  # view, Brax's observation
    views: Any
    actions: Any
    next_views: Any
    states: Any
    outputs: Any  # Brax's obs, reward and done
    wild: Any  # actions far out of range and the states after them, and the same actions cut: (2, STEPS, ...)


class Overheard:
    """Brax's environment, and what it last returned: so it is compiled once for the task and for the comparison."""

    def __init__(self, env: Any) -> None:
        self.env = env
        self.outputs: Any = None

    def __getattr__(self, name: str) -> Any:
        return getattr(self.env, name)

    def reset(self, key: jax.Array) -> Any:
        self.outputs = self.env.reset(key)
        return self.outputs

    def step(self, state: Any, action: jax.Array) -> Any:
        self.outputs = self.env.step(state, action)
        return self.outputs


@functools.cache
def played(name: str, backend: str = "spring") -> Played:
    task: Any = make_task(name, backend=backend)
    if name in ANTS:  # of the ant's own play, as they see it
        _, first, _, actions, _, states, outputs, wild = played("ant")
        states = states.replace(own={"task_phase": np.zeros((LANES, STEPS), np.int32)})
        views = each(task.view, states)
        earlier, later = (jax.tree.map(lambda x, cut=cut: x[:, cut], views) for cut in (slice(-1), slice(1, None)))
        return Played(task, first, earlier, actions[:, 1:], later, states, outputs, wild)
    _ = task._shapes, task._blank  # they call Brax too, once
    env = task.__dict__["env"] = Overheard(task.env)

    def play(key: jax.Array, gain: jax.Array, most: jax.Array) -> Any:
        reset, act = jax.random.split(key)
        state = task.reset(reset)
        first = task.view(state), env.outputs.obs

        def step(state: Any, key: jax.Array) -> Any:
            action = gain * jax.random.uniform(key, task.action_space.shape, minval=-1.0, maxval=1.0)
            action = jnp.clip(action, -most, most)
            after = task.step(state, action)
            theirs = env.outputs
            outputs = tuple(jnp.asarray(x, jnp.float32) for x in (theirs.obs, theirs.reward, theirs.done))
            return after, (task.view(state), action, task.view(after), after, outputs)

        return first, *jax.lax.scan(step, state, jax.random.split(act, STEPS))[1]

    keys = jax.random.split(jax.random.key(0), LANES)
    gain, most = np.array([1.0] * LANES + [7.0, 7.0]), np.array([1.0] * LANES + [7.0, 1.0])
    everything = jax.device_get(jit(jax.vmap(play))(keys[jnp.array([*range(LANES), 0, 0])], gain, most))
    usual: Any = jax.tree.map(lambda x: x[:LANES], everything)
    _, _, actions, _, states, _ = jax.tree.map(lambda x: x[LANES:], everything)
    return Played(task, *usual, wild=(actions, states))


def each(function: Any, *trees: Any) -> Any:
    """`function` of every lane and step."""
    return jax.device_get(jit(jax.vmap(jax.vmap(function)))(*trees))


# ---- against Brax


@pytest.mark.slow
@pytest.mark.parametrize("name", quick((*RUNNERS, *SMALL)))
def test_observation_and_reward_are_those_of_brax(name):
    task, first, views, actions, next_views, states, (obs, reward, done), _ = played(name)
    np.testing.assert_allclose(jax.vmap(task.default_observation)(first[0]), first[1], rtol=1e-5, atol=1e-4)
    np.testing.assert_allclose(each(task.default_observation, next_views), obs, rtol=1e-5, atol=1e-4)
    np.testing.assert_allclose(states.reward, reward, rtol=1e-5, atol=1e-4)
    np.testing.assert_allclose(each(task.dense_reward, views, actions, next_views), reward, rtol=1e-4, atol=2e-3)
    np.testing.assert_array_equal(each(task.terminated, states), done > 0.5)
    assert not states.broken.any() and (name != "hopper" or done.any())


@pytest.mark.slow
@pytest.mark.parametrize("backend", ["generalized", "positional", "mjx"])
@pytest.mark.parametrize("name", ["hopper", "ant", "humanoid"])
def test_other_backends_are_brax_too(name, backend):
    task, _, views, actions, next_views, states, (obs, reward, _), _ = played(name, backend)
    good = ~states.broken  # some fly apart under random actions, long after they have fallen
    assert good.mean() > 0.5
    np.testing.assert_allclose(each(task.default_observation, next_views)[good], obs[good], rtol=1e-3, atol=1e-2)
    np.testing.assert_allclose(
        each(task.dense_reward, views, actions, next_views)[good], reward[good], rtol=1e-3, atol=1e-2
    )


@pytest.mark.slow
@pytest.mark.parametrize("name", quick(RUNNERS))
def test_the_sparse_reward_is_to_be_up_and_fast(name):
    task, _, views, actions, next_views, _, (_, _, done), _ = played(name)
    paid = each(task.sparse_reward, views, actions, next_views)
    speed, up = each(task.speed, views, next_views), each(task.up, next_views)
    np.testing.assert_array_equal(up, done < 0.5)
    np.testing.assert_array_equal(paid, (speed >= 1.0) & up)
    assert paid.mean() < 0.5 and (name != "hopper" or paid.any())


@pytest.mark.slow
@pytest.mark.parametrize("name", quick(TASKS))
def test_reset_and_step_agree_in_every_dtype(name, task_of):
    task: Any = task_of(name)
    first = jax.eval_shape(task.reset, jax.random.key(0))
    after = jax.eval_shape(task.step, first, jnp.zeros(task.action_space.shape))
    assert jax.tree.structure(first) == jax.tree.structure(after)
    for a, b in zip(jax.tree.leaves(first), jax.tree.leaves(after), strict=True):
        assert (a.shape, a.dtype, a.weak_type) == (b.shape, b.dtype, b.weak_type) and not a.weak_type


@pytest.mark.long
@pytest.mark.parametrize("name", quick(RUNNERS))
def test_actions_are_cut_and_kept(name):
    task, _, views, actions, next_views, _, _, (asked, states) = played(name)
    np.testing.assert_array_equal(next_views.last_action, actions)
    np.testing.assert_array_equal(next_views.step_count[0], 1 + np.arange(STEPS))
    assert np.abs(asked[0]).max() > 6.0 and np.abs(asked[1]).max() == 1.0
    wild, cut = (jax.tree.map(lambda x, k=k: x[k], states) for k in (0, 1))
    jax.tree.map(np.testing.assert_array_equal, wild, cut)  # Brax's reward for each step is among the arrays
    assert np.ptp(wild.reward) > 0.0
    before, after = (jax.tree.map(lambda x: x[0, 0], tree) for tree in (views, next_views))
    size = task.action_space.shape
    rewards = [task.dense_reward(before, jnp.full(size, x), after) for x in (7.0, 1.0, 0.0)]
    assert rewards[0] == rewards[1] < rewards[2]


def test_the_humanoids_motors_take_0_4_of_an_action():
    task: Any = make_task("humanoid")
    np.testing.assert_allclose(task.control(jnp.array([-2.0, -1.0, 0.0, 0.5, 1.0] + [0.0] * 12))[:5],
                               [-0.4, -0.4, 0.0, 0.2, 0.4], atol=1e-6)  # fmt: skip


# ---- pictures


@pytest.mark.long
def test_a_state_has_a_picture_or_the_reason_why_not():
    play = played("hopper")
    lane = [jax.tree.map(lambda x, t=t: x[0, t], play.states) for t in (0, STEPS - 1)]
    try:
        first, last = (play.task.draw(state) for state in lane)
    except CannotRender as error:
        assert "MUJOCO_GL" in str(error)
        pytest.skip("no pictures on this machine")
    assert first.shape == last.shape == (240, 320, 3) and first.dtype == np.uint8
    assert first.std() > 0 and not np.array_equal(first, last)


# ---- what breaks


@pytest.mark.long
def test_a_failed_simulation_ends_the_episode_and_fails_closed():
    task: Any = make_task("inverted-pendulum")
    step = jit(task.step)
    state = task.reset(jax.random.key(0))
    for bad in (jnp.nan, jnp.inf, 1e7):
        moving = jax.tree.map(lambda x, bad=bad: x + bad, state.pipeline.xd_i)
        wild = state.replace(pipeline=state.pipeline.replace(xd_i=moving))
        after = step(wild, jnp.zeros(1))
        assert bool(task.terminated(after)) and not bool(task.terminated(state)), bad
        assert all(np.isfinite(x).all() for x in jax.tree.leaves(task.view(after))) and float(after.reward) == 0.0
        assert bool(step(after, jnp.zeros(1)).broken), "it stays so"
        metric = task.score()
        assert np.isnan(metric.value(metric.update(metric.init(), state, jnp.zeros(1), after)))


# ---- what programs see


@pytest.mark.long
@pytest.mark.parametrize("name", quick(TASKS))
def test_views_contain_no_reward_and_every_array_is_documented(name, task_of):
    task: Any = task_of(name)
    arrays = set(state_leaves(task))
    assert {"q", "qd", "x.pos", "x.rot", "xd.vel", "xd.ang", "last_action", "step_count"} <= arrays
    assert not {path for path in arrays if any(word in path for word in ("reward", "done", "metric", "obs"))}
    every_array_has_words(task)
    words = card(task).state_doc
    joints = task.env.sys.mj_model
    assert all(joints.joint(k).name in words for k in range(joints.njnt)) and "inf" not in words


@pytest.mark.long
def test_the_root_of_a_free_body_is_where_its_words_say():
    views = played("ant").next_views
    np.testing.assert_allclose(views.q[..., :3], views.x.pos[..., 0, :], atol=1e-5)
    np.testing.assert_allclose(views.qd[..., :3], views.xd.vel[..., 0, :], atol=1e-4)
    w, axis = views.x.rot[..., 0, :1], -views.x.rot[..., 0, 1:]
    ang = views.xd.ang[..., 0, :]
    in_body = ang + 2.0 * np.cross(axis, np.cross(axis, ang) + w * ang)
    np.testing.assert_allclose(views.qd[..., 3:6], in_body, atol=1e-3)


@pytest.mark.slow
def test_an_ant_on_its_back_lies_on_the_floor():
    task: Any = make_task("ant-lie-down")
    state = task.reset(jax.random.key(0))
    turned = task.env.sys.init_q.at[3:7].set(jnp.array([0.0, 1.0, 0.0, 0.0]))
    state = state.replace(pipeline=task.env.pipeline_init(turned, jnp.zeros(14)))
    rest = jit(lambda s: jax.lax.fori_loop(0, 60, lambda _, s: task.step(s, jnp.zeros(8)), s))(state)
    view = task.view(rest)
    assert float(view.x.pos[0, 2]) == pytest.approx(0.25, abs=0.02), "in Brax's own ant it would be -0.46"
    assert float(view.orientation) > 0.9 and not bool(task.terminated(rest))


# ---- vocabulary, interfaces


@pytest.mark.long
def test_brax_is_imported_for_its_tasks_only_and_silently():
    code = "import sys; from jaxreward.tasks import make_task, task_names; task_names(); print('brax' in sys.modules)"
    code += "; make_task('hopper').horizon; make_task('hopper').action_space"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=True)
    assert done.stdout == "False\n" and "warp" not in done.stderr


def partly_at_the_goal(play: Played) -> Any:
    """The views after the steps, with what the sparse reward is paid for on about half of them."""
    rng = np.random.default_rng(0)
    now = play.next_views
    shape = now.step_count.shape
    if play.task.name == "ant-lie-down":
        return now.replace(orientation=rng.uniform(0.8, 1.0, shape).astype(np.float32))
    if play.task.name == "ant-patrol-return":
        near = rng.uniform(0.0, 1.0, shape).astype(np.float32)
        return now.replace(task_phase=rng.integers(0, 2, shape, np.int32), dist_to_start=near)
    faster = play.task.control_s * rng.uniform(0.0, 3.0, shape).astype(np.float32)  # in m a step
    q, pos = now.q.copy(), now.x.pos.copy()
    q[..., 0] += faster
    pos[..., 0] += faster[..., None]
    return now.replace(q=q, x=now.x.replace(pos=pos))


@pytest.mark.parametrize("name", quick((*RUNNERS, *ANTS)))
def test_every_fragment_is_what_it_says(name):
    play = played(name)
    whole = play.views, play.actions, partly_at_the_goal(play)
    every_fragment_is_what_it_says(play.task, *jax.tree.map(lambda x: x.reshape(-1, *x.shape[2:]), whole), most=10.0)


@pytest.mark.parametrize("name", quick((*RUNNERS, *ANTS)))
def test_interfaces_are_the_tasks_own_rewards(name):
    task, _, views, actions, next_views, *_ = played(name)
    folder = SCENES / name.replace("-", "_")
    sparse, expert = (functions_of((folder / f"{kind}.py").read_text()) for kind in ("sparse", "expert"))
    own = each(task.default_observation, views)
    np.testing.assert_allclose(each(sparse["get_observation"], views), own, rtol=1e-4, atol=1e-3)
    for names, reward, atol in ((sparse, task.sparse_reward, 0.0), (expert, task.dense_reward, 2e-3)):
        found, terms = each(names["compute_reward"], views, actions, next_views)
        np.testing.assert_allclose(found, each(reward, views, actions, next_views), rtol=1e-4, atol=atol)
        np.testing.assert_allclose(sum(terms.values()), found, rtol=1e-4, atol=1e-4)
    seen = each(expert["get_observation"], views)
    assert seen.dtype == np.float32 and np.isfinite(seen).all() and np.abs(seen).max() < 20.0


@pytest.mark.parametrize(("name", "sideways"), [("hopper", 0), ("walker2d", 0), ("ant", 3)])
def test_what_is_held_in_a_plane_has_no_phrases_for_leaving_it(name, sideways):
    phrases = make_task(name).vocabulary().fragments
    assert sum(phrase.name.startswith("sideways") for phrase in phrases) == sideways
