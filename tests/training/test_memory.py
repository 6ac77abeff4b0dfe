"""Agents with a GRU: what they remember, what they forget, and that learning sees what acting saw."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxreward.errors import InvalidSetting
from jaxreward.programs import Program
from jaxreward.tasks import make_task
from jaxreward.tasks.probe import Probe
from jaxreward.training import PPO, Execution, paper, train
from jaxreward.training.chunk import Chunk
from jaxreward.training.episodes import play
from jaxreward.training.networks import ActorCritic, apply, init_padded
from jaxreward.training.population import Population
from jaxreward.training.ppo import _outputs, batch_of
from jaxreward.training.rollout import act, act_in_blocks
from tests.training.conftest import FAST, SEEDS, STEPWISE

pytestmark = pytest.mark.usefixtures("unoptimised")
GRU = PPO(envs=8, unroll=8, minibatches=2, epochs=1, hidden=(8,), gru=8, action_embedding=4, heads=(8,))


@dataclass(frozen=True)
class Recall(Probe):
    """Three steps; the last action must match the signal, which the default observation shows at the first alone."""

    kind: str = "endless"
    length: int = 3

    def step(self, state, action):
        following = super().step(state, action)
        return following.replace(hit=(following.t == 3) & ((action == 1) == (state.signal > 0)))

    def default_observation(self, view):
        return jnp.stack([jnp.where(view.t == 0, view.signal, 0.0), view.t.astype(jnp.float32)])


@pytest.mark.parametrize("task", ["probe-choice", "probe-aim"])
@pytest.mark.parametrize("initializer", ["orthogonal", "lecun"])
def test_parameters_are_those_of_the_network(task, initializer):
    """What is drawn on the host has the names and shapes that flax would give it."""
    network = ActorCritic.of(make_task(task), GRU.replace(heads=(8, 4)))
    drawn = init_padded(network, 0, 5, 5, initializer)
    made = jax.eval_shape(network.init, jax.random.key(0), jnp.zeros((3, 5)), network.memory((3,)))["params"]
    assert jax.tree.map(jnp.shape, drawn) == jax.tree.map(jnp.shape, made)
    for kernels in (drawn["gru"]["wi"], drawn["gru"]["wh"]):
        gates = np.split(kernels, 3, -1)
        assert not np.array_equal(gates[0], gates[1]) and not np.array_equal(gates[1], gates[2])


@functools.cache
def rollout(kind: str, reset: bool):
    """A chunk of one program, its state before an update and what that collected."""
    task, ppo = Recall() if kind == "recall" else make_task("probe-aim"), GRU.replace(reset_memory=reset)
    chunk = Chunk(task, Population([Program.default(task)]), ppo, SEEDS, jax.devices()[0])
    chunk.compile()
    state, stats = chunk.start(), chunk.fresh_stats()
    for index in range(2):
        state, stats, _ = chunk.update(state, stats, index, 0.0)
    variables, lanes = jax.tree.map(jnp.copy, (state.agents.variables, state.rollout))
    pool = chunk._resets(chunk._keys, ppo.envs)
    noise = chunk._noise(jax.random.split(jax.random.key(5), len(SEEDS)), ppo.envs)
    assert chunk._collect is not None
    _, trajectory, _ = chunk._collect(variables, lanes, pool, noise, chunk.fresh_stats())
    return chunk, state, trajectory


@pytest.mark.slow
@pytest.mark.parametrize("reset", [True, False])
@pytest.mark.parametrize("kind", ["recall", "aim"])
def test_learning_recomputes_what_acting_computed(reset, kind):
    """Episodes end within the unroll; log-probabilities and values are the same, step by step."""
    chunk, state, t = rollout(kind, reset)
    assert t.memory is not None and t.done[:-1].any()
    remembers = kind == "recall" or not reset  # episodes of one step have nothing to remember
    assert bool(np.abs(np.asarray(t.memory.hidden)).max() > 0) == remembers
    memory = jax.tree.map(lambda x: x[0, 0], t.memory)
    one = jax.tree.map(lambda x: x[:, 0, 0], t.replace(memory=None)).replace(memory=memory)
    batch = batch_of(one, one.reward, one.reward, one.reward, GRU)
    variables = jax.tree.map(lambda x: x[0, 0], state.agents.variables)
    network: Any = chunk.network
    outputs, value = _outputs(network, variables, batch)
    np.testing.assert_allclose(value, batch.value, atol=1e-5)
    np.testing.assert_allclose(chunk.network.distribution.log_prob(outputs, batch.action), batch.logp, atol=1e-5)
    wrong = batch.replace(memory=jax.tree.map(jnp.zeros_like, batch.memory))
    differs = float(jnp.abs(_outputs(network, variables, wrong)[1] - batch.value).max()) > 1e-4
    assert differs == remembers


@pytest.mark.long
def test_agents_act_alike_in_blocks():
    task = make_task("probe-aim")
    network = ActorCritic.of(task, GRU)
    variables = {"params": init_padded(network, 0, 5, 5)}
    rng = np.random.default_rng(0)
    obs, noise = (jnp.asarray(rng.normal(size=(12, n)), jnp.float32) for n in (5, 1))
    memory = jax.tree.map(lambda x: x + 0.3, network.memory((12,)))
    whole, blocks = (
        act(network, variables, obs, memory, noise),
        act_in_blocks(3, network, variables, obs, memory, noise),
    )
    for a, b in zip(jax.tree.leaves(whole), jax.tree.leaves(blocks), strict=True):
        assert a.shape == b.shape
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)
    assert whole.finite.all() and blocks.finite.all()
    broken = act_in_blocks(3, network, variables, obs.at[7, 0].set(jnp.nan), memory, noise)
    assert np.flatnonzero(~broken.finite).tolist() == [7]


@pytest.mark.long
@pytest.mark.parametrize("reset", [True, False])
def test_memory_is_reset_between_episodes_if_reset_memory(reset):
    chunk, state, t = rollout("recall", reset)
    variables = jax.tree.map(lambda x: x[0, 0], state.agents.variables)
    obs, value, first = t.obs[1:-1, 0, 0], t.value[1:-1, 0, 0], np.asarray(t.done[:-1, 0, 0])
    assert first.any() and not first.all()
    fresh = apply(chunk.network, variables, obs, chunk.network.memory(value.shape))[1]
    same = np.isclose(np.asarray(fresh), np.asarray(value), atol=1e-6)
    assert same[first].all() == reset
    assert not same[~first].all()


@pytest.fixture(scope="module")
def recalled():
    """The task that needs a memory, learned with one and without."""
    learner = PPO(envs=64, unroll=6, minibatches=2, hidden=(16,), entropy=0.01)
    task = Recall()
    return task, [
        (ppo, train(task, [Program.default(task)], ppo, seeds=2, steps=60_000, checkpoints=1))
        for ppo in (learner, learner.replace(gru=16, heads=(16,)))
    ]


@pytest.mark.slow
def test_a_task_that_needs_memory_is_learned_with_a_gru_only(recalled):
    _, ((_, without), (_, with_memory)) = recalled
    assert without.success.max() < 0.65 and with_memory.success.min() > 0.95


@pytest.mark.slow
def test_played_episodes_carry_the_memory(recalled):
    task, (_, (ppo, trained)) = recalled
    episodes = play(task, trained.programs[0], trained.variables(0, 0), ppo, episodes=20)
    assert np.mean([e.success for e in episodes]) > 0.9


NEED_GRU = {"gru", "heads", "action_embedding", "reset_memory"}
NOT_WITH_GRU = {"gru", "unrolls", "fresh_values", "value_hidden"}


def test_recurrent_agents_use_the_fused_collector():
    task = make_task("probe-choice")
    assert Execution().resolve(task, GRU, 1, 1, "cpu") == ("fused", "fast")
    assert Execution().resolve(task, GRU, 1, 10**7, "cpu") == ("fused", "full")
    assert Execution().resolve(task, PPO(), 1, 1, "cpu") == ("stepwise", "full")
    assert FAST.resolve(task, GRU, 1, 1, "cpu") == ("fused", "fast")
    FAST.check(GRU)
    with pytest.raises(InvalidSetting) as error:
        STEPWISE.check(GRU)
    assert error.value.settings == ("collector", "ppo.gru")


@pytest.mark.parametrize(
    ("settings", "named"),
    [
        ({"gru": -1}, {"gru"}), ({"heads": (8,)}, NEED_GRU), ({"reset_memory": False}, NEED_GRU),
        ({"action_embedding": 3}, NEED_GRU), ({"gru": 8, "unrolls": 2}, NOT_WITH_GRU),
        ({"gru": 8, "fresh_values": True}, NOT_WITH_GRU), ({"gru": 8, "value_hidden": (8,)}, NOT_WITH_GRU),
        ({"gru": 8, "heads": (0,)}, {"heads"}), ({"gru": 8, "action_embedding": 0}, {"action_embedding"}),
        ({"gru": 8, "envs": 6, "minibatches": 4}, {"minibatches", "envs", "unrolls"}),
    ],
)  # fmt: skip
def test_invalid_settings_of_a_memory_are_named(settings, named):
    with pytest.raises(InvalidSetting) as error:
        PPO(**settings).check()
    assert set(error.value.settings) == {f"ppo.{name}" for name in named}


def test_the_learner_for_grids_is_that_of_the_paper():
    """LIMEN, appendix A.2.1, and its reference implementation."""
    ppo = paper("xland-hard")
    ppo.check()
    assert (ppo.gru, ppo.action_embedding, ppo.heads, ppo.hidden) == (512, 16, (256,), (256, 256))
    assert (ppo.envs, ppo.unroll, ppo.epochs, ppo.minibatches, ppo.reset_memory) == (8192, 16, 1, 16, False)
