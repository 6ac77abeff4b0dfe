"""Subgoals of robots: in order, each with a direction and an approach, and potentials that take back what they paid."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import jax.numpy as jnp
import pytest

from jaxreward.tasks import make_task
from jaxreward.tasks.documentation import subgoals_of

TASKS = ("door-open", "ball-roll", "package-push", "peg-insert", "cube-place", "cube-stack",
         "panda-push", "panda-cabinet", "ant-patrol-return")  # fmt: skip


def door(turn: float, x: float, gap: float) -> Any:
    """A state of door-open, as far as its subgoals read it."""
    info = {"door_turn": jnp.float32(turn), "hand_gaps": jnp.array([gap, 1.0]), "left_to_go": jnp.float32(1.9 - x)}
    return SimpleNamespace(info=info, data=SimpleNamespace(qpos=jnp.array([x, 0.0, 0.0, turn])))


def term(task: Any, name: str) -> Any:
    """The function of a fragment; the vocabulary is our own text."""
    defined: dict[str, Any] = {}
    exec(task.subgoals().joined(task.vocabulary()).source([name]), defined)
    return defined[name]


@pytest.mark.parametrize("name", TASKS)
def test_every_subgoal_has_a_direction_and_an_approach(name):
    found = subgoals_of(make_task(name))
    assert len(found.chain) >= 2 and found.reward
    for subgoal in found.chain:
        assert subgoal.directions and subgoal.approaches and not subgoal.events
        assert len(subgoal.flags) == len(subgoal.completions) <= 1
    assert found.chain[0].flags


@pytest.mark.parametrize(
    ("name", "done"),
    [("touching", (0.0, 0.5, 0.01)), ("ajar", (0.7, 0.5, 0.3)), ("beyond_wall", (0.0, 1.4, 0.3))],
)
def test_completions_pay_for_what_is_done_and_take_it_back(name, done):
    value, before, after = term(make_task("door-open"), f"{name}_potential"), door(0.0, 0.5, 0.3), door(*done)
    assert float(value(before, None, after)) == pytest.approx(0.99)
    assert float(value(after, None, before)) == pytest.approx(-1.0)
    assert float(value(before, None, before)) == 0.0
    flag = term(make_task("door-open"), f"{name}_flag")
    assert (flag(before).tolist(), flag(after).tolist()) == ([0.0], [1.0])


def test_approaches_pay_for_the_way_made_and_take_it_back():
    task: Any = make_task("door-open")
    here, there = door(0.1, 0.5, 0.3), door(0.4, 0.8, 0.1)
    approaches = [name for subgoal in task.subgoals().chain for name in subgoal.approaches]
    assert approaches == ["hands_closer", "opening", "passing"]
    for name in approaches:
        value = term(task, name)
        assert float(value(here, None, there)) > 0.0
        assert float(value(here, None, there) + value(there, None, here)) == pytest.approx(0.0, abs=1e-6)


def test_the_reward_of_the_door_is_paid_beyond_the_doorway_alone():
    value = term(make_task("door-open"), "through")
    assert float(value(None, None, door(1.0, 2.0, 0.3))) == 1.0
    assert float(value(None, None, door(1.0, 1.8, 0.3))) == 0.0


def test_an_ant_that_falls_gives_back_what_passing_paid():
    value = term(make_task("ant-patrol-return"), "on_way_home_potential")
    out, home, fallen = (
        SimpleNamespace(task_phase=jnp.int32(phase), x=SimpleNamespace(pos=jnp.array([[3.0, 0.0, height]])))
        for phase, height in ((0, 0.5), (1, 0.5), (1, 0.1))
    )
    assert float(value(out, None, home)) == pytest.approx(0.99)
    assert float(value(home, None, fallen)) == pytest.approx(-1.0)
