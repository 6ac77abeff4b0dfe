"""Programs that put out the same are one candidate; nothing that could differ is taken for the same."""

from __future__ import annotations

import numpy as np
import pytest

from jaxreward.programs.novelty import TOLERANCE, same_outputs
from jaxreward.records import ProgramSummary
from jaxreward.tasks.probe import Probe

HEAD = """\
import jax
import jax.numpy as jnp


def distance(state):
    return jnp.abs(state.agent.position - 4).sum() / 8.0


def holds(state):
    return state.agent.pocket[0] == 3

"""
SEE = "return jnp.concatenate([state.agent.position / 8.0, jnp.stack([state.step_num / 80.0])])"
PAY = "return distance(state) + 0.3 * distance(next_state) + holds(next_state) * 1.0"


@pytest.fixture(scope="module")
def easy(task_of):
    return task_of("xland-easy")


@pytest.fixture
def summary(checker, easy):
    def summary(see: str = SEE, pay: str = PAY, task=easy, head: str = HEAD) -> ProgramSummary:
        source = (
            f"{head}\ndef get_observation(state):\n    {see}\n\n\n"
            f"def compute_reward(state, action, next_state):\n    {pay}\n"
        )
        verdict, _ = checker.check(source, task)
        assert verdict.ok, verdict.failure
        return verdict.summary

    return summary


@pytest.mark.parametrize(
    "pay",
    [
        "return distance(state) + (0.3 * distance(next_state) + holds(next_state) * 1.0)",
        "return jnp.where(holds(next_state), 1.0, 0.0) + distance(state) + distance(next_state) * 0.3",
        f"return 2.0 * ({PAY.removeprefix('return ')})",
        f"return ({PAY.removeprefix('return ')}) / 7.0, {{'near': distance(state), 'other': action * 1.0}}",
    ],
)
def test_the_same_in_other_words_is_the_same(summary, pay):
    a, b = summary(), summary(pay=pay)
    assert a.digest != b.digest and len(a.sketch) == 16
    assert same_outputs(a, b) and same_outputs(b, a)
    assert np.abs(np.subtract(a.sketch, b.sketch)).max() < TOLERANCE / 10


def test_terms_do_not_matter(summary):
    """Neither their values nor the numbers in them, nor what never happens in them."""
    pay = "return distance(state) + action, {{'near': {} * distance(state), 'late': {} * (state.step_num > 900)}}"
    a, b = summary(pay=pay.format(1.0, 2.0)), summary(pay=pay.format(3.0, 5.0))
    assert a.digest != b.digest and same_outputs(a, b)


@pytest.mark.parametrize(
    ("see", "pay"),
    [
        # features in another order, one of them scaled
        ("return jnp.concatenate([jnp.stack([state.step_num / 80.0]), state.agent.position / 8.0])", PAY),
        ("return jnp.concatenate([state.agent.position / 8.0, jnp.stack([state.step_num / 80.8])])", PAY),
        # a weight changed by one per cent, the sign, a living bonus
        (SEE, PAY.replace("0.3", "0.303")),
        (SEE, f"return -({PAY.removeprefix('return ')})"),
        (SEE, PAY + " + 1.0"),
        # the smallest change of a condition
        (SEE, PAY.replace("holds(next_state)", "(holds(next_state) & (state.step_num < 70))")),
    ],
)
def test_what_differs_is_not_the_same(summary, see, pay):
    a, b = summary(), summary(see, pay)
    assert a.sketch and b.sketch and not same_outputs(a, b)
    assert np.abs(np.subtract(a.sketch, b.sketch)).max() > 10 * TOLERANCE


def test_where_a_threshold_lies_matters_though_no_input_falls_between(summary):
    """Behind a rare condition; no whole number lies between the two."""
    pays = [PAY + f" + 1.0 * (holds(state) & (state.step_num < {t}))" for t in (41, 40.5, 41)]
    a, b, c = (summary(pay=pay) for pay in pays)
    assert a.sketch and not same_outputs(a, b) and same_outputs(a, c)
    np.testing.assert_allclose(a.sketch, b.sketch, atol=TOLERANCE)


@pytest.mark.parametrize(
    "rare",
    [
        "(next_state.step_num > 79) & (next_state.agent.pocket[1] == 9)",  # never in the batch
        "jnp.array([0, 0, 0, 0, 1])[jnp.clip(state.agent.direction, 0, 4) + (state.grid[0, 0, 0] == 99)] == 1",
        "jnp.floor(state.step_num / 1000.0) > 0",
        "jnp.maximum(state.step_num, 500) > 500",
        "jax.lax.fori_loop(0, 3, lambda i, x: x + (state.step_num > 500 + i), 0) > 0",
        "jnp.stack([state.step_num > 40, state.step_num > 4000]).any()",
        "jnp.max(jnp.stack([state.step_num, 500 + 0 * action])) > 500",
        # flags that each occur and never all together
        "(state.step_num > 70).astype(jnp.float32) * (state.agent.position[0] == 1) * (action == 5) * holds(state)",
        "jnp.prod(jnp.stack([state.step_num > 70, state.agent.position[0] == 1, action == 5, holds(state)]) * 1.0)",
        # gates that are never quite shut
        "jnp.exp(-20.0 * (jnp.abs(state.agent.position - 7).sum() + jnp.abs(action - 4) + state.step_num))",
        "(jnp.abs(state.agent.position[0] - 4) / 10.0 + state.step_num / 200.0) ** 64",
        # a class that does not occur
        "(jax.nn.one_hot(state.agent.pocket[0], 40) * jnp.arange(40.0)).sum()",
    ],
)
def test_a_bonus_for_what_never_happened_equals_nothing(summary, rare):
    plain, bonus = summary(), summary(pay=PAY + f" + 10.0 * ({rare})")
    assert plain.sketch and not bonus.sketch
    assert not same_outputs(plain, bonus) and not same_outputs(bonus, bonus)


def test_the_corrections_of_jax_do_not_stand_in_the_way(summary):
    """Negative indices, and // and % of negative integers, do not occur and are nobody's intention."""
    cells = "state.grid[:, :, 0].reshape(-1)"
    see = f"i = jnp.argmax({cells} == 5)\n    return jnp.stack([i // 9, i % 9]).astype(jnp.float32)"
    pay = "return state.grid[state.agent.position[0] - 1, state.agent.position[1], 0] * 1.0"
    assert summary(see, pay).sketch
    assert not summary(see, pay.replace("* 1.0", "* 1.0 + (state.agent.position[0] < -5)")).sketch


def test_a_constant_reward_has_no_sketch(summary):
    assert not summary(pay="return next_state.step_num * 0.0").sketch


def test_a_half_that_is_the_task_s_compares_as_itself(checker, easy):
    body = f"{HEAD}\ndef get_observation(state):\n    {SEE}\n"
    a, b = (
        checker.check(s, easy)[0].summary
        for s in (body, body.replace(SEE, "return jnp.append(state.agent.position / 8.0, state.step_num / 80.0)"))
    )
    c = checker.check(body.replace("/ 80.0", "/ 81.0"), easy)[0].summary
    assert same_outputs(a, b) and not same_outputs(a, c)


@pytest.mark.parametrize("kind", ["signal", "corridor"])
def test_a_constant_is_never_ignored(summary, kind):
    """It drowns the rest when rewards are divided by the root mean square of the return."""
    see, pay = "return jnp.stack([state.signal])", "return (state.signal + 0.2 * action)"
    a, b, c = (
        summary(see, p, Probe(kind), "import jax.numpy as jnp")
        for p in (pay, pay + " + 1.0", pay.replace("return", "return 3.0 *"))
    )
    assert a.sketch and b.sketch and not same_outputs(a, b) and same_outputs(a, c)


@pytest.mark.parametrize(
    ("pay", "other", "same"),
    [
        # a table behind a rare event: only the numbers say that they differ
        ("return distance(state) + 1.0 * (holds(state) & (state.step_num < 41.5))",
         "return distance(state) + 1.0 * (holds(state) & (state.step_num < 41.2))", False),
        # all weights times three, written out
        ("return 1.5 * distance(state) + 0.3 * distance(next_state)",
         "return 4.5 * distance(state) + 0.9 * distance(next_state)", True),
        # one weight of three
        ("return 1.5 * distance(state) + 0.3 * distance(next_state)",
         "return 4.5 * distance(state) + 0.3 * distance(next_state)", False),
        # a sign that hardly weighs
        ("return 1000.0 * holds(state) + 0.001 * distance(state)",
         "return 1000.0 * holds(state) - 0.001 * distance(state)", False),
    ],
)  # fmt: skip
def test_the_numbers_of_a_program_are_compared(summary, pay, other, same):
    a, b = summary(pay=pay), summary(pay=other)
    assert a.sketch and b.sketch and same_outputs(a, b) is same


def test_small_features_are_compared(summary):
    a, b, c = (
        summary(f"return jnp.stack([state.step_num * {k}, distance(state)])") for k in ("1e-5", "1.5e-5", "-1e-5")
    )
    assert a.sketch and not same_outputs(a, b) and not same_outputs(a, c)


def test_a_reward_of_hardly_anything_has_no_sketch(summary):
    assert summary(pay="return 0.1 * distance(state)").sketch
    assert not summary(pay="return 0.0001 * distance(state)").sketch


def test_a_table_of_many_numbers_has_no_sketch(summary):
    see = "return (state.step_num / 80.0 * jnp.array([{}])).sum()[None]"
    few, many = (summary(see.format(", ".join(f"{k}.5" for k in range(n)))) for n in (100, 200))
    assert few.sketch and len(few.constants[0]) >= 100 and not many.sketch


def test_work_that_does_not_reach_the_reward_is_no_part_of_it(summary):
    """A loop carries a rare event along that nothing reads."""
    pay = """x = jax.lax.fori_loop(0, 3, lambda i, c: (c[0] + distance(state), c[1] + 9.0 * (state.step_num > 500)),
                              (0.0, 0.0))
    return x[0]"""
    assert same_outputs(summary(pay=pay), summary(pay=pay.replace("9.0", "7.0")))


def test_without_a_sketch_or_with_another_size_nothing_is_equal():
    sketch = (0.5, 1.0)
    known = {"reward_rms": 1.0, "constants": ((2.0,), (3.0,))}
    a, b = (ProgramSummary(digest=d, observation_size=3, sketch=sketch, **known) for d in "ab")
    assert same_outputs(a, b)
    assert not same_outputs(a, b.model_copy(update={"observation_size": 4}))
    assert not same_outputs(a, b.model_copy(update={"sketch": ()}))
    assert not same_outputs(a, b.model_copy(update={"sketch": (0.5, 1.0, 2.0)}))
    assert not same_outputs(a, b.model_copy(update={"sketch": (0.5, 1.001)}))
    assert not same_outputs(a, b.model_copy(update={"reward_rms": 0.0}))
    assert not same_outputs(a, b.model_copy(update={"constants": ((2.0,), (3.0, 4.0))}))
    assert same_outputs(a, b.model_copy(update={"constants": ((2.0,), (1.0, 3.0))}))
    twice = {"reward_rms": 2.0, "constants": ((2.0,), (2.0, 6.0))}
    assert same_outputs(a, b.model_copy(update=twice)) and same_outputs(b.model_copy(update=twice), a)
    assert not same_outputs(a, b.model_copy(update={**twice, "constants": ((4.0,), (6.0,))}))
