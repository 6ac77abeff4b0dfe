"""The robots and LIMEN's two tasks on them."""

from __future__ import annotations

import subprocess
import sys
from types import SimpleNamespace
from typing import Any

import jax
import jax.numpy as jnp
import mujoco as compiled
import numpy as np
import pytest

from jaxreward.errors import InvalidSetting, UnknownName
from jaxreward.programs.spec import Spec
from jaxreward.tasks import compiler_options, make_task
from jaxreward.tasks.robots.go1 import Go1PushRecovery
from jaxreward.tasks.robots.panda import PandaTracking
from jaxreward.tasks.robots.physics import Physics, own_model, rotate, rotate_back
from tests.compilation import jit
from tests.tasks.cases import (
    actions_are_clipped,
    an_end_makes_all_new,
    evaluate_metric,
    every_array_has_words,
    every_fragment_is_what_it_says,
    nothing_framed,
    nothing_simulated,
    seen_across_an_end,
    visited,
)

mujoco: Any = compiled  # its functions are known to no type checker
TASKS = ("go1-push-recovery", "panda-tracking")


def model(name: str) -> tuple[Any, Any]:
    made = mujoco.MjModel.from_xml_string(own_model(name))
    return made, mujoco.MjData(made)


# ---- the models against the published figures


def test_the_flange_of_the_arm_is_where_the_manufacturer_says():
    m, d = model("panda")
    mujoco.mj_forward(m, d)
    d.qpos[:7] = 0.0
    mujoco.mj_forward(m, d)
    np.testing.assert_allclose(d.site("flange").xpos, [0.088, 0.0, 0.926], atol=1e-6)
    d.qpos[:7] = [0, 0, 0, -np.pi / 2, 0, np.pi / 2, -np.pi / 4]
    mujoco.mj_forward(m, d)
    np.testing.assert_allclose(d.body("link7").xpos, [0.5545, 0.0, 0.7315], atol=1e-6)


def dh_flange(q: np.ndarray) -> np.ndarray:
    """The flange by the manufacturer's modified Denavit-Hartenberg parameters (a, d, alpha)."""
    right = np.pi / 2
    rows = [(0, 0.333, 0), (0, 0, -right), (0, 0.316, right), (0.0825, 0, right), (-0.0825, 0.384, -right),
            (0, 0, right), (0.088, 0, right), (0, 0.107, 0)]  # fmt: skip
    frame = np.eye(4)
    for (a, d, alpha), theta in zip(rows, [*q, 0.0], strict=True):
        ca, sa, ct, st = np.cos(alpha), np.sin(alpha), np.cos(theta), np.sin(theta)
        frame = frame @ np.array(
            [[ct, -st, 0, a], [st * ca, ct * ca, -sa, -d * sa], [st * sa, ct * sa, ca, d * ca], [0, 0, 0, 1]]
        )
    return frame[:3, 3]


def test_the_arm_moves_by_its_denavit_hartenberg_parameters():
    m, d = model("panda")
    rng = np.random.default_rng(0)
    for _ in range(10):
        d.qpos[:7] = rng.uniform(*m.jnt_range[:7].T)
        mujoco.mj_forward(m, d)
        np.testing.assert_allclose(d.site("flange").xpos, dh_flange(d.qpos[:7]), atol=1e-6)


def test_the_feet_of_the_quadruped_hang_as_its_links_say():
    m, d = model("go1")
    for hip, knee in ((0.0, -1.0), (0.9, -1.8), (-0.3, -2.0)):
        d.qpos[:] = [0, 0, 1, 1, 0, 0, 0, *([0.0, hip, knee] * 4)]
        mujoco.mj_forward(m, d)
        for name, x, y in (("FR", 1, -1), ("FL", 1, 1), ("RR", -1, -1), ("RL", -1, 1)):
            forward = -0.213 * (np.sin(hip) + np.sin(hip + knee))
            down = 0.213 * (np.cos(hip) + np.cos(hip + knee))
            expected = [0.1881 * x + forward, (0.04675 + 0.08) * y, 1 - down]
            np.testing.assert_allclose(d.geom(f"{name}_foot").xpos, expected, atol=1e-6)


@pytest.mark.parametrize(
    ("name", "mass"),
    [("go1", 5.204 + 4 * (0.68 + 1.009 + 0.195862)),
     ("panda", 4.970684 + 0.646926 + 3.228604 + 3.587895 + 1.225946 + 1.666555 + 0.735522 + 0.73 + 2 * 0.015)],
)  # fmt: skip
def test_masses_are_those_that_are_published(name, mass):
    m, _ = model(name)
    assert m.body_mass.sum() == pytest.approx(mass, abs=1e-6)
    assert (m.geom_type != mujoco.mjtGeom.mjGEOM_MESH).all()


def test_limits_and_gains_are_those_of_the_reference():
    go1, _ = model("go1")
    assert go1.actuator_forcerange[:, 1].tolist() == [23.7, 23.7, 35.55] * 4
    assert (go1.actuator_forcerange[:, 0] == -go1.actuator_forcerange[:, 1]).all()
    assert go1.actuator_gainprm[:, 0].tolist() == [35.0] * 12 and (go1.dof_damping[6:] == 0.5).all()
    panda, _ = model("panda")
    assert panda.actuator_gainprm[:, 0].tolist() == [1000, 1000, 750, 750, 300, 300, 300, 350]
    assert (-panda.actuator_biasprm[:, 2]).tolist() == [20, 20, 4, 4, 2, 2, 2, 10]


# ---- the numbers of LIMEN's two tasks, copied from its paper and its reference implementation

GO1_HOME = [0.1, 0.9, -1.8, -0.1, 0.9, -1.8, 0.1, 0.9, -1.8, -0.1, 0.9, -1.8]
PANDA_HOME = [0, 0.3, 0, -1.57079, 0, 2, -0.7853]
EULER, IMPLICITFAST = 0, 3


@pytest.mark.parametrize(
    ("name", "timestep", "substeps", "integrator", "iterations", "line_search"),
    [("go1-push-recovery", 0.004, 5, EULER, 1, 5), ("panda-tracking", 0.005, 4, IMPLICITFAST, 5, 8)],
)
def test_the_simulation_is_that_of_the_reference(
    name, timestep, substeps, integrator, iterations, line_search, monkeypatch
):
    task: Any = make_task(name)
    option = task.physics.model.opt
    assert (option.timestep, option.integrator) == (timestep, integrator)
    assert (option.iterations, option.ls_iterations) == (iterations, line_search)
    assert task.control_s == pytest.approx(0.02) and task.horizon == task.score().horizon == 500
    taken = []
    monkeypatch.setattr(Physics, "step", lambda _, data, ctrl, n, push=None, body="": taken.append((n, body)) or data)
    jax.eval_shape(task.step, jax.eval_shape(task.reset, jax.random.key(0)), jnp.zeros(task.action_space.shape))
    assert taken == [(substeps, "trunk") if name == "go1-push-recovery" else (substeps, "")]


@pytest.fixture(scope="module")
def resets() -> dict[str, Any]:
    """A thousand of each task."""
    keys = jax.random.split(jax.random.key(0), 1000)
    return {name: jax.device_get(jit(jax.vmap(make_task(name).reset))(keys)) for name in TASKS}


def fill(values: np.ndarray, low: float, high: float) -> None:
    """`values` are uniform between two numbers."""
    room = 0.01 * (high - low)
    assert low <= values.min() < low + room and high - room < values.max() <= high + 1e-5
    assert values.mean() == pytest.approx((low + high) / 2, abs=10 * room)


def test_the_quadruped_begins_at_home(resets):
    state = resets["go1-push-recovery"]
    np.testing.assert_allclose(state.data.qpos, [[0, 0, 0.278, 1, 0, 0, 0, *GO1_HOME]] * 1000, atol=1e-6)
    np.testing.assert_allclose(state.data.ctrl, [GO1_HOME] * 1000, atol=1e-6)
    assert not state.data.qvel.any() and not state.info["push_force"].any()


def test_the_arm_begins_at_home_and_its_target_anywhere(resets):
    state = resets["panda-tracking"]
    np.testing.assert_allclose(state.data.qpos, [[*PANDA_HOME, 0.04, 0.04]] * 1000, atol=1e-6)
    np.testing.assert_allclose(state.data.ctrl, [[*PANDA_HOME, 0.04]] * 1000, atol=1e-6)
    m, d = model("panda")
    d.qpos[:] = [*PANDA_HOME, 0.04, 0.04]
    mujoco.mj_forward(m, d)
    np.testing.assert_allclose(state.info["gripper_pos"], [d.site("gripper").xpos] * 1000, atol=1e-6)
    p = state.info["traj_params"]
    for name, low, high in (("freq_x", 1, 3), ("freq_y", 1, 3), ("freq_z", 0.8, 2), ("phase_x", 0, 2 * np.pi),
                            ("phase_y", 0, 2 * np.pi)):  # fmt: skip
        fill(p[name], low, high)
    assert (p["phase_x"] != p["phase_y"]).all() and (p["freq_x"] != p["freq_y"]).all()
    begins = np.stack([0.45 + 0.10 * np.sin(p["phase_x"]), 0.10 * np.sin(p["phase_y"]), np.full(1000, 0.18)], 1)
    np.testing.assert_allclose(state.info["target_pos"], begins, atol=1e-6)
    away = np.linalg.norm(begins - d.site("gripper").xpos, axis=1)
    np.testing.assert_allclose(state.info["gripper_target_dist"], away, atol=1e-6)


@pytest.mark.parametrize(("speed_scale", "radius_scale"), [(1.0, 1.0), (2.0, 1.5)])
def test_the_target_is_where_the_reference_has_it(monkeypatch, speed_scale, radius_scale):
    monkeypatch.setattr(Physics, "step", nothing_simulated)
    monkeypatch.setattr(Physics, "frames", nothing_framed)
    task: Any = make_task("panda-tracking", speed_scale=speed_scale, radius_scale=radius_scale)
    state = task.reset(jax.random.key(0))
    params = {"freq_x": 1.5, "freq_y": 2.5, "freq_z": 1.2, "phase_x": 0.4, "phase_y": 2.0}
    for step, seconds in ((-1, 0.0), (49, 1.0), (399, 8.0)):
        now = {"step_count": jnp.int32(step), "traj_params": {k: jnp.float32(x) for k, x in params.items()}}
        found = task.step(state.replace(info=state.info | now), jnp.zeros(8))
        rate = 0.35 * speed_scale * np.array([1.5, 2.5, 1.2])
        turn, radius = rate * seconds + np.array([0.4, 2.0, 0.0]), radius_scale * np.array([0.10, 0.10, 0.07])
        np.testing.assert_allclose(found.info["target_pos"], [0.45, 0, 0.18] + radius * np.sin(turn), atol=1e-6)
        np.testing.assert_allclose(found.info["target_vel"], radius * rate * np.cos(turn), atol=1e-6)
        np.testing.assert_array_equal(found.data.mocap_pos[0], found.info["target_pos"])


@pytest.mark.slow
def test_the_motors_get_what_the_reference_gives_them(stepped):
    action = np.random.default_rng(0).uniform(-1.0, 1.0, 12).astype(np.float32)
    _, step, reset = stepped["go1-push-recovery"]
    state = reset(jax.random.key(0))
    for _ in range(2):  # the second does not build upon the first
        state = step(state, jnp.asarray(action))
        np.testing.assert_allclose(state.data.ctrl, np.array(GO1_HOME) + 0.5 * action, atol=1e-6)
    _, step, reset = stepped["panda-tracking"]
    action = action[:8].copy()
    action[7] = -0.25
    state = first = reset(jax.random.key(0))
    for k in (1, 2):
        state = step(state, jnp.asarray(action))
        np.testing.assert_allclose(state.data.ctrl, np.array([*PANDA_HOME, 0.04]) + 0.04 * k * action, atol=1e-6)
    ends = np.array([[-2.8973, 2.8973], [-1.7628, 1.7628], [-2.8973, 2.8973], [-3.0718, -0.0698], [-2.8973, 2.8973],
                     [-0.0175, 3.7525], [-2.8973, 2.8973], [0, 0.04]])  # fmt: skip
    for side, sign in ((0, -1.0), (1, 1.0)):
        near = first.replace(data=first.data.replace(ctrl=jnp.asarray(ends[:, side] - sign * 0.01, jnp.float32)))
        np.testing.assert_allclose(step(near, np.full(8, sign, np.float32)).data.ctrl, ends[:, side], atol=1e-6)


@pytest.mark.slow
def test_actions_are_clipped(stepped):
    for task, step, reset in stepped.values():
        actions_are_clipped(task, step, reset)


def test_pushes_are_those_of_the_reference(monkeypatch):
    monkeypatch.setattr(Physics, "step", nothing_simulated)
    task: Any = make_task("go1-push-recovery")

    @jit
    @jax.vmap
    def pushes(key: jax.Array) -> jax.Array:
        def step(state: Any, _: None) -> tuple[Any, jax.Array]:
            state = task.step(state, jnp.zeros(12))
            return state, state.info["push_force"]

        return jax.lax.scan(step, task.reset(key), None, 500)[1]

    forces = np.asarray(pushes(jax.random.split(jax.random.key(0), 200)))  # (200, 500, 3)
    on = np.zeros(500, bool)
    for begin in (75, 150, 225, 300, 375, 450):
        on[begin : begin + 5] = True
    assert not forces[:, ~on].any()
    each = forces[:, on].reshape(200, 6, 5, 3)
    np.testing.assert_array_equal(each, np.broadcast_to(each[:, :, :1], each.shape))
    each = each[:, :, 0].reshape(-1, 3)
    sizes = np.linalg.norm(each[:, :2], axis=1)
    fill(sizes, 150 - 1e-3, 400 + 1e-3)
    fill(np.arctan2(each[:, 1], each[:, 0]), -np.pi, np.pi)
    np.testing.assert_allclose(each[:, 2], 0.1 * sizes, rtol=1e-5)
    assert len(np.unique(sizes)) > 1190, "all are drawn anew"


def test_the_quadruped_is_down_when_it_has_tipped_over():
    task: Any = make_task("go1-push-recovery")
    assert bool(task.terminated(standing(0.0, up=0.29))) and not bool(task.terminated(standing(0.0, up=0.31)))


# ---- the simulation


@pytest.fixture(scope="module")
def stepped() -> dict[str, Any]:
    """A compiled step of each task."""
    found = {}
    for name in TASKS:
        task: Any = make_task(name)
        found[name] = (task, jax.jit(task.step, compiler_options=compiler_options(task, "cpu")), jit(task.reset))
    return found


@pytest.mark.long
@pytest.mark.parametrize(
    ("name", "steps", "atol"),
    [("go1-push-recovery", 8, 2e-3), pytest.param("panda-tracking", 40, 2e-4, marks=pytest.mark.slow)],
)
def test_physics_are_those_of_mujoco(stepped, name, steps, atol):
    """Random controls, until contacts make small differences large.

    Gentle ones: of an actuator at its force limit MJX keeps the velocity derivative that MuJoCo drops.
    """
    task, step, reset = stepped[name]
    m = task.physics.model
    host = mujoco.MjData(m)
    mujoco.mj_resetDataKeyframe(m, host, 0)
    state = reset(jax.random.key(0))
    rng = np.random.default_rng(0)
    substeps = {"go1-push-recovery": 5, "panda-tracking": 4}[name]
    for _ in range(steps):
        state = step(state, jnp.asarray(rng.uniform(-0.3, 0.3, m.nu), jnp.float32))
        host.ctrl[:] = np.asarray(state.data.ctrl)
        for _ in range(substeps):
            mujoco.mj_step(m, host)
    np.testing.assert_allclose(state.data.qpos, host.qpos, atol=atol)
    if name == "panda-tracking":
        mujoco.mj_forward(m, host)
        np.testing.assert_allclose(state.info["gripper_pos"], host.site("gripper").xpos, atol=atol)


@pytest.mark.long
def test_a_push_moves_the_robot_as_in_mujoco(stepped):
    """The first, from standing, and three steps after it."""
    task, step, reset = stepped["go1-push-recovery"]
    m = task.physics.model
    host, left_alone = mujoco.MjData(m), mujoco.MjData(m)
    for data in (host, left_alone):
        mujoco.mj_resetDataKeyframe(m, data, 0)
    state = reset(jax.random.key(5))
    state = state.replace(info=state.info | {"step_count": jnp.int32(75)})
    for _ in range(8):
        state = step(state, jnp.zeros(12))
        host.xfrc_applied[m.body("trunk").id, :3] = np.asarray(state.info["push_force"])
        for data in (host, left_alone):
            data.ctrl[:] = np.asarray(state.data.ctrl)
            for _ in range(5):
                mujoco.mj_step(m, data)
    np.testing.assert_allclose(state.data.qpos, host.qpos, atol=5e-3)
    assert np.abs(host.qpos[:2] - left_alone.qpos[:2]).max() > 0.05, "it moved"


@pytest.mark.long
def test_pushes_come_on_time_and_in_range(stepped):
    _, step, reset = stepped["go1-push-recovery"]
    state = reset(jax.random.key(3))
    state = state.replace(info=state.info | {"step_count": jnp.int32(73)})  # two steps before the first
    forces, counts = [], []
    for _ in range(9):
        state = step(state, jnp.zeros(12))
        forces.append(np.asarray(state.info["push_force"]))
        counts.append(int(state.info["push_count"]))
    sizes = np.linalg.norm(np.array(forces)[:, :2], axis=1)
    assert (sizes[:2] == 0).all() and (sizes[7:] == 0).all(), "zero between pushes"
    assert ((sizes[2:7] >= 150) & (sizes[2:7] <= 400)).all() and np.ptp(sizes[2:7]) == 0, "one push of five steps"
    assert counts == [0, 0, *[1] * 7]
    assert forces[3][2] == pytest.approx(0.1 * sizes[3], rel=1e-5)
    assert abs(float(state.data.qvel[0])) + abs(float(state.data.qvel[1])) > 0.2, "it was moved"


@pytest.mark.long
def test_the_target_moves_as_its_velocity_says(stepped):
    _, step, reset = stepped["panda-tracking"]
    state = reset(jax.random.key(1))
    before = state.info
    for _ in range(5):
        state = step(state, jnp.zeros(8))
    moved = (state.info["target_pos"] - before["target_pos"]) / 0.1
    np.testing.assert_allclose(moved, (state.info["target_vel"] + before["target_vel"]) / 2, atol=2e-3)
    distance = np.linalg.norm(state.info["gripper_pos"] - state.info["target_pos"])
    assert float(state.info["gripper_target_dist"]) == pytest.approx(distance, rel=1e-4)


NEW = {
    "go1-push-recovery": (
        "info.cum_pos_error", "info.push_count", "info.push_force", "info.last_act", "info.pos_xy", "data.ctrl",
        "data.qpos", "data.qvel", "data.actuator_force",
    ),
    "panda-tracking": (
        "info.cumulative_tracking_error", "info.tracking_steps", "info.prev_ctrl", "info.gripper_pos", "data.ctrl",
        "data.qpos", "data.qvel", "data.actuator_force",
    ),
}  # fmt: skip
DRAWN = {
    "go1-push-recovery": (),
    "panda-tracking": ("info.target_pos", *(f"info.traj_params.{x}" for x in ("freq_x", "freq_y", "freq_z",
                       "phase_x", "phase_y"))),
}  # fmt: skip


@pytest.mark.parametrize("name", TASKS)
def test_an_episode_that_follows_another_is_new_in_full(name, monkeypatch):
    """LIMEN's reference resets the simulation alone: its episodes go on with the counters of those before."""
    monkeypatch.setattr(Physics, "step", nothing_simulated)
    monkeypatch.setattr(Physics, "frames", nothing_framed)
    monkeypatch.setattr("jaxreward.tasks.robots.panda.NEAR", 10.0)  # so that tracking_steps counts
    often = {"push_interval": 6} if name == "go1-push-recovery" else {}
    task: Any = make_task(name, horizon=9, **often)
    an_end_makes_all_new(seen_across_an_end(task), NEW[name], DRAWN[name])


@pytest.mark.long
def test_states_after_a_reset_and_after_a_step_are_alike(stepped):
    for task, step, reset in stepped.values():
        first = reset(jax.random.key(7))
        later = step(first, jnp.ones(task.action_space.shape))
        assert jax.tree.structure(first) == jax.tree.structure(later)
        assert [x.dtype for x in jax.tree.leaves(first)] == [x.dtype for x in jax.tree.leaves(later)]


@pytest.mark.long
def test_a_broken_simulation_ends_the_episode(stepped):
    for name in TASKS:
        task, step, reset = stepped[name]
        state = reset(jax.random.key(0))
        wild = state.replace(data=state.data.replace(qvel=state.data.qvel + jnp.inf))
        broken = step(wild, jnp.zeros(task.action_space.shape))
        assert bool(task.terminated(broken)) and not bool(task.terminated(state))


# ---- metrics


def standing(x: float, up: float = 1.0) -> Any:
    tilt = np.arccos(up)
    qpos = jnp.array([x, 0, 0.27, np.cos(tilt / 2), np.sin(tilt / 2), 0, 0, *[0.0] * 12], jnp.float32)
    return SimpleNamespace(data=SimpleNamespace(qpos=qpos, qvel=jnp.zeros(18), broken=jnp.zeros((), bool)))


@pytest.mark.parametrize("name", ["go1-push-recovery", "panda-tracking"])
def test_programs_cannot_foresee_what_is_drawn(name):
    """The key of the pushes to come is in the state and not in the view."""
    task = make_task(name)
    state = jax.eval_shape(task.reset, jax.random.key(0))
    assert "rng" in state.info
    assert not [leaf.name for leaf in Spec.of(task).leaves if "rng" in leaf.name or leaf.dtype == jnp.uint32]


def test_push_recovery_is_to_stay_up_and_near():
    score = Go1PushRecovery(horizon=10).score()
    assert evaluate_metric(score, [standing(0.099)] * 10) == (1.0, {"running_success": 1.0})
    assert evaluate_metric(score, [standing(0.101)] * 10) == (0.0, {"running_success": 0.0})
    assert evaluate_metric(score, [standing(0.05)] * 9)[0] == 0.0, "an episode that ends early is no success"
    assert evaluate_metric(score, [standing(0.05)] * 5 + [standing(0.13)] * 5) == (1.0, {"running_success": 1.0})
    value, extra = evaluate_metric(score, [standing(0.05)] * 5 + [standing(0.2)] * 5)
    assert value == 0.0 and extra["running_success"] == pytest.approx(0.7), "0.25, 0.45, 0.65 / 5, 6, 7 are below 0.1"
    assert evaluate_metric(score, [standing(0.0, up=0.2)] + [standing(0.0)] * 9)[0] == 0.0


def test_tracking_is_to_be_near_on_average():
    score = PandaTracking(horizon=4).score()
    data = SimpleNamespace(broken=jnp.zeros((), bool))
    at = lambda d: SimpleNamespace(data=data, info={"gripper_target_dist": jnp.float32(d)})  # noqa: E731
    value, extra = evaluate_metric(score, [at(0.05), at(0.005), at(0.004), at(0.001)])
    assert value == 1.0 and extra == pytest.approx({"mean_distance": 0.015, "running_success": 0.5})
    assert evaluate_metric(score, [at(0.05), at(0.02), at(0.01), at(0.01)])[0] == 0.0
    assert [evaluate_metric(score, [at(d)] * 4)[0] for d in (0.0199, 0.0201)] == [1.0, 0.0]


# ---- words, options, vocabulary


@pytest.mark.parametrize("name", TASKS)
def test_every_array_is_documented(name):
    every_array_has_words(make_task(name))


@pytest.mark.long
@pytest.mark.parametrize("name", TASKS)
def test_every_fragment_is_what_it_says(stepped, name):
    every_fragment_is_what_it_says(stepped[name][0], *visited(*stepped[name]))


def test_invalid_and_unknown_options_are_named():
    assert "300 to 800 N" in make_task("go1-push-recovery", push_force_scale=2.0).description
    for name, options in (
        ("go1-push-recovery", {"push_interval": 3}),
        ("go1-push-recovery", {"push_interval": 500}),
        ("go1-push-recovery", {"push_force_scale": -1}),
        ("panda-tracking", {"speed_scale": float("nan")}),
    ):
        with pytest.raises(InvalidSetting) as invalid:
            make_task(name, **options)
        assert invalid.value.settings == tuple(f"task.{option}" for option in options)
    with pytest.raises(UnknownName) as unknown:
        make_task("panda-tracking", speed=2)
    assert (unknown.value.name, unknown.value.nearest) == ("speed", "speed_scale")
    with pytest.raises(InvalidSetting) as invalid:
        Physics(own_model("go1"), impl="torch")  # type: ignore[arg-type]
    assert invalid.value.settings == ("task.impl",)


@pytest.mark.long
def test_importing_without_warp_prints_nothing():
    code = "import jaxreward.tasks.robots.physics"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=True)
    assert done.stdout == ""


def test_rotate_back_inverts_rotate():
    quat = jnp.array([np.cos(0.3), 0, 0, np.sin(0.3)])  # about z by 0.6
    np.testing.assert_allclose(rotate(quat, jnp.array([1.0, 0, 0])), [np.cos(0.6), np.sin(0.6), 0], atol=1e-6)
    vector = jnp.array([0.3, -0.2, 0.9])
    np.testing.assert_allclose(rotate_back(quat, rotate(quat, vector)), vector, atol=1e-6)
