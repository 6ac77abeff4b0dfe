"""MiniGrid's own BabyAI levels beside ours: its start states as ours, and episodes of both with the same actions."""

from __future__ import annotations

import contextlib
import io
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import gymnasium
import jax
import numpy as np

from jaxreward.tasks.levels.bank import start_state
from jaxreward.tasks.levels.catalogue import LEVELS
from jaxreward.tasks.levels.codes import (
    AGENT,
    ANY,
    COLOUR_NAMES,
    EMPTY_CELL,
    GO_TO,
    OPEN,
    PICK,
    THINGS,
    TYPE_NAMES,
)  # fmt: skip
from jaxreward.tasks.levels.dynamics import step
from jaxreward.tasks.levels.mission import clause, mission_array
from jaxreward.tasks.levels.state import LevelState

PUBLIC = tuple(name for name, level in LEVELS.items() if level.minigrid)
"""Levels that MiniGrid has too."""

_VERBS = {"GoToInstr": GO_TO, "PickupInstr": PICK, "OpenInstr": OPEN}
_TYPES = {name: code for code, name in TYPE_NAMES.items()}
_PLACES = ("left", "right", "front", "behind")
_LONG = 10_000


def environment(name: str) -> Any:
    """MiniGrid's environment of a level, without its own limit of steps and without observations."""
    import minigrid  # noqa: F401  registers the environments

    env: Any = gymnasium.make(f"BabyAI-{LEVELS[name].minigrid}-v0", max_steps=_LONG, disable_env_checker=True).unwrapped
    env.gen_obs = dict  # what an agent would see takes most of the time of a step, and nobody looks
    return env


def begin(env: Any, seed: int) -> LevelState:
    """Begin an episode there, and return its state as ours."""
    with contextlib.redirect_stdout(io.StringIO()):  # it prints what it rejects
        env.reset(seed=seed)
    ids, numbers = np.zeros((env.height, env.width), np.uint8), dict[int, int]()
    for column in range(env.width):
        for row in range(env.height):
            thing = env.grid.get(column, row)
            if thing is not None and thing.type in ("door", "key", "ball", "box"):
                ids[row, column] = numbers[id(thing)] = len(numbers) + 1
    instructions = [env.instrs.instr_a, env.instrs.instr_b] if hasattr(env.instrs, "instr_a") else [env.instrs]
    targets, clauses = np.zeros((2, THINGS), bool), []
    for k, instruction in enumerate(instructions):
        about = instruction.desc
        clauses.append(
            clause(
                _VERBS[type(instruction).__name__], _TYPES.get(about.type, ANY),
                COLOUR_NAMES.index(about.color) if about.color else ANY,
                _PLACES.index(about.loc) if about.loc else ANY,
            )
        )  # fmt: skip
        for thing in about.obj_set:
            if id(thing) in numbers:  # "the grey object" also fits the walls there
                targets[k, numbers[id(thing)]] = True
    column, row = map(int, env.agent_pos)
    return start_state(grid_of(env), ids, (row, column), int(env.agent_dir), mission_array(clauses), targets)


def grid_of(env: Any) -> np.ndarray:
    """The grid by row and column, without the agent."""
    grid = env.grid.encode().transpose(1, 0, 2).copy()
    grid[grid[:, :, 0] == AGENT] = EMPTY_CELL
    return grid


@dataclass(frozen=True)
class Episode:
    """An episode of MiniGrid: what follows each action.

    Attributes:
        start: its first state.
        actions: int32 (steps,).
        grids: uint8 (steps, height, width, 3).
        agents: int32 (steps, 6): row, column and direction, and (type, colour, state) of what is carried.
        solved: bool (steps,).
    """

    start: LevelState
    actions: np.ndarray
    grids: np.ndarray
    agents: np.ndarray
    solved: np.ndarray


def play(env: Any, seed: int, choose: Callable[[Any, int], int], most: int) -> Episode:
    """An episode of at most `most` steps; `choose` is given the environment and the step number."""
    start = begin(env, seed)
    actions, grids, agents, solved = [], [], [], []
    for t in range(most):
        action = int(choose(env, t))
        ended = bool(env.step(action)[2])
        held = env.carrying.encode() if env.carrying else (0, 0, 0)
        actions.append(action)
        grids.append(grid_of(env))
        agents.append([int(env.agent_pos[1]), int(env.agent_pos[0]), int(env.agent_dir), *map(int, held)])
        solved.append(ended)
        if ended:
            break
    return Episode(
        start, np.asarray(actions, np.int32), np.asarray(grids), np.asarray(agents, np.int32), np.asarray(solved)
    )


def replay(name: str, most: int) -> Callable[[Episode], int]:
    """A function that plays the actions of an episode in our level, compiled once for `most` steps, and counts the
    steps on which grid, position, direction, what is carried or success differ."""
    level = LEVELS[name]

    @jax.jit
    def run(start: LevelState, actions: jax.Array) -> LevelState:
        def one(state: LevelState, action: jax.Array) -> tuple[LevelState, LevelState]:
            after = step(state, action, level.verb, level.clauses)
            return after, after

        return jax.lax.scan(one, start, actions)[1]

    def mismatches(episode: Episode) -> int:
        n = len(episode.actions)
        ours = jax.tree.map(np.asarray, run(episode.start, np.pad(episode.actions, (0, most - n))))
        agents = np.concatenate([ours.position, ours.direction[:, None], ours.carried[:, :3]], axis=1)[:n]
        same = (ours.grid[:n] == episode.grids).all((1, 2, 3)) & (agents == episode.agents).all(1)
        return int(np.sum(~(same & (ours.solved[:n] == episode.solved))))

    return mismatches


def random_actions(seed: int) -> Callable[[Any, int], int]:
    """Mostly forward, all others at times."""
    rng = np.random.default_rng(seed)
    return lambda env, t: int(rng.choice((0, 1, 2, 2, 2, 3, 4, 5, 6)))


def bot_actions(seed: int, noise: float) -> Callable[[Any, int], int]:
    """MiniGrid's bot, with a random action in its place now and then; random ones once it gives up."""
    from minigrid.utils.baby_ai_bot import BabyAIBot

    rng, held = np.random.default_rng(seed), dict[str, Any]()

    def choose(env: Any, t: int) -> int:
        if t == 0:
            held["bot"], held["last"] = BabyAIBot(env), None
        action = None
        if held["bot"] is not None:
            try:
                planned: Any = held["bot"].replan(held["last"])
                action = int(planned)
            except Exception:  # it gives up where it finds no way, by assertions of several kinds
                held["bot"] = None
        if action is None or rng.random() < noise:
            action = int(rng.integers(7))
        held["last"] = env.actions(action)
        return action

    return choose


def compared(name: str, episodes: int, most: int = 100) -> tuple[int, int, int]:
    """Steps, steps that differ, and successes of episodes of MiniGrid's bot, which errs, and of random play."""
    env, replayed = environment(name), replay(name, most)
    steps = wrong = won = 0
    for seed in range(episodes):
        choose = random_actions(seed) if seed % 2 else bot_actions(seed, 0.1)
        episode = play(env, seed, choose, most)
        steps, wrong, won = steps + len(episode.actions), wrong + replayed(episode), won + int(episode.solved[-1])
    return steps, wrong, won
