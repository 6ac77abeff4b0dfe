"""What must hold of every training, held to on a robot: continuous actions, physics, normalised observations."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest

from jaxreward.programs import Program
from jaxreward.programs.spec import Spec
from jaxreward.tasks import Task
from jaxreward.training import PPO, Execution, train
from tests.training.conftest import SEEDS, assert_close_trees, budget, params

pytestmark = [pytest.mark.usefixtures("unoptimised"), pytest.mark.long]

EXPERT = Path(__file__).resolve().parents[2] / "interfaces" / "quadcopter_hover" / "expert.py"
TINY = PPO.brax(envs=8, unroll=4, unrolls=2, minibatches=2, epochs=1, hidden=(16,), value_hidden=(16,))
PLAIN, EXPERTS, BAD, LOUD = range(4)

SMALL = """
import jax.numpy as jnp


def get_observation(state):
    return jnp.concatenate([state.data.qpos, state.data.qvel])


def compute_reward(state, action, next_state):
    return -jnp.sum(next_state.data.qvel**2)
"""


@pytest.fixture(scope="module")
def hover(task_of) -> Task:
    return task_of("quadcopter-hover")


@pytest.fixture(scope="module")
def programs(hover, checker) -> list[Program]:
    """A plain one, the expert's, one that is undefined from step 12 on, and the plain one with a loud feature."""
    bad = SMALL.replace(
        "    return -jnp", '    late = state.info["step_count"] >= 12\n    return jnp.where(late, jnp.nan, 0.0) - jnp'
    )
    loud = SMALL.replace(
        "return jnp.concatenate([state.data.qpos,", "return jnp.concatenate([1000.0 * state.data.qpos,"
    )
    found = []
    for source in (SMALL, EXPERT.read_text(), bad, loud):
        # by its inputs alone: the task's own states would give the bad one away, and take long to compile
        verdict, program = checker.check(source, Spec.of(hover))
        assert program is not None, verdict.failure
        found.append(program)
    return found


@pytest.fixture(scope="module")
def fused(hover, programs) -> Any:
    return train(hover, programs, TINY, **budget(TINY))


@pytest.mark.slow  # chunks show the same of the candidate: it is not beside the other two in its own
def test_a_candidate_next_to_one_with_large_features_equals_itself_alone(hover, programs, fused):
    """Next to one whose features are a thousand times as large, and to one that diverges."""
    alone = train(hover, [programs[EXPERTS]], TINY, **budget(TINY))
    assert_close_trees(params(alone, 0), params(fused, EXPERTS))
    np.testing.assert_allclose(alone.success_curve[0], fused.success_curve[EXPERTS], rtol=2e-2)


def test_every_candidate_has_moments_of_its_own(fused):
    plain, loud = (fused.variables(k, 0)["moments"]["running"] for k in (PLAIN, LOUD))
    n = 7  # qpos of the loud one
    scale = [np.sqrt(m["square"] / m["count"]) for m in (plain, loud)]
    ratio = scale[1][:n] / scale[0][:n]
    assert (ratio > 100).all(), ratio
    np.testing.assert_allclose(scale[1][n:], scale[0][n:], rtol=0.5)


@pytest.mark.slow
def test_results_do_not_depend_on_chunks(hover, programs, fused):
    cut = train(hover, programs, TINY, execution=Execution(chunk=2), **budget(TINY))
    assert cut.chunks == (2, 2)
    for k in (PLAIN, EXPERTS, LOUD):
        assert_close_trees(params(fused, k), params(cut, k))
    np.testing.assert_allclose(fused.success_curve[:, :, -1], cut.success_curve[:, :, -1], rtol=2e-2)


def test_a_diverged_candidate_does_not_affect_the_others(hover, fused):
    assert fused.diverged[BAD].all() and not fused.diverged[[PLAIN, EXPERTS, LOUD]].any()
    assert (fused.success[BAD] == fused.measure.worst).all()
    assert fused.feedback(BAD).diverged == len(SEEDS)
    assert all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(fused.agents[BAD]))
