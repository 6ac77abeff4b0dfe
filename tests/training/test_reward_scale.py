"""What rewards are before they are learned from: their units, and what values are estimated from."""

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
from jaxreward.training.learners import for_imitation, for_recovered_rewards
from jaxreward.training.networks import ActorCritic
from jaxreward.training.ppo import RewardScale, advantages, scaled_rewards
from jaxreward.training.rollout import Trajectory

T, E = 8, 3
HYPER = PPO(envs=E, unroll=T, minibatches=1, discount=0.9, center_values=True, bootstrap=True)


def fresh(value: float | None = 0.0) -> RewardScale:
    zero = jnp.zeros(())
    return RewardScale(jnp.zeros(E), zero, zero, None if value is None else jnp.asarray(value))


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
@pytest.mark.parametrize("scaled", [True, False])
def test_advantages_are_those_of_values_that_are_less_by_the_centre(played, bootstrap, fresh_values, scaled):
    """Also with rewards that are clipped: by -400, far from the others."""
    hyper = HYPER.replace(bootstrap=bootstrap, fresh_values=fresh_values, scale_rewards=scaled)
    rare = played.replace(reward=played.reward.at[2, 1].set(-400.0))
    scale, rewards = scaled_rewards(fresh(), rare, hyper)
    unscaled, plain = scaled_rewards(fresh(None), rare, hyper)
    assert scale.value is not None
    centre = scale.value / (jnp.sqrt(unscaled.square + 1e-8) if scaled else 1.0)
    ours, targets = advantages(rare.replace(value=rare.value - centre), rewards, hyper)
    others, whole = advantages(rare, plain, hyper)
    np.testing.assert_allclose(ours, others, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(targets, whole - centre, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("length", [1, 4, 1_000_000])
def test_the_centre_is_the_mean_value_of_a_constant_reward(played, length):
    """Of episodes that end after `length` steps on average."""
    steps = jnp.arange(T * E).reshape(T, E)
    done = steps % length == length - 1
    constant = played.replace(reward=jnp.full((T, E), -2.0), done=done, truncated=jnp.zeros((T, E), bool))
    scale, _ = scaled_rewards(fresh(), constant, HYPER)
    ends = 0.0 if length > T * E else 1.0 / length
    expected = sum(-2.0 * (0.9 * (1.0 - ends)) ** k for k in range(200))
    assert scale.value is not None and float(scale.value) == pytest.approx(expected, rel=1e-4)


@pytest.mark.parametrize("scaled", [True, False])
def test_the_centre_is_that_of_the_first_update(played, scaled):
    hyper = HYPER.replace(scale_rewards=scaled)
    first, _ = scaled_rewards(fresh(), played, hyper)
    again, _ = scaled_rewards(first, played.replace(reward=played.reward - 7.0), hyper)
    assert float(first.count) == T * E and float(again.count) == 2 * T * E
    assert first.value is not None and again.value is not None
    assert float(again.value) == float(first.value) < 0.0


@pytest.mark.parametrize("scaled", [True, False])
@pytest.mark.parametrize("fresh_values", [True, False])
def test_with_absorbing_ends_a_constant_reward_says_nothing(played, scaled, fresh_values):
    """Whenever an episode ends, values are the same everywhere and no action is better than another."""
    hyper = HYPER.replace(absorbing=True, scale_rewards=scaled, fresh_values=fresh_values)
    constant = played.replace(reward=jnp.full((T, E), -2.0))
    scale, rewards = scaled_rewards(fresh(), constant, hyper)
    assert scale.value is not None and float(scale.value) == pytest.approx(-2.0 / 0.1, rel=1e-5)
    advantage, _ = advantages(constant.replace(value=jnp.zeros_like(played.value)), rewards, hyper)
    np.testing.assert_allclose(advantage, 0.0, atol=1e-5)
    _, without = scaled_rewards(fresh(), constant, hyper.replace(absorbing=False))
    ended, _ = advantages(constant.replace(value=jnp.zeros_like(played.value)), without, hyper)
    assert float(jnp.abs(ended).max()) > 0.1, "else an end is worth something"


@pytest.mark.parametrize("horizon", [8, 100])
def test_also_where_early_ends_are_rare(played, horizon):
    """What an end pays for ever is then many times the mean square of returns."""
    hyper = HYPER.replace(absorbing=True, discount=0.999, envs=E)
    scale, rng, since, ends = fresh(), np.random.default_rng(0), np.zeros(E, int), 0
    for update in range(40):
        done, truncated = np.zeros((T, E), bool), np.zeros((T, E), bool)
        for t in range(T):
            since += 1
            early = rng.random(E) < 0.004
            truncated[t] = (since >= horizon) & ~early
            done[t] = early | truncated[t]
            since[done[t]] = 0
        steps = played.replace(reward=-jnp.ones((T, E)), done=jnp.asarray(done), truncated=jnp.asarray(truncated))
        scale, rewards = scaled_rewards(scale, steps, hyper)
        np.testing.assert_allclose(rewards[~truncated], 0.0, atol=2e-3, err_msg=f"update {update}")
        ends += int((done & ~truncated).sum())
    assert ends


def test_an_absorbing_end_pays_its_last_reward_for_ever(played):
    hyper = HYPER.replace(absorbing=True, center_values=False, scale_rewards=False)
    _, rewards = scaled_rewards(fresh(None), played, hyper)
    ends = np.asarray(played.done & ~played.truncated)
    expected = np.where(ends, sum(0.9**k for k in range(400)) * played.reward, played.reward)
    np.testing.assert_allclose(rewards, expected, rtol=1e-5)


@pytest.mark.parametrize(
    ("fields", "settings"),
    [({"bootstrap": False}, ("ppo.absorbing", "ppo.bootstrap")), ({"discount": 1.0, "center_values": False}, None)],
)
def test_absorbing_ends_need_a_discount_and_a_horizon_that_cuts(fields, settings):
    with pytest.raises(InvalidSetting) as error:
        HYPER.replace(absorbing=True, **fields).check()
    assert error.value.settings == (settings or ("ppo.discount", "ppo.absorbing"))


def test_without_it_rewards_are_as_they_are(played):
    hyper = HYPER.replace(center_values=False, scale_rewards=False)
    scale, rewards = scaled_rewards(fresh(None), played, hyper)
    assert scale.value is None
    np.testing.assert_array_equal(rewards, played.reward)


def test_without_a_discount_there_is_no_centre():
    with pytest.raises(InvalidSetting, match="needs a discount below 1") as error:
        HYPER.replace(discount=1.0).check()
    assert error.value.settings == ("ppo.discount", "ppo.center_values")


@pytest.mark.long
@pytest.mark.usefixtures("unoptimised")
def test_the_values_that_are_learned_are_centred():
    """Of a reward of 1 in every state they are 0."""
    ppo = PPO(
        envs=32, unroll=16, hidden=(32,), activation="tanh", discount=0.8, scale_rewards=False, bootstrap=True,
        center_values=True,
    )  # fmt: skip
    task = make_task("probe-endless")
    result = train(task, [Program.default(task)], ppo, seeds=1, steps=20_000, checkpoints=1, eval_episodes=32)
    network: Any = ActorCritic.of(task, ppo)
    value = network.apply(result.variables(0, 0), jnp.array([1.0, 0.0, 0.0]))[1]
    np.testing.assert_allclose(value, 0.0, atol=0.05)


def test_the_learner_of_recovered_rewards():
    for_recovered_rewards(PPO()).check()
    assert for_recovered_rewards(PPO()) == PPO(bootstrap=True, center_values=True, absorbing=True)
    assert for_imitation(PPO.brax()) == PPO.brax(decay=1.0, absorbing=True)
