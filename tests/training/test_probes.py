"""The trainer learns what is known: exact values and optimal behaviour on the probe tasks."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import pytest

from jaxreward.errors import InvalidSetting
from jaxreward.programs import Program
from jaxreward.tasks import make_task
from jaxreward.training import PPO, train
from jaxreward.training.networks import ActorCritic
from jaxreward.training.population import Population

pytestmark = pytest.mark.usefixtures("unoptimised")
DISCOUNT = 0.9


def learned(kind: str, steps: int = 40_000, scale_rewards: bool = False):
    """Without scaling, values are in the units of the reward; behaviour is tested with it."""
    ppo = PPO(
        envs=32, unroll=16, hidden=(32,), activation="tanh", learning_rate=3e-3, entropy=0.01, discount=DISCOUNT,
        scale_rewards=scale_rewards,
    )  # fmt: skip
    task = make_task(f"probe-{kind}")
    result = train(task, [Program.default(task)], ppo, seeds=2, steps=steps, checkpoints=2, eval_episodes=64)
    network = ActorCritic.of(task, ppo)

    def value(*obs: float) -> np.ndarray:
        return np.array([network.apply(result.variables(0, s), jnp.array(obs))[1] for s in range(2)])

    return result, value


def test_the_value_of_a_constant_reward_is_one():
    _, value = learned("constant")
    for signal in (-1.0, 1.0):
        np.testing.assert_allclose(value(signal, 0.0, 0.0), 1.0, atol=0.03)


def test_the_value_follows_the_observation():
    _, value = learned("signal")
    np.testing.assert_allclose(value(1.0, 0.0, 0.0), 1.0, atol=0.03)
    np.testing.assert_allclose(value(-1.0, 0.0, 0.0), -1.0, atol=0.03)


def test_a_delayed_reward_is_discounted_once():
    _, value = learned("delay")
    for signal in (-1.0, 1.0):
        np.testing.assert_allclose(value(signal, 0.0, 0.0), DISCOUNT, atol=0.03)
        np.testing.assert_allclose(value(signal, 1.0, 0.0), 1.0, atol=0.03)


def test_the_action_that_pays_is_chosen():
    result, _ = learned("choice", scale_rewards=True)
    assert result.success.mean() > 0.97


def test_the_corridor_is_learned():
    result, _ = learned("corridor", 60_000, scale_rewards=True)
    assert result.success.mean() > 0.97
    assert result.length_curve[0, :, -1].mean() == pytest.approx(6, abs=1.0)


def test_programs_of_two_tasks_do_not_train_side_by_side():
    one, other = (Program.default(make_task(f"probe-{kind}")) for kind in ("constant", "aim"))
    with pytest.raises(InvalidSetting) as error:
        Population([one, other])
    assert error.value.settings == ("programs",)
