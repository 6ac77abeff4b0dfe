"""The robot on wheels with a ball and with a door: gaps, gliding, and how well a script does what is told."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import mujoco as compiled
import numpy as np
import pytest

from jaxreward.tasks import compiler_options, make_task
from jaxreward.tasks.robots import ball, door
from jaxreward.tasks.robots.ball import BallRoll
from jaxreward.tasks.robots.door import DoorOpen
from jaxreward.tasks.robots.mjcf import merged
from tests.compilation import jit
from tests.tasks.cases import evaluate_metric
from tests.tasks.test_more_robots_metrics import moment

mujoco: Any = compiled  # its functions are known to no type checker
POSES = ([0.0, 0.0, 0.0], [0.4, 0.3, 0.9], [0.55, 0.0, 0.1], [1.2, -0.3, -0.4])


def test_ball_and_goal_are_drawn_on_two_sides_of_the_line():
    states = jit(jax.vmap(BallRoll().reset))(jax.random.split(jax.random.key(0), 500))
    info = states.info
    place, goal = np.asarray(info["ball_pos"]), np.asarray(info["goal_pos"])
    for found, (low, high) in ((place, ball.BALL), (goal, ball.GOAL)):
        assert (found.min(0) >= low).all() and (found.max(0) <= high).all()
        assert (np.ptp(found, axis=0) > 0.9 * (np.array(high) - np.array(low))).all()
    np.testing.assert_allclose(info["start_pos"], place)
    assert float(jnp.min(info["line_dist"])) > ball.RADIUS and goal[:, 0].min() > ball.LINE
    assert float(jnp.min(info["hand_gaps"])) > 0.0 and float(jnp.min(info["trunk_gap"])) > 0.0


def test_the_door_is_shut_at_first():
    states = jit(jax.vmap(DoorOpen().reset))(jax.random.split(jax.random.key(0), 500))
    place = np.asarray(states.data.qpos)
    assert (place[:, 3] == 0.0).all() and float(jnp.min(states.info["hand_gaps"])) > 0.0
    assert (place[:, :2].min(0) >= door.START[0]).all() and (place[:, :2].max(0) <= door.START[1]).all()
    assert (np.ptp(place[:, :2], axis=0) > 0.9 * (np.array(door.START[1]) - np.array(door.START[0]))).all()


@pytest.mark.parametrize(("task", "thing", "rest"), [(BallRoll(), "ball", (0.9, 0.1)), (DoorOpen(), "door", (0.7,))])
def test_gaps_are_those_of_the_geometries(task, thing, rest):
    """Distances by MuJoCo from hands and trunk, apart and overlapping; and ways in the robot's frame."""
    m, seen = task.physics.model, jit(task.sensed)
    for pose in POSES:
        data = task.physics.at(np.array([*pose, *rest]), np.zeros(m.nv), np.zeros(3))
        info, host = seen(data), task.physics.on_host(data)
        gaps = [
            mujoco.mj_geomDistance(m, host, m.geom(name).id, m.geom(thing).id, 5.0, None)
            for name in ("left_hand", "right_hand", "trunk")
        ]
        # Hands, trunk and ball are not at one height in the model; what is measured is the gap in the plane.
        assert [*np.asarray(info["hand_gaps"]), float(info["trunk_gap"])] == pytest.approx(gaps, abs=0.012)
        body = host.body(thing)
        there = body.xpos[:2] - (0.96 * body.xmat.reshape(3, 3)[:2, 1] if thing == "door" else 0.0)
        exit_or_goal = np.array([door.THROUGH, 0.0]) - pose[:2] if thing == "door" else host.mocap_pos[0, :2] - there
        ahead, left = [np.cos(pose[2]), np.sin(pose[2])], [-np.sin(pose[2]), np.cos(pose[2])]
        ways = {"local_edge": there - pose[:2], "local_exit": exit_or_goal} if thing == "door" else {}
        ways = ways or {"local_ball": there - pose[:2], "local_goal": exit_or_goal}
        for name, way in ways.items():
            assert np.asarray(info[name]) == pytest.approx([way @ ahead, way @ left], abs=1e-5), name


@pytest.mark.parametrize(
    ("name", "joint", "speed", "on"),
    [("ball-roll", "ball_x", 1.0, ball.ROLLS), ("door-open", "door", 0.5, 0.5 * 0.776)],
)
def test_what_is_let_go_glides_on_by_its_speed(name, joint, speed, on):
    task: Any = make_task(name)
    m, d = task.physics.model, task.physics.on_host(task.home)
    before = float(d.joint(joint).qpos[0])
    d.joint(joint).qvel[0] = speed
    for _ in range(600):
        mujoco.mj_step(m, d)
    assert float(d.joint(joint).qpos[0]) - before == pytest.approx(on, abs=0.03 * on)


# ---- what is told


def told(make: Any, *states: Any) -> tuple[float, dict[str, float]]:
    """Success, and how well each subtask was done."""
    task = make(horizon=len(states) - 1)
    value, extra = evaluate_metric(task.score(), states[1:], states[0])
    return float(value), {s.name: round(float(extra[s.metric]), 3) for s in task.instruction().subtasks}


def rolling(x: float, gap: float = 0.5, speed: float = 0.5, trunk: float = 0.5, y: float = 0.0) -> Any:
    """A ball at `x` on its way from 0.9 to 2.3 m, over the line at 1.3."""
    return moment(
        ball_pos=(x, y), goal_pos=(2.3, 0.0), start_pos=(0.9, 0.0), ball_vel=(speed, 0.0),
        ball_goal_dist=float(np.hypot(2.3 - x, y)), hand_gaps=(gap, gap + 0.1), trunk_gap=trunk, line_dist=1.3 - x,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("way", "success", "expected"),
    [
        ([rolling(0.9)], 0.0, {"push": 0.0, "roll": 0.0, "bring": 0.0, "rest": 0.0}),
        ([rolling(0.9, 0.0, speed=0.0)], 0.0, {"push": 0.0}),  # a hand on it, and it does not move
        ([rolling(1.2, 0.0), rolling(1.8), rolling(2.2, speed=0.0)], 1.0,
         {"push": 1.0, "roll": 1.0, "bring": 1.0, "rest": 1.0}),
        ([rolling(1.2, 0.0), rolling(1.8), rolling(2.3), rolling(2.7)], 1.0, {"roll": 1.0, "rest": 0.0}),  # shot past
        ([rolling(1.2, 0.0), rolling(1.8, 0.0), rolling(2.3, 0.0, 0.0)], 1.0, {"roll": 0.0, "rest": 0.0}),  # followed
        ([rolling(1.2, 0.0), rolling(2.2, y=0.6), rolling(2.2, 0.0), rolling(2.2, speed=0.0)], 1.0,
         {"roll": pytest.approx(np.hypot(1.0, 0.6) / (np.hypot(1.0, 0.6) + 0.6), abs=1e-3), "rest": 1.0}),  # aside
        ([rolling(1.2, 0.0), rolling(1.8), rolling(2.2, speed=0.0), rolling(2.8)], 1.0, {"rest": 0.0}),  # it went on
        ([rolling(1.2, 0.0), rolling(1.55, trunk=0.0), rolling(1.8)], 0.0,
         {"roll": pytest.approx(0.25 / 0.6 * 0.9 / 1.15, abs=1e-3), "bring": pytest.approx(0.9 / 1.15, abs=1e-3)}),
    ],
)  # fmt: skip
def test_a_ball_is_rolled_as_told(way, success, expected):
    seen = told(BallRoll, rolling(0.9), *way)
    assert seen[0] == success and {name: seen[1][name] for name in expected} == expected


def opening(x: float, turn: float, rate: float = 0.5, hand: float = 0.5, trunk: float = 0.5, **more: Any) -> Any:
    return moment(
        left_to_go=door.THROUGH - x, door_turn=turn, door_rate=rate, hand_gaps=(hand, hand), trunk_gap=trunk, **more
    )


OPENED = [opening(0.9, 0.6, hand=0.0), opening(1.2, 1.2, hand=0.0)]


@pytest.mark.parametrize(
    ("way", "success", "expected"),
    [
        ([opening(1.1, 0.0, 0.0, hand=0.0)], 0.0, dict.fromkeys(("hand", "open", "go", "clear", "gently"), 0.0)),
        ([*OPENED, opening(2.0, 1.2)], 1.0, dict.fromkeys(("hand", "open", "go", "clear", "gently"), 1.0)),
        ([*OPENED, opening(2.0, 1.2, trunk=0.0)], 1.0, {"hand": 1.0, "clear": 0.0, "gently": 1.0}),
        ([opening(1.0, 0.5, 1.6, hand=0.0), opening(2.0, 2.0)], 1.0, {"hand": 0.25, "clear": 1.0, "gently": 0.5}),
        ([opening(1.5, 0.6, -9.0, hand=0.0)], 0.0, {"hand": 0.5, "open": 0.5, "go": 0.5, "clear": 0.5, "gently": 0.0}),
        ([opening(2.0, 1.4, broken=True)], 0.0, {"go": 0.0, "clear": 0.0, "gently": 0.0}),
    ],
)
def test_a_door_is_opened_as_told(way, success, expected):
    seen = told(DoorOpen, opening(0.0, 0.0, 0.0), *way)
    assert seen[0] == success and {name: seen[1][name] for name in expected} == expected


def test_sparse_rewards_are_paid_at_the_goal():
    paid = lambda task, **info: float(task.sparse_reward(None, jnp.zeros(3), moment(**info)))  # noqa: E731
    assert (paid(BallRoll(), ball_goal_dist=0.24), paid(BallRoll(), ball_goal_dist=0.26)) == (1.0, 0.0)
    assert (paid(DoorOpen(), left_to_go=-0.01), paid(DoorOpen(), left_to_go=0.01)) == (1.0, 0.0)


# ---- in simulation


def played(name: str, start: list[float], act: Any, **info: Any) -> tuple[float, dict[str, float]]:
    """What a script reaches from a pose; `act` takes the number of the step and its state."""
    task: Any = make_task(name)
    step = jax.jit(task.step, compiler_options=compiler_options(task, "cpu"))
    first = task.reset(jax.random.key(0))
    known = {key: jnp.asarray(value, jnp.float32) for key, value in info.items()}
    state = first.replace(data=first.data.replace(qpos=jnp.asarray(start, jnp.float32)), info=first.info | known)
    if "goal_pos" in info:
        state = state.replace(data=state.data.replace(mocap_pos=jnp.array([[*info["goal_pos"], 0.002]])))
    states = [step(state, jnp.zeros(3))]
    for number in range(task.horizon - 1):
        states.append(step(states[-1], jnp.asarray(act(number, states[-1]), jnp.float32)))
    value, extra = evaluate_metric(task.score(), states[1:], states[0])
    return float(value), {s.name: round(float(extra[s.metric]), 1) for s in task.instruction().subtasks}


@pytest.mark.slow
def test_a_ball_that_is_let_go_rolls_and_one_that_is_followed_does_not():
    where = {"goal_pos": (2.1, 0.0), "start_pos": (0.9, 0.0)}
    rolled = played("ball-roll", [0.0, 0.0, 0.0, 0.9, 0.0], lambda n, s: [0.5 * (n < 27), 0.0, 0.0], **where)
    assert rolled == (1.0, {"push": 1.0, "roll": 1.0, "bring": 1.0, "rest": 1.0})
    on = lambda n, s: [0.3 * (float(s.info["ball_goal_dist"]) > 0.1), 0.0, 0.0]  # noqa: E731
    followed = played("ball-roll", [0.0, 0.0, 0.0, 0.9, 0.0], on, **where)
    assert followed[0] == 1.0 and followed[1]["roll"] < 0.4


@pytest.mark.slow
def test_a_door_is_opened_by_hand_or_barged():
    def gently(number: int, state: Any) -> list[float]:
        place, turn = state.data.qpos, float(state.info["door_turn"])
        if turn < 1.25:
            return [0.2, -0.5 * float(place[1] + 0.1), -float(place[2])]
        return [0.5, -2.0 * float(place[1] + 0.2), -float(place[2])]

    value, done = played("door-open", [0.2, -0.1, 0.0, 0.0], gently)
    assert value == done["open"] == done["go"] == done["clear"] == 1.0 and min(done["hand"], done["gently"]) > 0.8
    for y in (-0.2, 0.1):
        value, done = played("door-open", [0.2, y, 0.0, 0.0], lambda n, s: [1.0, 0.0, 0.0])
        assert value == 1.0 and min(done["hand"], done["clear"]) <= 0.5 and done["gently"] == 0.0, y


def test_nobody_gets_around_the_wall():
    task = DoorOpen()
    ends = [abs(g.pos[1]) + g.size[1] for g in map(task.physics.model.geom, ("left_wall", "right_wall"))]
    fastest = 1.5 * np.sqrt(2.0) * 4000 * task.control_s
    assert min(ends) - door.START[1][1] > fastest, "not in 4,000 steps either"


def test_bodies_beside_a_robot_have_no_options_of_their_own():
    robot, bodies = '<mujoco><option timestep="0.02"/></mujoco>', "<mujoco><option{}/><worldbody/></mujoco>"
    assert "worldbody" in merged(robot, bodies.format(""))
    with pytest.raises(ValueError, match="option"):
        merged(robot, bodies.format(' timestep="0.01"'))


def test_the_long_wall_leaves_the_robot_in_sight():
    m = DoorOpen().physics.model
    assert m.vis.map.znear * m.stat.extent < 0.2, "what is nearer to a camera is not drawn"
