"""What RF-Agent's robot tasks are measured by and pay for, on moments made by hand."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import jax.numpy as jnp
import pytest

from jaxreward.tasks import measure_of
from jaxreward.tasks.robots.cabinet import PandaCabinet
from jaxreward.tasks.robots.package import PackagePush
from jaxreward.tasks.robots.push import PandaPush
from jaxreward.tasks.robots.quadcopter import QuadcopterHover
from jaxreward.tasks.robots.quadruped import QuadrupedVelocity
from tests.tasks.cases import evaluate_metric


def moment(broken: bool = False, upright: bool = True, **info: Any) -> Any:
    quat = [1.0, 0.0, 0.0, 0.0] if upright else [0.0, 1.0, 0.0, 0.0]
    data = SimpleNamespace(
        broken=jnp.asarray(broken), qpos=jnp.array([0.0, 0.0, 0.3, *quat, *[0.0] * 12]), qvel=jnp.zeros(18)
    )
    return SimpleNamespace(data=data, info={name: jnp.asarray(x, jnp.float32) for name, x in info.items()})


def test_hovering_is_measured_by_distance():
    task = QuadcopterHover(horizon=4)
    measure = measure_of(task)
    assert (measure.higher_is_better, measure.rate, measure.worst, measure.unit) == (False, False, 3.0, "m")
    at = lambda d: moment(target_dist=d)  # noqa: E731
    value, extra = evaluate_metric(task.score(), [at(0.5), at(0.3), at(0.09), at(0.01)])
    assert value == pytest.approx(0.225) and extra["hover_rate"] == pytest.approx(0.5)
    value, extra = evaluate_metric(task.score(), [at(0.09), at(4.0)])
    assert value == pytest.approx((0.09 + 3 * 3.0) / 4, rel=1e-5), "the last step too far, two missing"
    assert extra["hover_rate"] == pytest.approx(0.25)
    assert evaluate_metric(task.score(), [moment(broken=True, target_dist=0.0)])[0] == pytest.approx(3.0)
    assert bool(task.terminated(at(3.1))) and not bool(task.terminated(at(2.9)))
    assert bool(task.terminated(at(float("nan"))))


def test_following_is_measured_by_squared_errors():
    task = QuadrupedVelocity(horizon=4)
    at = lambda *error, **more: moment(command_error=error, **more)  # noqa: E731
    value, extra = evaluate_metric(task.score(), [at(0.3, 0.4, 0.5)] * 2 + [at(0.1, 0.0, 0.0)] * 2)
    assert value == pytest.approx(-(0.5 + 0.5 + 0.01 + 0.01) / 4)
    assert extra == {"up_rate": 1.0, "tracking_rate": 0.5}
    value, extra = evaluate_metric(task.score(), [at(0.0, 0.0, 0.0), at(0.0, 0.0, 0.0, upright=False)])
    assert value == pytest.approx(-(0.0 + 3 * 9.0) / 4), "down, and two steps missing"
    assert extra == {"up_rate": 0.25, "tracking_rate": 0.25}
    assert evaluate_metric(task.score(), [at(10.0, 0.0, 0.0)] * 4)[0] == -9.0, "nothing counts as worse"
    assert evaluate_metric(task.score(), [at(0.0, 0.0, 0.0, broken=True)])[0] == -9.0


def pulled(out, speed=0.1, away=0.01, left=0.03, right=-0.03, **more):
    """The drawer, and the fingers along x from the handle."""
    handle = (0.7, 0.0, 0.2)
    tips = {name: (0.7 + x, 0.0, 0.2) for name, x in (("left_tip", left), ("right_tip", right))}
    return moment(drawer_pos=out, drawer_vel=speed, gripper_handle_dist=away, handle_pos=handle, **tips, **more)


def subtasks_done(*states):
    """How well each subtask of the cabinet's instruction was done."""
    task = PandaCabinet(horizon=len(states) - 1)
    extra = evaluate_metric(task.score(), states[1:], states[0])[1]
    return {s.name: pytest.approx(float(extra[s.metric]), abs=1e-5) for s in task.instruction().subtasks}


def test_a_drawer_is_opened_as_told():
    still = pulled(0.0, speed=0.0, away=0.5)
    assert subtasks_done(still, still, still) == {"reach": 0.0, "hold": 0.0, "pull": 0.0, "gently": 0.0}
    well = [still, *(pulled(x) for x in (0.1, 0.2, 0.3, 0.4))]
    assert subtasks_done(*well) == {"reach": 1.0, "hold": 1.0, "pull": 1.0, "gently": 1.0}
    half = [still, pulled(0.1), pulled(0.2, right=0.01), pulled(0.195, speed=-0.1)]
    assert subtasks_done(*half) == {"reach": 1.0, "hold": 0.5, "pull": 0.2 / 0.39, "gently": 1.0}
    shaken = [still, pulled(0.2, right=0.01), pulled(0.1), pulled(0.2), pulled(0.1), pulled(0.2)]
    assert subtasks_done(*shaken)["hold"] == 0.0, "way made a second time does not count"
    flung = [still, pulled(0.2, speed=0.6, away=0.3), pulled(0.4, speed=0.2, away=0.5)]
    assert subtasks_done(*flung) == {"reach": 0.0, "hold": 0.0, "pull": 1.0, "gently": 0.5}
    assert subtasks_done(still, pulled(0.4, speed=9.0))["gently"] == 0.0
    assert subtasks_done(still, pulled(0.4, broken=True)) == {"reach": 0.0, "hold": 0.0, "pull": 0.0, "gently": 0.0}


def shoved(x, gap=0.0, speed=0.1, goal=0.7, **more):
    """A puck at `x` on the way from 0.5 to 0.7 m."""
    places = {name: (at, 0.0, 0.14) for name, at in (("puck_pos", x), ("goal_pos", goal), ("start_pos", 0.5))}
    return moment(puck_vel=(speed, 0.0), puck_goal_dist=abs(goal - x), touch_gap=gap, **places, **more)


def pushed_as_told(*states):
    """How well each subtask of the push was done, and success."""
    task = PandaPush(horizon=len(states) - 1)
    value, extra = evaluate_metric(task.score(), states[1:], states[0])
    return float(value), [pytest.approx(float(extra[s.metric]), abs=1e-5) for s in task.instruction().subtasks]


def test_a_puck_is_pushed_as_told():
    first = shoved(0.5, gap=0.1, speed=0.0)
    assert pushed_as_told(first, first) == (0.0, [0.0, 0.0, 0.0, 0.0])
    assert pushed_as_told(first, shoved(0.55), shoved(0.6), shoved(0.68)) == (1.0, [1.0, 1.0, 1.0, 1.0])
    half = pushed_as_told(first, shoved(0.55), shoved(0.575, gap=0.1), shoved(0.6, gap=0.1))
    assert half == (0.0, [1.0, pytest.approx(0.5 * 0.1 / 0.15), 0.1 / 0.15, 0.1 / 0.15])
    hit = pushed_as_told(first, shoved(0.51, speed=1.0), shoved(0.7, gap=0.2, speed=0.5), shoved(0.9, gap=0.4))
    assert hit == (1.0, [1.0, pytest.approx(0.01 / 0.2), 1.0, 0.0]), "success does not say how"
    nudged = pushed_as_told(first, shoved(0.525), shoved(0.525, speed=0.0))[1]
    assert nudged == [1.0, *[pytest.approx(0.025 / 0.15)] * 3], "a manner counts as far as something comes of it"
    again = [shoved(0.6, gap=0.1), shoved(0.55), shoved(0.6), shoved(0.55), shoved(0.6)]
    assert pushed_as_told(first, *again)[1][1] == 0.0, "way made a second time does not count"
    assert pushed_as_told(first, shoved(0.7, broken=True)) == (0.0, [0.0, 0.0, 0.0, 0.0])


def test_a_package_is_pushed_with_both_hands():
    at = lambda x, *gaps: moment(  # noqa: E731
        package_pos=(x, 0.0), goal_pos=(2.0, 0.0), start_pos=(1.0, 0.0), package_vel=(0.3, 0.0),
        package_goal_dist=abs(2.0 - x), hand_gaps=gaps,
    )  # fmt: skip
    states = [at(1.0, 0.1, 0.1), at(1.4, 0.0, 0.01), at(1.8, 0.0, 0.3), at(1.9, 0.0, 0.0)]
    task = PackagePush(horizon=3)
    value, extra = evaluate_metric(task.score(), states[1:], states[0])
    said = [float(extra[subtask.metric]) for subtask in task.instruction().subtasks]
    assert (float(value), said) == (1.0, pytest.approx([1.0, 0.5 / 0.9, 1.0, 1.0])), "one hand is not both"


def test_opening_is_to_pass_39_centimetres_at_some_step():
    task = PandaCabinet(horizon=4)
    at = pulled
    value, extra = evaluate_metric(task.score(), [at(0.1), at(0.4), at(0.2)], at(0.0))
    assert value == 1.0 and extra["farthest"] == pytest.approx(0.4)
    assert extra["mean_position"] == pytest.approx(0.7 / 4)
    assert evaluate_metric(task.score(), [at(0.39)] * 4, at(0.0))[0] == 0.0
    assert evaluate_metric(task.score(), [at(0.4, broken=True)], at(0.0))[0] == 0.0


def test_sparse_rewards_are_paid_at_the_goal():
    quadcopter, quadruped, cabinet = QuadcopterHover(), QuadrupedVelocity(), PandaCabinet()
    pay = lambda task, **info: float(task.sparse_reward(None, None, moment(**info)))  # noqa: E731
    assert (pay(quadcopter, target_dist=0.05), pay(quadcopter, target_dist=0.11)) == (1.0, 0.0)
    up, tipped = (0.0, 0.0, 1.0), (0.0, 1.0, 0.0)
    assert pay(quadruped, command_error=(0.1, -0.1, 0.2), upvector=up) == 1.0
    assert pay(quadruped, command_error=(0.2, -0.2, 0.0), upvector=up) == 0.0
    assert pay(quadruped, command_error=(0.0, 0.0, 0.0), upvector=tipped) == 0.0
    assert (pay(cabinet, drawer_pos=0.4), pay(cabinet, drawer_pos=0.38)) == (1.0, 0.0)
    assert (pay(PandaPush(), puck_goal_dist=0.04), pay(PandaPush(), puck_goal_dist=0.06)) == (1.0, 0.0)
    assert (pay(PackagePush(), package_goal_dist=0.14), pay(PackagePush(), package_goal_dist=0.16)) == (1.0, 0.0)
