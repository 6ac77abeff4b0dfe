"""Transitions on which programs are judged: true ones, rare ones among them, made once."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from pointtask import Box, PointTask, structs
from suite_parts import obs

from jaxreward.errors import InvalidSetting
from jaxreward.programs import Checker
from jaxreward.programs.play import UnplayableTask, can_play, how_many, sample_transitions
from jaxreward.programs.process import Lost, SandboxError
from jaxreward.tasks.probe import Probe

pytestmark = pytest.mark.usefixtures("unoptimised")


class Lake(PointTask):
    """A task of reals that can be played."""

    def terminated(self, state):
        return jnp.linalg.norm(state.view.pos - state.view.goal) < 0.1


@pytest.fixture(scope="module")
def easy(task_of):
    return task_of("xland-easy")


def test_transitions_are_steps_of_the_task(easy):
    views, actions, nexts = sample_transitions(easy)
    assert actions.shape == (256,) and views.grid.shape == (256, 9, 9, 2) and isinstance(views.grid, np.ndarray)

    def follows(view, action, following):
        state = easy.reset(jax.random.key(0)).replace(grid=view.grid, agent=view.agent, step_num=view.step_num)
        found = easy.view(easy.step(state, action))
        return jnp.stack([(a == b).all() for a, b in zip(jax.tree.leaves(found), jax.tree.leaves(following))]).all()

    assert jax.jit(jax.vmap(follows))(views, actions, nexts).all()


def test_transitions_are_diverse_and_include_rare_ones(easy):
    views, actions, nexts = sample_transitions(easy)
    paid = jax.vmap(easy.sparse_reward)(views, actions, nexts)
    assert paid.sum() >= 3, "random play picks the pyramid up in one step of a thousand"
    assert (views.agent.pocket != nexts.agent.pocket).any(1).sum() >= 20
    assert set(actions) == set(range(6))
    assert views.step_num.min() < 8 and views.step_num.max() >= 72
    assert len({grid.tobytes() for grid in views.grid}) > 150


def test_a_task_is_played_once(easy):
    sample_transitions(easy)
    begun = time.perf_counter()
    again = sample_transitions(easy)
    assert time.perf_counter() - begun < 0.05
    assert again[0].grid is sample_transitions(easy)[0].grid
    other = sample_transitions(easy, seed=1)
    assert (other[0].grid != again[0].grid).any()


def test_real_actions_stay_in_their_box():
    views, actions, _ = sample_transitions(Lake(), 100)
    assert actions.shape == (100, 2) and actions.dtype == np.float32
    assert actions.min() >= -1 and actions.max() <= 1 and actions.std() > 0.4
    assert views.info["gyro"].shape == (100, 3)


def test_a_task_with_fewer_transitions_repeats_them():
    views, *_ = sample_transitions(Probe("choice"), 2000)
    assert views.signal.shape == (2000,)


def test_a_task_that_fails_when_played_is_named_with_the_cause():
    class Broken(Lake):
        def step(self, state, action):
            raise ValueError("no wind")

    with pytest.raises(UnplayableTask) as error:
        sample_transitions(Broken())
    cause = error.value.__cause__
    assert isinstance(cause, ValueError) and cause.args == ("no wind",) and "ValueError: no wind" in str(error.value)


def test_only_tasks_that_can_be_reset_and_stepped_are_played(easy):
    assert can_play(easy) and can_play(Lake()) and not can_play(PointTask()) and not can_play(structs(PointTask()))


def test_programs_are_judged_on_states_of_the_task(checker):
    """The root of a field that is never negative passes; that of one that is, does not."""
    task = Lake()
    verdict, _ = checker.check(obs("return jnp.log(jnp.stack([state.info['height']]))"), task)
    assert verdict.ok, verdict.failure
    verdict, _ = checker.check(obs("return jnp.sqrt(state.pos)"), task)
    assert verdict.failure.stage == "numeric" and "256 states of the task" in verdict.failure.message
    verdict, _ = checker.check(obs("return jnp.sqrt(state.pos)"), structs(task))
    assert "random inputs" in verdict.failure.message


def test_a_task_may_provide_its_transitions(checker):
    class Known(Lake):
        def sample_transitions(self):
            return sample_transitions(Lake(), 7)

    verdict, _ = checker.check(obs("return jnp.sqrt(state.pos)"), Known())
    assert "of 7 states of the task" in verdict.failure.message


@pytest.mark.long
def test_samples_are_sent_once(easy, monkeypatch):
    """And again to a verifier that has been started anew."""
    with Checker(workers=1) as own:
        worker = own._workers[0]
        sizes, ask = [], worker.verifier.ask
        monkeypatch.setattr(
            worker.verifier, "ask", lambda payload, *rest: sizes.append(len(payload)) or ask(payload, *rest)
        )
        source = "import jax.numpy as jnp\ndef get_observation(state):\n    return state.agent.position / {}.0\n"
        for k in (1, 2, 3):
            assert own.check(source.format(k), easy)[0].ok
        assert len(sizes) == 5 and max(sizes) == sizes[1] > 10 * max(sizes[2:])
        worker.verifier.stop()
        assert own.check(source.format(4), easy)[0].ok and len(sizes) == 8


class Seen(NamedTuple):
    place: Any
    more: Any


class Drift:
    """A task of two numbers that drift; `more` is what else a view may hold."""

    name, horizon, action_space = "drift", 20, Box()

    def more(self, key):
        return jnp.zeros((3,))

    def reset(self, key):
        return Seen(jax.random.normal(key, (2,)), self.more(key))

    def step(self, state, action):
        return state._replace(place=state.place + 0.1 * action)

    def terminated(self, state):
        return jnp.zeros((), bool)

    def view(self, state):
        return state

    def default_observation(self, view):
        return view.place

    def sparse_reward(self, view, action, next_view):
        return -jnp.abs(next_view.place).sum()


def drift(**methods: Any) -> Any:
    return type("Kind", (Drift,), methods)()


def seeing(what: str) -> str:
    return (
        f"import jax.numpy as jnp\n\n\ndef get_observation(state):\n    return {what}\n\n\n"
        "def compute_reward(state, action, next_state):\n    return -jnp.abs(next_state.place).sum()\n"
    )


PLACE = seeing("state.place")


@pytest.mark.parametrize("shape", [(0,), (4, 0)])
def test_views_with_empty_arrays_are_sampled(checker, shape):
    verdict, _ = checker.check(PLACE, drift(more=lambda self, key: jnp.zeros(shape)))
    assert verdict.ok, verdict.failure


@pytest.mark.long
@pytest.mark.parametrize(("shape", "n"), [((84, 84, 4), 64), ((128, 128, 3), 32), ((512, 512), 0)])
def test_fewer_transitions_are_sampled_of_large_views(checker, shape, n):
    task = drift(more=lambda self, key: jax.random.normal(key, shape))
    assert how_many(task) == n and how_many(Drift()) == 256
    if n == 64:
        verdict, _ = checker.check(seeing("jnp.log(state.place)"), task)
        assert "of 64 states of the task" in verdict.failure.message
        assert checker.check(PLACE, task)[0].ok


@pytest.mark.long
def test_transitions_that_are_not_finite_are_left_out(checker):
    """A few transitions that are not finite or huge are dropped; where few others remain, inputs are random."""
    rare = drift(
        step=lambda self, s, a: s._replace(place=jnp.where(s.place + 0.1 * a > 2.0, jnp.nan, s.place + 0.1 * a))
    )
    assert checker.check(PLACE, rare)[0].ok
    views, *_ = sample_transitions(rare)
    assert np.isnan(views.place).any(), "this play does give such states"
    always = drift(more=lambda self, key: jnp.full((3,), jnp.inf))
    verdict, _ = checker.check(seeing("jnp.log(state.place)"), always)
    assert "random inputs" in verdict.failure.message
    assert checker.check(seeing("state.more"), always)[0].ok


def test_unusable_samples_are_refused(checker):
    views, actions, nexts = sample_transitions(Drift())
    many = jax.tree.map(lambda x: np.resize(x, (1_000_000, *x.shape[1:])), (views, actions, nexts))
    with pytest.raises(InvalidSetting, match="at most 40 MiB") as large:
        checker.check(PLACE, Drift(), samples=many)
    with pytest.raises(InvalidSetting) as empty:
        checker.check(PLACE, Drift(), samples=jax.tree.map(lambda x: x[:0], (views, actions, nexts)))
    assert large.value.settings == empty.value.settings == ("samples",)


@pytest.mark.long
def test_a_verifier_that_dies_over_samples_is_a_sandbox_error(monkeypatch):
    with Checker(workers=1) as own:
        verifier = own._workers[0].verifier
        ask = verifier.ask

        def dying(payload: bytes, *rest: Any) -> bytes:
            if b'"samples"' in payload:
                raise Lost("it died")
            return ask(payload, *rest)

        monkeypatch.setattr(verifier, "ask", dying)
        with pytest.raises(SandboxError, match="took in transitions of the task"):
            own.check(PLACE, Drift())
        monkeypatch.setattr(verifier, "ask", ask)
        broken = own._target(Drift()).samples(None)
        assert broken is not None
        monkeypatch.setattr(type(own._target(Drift())), "samples", lambda *_: replace(broken, packed=[[], {}, []]))
        with pytest.raises(UnplayableTask, match="KeyError"):  # of the verifier's process
            own.check(PLACE, Drift())


def test_rejected_programs_do_not_wait_for_transitions(checker):
    class Unplayed(Drift):
        def sample_transitions(self):
            raise AssertionError("played")

    for source in ("def get_observation(state:", "import os\n", seeing("state.nothing")):
        assert not checker.check(source, Unplayed())[0].ok
    with pytest.raises(AssertionError, match="played"):
        checker.check(PLACE, Unplayed())
