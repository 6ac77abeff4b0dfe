"""Means and spreads of held-out episodes, and what their values may be."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxreward.demonstrations import record_random
from jaxreward.programs import Program
from jaxreward.records import Measure
from jaxreward.tasks.metrics import Mean, Sum, episode_value
from jaxreward.tasks.probe import Probe
from jaxreward.training import PPO, train
from jaxreward.training.rollout_statistics import Stats


def added(stats: Stats, value: np.ndarray, ret: np.ndarray, done: np.ndarray) -> Stats:
    """`stats` with one step of one candidate and seed, in as many environments as there are values."""
    n = len(value)
    return stats.add(
        jnp.zeros((1, 1, n, 1)), jnp.zeros((1, 1, n, 1)), jnp.ones((1, 1, n), bool), jnp.asarray(done)[None, None],
        jnp.zeros((1, 1, n), int), jnp.asarray(value)[None, None], jnp.asarray(ret)[None, None],
        jnp.full((1, 1, n), 3), jnp.zeros((1, 1, n, 0)),
    )  # fmt: skip


@pytest.mark.parametrize("offset", [0.0, 3000.0, -1e5])
def test_standard_deviations_are_those_of_numpy_at_any_magnitude(offset):
    """Over several steps, some of which end no episode."""
    rng = np.random.default_rng(0)
    value = (offset + rng.normal(size=(6, 50))).astype(np.float32)
    ret = (2.0 * (value - offset) - offset + rng.normal(size=(6, 50))).astype(np.float32)
    done = rng.uniform(size=(6, 50)) < 0.3
    done[2] = False
    stats = Stats.zeros(1, 1, 1, 1)
    for step in range(6):
        stats = added(stats, value[step], ret[step], done[step])
    x, y, n = value[done].astype(float), ret[done].astype(float), done.sum()
    at = lambda name: float(getattr(stats, name)[0, 0])  # noqa: E731
    assert at("episodes") == n
    for name, own in (("success", x), ("ret", y)):
        assert at(name) == pytest.approx(own.mean(), rel=1e-6, abs=1e-6)
    assert at("success_dev") / n == pytest.approx(x.var(), rel=2e-2)
    assert at("ret_dev") / n == pytest.approx(y.var(), rel=2e-2)
    assert at("co_dev") / n == pytest.approx(np.cov(x, y, bias=True)[0, 1], rel=2e-2)


@pytest.mark.parametrize("first_only", [True, False])
def test_what_follows_a_held_out_episode_is_not_of_it(first_only):
    """Else it would depend on the other lanes, which are played on until the last of them ends."""
    stats = Stats.zeros(1, 1, 1, 1, first_only=first_only)
    for episode in ([0, 0], [1, 0]):
        finite, done = np.array([[[episode[0] == 0, True]]]), np.array([[[True, False]]])
        number, step = jnp.ones((1, 1, 2)), jnp.zeros((1, 1, 2, 1))
        ret = number if episode[0] == 0 else number.at[..., 0].set(jnp.inf)
        stats = stats.add(
            step, step, jnp.asarray(finite), jnp.asarray(done), jnp.asarray([[episode]]), number, ret, number,
            jnp.zeros((1, 1, 2, 0)),
        )  # fmt: skip
    assert bool(stats.finite[0, 0]) == first_only
    assert float(stats.episodes[0, 0]) == (1 if first_only else 2)
    if first_only:
        assert (float(stats.ret[0, 0]), float(stats.ret_dev[0, 0]), float(stats.success[0, 0])) == (1.0, 0.0, 1.0)


def test_a_mean_keeps_its_precision_next_to_a_large_worst_value():
    measure = Measure(name="cost", rate=False, worst=-1e6)
    mean = Mean(lambda s, a, t: t, 1000, measure)
    acc = mean.init()
    for _ in range(1000):
        acc = mean.update(acc, jnp.zeros(()), jnp.zeros(()), jnp.float32(0.1))
    assert float(mean.value(acc)) == pytest.approx(0.1, rel=1e-4)
    assert float(mean.value(mean.init())) == measure.worst


@dataclass(frozen=True)
class Costly(Probe):
    """Aim, where any miss costs more than the worst that the measure knows."""

    kind: str = "aim"
    less: bool = False

    def score(self) -> Any:
        sign, worst = (1.0, 0.01) if self.less else (-1.0, -0.01)
        measure = Measure(name="miss", rate=False, higher_is_better=not self.less, worst=worst)
        return Sum(lambda s, a, t: sign * (1.0 + t.error), measure)


@pytest.mark.slow
@pytest.mark.parametrize("less", [pytest.param(True, marks=pytest.mark.slow), False])
def test_no_episode_counts_as_worse_than_the_worst(less):
    """Or to diverge would be better than to fail."""
    task = Costly(less=less)
    ppo = PPO.brax(envs=4, unroll=2, unrolls=2, minibatches=1, epochs=1, hidden=(4,), value_hidden=(4,))
    result = train(task, [Program.default(task)], ppo, seeds=1, steps=16, checkpoints=1, eval_episodes=4)
    np.testing.assert_allclose(jax.device_get(result.success), 0.01 if less else -0.01, rtol=1e-6)


@pytest.mark.parametrize("less", [True, False])
def test_random_actions_are_scored_by_the_same_rule(less):
    """Else agents would be told from them by another one."""
    np.testing.assert_allclose(record_random(Costly(less=less), 4, seed=0).success, 0.01 if less else -0.01, rtol=1e-6)
    nothing = Sum(
        lambda s, a, t: jnp.asarray(jnp.nan), Measure(name="miss", rate=False, higher_is_better=not less, worst=3.0)
    )
    assert float(episode_value(nothing, jnp.float32(jnp.nan))) == 3.0
