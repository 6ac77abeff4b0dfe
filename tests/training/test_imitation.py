"""Agents that learn from an expert's episodes: what they learn, and that they do so independently of one another."""

from __future__ import annotations

import dataclasses
import json
from functools import partial
from typing import Any, cast

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxreward.cli import main
from jaxreward.demonstrations import (
    Trajectories,
    WrongTrajectories,
    record_actions,
    record_random,
    reset_keys,
    save_trajectories,
)
from jaxreward.errors import InvalidSetting
from jaxreward.programs import Program, Spec
from jaxreward.tasks import Box, make_task
from jaxreward.training import (
    AIRL,
    GAIL,
    PPO,
    Checkpointing,
    Cloning,
    Execution,
    Imitation,
    Interrupted,
    imitate,
    quick_real,
    train,
)
from jaxreward.training.chunk import Chunk
from jaxreward.training.distributions import TanhNormal
from jaxreward.training.imitation import ImitationRows
from jaxreward.training.imitation.cloning import _moments
from jaxreward.training.imitation.discriminator import (
    Transitions,
    init_discriminator,
    judge,
    logits,
    new_discriminator,
    rewards,
)
from jaxreward.training.learners import for_imitation
from jaxreward.training.networks import ActorCritic, normalized
from jaxreward.training.population import Population
from jaxreward.training.ppo import RewardScale, scaled_rewards
from jaxreward.training.rollout import Trajectory
from tests.training.conftest import BANK, STEPWISE, assert_close_trees, budget, params
from tests.training.test_bookkeeping import Memory

pytestmark = pytest.mark.usefixtures("unoptimised")

SMALL: dict[str, Any] = {"hidden": (16,), "batch": 16, "updates": 2, "learning_rate": 0.03}
QUICK = {"gail": GAIL(**SMALL), "airl": AIRL(**SMALL), "bc": Cloning()}


@pytest.fixture(scope="module")
def corridor():
    return make_task("probe-corridor")


@pytest.fixture(scope="module")
def expert(corridor) -> Trajectories:
    """Eight episodes that walk right."""
    return record_actions(corridor, reset_keys(8, 0), [np.ones(6, np.int32)] * 8)


@pytest.fixture(scope="module")
def sets(expert, corridor) -> list[Trajectories]:
    """One episode, eight, and random ones."""
    return [expert.take([0]), expert, record_random(corridor, 5, seed=1)]


@pytest.fixture(scope="module", params=["airl", pytest.param("gail", marks=pytest.mark.slow), "bc"])
def method(request):
    return QUICK[request.param]


@pytest.fixture(scope="module")
def together(corridor, sets, method, tiny):
    return imitate(corridor, sets, method, tiny, **budget(tiny))


# ---- what is learned

LEARNER = PPO(envs=32, unroll=16, hidden=(32,), activation="tanh", learning_rate=3e-3, entropy=0.01, discount=0.9)


@pytest.mark.long
@pytest.mark.parametrize("name", ["gail", pytest.param("airl", marks=pytest.mark.slow), "bc"])
def test_an_agent_does_what_the_expert_did(name, corridor, expert, checker):
    """Though the program pays for the opposite; the sets are of one episode and of eight."""
    source = "def compute_reward(state, action, next_state):\n    return 1.0 * (state.place - next_state.place)\n"
    program = checker.check(source, corridor)[1]
    result = imitate(
        corridor, [expert.take([0]), expert], name, LEARNER, programs=[program, program], seeds=2, steps=20_000,
        checkpoints=2, eval_episodes=64,
    )  # fmt: skip
    assert result.success.mean(1).min() > 0.97
    assert result.length_curve[:, :, -1].max() < 8
    assert result.return_curve[:, :, -1].max() < -5, "the program is measured"
    assert (result.env_steps == 0) == (name == "bc")


@pytest.mark.long
@pytest.mark.parametrize("name", [pytest.param("gail", marks=pytest.mark.slow), "bc"])
def test_real_actions_are_imitated(name):
    task, keys = make_task("probe-aim"), reset_keys(64, 0)
    signal = np.asarray(jax.vmap(task.reset)(keys).signal)
    expert = record_actions(task, keys, [np.full((1, 1), s / 2, np.float32) for s in signal])
    ppo = for_imitation(quick_real(envs=32, unroll=4, unrolls=1, minibatches=4))
    result = imitate(task, expert, name, ppo, seeds=2, steps=40_000, checkpoints=2, eval_episodes=64)
    assert result.success.mean() > 0.9


@pytest.mark.long
def test_rewards_of_programs_are_not_read(corridor, sets, method, tiny, together, checker):
    source = "def compute_reward(state, action, next_state):\n    return 100.0 * state.place\n"
    own = checker.check(source, corridor)[1]
    found = imitate(corridor, sets[0], method, tiny, programs=own, **budget(tiny))
    assert_close_trees(params(found, 0), params(together, 0))


# ---- identities


@pytest.mark.long
def test_a_set_learned_from_beside_others_equals_itself_alone(corridor, sets, method, tiny, together):
    for k in range(len(sets)):
        alone = imitate(corridor, [sets[k]], method, tiny, **budget(tiny))
        assert_close_trees(params(together, k), params(alone, 0))


def test_different_sets_give_different_parameters(together):
    first, last = (jax.tree.leaves(params(together, k)) for k in (0, 2))
    assert max(float(np.abs(a - b).max()) for a, b in zip(first, last, strict=True)) > 1e-3


@pytest.mark.long
def test_order_and_chunks_do_not_matter(corridor, sets, method, tiny, together):
    found = imitate(corridor, sets[::-1], method, tiny, execution=Execution(chunk=2), **budget(tiny))
    assert found.chunks == (2, 1)
    for k in range(3):
        assert_close_trees(params(together, k), params(found, 2 - k))


@pytest.mark.long
@pytest.mark.parametrize("execution", [STEPWISE, BANK], ids=["stepwise", "bank"])
def test_collectors_agree(execution, corridor, sets, tiny):
    one = imitate(corridor, sets, QUICK["airl"], tiny, **budget(tiny))
    other = imitate(corridor, sets, QUICK["airl"], tiny, execution=execution, **budget(tiny))
    for k in range(3):
        assert_close_trees(params(one, k), params(other, k))


@pytest.mark.long
def test_padding_does_not_matter(corridor, sets, tiny, method):
    """Of observations, and of the transitions of a set beside a larger one."""
    program, agents = Program.default(corridor), []
    rows = ImitationRows.of(Imitation(sets, method), corridor, [program] * 3, tiny)
    for width, taken in ((0, [0]), (96, [0, 1])):
        chunk = Chunk(
            corridor, Population([program] * len(taken), width=width), tiny, (3,), jax.devices()[0],
            imitation=rows.take(taken),
        )  # fmt: skip
        chunk.compile()
        state, stats = chunk.start(), chunk.fresh_stats()
        for index in range(3):
            state, stats, _ = chunk.update(state, stats, index, index / 3)
        agents.append(jax.device_get(jax.tree.map(lambda x: x[0, 0], state.agents)))
    narrow, wide = agents
    assert not wide.params["encoder_0"]["kernel"][3:].any()
    for agent in agents:
        agent.params["encoder_0"]["kernel"] = agent.params["encoder_0"]["kernel"][:3]
    assert_close_trees(narrow.params, wide.params)
    if narrow.discriminator is not None:
        a, b = (agent.discriminator.params["reward"] for agent in agents)
        assert_close_trees(a[0]["kernel"][:3], b[0]["kernel"][:3])
        assert not b[0]["kernel"][3:96].any()
        assert_close_trees(a[1:], b[1:])


def test_a_diverged_agent_does_not_affect_the_others(corridor, sets, tiny, together, method, checker):
    """Whose program has an observation that is not finite from step 8 of an episode on."""
    source = (
        "import jax.numpy as jnp\n\n\ndef get_observation(state):\n"
        "    return jnp.stack([jnp.where(state.t >= 8, jnp.nan, state.place / 6.0)])\n\n\n"
        "def compute_reward(state, action, next_state):\n    return 1.0 * next_state.hit\n"
    )
    bad = checker.check(source, Spec.of(corridor))[1]  # without the task, whose states would give it away
    own = Program.default(corridor)
    found = imitate(corridor, sets, method, tiny, programs=[own, bad, own], **budget(tiny))
    assert found.diverged[1].all() and not found.diverged[[0, 2]].any()
    assert all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(found.agents[1]))
    for k in (0, 2):
        assert_close_trees(params(found, k), params(together, k))


def test_a_resumed_training_equals_an_uninterrupted_one(corridor, sets, tiny, together, method):
    store, asked = Memory(), [0]

    def stop() -> bool:
        asked[0] += 1
        return asked[0] > 2

    run = partial(imitate, corridor, sets, method, tiny, checkpointing=Checkpointing(store), **budget(tiny))
    with pytest.raises(Interrupted):
        run(should_stop=stop)
    resumed = run()
    assert store.restored == 1
    for a, b in zip(jax.tree.leaves(together.agents), jax.tree.leaves(resumed.agents), strict=True):
        np.testing.assert_array_equal(a, b)
    other = imitate(corridor, sets[::-1], method, tiny, checkpointing=Checkpointing(store), **budget(tiny))
    assert store.restored == 1, "other sets are another training"
    assert_close_trees(params(other, 0), params(together, 2))


# ---- the discriminator


@pytest.fixture(scope="module")
def some(corridor, tiny):
    """A network, and four transitions of two features."""
    rng = np.random.default_rng(0)
    draw = lambda *shape: jnp.asarray(rng.normal(size=shape), jnp.float32)  # noqa: E731
    x = Transitions(draw(4, 2), jax.nn.one_hot(jnp.array([0, 1, 1, 0]), 2), draw(4, 2), draw(4), jnp.arange(4) == 3)
    return ActorCritic.of(corridor, tiny), x


def test_airl_is_a_potential_and_the_probability(some):
    """f = g(s, a) + discount h(s') - h(s), less log pi(a|s); after the end h is 0, or that of the last state where that
    is never left; `state_only` hides the action."""
    network, x = some
    for alone, absorbing in ((False, False), (True, False), (False, True)):
        method = AIRL(hidden=(8,), state_only=alone)
        of = jax.tree.map(jnp.asarray, init_discriminator(network, method, 0, 2, 2))
        g = partial(_mlp, of["reward"])
        h = partial(_mlp, of["potential"])
        expected = g(x.obs if alone else np.concatenate([x.obs, x.action], -1)) - h(x.obs) - np.asarray(x.logp)
        expected += 0.9 * np.where(np.arange(4) == 3, h(x.obs) if absorbing else 0.0, h(x.next_obs))
        hyper = PPO(discount=0.9, bootstrap=absorbing, absorbing=absorbing)
        np.testing.assert_allclose(logits(method, of, x, hyper), expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("absorbing", [False, True])
@pytest.mark.parametrize("length", [1, 4])
def test_what_potentials_pay_is_that_of_the_first_state_whenever_an_episode_ends(some, length, absorbing):
    network, x = some
    hyper = PPO(discount=0.9, bootstrap=True, absorbing=absorbing, scale_rewards=False, normalize_observations=False)
    method = AIRL(hidden=(8,))
    of = jax.tree.map(jnp.asarray, init_discriminator(network, method, 0, 2, 2))
    of["reward"] = jax.tree.map(jnp.zeros_like, of["reward"])
    states = jnp.concatenate([x.obs, x.next_obs])[: length + 1]
    done = jnp.arange(length) == length - 1
    steps = Transitions(states[:-1], jnp.zeros((length, 2)), states[1:], jnp.zeros(length), done)
    paid = logits(method, of, steps, hyper)[:, None]
    zero = jnp.zeros((length, 1))
    played = Trajectory(
        obs=zero, action=zero, logp=zero, value=zero, reward=paid, done=done[:, None], truncated=zero.astype(bool),
    )  # fmt: skip
    scale = RewardScale(jnp.zeros(1), jnp.zeros(()), jnp.zeros(()))
    _, paid_for = scaled_rewards(scale, played, hyper)
    total = jnp.sum(paid_for[:, 0] * 0.9 ** jnp.arange(length))
    np.testing.assert_allclose(total, -_mlp(of["potential"], states[:1])[0], rtol=1e-4, atol=1e-6)


def _mlp(layers: list[dict[str, Any]], x: Any) -> Any:
    for layer in layers[:-1]:
        x = jnp.tanh(x @ layer["kernel"] + layer["bias"])
    return (x @ layers[-1]["kernel"] + layers[-1]["bias"])[:, 0]


def test_rewards_are_those_of_the_papers():
    logit = jnp.array([-2.0, 0.0, 3.0])
    d = 1.0 / (1.0 + np.exp(-np.asarray(logit)))
    for form, expected in (
        ("positive", -np.log(1 - d)), ("negative", np.log(d)), ("difference", np.log(d) - np.log(1 - d)),
    ):  # fmt: skip
        np.testing.assert_allclose(rewards(GAIL(reward=cast(Any, form)), logit), expected, rtol=1e-5)
    np.testing.assert_allclose(rewards(AIRL(), logit), logit)


@pytest.mark.long
def test_a_discriminator_learns_who_is_who(corridor, sets, tiny):
    """It pays the expert's transitions more than random ones, whatever agent it is beside."""
    program, method = Program.default(corridor), GAIL(hidden=(16,), batch=32, updates=200, gradient_penalty=0.0)
    rows = ImitationRows.of(Imitation(sets, method), corridor, [program] * 3, tiny)
    chunk = Chunk(corridor, Population([program]), tiny, (3,), jax.devices()[0])
    chunk.compile()
    state = chunk.start()
    _, trajectory, _ = chunk.collect(state, chunk.fresh_stats(), 0)
    one = jax.tree.map(lambda x: x[:, 0, 0], trajectory.replace(memory=None))
    experts = jax.tree.map(jnp.asarray, rows.take([1]).stacked(32)).replace(of=jnp.int32(0))
    variables = jax.tree.map(lambda x: x[0, 0], chunk.start().agents.variables)
    first = new_discriminator(init_discriminator(ActorCritic.of(corridor, tiny), method, 0, 3, 32))
    asked = jax.jit(partial(judge, network=ActorCritic.of(corridor, tiny)), static_argnames="method")
    t = np.asarray(one.obs)[:-1, :, 1]
    begins, right, apart, norms = t == 0, np.asarray(one.action) == 1, [], []
    action = chunk.network.distribution.encode(one.action)
    read = jnp.concatenate([one.obs[:-1], action], -1).reshape(-1, 34)
    for penalty in (0.0, 30.0):
        own = dataclasses.replace(method, gradient_penalty=penalty)
        found, paid = asked(first, variables, one, experts, jax.random.key(0), 0.9, method=own)
        apart.append(float(paid[begins & right].mean() - paid[begins & ~right].mean()))
        slope = jax.vmap(jax.grad(lambda x, p=found.params: _mlp(p["reward"], x[None])[0]))
        norms.append(jnp.linalg.norm(slope(read), axis=-1))
    assert apart[0] > 0.3
    assert abs(norms[1] - 1.0).mean() < 0.2 < abs(norms[0] - 1.0).mean(), "the penalty keeps slopes near 1"


def test_samples_are_those_of_the_actions():
    """A sample of an action is the one that it was made of; at a bound it is finite."""
    over = TanhNormal(Box((2, 3), low=-2.0, high=5.0))
    samples = jnp.asarray(np.random.default_rng(0).normal(size=(5, 6)), jnp.float32)
    np.testing.assert_allclose(over.sample_of(over.action(samples)), samples, rtol=1e-3, atol=1e-4)
    np.testing.assert_allclose(over.sample_of(jnp.full((1, 2, 3), 5.0)), 3.8, atol=0.01)


# ---- what is refused


@pytest.mark.parametrize(
    ("change", "settings"),
    [
        ({"method": "gan"}, ("method",)),
        ({"method": GAIL(updates=0)}, ("method.updates",)),
        ({"method": AIRL(gradient_penalty=-1.0)}, ("method.gradient_penalty",)),
        ({"method": GAIL(hidden=cast(Any, [64]))}, ("method.hidden",)),
        ({"method": GAIL(reward=cast(Any, "best"))}, ("method.reward",)),
        ({"positives": "first"}, ("positives",)),
        ({"positives": "last", "method": "airl"}, ("positives", "method")),
        ({"positives": "last", "method": "bc"}, ("positives", "method")),
        ({"experts": []}, ("experts",)),
        ({"experts": "expert.npz"}, ("experts",)),
        ({"ppo": PPO(gru=8)}, ("ppo.gru",)),
        ({"ppo": PPO(action_repeat=2)}, ("ppo.action_repeat",)),
    ],
)
def test_what_cannot_be_imitated_is_said(corridor, expert, change, settings):
    given = {"experts": expert, "method": "gail", "ppo": PPO(), **change}
    with pytest.raises(InvalidSetting) as error:
        imitate(corridor, **given, steps=1000)
    assert error.value.settings == settings


def test_sets_are_as_many_as_programs_and_of_the_task(corridor, sets):
    program = Program.default(corridor)
    with pytest.raises(InvalidSetting, match="3 sets of experts for 2 programs"):
        train(corridor, [program] * 2, imitation=Imitation(sets))
    with pytest.raises(WrongTrajectories):
        imitate(make_task("probe-aim"), sets)
    rows = ImitationRows.of(Imitation(sets, "gail", positives="last"), corridor, [program] * 3, PPO()).rows
    assert [len(row) for row in rows] == [1, 8, 5]
    assert all(row.rows.done.all() and row.rows.next_obs is None for row in rows)


def test_an_episode_that_was_cut_is_not_over(corridor, expert):
    program = Program.default(corridor)
    for ended in (True, False):
        cut = dataclasses.replace(expert, ended=np.full(8, ended))
        (row,) = ImitationRows.of(Imitation(cut, "airl"), corridor, [program], PPO()).rows
        assert row.rows.done.sum() == 8 * ended
        np.testing.assert_allclose(row.rows.next_obs[:5], row.rows.obs[1:6])


def test_a_set_is_on_the_device_once(corridor, sets):
    program = Program.default(corridor)
    rows = ImitationRows.of(Imitation([sets[1], sets[0], sets[1]], "bc"), corridor, [program] * 3, PPO())
    stacked = rows.stacked(32)
    assert stacked.obs.shape == (2, 64, 32) and stacked.of.tolist() == [0, 1, 0] and stacked.count.tolist() == [48, 6]


def test_a_feature_that_is_constant_for_the_expert_is_not_scaled(corridor, sets):
    """Its deviation of next to nothing would put what is met in play far out."""
    stacked = ImitationRows.of(Imitation(sets[1], "bc"), corridor, [Program.default(corridor)], PPO()).stacked(32)
    stacked = stacked.replace(obs=np.concatenate([stacked.obs[..., :31], np.full((1, 64, 1), 0.3, np.float32)], -1))
    found = normalized(_moments(jax.tree.map(jnp.asarray, stacked).replace(of=jnp.int32(0))), jnp.full(32, 0.4))
    np.testing.assert_allclose(found[31], 0.1, rtol=1e-3)


@pytest.mark.long
def test_the_command_trains_several_numbers_of_episodes(corridor, expert, tmp_path, capsys):
    save_trajectories(tmp_path / "expert.npz", expert)
    given = ["train", "--task", "probe-corridor", "--imitate", "bc", "--data", str(tmp_path / "expert.npz")]
    assert main([*given, "--expert-episodes", "1", "8", "--seeds", "1", "--steps", "4096", "--json"]) == 0
    found = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert found["imitate"] == "bc" and found["env_steps"] == 0
    names = [row["interface"] for row in found["rows"]]
    assert names == ["default observation, bc of 1 episode", "default observation, bc of 8 episodes"]
    for numbers, sentence in ((("4", "4"), "names a number twice"), (("9",), "has 8 episodes; record more")):
        assert main([*given, "--expert-episodes", *numbers]) == 2
        assert sentence in capsys.readouterr().err
