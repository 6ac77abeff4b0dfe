"""Real actions, Brax's form of PPO, cut episodes and repeated actions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxreward.programs import Program
from jaxreward.tasks import Box, make_task
from jaxreward.tasks.probe import Probe
from jaxreward.training import PPO, quick_real, train
from jaxreward.training.distributions import TanhNormal
from jaxreward.training.networks import ActorCritic, add_moments, apply, init_padded, new_moments, normalized
from jaxreward.training.population import Population
from jaxreward.training.ppo import unroll_advantages
from jaxreward.training.rollout import action_noise, collect, reset_pool, start_rollout
from jaxreward.training.rollout_statistics import Stats

pytestmark = pytest.mark.usefixtures("unoptimised")
SMALL: dict[str, Any] = {"envs": 32, "unroll": 4, "unrolls": 4, "epochs": 2, "minibatches": 4, "hidden": (32,)}
DISCOUNT = 0.8


def value_of(kind: str, steps: int, **settings: Any) -> tuple[Any, Any]:
    ppo = PPO.brax(**(SMALL | {"value_hidden": (32,), "learning_rate": 3e-3, "discount": DISCOUNT} | settings))
    task = make_task(f"probe-{kind}")
    result = train(task, [Program.default(task)], ppo, seeds=2, steps=steps, checkpoints=2, eval_episodes=64)
    network = ActorCritic.of(task, ppo)

    def value(*obs: float) -> np.ndarray:
        return np.array([network.apply(result.variables(0, s), jnp.array(obs))[1] for s in range(2)])

    return result, value


@pytest.mark.long
def test_aiming_is_learned():
    result, value = value_of("aim", 40_000, entropy=0.0)
    assert result.success.mean() > 0.95
    for signal in (-1.0, 1.0):
        np.testing.assert_allclose(value(signal, 0.0, 0.0), 1.0, atol=0.08)


@pytest.mark.long
@pytest.mark.parametrize("fresh", [True, False])
def test_a_truncated_episode_bootstraps_the_value_that_would_have_followed(fresh):
    _, value = value_of("endless", 40_000, bootstrap=True, fresh_values=fresh)
    np.testing.assert_allclose(value(1.0, 0.0, 0.0), 1 / (1 - DISCOUNT), atol=0.1)


@pytest.mark.long
def test_without_bootstrap_a_truncation_is_a_termination():
    _, value = value_of("endless", 40_000, bootstrap=False)
    least = np.mean([(1 - DISCOUNT**k) / (1 - DISCOUNT) for k in range(1, 7)])
    most = 1 / (1 - DISCOUNT * 5 / 6)
    assert (least - 0.1 < value(1.0, 0.0, 0.0)).all() and (value(1.0, 0.0, 0.0) < most + 0.1).all()


def test_advantages_equal_a_calculation_by_hand():
    """Three steps: an ordinary one, one that the horizon cuts, the first of another episode."""
    values, rewards = jnp.array([1.0, 2.0, 3.0, 4.0]), jnp.array([1.0, 1.0, 1.0])
    done, cut = jnp.array([False, True, False]), jnp.array([False, True, False])
    ppo = PPO(discount=0.5, gae_lambda=0.5, bootstrap=True)
    advantage, target = unroll_advantages(rewards, done, cut, values, ppo)
    np.testing.assert_allclose(advantage, [1 + 0.5 * 2 - 1, 0.0, 1 + 0.5 * 4 - 3])
    np.testing.assert_allclose(target, advantage + values[:-1])
    advantage, _ = unroll_advantages(rewards, done, cut, values, ppo.replace(bootstrap=False))
    np.testing.assert_allclose(advantage, [1.0 + 0.25 * (1 - 2), 1 - 2, 0.0])
    # a step, then the lambda-return, as Brax has it
    advantage, target = unroll_advantages(rewards, done, cut, values, ppo.replace(bootstrap=False, fresh_values=True))
    np.testing.assert_allclose(advantage, [1 + 0.5 * 1 - 1, 1 - 2, 0.0])
    np.testing.assert_allclose(target, [1.75, 1.0, 3.0])


def test_advantages_are_those_of_brax():
    from brax.training.agents.ppo.losses import compute_gae

    rng = np.random.default_rng(0)
    L, n = 12, 7
    rewards, values = rng.normal(size=(L, n)), rng.normal(size=(L + 1, n))
    done = rng.random((L, n)) < 0.3
    cut = done & (rng.random((L, n)) < 0.5)
    targets, advantages = compute_gae(
        jnp.array(cut, float), jnp.array(done & ~cut, float), jnp.array(rewards), jnp.array(values[:-1]),
        jnp.array(values[-1]), lambda_=0.9, discount=0.97,
    )  # fmt: skip
    ppo = PPO.brax(discount=0.97, gae_lambda=0.9)
    ours = jax.vmap(lambda r, d, c, v: unroll_advantages(r, d, c, v, ppo), in_axes=1, out_axes=1)(
        rewards, done, cut, values
    )
    np.testing.assert_allclose(ours[0], advantages, atol=1e-5)
    np.testing.assert_allclose(ours[1], targets, atol=1e-5)


def test_the_distribution_is_that_of_brax():
    from brax.training.distribution import NormalTanhDistribution

    ours, theirs = TanhNormal(Box((3,))), NormalTanhDistribution(3)
    outputs = jax.random.normal(jax.random.key(0), (5, 6))
    sample = ours.sample(outputs, ours.noise(jax.random.key(1), (5,)))
    np.testing.assert_allclose(ours.log_prob(outputs, sample), theirs.log_prob(outputs, sample), rtol=1e-5)
    np.testing.assert_allclose(ours.action(sample), theirs.postprocess(sample), rtol=1e-6)
    noise = jnp.zeros((5, 3))
    slope = 2.0 * (jnp.log(2.0) - jnp.split(outputs, 2, -1)[0] - jax.nn.softplus(-2.0 * jnp.split(outputs, 2, -1)[0]))
    expected = theirs.create_dist(outputs).entropy() + slope
    np.testing.assert_allclose(ours.entropy(outputs, noise), expected.sum(-1), rtol=1e-5)


def test_actions_fill_the_box():
    over = TanhNormal(Box((2, 2), low=1.0, high=3.0))
    actions = over.action(jnp.array([[-50.0, 0.0, 50.0, 0.0]]))
    np.testing.assert_allclose(actions, [[[1.0, 2.0], [3.0, 2.0]]], atol=1e-6)


def test_moments_are_those_of_all_observations():
    rng = np.random.default_rng(0)
    batches = [rng.normal(3.0, 5.0, (11, 4)), rng.normal(-1.0, 0.1, (50, 4))]
    moments = new_moments(4)
    np.testing.assert_allclose(normalized(moments, jnp.array(batches[0])), batches[0], rtol=1e-6)
    for batch in batches:
        moments = add_moments(moments, jnp.array(batch))
    whole = np.concatenate(batches)
    expected = (whole - whole.mean(0)) / whole.std(0)
    np.testing.assert_allclose(normalized(moments, jnp.array(whole)), expected, atol=1e-4)


@dataclass(frozen=True)
class Count(Probe):
    """Step t pays t, and what comes after `last` would pay NaN; the episode ends there, or the horizon does."""

    last: int = 5
    ends: bool = True
    kind: str = "endless"

    @property
    def horizon(self) -> int:
        return 99 if self.ends else self.last

    def terminated(self, state: Any) -> jax.Array:
        return (state.t >= self.last) & self.ends

    def sparse_reward(self, view: Any, action: jax.Array, next_view: Any) -> jax.Array:
        return jnp.where(next_view.t <= self.last, next_view.t, jnp.nan)


@pytest.mark.long
@pytest.mark.parametrize("ends", [True, False])
@pytest.mark.parametrize("repeat", [1, 2, 4])
def test_a_repeated_action_sums_rewards_up_to_the_end_of_the_episode(ends, repeat):
    """Five steps that pay 1 to 5: by twos 3, 7 and 5, whether the fifth is the task's end or the horizon's."""
    task, keys = Count(ends=ends), jax.random.split(jax.random.key(0), 1)
    population = Population([Program.default(task)])
    network = ActorCritic.of(task, PPO(hidden=(8,)))
    params = init_padded(network, 0, population.widths[0], population.width)
    variables = {"params": jax.tree.map(lambda x: jnp.asarray(x)[None, None], params)}
    pool = reset_pool(task, keys, 2)
    stats = Stats.zeros(1, 1, population.width, population.terms)
    lanes, seen, stats = collect(
        task,
        population,
        network,
        6,
        repeat,
        "cpu",
        jnp.asarray(population.constants),
        variables,
        start_rollout(task, pool, 1),
        pool,
        action_noise(network.distribution, 2, 7, keys),
        stats,
    )
    once = {1: [1, 2, 3, 4, 5], 2: [3, 7, 5], 4: [10, 5]}[repeat]
    paid = [*once, *once, *once][:6]
    assert seen.reward[:, 0, 0, 0].tolist() == paid
    over = [(i + 1) % len(once) == 0 for i in range(6)]
    assert seen.done[:, 0, 0, 0].tolist() == over
    assert seen.truncated[:, 0, 0, 0].tolist() == [o and not ends for o in over]
    assert bool(stats.finite.all()), "what would have come after the end is nobody's"
    assert float(stats.ret[0, 0]) == 15.0 and float(stats.length[0, 0] / stats.episodes[0, 0]) == 5.0
    assert float(stats.term_sum[0, 0, 0]) == 2 * sum(paid)
    assert int(lanes.episode[0, 0, 0]) == sum(over)


@pytest.mark.slow
def test_a_decaying_learning_rate_keeps_what_was_learned():
    """One step, solved early: without decay the policy degrades again (docs/appendix/robot_results.md)."""
    task = make_task("probe-aim")
    result = train(
        task, [Program.default(task)], quick_real(decay=1.0), seeds=4, steps=120_000, checkpoints=4, eval_episodes=64
    )
    assert result.success_curve[0].min() > 0.98


def test_features_are_clipped_before_the_network():
    task = make_task("probe-aim")
    ppo = PPO.brax(hidden=(8,), value_hidden=(8,), observation_clip=5.0)
    network = ActorCritic.of(task, ppo)
    params = init_padded(network, 0, 3, 3)
    moments = add_moments(new_moments(3), jnp.array([[1.0, 0.0, 0.0], [-1.0, 0.0, 0.0]]))  # two features never moved
    variables = {"params": params, "moments": {"running": moments}}
    play = lambda *obs: apply(network, variables, jnp.array(obs))  # noqa: E731
    jax.tree.map(np.testing.assert_array_equal, play(0.5, 1.0, 0.0), play(0.5, 1e-3, 0.0))
    assert not np.allclose(play(0.5, 1.0, 0.0)[1], play(0.5, 1.0, 1.0)[1])
    assert abs(float(play(0.5, 1.0, 0.0)[1])) < 20.0
    free = ActorCritic.of(task, ppo.replace(observation_clip=float("inf")))
    assert abs(float(apply(free, variables, jnp.array([0.5, 1.0, 0.0]))[1])) > 1e3


def test_the_documented_learners_are_those_in_the_code():
    """The table of docs/robots.md is that of the learners."""
    from pathlib import Path

    from jaxreward.training.learners import PAPER

    text = (Path(__file__).resolve().parents[2] / "docs" / "robots.md").read_text()
    rows = {
        cells[0]: cells[1:]
        for cells in ([c.strip() for c in line.split("|")[1:-1]] for line in text.splitlines())
        if len(cells) == 5
    }
    learners = [quick_real(), PAPER["go1-push-recovery"], PAPER["panda-tracking"], PAPER["ant"]]
    for k, ppo in enumerate(learners):
        assert float(rows["learning rate"][k]) == ppo.learning_rate and float(rows["entropy"][k]) == ppo.entropy
        assert ppo.decay == 0.0
        cut = "none" if ppo.observation_clip == float("inf") else f"{ppo.observation_clip:g}"
        assert rows["features cut at"][k] == cut
        assert float(rows["clip"][k]) == ppo.clip and int(rows["environments"][k]) == ppo.envs
        assert rows["unroll x unrolls"][k] == f"{ppo.unroll} x {ppo.unrolls}"
        assert rows["minibatches, epochs"][k] == f"{ppo.minibatches}, {ppo.epochs}"
        assert ppo.discount == 0.97 and ppo.normalize_observations and ppo.bootstrap
        scaled = f"in units of returns, x {ppo.reward_scale:g}"
        assert rows["rewards"][k] == (scaled if ppo.scale_rewards else "as they are")
        assert ppo.scale_rewards or ppo.reward_scale == 1.0
    assert PAPER["humanoid"] == PAPER["ant"]
