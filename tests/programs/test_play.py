"""Transitions on which programs are judged: true ones, rare ones among them, made once."""

from __future__ import annotations

import time
from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from pointtask import PointTask, structs
from suite_parts import obs

from jaxreward.errors import UserError
from jaxreward.programs import Checker
from jaxreward.programs.coverage import BATCH
from jaxreward.programs.play import can_play, may_terminate, sample_transitions
from jaxreward.programs.samples import Samples
from jaxreward.programs.spec import Spec
from jaxreward.tasks import make_task
from jaxreward.tasks.probe import Probe


class Lake(PointTask):
    """A task of reals that can be played."""

    def terminated(self, state):
        return jnp.linalg.norm(state.view.pos - state.view.goal) < 0.1


@pytest.fixture(scope="module")
def easy():
    return make_task("xland-easy")


def test_transitions_are_steps_of_the_task(easy):
    views, actions, nexts = sample_transitions(easy)
    assert actions.shape == (256,) and views.grid.shape == (256, 9, 9, 2) and isinstance(views.grid, np.ndarray)

    def follows(view, action, following):
        state = easy.reset(jax.random.key(0)).replace(grid=view.grid, agent=view.agent, step_num=view.step_num)
        found = easy.view(easy.step(state, action))
        return jnp.stack([(a == b).all() for a, b in zip(jax.tree.leaves(found), jax.tree.leaves(following))]).all()

    assert jax.jit(jax.vmap(follows))(views, actions, nexts).all()


def test_they_are_diverse_and_hold_what_is_rare(easy):
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


def test_a_task_that_cannot_be_played_says_so():
    class Broken(Lake):
        def step(self, state, action):
            raise ValueError("no wind")

    with pytest.raises(UserError, match="cannot be played with random actions: ValueError: no wind"):
        sample_transitions(Broken())


def test_who_can_be_played_and_who_can_end_early(easy):
    assert can_play(easy) and can_play(Lake()) and not can_play(PointTask()) and not can_play(structs(PointTask()))
    assert may_terminate(easy) and may_terminate(Probe("corridor"))
    assert not may_terminate(Probe("choice"))
    always = SimpleNamespace(reset=lambda key: key, terminated=lambda state: jnp.ones((), bool))
    assert may_terminate(always)


def test_distortions_begin_with_the_truth_and_keep_shapes(easy):
    spec, (views, actions, nexts) = Spec.of(easy), sample_transitions(easy)
    true = Samples(jax.tree.leaves(views), actions, jax.tree.leaves(nexts))
    batch, again = true.with_distortions(spec, BATCH), true.with_distortions(spec, BATCH)
    for a, b, c in zip(true.transition(), batch.transition(), again.transition(), strict=True):
        np.testing.assert_array_equal(a, b[:256])
        np.testing.assert_array_equal(b, c)
        assert b.dtype == a.dtype and len(b) == BATCH
    border = batch.states[0][256:, 0, 0]
    assert len(np.unique(border, axis=0)) > 3, "what never changes in the task does change here"


def test_programs_are_judged_on_states_of_the_task(checker):
    """The root of a field that is never negative passes; that of one that is, does not."""
    task = Lake()
    verdict, _ = checker.check(obs("return jnp.log(jnp.stack([state.info['height']]))"), task)
    assert verdict.ok, verdict.failure
    verdict, _ = checker.check(obs("return jnp.sqrt(state.pos)"), task)
    assert verdict.failure.stage == "numeric" and "256 states of the task" in verdict.failure.message
    verdict, _ = checker.check(obs("return jnp.sqrt(state.pos)"), structs(task))
    assert "random inputs" in verdict.failure.message


def test_a_task_may_bring_its_own(checker):
    class Known(Lake):
        def sample_transitions(self):
            return sample_transitions(Lake(), 7)

    verdict, _ = checker.check(obs("return jnp.sqrt(state.pos)"), Known())
    assert "of 7 states of the task" in verdict.failure.message


def test_samples_are_sent_once(easy, monkeypatch):
    """And again to a verifier that has been started anew."""
    with Checker(lanes=1) as own:
        lane = own._lanes[0]
        sizes, ask = [], lane.verifier.ask
        monkeypatch.setattr(
            lane.verifier, "ask", lambda payload, *rest: sizes.append(len(payload)) or ask(payload, *rest)
        )
        source = "import jax.numpy as jnp\ndef get_observation(state):\n    return state.agent.position / {}.0\n"
        for k in (1, 2, 3):
            assert own.check(source.format(k), easy)[0].ok
        assert len(sizes) == 4 and max(sizes) == sizes[1] > 10 * max(sizes[2:])
        lane.verifier.stop()
        assert own.check(source.format(4), easy)[0].ok and len(sizes) == 6
