"""What rewards are before they are learned from: their level and their units."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxreward.errors import InvalidSetting
from jaxreward.programs import Program
from jaxreward.tasks import make_task
from jaxreward.training import PPO, train
from jaxreward.training.learners import for_recovered_rewards
from jaxreward.training.networks import ActorCritic
from jaxreward.training.ppo import RewardScale, advantages, centred_rewards, scaled_rewards
from jaxreward.training.rollout import Trajectory

T, E = 8, 3
HYPER = PPO(envs=E, unroll=T, minibatches=1, discount=0.9, center_rewards=True, bootstrap=True)


def fresh(level: float | None = 0.0, count: float = 0.0) -> RewardScale:
    zero = jnp.zeros(())
    return RewardScale(jnp.zeros(E), zero, jnp.asarray(count), None if level is None else jnp.asarray(level))


@pytest.fixture(scope="module")
def played() -> Trajectory:
    """Episodes that end, by the horizon and by the task."""
    keys = iter(jax.random.split(jax.random.key(3), 8))
    done = jax.random.bernoulli(next(keys), 0.3, (T, E))
    cut = done & jax.random.bernoulli(next(keys), 0.5, (T, E))
    reward, value = jax.random.normal(next(keys), (T, E)) - 4.0, jax.random.normal(next(keys), (T + 1, E))
    assert (done & ~cut).any() and cut.any()
    nothing: Any = jnp.zeros(())
    return Trajectory(nothing, nothing, nothing, value, reward, done, cut)


@pytest.mark.parametrize("bootstrap", [True, False])
@pytest.mark.parametrize("fresh_values", [True, False])
def test_advantages_are_those_of_values_that_are_less_by_the_level(played, bootstrap, fresh_values):
    hyper = HYPER.replace(bootstrap=bootstrap, fresh_values=fresh_values)
    level, rewards = centred_rewards(fresh(), played, hyper)
    assert level is not None
    np.testing.assert_allclose(level, played.reward.mean(), rtol=1e-6)
    ours, targets = advantages(played.replace(value=played.value - level / (1 - hyper.discount)), rewards, hyper)
    plain, whole = advantages(played, played.reward, hyper)
    np.testing.assert_allclose(ours, plain, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(targets, whole - level / (1 - hyper.discount), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("scaled", [True, False])
def test_a_constant_that_a_reward_adds_is_no_difference(played, scaled):
    """But where episodes end, where it is what their rest would have paid."""
    hyper = HYPER.replace(scale_rewards=scaled)
    endless = played.replace(done=jnp.zeros((T, E), bool), truncated=jnp.zeros((T, E), bool))
    _, one = scaled_rewards(fresh(), endless, hyper)
    _, other = scaled_rewards(fresh(), endless.replace(reward=endless.reward + 100.0), hyper)
    np.testing.assert_allclose(one, other, atol=1e-4)


@pytest.mark.parametrize("scaled", [True, False])
def test_the_level_is_that_of_the_first_update(played, scaled):
    hyper = HYPER.replace(scale_rewards=scaled)
    first, _ = scaled_rewards(fresh(), played, hyper)
    again, _ = scaled_rewards(first, played.replace(reward=played.reward - 7.0), hyper)
    assert float(first.count) == T * E and float(again.count) == 2 * T * E
    assert first.level is not None and again.level is not None
    assert float(again.level) == float(first.level) == pytest.approx(float(played.reward.mean()))


def test_without_it_rewards_are_as_they_are(played):
    hyper = HYPER.replace(center_rewards=False, scale_rewards=False)
    scale, rewards = scaled_rewards(fresh(None), played, hyper)
    assert scale.level is None
    np.testing.assert_array_equal(rewards, played.reward)


def test_without_a_discount_a_level_has_no_value():
    with pytest.raises(InvalidSetting, match="needs a discount below 1") as error:
        HYPER.replace(discount=1.0).check()
    assert error.value.settings == ("ppo.discount", "ppo.center_rewards")


@pytest.mark.usefixtures("unoptimised")
def test_the_values_that_are_learned_are_of_the_centred_reward():
    """A reward of 1 in every state is worth 0 from its level on."""
    ppo = PPO(
        envs=32, unroll=16, hidden=(32,), activation="tanh", discount=0.8, scale_rewards=False, bootstrap=True,
        center_rewards=True,
    )  # fmt: skip
    task = make_task("probe-endless")
    result = train(task, [Program.default(task)], ppo, seeds=1, steps=20_000, checkpoints=1, eval_episodes=32)
    network: Any = ActorCritic.of(task, ppo)
    value = network.apply(result.variables(0, 0), jnp.array([1.0, 0.0, 0.0]))[1]
    np.testing.assert_allclose(value, 0.0, atol=0.05)


def test_the_learner_of_recovered_rewards():
    ppo = for_recovered_rewards(PPO())
    assert ppo == PPO(bootstrap=True, center_rewards=True)
    ppo.check()
