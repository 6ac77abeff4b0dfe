"""What must hold of a population: nothing depends on who trains beside whom."""

from __future__ import annotations

import jax
import numpy as np
import pytest

from jaxreward.programs import Spec
from jaxreward.training import train
from jaxreward.training.chunk import _COLLECT, Chunk
from jaxreward.training.population import Population
from tests.training.conftest import OBSERVATIONS, SEEDS, UPDATES, assert_close_trees, budget, params, program_source


@pytest.fixture(scope="module")
def fused(easy, mixed, tiny):
    return train(easy, mixed, tiny, **budget(tiny))


def test_fused_equals_alone(easy, mixed, tiny, fused):
    """Each of eight mixed programs, in a batch and alone: the same parameters up to rounding."""
    for k, program in enumerate(mixed):
        alone = train(easy, [program], tiny, **budget(tiny))
        assert_close_trees(params(fused, k), params(alone, 0))


def test_candidates_do_differ(fused):
    """The comparison above would see a mistake: other programs give other parameters."""
    first, second = (jax.tree.leaves(params(fused, k)) for k in (0, 1))
    assert max(float(np.abs(a - b).max()) for a, b in zip(first, second, strict=True)) > 1e-3
    one, other = fused.variables(0, 0)["params"], fused.variables(0, 1)["params"]
    assert float(np.abs(one["policy"]["kernel"] - other["policy"]["kernel"]).max()) > 1e-3


def test_order_does_not_matter(easy, mixed, tiny, fused):
    order = [5, 2, 7, 0]
    shuffled = train(easy, [mixed[i] for i in order], tiny, **budget(tiny))
    for row, k in enumerate(order):
        assert_close_trees(params(fused, k), params(shuffled, row))


def test_chunks_do_not_matter(easy, mixed, tiny, fused):
    cut = train(easy, mixed, tiny, chunk=3, **budget(tiny))
    assert cut.chunks == (3, 3, 2)
    for k in range(len(mixed)):
        assert_close_trees(params(fused, k), params(cut, k))
    np.testing.assert_allclose(fused.success_curve, cut.success_curve, atol=0.26)
    assert cut.env_steps == fused.env_steps


def test_padding_does_not_matter(easy, mixed, tiny):
    """The same program in a vector of 32 features and of 96."""
    agents = []
    for width in (0, 96):
        chunk = Chunk(easy, Population([mixed[0]], width=width), tiny, SEEDS, jax.devices()[0])
        chunk.compile()
        state, stats = chunk.start(), chunk.fresh_stats()
        for index in range(UPDATES):
            state, stats, _ = chunk.update(state, stats, index, index / UPDATES)
        agents.append(jax.device_get(state.agents.params))
    width = mixed[0].observation_size
    narrow, wide = agents
    assert not wide["encoder_0"]["kernel"][:, :, width:].any()
    for tree in agents:
        tree["encoder_0"]["kernel"] = tree["encoder_0"]["kernel"][:, :, :width]
    assert_close_trees(narrow, wide)


def test_a_nan_stays_home(easy, mixed, tiny, fused, checker):
    """One program among three whose reward is not finite from step 20 of an episode on."""
    source = program_source(
        "return state.agent.position / 8.0", "return jnp.where(state.step_num >= 20, jnp.nan, held(next_state))"
    )
    assert not checker.check(source, easy)[0].ok
    bad = checker.check(source, Spec.of(easy))[1]  # without the task, whose states would give it away
    result = train(easy, [mixed[1], bad, mixed[2]], tiny, **budget(tiny))
    assert result.diverged[1].all() and not result.diverged[[0, 2]].any()
    assert (result.success[1] == 0).all()
    assert result.feedback(1).diverged == len(SEEDS)
    assert all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(result.agents[1]))
    for row, k in ((0, 1), (2, 2)):
        assert_close_trees(params(result, row), params(fused, k))


WEIGHTED = "near, h = distance(state), held(next_state)\n    return {} * h - {} * near / 9, dict(near=near, h=h)"


def test_constants_train_side_by_side_and_compile_once(easy, mixed, tiny, checker):
    """Three weightings of one reward and a stranger between them, together and each alone; then others, with nothing
    compiled anew."""
    weights = ((1.0, 1.0), (0.25, 3.0), (0.5, 0.01))
    sources = [program_source(OBSERVATIONS[0], WEIGHTED.format(*pair)) for pair in weights]
    programs = [program for _, program in checker.check_many(sources, easy)]
    programs.insert(1, mixed[1])
    population = Population(programs)
    assert [len(c) for c in population.constants] == [3, 1] and len(set(population.structure)) == 2
    together = train(easy, programs, tiny, **budget(tiny))
    for k, program in enumerate(programs):
        assert_close_trees(params(together, k), params(train(easy, [program], tiny, **budget(tiny)), 0))
    known = set(_COLLECT._entries)
    others = [programs[2].with_constants([0.3, 0.7]), *programs[:2], programs[0].with_constants([0.9, 0.2])]
    again = train(easy, others, tiny, **budget(tiny))
    assert set(_COLLECT._entries) <= known
    assert_close_trees(params(again, 2), params(together, 1))
    alone = train(easy, [checker.check(others[0].source, easy)[1]], tiny, **budget(tiny))
    assert_close_trees(params(again, 0), params(alone, 0))
