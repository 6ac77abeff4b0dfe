"""Vocabularies of views with odd names, forbidden names, random keys, large arrays and hidden goals."""

from __future__ import annotations

import ast

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxreward.evolution.task_remarks import remarks_on
from jaxreward.function_source.fields import NEVER_FIELDS
from jaxreward.proposers.genetic.genome import Gene, Genome, write
from jaxreward.proposers.genetic.lexicon import KIND, Lexicon
from jaxreward.tasks.automatic import automatic_vocabulary, vocabulary
from jaxreward.tasks.automatic.clues import clues_of
from jaxreward.tasks.automatic.play import play
from jaxreward.tasks.random_keys import are_random_keys, may_be_random_key
from tests.tasks.odd_views import NAMES, SECRET, OddViews


@pytest.fixture(scope="module")
def played():
    return play(OddViews())


@pytest.fixture(scope="module")
def derived(played):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(vocabulary, "play", lambda task, seed: played)
        return automatic_vocabulary(OddViews())


@pytest.mark.long
def test_fields_of_any_name_have_fragments_that_programs_may_use(derived, checker):
    lexicon, sources = Lexicon(derived), []
    for part, kind in KIND.items():
        fragments = [f for f in derived.fragments if f.kind == kind]
        for some in (fragments[k : k + 30] for k in range(0, len(fragments), 30)):
            genes = tuple(Gene(fragment.name) for fragment in some)
            genome = Genome(statements=lexicon.definition(gene.name for gene in genes))
            sources.append(write(genome.with_half(part, genes)))
    verdicts = [verdict for verdict, _ in checker.check_many(sources, OddViews())]
    assert [verdict.failure for verdict in verdicts] == [None] * len(sources)
    text = "\n".join(f.source for f in derived.fragments)
    assert [name for name in NAMES if f".numbers[{name!r}]" not in text] == []
    assert {"own_observation", "task_reward"} <= {f.name for f in derived.fragments}


def test_what_the_task_compares_is_found_under_any_name_and_gives_its_name(played):
    conditions = [draft.name for draft in clues_of(OddViews(), played).conditions]
    for name in ("state_of_charge_gt_0_25", "traction_gt_robot_state", "a_b_gt_short_0"):
        assert [found for found in conditions if found.startswith(name)], (name, conditions)
    assert len(set(conditions)) == len(conditions)


def test_a_goal_that_the_view_hides_is_in_no_fragment_but_the_sparse_reward(derived, played):
    others = [*(f for f in derived.fragments if f.name != "task_reward"), *clues_of(OddViews(), played).conditions]
    numbers = {
        n.value
        for f in others
        for n in ast.walk(ast.parse(f.source))
        if isinstance(n, ast.Constant) and isinstance(n.value, float)
    }
    assert not numbers & set(SECRET)
    assert not [f.name for f in others if "jnp.array(" in f.source]


def test_no_fragment_reads_forbidden_names_random_keys_or_large_arrays(derived):
    texts = [*derived.helpers.values(), *(f.source for f in derived.fragments)]
    read = {n.attr for text in texts for n in ast.walk(ast.parse(text)) if isinstance(n, ast.Attribute)}
    assert not read & {"noise", "picture"} and not read & NEVER_FIELDS
    assert "place" in read


def test_the_check_tells_what_programs_cannot_read_and_should_not():
    said = [str(remark) for remark in remarks_on(OddViews())]
    expected = ("a field 'base', which programs cannot read", "a field 'format'", "a random key, view.noise: leave it",
                "view.picture has more than 65,536 elements")  # fmt: skip
    assert len(said) == len(expected)
    for words, remark in zip(expected, said, strict=True):
        assert words in remark
    assert "rename it" in said[0]


def test_random_keys_are_told_from_bits_that_mean_something():
    keys = np.asarray(jax.random.split(jax.random.PRNGKey(0), 64))
    assert may_be_random_key(keys.shape[1:], keys.dtype) and are_random_keys(keys)
    assert are_random_keys(np.random.default_rng(0).integers(0, 2**32, (64, 4), np.uint32))
    walls = np.full((64, 2), 0xFF0000FF, np.uint32)
    walls[:, 0] ^= 1 << np.arange(64, dtype=np.uint32) % 24
    assert not are_random_keys(walls)
    assert not are_random_keys(np.arange(128, dtype=np.uint32).reshape(64, 2))
    assert may_be_random_key((), jax.random.key(0).dtype) and not may_be_random_key((2,), jnp.int32)
