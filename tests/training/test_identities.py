"""Invariants of a population: results do not depend on which candidates train together. `test_optimised` holds some of
them to what users compile."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import jax
import numpy as np
import pytest

from jaxreward.devices import FAST as FAST_OPTIONS
from jaxreward.devices import supported
from jaxreward.programs import Spec
from jaxreward.training import Execution, train
from jaxreward.training.chunk import Chunk
from jaxreward.training.compiled import COMMON, POPULATIONS, STRUCTURES, bytes_of, forget_compiled, xla_options
from jaxreward.training.population import Population, padded_sizes
from jaxreward.training.stepwise import Stepwise
from tests.training.conftest import (
    BANK,
    FAST,
    FUSED,
    OBSERVATIONS,
    SEEDS,
    STEPWISE,
    UPDATES,
    assert_close_trees,
    budget,
    params,
    program_source,
)

pytestmark = pytest.mark.usefixtures("unoptimised")

HOW = {
    "fused": {"collector": "fused", "compile": "full"},
    "stepwise": {"collector": "stepwise"},
    "bank": {"collector": "fused", "compile": "full", "population": "bank"},
}
_SLOW = [pytest.param(name, marks=pytest.mark.slow) for name in ("stepwise", "bank")]


@pytest.fixture(scope="module", params=["fused", *_SLOW])
def run(request):
    """`train` by each collector, and with a bank: all that follows holds of each. `test_collectors_agree` carries it
    over from the first to the others, so that these are slow tests."""

    def run(*args, execution=Execution(), **options):
        return train(*args, execution=replace(execution, **HOW[request.param]), **options)

    return run


@pytest.fixture(scope="module")
def together(run, easy, mixed, tiny):
    return run(easy, mixed, tiny, **budget(tiny))


@pytest.mark.parametrize("rows", [(3, 6), pytest.param((0, 1, 2, 4, 5, 7), marks=pytest.mark.slow)])
def test_a_candidate_trained_together_equals_itself_alone(run, easy, mixed, tiny, together, rows):
    """Each of eight mixed programs, in a batch and alone: the same parameters up to rounding."""
    for k in rows:
        alone = run(easy, [mixed[k]], tiny, **budget(tiny))
        assert_close_trees(params(together, k), params(alone, 0))


def test_different_programs_give_different_parameters(together):
    """The comparison above would see a mistake: other programs give other parameters."""
    first, second = (jax.tree.leaves(params(together, k)) for k in (0, 1))
    assert max(float(np.abs(a - b).max()) for a, b in zip(first, second, strict=True)) > 1e-3
    one, other = together.variables(0, 0)["params"], together.variables(0, 1)["params"]
    assert float(np.abs(one["policy"]["kernel"] - other["policy"]["kernel"]).max()) > 1e-3


@pytest.mark.long
def test_results_do_not_depend_on_the_order_of_candidates(run, easy, mixed, tiny, together):
    order = [5, 2, 7, 0]
    shuffled = run(easy, [mixed[i] for i in order], tiny, **budget(tiny))
    for row, k in enumerate(order):
        assert_close_trees(params(together, k), params(shuffled, row))


@pytest.mark.long
def test_results_do_not_depend_on_chunks(run, easy, mixed, tiny, together):
    programs = mixed[:7]  # so that chunks have the sizes of populations in other tests, which are compiled
    cut = run(easy, programs, tiny, execution=Execution(chunk=4), **budget(tiny))
    assert cut.chunks == (4, 3)
    for k in range(len(programs)):
        assert_close_trees(params(together, k), params(cut, k))
    np.testing.assert_allclose(together.success_curve[:7], cut.success_curve, atol=0.26)
    assert 8 * cut.env_steps == 7 * together.env_steps


@pytest.mark.long
def test_results_do_not_depend_on_padding(easy, mixed, tiny):
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


def test_a_diverged_candidate_does_not_affect_the_others(run, easy, mixed, tiny, together, checker):
    """One program among three whose reward is not finite from step 20 of an episode on."""
    source = program_source(
        "return state.agent.position / 8.0", "return jnp.where(state.step_num >= 20, jnp.nan, held(next_state))"
    )
    assert not checker.check(source, easy)[0].ok
    bad = checker.check(source, Spec.of(easy))[1]  # without the task, whose states would give it away
    result = run(easy, [mixed[1], bad, mixed[2]], tiny, **budget(tiny))
    assert result.diverged[1].all() and not result.diverged[[0, 2]].any()
    assert (result.success[1] == 0).all()
    assert result.feedback(1).diverged == len(SEEDS)
    assert all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(result.agents[1]))
    for row, k in ((0, 1), (2, 2)):
        assert_close_trees(params(result, row), params(together, k))


@pytest.mark.slow
def test_recurrent_candidates_do_not_depend_on_others_chunks_or_divergence(easy, mixed, tiny, checker):
    ppo = tiny.replace(gru=8, heads=(8,), action_embedding=4)
    run = partial(train, easy, ppo=ppo, **budget(tiny))
    bad = checker.check(
        program_source(OBSERVATIONS[2], "return jnp.where(state.step_num >= 20, jnp.nan, held(next_state))"),
        Spec.of(easy),
    )[1]
    together = run([mixed[0], bad, mixed[3]])
    assert together.diverged[1].all() and not together.diverged[[0, 2]].any()
    assert all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(together.agents[1]))
    cut = run([mixed[3], mixed[0]], execution=Execution(chunk=1))
    assert cut.chunks == (1, 1)
    for row, k in ((0, 2), (1, 0)):
        assert_close_trees(params(cut, row), params(together, k))


@pytest.mark.long
@pytest.mark.parametrize("execution", [Execution(chunk=1), STEPWISE, BANK])
def test_centred_values_do_not_depend_on_how_candidates_train(easy, mixed, tiny, execution):
    run = partial(train, easy, ppo=tiny.replace(center_values=True, bootstrap=True), **budget(tiny))
    together, others = run(mixed[:2], execution=FUSED), run(mixed[:2], execution=execution)
    for k in range(2):
        assert_close_trees(params(together, k), params(others, k))


WEIGHTED = "near, h = distance(state), held(next_state)\n    return {} * h - {} * near / 9, dict(near=near, h=h)"


@pytest.mark.parametrize("run", ["fused", pytest.param("stepwise", marks=pytest.mark.slow)], indirect=True)
def test_programs_that_differ_in_constants_compile_once(run, easy, mixed, tiny, checker, request):
    """Three weightings of one reward and a stranger between them, together and each alone, or the stranger among eight;
    then others, with nothing compiled anew."""
    weights = ((1.0, 1.0), (0.25, 3.0), (0.5, 0.01))
    sources = [program_source(OBSERVATIONS[0], WEIGHTED.format(*pair)) for pair in weights]
    programs = [program for _, program in checker.check_many(sources, easy)]
    programs.insert(1, mixed[1])
    population = Population(programs)
    assert len(set(population.structure)) == 2
    assert population._rewards.size == Population(programs[:2])._rewards.size, "further weightings are nothing more"
    together = run(easy, programs, tiny, **budget(tiny))
    for k in (0, 2, 3):
        assert_close_trees(params(together, k), params(run(easy, [programs[k]], tiny, **budget(tiny)), 0))
    known = compiled()
    others = [programs[2].with_constants([0.3, 0.7]), *programs[:2], programs[0].with_constants([0.9, 0.2])]
    again = run(easy, others, tiny, **budget(tiny))
    assert compiled() == known
    assert_close_trees(params(again, 2), params(together, 1))
    alone = run(easy, [checker.check(others[0].source, easy)[1]], tiny, **budget(tiny))
    assert_close_trees(params(again, 0), params(alone, 0))
    if request.node.callspec.params["run"] == "fused":
        assert_close_trees(params(together, 1), params(request.getfixturevalue("together"), 1))
    else:  # where all weightings are in one call
        assert_close_trees(params(together, 1), params(run(easy, [mixed[1]], tiny, **budget(tiny)), 0))
        only = run(easy, [programs[0], *programs[2:]], tiny, **budget(tiny))
        for row, k in enumerate((0, 2, 3)):
            assert_close_trees(params(only, row), params(together, k))


def compiled() -> set[object]:
    """What is kept of collectors that depends on programs."""
    return {*POPULATIONS, *STRUCTURES}


def test_a_new_population_compiles_only_its_new_programs(easy, mixed, tiny):
    """Stepwise, a population of the same size finds all compiled but the program that is new."""
    forget_compiled()
    room = padded_sizes(mixed)
    train(easy, mixed[:2], tiny, execution=replace(STEPWISE, room=room), **budget(tiny, 1))
    rest, programs = set(COMMON), compiled()
    train(easy, mixed[1:3], tiny, execution=replace(STEPWISE, room=room), **budget(tiny, 1))
    assert set(COMMON) == rest and len(compiled() - programs) == 1


@pytest.mark.long
def test_fast_and_full_compilations_are_cached_apart(easy, mixed, tiny):
    forget_compiled()
    kept = []
    for execution in (FUSED, FAST, FAST, FUSED):
        train(easy, mixed[:2], tiny, execution=execution, **budget(tiny, 1))
        kept.append(len(compiled()))
    assert kept == [1, 2, 2, 2]


def test_fast_compilation_asks_for_other_options(easy, mixed, tiny, monkeypatch):
    """The options of the task take precedence."""
    asked = dict[str, dict[str, object]]()
    own = {"xla_backend_optimization_level": 2}
    try:
        for name, options in (("full", {}), ("fast", {}), ("its own", own)):
            forget_compiled()
            monkeypatch.setattr("jaxreward.training.fused.compiler_options", lambda *_, o=options: dict(o))
            monkeypatch.setattr(
                "jaxreward.training.fused.compile_for",
                lambda *_, options, name=name, **__: asked.update({name: xla_options("cpu", options) or {}}),
            )
            compilation = "full" if name == "full" else "fast"
            Chunk(easy, Population(mixed[:2]), tiny, SEEDS, jax.devices()[0], "fused", compilation).compile()
    finally:
        forget_compiled()
    fast = supported(FAST_OPTIONS, "cpu")
    assert asked["fast"] == fast and asked["its own"] == fast | own
    assert asked["full"].get("xla_cpu_use_fusion_emitters", True)


def test_peak_memory_includes_the_rollout(easy, mixed, tiny):
    chunk = Chunk(easy, Population(mixed[:2]), tiny, SEEDS, jax.devices()[0], "stepwise")
    chunk.compile()
    assert isinstance(chunk._collect, Stepwise)
    held = sum(x.nbytes for x in jax.tree.leaves(chunk.start().rollout))
    assert chunk.peak_bytes() >= held + max(map(bytes_of, chunk._collect._units))


@pytest.mark.long
def test_collectors_agree(easy, mixed, tiny):
    executions = (FUSED, STEPWISE, BANK)
    one, *others = (train(easy, mixed, tiny, execution=execution, **budget(tiny)) for execution in executions)
    for other in others:
        for k in range(len(mixed)):
            assert_close_trees(params(one, k), params(other, k))
        np.testing.assert_allclose(one.success_curve, other.success_curve, atol=0.26)
        for program, a, b in zip(mixed, one.histories, other.histories, strict=True):
            assert a.term_mean.shape[-1] == len(program.terms) and a.obs_min.shape[-1] == program.observation_size
            assert_close_trees(a.length, b.length, atol=2.0)
            assert_close_trees(a.term_mean, b.term_mean, atol=0.02)
            assert_close_trees((a.obs_min, a.obs_max), (b.obs_min, b.obs_max))
