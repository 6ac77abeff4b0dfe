"""The gripper with a cube: where things begin, gaps, grip, and how well scripts do what is told."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import jax
import jax.numpy as jnp
import mujoco as compiled
import numpy as np
import pytest

from jaxreward.tasks import compiler_options
from jaxreward.tasks.robots import gripper_base
from jaxreward.tasks.robots.place import CubePlace
from jaxreward.tasks.robots.stack import CubeStack
from tests.compilation import jit
from tests.tasks.cases import evaluate_metric
from tests.tasks.test_more_robots_metrics import moment

mujoco: Any = compiled  # its functions are known to no type checker
PLACE, STACK = CubePlace(), CubeStack()
OPEN, CLOSED = 1.0, -1.0


@pytest.fixture(scope="module")
def steps() -> dict[str, Callable[..., Any]]:
    return {t.name: jax.jit(t.step, compiler_options=compiler_options(t, "cpu")) for t in (PLACE, STACK)}


@pytest.mark.parametrize("task", [PLACE, STACK], ids=lambda t: t.name)
def test_the_cube_begins_on_the_other_side_than_where_it_is_to_be(task):
    states = jit(jax.vmap(task.reset))(jax.random.split(jax.random.key(0), 500))
    info = {name: np.asarray(x) for name, x in states.info.items()}
    cube, goal = info["cube_pos"][:, 0], info["goal_pos"][:, 0]
    low, high = gripper_base.CUBE
    for x in (np.abs(cube), np.abs(goal)):
        assert low <= x.min() and x.max() <= high and np.ptp(x) > 0.9 * (high - low)
    assert (cube * goal < 0.0).all() and 0.4 < (cube > 0.0).mean() < 0.6
    assert info["pad_gaps"].min() > 0.02 and (info["grip_force"] == 0.0).all()
    assert (info["gripper_pos"][:, 1] >= 0.1 - 1e-6).all() and np.ptp(info["gripper_pos"][:, 0]) > 0.28
    assert np.allclose(info["cube_pos"], info["start_pos"]) and np.allclose(info["cube_pos"][:, 1], 0.025)


@pytest.mark.parametrize(
    "pose",
    [
        (0.0, 0.1, 0.04, 0.04, 0.0, 0.025, 0.0), (0.1, 0.03, 0.026, 0.03, 0.1, 0.03, 0.3),
        (0.0, 0.06, 0.01, 0.0, 0.03, 0.04, -0.2),
    ],
)  # fmt: skip
def test_gaps_are_those_of_the_geometries(pose):
    """Distances by MuJoCo: above the cube, around the tilted cube, and on its top."""
    m = PLACE.physics.model
    data = PLACE.physics.at(np.array(pose), np.zeros(7), np.zeros(4))
    info, host = jit(PLACE.sensed)(data), PLACE.physics.on_host(data)
    of = lambda name: m.geom(name).id  # noqa: E731
    gaps = [mujoco.mj_geomDistance(m, host, of(f"{side}_pad"), of("cube"), 5.0, None) for side in ("left", "right")]
    assert np.asarray(info["pad_gaps"]) == pytest.approx(gaps, abs=1e-5)
    assert np.asarray(info["to_cube"]) == pytest.approx(np.array(pose)[4:6] - np.array(pose)[:2], abs=1e-6)


@pytest.mark.parametrize(
    ("high", "opened", "force"),
    [(0.0, 0.024, 8.0), (0.0, 0.04, 0.0), (0.0325, 0.0, 0.0), (0.06, 0.024, 0.0)],
)  # fmt: skip
def test_a_cube_is_held_that_is_between_the_pads(high, opened, force):
    """Around it, too wide, on its top, and above it."""
    place = np.array([0.0, 0.025 + high, opened, opened, 0.0, 0.025, 0.0])
    data = PLACE.physics.at(place, np.zeros(7), np.array([0.0, 0.0, -0.02, -0.02]))
    data = data.replace(actuator_force=jnp.array([0.0, 0.0, -8.0, -8.0]))
    info = jit(PLACE.sensed)(data)
    assert float(info["grip_force"]) == force
    assert (float(jnp.max(info["pad_gaps"])) < 0.002) == (high < 0.04 and opened < 0.03)


def test_fingers_are_asked_for_less_and_less_until_they_are_closed():
    state: Any = SimpleNamespace(data=SimpleNamespace(ctrl=jnp.array([0.0, 0.0, 0.05, 0.05])))
    for asked in (0.04, 0.03, 0.02, 0.01, 0.0, -0.01, -0.02, -0.02):
        ctrl = PLACE.control(state, jnp.array([1.0, -0.5, -1.0]))
        assert np.asarray(ctrl) == pytest.approx([0.3, -0.15, asked, asked], abs=1e-6)
        state.data.ctrl = ctrl


@pytest.mark.parametrize("name", ["cube-place", "cube-stack"])
def test_what_is_paid_for_a_lift_is_taken_back_when_the_cube_is_let_go(name):
    """Over a cycle: gripped, lifted, dropped, gripped again."""
    task = {t.name: t for t in (PLACE, STACK)}[name]
    (lift,) = [f for f in task.vocabulary().fragments if f.name == "higher"]
    cycle = [at(0.0), at(0.0, 0.05), at(0.0, 0.05, grip=0.0), at(0.0, grip=0.0), at(0.0)]
    scope: dict[str, Any] = {"jax": jax, "jnp": jnp}
    exec("\n".join([*task.vocabulary().helpers.values(), lift.source]), scope)
    paid = [float(scope["higher"](a, None, b)) for a, b in itertools.pairwise(cycle)]
    assert max(paid) == pytest.approx(0.05) and sum(paid) == pytest.approx(0.0, abs=1e-6)
    approaches = [a for s in task.subgoals().chain for a in s.approaches]  # type: ignore[attr-defined]
    tags = {f.name: f.tags for f in task.vocabulary().fragments}
    assert all("farmable" not in tags[name] for name in approaches)


# ---- what is told


def told(task: Any, *states: Any) -> tuple[float, dict[str, float]]:
    """Success, and how well each subtask was done."""
    short = type(task)(horizon=len(states) - 1)
    value, extra = evaluate_metric(short.score(), states[1:], states[0])
    return float(value), {s.name: round(float(extra[s.metric]), 3) for s in short.instruction().subtasks}


def at(x: float, high: float = 0.0, grip: float = 8.0, speed: float = 0.1, top: float = 0.025, moved: float = 0.0,
       **more: Any) -> Any:  # fmt: skip
    """A cube `high` above the table, which began at -0.1 and is to be at (0.1, `top`); free where it is not gripped."""
    way = jnp.array([0.1 - x, top - 0.025 - high])
    return moment(
        cube_pos=(x, 0.025 + high), cube_vel=(speed, 0.0), start_pos=(-0.1, 0.025), goal_pos=(0.1, top), to_goal=way,
        cube_goal_dist=jnp.linalg.norm(way), grip_force=grip, pad_gaps=(0.0, 0.0) if grip else (0.02, 0.02),
        lower_start=0.1, lower_moved=moved, **more,
    )  # fmt: skip


def on(*args: Any, **more: Any) -> Any:
    return at(*args, top=0.075, **more)


BEGIN = at(-0.1, grip=0.0, speed=0.0)
NOTHING = {"grasp": 0.0, "carry": 0.0, "place": 0.0, "gently": 0.0, "release": 0.0}
CARRIED = [at(-0.1, 0.03), at(0.0, 0.05), at(0.1, 0.05), at(0.1, 0.001)]
RELEASED = at(0.1, grip=0.0, speed=0.0)


@pytest.mark.parametrize(
    ("way", "success", "expected"),
    [
        ([BEGIN], 0.0, NOTHING),
        ([*CARRIED, RELEASED], 1.0, dict.fromkeys(NOTHING, 1.0)),
        (CARRIED, 1.0, {"carry": 1.0, "place": 1.0, "release": 0.0}),  # never let go
        ([at(0.0), at(0.1), RELEASED], 1.0, {"grasp": 1.0, "carry": 0.0, "gently": 0.0, "release": 0.0}),  # dragged
        ([at(0.0, grip=0.0), RELEASED], 1.0, {"grasp": 0.0, "carry": 0.0, "gently": 0.0, "release": 0.0}),  # pushed
        ([*CARRIED[:3], at(0.1, 0.01, grip=0.0, speed=0.4), RELEASED], 1.0, {"carry": 1.0, "gently": 0.5}),  # dropped
        ([at(0.0, 0.05, grip=0.0, speed=1.0), RELEASED], 1.0, {"carry": 0.0, "gently": 0.0}),  # thrown
        ([at(0.0, 0.05), at(0.1, broken=True)], 0.0, {"gently": 0.0, "release": 0.0}),
    ],
)  # fmt: skip
def test_a_cube_is_placed_as_told(way, success, expected):
    seen = told(PLACE, BEGIN, *way)
    assert seen[0] == success and {name: seen[1][name] for name in expected} == expected


START = on(-0.1, grip=0.0, speed=0.0)
TOLD = ("grasp", "carry", "stack", "still", "gently", "release")
STACKED = [on(0.0, 0.08), on(0.1, 0.06), on(0.1, 0.05, grip=0.0, speed=0.0)]


@pytest.mark.parametrize(
    ("way", "success", "expected"),
    [
        ([START], 0.0, dict.fromkeys(TOLD, 0.0)),
        (STACKED, 1.0, dict.fromkeys(TOLD, 1.0)),
        ([on(0.0), on(0.05), on(0.05, grip=0.0)], 0.0, {**dict.fromkeys(TOLD, 0.0), "grasp": 1.0}),  # dragged beside
        ([*STACKED[:2], on(0.1, 0.05, grip=0.0, speed=0.0, moved=0.01)], 1.0, {"still": 0.5, "release": 1.0}),
        ([*STACKED[:2], on(0.1, 0.05, grip=0.0, speed=0.0, moved=0.02)], 1.0, {"still": 0.0}),
        ([*STACKED, at(0.16, grip=0.0, top=0.075)], 1.0, {"stack": 1.0, "release": 0.0}),  # it fell off again
    ],
)  # fmt: skip
def test_a_cube_is_stacked_as_told(way, success, expected):
    seen = told(STACK, START, *way)
    assert seen[0] == success and {name: seen[1][name] for name in expected} == expected


# ---- scripts


def grasped(top: float) -> Callable[[list[Any]], list[float]]:
    """A script that takes the cube, lifts it, carries it over, puts it down and lets go."""
    stage, waited = 0, 0

    def act(state: Any) -> list[float]:
        nonlocal stage, waited
        gripper, cube, goal = (np.asarray(state.info[f"{name}_pos"], float) for name in ("gripper", "cube", "goal"))
        done = [
            abs(gripper[0] - cube[0]) < 0.004, abs(gripper[1] - cube[1]) < 0.006, waited > 6, gripper[1] > 0.12,
            abs(cube[0] - goal[0]) < 0.004 and abs(state.data.qvel[0]) < 0.05, cube[1] < top + 0.002, waited > 6, False,
        ][stage]  # fmt: skip
        stage, waited = stage + int(done), 0 if done else waited + 1
        aims = [
            [cube[0], 0.12], cube, gripper, [gripper[0], 0.13], gripper + [goal[0] - cube[0], 0.0],
            gripper + [goal[0] - cube[0], top - 0.003 - cube[1]], gripper, [gripper[0], 0.2],
        ]  # fmt: skip
        way = np.clip((np.asarray(aims[stage]) - gripper) / 0.05, -1.0, 1.0)
        return [way[0], max(way[1], -0.2) if stage == 5 else way[1], CLOSED if 2 <= stage <= 5 else OPEN]

    return act


def shoved(state: Any) -> list[float]:
    """Closed fingers push the cube from behind."""
    sign = float(np.sign(state.info["goal_pos"][0] - state.info["start_pos"][0]))
    gripper, cube = (np.asarray(state.info[f"{name}_pos"], float) for name in ("gripper", "cube"))
    behind = sign * (cube[0] - gripper[0]) > 0.03
    left = sign * float(state.info["to_goal"][0])
    if behind and gripper[1] < 0.03:
        return [sign * min(1.0, left / 0.05 + 0.1), -0.2, -1.0]
    aim = cube - [sign * 0.06, 0.0] if behind else np.array([cube[0] - sign * 0.06, 0.13])
    return [*np.clip((aim - gripper) / 0.05, -1.0, 1.0), -1.0]


def played(task: Any, step: Any, script: Callable[[Any], list[float]], key: int) -> tuple[float, dict[str, float]]:
    states = [jit(task.reset)(jax.random.key(key))]
    for _ in range(task.horizon):
        states.append(step(states[-1], jnp.asarray(script(states[-1]), jnp.float32)))
    return told(task, *states)


@pytest.mark.long
def test_to_push_both_cubes_along_is_nothing(steps):
    value, done = played(STACK, steps["cube-stack"], shoved, 0)
    assert value == 0.0 and max(done.values()) < 0.05, done


@pytest.mark.long
def test_success_does_not_say_how_the_cube_was_brought(steps):
    for key in range(2):
        value, done = played(PLACE, steps["cube-place"], grasped(0.025), key)
        assert value == 1.0 and min(done.values()) > 0.95, (key, done)
        value, done = played(PLACE, steps["cube-place"], shoved, key)
        assert value == 1.0 and done["place"] == 1.0, (key, done)
        assert done["carry"] == done["gently"] == done["release"] == 0.0


@pytest.mark.long
def test_a_script_stacks_the_cube(steps):
    for key in range(2):
        value, done = played(STACK, steps["cube-stack"], grasped(0.076), key)
        assert value == 1.0 and min(done.values()) > 0.95, (key, done)
