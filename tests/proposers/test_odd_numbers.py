"""Numbers that a program of somebody else may hold: none stops an edit, none makes a program unreadable."""

from __future__ import annotations

import ast
import math
import re

import numpy as np
import pytest

from jaxreward.function_source.statements import Statement, fresh_name, split
from jaxreward.proposers.genetic.breeding import BREEDERS
from jaxreward.proposers.genetic.continuation import next_step
from jaxreward.proposers.genetic.edits import WEIGHING, edit
from jaxreward.proposers.genetic.genetic_proposer import GeneticProposer
from jaxreward.proposers.genetic.genome import ENTRY, Gene, Genome, number, read, write
from jaxreward.proposers.genetic.lexicon import Lexicon
from jaxreward.proposers.genetic.variation import Variation, _perturbable
from tests.proposers.material import HAND_WRITTEN, IN_FORM, ROBOT, curve, feedback, request, result

PROPOSER = GeneticProposer(ROBOT)
LEXICON = Lexicon(ROBOT.vocabulary)

ODD = {
    "400 digits": "1" + "0" * 400,
    "4300 digits": "9" * 4300,
    "5000 digits": "9" * 5000,
    "5000 hex digits": "0x" + "f" * 5000,
    "inf": "1e999",
    "-inf": "-1e999",
    "huge": "1e300",
    "largest": "1.7976931348623157e308",
    "denormal": "1e-320",
    "least": "5e-324",
    "-0.0": "-0.0",
    "hex": "0x1F",
    "underscores": "1_000.5",
    "complex": "(1 + 2j)",
    "complex inf": "1e999j",
    "long complex": "(1" + "0" * 400 + " + 1j)",
    "fraction": "0." + "3" * 3000,
}
ALONE = {"scratch", "implement"}


def variation(seed=0, parts=("observation", "reward")) -> Variation:
    return Variation(LEXICON, np.random.default_rng(seed), parts)


def as_weights(number: str) -> str:
    return IN_FORM.replace("* 2.0", f"* {number}").replace("-0.5 *", f"{number} *")


def as_literals(number: str) -> str:
    scaled = HAND_WRITTEN.replace("* 0.25", f"* {number}").replace("cost = -0.01", f"cost = {number}")
    return scaled.replace("SPAN = 4", f"SPAN = {number}").replace("SIZE = 9.0 ", f"SIZE = {number}; HALF = {number} ")


def check(source: str) -> None:
    """That a source is a program: it is parsed, it reads no name that it has not, and its weights are finite."""
    genome = read(source)
    for part in ENTRY:
        assert all(math.isfinite(gene.weight) for gene in genome.genes(part))
    assert write(read(write(genome))) == write(genome)
    names = {node.id for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Name)}
    assert not names & {"inf", "nan", "infj", "nanj"}


@pytest.mark.parametrize("operator", sorted(set(BREEDERS) - ALONE))
@pytest.mark.parametrize("number", list(ODD))
def test_no_operator_stops(operator, number):
    given = feedback(curve("bumps", 0.001), curve("bump", 0.95), curve("inherited_reward_total", 0.95))
    pool = [as_weights(ODD[number]), as_literals(ODD[number]), as_weights("7.5"), as_literals("7.5")]
    for seed, order in enumerate([(0, 2, 1), (2, 0, 0), (1, 3, 0), (3, 1, 2)]):
        parents = [result(pool[i], 0.9 - 0.2 * i * (-1) ** seed, given, 8, str(i)) for i in order]
        proposal = PROPOSER.propose(request(operator, *parents[: 1 + seed % 3]), np.random.default_rng(seed))
        assert proposal.failure is None
        check(proposal.source)


@pytest.mark.parametrize("kind", sorted(WEIGHING))
@pytest.mark.parametrize("number", list(ODD))
def test_weights_stay_finite_however_often_they_are_scaled(kind, number):
    if number == "5000 digits":
        with pytest.raises(SyntaxError):
            read(as_weights(ODD[number]))
        return
    for source in (as_weights(ODD[number]), as_literals(ODD[number])):
        genome, varied = read(source), variation()
        for _ in range(6):
            genome = edit(kind, genome, varied)
            for part in ENTRY:
                genome = varied.perturb(genome, part)
        check(write(genome))


@pytest.mark.parametrize("number", ["400 digits", "5000 hex digits", "inf", "-inf", "long complex"])
def test_what_is_no_weight_leaves_the_half_as_it_is(number):
    for part, name in ENTRY.items():
        half = read(as_weights(ODD[number])).half(part)
        assert isinstance(half, Statement) and half.binds == (name,) and ODD[number] in half.text


@pytest.mark.parametrize(
    ("written", "weight"), [("0x1F", 31.0), ("1_000.5", 1000.5), ("-0.0", -0.0), ("1e-320", 1e-320), ("1e300", 1e300)]
)
def test_what_is_a_weight_is_read(written, weight):
    genome = read(as_weights(written))
    assert genome.genes("observation")[1].weight == genome.genes("reward")[0].weight == weight
    again = read(write(genome)).genes("reward")[0].weight
    assert again == weight and math.copysign(1, again) == math.copysign(1, weight)


def test_a_number_as_written_is_finite():
    assert number(1.7976931348623157e308) == number(math.inf) == 1e308 == -number(-math.inf)
    assert number(0.0123456) == 0.012 and number(-7.0) == -7.0


def opaque(body: str) -> Genome:
    return read(f"def get_observation(state):\n    {body}\n")


@pytest.mark.parametrize("written", ["1e999", "1e999j", "0.0", "9" * 400])
def test_a_literal_that_cannot_be_scaled_stays(written):
    genome = opaque(f"return state.q * {written}")
    for seed in range(20):
        assert write(variation(seed).perturb(genome, "observation")) == write(genome)


def test_the_least_literal_stays_above_zero():
    genome = opaque("return state.q * 5e-324")
    for seed in range(20):
        assert float(write(variation(seed).perturb(genome, "observation")).split("* ")[1]) > 0


def test_a_literal_is_scaled_only_where_it_stands():
    (literal,) = [n for n in ast.walk(ast.parse("x = 2.5")) if isinstance(n, ast.Constant)]
    assert _perturbable(literal, [b"x = 2.5"]) == _perturbable(literal, [b"y = 2.50"]) == 2.5
    for lines in ([b"x = 3.5"], [b"xy = 2.5"], [b"x = y.z"], [b"x"], []):
        assert _perturbable(literal, lines) == 0.0


def test_a_literal_at_the_edge_stays_a_number():
    genome, varied = opaque("return state.q * 1e308"), variation()
    for _ in range(20):
        genome = varied.perturb(genome, "observation")
        check(write(genome))


def test_literals_are_changed_where_they_are():
    """A form feed ends no line, and a letter may be two bytes."""
    genome = opaque('name = f"é {2.5} and {2.5}"  # \x0c \u2028\n    return state.q * 3_0.5')
    texts = [write(variation(seed).perturb(genome, "observation")) for seed in range(20)]
    blank = re.compile(r"\b\d[\d.e_+-]*")
    for text in texts:
        assert blank.sub("N", text) == blank.sub("N", write(genome))
    assert len({float(text.split("* ")[1]) for text in texts}) > 5 and any("{2.5} and {2.5}" not in t for t in texts)


@pytest.mark.parametrize("weights", [(1e300, 1e-300, 1e-320), (1e-320, 1e-300, 1e300), (-1e308, -5e-324, -1.0)])
@pytest.mark.parametrize("scores", [(0.9, 0.5, 0.1), (0.1, 0.5, 0.9)])
def test_weights_far_apart_make_a_line(weights, scores):
    line = [(score, read(as_weights(repr(weight)))) for score, weight in zip(scores, weights, strict=True)]
    for seed in range(5):
        after = next_step(line, variation(seed))
        check(write(after))
        assert math.copysign(1, after.genes("reward")[0].weight) == math.copysign(1, weights[0])


def test_integers_that_python_does_not_print_keep_their_value():
    source = f"A = 1; LIMIT = {ODD['5000 hex digits']}\ndef get_observation(state):\n    return LIMIT\n"
    statement = split(source)[1]
    assert ast.literal_eval(statement.text.removeprefix("LIMIT = ")) == int("f" * 5000, 16)
    renamed = statement.renamed({"LIMIT": "LIMIT_2"})
    assert renamed.text == statement.text.replace("LIMIT", "LIMIT_2")
    assert statement.shape == split(statement.text)[0].shape != renamed.shape
    assert read(source).key == read(source.replace("A = 1; ", "")).key


def test_a_name_may_end_in_a_long_number():
    long = "f_" + "9" * 5000
    assert fresh_name(long, [long]) == f"{long}_2"
    assert Gene(long).name in write(read(f"def {long}(state):\n    return state.q\n{_ENTRY.format(long)}"))


_ENTRY = "def get_observation(state):\n    return jnp.concatenate([{}(state)])\n"
