"""What tasks on Brax's environments measure, by hand, and their options."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest

from jaxreward.errors import InvalidSetting, UnknownName
from jaxreward.tasks import make_task, measure_of, metric_names, options_of
from tests.tasks.cases import evaluate_metric


def at(x: float, y: float = 0.0, reward: float = 0.0, up: float = 1.0, phase: int = 0, broken: bool = False) -> Any:
    """A state of an ant at (x, y), turned about its forward axis until its up axis points up by `up`."""
    half = np.arccos(up) / 2
    rot = jnp.array([[np.cos(half), np.sin(half), 0.0, 0.0]], jnp.float32)
    pipeline = SimpleNamespace(
        q=jnp.zeros(15), qd=jnp.zeros(14), x=SimpleNamespace(pos=jnp.array([[x, y, 0.5]]), rot=rot),
        xd=SimpleNamespace(vel=jnp.zeros((1, 3)), ang=jnp.zeros((1, 3))),
    )  # fmt: skip
    return SimpleNamespace(
        pipeline=pipeline, reward=jnp.float32(reward), done=jnp.zeros((), bool), broken=jnp.array(broken),
        last_action=jnp.zeros(8), step_count=jnp.int32(0), own={"task_phase": jnp.int32(phase)},
    )  # fmt: skip


def test_return_and_speed_equal_a_calculation_by_hand():
    first, *states = [at(0.0), at(0.1, reward=2.0), at(0.3, reward=-0.5)]
    paid: Any = make_task("ant", horizon=10)
    value, extra = evaluate_metric(paid.score(), states, first)
    assert value == 1.5 and extra == pytest.approx({"speed": 0.3 / 0.5}), "0.3 m in the 0.5 s of the horizon"
    assert (measure_of(paid).name, measure_of(paid).rate, metric_names(paid)) == ("return", False, ("speed",))
    fast: Any = make_task("ant", horizon=10, metric="speed")
    value, extra = evaluate_metric(fast.score(), states, first)
    assert value == pytest.approx(0.6) and extra == {"return": 1.5}
    assert (measure_of(fast).unit, metric_names(fast)) == ("m/s", ("return",))
    value, extra = evaluate_metric(paid.score(), [*states, at(9.0, reward=0.0, broken=True)], first)
    assert np.isnan(value) and extra["speed"] == pytest.approx(0.6), "the extra metric stays a number"


def test_to_lie_down_is_counted_over_the_horizon():
    task: Any = make_task("ant-lie-down", horizon=4)
    states = [at(0), at(0, up=1.0), at(0, up=-0.89), at(0, up=-0.91)]
    assert evaluate_metric(task.score(), states[1:], states[0])[0] == 0.25 and measure_of(task).rate
    views = [task.view(s) for s in states]
    assert [float(task.sparse_reward(v, jnp.zeros(8), v)) for v in views] == [0.0, 0.0, 0.0, 1.0]
    np.testing.assert_allclose([v.orientation for v in views], [-1.0, -1.0, 0.89, 0.91], atol=1e-6)
    assert not bool(task.terminated(states[2].__class__(**vars(states[2]) | {"done": jnp.array(True)})))


def test_a_patrol_succeeds_past_the_checkpoint_and_back():
    task: Any = make_task("ant-patrol-return", checkpoint=2.0)
    states = [at(0.0), at(1.9), at(0.1), at(2.0, phase=1), at(0.3, 0.5, phase=1)]
    assert [bool(task.terminated(s)) for s in states] == [False] * 5
    assert evaluate_metric(task.score(), states[1:], states[0])[0] == 0.0
    home = at(0.3, 0.3, phase=1)
    assert evaluate_metric(task.score(), [*states[1:], home], states[0])[0] == 1.0 and bool(task.terminated(home))
    phase = lambda state, x: int(task.next_own(state, at(x).pipeline)["task_phase"])  # noqa: E731
    assert [phase(at(0), 1.99), phase(at(0), 2.0), phase(at(2, phase=1), 0.0)] == [0, 1, 1]
    out, back = task.view(states[1]), task.view(home)
    assert float(out.dist_to_start) == pytest.approx(1.9) and float(out.checkpoint) == 2.0
    nothing = jnp.zeros(8)
    assert float(task.sparse_reward(out, nothing, back)) == 1.0
    assert float(task.dense_reward(out, nothing, task.view(states[3]))) == pytest.approx(0.2, abs=1e-5)
    assert float(task.dense_reward(task.view(states[3]), nothing, task.view(states[4]))) > 0.0


# ---- options


def test_invalid_and_unknown_options_are_named():
    for name, options in (
        ("hopper", {"backend": "warp"}),
        ("hopper", {"metric": "height"}),
        ("ant", {"horizon": 0}),
        ("ant", {"kind": "hopper"}),
        ("ant-patrol-return", {"checkpoint": 0.2}),
    ):
        with pytest.raises(InvalidSetting) as invalid:
            make_task(name, **options)
        assert invalid.value.settings == tuple(f"task.{option}" for option in options)
    with pytest.raises(UnknownName) as unknown:
        make_task("reacher", metric="speed")
    assert (unknown.value.kind, unknown.value.name) == ("option", "metric")
    assert unknown.value.known == tuple(options_of(make_task("reacher")))
    assert "x = 2 m" in make_task("ant-patrol-return", checkpoint=2.0).description
    assert "mean forward speed" in make_task("ant", metric="speed").description
