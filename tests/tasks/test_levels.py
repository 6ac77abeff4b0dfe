"""BabyAI levels as tasks: start states, steps, rewards, experts and words."""

from __future__ import annotations

from collections import Counter
from itertools import islice

import jax
import numpy as np
import pytest

from jaxreward.errors import InvalidSetting, UnknownName, UserError
from jaxreward.tasks import OPEN_NAMES, document_state, has_real_actions, make_task, make_task_of, options_of
from jaxreward.tasks.levels import bank as banks
from jaxreward.tasks.levels import codes
from jaxreward.tasks.levels.catalogue import LEVELS
from jaxreward.tasks.levels.expert import expert_actions
from jaxreward.tasks.levels.mission import clause, mission_array, mission_sentence
from jaxreward.tasks.levels.rooms import Rooms
from tests.compilation import jit
from tests.tasks.levels_played import at, level, play, starts

FAST = ("GoToObjS4", "PickupDist", "OpenTwoDoors", "OpenDoorLoc", "PlaceBetween", "OpenMatchingDoor", "SortColors")
"""Levels with small grids, one of every verb at least."""


# ---- tasks


def test_twenty_levels_are_tasks_by_name():
    assert len(LEVELS) == 20 and sum(not x.minigrid for x in LEVELS.values()) == 3
    assert "babyai/<level>" in OPEN_NAMES
    for name, entry in LEVELS.items():
        task = level(name)
        assert (task.name, task.horizon, task.action_space.n) == (f"babyai/{name}", 100, 7)
        assert not has_real_actions(task.name)
        known = options_of(task)
        assert list(known) == ["horizon", "starts", "seed", "held_out"]
        assert options_of(make_task(task.name, **known)) == known
        assert f"uint8 ({entry.height}, {entry.width}, 3)" in document_state(task)
        view = jax.eval_shape(lambda task=task: task.view(task.reset(jax.random.key(0))))
        (size,) = jax.eval_shape(task.default_observation, view).shape
        assert 200 < size <= 512
        assert str(entry.height) in task.description


@pytest.mark.parametrize(
    ("name", "nearest"), [("GoToRedBal", "GoToRedBall"), ("OpenTwoDoor", "OpenTwoDoors"), ("sortcolors", "SortColors")]
)
def test_an_unknown_level_names_the_nearest(name, nearest):
    with pytest.raises(UnknownName) as error:
        make_task(f"babyai/{name}")
    assert (error.value.kind, error.value.nearest) == ("level", nearest)


@pytest.mark.parametrize(
    ("argument", "said"),
    [
        ("starts=0", "starts must be from 1 to 100000, not 0"), ("seed=-1", "seed must be from 0"),
        ("horizon=0", "horizon must be at least 1"), ("held_out=2", "true or false"), ("size=3", "no option 'size'"),
    ],
)  # fmt: skip
def test_options_are_checked(argument, said):
    with pytest.raises(UserError) as error:
        make_task_of("babyai/GoToObj", (argument,))
    assert said in str(error.value)
    with pytest.raises(InvalidSetting):
        level("GoToObj", held_out="yes")


# ---- start states


@pytest.mark.parametrize("name", ["GoToObjS4", "OpenRedDoor", "SortColors"])
def test_held_out_levels_are_in_no_other_bank(name):
    def seen(seed: int, held_out: bool) -> set[bytes]:
        states = starts(name, starts=40, seed=seed, held_out=held_out)
        keys = [s.grid.tobytes() + s.start.tobytes() + s.mission.tobytes() for s in states]
        assert len(keys) == len({*keys})
        return {*keys}

    train, other, held = seen(0, False), seen(1, False), seen(0, True)
    assert train and held and not held & (train | other)
    assert seen(0, False) == train


def test_banks_are_the_same_for_the_same_seed_and_others_for_others():
    first, again = level("PickupLoc").bank(), banks.bank_of.__wrapped__("PickupLoc", 8, 0, False)
    jax.tree.map(np.testing.assert_array_equal, first, again)
    assert (first.grid != level("PickupLoc", seed=1).bank().grid).any()


def test_a_small_level_has_the_start_states_that_there_are():
    assert 40 < len(level("OpenRedDoor", starts=5000).bank().step_num) < 200


def test_an_episode_begins_with_a_start_state_of_the_bank():
    task = level("GoToObjS4")
    states = jit(jax.vmap(task.reset))(jax.random.split(jax.random.key(0), 64))
    drawn = Counter(x.tobytes() for x in np.asarray(states.start))
    assert set(drawn) == {x.tobytes() for x in task.bank().start} and max(drawn.values()) < 32


@pytest.mark.parametrize("name", LEVELS)
def test_start_states_are_sound(name):
    for state in islice(banks.start_states(name, 5), 5):
        kinds, ids = state.grid[:, :, 0], state.ids
        assert ((kinds >= codes.DOOR) == (ids > 0)).all()
        assert {*kinds[ids > 0].tolist()} <= {*LEVELS[name].kinds}
        assert kinds[tuple(state.position)] == codes.EMPTY and not state.carried.any()
        assert (kinds[0] == codes.WALL).all() and (kinds[:, -1] == codes.WALL).all()
        named = [k for k in range(2) if state.mission[k, 0] != codes.ANY]
        assert len(named) == LEVELS[name].clauses and {*state.mission[named, 0]} == {LEVELS[name].verb}
        for k in named:
            found = np.flatnonzero(state.targets[k])
            assert len(found) and {*found.tolist()} <= {*ids.ravel().tolist()} - {0}
        assert mission_sentence(state.mission)


# ---- missions


@pytest.mark.parametrize(
    ("clauses", "sentence"),
    [
        ([clause(codes.GO_TO, codes.BALL, 0)], "go to the red ball"),
        ([clause(codes.PICK, codes.ANY, 5)], "pick up the grey object"),
        ([clause(codes.PICK, codes.KEY, codes.ANY, codes.BEHIND)], "pick up the key behind you"),
        ([clause(codes.OPEN, codes.DOOR, 2), clause(codes.OPEN, codes.DOOR, 1)],
         "open the blue door, then open the green door"),
        ([clause(codes.PLACE_BETWEEN, codes.BOX, 4)], "put the yellow box between the other two objects"),
        ([clause(codes.OPEN_MATCHING, codes.DOOR)], "open the door matching the key"),
        ([clause(codes.PUT_IN_ROOM, codes.BALL, 0, 1), clause(codes.PUT_IN_ROOM, codes.BALL, 2, 0)],
         "put the red ball in the right room and put the blue ball in the left room"),
    ],
)  # fmt: skip
def test_a_mission_is_a_sentence(clauses, sentence):
    assert mission_sentence(mission_array(clauses)) == sentence


@pytest.mark.parametrize("rows", [[], [(9, 6, 0, -1)], [(0, 6, 6, -1)], [(0, 99, 0, -1)], [(0, 6, 0, 4)]])
def test_what_is_no_mission_is_refused(rows):
    with pytest.raises(ValueError):
        mission_sentence(mission_array(rows))


# ---- steps


def room(*things: tuple[int, int, int, int], size: int = 6) -> Rooms:
    """One room with (kind, colour, row, column) in it, the agent at (1, 1) and looking right."""
    rooms = Rooms(np.random.default_rng(0), size)
    for kind, colour, row, column in things:
        rooms._new((row, column), kind, colour)
    rooms.position, rooms.direction = (1, 1), 0
    return rooms


def test_two_doors_count_in_order_alone():
    """The second door opened first, then the first, is no success; the second opened again after that is."""
    for state in starts("OpenTwoDoors")[:2]:
        swapped = state.replace(mission=state.mission[::-1], targets=state.targets[::-1])
        wrong = expert_actions("OpenTwoDoors", swapped)
        played = play("OpenTwoDoors", state, wrong)
        assert played.ends == 0 and played.states.done[len(wrong) - 1].tolist() == [True, False]
        more = expert_actions("OpenTwoDoors", at(played.states, len(wrong) - 1))
        assert play("OpenTwoDoors", state, wrong + more).ends == len(wrong + more)


def test_what_is_sorted_must_lie_there_at_once():
    state = starts("SortColors")[0]
    actions = expert_actions("SortColors", state)
    played = play("SortColors", state, actions)
    assert played.ends == len(actions)
    taken_back = play("SortColors", state, [*actions, codes.PICK_UP])
    assert taken_back.states.done[len(actions)].sum() == 1 and not taken_back.states.solved[len(actions)]


def test_of_the_doors_the_one_of_the_key_counts():
    for state in starts("OpenMatchingDoor")[:3]:
        (colour,) = {int(c) for k, c, _ in state.grid.reshape(-1, 3) if k == codes.KEY}
        (door,) = np.flatnonzero(state.targets[0])
        assert state.grid[state.ids == door].tolist() == [[codes.DOOR, colour, codes.CLOSED]]
        other = np.zeros_like(state.targets)
        other[0, next(i for i in state.ids[state.grid[:, :, 0] == codes.DOOR] if i != door)] = True
        assert (
            play("OpenMatchingDoor", state, expert_actions("OpenMatchingDoor", state.replace(targets=other))).ends == 0
        )


# ---- experts and rewards


def noisy(name: str, state, rng: np.random.Generator, noise: float) -> list[int]:
    """The expert from where a few random actions lead."""
    actions = [int(a) for a in rng.integers(0, 5, rng.integers(1, 12))] if noise else []
    if actions:
        state = at(play(name, state, actions).states, len(actions) - 1)
    return actions + expert_actions(name, state)


@pytest.mark.parametrize("name", [*FAST, *(pytest.param(x, marks=pytest.mark.slow) for x in LEVELS if x not in FAST)])
def test_experts_succeed_and_are_paid_once(name):
    rng = np.random.default_rng(0)
    for noise in (0, 1):
        for state in starts(name):
            actions = noisy(name, state, rng, noise)
            played = play(name, state, actions)
            assert 0 < played.ends <= len(actions) and (noise or played.ends == len(actions))
            paid = played.rewards[: played.ends]
            assert paid[-1] == 1.0 and not paid[:-1].any()


@pytest.mark.parametrize("name", FAST)
def test_the_sparse_reward_is_the_success_of_random_play(name):
    rng = np.random.default_rng(1)
    for state in starts(name):
        played = play(name, state, rng.choice((0, 1, 2, 2, 2, 3, 4, 5), 100))
        end = played.ends or 100
        np.testing.assert_array_equal(played.rewards[:end], played.states.solved[:end])


def test_the_expert_moves_what_bars_its_way():
    """The target stands in a corner behind two others."""
    rooms = room((codes.BALL, 0, 4, 4), (codes.BOX, 1, 3, 4), (codes.KEY, 2, 4, 3), size=7)
    rooms.grid[1:6, 5] = rooms.grid[5, 1:6] = codes.WALL_CELL
    targets = np.zeros((2, codes.THINGS), bool)
    targets[0, 1] = True
    mission = mission_array([clause(codes.PICK, codes.BALL, 0)])
    state = banks.start_state(rooms.grid, rooms.ids, rooms.position, 0, mission, targets)
    actions = expert_actions("PickupDist", state)
    played = play("PickupDist", state, actions)
    assert played.ends == len(actions) and Counter(actions)[codes.PICK_UP] == 2


def test_the_expert_gives_up_on_what_is_gone():
    state = starts("GoToObjS4")[0]
    assert expert_actions("GoToObjS4", state.replace(ids=state.ids * 0)) == []


# ---- views and pictures


def test_programs_see_the_agent_and_not_what_is_hidden():
    state = starts("PickupDist")[0]
    played = play("PickupDist", state, expert_actions("PickupDist", state))
    view = at(played.views, played.ends - 1)
    row, column = played.states.position[played.ends - 1]
    assert view.grid[row, column].tolist() == [codes.AGENT, 0, int(played.states.direction[played.ends - 1])]
    assert (view.grid[:, :, 0] == codes.AGENT).sum() == 1
    assert view.carrying.tolist() == played.states.carried[played.ends - 1, :3].tolist() and view.carrying[0] != 0
    assert {*vars(view)} == {"grid", "mission", "carrying", "start"}


def test_the_observation_turns_with_the_agent():
    """What is ahead is in the middle of the window's upper half, and the nearest target ahead and to the right."""
    rooms = room((codes.BALL, 0, 1, 3), (codes.BOX, 0, 3, 1), size=7)
    targets = np.zeros((2, codes.THINGS), bool)
    task = level("PickupDist")
    observe = jit(lambda state: task.default_observation(task.view(state)))
    mission = mission_array([clause(codes.PICK, codes.BALL)])
    for direction, offset in ((0, (2, 0)), (1, (0, -2)), (2, (-2, 0)), (3, (0, 2))):
        state = banks.start_state(rooms.grid, rooms.ids, (1, 1), direction, mission, targets)
        seen = np.asarray(observe(state))
        window, nearest = seen[: 3 * 81].reshape(3, 9, 9), seen[3 * 81 : 3 * 81 + 3]
        assert np.argwhere(window[2]).tolist() == [[4 - offset[0], 4 + offset[1]]]
        np.testing.assert_allclose(nearest, [1.0, offset[0] / 8, offset[1] / 8])


def test_a_picture_has_every_cell_and_what_is_carried():
    state = starts("PickupDist")[0]
    task, after = level("PickupDist"), play("PickupDist", state, expert_actions("PickupDist", state))
    first, last = task.draw(state), task.draw(at(after.states, after.ends - 1))
    assert first.shape == last.shape == (24 * 8, 24 * 7, 3) and first.dtype == np.uint8
    assert (first[24 * 7 :] == 255).all() and (last[24 * 7 :] != 255).any()
    assert (first != last).any()
