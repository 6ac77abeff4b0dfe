"""Rewards against demonstrations: the same values as each program alone, and what they are worth."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxreward.demonstrations import Trajectories, WrongTrajectories, record_actions, record_random, reset_keys
from jaxreward.objectives.demonstrations.fitness import accuracy, airl_fitness
from jaxreward.objectives.demonstrations.results import FITNESS, OF_CONSTANT, told_apart
from jaxreward.objectives.demonstrations.scoring import DemonstrationData, _error_over_episodes, separate
from jaxreward.programs import Checker, Program, Spec
from jaxreward.programs.batched_rewards import BatchedRewards
from jaxreward.records import Candidate, Feedback, Result, Score
from jaxreward.tasks import Task

REWARDS = [
    "def compute_reward(state, action, next_state):\n    return 6.0 * (next_state.place == 6) - 4.0",
    "def compute_reward(state, action, next_state):\n"
    "    gain = 0.5 * (next_state.place - state.place)\n"
    "    return gain - 0.01, {'gain': gain}",
    "def compute_reward(state, action, next_state):\n    return 2.0 * (next_state.place - state.place) - 0.1",
    "def compute_reward(state, action, next_state):\n"
    "    near = 3.0 * jnp.exp(-0.5 * next_state.place) + 0.25 * jnp.exp(-0.125 * next_state.place)\n"
    "    return near + 0.5 * (action == 1)",
    "def compute_reward(state, action, next_state):\n    return 0.25 + 0.0 * action",
    "def reward(state):\n    return -1.0 * jnp.abs(state.place - 3)",
]


@pytest.fixture(scope="module")
def corridor(task_of: Callable[..., Task]) -> Task:
    return task_of("probe-corridor")


@pytest.fixture(scope="module")
def programs(checker: Checker, corridor: Task) -> Sequence[Program]:
    found = checker.check_many([f"import jax.numpy as jnp\n{text}\n" for text in REWARDS], corridor)
    assert all(program is not None for _, program in found), [str(verdict.failure) for verdict, _ in found]
    return [program for _, program in found if program is not None]


@pytest.fixture(scope="module")
def negative(corridor: Task) -> Trajectories:
    return record_random(corridor, 5, seed=1)


@pytest.fixture(scope="module")
def data(corridor: Task, negative: Trajectories) -> DemonstrationData:
    expert = record_actions(corridor, reset_keys(3, 0), [[1] * corridor.horizon] * 3)
    return DemonstrationData.of(corridor, expert, negative, "last")


def test_rewards_are_those_of_each_program_alone(programs: Sequence[Program], negative: Trajectories) -> None:
    samples = negative.transitions()
    found = np.asarray(BatchedRewards(programs)(samples))
    assert found.shape == (len(programs), len(samples))
    for k, program in enumerate(programs):
        alone = jax.vmap(lambda s, a, n, p=program: p.reward(s, a, n)[0])(
            samples.states, samples.actions, samples.next_states
        )
        np.testing.assert_allclose(found[k], alone, rtol=1e-6, atol=1e-6)


def test_neither_order_nor_slices_matter(
    programs: Sequence[Program], negative: Trajectories, monkeypatch: pytest.MonkeyPatch
) -> None:
    samples = negative.transitions()
    whole = np.asarray(BatchedRewards(programs)(samples))
    np.testing.assert_array_equal(whole[::-1], BatchedRewards(programs[::-1])(samples))
    monkeypatch.setattr("jaxreward.programs.batched_rewards._BYTES", 1 << 10)
    sliced = BatchedRewards(programs)
    assert 1 < sliced.slice_of(len(samples)) < len(samples)
    np.testing.assert_array_equal(whole, sliced(samples))


def test_other_weights_compile_nothing(programs: Sequence[Program], negative: Trajectories) -> None:
    changed = [p.with_constants([2 * c for c in p.constants]) if len(p.constants) else p for p in programs]
    one, other = BatchedRewards(programs), BatchedRewards(changed)
    assert one.layout == other.layout and hash(one.layout) == hash(other.layout)
    assert not np.allclose(one(negative.transitions()), other(negative.transitions()))
    assert BatchedRewards(programs[:3]).layout != one.layout


def test_a_part_of_several_programs_is_one_row(programs: Sequence[Program]) -> None:
    one = BatchedRewards(programs[:1]).layout
    assert BatchedRewards([programs[0]] * 8).layout.size == one.size


@pytest.mark.long
def test_fitness_is_the_objective_of_airl() -> None:
    rng = np.random.default_rng(0)
    expert, negative, logp = rng.normal(size=(2, 7)), rng.normal(size=(2, 9)), np.log(rng.uniform(0.1, 1, 16))
    d = np.exp(expert) / (np.exp(expert) + np.exp(logp[:7]))
    other = np.exp(negative) / (np.exp(negative) + np.exp(logp[7:]))
    expected = np.log(d).mean(1) + np.log(1 - other).mean(1)
    np.testing.assert_allclose(airl_fitness(expert, negative, logp[:7], logp[7:]), expected, rtol=1e-5)


def test_fitness_of_large_rewards_is_finite_and_of_nan_is_the_worst() -> None:
    one, zero = np.ones(1, np.float32), np.zeros(1, np.float32)
    assert airl_fitness(1e4 * one, -1e4 * one, zero, zero) == 0.0
    assert airl_fitness(-1e4 * one, 1e4 * one, zero, zero) == pytest.approx(-2e4)
    for bad in (np.nan, np.inf, -np.inf):
        assert airl_fitness(bad * one, one, zero, zero) == -np.inf
        assert accuracy(one, bad * one) == 0.0


@pytest.mark.long
def test_accuracy_is_the_share_of_ordered_pairs() -> None:
    rng = np.random.default_rng(1)
    expert, negative = rng.integers(0, 5, (3, 11)).astype(np.float32), rng.integers(0, 5, (3, 13)).astype(np.float32)
    pairs = expert[:, :, None] - negative[:, None]
    np.testing.assert_allclose(accuracy(expert, negative), ((np.sign(pairs) + 1) / 2).mean((1, 2)), rtol=1e-6)
    assert accuracy(np.ones((1, 4)), np.ones((1, 6)))[0] == 0.5


@pytest.mark.slow
def test_weights_count_as_repetitions() -> None:
    rng = np.random.default_rng(2)
    expert, negative = rng.integers(0, 5, (3, 4)).astype(np.float32), rng.integers(0, 5, (3, 5)).astype(np.float32)
    own, others = np.array([1, 3, 1, 2]), np.array([2, 1, 1, 4, 1])
    logp = np.log(rng.uniform(0.1, 1, 9))
    longer = [np.repeat(x, n, axis=-1) for x, n in zip((expert, negative), (own, others), strict=True)]
    logs = [np.repeat(x, n) for x, n in zip((logp[:4], logp[4:]), (own, others), strict=True)]
    fitness = airl_fitness(expert, negative, logp[:4], logp[4:], own, others)
    np.testing.assert_allclose(fitness, airl_fitness(*longer, *logs), rtol=1e-5)
    np.testing.assert_allclose(accuracy(expert, negative, own, others), accuracy(*longer), rtol=1e-6)


@pytest.mark.slow
def test_the_error_of_a_fitness_is_that_of_drawing_other_episodes(
    corridor: Task, negative: Trajectories, programs: Sequence[Program]
) -> None:
    """By the bootstrap over episodes. Twice each step is no more data."""
    expert = record_actions(corridor, reset_keys(20, 0), [[1] * (2 + k % 5) for k in range(20)])
    others = record_random(corridor, 30, seed=3)
    data, rng = DemonstrationData.of(corridor, expert, others), np.random.default_rng(0)
    (found,) = separate(programs[:3], data)
    again = list[np.ndarray]()
    for _ in range(400):
        drawn = np.concatenate([first + rng.integers(0, count, count) for first, count in ((0, 20), (20, 30))])
        rows = np.concatenate([np.flatnonzero(data.episodes == episode) for episode in drawn])
        sides = [found.logs[:, part] for part in (rows[rows < data.experts], rows[rows >= data.experts])]
        again.append(sides[0].mean(1) + sides[1].mean(1))
    error = _error_over_episodes(found.logs, data)
    np.testing.assert_allclose(error, np.std(again, axis=0), rtol=0.2)
    assert (found.error >= error).all()
    pairs = np.repeat(np.arange(len(data.weights)), 2)
    labels: Any = SimpleNamespace(
        experts=2 * data.experts, weights=data.weights[pairs], episodes=data.episodes[pairs]
    )  # fmt: skip
    np.testing.assert_allclose(_error_over_episodes(found.logs[:, pairs], labels), error, rtol=1e-6)


def test_an_end_counts_for_the_steps_that_were_left(corridor: Task) -> None:
    """Of whole episodes: a reward that pays for an end that agents stay in pays for all of those steps."""
    expert = record_actions(corridor, reset_keys(2, 0), [[1, 1], [1, 1, 1]])
    expert = dataclasses.replace(expert, ended=np.array([True, True]))
    fell = dataclasses.replace(expert, ended=np.array([False, True]), success=np.zeros(2, np.float32))
    whole, last = (DemonstrationData.of(corridor, expert, fell, which) for which in ("all", "last"))
    left = corridor.horizon - 2
    np.testing.assert_array_equal(whole.weights, [1, 1 + left, 1, 1, left, 1, 1, 1, 1, left])
    unknown = dataclasses.replace(expert, ended=np.zeros(2, bool))
    assert (DemonstrationData.of(corridor, unknown, fell).weights == 1).all(), "how the expert's ended is not known"
    assert (last.weights == 1).all() and len(last.weights) == len(last.transitions)


def test_a_reward_of_the_goal_separates_and_a_constant_does_not(
    programs: Sequence[Program], data: DemonstrationData
) -> None:
    (found,) = separate(programs, data)
    assert data.experts == 3 and found.accuracy[4] == 0.5
    assert found.fitness[0] > found.fitness[4] and found.accuracy[0] > 0.9


@pytest.mark.long
def test_no_constant_reward_has_a_higher_fitness_whatever_policies_knew(
    corridor: Task, negative: Trajectories
) -> None:  # fmt: skip
    """A sure policy on one side alone would make one, if its probabilities counted there."""
    expert = record_actions(corridor, reset_keys(2, 0), [[1, 1], [1, 1]])
    sure = dataclasses.replace(negative, log_probabilities=np.zeros(negative.steps, np.float32))
    data = DemonstrationData.of(corridor, expert, sure)
    assert np.exp(data.log_probability) == pytest.approx(0.5)
    constant = np.tile(np.linspace(-5, 5, 41)[:, None], len(data.weights))
    found = airl_fitness(constant[:, :4], constant[:, 4:], data.log_probability, data.log_probability)
    assert found.max() <= OF_CONSTANT + 1e-6


def test_states_before_the_last_are_told_from_it(corridor: Task, negative: Trajectories) -> None:
    """Of an expert of which only last states count, the others are negative, and a reward of all its states is poor."""
    expert = record_actions(corridor, reset_keys(2, 0), [[1] * 6, [1] * 6])
    whole, last = (DemonstrationData.of(corridor, expert, negative, which) for which in ("all", "last"))
    assert (whole.experts, whole.of_expert, last.experts, last.of_expert) == (12, 12, 2, 12)
    assert len(whole.transitions) == 12 + negative.steps
    place = [leaf.name for leaf in Spec.of(corridor).leaves].index("place")
    np.testing.assert_array_equal(last.transitions.next_states[place][:12], [6, 6, *range(1, 6), *range(1, 6)])
    np.testing.assert_array_equal(last.steps[:12], [5, 11, *range(5), *range(6, 11)])


def test_an_end_that_another_reached_is_no_negative_step(corridor: Task, negative: Trajectories) -> None:
    """Where an end makes a state positive, no other's end is told from it; a failure is, and what the horizon cut."""
    expert = record_actions(corridor, reset_keys(2, 0), [[1] * 6, [1] * 6])
    success = np.where(np.arange(len(negative)) == 0, 1.0, np.nan).astype(np.float32)
    success[2] = 0.0  # an end that is known to be a failure is a negative step
    ended = dataclasses.replace(negative, ended=np.arange(len(negative)) < 3, success=success)
    whole, last = (DemonstrationData.of(corridor, expert, ended, which) for which in ("all", "last"))
    kept = np.setdiff1d(np.arange(negative.steps), negative.last_steps[:2])
    assert len(whole.transitions) == 12 + negative.steps and len(last.transitions) == 12 + len(kept)
    np.testing.assert_array_equal(last.steps[12:], kept)
    for found, given in zip(last.transitions.next_states, negative.transitions(kept).next_states, strict=True):
        np.testing.assert_array_equal(found[12:], given)


def test_without_a_negative_step_it_is_said_what_to_give(corridor: Task) -> None:
    expert = record_actions(corridor, reset_keys(2, 0), [[1], [1]])
    with pytest.raises(WrongTrajectories, match="no step is negative: .* give longer ones"):
        won = dataclasses.replace(expert, ended=np.ones(2, bool), success=np.ones(2, np.float32))
        DemonstrationData.of(corridor, expert, won, "last")


def test_demonstrations_of_another_task_are_refused(
    task_of: Callable[..., Task], negative: Trajectories
) -> None:  # fmt: skip
    with pytest.raises(WrongTrajectories, match="these episodes are of probe-corridor"):
        DemonstrationData.of(task_of("probe-aim"), negative, negative)


@pytest.mark.parametrize(
    ("fitness", "accuracy", "held_out", "hardly"),
    [(-1.385, 0.97, 0.98, True), (-0.3, 0.99, 0.99, False), (-0.3, 1.0, 0.5, True)],
)
def test_a_reward_that_says_nothing_is_told(fitness: float, accuracy: float, held_out: float, hardly: bool) -> None:
    extra = {"accuracy": accuracy, "held_out_accuracy": held_out}
    candidate = Candidate(id="a", generation=0, operator="scratch")
    score = Score(mean=fitness, se=0.0, n=1, episodes=8, measure=FITNESS)
    line, *more = told_apart(Result(candidate=candidate, score=score, feedback=Feedback(extra_metrics=extra)))
    assert "at most -1.386 for a constant reward" in line and f"{held_out:.3f} held out" in line
    assert ["hardly" in text for text in more] == [True] * hardly


@pytest.mark.long
def test_no_constant_reward_has_a_higher_fitness() -> None:
    for probability in (0.01, 0.14, 0.5):
        logp = jnp.log(jnp.full(5, probability))
        found = [float(airl_fitness(jnp.full(5, r), jnp.full(5, r), logp, logp)) for r in np.linspace(-8.0, 2.0, 400)]
        assert max(found) <= OF_CONSTANT + 1e-6 and max(found) == pytest.approx(OF_CONSTANT, abs=1e-3)


def test_a_reward_that_says_nothing_of_held_out_episodes_is_told():
    extra = {"accuracy": 0.85, "held_out_accuracy": 0.75, "held_out_fitness": OF_CONSTANT + 0.01}
    candidate = Candidate(id="a", generation=0, operator="scratch")
    score = Score(mean=-0.9, se=0.1, n=1, episodes=8, measure=FITNESS)
    told = told_apart(Result(candidate=candidate, score=score, feedback=Feedback(extra_metrics=extra)))
    assert "hardly tells" in told[-1]
    extra["held_out_fitness"] = -0.9
    assert len(told_apart(Result(candidate=candidate, score=score, feedback=Feedback(extra_metrics=extra)))) == 1
