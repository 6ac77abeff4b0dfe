"""Agents that begin with the policy of an earlier training."""

from __future__ import annotations

import dataclasses

import jax
import numpy as np
import pytest

from jaxreward.errors import InvalidSetting
from jaxreward.programs import Program
from jaxreward.runs.checkpoint import Checkpoints
from jaxreward.tasks import make_task
from jaxreward.training import PPO, SAC, Checkpointing, Execution, Interrupted, train
from jaxreward.training.networks import pad, unpad
from tests.training.conftest import assert_close_trees

pytestmark = pytest.mark.usefixtures("unoptimised")
TASK = make_task("probe-corridor")
PLAIN = PPO(envs=8, unroll=8, minibatches=2, hidden=(8,), learning_rate=0.01)
STILL = dataclasses.replace(PLAIN, learning_rate=1e-12)
SOFT = SAC(envs=8, unroll=4, updates=1, batch_size=16, replay=96, warmup=32, hidden=(8,), value_hidden=(8, 8))


@pytest.fixture(scope="module")
def program():
    return Program.default(TASK)


@pytest.fixture(scope="module")
def before(program):
    """A training of a seed, and its policy."""
    trained = train(TASK, [program], PLAIN, seeds=[7], steps=1024)
    return trained, trained.variables(0, 0)


def test_agents_begin_with_it(program, before):
    """Without learning they stay what it was, whatever the seed; new ones do not."""
    _, start = before
    still = train(TASK, [program], STILL, seeds=2, steps=64, start=start)
    for seed in range(2):
        assert_close_trees(still.variables(0, seed), start)
    new = train(TASK, [program], STILL, seeds=1, steps=64).variables(0, 0)
    assert not np.allclose(jax.tree.leaves(new)[0], jax.tree.leaves(start)[0])


def test_they_learn_from_there(program, before):
    trained, start = before
    more = train(TASK, [program], PLAIN, seeds=1, steps=512, start=start)
    assert more.success_curve[0, 0, 0] >= trained.success[0, 0] - 0.2
    assert not np.allclose(jax.tree.leaves(more.variables(0, 0))[0], jax.tree.leaves(start)[0])


@pytest.mark.parametrize("how", [{"chunk": 1}, {"collector": "stepwise"}, {"population": "bank"}])
def test_it_does_not_matter_how_they_are_trained(program, before, how):
    programs = [program, program]
    ways = [train(TASK, programs, PLAIN, seeds=1, steps=128, start=before[1], execution=Execution(**of))
            for of in ({}, how)]  # fmt: skip
    for row in range(2):
        assert_close_trees(ways[0].variables(row, 0), ways[1].variables(row, 0))


def test_padding_changes_nothing(before):
    trained, start = before
    wide = pad(start, 40)
    assert any(40 in np.shape(leaf) for leaf in jax.tree.leaves(wide))
    assert_close_trees(unpad(wide, trained.programs[0].observation_size), start)


def test_normalised_observations_keep_their_moments(program):
    normal = dataclasses.replace(PLAIN, normalize_observations=True)
    start = train(TASK, [program], normal, seeds=[3], steps=256).variables(0, 0)
    more = train(TASK, [program], dataclasses.replace(normal, learning_rate=1e-12), seeds=1, steps=64, start=start)
    counts = [float(v["moments"]["running"]["count"]) for v in (start, more.variables(0, 0))]
    assert counts[1] == counts[0] + 64


@pytest.mark.slow
def test_soft_actors_begin_with_it_too():
    task = make_task("inverted-pendulum")
    program = Program.default(task)
    start = train(task, [program], SOFT, seeds=[5], steps=64).variables(0, 0)
    still = dataclasses.replace(SOFT, learning_rate=1e-12, weight_decay=0.0)
    kept = train(task, [program], still, seeds=1, steps=64, start=start).variables(0, 0)
    assert_close_trees(kept["params"], start["params"])


@pytest.mark.slow
def test_a_training_that_was_cut_off_goes_on_alike(program, before, tmp_path):
    whole = train(TASK, [program], PLAIN, seeds=1, steps=256, start=before[1])
    saving = Checkpointing(Checkpoints(tmp_path), "t", every_s=0.0)
    asked = iter(range(1000))
    with pytest.raises(Interrupted):
        train(TASK, [program], PLAIN, seeds=1, steps=256, start=before[1], checkpointing=saving,
              should_stop=lambda: next(asked) >= 2)  # fmt: skip
    again = train(TASK, [program], PLAIN, seeds=1, steps=256, start=before[1], checkpointing=saving)
    assert_close_trees(again.variables(0, 0), whole.variables(0, 0))
    new = train(TASK, [program], PLAIN, seeds=1, steps=256, checkpointing=saving)
    assert not np.allclose(jax.tree.leaves(new.variables(0, 0))[0], jax.tree.leaves(whole.variables(0, 0))[0])


def test_policies_that_do_not_fit_are_refused(program, before):
    with pytest.raises(InvalidSetting, match=r"begin with this policy: .* is \(8,\), and the network's is \(16,\)"):
        train(TASK, [program], dataclasses.replace(PLAIN, hidden=(16,)), seeds=1, steps=64, start=before[1])
    wide = lambda s: jax.numpy.full(9, 1.0) * s.place  # noqa: E731
    with pytest.raises(InvalidSetting, match="observe alike"):
        train(TASK, [program, (wide, lambda s, a, n: n.hit * 1.0)], PLAIN, seeds=1, steps=64,
              start=before[1], trusted=True)  # fmt: skip
