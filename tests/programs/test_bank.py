"""Programs that select from a bank compute what each of them computes alone, and need nothing compiled."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxreward.programs import Program
from jaxreward.programs.bank import Bank, flops_of
from jaxreward.programs.parts import parts_of
from tests.compilation import jit

HEAD = """\
import jax.numpy as jnp


def far(state):
    return jnp.sqrt(jnp.sum((state.pos - state.goal) ** 2))


"""
REWARDS = (
    "near, slow = far(state) - far(next_state), -0.1 * jnp.abs(action).sum()\n"
    "    return near + slow, dict(near=near, slow=slow)",
    "slow, near = -0.7 * jnp.abs(action).sum(), far(state) - far(next_state)\n"
    "    return near + slow, dict(slow=slow, near=near)",
    "return far(state) - far(next_state)",
    "return 0.5 * far(state) + 0.25 * far(next_state) + 2.0 * state.info['height']",
    "a, b, c = 0.5 * far(state), 0.25 * far(state), 3.0 * state.vel[0]\n    return a + (b + c), dict(a=a, b=b, c=c)",
    "a, b = 0.5 * far(state), jnp.float32(2.0)\n    return jnp.tanh(a - b), dict(a=a, both=a + b)",
    "total = 0.1 * far(state) + 0.2 * far(next_state)\n    return total + 1.5 * action[0], dict(total=total)",
)
OBSERVATIONS = (
    "return jnp.concatenate([state.pos, state.goal])",
    "return jnp.concatenate([state.goal, jnp.stack([far(state)]), state.pos])",
    "return state.vel",
    "return jnp.concatenate([2.0 * state.pos, jnp.concatenate([state.vel, state.goal, state.vel])])",
)
WIDTH, TERMS, SUMMANDS = 512, 32, 16


def source(observation: str, reward: str) -> str:
    return (
        f"{HEAD}\ndef get_observation(state):\n    {observation}\n\n\n"
        f"def compute_reward(state, action, next_state):\n    {reward}\n"
    )


@pytest.fixture(scope="module")
def programs(checker, task) -> list[Program]:
    sources = [source(OBSERVATIONS[k % len(OBSERVATIONS)], reward) for k, reward in enumerate(REWARDS)]
    found = checker.check_many(sources, task)
    assert all(verdict.ok for verdict, _ in found), [verdict.failure for verdict, _ in found]
    return [program for _, program in found]


def bank_of(programs: Sequence[Program]) -> Bank:
    return Bank([parts_of(p) for p in programs], programs[0].spec)


def tables_of(bank: Bank, programs: Sequence[Program]) -> Any:
    return bank.tables([parts_of(p) for p in programs], programs, WIDTH, TERMS, SUMMANDS)


def inputs(programs: Sequence[Program], rows: int = 3) -> list[jax.Array]:
    draw = np.random.default_rng(0)
    structs = programs[0].spec.structs()[1]
    return [jnp.asarray(draw.uniform(0, 2, (len(programs), rows, *s.shape)).astype(s.dtype)) for s in structs]


def selecting(bank: Bank) -> Any:
    def both(tables: Any, arrays: Sequence[jax.Array]) -> tuple[jax.Array, jax.Array, jax.Array]:
        return bank.observe(tables, arrays[: len(arrays) // 2]), *bank.reward(tables, arrays)

    return both


def assert_each_is_itself(bank: Bank, programs: Sequence[Program], arrays: Sequence[jax.Array]) -> None:
    obs, rewards, terms = jit(selecting(bank))(tables_of(bank, programs), arrays)
    for k, program in enumerate(programs):
        own = [x[k] for x in arrays]
        (seen,) = jit(jax.vmap(program._observe))(*own[: len(own) // 2])
        total, *paid = jit(jax.vmap(program._reward))(*own)
        np.testing.assert_allclose(obs[k, :, : seen.shape[1]], seen, rtol=2e-5, atol=1e-5)
        np.testing.assert_allclose(rewards[k], total, rtol=2e-5, atol=1e-5)
        np.testing.assert_allclose(terms[k, :, : len(paid)], np.stack(paid, -1), rtol=2e-5, atol=1e-5)
        assert not np.any(obs[k, :, seen.shape[1] :]) and not np.any(terms[k, :, len(paid) :]), "padding"


@pytest.mark.parametrize("order", [range(7), (5, 2, 0), (3,), (1, 1, 0)])
def test_every_program_computes_what_it_computes_alone(programs, order):
    """Whether its reward is a sum, of terms or of other values, or none; in any order and company."""
    own = [programs[k] for k in order]
    assert_each_is_itself(bank_of(own), own, inputs(own))


@pytest.mark.slow
def test_programs_of_the_suite_compute_what_they_compute_alone(good):
    programs = [program for verdict, program in good.values() if verdict.ok][::3]
    assert len(programs) > 10
    assert_each_is_itself(bank_of(programs), programs, inputs(programs))


def test_another_choice_of_known_parts_is_only_another_table(programs, checker, task):
    """Other weights and scales, another order, other combinations: the same compiled function."""
    bank = bank_of(programs)
    first = "near, slow = far(state) - far(next_state), -0.3 * jnp.abs(action).sum()"
    sources = [
        source(OBSERVATIONS[2], f"{first}\n    return slow + near, dict(near=near, slow=slow)"),
        source("return jnp.concatenate([state.vel, 0.25 * state.pos])", f"{first}\n    return slow, dict(slow=slow)"),
        source("return state.goal * 3.0", f"{first}\n    return slow, dict(slow=slow)"),
    ]
    others = [program for _, program in checker.check_many(sources, task)]
    assert all(bank.covers(parts_of(p)) for p in others)
    assert bank_of([*programs, *others]).key == bank.key
    traces, whole = list[int](), selecting(bank)
    compiled = jit(lambda tables, arrays: traces.append(1) or whole(tables, arrays))
    for own in (programs[:2], others[:2], [programs[4], others[2]]):
        compiled(tables_of(bank, own), inputs(own))
    assert len(traces) == 1
    assert_each_is_itself(bank, others, inputs(others))


def test_a_program_with_a_new_part_is_not_covered(programs, checker, task):
    bank = bank_of(programs[:3])
    new = checker.check(source("return state.info['gyro']", REWARDS[0]), task)[1]
    assert not bank.covers(parts_of(new)) and bank.covers(parts_of(programs[2]))
    tables = tables_of(bank, [programs[0], new])
    assert (tables.features[1] == -1).all() and (tables.value[1] == -1).all()


def test_what_programs_share_stands_once(programs):
    one = bank_of(programs[:1])
    assert bank_of([programs[0]] * 3).key == one.key
    assert bank_of(programs[:2]).constants == one.constants, "they differ in weights and order alone"
    both = bank_of([programs[0], programs[3]])
    assert both.size < one.size + bank_of(programs[3:4]).size


def test_a_part_that_is_not_finite_does_not_reach_rows_that_do_not_select_it(programs, checker, task):
    bad = "jnp.where(state.info['height'] > 90.0, jnp.nan, 1.5 * state.vel{})"
    bad = source(f"return {bad.format('')}", f"bad = {bad.format('[0]')}\n    return bad, dict(bad=bad)")
    _, bad = checker.check(bad, task)
    own = [programs[0], bad, programs[4]]
    bank = bank_of(own)
    height = [leaf.name for leaf in own[0].spec.leaves].index("info.height")
    arrays = inputs(own)
    arrays[height] += 100.0
    obs, rewards, terms = jit(selecting(bank))(tables_of(bank, own), arrays)
    assert np.isnan(rewards[1]).all() and np.isnan(terms[1, :, 0]).all()
    assert np.isfinite(np.delete(obs, 1, 0)).all() and np.isfinite(np.delete(rewards, 1, 0)).all()
    assert np.isfinite(np.delete(terms, 1, 0)).all()
    alone = bank_of(own[2:])
    apart = jit(selecting(alone))(tables_of(alone, own[2:]), [x[2:] for x in arrays])
    np.testing.assert_allclose(apart[1][0], rewards[2], rtol=1e-6)


def test_sums_of_too_many_stay_whole(checker, task):
    """Doubling twenty times is no sum of a million."""
    doubled = "x = 1e-6 * far(state)\n" + "    x = x + x\n" * 20 + "    return x, dict(x=0.5 * x)"
    verdict, program = checker.check(source(OBSERVATIONS[2], doubled), task)
    assert program is not None, verdict.failure
    assert len(parts_of(program).value) == 1
    assert_each_is_itself(bank_of([program]), [program], inputs([program]))


def test_the_cost_in_a_bank_counts_what_stands_in_several_parts(programs, checker, task):
    loop = "x = jax.lax.fori_loop(0, 50, lambda k, x: jnp.cos(0.5 * x), far(state))\n"
    several = f"{loop}    return x, dict(a=jnp.sin(x), b=jnp.tanh(x), c=jnp.exp(x))"
    text = source(OBSERVATIONS[2], several).replace("import jax.numpy", "import jax\nimport jax.numpy", 1)
    program = checker.check(text, task)[1]
    assert parts_of(program).reward.repeats and not parts_of(programs[0]).reward.repeats
    assert flops_of(parts_of(program), program.spec) > 3 * program.summary.flops
    assert_each_is_itself(bank_of([program]), [program], inputs([program]))
