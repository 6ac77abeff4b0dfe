"""Tasks on environments of other libraries: they play as the library does, step by step, and never reset."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxreward as jr
from jaxreward.errors import InvalidSetting, MissingPackage, UnknownName, UserError
from jaxreward.programs.spec import Spec
from jaxreward.tasks import Drawable, has_real_actions, make_task, measure_of, mistakes_in
from jaxreward.tasks.adapters.actions import Actions, actions_of, box
from jaxreward.tasks.adapters.environment import EnvironmentTask, Transition
from jaxreward.tasks.adapters.library import description_of, import_library, words_of
from jaxreward.tasks.adapters.random_play import random_action

Played = tuple[Any, jax.Array, jax.Array]
"""The library's state, the reward and the end."""


class Library(NamedTuple):
    """How an environment is played by its library: `first(key)` and `next(state, action, key)`."""

    package: str
    first: Callable[[jax.Array], Any]
    next: Callable[[Any, jax.Array, Any], Played]


def of_gymnax(name: str) -> Library:
    env, params = pytest.importorskip("gymnax", reason="gymnax is an extra").make(name)

    def next(state: Any, action: jax.Array, key: Any) -> Played:
        _, state, reward, done, _ = env.step_env(key, state, action, params)
        return state, reward, done

    return Library("gymnax", lambda key: env.reset_env(key, params)[1], next)


def of_jumanji(name: str) -> Library:
    env = pytest.importorskip("jumanji", reason="jumanji is an extra").make(name)

    def next(state: Any, action: jax.Array, key: Any) -> Played:
        state, step = env.step(state, action)
        return state, step.reward, step.last()

    return Library("jumanji", lambda key: env.reset(key)[0], next)


def of_states(env: Any, package: str) -> Library:
    def next(state: Any, action: jax.Array, key: Any) -> Played:
        state = env.step(jax.tree.map(lambda x: x, state), action)
        return state, state.reward, state.done > 0.5

    return Library(package, env.reset, next)


def of_brax(name: str) -> Library:
    import_library("brax.envs", "brax", "brax")
    from brax import envs

    return of_states(envs.get_environment(name, backend="spring"), "brax")


def of_playground(name: str) -> Library:
    try:
        registry = import_library("mujoco_playground", "playground", "playground").registry
    except MissingPackage:
        pytest.skip("MuJoCo Playground is an extra")
    return of_states(registry.load(name, config_overrides={"impl": "jax"}), "playground")


CASES = [
    pytest.param("gymnax/CartPole-v1", of_gymnax),
    pytest.param("gymnax/Pendulum-v1", of_gymnax, marks=pytest.mark.slow),
    pytest.param("gymnax/Breakout-MinAtar", of_gymnax, marks=pytest.mark.slow),
    pytest.param("jumanji/Snake-v1", of_jumanji, marks=pytest.mark.slow),
    pytest.param("brax/hopper", of_brax, marks=pytest.mark.slow),
    pytest.param("playground/CartpoleBalance", of_playground, marks=pytest.mark.slow),
]
STEPS = 80


@pytest.mark.slow
@pytest.mark.usefixtures("unoptimised")
@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::UserWarning", "ignore::FutureWarning")
@pytest.mark.parametrize("name, library", CASES)
def test_an_environment_is_played_as_by_its_library(name: str, library: Callable[[str], Library]):
    """State, reward and end are equal at every step, also after the end, from which nothing is reset; programs see no
    key; the task has no mistake, and trains."""
    own = library(name.partition("/")[2])
    task: Any = make_task(name)
    key = jax.random.key(1)

    def steps(first: Any, next: Callable[[Any, jax.Array], Any]) -> Any:
        def step(state: Any, key: jax.Array) -> Any:
            after = next(state, random_action(task, key))
            return after, after

        return jax.lax.scan(step, first, jax.random.split(jax.random.key(2), STEPS))[1]

    def by_library(key: jax.Array) -> Any:
        first, later = jax.random.split(key) if own.package == "gymnax" else (key, key)
        shapes = jax.eval_shape(task.reset, key)
        like = lambda x, s: jnp.asarray(x, s.dtype) if isinstance(s.dtype, np.dtype) else x  # noqa: E731
        start = jax.tree.map(like, own.first(first), shapes.env), jnp.zeros(()), jnp.zeros((), bool), later

        def next(carry: Any, action: jax.Array) -> Any:
            key, later = jax.random.split(carry[3]) if own.package == "gymnax" else (None, carry[3])
            state, reward, done = own.next(carry[0], action, key)
            state = jax.tree.map(like, state, shapes.env)
            return state, jnp.asarray(reward, jnp.float32), jnp.asarray(done, bool), later

        return steps(start, next)

    state, reward, done, _ = jax.jit(by_library)(key)
    mine = jax.jit(lambda key: steps(task.reset(key), task.step))(key)
    for one, other in zip(jax.tree.leaves((state, reward, done)), jax.tree.leaves((mine.env, mine.reward, mine.done))):
        if jax.dtypes.issubdtype(one.dtype, jax.dtypes.prng_key):
            one, other = jax.random.key_data(one), jax.random.key_data(other)
        np.testing.assert_allclose(np.asarray(other), np.asarray(one), rtol=1e-5, atol=1e-5)
    count = next((x for n in ("time", "step_count") if (x := getattr(mine.env, n, None)) is not None), None)
    assert count is None or int(count[-1]) == STEPS
    assert not mine.broken.any()

    assert not any(leaf.name.endswith(("key", "rng")) for leaf in Spec.of(task).leaves)
    assert jr.check_task(task) == ()
    assert set(task.state_words) <= {leaf.name for leaf in Spec.of(task).leaves} | {"action"}
    small = jr.PPO(envs=8, unroll=8, hidden=(8,))
    result = jr.train(task, [jr.Program.default(task)], small, seeds=1, steps=256, checkpoints=1, eval_episodes=4)
    assert np.isfinite(result.success).all() and not result.diverged.any()


def test_names_of_environments():
    assert has_real_actions("brax/anything") and not has_real_actions("nowhere/hopper")
    with pytest.raises(UnknownName, match="there is no environment of brax 'hoper'; did you mean 'hopper'"):
        make_task("brax/hoper")
    task = make_task("brax/hopper", horizon=50)
    assert task is make_task("brax/hopper", horizon=50) and task.horizon == 50 and task.name == "brax/hopper"
    with pytest.raises(UserError, match="brax cannot make hopper with the backend steel"):
        make_task("brax/hopper", backend="steel")


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::UserWarning", "ignore::FutureWarning")
def test_names_and_options_of_gymnax():
    gymnax = pytest.importorskip("gymnax", reason="gymnax is an extra")
    assert has_real_actions("gymnax/Pendulum-v1") and not has_real_actions("gymnax/CartPole-v1")
    task = jr.from_gymnax("CartPole-v1", gravity=5.0, horizon=7)
    assert (task.name, task.horizon, task.params.gravity) == ("gymnax/CartPole-v1(gravity=5.0)", 7, 5.0)
    assert jr.from_gymnax(gymnax.make("CartPole-v1")[0]).name == "gymnax/CartPole-v1"
    with pytest.raises(UnknownName, match="did you mean 'CartPole-v1'"):
        jr.from_gymnax("CartPole-v0")
    with pytest.raises(InvalidSetting, match="gymnax cannot make CartPole-v1"):
        jr.from_gymnax("CartPole-v1", weight=5.0)
    solved = jr.from_gymnax("CartPole-v1", success=lambda view: view.env.x > 1.0)
    assert measure_of(solved).rate and mistakes_in(solved) == ()


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::UserWarning", "ignore::FutureWarning")
def test_minatar_is_drawn_by_the_kinds_of_things():
    pytest.importorskip("gymnax", reason="gymnax is an extra")
    assert not isinstance(jr.from_gymnax("CartPole-v1"), Drawable)
    task = jr.from_gymnax("Breakout-MinAtar")
    assert isinstance(task, Drawable)
    state = task.reset(jax.random.key(0))
    picture, seen = task.draw(state), np.asarray(state.observation)
    cells = picture[12::24, 12::24]
    assert picture.shape == (240, 240, 3) and picture.dtype == np.uint8 and cells.shape[:2] == seen.shape[:2]
    colours = {tuple(cells[tuple(at)]) for at in np.argwhere(seen[..., 3] > 0)}
    assert len(colours) == 1, "of bricks, which cover all else"
    nothing = {tuple(cells[tuple(at)]) for at in np.argwhere(~(seen > 0).any(-1))}
    assert len(nothing) == 1 and not nothing & colours


def test_a_missing_library_is_told_with_its_command(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "gymnax", None)
    with pytest.raises(MissingPackage, match=r"pip install 'jaxreward\[gymnax\]'"):
        jr.from_gymnax("CartPole-v1")


# ---- an environment whose faults are known


class Counter:
    """A counter.

    Source: https://example.com

    Count up.
    - count: how often
      it was counted
    """

    def reset(self, key: Any) -> tuple[Any, Any]:
        return {"count": 0, "key": key}, 0

    def step(self, state: Any, action: Any) -> tuple[Any, Any]:
        return {"count": state["count"] + action, "key": jax.random.split(state["key"])[1]}, state["count"] * 1.0


class Counting(EnvironmentTask):
    def first(self, key: jax.Array) -> Transition:
        state, observation = self.env.reset(key)
        return Transition(state, observation, 0, False)

    def next(self, env: Any, action: jax.Array, key: Any) -> Transition:
        state, observation = self.env.step(env, action)
        return Transition(state, observation, 1 - state["count"], state["count"] > 3)

    def sound(self, after: Transition) -> jax.Array:
        return after.env["count"] < 3


THREE = Actions(jr.Discrete(3), lambda action: action)


def counting(**settings: Any) -> Counting:
    return Counting(Counter(), THREE, **{"name": "count", "horizon": 4, **settings})


def test_reset_and_step_have_the_dtypes_of_a_step():
    task = counting()
    first = task.reset(jax.random.key(0))
    assert jax.tree.map(lambda x: x.dtype, first) == jax.tree.map(lambda x: x.dtype, task.step(first, jnp.asarray(1)))
    assert first.observation.dtype == jnp.float32 and mistakes_in(task) == ()
    assert [leaf.name for leaf in Spec.of(task).leaves] == ["env.count", "observation", "reward", "done"]


def test_a_simulation_that_fails_ends_its_episode_as_the_worst():
    task = counting(worst=-5.0)
    states = [task.reset(jax.random.key(0))]
    for action in (1, 1, 2):
        states.append(task.step(states[-1], jnp.asarray(action)))
    assert [int(s.env["count"]) for s in states] == [0, 1, 2, 2]
    assert [float(s.reward) for s in states] == [0.0, 0.0, -1.0, 0.0]
    assert [bool(task.terminated(s)) for s in states] == [False, False, False, True]
    metric, acc = task.score(), task.score().init()
    for k in range(2):
        acc = metric.update(acc, states[k], jnp.asarray(1), states[k + 1])
    assert float(metric.value(acc)) == -1.0 and measure_of(task).worst == -5.0
    assert float(metric.value(metric.update(acc, states[2], jnp.asarray(2), states[3]))) == -5.0


def test_a_library_that_needs_keys_of_PRNGKey_is_given_them():
    class Old(Counter):
        def reset(self, key: Any) -> tuple[Any, Any]:
            assert key.dtype == jnp.uint32
            return super().reset(key)

    task = Counting(Old(), THREE, name="old", horizon=4)
    assert task.reset(jax.random.key(3)).env["key"].tolist() == jax.random.PRNGKey(3).tolist()
    assert [leaf.name for leaf in Spec.of(task).leaves] == ["env.count", "observation", "reward", "done"]


def test_what_cannot_be_a_task_is_refused_in_a_sentence():
    class Growing(Counter):
        def step(self, state: Any, action: Any) -> tuple[Any, Any]:
            return {**state, "more": 0}, 0

    class Several(Counting):
        def next(self, env: Any, action: jax.Array, key: Any) -> Transition:
            return super().next(env, action, key)._replace(reward=jnp.zeros(3))

    with pytest.raises(UserError, match="the state of growing has other arrays after a step than after a reset"):
        Counting(Growing(), THREE, name="growing", horizon=4).reset(jax.random.key(0))
    with pytest.raises(UserError, match="give a wrapper of it with one reward"):
        Several(Counter(), THREE, name="several", horizon=4).reset(jax.random.key(0))
    with pytest.raises(UserError, match="give a horizon"):
        counting(horizon=None)
    with pytest.raises(UserError, match="not both"):
        counting(success=lambda view: view.done, metric=object())


@pytest.mark.filterwarnings("ignore:Brax System")
def test_a_wrapper_that_repeats_actions_is_refused():
    pytest.importorskip("brax")
    from brax.envs import get_environment
    from brax.envs.wrappers.training import EpisodeWrapper

    env = get_environment("inverted_pendulum", backend="spring")
    assert jr.from_brax(EpisodeWrapper(env, 77, action_repeat=1)).horizon == 77
    with pytest.raises(UserError, match=r"repeats every action 4 times: .* PPO\(action_repeat=4\)"):
        jr.from_brax(EpisodeWrapper(env, 1000, action_repeat=4))


def test_descriptions_and_words_are_those_of_the_docstrings():
    assert description_of(Counter()).splitlines()[:2] == ["A counter.", "Count up."]
    words = words_of(Counter(), ["env.count.row", "env.key", "count"], "env")
    assert words == {"env.count.row": "how often it was counted"}


# ---- actions


def test_discrete_actions_stay_and_several_become_one():
    one = actions_of(SimpleNamespace(n=3, shape=(), dtype=np.int32), "x")
    assert one.space == jr.Discrete(3) and int(one.as_own(jnp.asarray(2))) == 2
    several = actions_of(SimpleNamespace(num_values=np.array([2, 3]), shape=(2,), dtype=np.int32), "x")
    assert several.space == jr.Discrete(6)
    assert [several.as_own(jnp.asarray(k)).tolist() for k in (0, 1, 3, 5)] == [[0, 0], [0, 1], [1, 0], [1, 2]]
    with pytest.raises(InvalidSetting, match="1,024 combinations"):
        actions_of(SimpleNamespace(num_values=np.full(10, 2), shape=(10,), dtype=np.int32), "x")


def test_real_actions_keep_equal_bounds_and_are_scaled_to_others():
    same = box((2,), -2.0, 2.0, "x")
    assert same.space == jr.Box((2,), -2.0, 2.0) and same.as_own(jnp.array([1.0, 9.0])).tolist() == [1.0, 2.0]
    scalar = box((), 0.0, 1.0, "x")
    assert scalar.space == jr.Box((1,), 0.0, 1.0) and scalar.as_own(jnp.array([0.5])).shape == ()
    other = box((2,), np.array([0.0, -4.0]), np.array([1.0, 4.0]), "x")
    assert other.space == jr.Box((2,)) and other.as_own(jnp.array([-1.0, 0.5])).tolist() == [0.0, 2.0]
    assert "[0, 1], [-4, 4]" in other.words
    for low, high in ((-np.inf, 1.0), (0.0, np.inf)):
        with pytest.raises(InvalidSetting, match="have no finite bounds"):
            box((1,), low, high, "x")
    with pytest.raises(InvalidSetting, match="neither discrete nor a box"):
        actions_of(SimpleNamespace(minimum=0, maximum=3, shape=(2,), dtype=np.int32), "x")
