"""Trained agents as functions of state and key, results as tables, and functions as candidates."""

from __future__ import annotations

import dataclasses
from functools import partial
from typing import Any, cast

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxreward.errors import InvalidSetting
from jaxreward.function_source import UnreadableFunction
from jaxreward.programs import Program, load_program
from jaxreward.training import PPO, Policy, TrainResult, train
from jaxreward.training.arguments import learner_of
from jaxreward.training.candidates import programs_of
from jaxreward.training.networks import ActorCritic, apply
from jaxreward.training.rollout import finite_or_zero

pytestmark = pytest.mark.usefixtures("unoptimised")
TINY = PPO(envs=8, unroll=8, minibatches=2, hidden=(8,), normalize_observations=True)
WEIGHT = np.float32(0.1)


def see(state: Any) -> jax.Array:
    return jnp.stack([state.place / 6.0, state.signal])


def pay(state: Any, action: Any, next_state: Any) -> Any:
    gain = WEIGHT * (next_state.place - state.place)
    return gain + next_state.hit, {"gain": gain, "<hit>": next_state.hit}


@pytest.fixture(scope="module")
def trained(task_of) -> TrainResult:
    task = task_of("probe-corridor")
    return train(task, [pay, (see, pay), Program.default(task)], TINY, seeds=2, steps=4096)


def states_of(task: Any, count: int) -> Any:
    return jax.vmap(task.reset)(jax.random.split(jax.random.key(0), count))


# ---- functions as candidates


def test_functions_are_the_programs_of_their_names(trained):
    assert [p.name for p in trained.programs] == ["pay", "see+pay", "default"]
    assert [p.observation_size for p in trained.programs] == [3, 2, 3]
    assert trained.programs[0].digest == load_program(pay, trained.task).digest


def test_a_function_alone_and_trusted_is_the_same_candidate(trained):
    for given in (pay, [pay]):
        (program,) = programs_of(given, trained.task, trusted=True)
        assert program.digest == trained.programs[0].digest


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"steps": "x"}, "steps must be a whole number, not 'x'"),
        ({"steps": 1.5}, "steps must be a whole number, not 1.5"),
        ({"checkpoints": None}, "checkpoints must be a whole number, not None"),
        ({"seeds": ["x"]}, r"seeds are a number of seeds or a sequence of integers, not \['x'\]"),
        (
            {"seeds": [2**32]},
            r"seeds must be distinct integers from 0 to 2\*\*32 - 1, at least one, not \[4294967296\]",
        ),
        ({"ppo": PPO(scale_rewards=cast(Any, "no"))}, "PPO.scale_rewards must be True or False, not 'no'"),
        ({"rungs": [3]}, r"rungs are a list such as \[jr.Rung\(steps=100_000\)\], not \[3\]"),
        ({"progress": 3}, "progress is called while it trains: give a function, not 3"),
        ({"programs": 3}, "programs are a list of programs, functions or paths, not 3"),
        ({"ppo": PPO(envs=cast(Any, "x"))}, "PPO.envs must be a whole number, not 'x'"),
        ({"ppo": PPO(hidden=cast(Any, 8))}, "PPO.hidden must be a list of whole numbers, not 8"),
        ({"task": "probe-choice"}, r"task is an object here: write jr.make_task\('probe-choice'\)"),
    ],
)
def test_arguments_of_the_wrong_type_are_told_by_their_names(task_of, given: dict[str, Any], says: str):
    call = {"task": task_of("probe-corridor"), "programs": [pay], "ppo": TINY, "steps": 64, **given}
    with pytest.raises(InvalidSetting, match=f"^{says}"):
        train(**call)


def test_numbers_of_numpy_and_jax_and_lists_are_those_of_python():
    given = PPO(
        learning_rate=cast(Any, jnp.float32(0.5)), envs=cast(Any, np.int64(8)), hidden=cast(Any, [8, np.int32(4)])
    )
    found = learner_of(given.replace(bootstrap=np.bool_(True)))
    assert found == PPO(learning_rate=0.5, envs=8, hidden=(8, 4), bootstrap=True)
    assert [type(v) for v in (found.learning_rate, found.envs, found.hidden, found.bootstrap)] == [
        float,
        int,
        tuple,
        bool,
    ]


def test_64_bits_are_refused(task_of):
    jax.config.update("jax_enable_x64", True)
    try:
        with pytest.raises(InvalidSetting, match="jax_enable_x64 is on, and agents train in 32 bits"):
            train(task_of("probe-corridor"), [pay], TINY, steps=64)
    finally:
        jax.config.update("jax_enable_x64", False)


def test_what_may_be_one_candidate_or_two_is_asked_for(task_of):
    task = task_of("probe-corridor")
    with pytest.raises(InvalidSetting, match=r"write \[\(see, pay\)\] for one candidate of both functions"):
        train(task, (see, pay), TINY, steps=64)
    for nothing in ([], ()):
        with pytest.raises(InvalidSetting, match="at least one"):
            train(task, nothing, TINY, steps=64)
    with pytest.raises(InvalidSetting, match="programs are a list"):
        train(task, "program.py", TINY, steps=64)  # type: ignore[arg-type]
    with pytest.raises(InvalidSetting, match="the program is empty: give a path, a text, a function"):
        load_program("", task)
    with pytest.raises(UnreadableFunction, match="takes 2 parameters"):
        train(task, [pay, lambda state, action: 0.0], TINY, steps=64)


# ---- the policy


def test_actions_are_those_of_the_network_on_the_observation_of_the_program(trained):
    task, (c, s), states = trained.task, (1, 1), states_of(trained.task, 16)
    network, program, choice = ActorCritic.of(task, TINY), trained.programs[c], ActorCritic.of(task, TINY).distribution
    observed = jax.jit(jax.vmap(lambda x: program.observe(task.view(x))))(states)
    outputs, *_ = jax.jit(partial(apply, network))(trained.variables(c, s), observed)
    likeliest = jax.jit(jax.vmap(trained.policy(c, s, deterministic=True)))(states)
    assert likeliest.dtype == jnp.int32 and np.array_equal(likeliest, jnp.argmax(outputs, -1))
    keys = jax.random.split(jax.random.key(1), 16)
    noise = jax.vmap(lambda key: choice.noise(key, ()))(keys)
    drawn = jax.jit(jax.vmap(trained.policy(c, s)))(states, keys)
    assert np.array_equal(drawn, choice.action(choice.sample(outputs, noise)))


def test_actions_are_drawn_with_the_probabilities_of_the_network(trained):
    task, program, state = trained.task, trained.programs[1], trained.task.reset(jax.random.key(3))
    variables = jax.jit(ActorCritic.of(task, TINY).init)(jax.random.key(0), jnp.zeros(program.observation_size))
    policy = Policy(task, program, variables, TINY)
    logits, *_ = apply(policy.network, variables, program.observe(task.view(state)))
    drawn = jax.jit(jax.vmap(policy, (None, 0)))(state, jax.random.split(jax.random.key(4), 4000))
    assert float(drawn.mean()) == pytest.approx(float(jax.nn.softmax(logits)[1]), abs=0.03)


def test_playing_the_policy_succeeds_as_often_as_the_evaluation_says(trained):
    task, policy = trained.task, trained.policy(0, 0)

    def episode(key: jax.Array) -> jax.Array:
        def step(carry: Any, t: jax.Array) -> Any:
            state, over, hit = carry
            after = task.step(state, policy(state, jax.random.fold_in(key, t)))
            hit = jnp.where(over, hit, after.hit)
            return (after, over | task.terminated(after), hit), None

        start = task.reset(key)
        (_, _, hit), _ = jax.lax.scan(step, (start, jnp.zeros((), bool), start.hit), jnp.arange(task.horizon))
        return hit

    rate = float(jax.jit(jax.vmap(episode))(jax.random.split(jax.random.key(5), 512)).mean())
    value = trained.success[0, 0]
    error = (value * (1 - value) * (1 / 512 + 1 / 256)) ** 0.5
    assert abs(rate - value) < 4 * error + 0.02


def test_the_default_is_the_best_seed(trained):
    for c in range(3):
        best = trained.variables(c, trained.best_seed(c))
        assert jax.tree.all(jax.tree.map(np.array_equal, trained.policy(c).variables, best))


def test_a_seed_that_diverged_is_not_the_best(trained):
    lost = np.zeros_like(trained.diverged)
    lost[:, 0] = True
    equal = dataclasses.replace(trained, success=np.zeros_like(trained.success), diverged=lost)
    assert equal.best_seed(0) == 1 and dataclasses.replace(equal, diverged=~lost).best_seed(0) == 0


def test_a_drawn_action_needs_a_key(trained):
    with pytest.raises(InvalidSetting, match="give it a key"):
        trained.policy(0)(trained.task.reset(jax.random.key(0)))


def test_real_actions_are_the_mean_where_deterministic(task_of):
    task = task_of("probe-aim")
    program, ppo = Program.default(task), PPO(hidden=(4,))
    variables = jax.jit(ActorCritic.of(task, ppo).init)(jax.random.key(0), jnp.zeros(program.observation_size))
    policy, state = Policy(task, program, variables, ppo, deterministic=True), task.reset(jax.random.key(1))
    outputs, *_ = apply(policy.network, variables, program.observe(task.view(state)))
    np.testing.assert_allclose(policy(state), jnp.tanh(outputs[:1]), rtol=1e-6)
    assert not np.array_equal(policy(state), Policy(task, program, variables, ppo)(state, jax.random.key(2)))


@pytest.mark.parametrize(("gru", "repeat"), [(0, 1), (0, 3), (6, 1), (6, 3)])
def test_a_step_carries_memory_and_holds_actions(task_of, gru, repeat):
    """By hand: at every choice the agent remembers its hidden state, its last action and what was paid since."""
    task = task_of("probe-corridor")
    program = load_program((see, pay), task)
    ppo = PPO(hidden=(4,), gru=gru, action_repeat=repeat)
    network = ActorCritic.of(task, ppo)
    choice, memory = network.distribution, network.memory(())
    variables = jax.jit(network.init)(jax.random.key(0), jnp.zeros(program.observation_size), memory)
    policy = Policy(task, program, variables, ppo)
    state = task.reset(jax.random.key(1))
    choose = jax.jit(partial(apply, network))
    if gru or repeat > 1:
        with pytest.raises(InvalidSetting, match="policy.start"):
            policy(state, jax.random.key(0))
    carry, step = policy.start(state), jax.jit(policy.step)
    action, hidden, paid = jnp.zeros((), jnp.int32), None, 0.0
    for t in range(8):
        key = jax.random.fold_in(jax.random.key(2), t)
        if t % repeat == 0:
            if t and gru:
                memory = network.remember(hidden, action, jnp.float32(paid), jnp.zeros((), bool))
            outputs, _, hidden = choose(variables, program.observe(task.view(state)), memory)
            action, paid = choice.sample(outputs, choice.noise(key, ())), 0.0
        chosen, carry = step(carry, state, key)
        assert int(chosen) == int(action), t
        after = task.step(state, chosen)
        paid += float(finite_or_zero(program.reward(task.view(state), chosen, task.view(after))[0]))
        state = after
        if carry.past is not None and hidden is not None:
            np.testing.assert_allclose(carry.past.hidden, hidden, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda result: result.policy(9), "there is no candidate 9: give its position, 0 to 2"),
        (lambda result: result.policy(0, 2), "there is no seed 2: give its position, 0 to 1"),
        (lambda result: result.terms(7), "there is no candidate 7: give its position, 0 to 2"),
        (lambda result: result.terms(-4), "there is no candidate -4: give its position, 0 to 2"),
        (lambda result: result.score("see"), "a candidate is given by its position, 0 to 2, not 'see'"),
        (lambda result: result.variables(1.0, 0), "a candidate is given by its position, 0 to 2, not 1.0"),
    ],
)
def test_a_position_that_is_not_there_gets_a_sentence(trained, call, says):
    with pytest.raises(InvalidSetting) as error:
        call(trained)
    assert str(error.value) == says
    assert trained.terms(-1) == trained.terms(np.int32(2))


# ---- tables


def test_terms_are_those_of_the_feedback(trained):
    table, curves = trained.terms(1), trained.feedback(1).terms
    assert table.columns == ("term", "mean", "min", "max", "share")
    assert table["term"] == ["gain", "<hit>"] == [curve.name for curve in curves]
    assert sum(table["share"]) == pytest.approx(1.0)
    assert table[0] == {"term": "gain", "mean": curves[0].mean[-1], "min": curves[0].minimum[-1],
                        "max": curves[0].maximum[-1], "share": curves[0].share}  # fmt: skip


def test_the_table_lists_candidates_from_the_best_on(trained):
    table = trained.table()
    values = table["success"]
    assert values == sorted(values, reverse=True) and sorted(table["candidate"]) == [0, 1, 2]
    for row in table:
        score = trained.score(row["candidate"])
        assert (row["success"], row["error"]) == (score.mean, score.se) and row["steps"] == 4096


def test_a_result_is_shown_in_about_ten_lines(trained):
    lines = repr(trained).splitlines()
    assert lines[0].startswith("TrainResult on probe-corridor: 3 candidates, 2 seeds, 4.10k steps each; ")
    assert len(lines) == 5 and "see+pay" in "\n".join(lines[2:])
    thrice = {name: getattr(trained, name) * 3 for name in ("programs", "histories", "agents", "reasons")}
    arrays = {name: np.concatenate([getattr(trained, name)] * 3) for name in ("success", "diverged", "stopped")}
    shown = repr(dataclasses.replace(trained, **thrice, **arrays)).splitlines()
    assert len(shown) == 9 and shown[-1] == "and 3 candidates more: result.table()"


def test_html_has_the_same_rows_escaped(trained):
    assert "<hit>" not in trained.terms(1)._repr_html_() and "&lt;hit&gt;" in trained.terms(1)._repr_html_()
    shown = trained._repr_html_()
    assert shown.count("<tr>") == 4 and "see+pay" in shown and shown.count("<p>") == 1
