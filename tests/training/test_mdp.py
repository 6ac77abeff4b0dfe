"""Training and evaluation are one MDP: same horizon, same reset, same step."""

from __future__ import annotations

import jax
import numpy as np
import pytest

from jaxreward.training.chunk import Chunk
from jaxreward.training.population import Population

pytestmark = pytest.mark.usefixtures("unoptimised")


@pytest.fixture(scope="module")
def chunk(easy, mixed, tiny):
    chunk = Chunk(easy, Population(mixed[1:2]), tiny.replace(learning_rate=0.0, envs=32), (0, 1), jax.devices()[0])
    chunk.compile()
    return chunk


@pytest.fixture(scope="module")
def twins(easy, mixed, tiny):
    """Two candidates with one program."""
    chunk = Chunk(easy, Population([mixed[0], mixed[0]]), tiny.replace(envs=32), (0, 1), jax.devices()[0])
    chunk.compile()
    return chunk


def test_episodes_of_training_and_of_evaluation_are_alike(chunk, easy):
    """An agent that does not learn has the same success and length in both, within sampling error."""
    state, stats = chunk.start(), chunk.fresh_stats()
    for index in range(60):
        state, stats, _ = chunk.update(state, stats, index, 0.0)
    held_out = chunk.evaluate(state, 8)
    trained, held_out = jax.device_get((stats, held_out))
    assert (held_out.episodes == 8 * 32).all()
    p, q = (np.average(stats.success, weights=stats.episodes) for stats in (trained, held_out))
    n = min(trained.episodes.sum(), held_out.episodes.sum())
    assert abs(p - q) < 4 * np.sqrt(0.25 / n)
    assert abs(trained.length.sum() / trained.episodes.sum() - held_out.length.sum() / held_out.episodes.sum()) < 8


def test_episodes_end_at_the_horizon_at_the_latest(chunk, easy):
    state, stats = chunk.start(), chunk.fresh_stats()
    longest = 0
    for index in range(3 * easy.horizon // chunk.ppo.unroll):
        state, stats, _ = chunk.update(state, stats, index, 0.0)
        longest = max(longest, int(state.rollout.elapsed.max()))
        assert (np.asarray(state.rollout.state.step_num) == np.asarray(state.rollout.elapsed)).all()
    assert longest < easy.horizon
    held_out = jax.device_get(chunk.evaluate(state, 1))
    won = np.round(held_out.success * held_out.episodes)
    failed = held_out.episodes - won
    solved_steps = held_out.length - failed * easy.horizon
    assert (solved_steps >= won).all() and (solved_steps <= won * easy.horizon).all()


def test_levels_are_shared_by_candidates_and_new_in_every_update(twins):
    state = twins.start()
    grid = np.asarray(state.rollout.state.grid)
    np.testing.assert_array_equal(grid[0], grid[1])
    assert (grid[0, 0] != grid[0, 1]).any()
    assert len({g.tobytes() for g in grid[0, 0]}) == twins.ppo.envs


@pytest.mark.long
def test_held_out_levels_are_repeatable_and_differ_between_seeds(twins):
    """Paired between candidates and repeatable, but independent between seeds, also of one policy."""
    state = twins.start()
    # both seeds play with the parameters of the first
    agents = jax.tree.map(lambda x: x.at[:, 1].set(x[:, 0]), state.agents)
    a, b = (jax.device_get(twins.evaluate(state.replace(agents=agents), 2)) for _ in range(2))
    np.testing.assert_array_equal(a.length, b.length)
    np.testing.assert_array_equal(a.length[0], a.length[1])
    assert (a.length[:, 0] != a.length[:, 1]).all()
