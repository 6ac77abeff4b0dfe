"""`BaseTask` and `from_functions`: what a task leaves out has the default that is documented."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import chex
import jax
import jax.numpy as jnp
import pytest
from flax import struct

from jaxreward.errors import InvalidSetting, UserError
from jaxreward.programs.spec import Spec
from jaxreward.records import Measure
from jaxreward.tasks import BaseTask, Box, Discrete, Task, digest_of, from_functions, measure_of, mistakes_in
from jaxreward.tasks.from_file import task_from_file
from jaxreward.tasks.metrics import Mean, Reached, Sum, WithExtraMetrics, extra_values
from jaxreward.tasks.random_keys import without_keys


class Ball(NamedTuple):
    at: jax.Array
    key: jax.Array


class RollToOne(BaseTask):
    """Roll a ball to 1.

    It starts at 0.
    """

    horizon = 8
    action_space = Discrete(2)

    def reset(self, key):
        return Ball(jnp.zeros(()), key)

    def step(self, state, action):
        return state._replace(at=state.at + 0.4 * (2 * action - 1))

    def success(self, state):
        return state.at > 1.0


def played(task: Any, *actions: int) -> list[Any]:
    states = [task.reset(jax.random.key(0))]
    for action in actions:
        states.append(task.step(states[-1], jnp.asarray(action)))
    return states


def value(task: Any, states: list[Any]) -> float:
    metric = task.score()
    acc = metric.init()
    for before, after in pairwise(states):
        acc = metric.update(acc, before, jnp.asarray(0), after)
    return float(metric.value(acc))


def test_success_ends_an_episode_pays_once_and_is_the_metric():
    task = RollToOne()
    assert isinstance(task, Task) and mistakes_in(task) == ()
    states = played(task, 1, 1, 1)
    views = [task.view(state) for state in states]
    rewards = [float(task.sparse_reward(a, jnp.asarray(1), b)) for a, b in pairwise(views)]
    assert rewards == [0.0, 0.0, 1.0]
    assert [bool(task.terminated(state)) for state in states] == [False, False, False, True]
    assert value(task, states) == 1.0 and value(task, states[:3]) == 0.0
    assert task.default_observation(views[2]).tolist() == pytest.approx([0.8])


def test_name_and_description_are_those_of_the_class():
    assert RollToOne().name == "roll-to-one"
    assert RollToOne().description == "Roll a ball to 1.\n\nIt starts at 0."

    class XYRobot2D(RollToOne): ...

    @dataclasses.dataclass(frozen=True)
    class Roll(RollToOne):
        horizon: int = 5  # pyright: ignore[reportIncompatibleVariableOverride]

    assert XYRobot2D().name == XYRobot2D().description.replace(" ", "-") == "xy-robot2-d"
    assert Roll(3).horizon == 3 and Roll().description == "roll"  # not the signature that dataclasses write


def test_random_keys_are_left_out_of_views():
    old = jax.random.PRNGKey(0)
    raw = {
        "at": jnp.zeros(2),
        "key": old,
        "next_rng": old[None],
        "keys": old[None],
        "rng_state": old,
        "in": (old, [old]),
    }
    kept = {"key": jnp.zeros(2, jnp.int32), "places": jnp.zeros(2, jnp.uint32), "rng": jnp.zeros(3, jnp.uint32)}
    assert [leaf.name for leaf in Spec.of(without_keys(raw), jnp.zeros(())).leaves] == ["at"]
    assert jax.tree.structure(without_keys(kept)) == jax.tree.structure(kept)
    assert without_keys(Ball(jnp.zeros(()), jax.random.key(0))).key is None


def test_an_extra_metric_without_a_value_is_the_worst_of_its_measure():
    distance = Mean(lambda s, a, n: n.at, 1, Measure(name="gap", rate=False, higher_is_better=False, worst=3.0))
    metric = WithExtraMetrics(Reached(lambda s: s.at > 9.0), {"gap": distance, "got": Reached(lambda s: s.at > 0.0)})
    for value, gap in ((0.5, 0.5), (float("nan"), 3.0), (float("inf"), 3.0), (-float("inf"), 3.0)):
        state = Ball(jnp.asarray(value), jax.random.key(0))
        acc = metric.update(metric.init(), state, jnp.asarray(0), state)
        assert extra_values(metric, acc).tolist() == [gap, float(value == 0.5 or value == float("inf"))]


class OfFlax(struct.PyTreeNode):
    at: jax.Array
    key: jax.Array


@chex.dataclass(frozen=True)
class OfChex:
    at: jax.Array
    key: jax.Array


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class Registered:
    at: jax.Array
    key: jax.Array


@dataclasses.dataclass(frozen=True)
class Plain:
    at: jax.Array
    key: jax.Array


def rolling(state: Callable[..., Any]) -> Any:
    return from_functions(
        lambda key: state(at=jnp.zeros(()), key=key),
        lambda s, action: state(at=s.at + 0.4 * (2 * action - 1), key=s.key),
        Discrete(2), 8, success=lambda s: s.at > 1.0,
    )  # fmt: skip


@pytest.mark.parametrize("state", [Ball, OfFlax, OfChex, Registered])
def test_states_are_any_pytree(state: Callable[..., Any]):
    task = rolling(state)
    assert mistakes_in(task) == ()
    assert [leaf.name for leaf in Spec.of(task).leaves] == ["at"]


def test_a_plain_dataclass_is_refused_with_what_to_do():
    (finding,) = mistakes_in(rolling(Plain))
    assert "`reset` returns a Plain" in str(finding) and "register_dataclass" in str(finding)


class Height(RollToOne):
    """Another metric."""

    metric: Any = None
    success = BaseTask.success

    def score(self):
        return self.metric


SUM = Sum(lambda s, a, after: after.at, Measure(name="height", rate=False))
COST = Mean(lambda s, a, after: after.at, 8, Measure(name="cost", rate=False, higher_is_better=False))


@pytest.mark.parametrize(
    "metric, reward",
    [(SUM, 0.4), (COST, -0.4), (Reached(lambda s: s.at > 0.3), 1.0), (WithExtraMetrics(SUM, {"cost": COST}), 0.4)],
)
def test_without_success_the_sparse_reward_is_what_a_step_counts(metric: Any, reward: float):
    task = Height()
    task.metric = metric
    assert mistakes_in(task) == ()
    before, after = (task.view(state) for state in played(task, 1))
    assert float(task.sparse_reward(before, jnp.asarray(1), after)) == pytest.approx(reward)
    assert not bool(task.terminated(played(task, 1, 1, 1)[-1]))


def test_a_task_without_success_is_told_what_to_write():
    class Aimless(RollToOne):
        success = BaseTask.success

    assert any("write success(self, state), or score(self)" in str(finding) for finding in mistakes_in(Aimless()))
    task = Height()
    task.metric = object()
    with pytest.raises(UserError, match="write sparse_reward"):
        task.sparse_reward(None, jnp.asarray(0), None)


def test_success_that_reads_what_the_view_hides_is_told_what_to_write():
    class Hidden(RollToOne):
        def view(self, state):
            return {"near": state.at > 0.5}

    (finding,) = mistakes_in(Hidden())
    assert "write sparse_reward(self, view, action, next_view) too" in str(finding)


# ---- from functions


def reset(key):
    return {"at": jax.random.uniform(key), "key": key}


def push(state, action):
    """Push a block."""
    return {"at": state["at"] + action[0], "key": state["key"]}


def test_the_sum_of_a_reward_is_the_metric_and_random_play_its_worst():
    task = from_functions(reset, push, Box((1,)), 4, reward=lambda s, a, after: -jnp.abs(after["at"]), name="push")
    assert mistakes_in(task) == () and task.description == "Push a block."
    measure = measure_of(task)
    assert (measure.name, measure.rate) == ("return", False) and -16.0 < measure.worst < 0.0
    assert measure_of(from_functions(reset, push, Box((1,)), 4, reward=lambda s, a, n: 1.0)).worst == 0.0
    given = from_functions(reset, push, Box((1,)), 4, reward=lambda s, a, n: -1.0, worst=-9.0)
    assert measure_of(given).worst == -9.0
    assert jax.jit(lambda: task.score().init())() == 0.0  # made while something is traced


def test_functions_replace_the_defaults():
    task = from_functions(
        reset, push, Box((1,)), 4, success=lambda s: s["at"] > 1.0, reward=lambda s, a, after: after["at"],
        terminated=lambda s: s["at"] < 0.0, view=lambda s: {"at": s["at"]},
        observation=lambda s: [s["at"], s["at"] > 1], state_words={"at": "m"},
    )  # fmt: skip
    assert mistakes_in(task) == ()
    state = {"at": jnp.asarray(2.0), "key": jax.random.key(0)}
    assert not bool(task.terminated(state)) and bool(task.score().goal(state))  # type: ignore[attr-defined]
    assert task.default_observation(task.view(state)).tolist() == [2.0, 1.0]
    assert float(task.sparse_reward(state, jnp.zeros(1), task.view(state))) == 2.0
    with pytest.raises(InvalidSetting, match="give success, reward or score"):
        from_functions(reset, push, Box((1,)), 4)


def test_a_mistake_in_a_function_is_found_at_its_line():
    def drifts(state, action):
        return {"at": state["at"].astype(jnp.float16), "key": state["key"]}  # this line

    (finding, *_) = mistakes_in(from_functions(reset, drifts, Box((1,)), 4, success=lambda s: s["at"] > 1.0))
    line = Path(__file__).read_text().splitlines()[finding.line - 1]
    assert finding.file == __file__ and line.endswith("# this line")


FILE = """
import jax, jaxreward as jr

def reset(key):
    return {"at": jax.random.uniform(key)}

def step(state, action):
    return {"at": state["at"] + action[0]}

near = jr.from_functions(reset, step, jr.Box((1,)), 4, success=lambda s: s["at"] > 1.0, name="near")
"""


def test_a_file_may_make_its_task(tmp_path: Path):
    file = tmp_path / "block.py"
    file.write_text(FILE)
    task = task_from_file(str(file))
    assert task.name == "near" and task is task_from_file(f"{file}:near") and len(digest_of(task)) == 64
    with pytest.raises(InvalidSetting, match="change horizon there"):
        task_from_file(str(file), horizon=3)
    file.write_text(FILE + FILE[FILE.index("near =") :].replace("near =", "far ="))
    with pytest.raises(InvalidSetting, match=r"block\.py:near or .*block\.py:far"):
        task_from_file(str(file))


def test_the_task_of_a_file_need_not_be_of_ours_by_class(tmp_path: Path):
    """An object with the protocol counts, unless the file makes a task of its own besides."""
    file = tmp_path / "other.py"
    file.write_text("import jaxreward as jr\n\ninner = jr.make_task('probe-choice')\n")
    assert not isinstance(task_from_file(str(file)), BaseTask) and task_from_file(str(file)).name == "probe-choice"
    file.write_text(f"{FILE}\ninner = jr.make_task('probe-choice')\n")
    assert task_from_file(str(file)).name == "near" and task_from_file(f"{file}:inner").name == "probe-choice"
