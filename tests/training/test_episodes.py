"""Episodes of trained agents, and what they look like."""

from __future__ import annotations

import numpy as np
import pytest

from jaxreward.programs import Program
from jaxreward.tasks import Drawable
from jaxreward.training import PPO, train
from jaxreward.training.episodes import play

pytestmark = pytest.mark.usefixtures("unoptimised")
TINY = PPO(envs=8, unroll=8, minibatches=2, hidden=(8,))


@pytest.fixture(scope="module")
def corridor(task_of):
    """An agent that has learned to walk to the end of a corridor."""
    task = task_of("probe-corridor")
    program = Program.default(task)
    trained = train(task, [program], TINY, seeds=1, steps=4096)
    return task, program, trained


def test_an_episode_ends_where_the_task_says(corridor):
    task, program, trained = corridor
    for episode in play(task, program, trained.variables(0, 0), TINY, episodes=4):
        over = [bool(task.terminated(episode.state(t))) for t in range(episode.length + 1)]
        assert not any(over[:-1]) and (over[-1] or episode.length == task.horizon)
        assert [int(episode.state(t).t) for t in range(episode.length + 1)] == list(range(episode.length + 1))
        assert episode.success == float(bool(episode.state(episode.length).hit))


def test_success_agrees_with_the_held_out_episodes(corridor):
    task, program, trained = corridor
    played = play(task, program, trained.variables(0, 0), TINY, episodes=64)
    assert np.mean([e.success for e in played]) == pytest.approx(trained.success[0, 0], abs=0.25)


@pytest.mark.long
def test_all_agents_play_the_same_initial_states(corridor):
    task, program, trained = corridor
    other = train(task, [program], TINY, seeds=[7], steps=64)
    first = [e.state(0).signal for e in play(task, program, trained.variables(0, 0), TINY, episodes=6)]
    second = [e.state(0).signal for e in play(task, program, other.variables(0, 0), TINY, episodes=6)]
    assert np.array_equal(first, second) and len(set(map(float, first))) == 2


@pytest.mark.long
@pytest.mark.parametrize("name", ["probe-corridor", "xland-easy"])
def test_a_task_draws_every_state_in_one_size(name, task_of):
    import jax

    task = task_of(name)
    assert issubclass(type(task), Drawable)
    state = task.reset(jax.random.key(0))
    pictures = [task.draw(state), task.draw(task.step(state, jax.numpy.int32(0)))]
    assert pictures[0].shape == pictures[1].shape and pictures[0].dtype == np.uint8
    assert pictures[0].std() > 0
