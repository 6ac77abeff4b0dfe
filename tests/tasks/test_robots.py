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

from jaxreward.errors import UserError
from jaxreward.tasks import card, compiler_options, make_task
from jaxreward.tasks.robots.go1 import Go1PushRecovery
from jaxreward.tasks.robots.panda import PandaTracking
from jaxreward.tasks.robots.physics import Physics, own_model, rotate, rotate_back

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


def test_limits_and_gains():
    go1, _ = model("go1")
    assert go1.actuator_forcerange[:3, 1].tolist() == [23.7, 23.7, 35.55]
    assert go1.actuator_gainprm[:, 0].tolist() == [35.0] * 12 and (go1.dof_damping[6:] == 0.5).all()
    panda, _ = model("panda")
    assert panda.actuator_gainprm[:, 0].tolist() == [1000, 1000, 750, 750, 300, 300, 300, 350]
    assert (-panda.actuator_biasprm[:, 2]).tolist() == [20, 20, 4, 4, 2, 2, 2, 10]


# ---- the simulation


@pytest.fixture(scope="module")
def stepped() -> dict[str, Any]:
    """A compiled step of each task."""
    found = {}
    for name in TASKS:
        task: Any = make_task(name)
        found[name] = (task, jax.jit(task.step, compiler_options=compiler_options(task, "cpu")), jax.jit(task.reset))
    return found


@pytest.mark.parametrize(("name", "steps", "atol"), [("go1-push-recovery", 8, 2e-3), ("panda-tracking", 40, 2e-4)])
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


def test_a_reset_is_a_fresh_episode_in_full(stepped):
    for name in TASKS:
        task, step, reset = stepped[name]
        first = reset(jax.random.key(7))
        later = step(first, jnp.ones(task.action_space.shape))
        again = reset(jax.random.key(7))
        assert jax.tree.all(jax.tree.map(lambda a, b: bool((a == b).all()), first, again))
        assert int(first.info["step_count"]) == 0 and int(later.info["step_count"]) == 1
        assert jax.tree.structure(first) == jax.tree.structure(later)
        assert [x.dtype for x in jax.tree.leaves(first)] == [x.dtype for x in jax.tree.leaves(later)]


def test_a_broken_simulation_ends_the_episode(stepped):
    for name in TASKS:
        task, step, reset = stepped[name]
        state = reset(jax.random.key(0))
        wild = state.replace(data=state.data.replace(qvel=state.data.qvel + jnp.inf))
        broken = step(wild, jnp.zeros(task.action_space.shape))
        assert bool(task.terminated(broken)) and not bool(task.terminated(state))


# ---- metrics


def course(task: Any, states: list[Any]) -> tuple[float, list[float]]:
    metric = task.score()
    acc = metric.init()
    for state in states:
        acc = metric.update(acc, None, None, state)
    return float(metric.value(acc)), [float(x) for x in metric.also(acc)]


def standing(x: float, up: float = 1.0) -> Any:
    tilt = np.arccos(up)
    qpos = jnp.array([x, 0, 0.27, np.cos(tilt / 2), np.sin(tilt / 2), 0, 0, *[0.0] * 12], jnp.float32)
    return SimpleNamespace(data=SimpleNamespace(qpos=qpos, qvel=jnp.zeros(18), broken=jnp.zeros((), bool)))


def test_push_recovery_is_to_stay_up_and_near():
    task = Go1PushRecovery(horizon=10)
    assert course(task, [standing(0.05)] * 10) == (1.0, [1.0])
    assert course(task, [standing(0.05)] * 9)[0] == 0.0, "an episode that ends early is no success"
    assert course(task, [standing(0.05)] * 5 + [standing(0.13)] * 5) == (1.0, [1.0])
    value, (running,) = course(task, [standing(0.05)] * 5 + [standing(0.2)] * 5)
    assert value == 0.0 and running == pytest.approx(0.7), "0.25, 0.45, 0.65 / 5, 6, 7 are below 0.1"
    assert course(task, [standing(0.0, up=0.2)] + [standing(0.0)] * 9)[0] == 0.0


def test_tracking_is_to_be_near_on_average():
    task = PandaTracking(horizon=4)
    at = lambda d: SimpleNamespace(info={"gripper_target_dist": jnp.float32(d)})  # noqa: E731
    value, (running, mean) = course(task, [at(0.05), at(0.005), at(0.004), at(0.001)])
    assert value == 1.0 and mean == pytest.approx(0.015) and running == pytest.approx(0.5)
    assert course(task, [at(0.05), at(0.02), at(0.01), at(0.01)])[0] == 0.0


# ---- words, options, vocabulary


@pytest.mark.parametrize("name", TASKS)
def test_every_array_is_documented(name):
    words = card(make_task(name)).state_doc
    lines = [line for line in words.split("\n") if line.startswith(("state.", "action"))]
    assert len(lines) > 15 and all(len(line.split("  ")) >= 3 for line in lines), words
    assert "state.info['push_force']" in words or "state.info['traj_params']['freq_x']" in words


@pytest.mark.parametrize("name", TASKS)
def test_every_fragment_is_what_it_says(name):
    task: Any = make_task(name)
    vocabulary = task.vocabulary()
    parts = ["import jax", "import jax.numpy as jnp"]
    parts += [f"{constant} = {value}" for constant, value in vocabulary.constants.items()]
    parts += [*vocabulary.helpers.values(), *(f.source for f in vocabulary.fragments)]
    functions: dict[str, Any] = {}
    exec("\n".join(parts), functions)  # our own text, not a candidate's

    def evaluate(view: Any, action: jax.Array, after: Any) -> dict[str, jax.Array]:
        return {
            f.name: functions[f.name](view) if f.kind == "feature" else functions[f.name](view, action, after)
            for f in vocabulary.fragments
        }

    view = task.view(task.reset(jax.random.key(0)))
    values = evaluate(view, jnp.full(task.action_space.shape, 0.5), view)
    for fragment in vocabulary.fragments:
        value = values[fragment.name]
        assert value.shape == ((fragment.size,) if fragment.kind == "feature" else ()), fragment.name
        assert value.dtype == jnp.float32 and np.isfinite(value).all(), fragment.name
        assert np.abs(value).max() <= 60.0, fragment.name
    assert len({f.name for f in vocabulary.fragments}) == len(vocabulary.fragments)


def test_options_are_checked():
    assert "300 to 800 N" in make_task("go1-push-recovery", push_force_scale=2.0).description
    for name, options, words in (
        ("go1-push-recovery", {"push_interval": 3}, "push_interval"),
        ("go1-push-recovery", {"push_force_scale": -1}, "push_force_scale"),
        ("panda-tracking", {"speed_scale": float("nan")}, "speed_scale"),
        ("panda-tracking", {"speed": 2}, "does not take"),
    ):
        with pytest.raises(UserError, match=words):
            make_task(name, **options)
    with pytest.raises(UserError, match="impl"):
        Physics(own_model("go1"), impl="torch")  # type: ignore[arg-type]


def test_nothing_is_printed_where_warp_is_not_installed():
    code = "import jaxreward.tasks.robots.physics"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=True)
    assert done.stdout == ""


def test_rotations():
    quat = jnp.array([np.cos(0.3), 0, 0, np.sin(0.3)])  # about z by 0.6
    np.testing.assert_allclose(rotate(quat, jnp.array([1.0, 0, 0])), [np.cos(0.6), np.sin(0.6), 0], atol=1e-6)
    vector = jnp.array([0.3, -0.2, 0.9])
    np.testing.assert_allclose(rotate_back(quat, rotate(quat, vector)), vector, atol=1e-6)
