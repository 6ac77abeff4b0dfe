"""Vocabularies derived from tasks: what is found, what it is called, and how it is ranked."""

from __future__ import annotations

import functools
import re
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxreward.proposers.genetic.genome import Gene, Genome, write
from jaxreward.proposers.genetic.lexicon import KIND, Lexicon
from jaxreward.records import Fragment, Vocabulary
from jaxreward.tasks import BaseTask, Discrete
from jaxreward.tasks.automatic import automatic_vocabulary, contrast_vocabulary, labelled, with_more_contrasts
from jaxreward.tasks.automatic.clues import clues_of
from jaxreward.tasks.automatic.expressions import UNKNOWN, following, paths_of, written
from jaxreward.tasks.automatic.features import TURN_HELPERS
from jaxreward.tasks.automatic.fields import fields_of
from jaxreward.tasks.automatic.information import information
from jaxreward.tasks.automatic.play import Play, play
from jaxreward.tasks.automatic.scene import scene_of
from tests.tasks.cases import functions_of
from tests.tasks.key_door import KeyDoor, KeyDoorCells, KeyDoorRenamed

TASKS = {"fields": KeyDoor, "cells": KeyDoorCells, "renamed": KeyDoorRenamed}


@functools.cache
def derived(name: str) -> Vocabulary:
    return automatic_vocabulary(TASKS[name]())


def weights_of(vocabulary: Vocabulary) -> dict[str, float]:
    return {fragment.name: fragment.weight for fragment in vocabulary.fragments}


def module_of(vocabulary: Vocabulary) -> dict[str, Any]:
    """The functions of a vocabulary."""
    texts = ["import jax", "import jax.numpy as jnp", *(f"{k} = {v}" for k, v in vocabulary.constants.items())]
    texts += [*vocabulary.helpers.values(), *(f.source for f in vocabulary.fragments)]
    return functions_of("\n\n".join(texts))


@pytest.mark.slow
@pytest.mark.parametrize("name", ["cells", "renamed"])
def test_every_fragment_passes_the_checks_of_a_program(name, checker):
    lexicon = Lexicon(derived(name))
    sources, sizes = [], []
    for part, kind in KIND.items():
        fragments = [f for f in derived(name).fragments if f.kind == kind]
        for some in (fragments[k : k + 30] for k in range(0, len(fragments), 30)):
            genes = tuple(Gene(fragment.name) for fragment in some)
            genome = Genome(statements=lexicon.definition(gene.name for gene in genes))
            sources.append(write(genome.with_half(part, genes)))
            sizes.append(sum(f.size for f in some) if kind == "feature" else None)
    verdicts = [verdict for verdict, _ in checker.check_many(sources, TASKS[name]())]
    assert [verdict.failure for verdict in verdicts] == [None] * len(sources)
    assert all(
        v.summary and size in (None, v.summary.observation_size) for v, size in zip(verdicts, sizes, strict=True)
    )


@pytest.mark.long
@pytest.mark.parametrize("name", TASKS)
def test_there_are_features_and_terms_of_every_family_that_a_search_draws_from(name):
    fragments = derived(name).fragments
    families = {(f.kind, f.tags[0]) for f in fragments}
    wanted = {("feature", "relative"), ("feature", "flag")}
    wanted |= {("term", family) for family in ("milestone", "potential", "shaping", "penalty")}
    assert wanted <= families
    assert len(fragments) <= 150 and len({f.name for f in fragments}) == len(fragments)
    assert all(f.doc and f'"""{f.doc}"""' in f.source for f in fragments)


def test_the_same_seed_gives_the_same_vocabulary():
    assert automatic_vocabulary(KeyDoor()) == derived("fields")


def test_renamed_fields_have_fragments_of_other_names_alone():
    words = {"a": "agent", "b": "key", "c": "door", "d": "has_key", "e": "open_field"}

    def in_words(name: str) -> str:
        return "_".join(words.get(part, part) for part in name.split("_"))

    found = {in_words(name) for name in weights_of(derived("renamed"))}
    assert set(weights_of(derived("fields"))) <= found


def test_a_constant_field_has_no_feature_of_its_own():
    """Field g never changes; the way to it does."""
    names = weights_of(derived("renamed"))
    assert "a_to_g_distance" in names
    assert not [name for name in names if re.match(r"(more_|less_)?g_(scaled|position|x|y)", name)]


def test_noise_ranks_below_what_tells_of_the_reward():
    weights = weights_of(derived("renamed"))
    noise = [weight for name, weight in weights.items() if re.search(r"(^|_)f_", name)]
    assert noise and max(noise) < weights["a_to_c_distance"]
    assert max(noise) < min(weights["a_to_b_potential"], weights["a_to_c_while_d"])


def test_the_wrong_direction_ranks_below_the_right_one():
    weights = weights_of(derived("fields"))
    assert weights["agent_to_key_away"] < weights["agent_to_key_potential"]
    assert weights["no_has_key_potential"] < weights["has_key_potential"]


@pytest.mark.long
def test_places_in_cells_are_where_the_fields_say():
    """The way to the key is found in an array of cells as it is in fields, until the key is taken: then it is 0."""
    cells, fields = KeyDoorCells(), KeyDoor()
    way = module_of(derived("cells"))["way_to_cells_2"]
    states = jax.vmap(fields.reset)(jax.random.split(jax.random.key(1), 8))
    found = jax.vmap(lambda state: way(cells.view(state)))(states)
    np.testing.assert_array_equal(found, states.key - states.agent)
    taken = states._replace(has_key=jnp.ones(8, bool))
    np.testing.assert_array_equal(jax.vmap(lambda state: way(cells.view(state)))(taken), np.zeros((8, 2)))


def test_the_reward_of_the_task_is_a_term():
    played = play(KeyDoor())
    term = module_of(derived("fields"))["task_reward"]
    paid = jax.vmap(term)(played.views, played.actions, played.next_views)
    assert played.reward.sum() > 0
    np.testing.assert_array_equal(paid, played.reward)


def test_conditions_of_a_step_are_found_in_it():
    """`step` compares the agent's new place with those of key and door."""
    texts = " ".join(draft.source for draft in clues_of(KeyDoor(), play(KeyDoor())).conditions)
    assert "next_state.agent - next_state.key" in texts and "next_state.agent - next_state.door" in texts


# ---- recognition, on arrays made by hand


def played(views: dict[str, Any], next_views: dict[str, Any], actions: Any) -> Play:
    n = len(actions)
    zero = np.zeros(n, np.float32)
    return Play(views, next_views, np.asarray(actions), zero, zero, zero, zero, np.arange(n), False)


def turned(angle: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Unit quaternions of turns about the x axis."""
    zero = np.zeros_like(angle)
    return np.stack([np.cos(angle / 2), np.sin(angle / 2), zero, zero], 1).astype(np.float32)


def test_a_quaternion_is_an_orientation():
    rng = np.random.default_rng(0)
    angles = rng.uniform(-2, 2, (2, 64))
    plain = np.eye(4, dtype=np.float32)[rng.integers(0, 4, (2, 64))]
    views, next_views = ({"turn": turned(a), "kind": k} for a, k in zip(angles, plain, strict=True))
    scene = scene_of(played(views, next_views, np.zeros(64, np.int32)), 10)
    assert [turn.name for turn in scene.turns] == ["turn"]
    up = functions_of("import jax.numpy as jnp\n" + TURN_HELPERS)["up_in_world"]
    expected = np.stack([np.zeros(64), -np.sin(angles[0]), np.cos(angles[0])], 1)
    np.testing.assert_allclose(jax.vmap(up)(views["turn"]), expected, atol=1e-5)


def test_velocities_and_counts_of_steps_are_told_from_places():
    rng = np.random.default_rng(0)
    actions = rng.uniform(-1, 1, (256, 2)).astype(np.float32)
    place = rng.uniform(-5, 5, (256, 2)).astype(np.float32)
    speed = actions * 0.5
    steps = np.arange(256, dtype=np.int32)
    goal = rng.uniform(-5, 5, (256, 2)).astype(np.float32)
    before = {"p": place, "v": rng.normal(size=(256, 2)).astype(np.float32), "n": steps, "goal": goal}
    after = {"p": place + 0.1 * speed, "v": speed, "n": steps + 1, "goal": goal}
    scene = scene_of(played(before, after, actions), 10)
    assert scene.agent is not None and scene.agent.name == "p"
    assert [p.name for p in scene.targets] == ["goal"]
    assert {p.name for p in scene.places if p.is_rate} == {"v"}
    assert {n.name: n.kind for n in scene.numbers}["n"] == "clock"


def test_pairs_of_scalars_are_places():
    class Position(NamedTuple):
        row: Any
        col: Any

    rng = np.random.default_rng(0)
    actions = rng.integers(0, 2, 200)
    here, there = (rng.integers(0, 6, (2, 200)).astype(np.int32) for _ in range(2))
    views = {"head": Position(*here), "fruit": Position(*there)}
    moved = {"head": Position(here[0] + actions.astype(np.int32), here[1]), "fruit": views["fruit"]}
    scene = scene_of(played(views, moved, actions), 10)
    assert scene.agent is not None and scene.agent.name == "head"
    assert [p.name for p in scene.targets] == ["fruit"]


def test_random_keys_are_no_quantities():
    keys = np.random.default_rng(0).integers(0, 2**32, (2, 16, 2), np.uint32)
    views, next_views = ({"key": k, "x": np.arange(16.0)} for k in keys)
    assert [f.name for f in fields_of(played(views, next_views, np.zeros(16)))] == ["x"]


def test_information_is_one_of_itself_and_none_of_noise():
    rng = np.random.default_rng(0)
    x, noise = rng.integers(0, 4, 4000), rng.normal(size=4000)
    assert information(x, x) == pytest.approx(1.0, abs=0.02)
    assert information(noise, x) < 0.01
    assert information(np.ones(4000), x) == 0.0


# ---- texts of computations


@dataclass(frozen=True)
class Case:
    function: Any
    text: str = ""


CASES = {
    "a goal": Case(lambda s: jnp.all(s["a"] == s["b"]) & ~s["on"]),
    "an element": Case(lambda s: s["a"][1] + 0.5, "(state['a'][1] + 0.5)"),
    "clipped": Case(lambda s: jnp.clip(s["a"] * 2.0, -1.0, 1.0).sum()),
    "chosen": Case(lambda s: jnp.where(s["on"], s["a"], 0.0)),
    "put together": Case(lambda s: jnp.concatenate([s["a"], s["b"][:2], s["on"][None]])),
    "an angle": Case(lambda s: jnp.stack([jnp.sin(s["a"][0]), jnp.cos(s["a"][0])])),
    "a norm": Case(lambda s: jnp.linalg.norm(s["a"] - s["b"])),
}


@pytest.mark.parametrize("name", CASES)
def test_a_computation_as_text_computes_the_same(name):
    state = {"a": jnp.array([0.3, -2.0, 1.0]), "b": jnp.array([0.3, 1.0, 1.0]), "on": jnp.array(True)}
    case = CASES[name]
    (found,) = written(case.function, (state,), paths_of("state", state)).outputs
    assert UNKNOWN not in found.text
    assert case.text in ("", found.text)
    value = eval(found.text, {"jnp": jnp, "jax": jax, "state": state})
    np.testing.assert_allclose(jnp.asarray(value, jnp.float32), jnp.asarray(case.function(state), jnp.float32))


def test_what_cannot_be_written_is_unknown_and_named_outputs_stay():
    def step(x):
        y = jnp.sort(x)  # there is no text for it
        return y, y[0] > 0.5

    x = jnp.arange(3.0)
    assert written(step, (x,), ["x"]).outputs[1].text == UNKNOWN
    found = following(step, (x,), ["x"], {0: "next_x"}, frozenset([1]))
    assert [(c.operator, c.left.text, c.right.text) for c in found.comparisons] == [("gt", "next_x[0]", "0.5")]


def test_terms_that_pay_nothing_in_any_state_of_the_data_are_left_out():
    place = np.arange(8, dtype=np.float32)
    played = labelled({"place": place}, np.zeros(8, np.int32), {"place": place + 1.0}, place > 5)
    terms = {
        "silent": "jnp.where(next_state['place'] > 9.0, 1.0, 0.0)",
        "rare": "jnp.where(where(next_state)[0] > 7.0, 1.0, 0.0)",
        "constant": "-0.5",
    }
    where = "def where(state):\n    return jnp.stack([state['place']])"
    fragments = [Fragment(name="where", kind="feature", source=where, size=1)]
    for name, text in terms.items():
        source = f"def {name}(state, action, next_state):\n    return {text}"
        fragments.append(Fragment(name=name, kind="term", source=source))
    own = Vocabulary(fragments=tuple(fragments))
    names = [fragment.name for fragment in contrast_vocabulary(own, played).fragments]
    assert names[:3] == ["where", "rare", "constant"] and names[-1] == "everywhere" and "silent" not in names


class Rail(NamedTuple):
    cart: jax.Array
    speed: jax.Array
    flag: jax.Array


class OnARail(BaseTask):
    """A cart on a rail of 21 places has to come to rest at a flag: places that are one number each."""

    horizon = 30
    action_space = Discrete(3)

    def reset(self, key: jax.Array) -> Rail:
        cart, flag = jax.random.choice(key, 21, (2,), replace=False)
        return Rail(cart, jnp.int32(0), flag)

    def step(self, state: Rail, action: jax.Array) -> Rail:
        speed = jnp.clip(state.speed + action - 1, -3, 3)
        return state._replace(cart=jnp.clip(state.cart + speed, 0, 20), speed=speed)

    def success(self, state: Rail) -> jax.Array:
        return (state.cart == state.flag) & (state.speed == 0)


def test_numbers_of_like_bounds_are_compared():
    vocabulary = automatic_vocabulary(OnARail())
    weights, functions = weights_of(vocabulary), module_of(vocabulary)
    assert not [name for name in weights if "speed" in name and ("_is_" in name or "_less_" in name)]
    assert weights["cart_is_flag"] > 0.5 and weights["cart_less_flag"] > 0.5
    near, far = (Rail(jnp.int32(x), jnp.int32(1), jnp.int32(7)) for x in (7, 3))
    assert float(functions["cart_is_flag"](near)[0]) == 1.0 and float(functions["cart_is_flag"](far)[0]) == 0.0
    assert float(functions["cart_less_flag"](far)[0]) < 0.0 == float(functions["cart_less_flag"](near)[0])
    assert float(functions["cart_to_flag_potential"](far, 0, near)) > 0.0


def test_a_further_set_of_states_adds_its_own_thresholds():
    """Random play is told from the expert by its speed, a policy that falls by its height."""
    rng = np.random.default_rng(0)
    n = 512
    expert = np.arange(n) < n // 2
    height = rng.uniform(0.4, 0.6, n).astype(np.float32)
    speed = np.where(expert, 1.0, 0.0).astype(np.float32) + rng.normal(size=n).astype(np.float32) * 0.1
    names = ("height", "speed")
    fragments = [
        Fragment(name=name, kind="feature", size=1, source=f"def {name}(state):\n    return state['{name}'][None]")
        for name in names
    ]

    def played(height, speed):
        views = {"height": height, "speed": speed}
        return labelled(views, rng.uniform(-1, 1, (n, 2)).astype(np.float32), views, expert)

    first = contrast_vocabulary(Vocabulary(fragments=tuple(fragments)), played(height, speed))
    assert not [f for f in first.fragments if f.name.startswith("height_")]
    fallen = np.where(expert, height, 0.1 + height / 10).astype(np.float32)
    more = with_more_contrasts(first, played(fallen, speed + 0.5 * ~expert)).fragments[len(first.fragments) :]
    assert more[0].name == "height_0_above" and "100% of the expert's states, 0% of others" in more[0].doc
    added = [f.name for f in more if f.name.startswith("speed_")]
    assert added and not {*added} & {f.name for f in first.fragments}, "another threshold has another name"


def test_clocks_and_copies_of_a_real_action_are_no_contrast():
    rng = np.random.default_rng(0)
    steps, actions = np.arange(1024, dtype=np.float32), rng.uniform(-1, 1, (1024, 2)).astype(np.float32)
    place, pushed = rng.normal(size=1024).astype(np.float32), rng.normal(size=1024).astype(np.float32)
    views = {"clock": steps * 0.001, "last": np.zeros((1024, 2), np.float32), "place": place, "fixed": place}
    next_views = {"clock": (steps + 1) * 0.001, "last": 0.5 * actions + 0.1, "place": pushed, "fixed": place}
    expert = (steps < 500) & (actions[:, 0] > 0) | (pushed + place > 0.5)
    names = {"clock": 1, "last": 2, "place": 1, "fixed": 1}
    fragments = [
        Fragment(
            name=name, kind="feature", size=size, source=f"def {name}(state):\n    return jnp.ravel(state['{name}'])"
        )
        for name, size in names.items()
    ]
    played = labelled(views, actions, next_views, expert)
    found = {
        fragment.name for fragment in contrast_vocabulary(Vocabulary(fragments=tuple(fragments)), played).fragments
    }
    assert {name.split("_")[0] for name in found - set(names)} == {"place", "fixed", "everywhere"}
