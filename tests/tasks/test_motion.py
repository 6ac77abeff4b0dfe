"""Velocities, angles and places: how they are told apart, on motions made by hand."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest

from jaxreward.tasks.automatic.angles import turned_elements
from jaxreward.tasks.automatic.features import features
from jaxreward.tasks.automatic.play import Play
from jaxreward.tasks.automatic.scene import MOST_NUMBERS, Hints, Scene, scene_of
from jaxreward.tasks.automatic.terms import terms
from jaxreward.tasks.task import Box

STEPS = 400


def scene(before: dict[str, Any], after: dict[str, Any], actions: Any = None, hints: Hints | None = None) -> Scene:
    n = len(next(iter(before.values())))
    zero, noise = np.zeros(n, np.float32), np.random.default_rng(7).uniform(-1, 1, (n, 1)).astype(np.float32)
    taken = noise if actions is None else actions
    reward = np.asarray(after.get("paid", zero), np.float32)
    return scene_of(Play(before, after, taken, reward, zero, reward, zero, np.arange(n), False), 10, hints)


def pushed(size: int, limit: float, wall: float) -> tuple[Any, ...]:
    """A mass in a box, pushed by actions: velocity clamped at `limit`, place at `wall`, where the velocity stays."""
    rng = np.random.default_rng(0)
    actions = rng.uniform(-1, 1, (STEPS + 1, size)).astype(np.float32)
    x, v = np.zeros((STEPS + 1, size), np.float32), np.zeros((STEPS + 1, size), np.float32)
    for t in range(STEPS):
        v[t + 1] = np.clip(v[t] + 0.2 * actions[t], -limit, limit)
        x[t + 1] = np.clip(x[t] + v[t + 1], -wall, wall)
    return x, v, actions[:STEPS]


@pytest.mark.parametrize("names", [("a", "b"), ("cart_position", "cart_velocity"), ("b", "a")])
def test_a_velocity_is_told_though_it_and_the_place_are_clamped(names):
    place, speed = names
    x, v, actions = pushed(1, limit=0.3, wall=1.0)
    assert (np.abs(x) == 1.0).mean() > 0.3 and (np.abs(v) == np.float32(0.3)).mean() > 0.2
    sides = [{place: y[:, 0], speed: w[:, 0]} for y, w in ((x[:-1], v[:-1]), (x[1:], v[1:]))]
    rates = {n.name: n.is_rate for n in scene(sides[0], sides[1], actions).numbers}
    assert rates == {place: False, speed: True}

    x, v, actions = pushed(2, limit=0.3, wall=1.0)
    found = scene({place: x[:-1], speed: v[:-1]}, {place: x[1:], speed: v[1:]}, actions)
    assert {p.field: p.is_rate for p in found.places} == {place: False, speed: True}
    assert found.agent is not None and found.agent.field == place


def test_an_acceleration_does_not_make_a_place_of_a_velocity():
    """Near an unstable point the velocity grows with the place, as the place with the velocity."""
    rng = np.random.default_rng(0)
    x, v = rng.normal(size=(2, STEPS)).astype(np.float32)
    found = scene({"p": x, "speed": v}, {"p": x + 0.05 * v, "speed": v + 0.05 * x})
    assert {n.name: n.is_rate for n in found.numbers} == {"p": False, "speed": True}


def test_a_place_that_leaps_is_no_velocity_if_it_is_called_a_place():
    rng = np.random.default_rng(0)
    x, goal = rng.uniform(-2, 2, (2, STEPS, 2)).astype(np.float32)
    actions = rng.uniform(-1, 1, (STEPS, 2)).astype(np.float32)
    found = scene({"ball_position": x, "goal": goal}, {"ball_position": x + 2 * actions, "goal": goal}, actions)
    assert found.agent is not None and found.agent.name == "ball"
    assert [p.name for p in found.targets] == ["goal"]


def joints(name: str) -> tuple[Any, ...]:
    rng = np.random.default_rng(0)
    q, w = rng.uniform(-2, 2, (2, STEPS, 2)).astype(np.float32)
    return {name: q, "tip": q + 0.1}, {name: q + 0.05 * w, "tip": q + 0.1}, 50 * w


@pytest.mark.parametrize(
    ("name", "hints"), [("qpos", Hints()), ("joint_angles", Hints()), ("a", Hints(turned={0: {0, 1}}))]
)
def test_angles_of_two_joints_are_no_place(name, hints):
    before, after, actions = joints(name)
    found = scene(before, after, actions, hints)
    assert name not in {p.field for p in found.places}
    made = {d.name: d.source for d in (*features(found), *terms(found, Box((2,))))}
    assert {f"{name}_0_sine_cosine", f"{name}_1_sine_cosine"} <= made.keys()
    assert not [n for n, text in made.items() if "distance" in n and f"state['{name}']" in text]


def test_the_place_in_hilly_land_is_no_angle_and_what_is_turned_is():
    def step(s: Any) -> Any:
        half = 0.5 * (s["joints"] - jnp.array([0.1, 0.2, 0.3]))
        return jnp.cos(3 * s["at"]) + jnp.sin(s["turn"][1]) + jnp.sin(half[2]), jnp.stack([jnp.cos(s["cart"][0:1])])

    state = {"at": 0.0, "cart": jnp.zeros(2), "joints": jnp.zeros(3), "turn": jnp.zeros(4)}
    assert turned_elements(step, (state,)) == {1: {0}, 2: {2}, 3: {1}}


def test_a_goal_that_random_play_never_comes_near_has_a_way_to_it():
    rng = np.random.default_rng(0)
    x, other = rng.uniform(-1, 1, (2, STEPS, 2)).astype(np.float32)
    actions = rng.uniform(-1, 1, (STEPS, 2)).astype(np.float32)
    far = np.full((STEPS, 2), 500.0, np.float32)
    before = {"agent": x, "b": far, "c": far + 300.0, "d": 0.1 * other}
    found = scene(before, {**before, "agent": x + 0.05 * actions}, actions)
    assert {p.name for p in found.targets} == {"d"}
    hints = Hints(subtracted={frozenset([0, 1])})  # as the task subtracts the two
    found = scene(before, {**before, "agent": x + 0.05 * actions}, actions, hints)
    assert {p.name for p in found.targets} == {"b", "d"}
    named = {"agent": x, "goal": far, "far": far}
    found = scene(named, {**named, "agent": x + 0.05 * actions}, actions)
    assert {p.name for p in found.targets} == {"goal"}
    assert {"agent_to_goal_offset", "agent_to_goal_distance"} <= {d.name for d in features(found)}


def test_of_many_numbers_those_count_that_tell_of_the_reward():
    x = np.random.default_rng(0).normal(size=(STEPS, 3 * MOST_NUMBERS)).astype(np.float32)
    before = {f"n{k:03}": column for k, column in enumerate(x.T)} | {"paid": np.zeros(STEPS, np.float32)}
    after = {name: column + 0.01 for name, column in before.items()}
    after["paid"] = (x[:, 150] > 0).astype(np.float32)
    kept = [n.name for n in scene(before, after).numbers]
    assert len(kept) == MOST_NUMBERS and "n150" in kept and kept == sorted(kept)
