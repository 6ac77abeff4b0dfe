"""`from_functions`: a mistake is told once, by the name of the argument that has it, with what to do."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxreward as jr
from jaxreward.tasks import mistakes_in
from jaxreward.tasks.metrics import Mean, Reached


def reset(key):
    return {"at": jax.random.uniform(key), "key": key}


def step(state, action):
    return {"at": state["at"] + action[0], "key": state["key"]}


def passes(state):
    return state["at"] > 1.0


def of_one(state):
    return (state["at"] > 1.0)[None]  # <- of_one


def with_terms(view, action, next_view):
    total = next_view["at"]
    return total, {"gain": total}  # <- with_terms


def forgets(state, action):  # <- forgets
    step(state, action)


def swapped(action, state):  # <- swapped
    return step(state, action)


def as_gym(state, action):
    return step(state, action), 1.0, False, {}  # <- as_gym


def narrows(state, action):
    return {"at": (state["at"] + action[0]).astype(jnp.float16), "key": state["key"]}  # <- narrows


def yields(state, action):
    yield state


def by_numpy(state, action):
    return {"at": np.sin(state["at"]), "key": state["key"]}  # <- by_numpy


def on_the_host(state, action, **how):
    moved = jax.pure_callback(lambda at, by: at + by[..., 0], state["at"], state["at"], action, **how)
    return {**state, "at": moved}


def one_at_a_time(state, action):
    moved = jax.pure_callback(np.add, state["at"], state["at"], action[0])  # <- one_at_a_time
    return {**state, "at": moved}


MISTAKES: dict[str, tuple[dict[str, Any], str]] = {
    "success of one": (
        {"success": of_one}, "`success` returns bool (1,), and must return a bool of shape (): select one, or use .",
    ),
    "success of numbers": ({"success": lambda s: s["at"]}, "`success` returns float32 (), and must return a bool of "),
    "success of two": ({"success": lambda s, a: s}, "`success` takes (s, a) and is called with (state): write def suc"),
    "success that is none": ({"success": True}, "`success` is a bool, and must be a function: write def success(sta"),
    "success of the hidden": ({"view": lambda s: {"x": s["at"]}}, ": give reward(view, action, next_view) too"),
    "success of a key": (
        {"success": lambda s: jax.random.key_data(s["key"])[0] > 1}, "asks `success` about a view, which lacks",
    ),
    "reward and terms": (
        {"success": None, "reward": with_terms},
        "`reward` returns a tuple of 2, and must return a real number, shape (): the total alone, terms are for",
    ),
    "reward of one": (
        {"success": None, "reward": lambda s, a, n: n["at"][None]},
        "`reward` returns float32 (1,), and must return a real number, shape (): select one, or use .sum()",
    ),
    "reward of two": (
        {"reward": lambda s, a: 0.0}, "`reward` takes (s, a) and is called with (view, action, next_view): write def r",
    ),
    "observation of none": ({"observation": lambda v: None}, "`observation` returns None: end it with a return"),
    "observation of nothing": ({"observation": lambda v: []}, "`observation` returns no array: return at least one"),
    "observation of fields": ({"observation": ["at"]}, "`observation` is a list, and must be a function: write def"),
    "terminated of one": ({"terminated": of_one}, "`terminated` returns bool (1,), and must return a bool of shape ()"),
    "a metric's class": ({"success": None, "score": Reached}, "`score` is the class Reached: give an object of it"),
    "a metric of several": (
        {"success": None, "score": Mean(lambda s, a, n: n["at"][None], 4)}, "`Mean.figure` returns float32 (1,), and",
    ),
    "words of no array": (
        {"state_words": {"att": "metres"}}, "`state_words` names 'att', which is no array of the view: did you mean 'a",
    ),
    "words in a list": ({"state_words": ["at"]}, "`state_words` is a list, and must be a dictionary, from the path"),
    "a step without return": ({"step": forgets}, "`step` returns None: end it with a return statement"),
    "a step with swapped arguments": (
        {"step": swapped}, "`step` takes (action, state) and is called with (state, action): write def step(state",
    ),
    "a step as gym has it": ({"step": as_gym}, "`step` returns a tuple of 4, and must return the next state alone"),
    "a step that narrows": (
        {"step": jax.jit(narrows)}, "`step` turns state.at from float32 () into float16 (): add .astype(jnp.float32)",
    ),
    "a generator": ({"step": yields}, "`step` must be a plain function: no async def, no yield"),
    "a step of the host that is not batched": (
        {"step": one_at_a_time}, "`step` calls a function of the host that is not batched, and many environments step",
    ),
    "a step by numpy": ({"step": by_numpy}, "`step` fails: numpy is given an array of JAX: use jax.numpy"),
    "no function": ({"step": 3}, "`step` is an int, and must be a function: write def step(state, action)"),
    "actions of another kind": (
        {"action_space": jr.Discrete(2)}, "; it is given a state of `reset` and an action of the Discrete, int32 ()",
    ),
    "a state instead of reset": ({"reset": {"at": 0.0}}, "`reset` is a dict, and must be a function: write def reset("),
    "a count that becomes real": (
        {"reset": lambda key: {"at": jnp.zeros((), int), "key": key}},
        "`step` turns state.at from int32 () into float32 (): add .astype(jnp.int32), or begin with jnp.float32",
    ),
    "reset as gym has it": (
        {"reset": lambda key: (reset(key), {}), "success": lambda s: jnp.ones((), bool)},
        "; its state is all that `reset` returns, a tuple of 2: return the state alone there",
    ),
}  # fmt: skip


@pytest.mark.parametrize("what", MISTAKES)
def test_a_mistake_is_told_by_the_argument_that_has_it(what: str):
    given, says = MISTAKES[what]
    call = {"reset": reset, "step": step, "action_space": jr.Box((1,)), "horizon": 4, "success": passes, **given}
    (finding,) = mistakes_in(jr.from_functions(**call), quick=True)
    assert says in finding.message and "\n" not in finding.message
    assert finding.file in ("", __file__), "no line of this package"
    marked = [f"# <- {function.__name__}" for function in given.values() if hasattr(function, "__name__")]
    lines = Path(__file__).read_text().splitlines()
    here = [n for n, line in enumerate(lines, 1) if any(line.endswith(mark) for mark in marked)]
    assert not here or [finding.line] == here


def test_a_worst_that_is_no_number_is_told_at_once():
    with pytest.raises(jr.UserError, match="worst must be a finite number, not 'low'"):
        jr.from_functions(reset, step, jr.Box((1,)), 4, reward=lambda s, a, n: 0.0, worst="low")  # pyright: ignore


def test_a_horizon_of_numpy_is_a_whole_number():
    task = jr.from_functions(reset, step, jr.Box((1,)), np.int64(4), success=passes)  # pyright: ignore
    assert type(task.horizon) is int and not mistakes_in(task, quick=True)


@pytest.fixture(scope="module")
def hosted():
    step = partial(on_the_host, vmap_method="broadcast_all")
    return jr.from_functions(reset, step, jr.Box((1,)), 4, reward=lambda s, a, n: n["at"], name="host")


@pytest.mark.long
def test_a_step_of_the_host_is_a_step(hosted):
    assert not mistakes_in(hosted)
    states = jax.vmap(hosted.reset)(jax.random.split(jax.random.key(0), 3))
    found = jax.jit(jax.vmap(hosted.step))(states, jnp.ones((3, 1)))
    np.testing.assert_allclose(found["at"], states["at"] + 1.0)


def test_a_call_that_is_batched_by_hand_or_needs_no_batch_is_a_step():
    @jax.custom_batching.custom_vmap
    def moved(at, by):
        return jax.pure_callback(np.add, at, at, by)

    @moved.def_vmap
    def _(size, batched, at, by):
        return jax.pure_callback(np.add, at, at, by), True

    def step(state, action):
        table = jax.pure_callback(lambda: np.float32(2.0), jax.ShapeDtypeStruct((), jnp.float32))
        return {**state, "at": moved(state["at"], action[0]) + 0.0 * table}

    task = jr.from_functions(reset, step, jr.Box((1,)), 4, reward=lambda s, a, n: n["at"], worst=0.0, name="by hand")
    assert not mistakes_in(task, quick=True)


@pytest.mark.slow
def test_a_step_of_the_host_is_trained_on(hosted):
    small = jr.PPO(envs=2, unroll=2, minibatches=1, hidden=(4,))
    result = jr.train(hosted, lambda s, a, n: n["at"], small, seeds=1, steps=8, checkpoints=1, eval_episodes=2)
    assert np.isfinite(result.success).all() and not result.diverged.any()
