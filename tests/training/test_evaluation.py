"""Held-out episodes: how many, on which levels, and that playing them changes nothing."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxreward.programs import Program
from jaxreward.tasks.probe import Probe
from jaxreward.training import PPO, Execution, Rung, paper, quick, quick_real, train
from jaxreward.training.chunk import Chunk
from jaxreward.training.plan import EVAL_EPISODES, Evaluation, curve_points, held_out_steps
from jaxreward.training.population import Population
from jaxreward.training.rollout_statistics import Stats
from tests.training.conftest import FAST, FUSED, SEEDS, STEPWISE, budget

pytestmark = pytest.mark.usefixtures("unoptimised")
SHORT = PPO(envs=8, unroll=8, minibatches=2, hidden=(8,))
GRU: dict[str, Any] = {"gru": 8, "heads": (8,), "action_embedding": 4}


def playing(ppo: PPO, updates: int, episodes: int) -> dict[str, Any]:
    return budget(ppo, updates) | {"eval_episodes": episodes}


def test_an_evaluation_has_no_more_lanes_than_episodes(easy):
    of = lambda ppo, episodes: (Evaluation.of(ppo, episodes).lanes, Evaluation.of(ppo, episodes).rounds)  # noqa: E731
    assert of(quick(easy), EVAL_EPISODES) == (64, 4)
    assert of(quick_real(), EVAL_EPISODES) == (128, 2)
    assert of(paper("xland-easy"), EVAL_EPISODES) == (256, 1)
    assert of(paper("xland-easy"), 80) == (80, 1)
    assert of(quick(easy), 80) == (64, 2) and of(quick(easy), 1) == (1, 1)


def test_environments_of_training_add_no_held_out_steps(easy):
    few, many = paper("xland-easy").replace(envs=256), paper("xland-easy")
    assert held_out_steps(easy, many, 3, 256) == held_out_steps(easy, few, 3, 256) == 3 * 256 * easy.horizon
    assert curve_points(easy, many, 1_000_000) == 10


@pytest.mark.long
@pytest.mark.parametrize("execution", [FUSED, STEPWISE])
def test_fewer_held_out_episodes_leave_the_training_as_it_was(easy, mixed, tiny, execution):
    rung = Rung(2 * tiny.batch)  # the training goes on as another segment
    usual, few = (
        train(easy, mixed[:2], tiny, execution=execution, rungs=[rung], **playing(tiny, 4, n)) for n in (8, 3)
    )
    for a, b in zip(jax.tree.leaves(usual.agents), jax.tree.leaves(few.agents), strict=True):
        np.testing.assert_array_equal(a, b)
    for result, n in ((usual, 8), (few, 3)):
        assert all((history.episodes == n).all() for history in result.histories)
        taken = sum((history.length * history.episodes).sum() for history in result.histories)
        assert result.eval_steps == pytest.approx(taken, abs=0.5)
        assert 0 < result.eval_steps <= 2 * len(SEEDS) * held_out_steps(easy, tiny, 2, n)


class Patient(Probe):
    """A probe whose episodes might last long."""

    @property
    def horizon(self) -> int:
        return 400


@pytest.mark.long
def test_a_round_ends_with_its_last_episode(monkeypatch):
    """A long horizon costs nothing where episodes are short, and what is measured is what playing on measures."""
    task = Patient("corridor", length=4)
    chunk = Chunk(task, Population([Program.default(task)]), SHORT, (0, 1), jax.devices()[0])
    chunk.compile()
    state, calls = chunk.start(), list[Stats]()
    play: Any = chunk._play

    def played(*arguments: Any) -> Any:
        found = play(*arguments)
        calls.append(jax.tree.map(np.copy, jax.device_get(found[-1])))
        return found

    monkeypatch.setattr(chunk, "_play", played)
    ended = jax.device_get(chunk.evaluate(state, 2))
    assert (ended.episodes == 2 * chunk.lanes).all()
    (end,) = [k for k, stats in enumerate(calls) if (stats.episodes == chunk.lanes).all()]
    rounds = calls[: end + 1], calls[end + 1 :]
    assert all(len(played) < 400 // SHORT.unroll for played in rounds), "each stops early"
    for k, of_round in enumerate(rounds):
        over = [(stats.episodes == (k + 1) * chunk.lanes).all() for stats in of_round]
        assert over[-1] and not any(over[:-1]), "and not before its time"
    calls.clear()
    with monkeypatch.context() as never:
        never.setattr("jaxreward.training.chunk._over", lambda *_: False)
        whole = jax.device_get(chunk.evaluate(state, 2))
    assert len(calls) == 2 * (400 // SHORT.unroll)
    for name in ("episodes", "success", "success_dev", "length", "ret", "ret_dev", "co_dev", "solved", "finite"):
        np.testing.assert_array_equal(getattr(ended, name), getattr(whole, name), name)


@pytest.mark.parametrize("collector", ["fused", "stepwise"])
def test_what_is_not_finite_after_a_held_out_episode_does_not_count(collector):
    """Which lanes go on after theirs depends on the others."""
    task = Probe("signal")
    chunk = Chunk(task, Population([Program.default(task)]), SHORT, (0,), jax.devices()[0], collector)
    chunk.compile()
    for later in (True, False):
        rollout = chunk.start().rollout
        broken = jnp.arange(SHORT.envs) < SHORT.envs // 2
        signal = jnp.where(broken, jnp.nan, rollout.state.signal)
        rollout = rollout.replace(
            state=rollout.state.replace(signal=signal),
            episode=rollout.episode + jnp.where(broken & later, 1, 0).astype(rollout.episode.dtype),
        )
        _, _, stats = chunk.collect(chunk.start().replace(rollout=rollout), chunk.fresh_stats(first_only=True), 0)
        assert bool(stats.finite[0, 0]) == later


@pytest.mark.slow
def test_collectors_and_chunks_play_the_same_few_episodes(easy, mixed, tiny):
    """The metric, returns and lengths; untrained agents, so that rounding changes no action."""
    still = tiny.replace(learning_rate=1e-9)
    executions = [FUSED, FAST, STEPWISE, Execution(collector="fused", compile="full", chunk=1)]
    one, *others = (
        train(easy, mixed[:2], still, execution=execution, **playing(tiny, 1, 3)) for execution in executions
    )
    for other in others:
        for curve in ("success_curve", "return_curve", "length_curve"):
            np.testing.assert_allclose(getattr(one, curve), getattr(other, curve), rtol=1e-5)


@pytest.mark.long
def test_recurrent_agents_begin_held_out_episodes_without_memory(easy, mixed, tiny):
    """What an evaluation with lanes of its own plays depends on the parameters alone, not on the running episodes."""
    ppo = tiny.replace(**GRU)
    chunk = Chunk(easy, Population(mixed[:1]), ppo, SEEDS, jax.devices()[0], lanes=3)
    chunk.compile()
    state = chunk.start()
    before = jax.device_get(chunk.evaluate(state, 2))
    moved, *_ = chunk.update(chunk.start(), chunk.fresh_stats(), 0, 0.0)
    after = jax.device_get(chunk.evaluate(state.replace(rollout=moved.rollout), 2))
    assert (before.episodes == 6).all()
    for a, b in zip(jax.tree.leaves(before), jax.tree.leaves(after), strict=True):
        np.testing.assert_array_equal(a, b)
