"""Soft actor-critic: what it learns where values are known, its replay buffer, Brax's losses, and what must hold of
every learner."""

from __future__ import annotations

from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

import jaxreward as jr
from jaxreward.errors import InvalidSetting
from jaxreward.programs import Program, Spec
from jaxreward.runs.checkpoint import Checkpoints
from jaxreward.tasks import Box, make_task
from jaxreward.tasks.probe import Probe
from jaxreward.training import SAC, Checkpointing, Execution, Interrupted, Policy, Rung, train
from jaxreward.training.chunk import Chunk
from jaxreward.training.networks import apply
from jaxreward.training.population import Population
from jaxreward.training.replay import add, new_replay, sample
from jaxreward.training.rollout import Trajectory
from jaxreward.training.sac import Learned, gradient_step, new_agent
from jaxreward.training.soft_networks import SoftActor, SoftCritic, both, init_soft
from tests.training.conftest import BANK, FUSED, SEEDS, STEPWISE, assert_close_trees, budget, params

pytestmark = [pytest.mark.usefixtures("unoptimised"), pytest.mark.long]

TINY = SAC(
    envs=8, unroll=4, updates=2, batch_size=16, replay=96, warmup=32, hidden=(8,), value_hidden=(8, 8),
    learning_rate=1e-3,
)  # fmt: skip
CALM: dict[str, Any] = {"temperature": 1e-6, "temperature_learning_rate": 1e-9, "weight_decay": 0.0}
"""A temperature of nearly nothing: soft values are values."""


@dataclass(frozen=True)
class Line(Probe):
    """A point that continuous actions move along a line, for as long as the horizon."""

    kind: str = "endless"
    length: int = 12

    @property
    def action_space(self) -> Box:
        return Box((2,))

    def step(self, state: Any, action: jax.Array) -> Any:
        moved = jnp.clip(state.error + 0.3 * action[0], -1.0, 1.0)
        return state.replace(t=state.t + 1, error=moved, hit=jnp.abs(moved - state.signal / 2) < 0.2)


def view(state: Any) -> jax.Array:
    return jnp.stack([state.signal, state.error])


def wide(state: Any) -> jax.Array:
    return jnp.concatenate([view(state), jnp.sin(state.error * jnp.arange(1.0, 9.0)), 100.0 * state.t[None]])


def near(state: Any, action: jax.Array, following: Any) -> jax.Array:
    return -jnp.abs(following.error - following.signal / 2)


PROGRAMS = [
    (view, near),
    (wide, near),
    (view, lambda s, a, n: n.hit + 0.0 * a[0]),
    (wide, lambda s, a, n: 10.0 * n.hit),
]
BAD = """
import jax.numpy as jnp


def get_observation(state):
    return jnp.stack([state.signal, state.error])


def compute_reward(state, action, next_state):
    return jnp.where((state.t >= 6) & (jnp.abs(state.signal) == 1.0), jnp.nan, 1.0)
"""


@pytest.fixture(scope="module")
def line() -> Line:
    return Line()


def run(task: Any, programs: Any, sac: SAC = TINY, **options: Any) -> Any:
    return train(task, programs, sac, trusted=True, **{**budget(sac, 6), **options})


@pytest.fixture(scope="module")
def together(line):
    return run(line, PROGRAMS, execution=FUSED)


# ---- what is learned


def values(result: Any, task: Any, sac: SAC, obs: Any, action: Any) -> np.ndarray:
    """Both values of both seeds, (2, 2), of an observation and a sample."""
    critic = SoftCritic.of(sac)
    found = []
    for k in range(2):
        params = jax.tree.map(lambda x, k=k: x[0, k], result.params["critic"])
        padded = params["encoder_0"]["kernel"].shape[1] - len(action)
        seen = jnp.zeros(padded).at[: len(obs)].set(jnp.array(obs))
        found.append(both(critic, params, seen, jnp.tanh(jnp.array(action)), "float32"))
    return np.stack(found)


def agents_of(task: Any, program: Program, sac: SAC, updates: int, width: int = 0) -> Any:
    chunk = Chunk(task, Population([program], width=width), sac, SEEDS, jax.devices()[0])
    chunk.compile()
    state, stats = chunk.start(), chunk.fresh_stats()
    for index in range(updates):
        state, stats, _ = chunk.update(state, stats, index, index / updates)
    return state.agents


@pytest.mark.slow  # the value of an action is known to the next test but one
def test_aiming_is_learned():
    task = make_task("probe-aim")
    sac = SAC(
        envs=32, unroll=2, updates=4, batch_size=64, hidden=(16,), value_hidden=(16,), warmup=100, temperature=0.01,
        target_entropy=-2.0,  # at -0.5 an action is 0.15 off, and 0.2 is too far
    )  # fmt: skip
    result = train(task, [Program.default(task)], sac, seeds=2, steps=20_000, checkpoints=2, eval_episodes=64)
    assert result.success.mean() > 0.95


@pytest.mark.slow
@pytest.mark.parametrize("network", ["mlp", pytest.param("simba", marks=pytest.mark.slow)])
def test_a_cut_episode_bootstraps_the_value_that_would_have_followed(network):
    """Reward 1 on every step of an episode that the horizon cuts: every action is worth 1 / (1 - discount)."""
    task = Line(length=6)
    sac = SAC(
        envs=16, unroll=2, updates=4, batch_size=64, hidden=(16,), value_hidden=(16,), warmup=64, discount=0.5,
        scale_rewards=False, normalize_observations=False, network=network, tau=0.05, learning_rate=3e-3, **CALM,
    )  # fmt: skip
    paid = jr.load_program((view, lambda s, a, n: 1.0 + 0.0 * n.t), task, trusted=True)
    agents = agents_of(task, paid, sac, 300)
    for obs in ([1.0, 0.3], [-1.0, 0.0]):
        np.testing.assert_allclose(values(agents, task, sac, obs, [0.2, -0.4]), 2.0, atol=0.1)


@pytest.mark.slow
def test_an_end_is_worth_nothing_more():
    """One step that ends the episode: an action is worth its reward, whatever the discount."""
    sac = SAC(
        envs=32, unroll=2, updates=4, batch_size=64, hidden=(16,), value_hidden=(16, 16), warmup=64,
        scale_rewards=False, normalize_observations=False, learning_rate=3e-3, **CALM,
    )  # fmt: skip
    task = make_task("probe-aim")
    agents = agents_of(task, Program.default(task), sac, 400)
    best = np.arctanh(0.5)
    np.testing.assert_allclose(values(agents, task, sac, [1.0, 0.0, 0.0], [best]), 1.0, atol=0.1)


@pytest.mark.slow
@pytest.mark.parametrize("wanted", [0.3, pytest.param(-1.0, marks=pytest.mark.slow)])
def test_the_temperature_is_learned_for_the_target_entropy(line, wanted):
    """Of a reward that says nothing the policy's entropy comes to what is asked for, from above and from below."""
    sac = TINY.replace(
        updates=8, learning_rate=3e-3, temperature_learning_rate=3e-2, target_entropy=wanted, temperature=0.05
    )
    nothing = (view, lambda s, a, n: 0.0 * n.error)
    result = run(line, [nothing], sac, steps=200 * sac.batch, checkpoints=8)
    np.testing.assert_allclose(result.histories[0].entropy[-4:, 0].mean(), 2 * wanted, atol=0.5)


# ---- the replay buffer


def steps(first: int, length: int = 4, envs: int = 3) -> Trajectory:
    """Steps numbered from `first`: the observation of step t of environment e is (t, e)."""
    t, e = jnp.meshgrid(jnp.arange(first, first + length + 1.0), jnp.arange(float(envs)), indexing="ij")
    number, nothing = t[:-1], jnp.zeros((length, envs))
    flags = (number.astype(int) + e[:-1].astype(int)) % 3
    return Trajectory(
        obs=jnp.stack([t, e], -1), action=number[..., None], logp=nothing, value=nothing, reward=10 * number + e[:-1],
        done=flags > 0, truncated=flags == 2,
    )  # fmt: skip


@pytest.mark.long
def test_what_is_drawn_from_the_buffer_was_one_step():
    rows, length, envs = 12, 4, 3
    replay = new_replay(rows, envs, 2, 1)
    for update in range(8):
        replay = add(replay, steps(update * length), jnp.int32(update))
        batch = sample(replay, jax.random.key(update), jnp.int32(update), length, 4000)
        t, e = batch.obs[:, 0], batch.obs[:, 1]
        np.testing.assert_array_equal(batch.following, np.stack([t + 1, e], -1))
        np.testing.assert_array_equal(batch.action[:, 0], t)
        np.testing.assert_array_equal(batch.reward, 10 * t + e)
        flags = (np.asarray(t, int) + np.asarray(e, int)) % 3
        np.testing.assert_array_equal(batch.terminated, flags == 1)
        np.testing.assert_array_equal(batch.truncated, flags == 2)
        last = (update + 1) * length - 1
        expected = range(max(0, last - (rows - 2)), last + 1)  # all that the buffer holds but for the oldest row
        counts = np.unique(np.asarray(t, int), return_counts=True)
        np.testing.assert_array_equal(counts[0], expected)
        assert counts[1].max() < 1.5 * counts[1].mean()  # uniformly
        assert set(np.asarray(e, int)) == set(range(envs))


@pytest.mark.slow
def test_the_buffer_is_no_larger_than_a_training_needs(line):
    big = TINY.replace(replay=10_000)
    small, program = big.for_updates(6), jr.load_program(PROGRAMS[0], line, trusted=True)
    assert small.rows == 7 * big.unroll < big.rows
    found = [agents_of(line, program, sac, 6).params for sac in (big, small)]
    assert_close_trees(*found)
    assert run(line, PROGRAMS[:1], big).ppo == small


def test_a_training_without_a_gradient_step_is_refused(line):
    with pytest.raises(InvalidSetting, match="SAC.warmup = 90 transitions .* this training has 64") as caught:
        run(line, PROGRAMS[:1], TINY.replace(warmup=90), steps=64)
    assert caught.value.settings == ("sac.warmup", "steps")


# ---- Brax's losses


@pytest.mark.slow
def test_a_gradient_step_is_that_of_brax(line):
    from brax.training.agents.sac.losses import make_losses
    from brax.training.distribution import NormalTanhDistribution

    sac = TINY.replace(weight_decay=0.0, normalize_observations=False, temperature=0.3, discount=0.9)
    network, critic = SoftActor.of(line, sac), SoftCritic.of(sac)
    first = jax.tree.map(jnp.asarray, init_soft(network, critic, 3, 2, 2, "lecun"))
    other = jax.tree.map(jnp.asarray, init_soft(network, critic, 4, 2, 2, "lecun"))
    learned = new_agent(first, sac, 2, network).learned.replace(target=other["critic"])
    rng = np.random.default_rng(0)
    B = 32
    flags = rng.integers(0, 3, B)
    batch = SimpleNamespace(
        obs=jnp.array(rng.normal(size=(B, 2)), jnp.float32), following=jnp.array(rng.normal(size=(B, 2)), jnp.float32),
        action=jnp.array(rng.normal(size=(B, 2)), jnp.float32), reward=jnp.array(rng.normal(size=B), jnp.float32),
        terminated=jnp.array(flags == 1), truncated=jnp.array(flags == 2),
    )  # fmt: skip
    key = jax.random.key(5)
    ours, _ = gradient_step(learned, batch, key, network, critic, sac)  # type: ignore[arg-type]

    policy = SimpleNamespace(apply=lambda _, p, obs: network.apply({"params": p}, obs)[0])
    value = SimpleNamespace(apply=lambda _, p, obs, a: jnp.moveaxis(both(critic, p, obs, a, "float32"), 0, -1))
    networks: Any = SimpleNamespace(
        policy_network=policy, q_network=value, parametric_action_distribution=NormalTanhDistribution(2)
    )
    of_alpha, of_critic, of_actor = make_losses(networks, 1.0, sac.discount, 2)
    transitions: Any = SimpleNamespace(
        observation=batch.obs, next_observation=batch.following, action=jnp.tanh(batch.action), reward=batch.reward,
        discount=1.0 - (flags == 1), extras={"state_extras": {"truncation": jnp.array(flags == 2, float)}},
    )  # fmt: skip
    keys = jax.random.split(key, 3)
    alpha = jnp.exp(learned.log_temperature)
    gradients = {
        "temperature": jax.grad(of_alpha)(learned.log_temperature, first["actor"], None, transitions, keys[0]),
        "critic": jax.grad(of_critic)(
            first["critic"], first["actor"], None, other["critic"], alpha, transitions, keys[1]
        ),
        "actor": jax.grad(of_actor)(first["actor"], None, first["critic"], alpha, transitions, keys[2]),
    }
    known = {**first, "temperature": learned.log_temperature}
    for name, gradient in gradients.items():
        rate = sac.temperature_learning_rate if name == "temperature" else sac.learning_rate
        adam = optax.adam(rate, eps=sac.adam_epsilon)
        step, _ = adam.update(gradient, adam.init(known[name]))
        expected = optax.apply_updates(known[name], step)
        found = {**ours.params, "temperature": ours.log_temperature}[name]
        assert_close_trees(found, expected, atol=1e-6)
    moved = jax.tree.map(lambda old, new: 0.995 * old + 0.005 * new, other["critic"], ours.params["critic"])
    assert_close_trees(ours.target, moved, atol=1e-6)


@pytest.mark.slow
def test_matrices_alone_decay(line):
    sac = TINY.replace(weight_decay=0.5)
    network, critic = SoftActor.of(line, sac), SoftCritic.of(sac)
    learned: Learned = new_agent(
        jax.tree.map(jnp.asarray, init_soft(network, critic, 3, 2, 2, "lecun")), sac, 2, network
    ).learned
    zero = jnp.zeros((4, 2))
    batch: Any = SimpleNamespace(
        obs=zero, following=zero, action=zero, reward=zero[:, 0], terminated=jnp.ones(4, bool),
        truncated=jnp.ones(4, bool),
    )  # fmt: skip
    with_decay, _ = gradient_step(learned, batch, jax.random.key(0), network, critic, sac)
    without, _ = gradient_step(learned, batch, jax.random.key(0), network, critic, sac.replace(weight_decay=0.0))
    before, rate = learned.params["critic"], sac.learning_rate
    a, b = with_decay.params["critic"], without.params["critic"]
    np.testing.assert_allclose(
        b["up_0"]["kernel"] - a["up_0"]["kernel"], rate * 0.5 * before["up_0"]["kernel"], atol=1e-6
    )
    np.testing.assert_array_equal(a["norm"]["scale"], b["norm"]["scale"])


# ---- what must hold of every learner


@pytest.mark.parametrize("k", [3, pytest.param(1, marks=pytest.mark.slow)])
def test_a_candidate_trained_together_equals_itself_alone(line, together, k):
    assert_close_trees(params(together, k), params(run(line, [PROGRAMS[k]], execution=FUSED), 0))


def test_different_programs_and_seeds_give_different_agents(together):
    first, second = (jax.tree.leaves(params(together, k)) for k in (0, 2))
    assert max(float(np.abs(a - b).max()) for a, b in zip(first, second, strict=True)) > 1e-3
    one, other = (together.variables(0, s)["params"] for s in range(2))
    assert float(np.abs(one["policy"]["kernel"] - other["policy"]["kernel"]).max()) > 1e-3


@pytest.mark.slow
@pytest.mark.parametrize("how", [Execution(chunk=2), STEPWISE, BANK])
def test_neither_order_nor_chunks_nor_the_collector_matter(line, together, how):
    order = [2, 3, 0, 1]
    other = run(line, [PROGRAMS[k] for k in order], execution=how)
    for row, k in enumerate(order):
        assert_close_trees(params(together, k), params(other, row))


@pytest.mark.slow
def test_padding_does_not_matter(line):
    program = jr.load_program(PROGRAMS[0], line, trusted=True)
    found = [jax.device_get(agents_of(line, program, TINY, 5, width).params) for width in (0, 96)]
    for tree in found:
        for name, axis in (("actor", 2), ("critic", 3)):
            kernel = tree[name]["encoder_0"]["kernel"]
            size = kernel.shape[axis]
            kept = [*range(2), *(range(size - 2, size) if name == "critic" else ())]  # actions come after features
            assert not np.delete(kernel, kept, axis).any()
            tree[name]["encoder_0"]["kernel"] = np.take(kernel, kept, axis)
    narrow, padded = found
    assert_close_trees(narrow, padded)


@pytest.mark.slow
def test_a_diverged_candidate_does_not_affect_the_others(line, together, checker):
    bad = checker.check(BAD, Spec.of(line))[1]  # without the task, whose states would give it away
    result = run(line, [PROGRAMS[1], bad, PROGRAMS[2]], execution=FUSED)
    assert result.diverged[1].all() and not result.diverged[[0, 2]].any()
    assert (result.success[1] == 0).all()
    assert all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(result.agents[1]))
    for row, k in ((0, 1), (2, 2)):
        assert_close_trees(params(result, row), params(together, k))


def test_survivors_of_a_rung_train_as_if_there_were_none(line, together):
    cut = run(line, PROGRAMS, rungs=[Rung(steps=3 * TINY.batch, keep=0.5)], execution=FUSED)
    kept = np.flatnonzero(cut.stopped == 0)
    assert len(kept) == 2
    for k in map(int, kept):
        assert_close_trees(params(together, k), params(cut, k))


def test_a_resumed_training_equals_an_uninterrupted_one(line, together, tmp_path):
    store = Checkpoints(tmp_path)
    asked = iter(range(100))
    with pytest.raises(Interrupted):
        run(
            line, PROGRAMS, execution=FUSED, checkpointing=Checkpointing(store), should_stop=lambda: next(asked) >= 4
        )  # the fifth update does not begin; the buffer is as full as it was
    resumed = run(line, PROGRAMS, execution=FUSED, checkpointing=Checkpointing(store))
    for a, b in zip(jax.tree.leaves(resumed.agents), jax.tree.leaves(together.agents), strict=True):
        np.testing.assert_array_equal(a, b)


def test_a_trained_agent_acts(line, together):
    policy = together.policy(0, 0, deterministic=True)
    assert isinstance(policy, Policy)
    state = line.reset(jax.random.key(0))
    outputs, _, _ = apply(policy.network, policy.variables, view(state))
    np.testing.assert_allclose(policy(state), jnp.tanh(outputs[:2]), atol=1e-6)  # the mean, in a box from -1 to 1
    assert (together.policy(0, 0)(state, jax.random.key(1)) != policy(state)).all()
    assert policy(state).shape == (2,) and np.abs(policy(state)).max() <= 1.0


@pytest.mark.long
def test_actions_may_be_repeated(line):
    result = run(line, PROGRAMS[:1], TINY.replace(action_repeat=3))
    assert result.env_steps == 2 * 6 * 3 * 8 * 4
    with pytest.raises(InvalidSetting, match=r"repeat actions \(SAC\.action_repeat\)") as caught:
        run(line, PROGRAMS[:1], TINY.replace(action_repeat=3), execution=STEPWISE)
    assert "sac.action_repeat" in caught.value.settings
    with pytest.raises(InvalidSetting, match="holds an action for 3 steps"):
        result.policy(0)(line.reset(jax.random.key(0)), jax.random.key(1))


# ---- settings


@pytest.mark.parametrize(
    ("given", "setting", "says"),
    [
        ({"discount": 1.5}, "sac.discount", "must lie in"),
        ({"updates": 0}, "sac.updates", "at least 1"),
        ({"network": "cnn"}, "sac.network", "simba, mlp"),
        ({"hidden": (8, 16)}, "sac.hidden", "one width"),
        ({"warmup": 500}, "sac.warmup", "SAC.replay = 96"),
        ({"learning_rate": "fast"}, "sac.learning_rate", "must be a number"),
        ({"hidden": ()}, "sac.hidden", "at least one width"),
        ({"observation_clip": 0.0}, "sac.observation_clip", "positive"),
        ({"target_entropy": float("nan")}, "sac.target_entropy", "a number"),
        ({"weight_decay": -1.0}, "sac.weight_decay", "not negative"),
    ],
)
def test_invalid_settings_are_named(line, given, setting, says):
    with pytest.raises(InvalidSetting, match=says) as caught:
        run(line, PROGRAMS[:1], TINY.replace(**given), steps=64)
    assert setting in caught.value.settings


def test_discrete_actions_are_for_ppo():
    with pytest.raises(InvalidSetting, match="SAC is for continuous actions, and those of probe-choice are discrete"):
        train(make_task("probe-choice"), [Program.default(make_task("probe-choice"))], TINY, seeds=1, steps=64)


def test_another_object_is_no_learner(line):
    with pytest.raises(InvalidSetting, match=r"a jaxreward\.PPO or SAC"):
        train(line, PROGRAMS[:1], {"envs": 8}, seeds=1, steps=64, trusted=True)  # type: ignore[arg-type]
