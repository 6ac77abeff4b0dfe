"""The gripper with a peg: gaps, where it begins, and how well a script does what is told."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import mujoco as compiled
import numpy as np
import pytest

from jaxreward.tasks import compiler_options
from jaxreward.tasks.robots import peg
from jaxreward.tasks.robots.peg import PegInsert
from tests.compilation import jit
from tests.tasks.cases import evaluate_metric
from tests.tasks.test_more_robots_metrics import moment

mujoco: Any = compiled  # its functions are known to no type checker
TASK = PegInsert()
SUBTASKS = ("aim", "upright", "insert", "clean", "gently")


@pytest.fixture(scope="module")
def step() -> Callable[..., Any]:
    return jax.jit(TASK.step, compiler_options=compiler_options(TASK, "cpu"))


def test_the_peg_begins_beside_the_hole_and_above_the_block():
    states = jit(jax.vmap(TASK.reset))(jax.random.split(jax.random.key(0), 500))
    info, place = states.info, np.asarray(states.data.qpos)
    hole = np.asarray(info["hole_x"])
    aside = place[:, 0] - hole
    assert np.abs(hole).max() <= peg.HOLE and np.ptp(hole) > 1.8 * peg.HOLE
    assert np.abs(aside).min() >= peg.ASIDE[0] - 1e-6 and np.abs(aside).max() <= peg.ASIDE[1] + 1e-6
    assert 0.4 < (aside > 0.0).mean() < 0.6, "on either side"
    assert np.abs(place[:, 2]).max() <= peg.TILTED and float(jnp.max(info["depth"])) == 0.0
    assert float(jnp.min(info["gap"])) > 0.03, "it touches nothing, however it tilts"


@pytest.mark.parametrize(
    "pose",
    [
        (0.0, 0.4, 0.0, 0.05), (0.1, 0.31, 0.4, 0.0), (0.02, 0.3, -0.2, -0.02), (0.05, 0.25, 0.0, 0.05),
        (0.058, 0.25, 0.05, 0.05), (-0.35, 0.25, -0.1, 0.0), (0.05, 0.2, 0.0, 0.05),
    ],
)  # fmt: skip
def test_gap_and_tip_are_those_of_the_geometries(pose):
    """Distances by MuJoCo: over the block, on its edge, beside it, in the hole and at its bottom."""
    m, (*place, hole) = TASK.physics.model, pose
    data = TASK.physics.at(np.array(place), np.zeros(3), np.zeros(3))
    data = data.replace(mocap_pos=np.array([[hole, 0.0, 0.0]], np.float32))
    info, host = jit(TASK.sensed)(data), TASK.physics.on_host(data)
    of = lambda name: m.geom(name).id  # noqa: E731
    gaps = [mujoco.mj_geomDistance(m, host, of("peg"), of(name), 5.0, None) for name in ("left", "right", "bottom")]
    assert float(info["gap"]) == pytest.approx(min(gaps), abs=1e-5)
    along = m.geom("peg").size[1] * host.geom("peg").xmat.reshape(3, 3)[:, 2]
    end = min((host.geom("peg").xpos + sign * along for sign in (-1.0, 1.0)), key=lambda point: point[2])
    assert np.asarray(info["tip_pos"]) == pytest.approx(end[[0, 2]] - [0.0, peg.RADIUS], abs=1e-5)


def test_the_velocity_of_the_tip_is_how_its_place_changes():
    seen, slight = jit(TASK.sensed), 1e-3
    place, speed = np.array([0.05, 0.35, 0.2]), np.array([0.1, -0.2, 1.5])
    before, after = (seen(TASK.physics.at(place + k * slight * speed, speed, np.zeros(3))) for k in (-0.5, 0.5))
    moved = (np.asarray(after["tip_pos"], float) - np.asarray(before["tip_pos"], float)) / slight
    assert np.asarray(seen(TASK.physics.at(place, speed, np.zeros(3)))["tip_vel"]) == pytest.approx(moved, abs=2e-3)


# ---- what is told


def told(*states: Any) -> tuple[float, dict[str, float]]:
    """Success, and how well each subtask was done."""
    task = PegInsert(horizon=len(states) - 1)
    value, extra = evaluate_metric(task.score(), states[1:], states[0])
    return float(value), {s.name: round(float(extra[s.metric]), 3) for s in task.instruction().subtasks}


def at(depth: float, tilt: float = 0.0, gap: float = 0.005, speed: float = 0.08, x: float = 0.0, **more: Any) -> Any:
    """A peg whose tip is at `depth` below the block's top, negative above it."""
    return moment(
        to_mouth=(x, depth), tip_pos=(0.0, 0.15 - depth), tip_vel=(0.0, -speed), tilt=tilt, gap=gap,
        depth=max(depth, 0.0) if abs(x) < peg.HALF_WIDTH else 0.0, **more,
    )  # fmt: skip


ABOVE, IN = at(-0.05, 0.3, gap=0.05, x=0.1), at(0.1)


@pytest.mark.parametrize(
    ("way", "success", "expected"),
    [
        ([ABOVE], 0.0, dict.fromkeys(SUBTASKS, 0.0)),
        ([at(-0.02), at(0.05), IN], 1.0, dict.fromkeys(SUBTASKS, 1.0)),
        ([at(-0.02), at(0.045)], 0.0, {**dict.fromkeys(SUBTASKS, 0.5), "aim": 1.0}),  # half of the way
        ([at(-0.02, tilt=0.2), at(0.05, tilt=0.1), IN], 1.0, {"aim": 0.0, "upright": 0.5, "clean": 1.0}),
        ([at(0.0, gap=0.0, x=0.05), at(0.05), IN], 1.0, {"aim": 0.0, "clean": 0.0, "gently": 1.0}),  # over the top
        ([at(-0.02), at(0.05, gap=0.0), IN], 1.0, {"clean": 1.0}),  # it may touch the sides of the hole
        ([at(-0.02), at(0.05, speed=0.2), IN], 1.0, {"gently": 0.5}),
        ([at(-0.05, speed=0.4), at(-0.02), at(0.05), IN], 1.0, {"gently": 1.0}),  # fast, far above
        ([at(-0.02), at(0.1, broken=True)], 0.0, dict.fromkeys(("upright", "insert", "clean", "gently"), 0.0)),
    ],
)  # fmt: skip
def test_a_peg_is_put_in_as_told(way, success, expected):
    seen = told(ABOVE, *way)
    assert seen[0] == success and {name: seen[1][name] for name in expected} == expected


def gently(state: Any) -> list[float]:
    """Over the hole and upright first, fast down to 3 cm above it, then at 0.08 m/s."""
    info = state.info
    x, tilt = float(info["to_mouth"][0]), float(info["tilt"])
    ready = abs(x) < 0.004 and abs(tilt) < 0.05
    above = -float(info["to_mouth"][1])
    down = -0.32 if ready and above < 0.04 else np.clip((0.03 - above) / 0.02, -1.0, 1.0)
    return [np.clip(x / 0.02, -1.0, 1.0), down, np.clip(-tilt / 0.1, -1.0, 1.0)]


def rammed(state: Any) -> list[float]:
    return [*np.clip([float(state.info["to_mouth"][0]) / 0.02, -1.0, -float(state.info["tilt"]) / 0.1], -1.0, 1.0)]


@pytest.mark.long
@pytest.mark.parametrize(("script", "gentle"), [(gently, True), (rammed, False)])
def test_success_does_not_say_how_the_peg_went_in(step, script, gentle):
    for key in range(3):
        states = [jit(TASK.reset)(jax.random.key(key))]
        for _ in range(TASK.horizon):
            states.append(step(states[-1], jnp.asarray(script(states[-1]), jnp.float32)))
        value, extra = evaluate_metric(TASK.score(), states[1:], states[0])
        done = [float(extra[s.metric]) for s in TASK.instruction().subtasks]
        assert value == 1.0 and (min(done) > 0.95 if gentle else done[-1] < 0.4), (key, done)
