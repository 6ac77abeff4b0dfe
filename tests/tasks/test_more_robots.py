"""Three tasks of RF-Agent's on robots, a quadcopter, the quadruped with commands, the arm at a drawer; and the arm
with a puck."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import mujoco as compiled
import numpy as np
import pytest

from jaxreward.errors import InvalidSetting, UnknownName
from jaxreward.tasks import compiler_options, make_task, measure_of
from jaxreward.tasks.robots import package, push
from jaxreward.tasks.robots.physics import Physics, own_model, rotate
from jaxreward.tasks.robots.quadcopter import TARGET
from jaxreward.tasks.robots.quadruped import FASTEST, QuadrupedVelocity
from tests.compilation import jit
from tests.tasks.cases import (
    actions_are_clipped,
    an_end_makes_all_new,
    evaluate_metric,
    every_array_has_words,
    every_fragment_is_what_it_says,
    functions_of,
    nothing_framed,
    nothing_simulated,
    reached,
    seen_across_an_end,
    visited,
)

mujoco: Any = compiled  # its functions are known to no type checker
TASKS = ("quadcopter-hover", "quadruped-velocity", "panda-cabinet", "panda-push", "package-push", "ball-roll",
         "door-open", "peg-insert", "cube-place", "cube-stack")  # fmt: skip
INTERFACES = Path(__file__).resolve().parents[2] / "interfaces"


@pytest.fixture(scope="module")
def stepped() -> dict[str, Any]:
    """Each task with its compiled step and reset."""
    found = {}
    for name in TASKS:
        task: Any = make_task(name)
        found[name] = (task, jax.jit(task.step, compiler_options=compiler_options(task, "cpu")), jit(task.reset))
    return found


# ---- the quadcopter


def test_the_quadcopter_is_as_published():
    m = mujoco.MjModel.from_xml_string(own_model("quadcopter"))
    assert m.body_mass.sum() == pytest.approx(0.5)
    np.testing.assert_allclose(m.body("quadcopter").inertia, [3.65e-3, 3.68e-3, 7.03e-3])
    rotors = [m.site(name).pos for name in ("front_left", "front_right", "rear_right", "rear_left")]
    np.testing.assert_allclose(np.linalg.norm(rotors, axis=1), 0.17, atol=1e-6)
    np.testing.assert_allclose(m.actuator_ctrlrange, [[0, 6.11e-8 * 7800**2]] * 4, rtol=1e-3)
    np.testing.assert_allclose(m.actuator_gear[:, 5], np.array([1, -1, 1, -1]) * 1.5e-9 / 6.11e-8, rtol=1e-3)
    np.testing.assert_allclose(m.site("target").pos, TARGET)


def acceleration(*thrusts: float) -> np.ndarray:
    """Linear and angular, of the level quadcopter."""
    m = mujoco.MjModel.from_xml_string(own_model("quadcopter"))
    d = mujoco.MjData(m)
    d.ctrl[:] = thrusts
    mujoco.mj_forward(m, d)
    return d.qacc.copy()


def test_thrusts_carry_and_turn_the_quadcopter():
    each = 0.5 * 9.81 / 4
    np.testing.assert_allclose(acceleration(each, each, each, each), 0.0, atol=1e-9)
    np.testing.assert_allclose(acceleration(0, 0, 0, 0), [0, 0, -9.81, 0, 0, 0], atol=1e-9)
    more, less, arm = each + 0.1, each - 0.1, 0.17 / np.sqrt(2)
    roll, pitch = acceleration(more, less, less, more)[3:], acceleration(more, more, less, less)[3:]
    np.testing.assert_allclose(roll, [0.4 * arm / 3.65e-3, 0, 0], atol=1e-4)
    np.testing.assert_allclose(pitch, [0, -0.4 * arm / 3.68e-3, 0], atol=1e-4)
    yaw = acceleration(more, less, more, less)[3:]
    np.testing.assert_allclose(yaw, [0, 0, 0.4 * 0.02455 / 7.03e-3], atol=1e-4)


def test_the_quadcopter_begins_near_its_target(stepped):
    task, _, _ = stepped["quadcopter-hover"]
    states = jit(jax.vmap(task.reset))(jax.random.split(jax.random.key(0), 500))
    away = np.asarray(states.data.qpos[:, :3]) - np.array(TARGET)
    assert np.abs(away).max() <= 1.0 and (away.min(0) < -0.9).all() and (away.max(0) > 0.9).all()
    tilts = np.arccos(np.clip(np.asarray(states.info["upvector"])[:, 2], -1, 1))
    assert tilts.max() <= 0.4 + 1e-3 and tilts.max() > 0.35
    assert np.ptp(np.asarray(states.info["heading"])) > 6.0
    np.testing.assert_allclose(np.linalg.norm(states.data.qpos[:, 3:], axis=1), 1.0, atol=1e-5)
    back = jax.vmap(lambda s: rotate(s.data.qpos[3:], s.info["local_target"]))(states)
    np.testing.assert_allclose(back, -away, atol=1e-5)


@pytest.mark.long
def test_hovering_thrusts_hold_a_level_quadcopter(stepped):
    task, step, reset = stepped["quadcopter-hover"]
    state = reset(jax.random.key(0))
    home = jax.tree.map(jnp.asarray, task.home)
    state = state.replace(data=home)
    action = jnp.full(4, 2 * (0.5 * 9.81 / 4) / 3.717 - 1, jnp.float32)
    for _ in range(20):
        state = step(state, action)
    np.testing.assert_allclose(state.data.qpos, home.qpos, atol=1e-3)
    assert float(action[0]) == pytest.approx(-0.34, abs=0.001), "what the words say"


@pytest.mark.long
@pytest.mark.parametrize(
    ("name", "steps", "size", "atol"),
    [
        ("quadcopter-hover", 50, 0.3, 1e-3),
        pytest.param("quadruped-velocity", 8, 0.3, 2e-3, marks=pytest.mark.slow),
        pytest.param("panda-cabinet", 30, 0.3, 3e-4, marks=pytest.mark.slow),
        pytest.param("panda-push", 30, 0.3, 3e-4, marks=pytest.mark.slow),
        pytest.param("package-push", 30, 1.0, 1e-3, marks=pytest.mark.slow),
        pytest.param("ball-roll", 30, 1.0, 1e-3, marks=pytest.mark.slow),
        ("door-open", 30, 1.0, 1e-3),
        pytest.param("peg-insert", 30, 1.0, 1e-3, marks=pytest.mark.slow),
        pytest.param("cube-place", 30, 1.0, 1e-3, marks=pytest.mark.slow),
        pytest.param("cube-stack", 30, 1.0, 1e-3, marks=pytest.mark.slow),
    ],
)
def test_physics_are_those_of_mujoco(stepped, name, steps, size, atol):
    """Random controls, until contacts and tumbling make small differences large."""
    task, step, reset = stepped[name]
    m = task.physics.model
    state = reset(jax.random.key(0))
    host = task.physics.on_host(state.data)
    rng = np.random.default_rng(0)
    for _ in range(steps):
        state = step(state, jnp.asarray(rng.uniform(-size, size, task.action_space.shape), jnp.float32))
        host.ctrl[:] = np.asarray(state.data.ctrl)
        for _ in range(task.substeps):
            mujoco.mj_step(m, host)
    np.testing.assert_allclose(state.data.qpos, host.qpos, atol=atol)
    assert float(np.abs(host.qvel).max()) > 0.1, "it moved"


# ---- the quadruped


@pytest.mark.slow
def test_commands_are_in_range_and_stay(stepped):
    task, step, reset = stepped["quadruped-velocity"]
    states = jit(jax.vmap(task.reset))(jax.random.split(jax.random.key(0), 500))
    commands = np.asarray(states.info["command"])
    assert (np.abs(commands) <= FASTEST).all() and (np.abs(commands).max(0) > 0.95 * np.array(FASTEST)).all()
    state = first = reset(jax.random.key(1))
    for _ in range(5):
        state = step(state, jnp.zeros(12))
        made = np.array([*state.info["local_linvel"][:2], state.info["gyro"][2]])
        np.testing.assert_allclose(state.info["command_error"], first.info["command"] - made, atol=1e-6)
    np.testing.assert_array_equal(state.info["command"], first.info["command"])
    assert bool(jnp.any(reset(jax.random.key(2)).info["command"] != first.info["command"]))


def test_the_speed_of_commands_is_an_option():
    task = QuadrupedVelocity(speed_scale=0.5)
    assert task.fastest == (0.5, 0.25, 0.5) and task.worst == pytest.approx(-2.25)
    assert QuadrupedVelocity().worst == -9.0 == measure_of(QuadrupedVelocity()).worst
    assert "up to 0.25 m/s" in task.description and "-2.25" in task.description


# ---- the drawer


def test_the_drawer_opens_when_it_is_pulled():
    task: Any = make_task("panda-cabinet")
    m, d = task.physics.model, task.physics.on_host(task.home)
    assert m.joint("drawer").range.tolist() == [0.0, 0.45] and m.npair == 3
    assert d.ncon == 0 and d.site("handle").xpos == pytest.approx([0.72, 0, 0.22])
    d.qfrc_applied[m.joint("drawer").dofadr[0]] = 5.0
    for _ in range(500):
        mujoco.mj_step(m, d)
    drawn = d.joint("drawer").qpos[0]
    assert 0.3 < drawn < 0.46, "at about 5 N / 20 N s/m for 2.5 s, or to the end"
    assert d.site("handle").xpos[0] == pytest.approx(0.72 - drawn), "towards the arm"


@pytest.mark.slow
def test_the_gripper_pulls_the_drawer_by_its_handle(stepped):
    """A scripted pull, from the fingers astride the handle to success, in MJX as in MuJoCo."""
    task, step, reset = stepped["panda-cabinet"]
    m = task.physics.model
    host = task.physics.on_host(task.home)
    lag = host.qfrc_bias[:7] / m.actuator_gainprm[:7, 0]  # what gravity makes of the goals
    q = reached(m, np.asarray(task.home.qpos, float), np.array([0.71, 0.0, 0.22]))
    ctrl = np.concatenate([q[:7] + lag, [0.04]])
    state = reset(jax.random.key(0))
    state = state.replace(data=task.physics.at(q, np.zeros(m.nv), ctrl))
    host.qpos[:], host.qvel[:] = q, 0.0
    drawn = []
    for x in np.linspace(0.70, 0.26, 90):
        q = reached(m, q, np.array([x, 0.0, 0.22]))
        mujoco.mj_forward(m, host)
        goal = np.concatenate([q[:7] + host.qfrc_bias[:7] / m.actuator_gainprm[:7, 0], [0.04]])
        state = step(state, jnp.asarray((goal - np.asarray(state.data.ctrl)) / 0.04, jnp.float32))
        host.ctrl[:] = np.asarray(state.data.ctrl)
        for _ in range(task.substeps):
            mujoco.mj_step(m, host)
        drawn.append((float(state.info["drawer_pos"]), host.joint("drawer").qpos[0]))
    ours, theirs = np.array(drawn).T
    assert ours.max() > 0.39 and float(task.sparse_reward(None, None, task.view(state))) == 1.0
    np.testing.assert_allclose(ours, theirs, atol=5e-3)
    handle = np.asarray(state.info["handle_pos"])
    assert handle == pytest.approx([0.72 - ours[-1], 0.0, 0.22], abs=1e-5)
    assert float(state.info["left_tip"][0]) > handle[0] > float(state.info["right_tip"][0])


# ---- the puck


@pytest.mark.long
def test_puck_and_goal_are_drawn_apart(stepped):
    info = jit(jax.vmap(stepped["panda-push"][0].reset))(jax.random.split(jax.random.key(0), 500)).info
    puck, goal = np.asarray(info["puck_pos"]), np.asarray(info["goal_pos"])
    for place, (low, high) in ((puck, push.PUCK), (goal, push.GOAL)):
        assert (place[:, :2].min(0) >= low).all() and (place[:, :2].max(0) <= high).all()
        assert (np.ptp(place[:, :2], axis=0) > 0.9 * (np.array(high) - np.array(low))).all()
    np.testing.assert_allclose(info["start_pos"], puck)
    away = np.linalg.norm(goal - puck, axis=1)
    assert away.min() > 0.1 - 1e-6 and away.max() < 0.31, "what the words say"
    np.testing.assert_allclose(info["puck_goal_dist"], away, atol=1e-6)
    assert float(jnp.min(info["touch_gap"])) > 0.0


def test_a_puck_that_is_hit_glides_a_fifth_of_its_speed():
    task: Any = make_task("panda-push")
    m, d = task.physics.model, task.physics.on_host(task.home)
    d.joint("puck_x").qpos[0], d.joint("puck_x").qvel[0] = 0.6, 1.0
    for _ in range(400):
        mujoco.mj_step(m, d)
    assert d.joint("puck_x").qpos[0] == pytest.approx(0.8, abs=0.01)


@pytest.mark.slow
def test_the_gripper_pushes_the_puck_ahead_of_it(stepped):
    """A scripted push along x: the puck keeps ahead of the fingers, touched and slow, and gets to the goal."""
    task, step, reset = stepped["panda-push"]
    m = task.physics.model
    state = reset(jax.random.key(0))
    q = reached(m, np.asarray(task.home.qpos, float), np.array([0.36, 0.0, 0.15]))
    q[6], q[7:9], q[9:11] = q[6] + np.pi / 2, 0.02, (0.48, 0.0)  # one finger beside the other
    host = task.physics.on_host(state.data)
    data = task.physics.at(q, np.zeros(m.nv), np.array([*q[:7], 0.02])).replace(
        mocap_pos=jnp.array([[0.66, 0.0, 0.101]])
    )
    info = state.info | {"goal_pos": jnp.array([0.66, 0.0, 0.14]), "start_pos": jnp.array([0.48, 0.0, 0.14])}
    state = state.replace(data=data, info=info)
    states = []
    for x in [*np.linspace(0.36, 0.61, 150), *[0.61] * 30]:
        q = reached(m, q, np.array([x, 0.0, 0.15]))
        q[6] += np.pi / 2
        host.qpos[:] = q
        mujoco.mj_forward(m, host)
        goal = np.array([*(q[:7] + host.qfrc_bias[:7] / m.actuator_gainprm[:7, 0]), 0.02])
        state = step(state, jnp.asarray((goal - np.asarray(state.data.ctrl)) / 0.04, jnp.float32))
        states.append(state)
    assert float(state.info["puck_goal_dist"]) < 0.05
    value, extra = evaluate_metric(task.score(), states[1:], states[0])
    assert value == 1.0 and {name: round(float(x), 1) for name, x in extra.items()} == {
        "touched": 1.0, "pushed": 1.0, "brought": 1.0, "gentle": 1.0,
    }  # fmt: skip


# ---- the package


def test_package_and_goal_are_drawn_apart(stepped):
    states = jit(jax.vmap(stepped["package-push"][0].reset))(jax.random.split(jax.random.key(0), 500))
    info = states.info
    place, goal = np.asarray(info["package_pos"]), np.asarray(info["goal_pos"])
    for found, (low, high) in ((place, package.PACKAGE), (goal, package.GOAL)):
        assert (found.min(0) >= low).all() and (found.max(0) <= high).all()
        assert (np.ptp(found, axis=0) > 0.9 * (np.array(high) - np.array(low))).all()
    np.testing.assert_allclose(info["start_pos"], place)
    away = np.linalg.norm(goal - place, axis=1)
    assert away.min() > 0.8 - 1e-6 and away.max() < 1.7, "what the words say"
    assert np.abs(np.asarray(states.data.qpos)[:, [2, 5]]).max() <= package.TURNED
    assert float(jnp.min(info["hand_gaps"])) > 0.0 and float(jnp.min(info["trunk_gap"])) > 0.0


def test_gaps_are_those_of_the_geometries(stepped):
    """Distances by MuJoCo from hands and trunk to the package, apart and overlapping."""
    task = stepped["package-push"][0]
    m = task.physics.model
    seen = jit(task.sensed)
    for pose in ([0.0, 0.0, 0.0, 1.0, 0.0, 0.0], [0.4, 0.3, 0.9, 0.8, 0.9, -0.7], [0.55, 0.0, 0.1, 0.95, 0.0, 0.0]):
        data = task.physics.at(np.array(pose), np.zeros(6), np.zeros(3))
        info, host = seen(data), task.physics.on_host(data)
        box = m.geom("package").id
        gaps = [
            mujoco.mj_geomDistance(m, host, m.geom(name).id, box, 5.0, None)
            for name in ("left_hand", "right_hand", "trunk")
        ]
        assert [*np.asarray(info["hand_gaps"]), float(info["trunk_gap"])] == pytest.approx(gaps, abs=1e-5)
        ahead = np.array([np.cos(pose[2]), np.sin(pose[2])])
        way = np.array(pose[3:5]) - np.array(pose[:2])
        assert float(info["local_package"][0]) == pytest.approx(float(way @ ahead), abs=1e-6)
        assert float(info["package_turn"]) == pytest.approx(pose[5] - pose[2], abs=1e-6)


def test_a_package_that_is_hit_glides_a_third_of_its_speed():
    task: Any = make_task("package-push")
    m, d = task.physics.model, task.physics.on_host(task.home)
    d.joint("package_x").qvel[0] = 1.0
    for _ in range(400):
        mujoco.mj_step(m, d)
    assert d.joint("package_x").qpos[0] == pytest.approx(1.0 + 1.0 / 3.0, abs=0.03)


@pytest.mark.long
@pytest.mark.parametrize(
    ("speed", "told"),
    [(0.25, {"touched": 1.0, "pushed": 1.0, "brought": 1.0, "gentle": 1.0}), (1.0, {"brought": 1.0, "gentle": 0.0})],
)
def test_both_hands_push_the_package_ahead_of_them(stepped, speed, told):
    """Straight on at one speed, until the goal is near: as told when it is slow, and success all the same when not."""
    task, step, reset = stepped["package-push"]
    state = reset(jax.random.key(0))
    data = state.data.replace(qpos=jnp.array([0.0, 0.0, 0.0, 0.9, 0.0, 0.0]))
    info = state.info | {"goal_pos": jnp.array([1.9, 0.0]), "start_pos": jnp.array([0.9, 0.0])}
    state = state.replace(data=data.replace(mocap_pos=jnp.array([[1.9, 0.0, 0.002]])), info=info)
    states = [step(state, jnp.zeros(3))]
    for _ in range(149):
        on = float(states[-1].info["package_goal_dist"]) > 0.1
        states.append(step(states[-1], jnp.array([speed * on, 0.0, 0.0])))
    value, extra = evaluate_metric(task.score(), states[1:], states[0])
    assert value == 1.0 and {name: round(float(extra[name]), 1) for name in told} == told


# ---- what every task owes


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "new", "drawn"),
    [
        ("quadcopter-hover", ("info.last_act", "data.ctrl", "data.actuator_force"),
         ("data.qpos", "data.qvel", "info.local_target", "info.target_dist")),
        ("quadruped-velocity", ("info.last_act", "data.ctrl", "data.actuator_force"),
         ("data.qpos", "data.qvel", "info.command", "info.command_error")),
        ("panda-cabinet", ("info.drawer_pos", "info.drawer_vel", "data.qvel", "data.actuator_force"),
         ("data.qpos", "data.ctrl", "info.prev_ctrl")),
        ("panda-push", ("info.puck_vel", "data.qvel", "data.actuator_force"),
         ("data.qpos", "data.ctrl", "info.prev_ctrl", "info.goal_pos", "info.start_pos")),
        ("ball-roll", ("data.qvel", "data.ctrl", "data.actuator_force", "info.ball_vel"),
         ("data.qpos", "info.goal_pos", "info.start_pos", "info.local_ball")),
        ("door-open", ("data.qvel", "data.ctrl", "data.actuator_force", "info.door_turn", "info.door_rate"),
         ("data.qpos", "info.local_exit", "info.left_to_go")),
        ("peg-insert", ("data.qvel", "data.ctrl", "data.actuator_force", "info.tip_vel"),
         ("data.qpos", "info.hole_x", "info.to_mouth", "info.tip_pos")),
        ("cube-place", ("data.qvel", "data.ctrl", "data.actuator_force", "info.cube_vel"),
         ("data.qpos", "info.goal_pos", "info.start_pos", "info.to_cube")),
        ("cube-stack", ("data.qvel", "data.ctrl", "data.actuator_force", "info.cube_vel", "info.lower_moved"),
         ("data.qpos", "info.goal_pos", "info.start_pos", "info.lower_start")),
        ("package-push", ("data.qvel", "data.ctrl", "data.actuator_force", "info.package_vel"),
         ("data.qpos", "info.goal_pos", "info.start_pos", "info.local_package")),
    ],
)  # fmt: skip
def test_an_episode_that_follows_another_is_new_in_full(name, new, drawn, monkeypatch):
    monkeypatch.setattr(Physics, "step", nothing_simulated)
    monkeypatch.setattr(Physics, "frames", nothing_framed)
    an_end_makes_all_new(seen_across_an_end(make_task(name, horizon=9)), new, drawn)


@pytest.mark.slow
def test_states_after_a_reset_and_after_a_step_are_alike(stepped):
    for task, step, reset in stepped.values():
        first = reset(jax.random.key(7))
        later = step(first, jnp.ones(task.action_space.shape))
        assert jax.tree.structure(first) == jax.tree.structure(later)
        assert [x.dtype for x in jax.tree.leaves(first)] == [x.dtype for x in jax.tree.leaves(later)]
        assert not bool(task.terminated(first)) and np.isfinite(first.data.qpos).all()


@pytest.mark.slow
def test_actions_are_clipped(stepped):
    for task, step, reset in stepped.values():
        actions_are_clipped(task, step, reset)


@pytest.mark.slow
def test_a_broken_simulation_ends_the_episode(stepped):
    for task, step, reset in stepped.values():
        state = reset(jax.random.key(0))
        wild = state.replace(data=state.data.replace(qvel=state.data.qvel + jnp.inf))
        assert bool(task.terminated(step(wild, jnp.zeros(task.action_space.shape))))


@pytest.mark.parametrize("name", TASKS)
def test_every_array_is_documented(name):
    every_array_has_words(make_task(name))


@pytest.mark.long
@pytest.mark.parametrize("name", [pytest.param(n, marks=[pytest.mark.slow] * n.startswith("panda")) for n in TASKS])
def test_every_fragment_is_what_it_says(stepped, name):
    every_fragment_is_what_it_says(stepped[name][0], *visited(*stepped[name]))


@pytest.mark.long
@pytest.mark.parametrize("name", TASKS)
def test_shipped_interfaces_are_the_tasks_own_rewards(name, monkeypatch):
    """On places and velocities all over, without a simulation, which takes long to compile."""
    monkeypatch.setattr(Physics, "step", nothing_simulated)
    task: Any = make_task(name)
    step, reset = jit(task.step), jit(task.reset)
    folder = INTERFACES / name.replace("-", "_")
    sparse, expert = (functions_of((folder / f"{kind}.py").read_text()) for kind in ("sparse", "expert"))
    rng = np.random.default_rng(0)
    first = reset(jax.random.key(3))
    spread = lambda x, far: x + jnp.asarray(rng.uniform(-far, far, x.shape), jnp.float32)  # noqa: E731
    for _ in range(20):
        data = first.data.replace(qpos=spread(first.data.qpos, 1.0), qvel=spread(first.data.qvel, 2.0))
        action = jnp.asarray(rng.uniform(-1, 1, task.action_space.shape), jnp.float32)
        state = step(first.replace(data=data), action)
        views = task.view(state), action, task.view(step(state, action))
        np.testing.assert_allclose(sparse["get_observation"](views[2]), task.default_observation(views[2]), atol=1e-6)
        assert float(sparse["compute_reward"](*views)[0]) == float(task.sparse_reward(*views))
        dense = float(task.dense_reward(*views))
        assert float(expert["compute_reward"](*views)[0]) == pytest.approx(dense, rel=1e-4, abs=1e-5)


def test_invalid_and_unknown_options_are_named():
    for name, options in (
        ("quadruped-velocity", {"speed_scale": 0}),
        ("quadruped-velocity", {"speed_scale": float("nan")}),
        ("quadcopter-hover", {"horizon": 0}),
    ):
        with pytest.raises(InvalidSetting) as invalid:
            make_task(name, **options)
        assert invalid.value.settings == tuple(f"task.{option}" for option in options)
    with pytest.raises(UnknownName) as unknown:
        make_task("panda-cabinet", width=2)
    assert (unknown.value.kind, unknown.value.name) == ("option", "width")
