"""Small games: their rules, what programs see, and how they are scored."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxreward as jr
from jaxreward.errors import UserError
from jaxreward.tasks import make_task, measure_of
from jaxreward.tasks.games import flappy, snake
from jaxreward.tasks.games.flappy import FlappyBird
from jaxreward.tasks.games.tiles import draw_board
from jaxreward.tasks.task import metric_names
from tests.compilation import jit
from tests.tasks.cases import evaluate_metric, every_array_has_words, functions_of

pytest.importorskip("jumanji", reason="jumanji is an extra")
pytestmark = pytest.mark.usefixtures("unoptimised")
NAMES = ("flappy-bird", "snake", "tetris")
INTERFACES = Path(__file__).resolve().parents[2] / "interfaces"
RECORD = Path(__file__).with_name("flappy_record.npz")
"""Steps of FlappyBird-v0 of flappy-bird-gymnasium 0.4.0, without lidar; action -1 is a reset."""


@pytest.fixture(scope="module", params=NAMES)
def task(request) -> Any:
    return make_task(request.param)


def played(task: Any, choose: Any, envs: int, steps: int, seed: int = 0) -> Any:
    """States (steps + 1, envs, ...) and actions (steps, envs) of random play that goes on after an end as the game
    does; `choose` makes logits of an action from a view."""

    @jit
    def play(key: jax.Array) -> Any:
        first = jax.vmap(task.reset)(jax.random.split(key, envs))

        def step(states: Any, key: jax.Array) -> Any:
            actions = jax.random.categorical(key, jax.vmap(lambda s: choose(task.view(s)))(states))
            ended = jax.vmap(task.terminated)(states)
            fresh = jax.vmap(task.reset)(jax.random.split(key, envs))
            after = jax.vmap(task.step)(states, actions)
            keep = lambda new, old: jnp.where(jnp.reshape(ended, (-1, *[1] * (new.ndim - 1))), new, old)  # noqa: E731
            return jax.tree.map(keep, fresh, after), (states, actions, after, ended)

        return jax.lax.scan(step, first, jax.random.split(key, steps))[1]

    return jax.device_get(play(jax.random.key(seed)))


def functions_of_task(task: Any) -> dict[str, Any]:
    """The helpers and fragments of its vocabulary."""
    vocabulary = task.vocabulary()
    parts = ["import jax", "import jax.numpy as jnp"]
    parts += [f"{name} = {value}" for name, value in vocabulary.constants.items()]
    texts = (*vocabulary.helpers.values(), *(f.source for f in vocabulary.fragments))
    return functions_of("\n".join([*parts, *texts]))


def helpers_of(task: Any) -> dict[str, Any]:
    """The helpers of its vocabulary, compiled."""
    names = functions_of_task(task)
    return {name: jax.jit(names[name]) for name in task.vocabulary().helpers if name not in ("bell", "occupied")}


# ---- all of them


def test_it_says_what_it_is(task):
    every_array_has_words(task)
    assert metric_names(task) == ("played",)
    measure = measure_of(task)
    assert (measure.rate, measure.higher_is_better, measure.worst) == (False, True, 0.0)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "options"),
    [*((name, {}) for name in NAMES), ("snake", {"size": 22}), ("tetris", {"rows": 4, "columns": 40}),
     ("flappy-bird", {"gap": 25, "horizon": 1})],
)  # fmt: skip
def test_it_has_no_mistake(name, options):
    assert jr.check_task(make_task(name, **options)) == ()


@pytest.mark.parametrize(
    ("name", "option", "value", "said"),
    [
        ("flappy-bird", "gap", 24, "gap must be from 25 to 200 pixels, not 24"),
        ("flappy-bird", "gap", 99.5, "gap must be a whole number"),
        ("snake", "size", 23, "size must be from 4 to 22 cells, not 23"),
        ("tetris", "rows", 40, "a board of 40 by 20 has more than 512 cells: make it smaller"),
        ("tetris", "columns", 3, "columns must be from 4 to 40 cells, not 3"),
        ("tetris", "horizon", 0, "horizon must be at least 1 step"),
    ],
)
def test_options_are_checked(name, option, value, said):
    with pytest.raises(UserError, match=said):
        make_task(name, **{option: value, **({"columns": 20} if option == "rows" else {})})


@pytest.mark.long
@pytest.mark.parametrize(
    ("name", "options"), [("flappy-bird", {}), ("snake", {}), ("tetris", {"rows": 8, "columns": 5})]
)
def test_fragments_have_their_size_and_are_finite(name, options):
    task: Any = make_task(name, **options)
    vocabulary = task.vocabulary()
    functions = functions_of_task(task)
    states, actions, after, ended = played(task, lambda view: jnp.zeros(task.action_space.n), 16, 60)
    going = ~ended.reshape(-1)
    flat = lambda tree: jax.tree.map(lambda x: x.reshape(-1, *x.shape[2:])[going], tree)  # noqa: E731

    @jit
    @jax.vmap
    def evaluate(state: Any, action: jax.Array, after: Any) -> Any:
        views = task.view(state), action, task.view(after)
        values = {
            f.name: functions[f.name](views[0]) if f.kind == "feature" else functions[f.name](*views)
            for f in vocabulary.fragments
        }
        return task.sparse_reward(*views), values

    paid, values = jax.device_get(evaluate(flat(states), flat(actions), flat(after)))
    assert len(np.unique(paid)) > 1
    for fragment in vocabulary.fragments:
        value, feature = values[fragment.name], fragment.kind == "feature"
        assert value.dtype == np.float32, fragment.name
        assert value.shape == (len(paid), *((fragment.size,) if feature else ())), fragment.name
        assert np.isfinite(value).all(), fragment.name
        assert np.abs(value).max() * (1.0 if feature else fragment.scales[0]) <= 20.0, fragment.name
        if not feature:
            assert not np.allclose(value, paid), f"{fragment.name} is the sparse reward"


@pytest.mark.long
def test_the_dense_reward_is_the_experts(task):
    names = functions_of((INTERFACES / task.name.replace("-", "_") / "expert.py").read_text())
    states, actions, after, _ = played(task, lambda view: jnp.zeros(task.action_space.n), 8, 30)

    @jit
    @jax.vmap
    @jax.vmap
    def both(state: Any, action: jax.Array, after: Any) -> Any:
        views = task.view(state), action, task.view(after)
        return task.dense_reward(*views), names["compute_reward"](*views)[0]

    own, expert = both(states, actions, after)
    np.testing.assert_allclose(own, expert, atol=1e-5)
    assert len(np.unique(own)) > 3


@pytest.mark.long
def test_pictures_have_one_size_and_change(task):
    states, *_ = played(task, lambda view: jnp.zeros(task.action_space.n), 1, 12)
    pictures = [task.draw(jax.tree.map(lambda x, t=t: x[t, 0], states)) for t in (0, 5, 11)]
    assert {p.shape for p in pictures} == {pictures[0].shape} and pictures[0].dtype == np.uint8
    assert len(np.unique(pictures[0].reshape(-1, 3), axis=0)) >= 3 and (pictures[0] != pictures[1]).any()


def test_a_board_is_drawn_in_tiles():
    picture = draw_board(np.array([[0, 1], [2, 0]]), {0: (9, 9, 9), 1: (200, 0, 0), 2: (0, 100, 0)}, 4)
    assert picture.shape == (8, 8, 3)
    assert (picture[:4, :4] == 9).all() and (picture[1:3, 5:7] == (200, 0, 0)).all()
    assert (picture[0, 4:] == (100, 0, 0)).all() and (picture[7, :4] == (0, 50, 0)).all(), "borders are darker"


# ---- Flappy Bird


def test_the_bird_flies_as_in_the_published_game():
    """Also the reward and the raw observation of its environment; gaps are those that it drew."""
    task, record = FlappyBird(), np.load(RECORD)
    begins = np.flatnonzero(record["action"] < 0)
    assert len(record["y"]) > 900 and record["reward"].min() == -1.0 and -0.5 in record["reward"]

    def step(state: Any, seen: Any) -> Any:
        action, gap_y, fresh = seen
        after = task.step(state, action)
        dead = task._crashed(after.y, after.pipe_x, gap_y)
        after = after._replace(gap_y=gap_y, dead=dead, velocity=jnp.where(dead, 0.0, after.velocity))
        first = task.reset(jax.random.key(0))._replace(gap_y=gap_y)
        after = jax.tree.map(lambda a, b: jnp.where(fresh, a, b), first._replace(key=after.key), after)
        paid = task.sparse_reward(task.view(state), action, task.view(after))
        return after, (after, paid, task.view(after))

    shown = (record["action"], record["gap_y"], record["action"] < 0)
    first = task.reset(jax.random.key(0))
    _, (states, paid, views) = jit(lambda: jax.lax.scan(step, first, shown))()
    for name in ("y", "velocity", "rotation", "pipe_x", "score", "dead"):
        np.testing.assert_allclose(getattr(states, name), record[name], atol=1e-3, err_msg=name)
    later = np.setdiff1d(np.arange(len(paid)), begins)
    np.testing.assert_allclose(paid[later], record["reward"][later], atol=1e-6)
    left = np.sort(np.where(record["pipe_x"] > flappy.WIDTH, flappy.WIDTH, record["pipe_x"]), axis=1)
    np.testing.assert_allclose(
        np.stack([views.last_pipe_x, views.next_pipe_x, views.next_next_pipe_x], 1), left, atol=1e-3
    )


def test_gaps_are_drawn_from_the_published_places():
    task = FlappyBird(gap=120)
    gaps = np.asarray(jit(jax.vmap(task.reset))(jax.random.split(jax.random.key(0), 400)).gap_y)
    assert set(np.unique(gaps).tolist()) == {80.0 + place for place in flappy.GAPS}
    first = jax.device_get(task.view(task.reset(jax.random.key(1))))
    assert first.last_bottom_pipe_y - first.last_top_pipe_y == 120.0
    assert (first.next_pipe_x, first.next_top_pipe_y, first.next_bottom_pipe_y) == (288.0, 0.0, 512.0), "not on screen"


def test_a_pipe_that_comes_again_has_another_gap():
    task = FlappyBird()

    def step(state: Any, _: Any) -> Any:
        after = task.step(state, jnp.int32(0))._replace(y=state.y, velocity=state.velocity)  # it stays in the air
        return after, (after.pipe_x > state.pipe_x, after.gap_y)

    again, gaps = jax.device_get(jit(lambda s: jax.lax.scan(step, s, length=1500)[1])(task.reset(jax.random.key(0))))
    drawn = gaps[again]
    assert again.sum() > 30 and set(np.unique(drawn).tolist()) == {80.0 + place for place in flappy.GAPS}
    assert (np.diff(gaps, axis=0)[~again[1:]] == 0.0).all()


def test_what_the_bird_is_told_of_the_gap_ahead():
    names = helpers_of(FlappyBird(gap=100))
    state = jax.device_get(FlappyBird().view(FlappyBird().reset(jax.random.key(0))))
    state = state._replace(last_pipe_x=4.0, last_top_pipe_y=100.0, last_bottom_pipe_y=200.0, next_pipe_x=150.0,
                           next_top_pipe_y=150.0, next_bottom_pipe_y=250.0, player_y=np.float32(128.0))  # fmt: skip
    ahead = state._replace(last_pipe_x=6.0)
    assert bool(names["ahead"](ahead)) and not bool(names["ahead"](state))
    assert (float(names["off"](ahead)), float(names["off"](state))) == (-10.0, -60.0)
    assert (float(names["to_top"](ahead)), float(names["to_bottom"](ahead))) == (28.0, 48.0)
    assert float(names["pipe_end"](ahead)) == 1.0 and float(names["pipe_end"](state)) == 145.0
    lower = ahead._replace(player_y=np.float32(131.0), last_pipe_x=2.0)
    assert float(names["nearer"](ahead, lower)) == 3.0, "towards the gap that was ahead"


def test_pipes_and_time_are_counted():
    task = FlappyBird(horizon=4)
    state = jax.device_get(task.reset(jax.random.key(0)))
    after = [state._replace(score=np.int32(k)) for k in (0, 1, 1)]
    value, extra = evaluate_metric(task.score(), after, state)
    assert (value, extra["played"]) == (1.0, 0.75)


# ---- Snake


def free_moves(view: Any) -> jax.Array:
    """Logits of moves that do not end the game, where there are any."""
    return jnp.where(view.free, 0.0, -5.0)


@pytest.mark.long
def test_the_snake_moves_by_the_rules():
    """Beside a list of its cells."""
    task = make_task("snake", size=5)
    states, actions, after, ended = played(task, free_moves, 24, 250)
    views = jax.device_get(jit(jax.vmap(jax.vmap(task.view)))(states))
    following = jax.device_get(jit(jax.vmap(jax.vmap(task.view)))(after))
    paid = jit(jax.vmap(jax.vmap(task.sparse_reward)))(views, actions, following)
    eaten = deaths = 0
    for env in range(actions.shape[1]):
        cells: list[tuple[int, int]] = []
        for t in range(actions.shape[0]):
            here = jax.tree.map(lambda x, t=t, env=env: x[t, env], views)
            there = jax.tree.map(lambda x, t=t, env=env: x[t, env], following)
            if int(here.snake_steps) == 0:
                cells = [tuple(here.head.tolist())]
            if ended[t, env]:
                continue
            row, column = np.add(cells[0], ((-1, 0), (0, 1), (1, 0), (0, -1))[int(actions[t, env])]).tolist()
            eats = (row, column) == tuple(here.food.tolist())
            body = cells if eats else cells[:-1]
            dies = not (0 <= row < 5 and 0 <= column < 5) or (row, column) in body
            eaten, deaths = eaten + (eats and not dies), deaths + dies
            assert (bool(there.food_eaten), bool(there.snake_death)) == (eats and not dies, dies)
            assert float(paid[t, env]) == float(eats and not dies) - dies
            assert bool(here.free[actions[t, env]]) == (not dies)
            cells = cells if dies else [(row, column), *body]
            assert int(there.length) == len(cells)
            grid = np.zeros((5, 5), int)
            if len(cells) < 25:
                grid[tuple(there.food)] = snake.FOOD
                assert tuple(there.food.tolist()) not in cells
            for k, cell in enumerate(cells):
                grid[cell] = snake.HEAD if k == 0 else snake.BODY
                assert int(there.body_age[cell]) == len(cells) - k
            np.testing.assert_array_equal(there.game_grid, grid)
    assert eaten > 50 and deaths > 5


def test_a_snake_that_fills_the_grid_ends_the_game_alive():
    task = make_task("snake", size=4)
    way = np.array([3, 3, 3, 2, 1, 1, 2, 3, 3, 2, 1, 1, 1, 0, 0, 0])  # of a snake in the upper right corner, round

    def step(state: Any, action: jax.Array) -> Any:
        after = task.step(state, action)
        keep = lambda new, old: jnp.where(task.terminated(state), old, new)  # noqa: E731
        return jax.tree.map(keep, after, state), None

    def play(key: jax.Array) -> Any:
        state = task.reset(key)
        state, _ = jax.lax.scan(step, state, jnp.asarray(np.tile(way, 30)))
        return task.view(state), state.dead, task.terminated(state)

    keys = jax.random.split(jax.random.key(0), 300)
    views, dead, over = jax.device_get(jit(jax.vmap(play))(keys))
    won = over & ~dead
    assert won.any() and (views.length[won] == 16).all()
    assert (np.sort(views.game_grid[won].reshape(-1, 16)) == [snake.BODY] * 15 + [snake.HEAD]).all(), "no food is left"


@pytest.mark.long
def test_what_the_snake_is_told_of_its_surroundings():
    names = helpers_of(make_task("snake"))
    age = np.zeros((12, 12), np.int32)
    age[0, 0:3] = [3, 2, 1]  # the head in the corner, the tail two to the right
    view = jax.tree.map(np.asarray, make_task("snake").view(make_task("snake").reset(jax.random.key(0))))
    view = view._replace(body_age=age, head=np.array([0, 0]), food=np.array([2, 5]), free=np.array([0, 0, 1, 0], bool))
    assert names["around"](view).tolist() == [1, 1, 1, 1, 1, 1, 0, 0]
    assert names["reach"](view).tolist() == [0, 0, 11, 0]
    assert float(names["moves"](view)) == 7.0 and float(names["exits"](view)) == 1.0
    terms = {f.name: functions_of_task(make_task("snake"))[f.name] for f in make_task("snake").vocabulary().fragments}
    down = view._replace(head=np.array([1, 0]))
    assert float(terms["nearer"](view, 2, down)) == 1.0 and float(terms["nearer"](down, 0, view)) == -1.0


# ---- Tetris


def dropped(board: np.ndarray, shape: np.ndarray, column: int) -> np.ndarray | None:
    """A board after `shape` fell into it from the top, as far as it is free; None where it cannot enter."""
    height, width = shape.shape

    def fits(row: int) -> bool:
        return not (board[row : row + height, column : column + width] * shape).any()

    if not fits(0):
        return None
    row = 0
    while row + height < len(board) and fits(row + 1):
        row += 1
    after = board.copy()
    after[row : row + height, column : column + width] += shape
    return after


@pytest.mark.long
def test_tetrominoes_fall_by_the_rules():
    """Beside a board that is filled cell by cell."""
    task: Any = make_task("tetris", rows=8, columns=5)
    states, actions, after, ended = played(task, lambda view: jnp.where(view.possible, 0.0, -5.0), 24, 250)
    views = jax.device_get(jit(jax.vmap(jax.vmap(task.view)))(states))
    following = jax.device_get(jit(jax.vmap(jax.vmap(task.view)))(after))
    paid = jit(jax.vmap(jax.vmap(task.sparse_reward)))(views, actions, following)
    cleared = over = 0
    for t, env in zip(*np.nonzero(~ended), strict=True):
        here = jax.tree.map(lambda x, t=t, env=env: x[t, env], views)
        there = jax.tree.map(lambda x, t=t, env=env: x[t, env], following)
        column, turns = divmod(int(actions[t, env]), 4)
        shape = here.turned[turns]
        shape = shape[shape.any(1)][:, shape.any(0)]
        assert shape.sum() == 4 and sorted(shape.shape) == sorted(here.turned[0].any(i).sum() for i in (0, 1))
        np.testing.assert_array_equal(here.board, np.maximum(here.placed, here.active_tetromino))
        placed = dropped(here.placed, shape, min(column, 5 - shape.shape[1]))
        over += bool(there.game_over)
        assert (placed is None) == (not here.possible[actions[t, env]])
        if placed is None:
            np.testing.assert_array_equal(there.placed, here.placed)
            assert bool(there.invalid) and bool(there.game_over) and float(paid[t, env]) == -1.0
            assert int(there.lines_cleared) == 0
            continue
        full = placed.all(axis=1)
        np.testing.assert_array_equal(there.placed, np.concatenate([0 * placed[full], placed[~full]]))
        assert int(there.lines_cleared) == full.sum() == float(paid[t, env])
        assert int(there.lines) == int(here.lines) + full.sum()
        cleared += full.sum()
    assert cleared > 20 and over > 20


@pytest.mark.long
def test_what_is_told_of_a_board():
    task: Any = make_task("tetris", rows=6, columns=4)
    names = helpers_of(task)
    placed = np.array([[0, 0, 0, 0], [0, 0, 0, 0], [0, 0, 0, 1], [0, 1, 0, 1], [0, 0, 0, 1], [1, 1, 0, 1]])
    view = task.view(task.reset(jax.random.key(0)))._replace(placed=jnp.asarray(placed))
    assert names["heights"](view).tolist() == [1, 3, 0, 4] and names["holes"](view).tolist() == [0, 1, 0, 0]
    assert float(names["roughness"](view)) == 2 + 3 + 4 and float(names["fullest"](view)) == 0.75
    assert float(names["wells"](view)) == 2 + 3
    assert float(names["changes"](view)) == 2 + 4 + 2 + 2, "walls are filled, rows without cells left out"
    flat = view._replace(turned=task.core.env.TETROMINOES_LIST[0])  # the long one, upright and lying
    lies, empty = names["landings"](flat)
    assert lies.reshape(4, 4).T[:2].tolist() == [[1, 3, 0, 4], [4] * 4]
    assert empty.reshape(4, 4).T[:2].tolist() == [[0] * 4, [8] * 4]


@pytest.mark.long
@pytest.mark.parametrize("name", ["snake", "tetris"])
def test_a_game_is_not_over_before_its_horizon(name):
    task = make_task(name, horizon=30, **({"size": 12} if name == "snake" else {"rows": 40, "columns": 12}))
    safe = lambda v: jnp.where(v.free if name == "snake" else v.possible, 0.0, -30.0)  # noqa: E731
    states, _, _, ended = played(task, safe, 64, 30)
    counts = states.core.env.step_count
    assert counts.max() == 29 and (ended[-1] == 0).mean() > 0.5


@pytest.mark.long
def test_the_experts_landings_are_where_tetrominoes_lie():
    """How high each would lie, and how many cells under it would be empty."""
    task = make_task("tetris")
    names = functions_of((INTERFACES / "tetris" / "expert.py").read_text())
    states, actions, after, ended = played(task, lambda view: jnp.where(view.possible, 0.0, -9.0), 32, 20)

    @jit
    @jax.vmap
    @jax.vmap
    def both(state: Any, action: jax.Array, after: Any) -> Any:
        views = task.view(state), task.view(after)
        lies, empty = names["landings"](views[0])
        (_, holes), (_, more) = names["surface"](views[0]), names["surface"](views[1])
        return empty[action], more.sum() - holes.sum(), lies[action], views[1].lines_cleared

    empty, holes, lies, lines = jax.device_get(both(states, actions, after))
    going = ~ended & ~np.asarray(after.invalid) & (lines == 0)
    assert going.sum() > 200
    np.testing.assert_array_equal(empty[going], holes[going])
    assert lies[going].min() == 0.0 and (np.diff(np.unique(lies)) == 1.0).all()


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_the_expert_learns_more_than_the_games_own_reward_teaches(name):
    task: Any = make_task(name)
    folder = INTERFACES / name.replace("-", "_")
    programs = [folder / "expert.py", folder / "sparse.py"]
    result = jr.train(task, programs, seeds=1, steps=400_000, checkpoints=1, eval_episodes=64)
    expert, own = result.success.mean(axis=1)
    assert expert > 2.0 * own + 1.0
