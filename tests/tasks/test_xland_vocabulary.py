"""The vocabulary: every fragment is well formed, has its declared size, and means what it says."""

from __future__ import annotations

import ast
import itertools
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import xminigrid

from jaxreward.tasks.xland_vocabulary import OBJECT_TILES, object_name, xland_vocabulary
from tests.compilation import jit

pytestmark = pytest.mark.usefixtures("unoptimised")
SIZE = 7
PYRAMID, SQUARE, BALL = (5, 5), (4, 2), (3, 1)
VOCABULARY = xland_vocabulary([PYRAMID, SQUARE], SIZE, SIZE, 80)


class Agent(NamedTuple):
    position: jax.Array
    direction: jax.Array
    pocket: jax.Array


class State(NamedTuple):
    grid: jax.Array
    agent: Agent
    step_num: jax.Array


def source_of(vocabulary) -> str:
    parts = ["import jax", "import jax.numpy as jnp"]
    parts += [f"{name} = {value}" for name, value in vocabulary.constants.items()]
    parts += [*vocabulary.helpers.values(), *(f.source for f in vocabulary.fragments)]
    return "\n".join(parts)


def functions_of(vocabulary) -> dict:
    namespace: dict = {}
    exec(source_of(vocabulary), namespace)  # our own text, not a candidate's
    return namespace


FUNCTIONS = functions_of(VOCABULARY)


def scene(position, direction=0, pocket=(0, 0), things=None, step=0) -> State:
    """A walled room; `things` maps (row, col) to (tile, colour)."""
    grid = np.zeros((SIZE, SIZE, 2), np.uint8)
    grid[:, :] = (1, 7)
    grid[[0, -1], :] = grid[:, [0, -1]] = (2, 6)
    for cell, thing in (things or {}).items():
        grid[cell] = thing
    agent = Agent(jnp.array(position, jnp.int32), jnp.int32(direction), jnp.array(pocket, jnp.uint8))
    return State(jnp.array(grid), agent, jnp.int32(step))


def real_states(count=3, environment="XLand-MiniGrid-R1-9x9"):
    """States of a random walk, with the fields that programs see."""
    env, params = xminigrid.make(environment)
    key = jax.random.key(0)
    timestep = jit(lambda k: env.reset(params, k))(key)
    step = jit(lambda t, a: env.step(params, t, a))
    states = []
    for action in np.random.default_rng(0).integers(0, 6, 5 * count):
        s = timestep.state
        states.append(State(s.grid, Agent(s.agent.position, s.agent.direction, s.agent.pocket), s.step_num))
        timestep = step(timestep, jnp.int32(action))
    return states[:: len(states) // count]


def tiles_of(state) -> list[tuple[int, int]]:
    return [(int(t), int(c)) for t, c in np.unique(np.asarray(state.grid).reshape(-1, 2), axis=0)]


@pytest.mark.slow
@pytest.mark.parametrize("environment", ["XLand-MiniGrid-R1-9x9", "XLand-MiniGrid-R4-13x13"])
def test_every_fragment_is_finite_on_real_states(environment):
    states = real_states(environment=environment)
    height, width, _ = states[0].grid.shape
    objects = [t for t in tiles_of(states[0]) if t[0] in OBJECT_TILES][:1] + [(12, 11)]
    vocabulary = xland_vocabulary(objects, height, width, 80)
    functions = functions_of(vocabulary)

    @jit
    def evaluate(state, action, next_state):
        return {
            f.name: functions[f.name](state) if f.kind == "feature" else functions[f.name](state, action, next_state)
            for f in vocabulary.fragments
        }

    for state, next_state in itertools.pairwise(states):
        values = evaluate(state, jnp.int32(3), next_state)
        for fragment in vocabulary.fragments:
            value = values[fragment.name]
            assert value.shape == ((fragment.size,) if fragment.kind == "feature" else ()), fragment.name
            assert value.dtype == jnp.float32, fragment.name
            assert np.isfinite(value).all(), fragment.name
            assert np.abs(value).max() <= (4.0 if fragment.kind == "feature" else 2 * height), fragment.name


def test_the_vocabulary_has_40_to_70_features_and_terms_without_duplicates():
    kinds = [f.kind for f in VOCABULARY.fragments]
    assert 40 <= kinds.count("feature") <= 70 and 40 <= kinds.count("term") <= 70
    names = [f.name for f in VOCABULARY.fragments]
    assert len(set(names)) == len(names)
    without = xland_vocabulary([PYRAMID, SQUARE], SIZE, SIZE, 80, doors=False)
    assert not any("door" in f.name for f in without.fragments)


def test_the_vocabulary_prefers_no_object():
    """Exchanging two objects exchanges their fragments: none is preferred."""
    one, other = (xland_vocabulary(things, 9, 9, 80) for things in ([PYRAMID, SQUARE], [SQUARE, PYRAMID]))
    pair = {"gap_", "_to_", "_lies_beside_", "_beside_"}
    plain = {f.name: f.source for f in one.fragments if not any(p in f.name for p in pair)}
    assert all({f.name: f.source for f in other.fragments}[name] == source for name, source in plain.items())
    assert object_name((5, 3)) == "blue_pyramid"
    repeated = xland_vocabulary([PYRAMID, PYRAMID, (1, 7), (2, 6)], 9, 9, 80)
    assert {t for f in repeated.fragments for t in f.tags if t.startswith("about:")} == {"about:yellow_pyramid"}


def test_sources_are_self_contained_and_plain():
    tree = ast.parse(source_of(VOCABULARY))
    assert not [n for n in ast.walk(tree) if isinstance(n, ast.While | ast.Try | ast.ClassDef | ast.With | ast.Global)]
    defined = {n.name for n in tree.body if isinstance(n, ast.FunctionDef)} | set(VOCABULARY.constants)
    for fragment in VOCABULARY.fragments:
        found = [n for n in ast.walk(ast.parse(fragment.source)) if isinstance(n, ast.Name)]
        local = {n.id for n in found if isinstance(n.ctx, ast.Store)}
        assert {n.id for n in found} - local <= defined | {"state", "action", "next_state", "jnp", "jax"}, fragment.name
        assert fragment.doc in fragment.source, fragment.name
        assert max(map(len, fragment.source.splitlines())) <= 120, fragment.name


def test_grids_wider_than_32_bits_are_refused():
    with pytest.raises(ValueError, match="32 bits"):
        xland_vocabulary([PYRAMID], 40, 40, 80)


UP, RIGHT, DOWN, LEFT = range(4)
LONE = {(3, 4): PYRAMID}
BOTH = {(3, 4): PYRAMID, (5, 1): SQUARE}
WALLED = {(2, 3): (2, 6), (3, 3): (2, 6), (4, 3): (2, 6), **LONE}


@pytest.mark.parametrize(
    ("name", "state", "expected"),
    [
        ("agent_position", scene((2, 4)), [2 / 6, 4 / 6]),
        ("agent_facing", scene((2, 2), DOWN), [0, 0, 1, 0]),
        ("agent_heading", scene((2, 2), LEFT), [0, -1]),
        ("hands_full", scene((2, 2), pocket=PYRAMID), [1]),
        ("time_passed", scene((2, 2), step=20), [0.25]),
        ("front_open", scene((1, 2), UP), [0]),
        ("front_wall", scene((1, 2), UP), [1]),
        ("front_free", scene((3, 3), RIGHT, things=LONE), [0]),
        ("open_sides", scene((1, 1)), [0, 1, 1, 0]),
        ("open_sides_turned", scene((1, 1), RIGHT), [1, 1, 0, 0]),
        ("yellow_pyramid_offset", scene((5, 1), things=LONE), [-2 / 6, 3 / 6]),
        ("yellow_pyramid_offset", scene((5, 1), pocket=PYRAMID), [0, 0]),
        ("yellow_pyramid_offset_near", scene((5, 1), things=LONE), [-2 / 3, 1]),
        ("yellow_pyramid_side", scene((5, 1), things=LONE), [-1, 1]),
        ("yellow_pyramid_ahead_right", scene((5, 1), UP, things=LONE), [2 / 6, 3 / 6]),
        ("yellow_pyramid_ahead_right", scene((5, 1), RIGHT, things=LONE), [3 / 6, -2 / 6]),
        ("yellow_pyramid_turn", scene((5, 1), DOWN, things=LONE), [-1, -1]),
        ("yellow_pyramid_turn", scene((5, 1), LEFT, things=LONE), [-1, 1]),
        ("yellow_pyramid_distance", scene((5, 1), things=LONE), [5 / 6]),
        ("yellow_pyramid_adjacent", scene((3, 3), things=LONE), [1]),
        ("yellow_pyramid_adjacent", scene((2, 3), things=LONE), [0]),
        ("yellow_pyramid_in_front", scene((3, 3), RIGHT, things=LONE), [1]),
        ("yellow_pyramid_in_front", scene((3, 3), LEFT, things=LONE), [0]),
        ("yellow_pyramid_held", scene((3, 3), pocket=PYRAMID), [1]),
        ("yellow_pyramid_held", scene((3, 3), pocket=(5, 4)), [0]),
        ("yellow_pyramid_position", scene((1, 1), things=LONE), [3 / 6, 4 / 6]),
        ("yellow_pyramid_present", scene((1, 1)), [0]),
        ("yellow_pyramid_front_free_beside", scene((3, 2), RIGHT, things=LONE), [1]),
        ("yellow_pyramid_front_free_beside", scene((3, 3), RIGHT, things=LONE), [0]),
        ("yellow_pyramid_free_side", scene((3, 1), things=LONE), [0, 2 / 6]),
        ("yellow_pyramid_free_side", scene((3, 1)), [0, 0]),
        ("yellow_pyramid_walk", scene((3, 2), things=LONE), [2 / 6]),
        ("yellow_pyramid_walk", scene((3, 2), things=WALLED), [6 / 6]),
        ("yellow_pyramid_way", scene((3, 2), things=LONE), [0, 1, 0, 0]),
        ("yellow_pyramid_way", scene((3, 2), things=WALLED), [1, 0, 1, 0]),
        ("yellow_pyramid_way_turned", scene((3, 2), DOWN, things=LONE), [0, 0, 0, 1]),
        ("yellow_pyramid_way", scene((3, 2)), [0, 0, 0, 0]),
        ("yellow_pyramid_to_green_square", scene((1, 1), things=BOTH), [2 / 6, -3 / 6]),
        ("yellow_pyramid_to_green_square", scene((1, 1), pocket=PYRAMID, things={(5, 1): SQUARE}), [4 / 6, 0]),
        ("yellow_pyramid_beside_green_square", scene((1, 1), things={(3, 4): PYRAMID, (3, 5): SQUARE}), [1]),
        ("yellow_pyramid_beside_green_square", scene((1, 1), things=BOTH), [0]),
        ("door_offset", scene((1, 1), things={(3, 0): (9, 1)}), [2 / 6, -1 / 6]),
        ("front_closed_door", scene((3, 1), LEFT, things={(3, 0): (9, 1)}), [1]),
    ],
)  # fmt: skip
def test_every_feature_means_what_it_says(name, state, expected):
    np.testing.assert_allclose(FUNCTIONS[name](state), expected, atol=1e-6)


def test_local_views_are_centred_and_turned():
    state = scene((3, 3), RIGHT, things={(3, 4): PYRAMID, (2, 3): (2, 6)})
    mask = np.asarray(FUNCTIONS["yellow_pyramid_mask_5x5"](state)).reshape(5, 5)
    assert mask[2, 3] == 1 and mask.sum() == 1
    tiles = np.asarray(FUNCTIONS["tiles_7x7"](scene((1, 1)))).reshape(7, 7)
    assert tiles[3, 3] * 12 == pytest.approx(1) and tiles[2, 3] * 12 == pytest.approx(2) and tiles[0, 0] == 0
    for direction, (row, column) in enumerate([(1, 2), (2, 1), (3, 2), (2, 3)]):  # the wall above: where it appears
        state = scene((3, 3), direction, things={(2, 3): (2, 6)})
        turned = np.asarray(FUNCTIONS["blocked_5x5_turned"](state)).reshape(5, 5)
        assert turned[row, column] == 1 and turned[1:4, 1:4].sum() == 1


FORWARD, TURN_RIGHT, TURN_LEFT, PICK_UP, PUT_DOWN, TOGGLE = range(6)
FREE, TAKEN = scene((3, 3), RIGHT, things=BOTH), scene((3, 3), RIGHT, PYRAMID, {(5, 1): SQUARE})
BALLED = scene((3, 3), RIGHT, BALL, {(5, 1): SQUARE})
FAR, NEAR = scene((3, 1), RIGHT, things=BOTH), scene((3, 2), RIGHT, things=BOTH)
CARRY_FAR = scene((3, 1), DOWN, PYRAMID, {(5, 1): SQUARE})
CARRY_NEAR = scene((4, 1), DOWN, PYRAMID, {(5, 1): SQUARE})
CARRY_SIDE = scene((4, 2), LEFT, PYRAMID, {(5, 1): SQUARE})
PLACED = scene((4, 2), LEFT, things={(4, 1): PYRAMID, (5, 1): SQUARE})
DROPPED = scene((3, 3), UP, things={(2, 3): PYRAMID, (5, 1): SQUARE})


@pytest.mark.parametrize(
    ("name", "state", "action", "next_state", "expected"),
    [
        ("time_cost", FAR, FORWARD, NEAR, -1),
        ("bump", FAR, FORWARD, FAR, -1),
        ("bump", FAR, FORWARD, NEAR, 0),
        ("bump", FAR, TURN_LEFT, FAR, 0),
        ("turning", FAR, TURN_LEFT, FAR, -1),
        ("vain_pick_up", FAR, PICK_UP, FAR, -1),
        ("vain_pick_up", FREE, PICK_UP, TAKEN, 0),
        ("vain_put_down", FAR, PUT_DOWN, FAR, -1),
        ("vain_put_down", CARRY_SIDE, PUT_DOWN, PLACED, 0),
        ("put_down_anything", CARRY_SIDE, PUT_DOWN, PLACED, -1),
        ("put_down_alone", CARRY_SIDE, PUT_DOWN, PLACED, 0),
        ("put_down_alone", scene((3, 3), UP, PYRAMID), PUT_DOWN, DROPPED, -1),
        ("picked_up_anything", FREE, PICK_UP, TAKEN, 1),
        ("picked_up_yellow_pyramid", FREE, PICK_UP, TAKEN, 1),
        ("picked_up_yellow_pyramid", FREE, PICK_UP, BALLED, 1),  # a rule made a ball of it
        ("picked_up_green_square", FREE, PICK_UP, TAKEN, 0),
        ("got_yellow_pyramid", FREE, PICK_UP, TAKEN, 1),
        ("got_yellow_pyramid", FREE, PICK_UP, BALLED, 0),
        ("got_yellow_pyramid", TAKEN, FORWARD, TAKEN, 0),
        ("put_down_yellow_pyramid", CARRY_SIDE, PUT_DOWN, PLACED, -1),
        ("holding_yellow_pyramid", FREE, PICK_UP, TAKEN, 1),
        ("holding_yellow_pyramid_potential", FREE, PICK_UP, TAKEN, 0.99),
        ("holding_yellow_pyramid_potential", CARRY_SIDE, PUT_DOWN, PLACED, -1),
        ("near_yellow_pyramid_potential", FAR, FORWARD, NEAR, 3 - 0.99 * 2),
        ("near_yellow_pyramid_potential", NEAR, FORWARD, FAR, 2 - 0.99 * 3),
        ("walk_to_yellow_pyramid_potential", FAR, FORWARD, NEAR, 3 - 0.99 * 2),
        ("closer_to_yellow_pyramid_empty_handed", FAR, FORWARD, NEAR, 1),
        ("closer_to_yellow_pyramid_empty_handed", NEAR, FORWARD, FAR, -1),
        ("closer_to_yellow_pyramid_empty_handed", FREE, PICK_UP, TAKEN, 0),
        ("closer_to_green_square_empty_handed", CARRY_FAR, FORWARD, CARRY_NEAR, 0),
        ("closer_to_green_square_carrying", CARRY_FAR, FORWARD, CARRY_NEAR, 1),
        ("walk_to_yellow_pyramid_empty_handed", FAR, FORWARD, NEAR, 1),
        ("walk_to_green_square_carrying", CARRY_FAR, FORWARD, CARRY_NEAR, 1),
        ("walk_to_green_square_with_yellow_pyramid", CARRY_FAR, FORWARD, CARRY_NEAR, 1),
        ("closer_to_green_square_with_yellow_pyramid", CARRY_FAR, FORWARD, CARRY_NEAR, 1),
        ("closer_to_yellow_pyramid_with_green_square", CARRY_FAR, FORWARD, CARRY_NEAR, 0),
        ("reached_green_square", CARRY_FAR, FORWARD, CARRY_NEAR, 1),
        ("turned_to_yellow_pyramid", scene((3, 3), UP, things=BOTH), TURN_RIGHT, FREE, 1),
        ("turned_to_yellow_pyramid", FREE, TOGGLE, FREE, 0),
        ("facing_yellow_pyramid", FREE, TOGGLE, FREE, 1),
        ("beside_yellow_pyramid", FREE, TOGGLE, FREE, 1),
        ("put_yellow_pyramid_beside_green_square", CARRY_SIDE, PUT_DOWN, PLACED, 1),
        ("put_yellow_pyramid_beside_green_square", PLACED, PUT_DOWN, PLACED, 0),  # it lay there before
        ("put_yellow_pyramid_beside_green_square", scene((3, 3), UP, PYRAMID, {(5, 1): SQUARE}), PUT_DOWN, DROPPED, 0),
        ("put_yellow_pyramid_away_from_green_square", scene((3, 3), UP, PYRAMID), PUT_DOWN, DROPPED, -1),
        ("put_something_beside_green_square", CARRY_SIDE, PUT_DOWN, PLACED, 1),
        ("put_something_beside_green_square", scene((3, 3), UP, PYRAMID, {(5, 1): SQUARE}), PUT_DOWN, DROPPED, 0),
        ("put_yellow_pyramid_away_from_green_square", CARRY_SIDE, PUT_DOWN, PLACED, 0),
        ("ready_to_put_yellow_pyramid_beside_green_square", CARRY_FAR, FORWARD, CARRY_SIDE, 1),
        ("ready_to_put_yellow_pyramid_beside_green_square", CARRY_FAR, FORWARD, CARRY_NEAR, 0),
        ("gap_yellow_pyramid_green_square_potential", CARRY_FAR, FORWARD, CARRY_NEAR, 2 - 0.99 * 1),
        ("yellow_pyramid_lies_beside_green_square", CARRY_SIDE, PUT_DOWN, PLACED, 1),
        ("opened_door", scene((3, 1), LEFT, things={(3, 0): (9, 1)}), TOGGLE,
         scene((3, 1), LEFT, things={(3, 0): (10, 1)}), 1),
        ("vain_toggle", FREE, TOGGLE, FREE, -1),
    ],
)  # fmt: skip
def test_every_term_means_what_it_says(name, state, action, next_state, expected):
    assert float(FUNCTIONS[name](state, jnp.int32(action), next_state)) == pytest.approx(expected, abs=1e-6)


def test_walking_distance_agrees_with_a_plain_search():
    rng = np.random.default_rng(1)
    walk = jit(lambda state: FUNCTIONS["walk_to"](state, PYRAMID))
    for _ in range(20):
        cells = [(r, c) for r in range(1, SIZE - 1) for c in range(1, SIZE - 1)]
        picked = [cells[i] for i in rng.permutation(len(cells))]
        walls = {cell: (2, 6) for cell in picked[2:10]}
        state = scene(picked[0], things={picked[1]: PYRAMID, **walls})
        frontier, seen, steps = {picked[0]}, {picked[0]}, 0
        while frontier and picked[1] not in frontier:
            around = {(r + a, c + b) for r, c in frontier for a, b in ((0, 1), (1, 0), (0, -1), (-1, 0))}
            frontier = {x for x in around if x in cells and x not in walls and x not in seen}
            seen, steps = seen | frontier, steps + 1
        expected = steps if frontier else int(VOCABULARY.constants["FLOOD"])
        assert int(walk(state)) == expected
