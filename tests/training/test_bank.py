"""Populations that are data: which bank they get, what is compiled for them, and what they compute."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxreward.programs import Program, Spec
from jaxreward.programs.bank import Bank
from jaxreward.programs.parts import parts_of
from jaxreward.training import Execution, train
from jaxreward.training.banks import BANKS, Banks, pays
from jaxreward.training.compiled import COMMON, POPULATIONS, STRUCTURES, forget_compiled, signature
from jaxreward.training.population import Population, padded_sizes
from jaxreward.training.rungs import Rung
from tests.compilation import jit
from tests.training.conftest import BANK, OBSERVATIONS, SEEDS, assert_close_trees, budget, params, program_source

pytestmark = pytest.mark.usefixtures("unoptimised")

ROWS = 64
WEIGHTED = "near, h = distance(state) - distance(next_state), held(next_state)\n    return {}, dict(near=near, held=h)"


def bank_for(banks: Banks, programs: Sequence[Program], rows: int = ROWS) -> Bank:
    bank = banks.of(programs, rows)
    assert bank is not None
    return bank


def test_a_bank_serves_every_population_of_its_parts(mixed):
    """The first three programs have the parts of the eighth of other observation, and not those of the others."""
    banks = Banks()
    bank = bank_for(banks, mixed[:3])
    assert bank is bank_for(banks, [mixed[2], mixed[0]])
    more = bank_for(banks, mixed[3:5])
    assert more is not bank and all(more.covers(parts_of(p)) for p in mixed[:5])
    assert bank_for(banks, mixed[:5]) is more


def test_parts_that_are_not_used_for_long_leave(mixed, monkeypatch):
    monkeypatch.setattr("jaxreward.training.banks._AGE", 3)
    banks = Banks()
    bank_for(banks, mixed[:1])
    for _ in range(3):
        last = bank_for(banks, mixed[2:3])
    assert last.covers(parts_of(mixed[0])), "nothing leaves before a bank is made anew"
    anew = bank_for(banks, mixed[4:5])
    assert not anew.covers(parts_of(mixed[0])) and anew.covers(parts_of(mixed[2]))


def test_earlier_parts_take_no_more_room_than_there_is(mixed, monkeypatch):
    monkeypatch.setattr("jaxreward.training.banks._NODES", 0)
    banks = Banks()
    for k in range(0, len(mixed), 2):
        bank, alone = bank_for(banks, mixed[k : k + 1]), bank_for(Banks(), mixed[k : k + 1])
        assert bank.size <= 2 * alone.size


def test_expected_parts_are_in_every_bank_from_the_first(mixed):
    banks = Banks()
    banks.expect(mixed[3:5])
    bank = bank_for(banks, mixed[:1])
    assert all(bank.covers(parts_of(p)) for p in (mixed[0], *mixed[3:5]))
    assert bank_for(banks, mixed[3:5]) is bank
    banks.expect(mixed[3:5])
    assert bank_for(banks, mixed[:1]) is bank, "the same ones change nothing"
    banks.expect(mixed[4:5])
    assert not Bank([parts_of(mixed[4])], mixed[0].spec).covers(parts_of(mixed[3]))
    assert bank_for(banks, mixed[:1]) is not bank


def test_too_many_expected_parts_are_left_out(mixed, monkeypatch):
    first = Bank([parts_of(mixed[3])], mixed[3].spec)
    monkeypatch.setattr("jaxreward.training.banks._EXPECTED_NODES", first.size + 1)
    banks = Banks()
    banks.expect([])
    banks.expect(mixed[3:5])
    bank = bank_for(banks, mixed[:1])
    assert bank.covers(parts_of(mixed[3])) and not bank.covers(parts_of(mixed[4]))


@pytest.mark.long
def test_populations_in_a_bank_are_made_up_to_common_sizes(easy, mixed, tiny):
    """A generation of which one failed finds everything compiled, and its agents are those that it has by rows."""
    forget_compiled()
    programs = [*mixed[:6]]
    room = padded_sizes(programs)
    train(easy, programs, tiny, execution=replace(BANK, room=room), **budget(tiny))
    known = kept()
    fewer = train(easy, programs[1:], tiny, execution=replace(BANK, room=room), **budget(tiny))
    assert kept() == known and len(fewer.success) == 5
    alone = train(easy, programs[1:2], tiny, execution=Execution(collector="fused", compile="full"), **budget(tiny))
    assert_close_trees(params(fewer, 0), params(alone, 0))


@pytest.mark.long
def test_survivors_of_a_rung_are_what_they_are_by_rows(easy, mixed, tiny):
    """Rows that nobody asks for are no candidates: they are neither cut nor counted."""
    cut = {"rungs": [Rung(2 * tiny.batch, keep=0.5)], "seeds": SEEDS, "steps": 4 * tiny.batch, "checkpoints": 2}
    by_rows = Execution(collector="fused", compile="full", population="rows")
    found = [train(easy, mixed[:5], tiny, eval_episodes=8, execution=how, **cut) for how in (BANK, by_rows)]
    assert (found[0].stopped == found[1].stopped).all() and 0 < (found[0].stopped > 0).sum() < 5
    assert (found[0].env_steps, found[0].eval_steps) == (found[1].env_steps, found[1].eval_steps)
    for k in range(5):
        assert_close_trees(params(found[0], k), params(found[1], k))


@pytest.mark.long
def test_a_chunk_is_made_up_to_no_more_than_was_asked_for(easy, mixed, tiny):
    few = train(easy, mixed[:3], tiny, execution=replace(BANK, chunk=3), **budget(tiny))
    forget_compiled()
    more = train(easy, mixed[:3], tiny, execution=BANK, **budget(tiny))
    assert few.chunks == more.chunks == (3,) and few.peak_bytes < more.peak_bytes


def test_programs_that_cost_much_are_applied_to_their_own_rows(mixed, load):
    """A loop of many turns on all rows would cost more than the kernels that it saves."""
    turns = "return jax.lax.fori_loop(0, 400, lambda k, x: jnp.cos(x) + distance(state), jnp.ones(64))"
    slow = load(turns, "return held(next_state)")
    assert pays(mixed[0], 32_768) and not pays(slow, 32_768)
    assert Banks().of([slow], 32_768) is None
    assert not bank_for(Banks(), [mixed[0], slow], 32_768).covers(parts_of(slow))


@pytest.mark.long
def test_programs_beside_a_bank_compute_what_they_compute_alone(mixed, easy):
    own = [mixed[0], mixed[3], mixed[4]]
    bank = bank_for(Banks(), [mixed[0], mixed[4]])
    keys = jax.random.split(jax.random.key(0), (3, 5))
    states = jax.vmap(jax.vmap(easy.reset))(keys)
    views, later = (jax.vmap(jax.vmap(easy.view))(states) for _ in range(2))
    later = jax.tree.map(lambda x: x[:, ::-1], later)
    actions = jnp.zeros((3, 5), jnp.int32)

    def compute(population: Population) -> list[np.ndarray]:
        def all_of(data, views, actions, later):
            return population.observe(data, views), *population.reward(data, views, actions, later)

        return [np.asarray(x) for x in jit(all_of)(population.data, views, actions, later)]

    for a, b in zip(compute(Population(own, bank=bank)), compute(Population(own)), strict=True):
        np.testing.assert_allclose(a, b, atol=1e-6)


def kept() -> set[object]:
    return {*POPULATIONS, *STRUCTURES}


@pytest.mark.long
@pytest.mark.parametrize("collector", ["fused", pytest.param("stepwise", marks=pytest.mark.slow)])
def test_a_population_of_known_parts_compiles_nothing(easy, tiny, load, checker, collector):
    """Other sums, weights and observations of the parts of two programs, with the agents that they have alone."""
    execution = BANK if collector == "fused" else Execution(collector="stepwise", population="bank")
    forget_compiled()
    here, there = OBSERVATIONS[0], OBSERVATIONS[2]
    first = [load(here, WEIGHTED.format("0.5 * near + 2.0 * h")), load(there, "return held(state)")]
    others = [load(there, WEIGHTED.format("0.7 * h + 0.1 * near")), load(here, "return held(state)")]
    room = padded_sizes([*first, *others])
    done = train(easy, first, tiny, execution=replace(execution, room=room), **budget(tiny))
    assert done.population == "bank"
    known, common = kept(), set(COMMON)
    again = train(easy, others, tiny, execution=replace(execution, room=room), **budget(tiny))
    assert kept() == known and set(COMMON) == common
    alone = train(easy, others[:1], tiny, execution=Execution(collector="fused", compile="full"), **budget(tiny))
    assert_close_trees(params(again, 0), params(alone, 0))


def test_shapes_of_known_parts_do_not_depend_on_numbers_and_sums(easy, load):
    """Of a bank that covers all programs: with fewer numbers, and with sums of up to sixteen."""
    here, there = OBSERVATIONS[0], OBSERVATIONS[2]
    terms = ["0.5 * near", "2.0 * h", *[f"{k}.5 * near" for k in range(1, 8)]]
    first = [load(here, WEIGHTED.format(" + ".join(terms))), load(there, "return held(state)")]
    others = [load(here, "return held(state)"), load(there, "return held(state)")]
    bank = bank_for(Banks(), first)
    room = padded_sizes([*first, *others])
    one, other = (Population(own, *room, bank) for own in (first, others))
    assert len(parts_of(first[0]).value) == 9 and all(bank.covers(parts_of(p)) for p in others)
    assert (one.key, signature(one.data)) == (other.key, signature(other.data))


@pytest.mark.long
def test_results_do_not_depend_on_what_a_bank_has_seen(easy, mixed, tiny):
    """A resumed search makes a bank of its own, without what earlier generations had."""
    found = []
    for seen in (mixed[:2], mixed):
        forget_compiled()
        bank = bank_for(BANKS, seen, 2 * tiny.envs * len(seen))
        found.append(train(easy, mixed[:2], tiny, execution=BANK, **budget(tiny)))
        assert BANKS.of(mixed[:2], ROWS) is bank
    for k in range(2):
        assert_close_trees(params(found[0], k), params(found[1], k))


@pytest.mark.long
def test_a_diverged_candidate_does_not_affect_the_others(easy, mixed, tiny, checker):
    """Of one bank: a reward and an observation that are not finite from step 20 of an episode on."""
    source = program_source(
        "return jnp.where(state.step_num >= 20, jnp.nan, state.agent.position / 8.0)",
        "return jnp.where(state.step_num >= 20, jnp.nan, held(next_state))",
    )
    bad = checker.check(source, Spec.of(easy))[1]  # without the task, whose states would give it away
    result = train(easy, [mixed[1], bad, mixed[2]], tiny, execution=BANK, **budget(tiny))
    assert result.diverged[1].all() and not result.diverged[[0, 2]].any()
    pair = train(easy, [mixed[1], mixed[2]], tiny, execution=BANK, **budget(tiny))
    for row, other in ((0, 0), (2, 1)):
        assert_close_trees(params(result, row), params(pair, other))


def test_auto_is_rows_on_a_cpu_and_a_bank_elsewhere():
    assert [Execution().form(platform) for platform in ("cpu", "gpu", "tpu")] == ["rows", "bank", "bank"]
    assert Execution(population="bank").form("cpu") == "bank"
