"""Taking programs apart and writing them again."""

from __future__ import annotations

import ast

import numpy as np
import pytest

from jaxreward.function_source.statements import Statement, closure, disentangled, fresh_name, split
from jaxreward.proposers.genetic.genetic_proposer import GeneticProposer
from jaxreward.proposers.genetic.genome import Gene, Genome, read, write
from tests.proposers.material import HAND_WRITTEN, IN_FORM, XLAND, request


def values(source, state, jnp_action):
    namespace: dict = {}
    exec(source, namespace)
    return namespace["get_observation"](state), namespace["compute_reward"](state, jnp_action, state)


def test_write_read_write_is_a_fixed_point():
    proposer = GeneticProposer(XLAND)
    for seed in range(30):
        source = proposer.propose(request(), np.random.default_rng(seed)).source
        genome = read(source)
        assert genome.genes("observation") and genome.genes("reward")
        assert write(genome) == source


@pytest.mark.parametrize("source", [HAND_WRITTEN, IN_FORM])
def test_foreign_sources_keep_their_meaning(source, state):
    again = write(read(source))
    assert write(read(again)) == again
    before, after = values(source, state, 0), values(again, state, 0)
    np.testing.assert_allclose(before[0], after[0])
    np.testing.assert_allclose(before[1][0], after[1][0])


def test_a_source_in_the_form_is_genes():
    genome = read(IN_FORM)
    assert genome.observation == (Gene("place", 1.0), Gene("pocket", 2.0))
    assert genome.reward == (Gene("bump", -0.5),)


def test_another_source_is_opaque_and_keeps_comments():
    genome = read(HAND_WRITTEN)
    assert isinstance(genome.observation, Statement) and isinstance(genome.reward, Statement)
    text = write(genome)
    assert "# cells" in text and "# Finds the pyramid." in text and "from jax import lax" in text
    assert "lax" not in write(genome.with_half("reward", None))


@pytest.mark.parametrize(
    "body",
    [
        "    x = jnp.concatenate([f(state)])\n    return x",
        "    return jnp.concatenate([f(state), state.agent.position])",
        "    return jnp.concatenate([f(state), f(state)])",
        "    return jnp.concatenate([f(state)], axis=0)",
        "    return jnp.concatenate([g(state)])",
        "    return f(state)",
        "    if True:\n        return jnp.concatenate([f(state)])",
        "    return jnp.concatenate([SCALE * f(state)])",
    ],
)
def test_near_misses_of_the_form_are_opaque(body):
    head = "import jax.numpy as jnp\nSCALE = 2.0\ndef f(state):\n    return state.q\n"
    source = f"{head}def get_observation(state):\n{body}\n"
    genome = read(source)
    assert isinstance(genome.observation, Statement)
    ast.parse(write(genome))


def test_odd_layouts_keep_their_meaning():
    source = (
        "import jax, jax.numpy as jnp\nA = 1; B = 2\nT = [A]\nT = T + [B]\nfor k in range(3):\n    T = T + [k]\n"
        "@jax.jit\ndef f(x):\n    return x + len(T)\n"
        "def get_observation(state):\n    return f(state.q)\n"
    )
    text = write(read(source))
    for line in ("A = 1", "B = 2", "T = [A]", "T = T + [B]", "for k in range(3):", "@jax.jit"):
        assert line in text
    assert text.index("T = [A]") < text.index("T = T + [B]") < text.index("for k")
    assert write(read(text)) == text


def test_one_entry_may_call_the_other():
    source = (
        "import jax.numpy as jnp\ndef get_observation(state):\n    return state.q\n"
        "def compute_reward(state, action, next_state):\n    return jnp.sum(get_observation(next_state))\n"
    )
    genome = read(source)
    assert write(genome).count("def get_observation") == 1
    assert "def get_observation" in write(genome.with_half("observation", None))


def test_an_empty_source_is_an_empty_genome_and_a_broken_one_an_error():
    assert read("") == Genome()
    with pytest.raises(SyntaxError):
        read("def get_observation(state:\n")


def test_key_ignores_order_and_layout():
    genome = read(IN_FORM)
    other = read(
        IN_FORM.replace("place(state), pocket(state) * 2.0", "2.0 * pocket(state), place(state)").replace(" / ", "/")
    )
    assert genome.key == other.key
    assert genome.key != read(IN_FORM.replace("12.0", "11.0")).key


def test_names_are_resolved_by_scope():
    (statement,) = split("def f(x, A=B):\n    C = A + D\n    return [C for D in x] + [D, (lambda E: E + F)(1)]\n")
    assert statement.needs == ("B", "D", "F")
    text = statement.renamed({"A": "A2", "B": "B2", "D": "D2", "F": "F2", "f": "f2"}).text
    assert "def f2(x, A=B2)" in text and "A + D2" in text and "for D in x" in text and "E + F2" in text


def test_disentangling_renames_users_of_renamed_names():
    mine = split("A = 1\ndef f(x):\n    return x + A\n")
    theirs = split("A = 2\ndef f(x):\n    return x + A\ndef g(x):\n    return f(x)\n")
    names = disentangled(mine, theirs)
    assert names == {"A": "A_2", "f": "f_2"}
    assert disentangled(mine, mine) == {}
    assert [s.binds for s in closure(["g"], theirs)] == [("A",), ("f",), ("g",)]


def test_a_fresh_name_is_the_first_that_is_free():
    assert fresh_name("f", []) == "f"
    assert fresh_name("f", ["f"]) == "f_2"
    assert fresh_name("f_2", ["f", "f_2", "f_3"]) == "f_4"
