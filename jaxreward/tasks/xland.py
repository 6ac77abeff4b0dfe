"""XLand-MiniGrid tasks (Nikulin et al. 2023) with LIMEN's three rulesets.

The dynamics are xminigrid's own actions, rules and goals; only the bookkeeping of an episode is
ours. A ruleset is static here, so goals and rules are called directly: xminigrid's `check_goal`
and `check_rule` switch over every kind, which under vmap evaluates all of them at each step.
"""

from __future__ import annotations

import re
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import xminigrid
from flax import struct
from xminigrid.core import goals as xgoals
from xminigrid.core import rules as xrules
from xminigrid.core.actions import take_action
from xminigrid.core.constants import DIRECTIONS, TILES_REGISTRY, Colors, Tiles
from xminigrid.core.observation import transparent_field_of_view
from xminigrid.types import AgentState, RuleSet

from jaxreward.records import Vocabulary
from jaxreward.records.subgoals import Subgoals
from jaxreward.tasks import xland_description as words
from jaxreward.tasks.metrics import Reached, WithExtraMetrics
from jaxreward.tasks.option_checks import check_horizon, invalid_option
from jaxreward.tasks.task import Discrete
from jaxreward.tasks.xland_subgoals import stages_of, subgoals
from jaxreward.tasks.xland_vocabulary import xland_vocabulary

VIEW_SIZE = 7
_DOORS = {1: 0, 2: 1, 4: 4, 6: 6, 9: 12}
"""By the number of rooms, as xminigrid lays them out."""

_GOALS = (
    xgoals.EmptyGoal, xgoals.AgentHoldGoal, xgoals.AgentOnTileGoal, xgoals.AgentNearGoal, xgoals.TileNearGoal,
    xgoals.TileOnPositionGoal, xgoals.AgentOnPositionGoal, xgoals.TileNearUpGoal, xgoals.TileNearRightGoal,
    xgoals.TileNearDownGoal, xgoals.TileNearLeftGoal, xgoals.AgentNearUpGoal, xgoals.AgentNearRightGoal,
    xgoals.AgentNearDownGoal, xgoals.AgentNearLeftGoal,
)  # fmt: skip
_RULES = (
    xrules.EmptyRule, xrules.AgentHoldRule, xrules.AgentNearRule, xrules.TileNearRule, xrules.TileNearUpRule,
    xrules.TileNearRightRule, xrules.TileNearDownRule, xrules.TileNearLeftRule, xrules.AgentNearUpRule,
    xrules.AgentNearRightRule, xrules.AgentNearDownRule, xrules.AgentNearLeftRule,
)  # fmt: skip


class AgentView(struct.PyTreeNode):
    position: jax.Array
    direction: jax.Array
    pocket: jax.Array


class XLandView(struct.PyTreeNode):
    """What programs see; see `xland_description.state_words`."""

    grid: jax.Array
    agent: AgentView
    step_num: jax.Array


class XLandState(struct.PyTreeNode):
    grid: jax.Array
    agent: AgentView
    step_num: jax.Array
    solved: jax.Array


class XLand:
    """An XLand-MiniGrid environment with one fixed ruleset.

    Args:
        name: the task's name.
        environment: an id of `xminigrid.registered_environments()` that starts with XLand.
        ruleset: goal, rules and initial tiles.
        horizon: steps of an episode.
        description: the task in words; made from the ruleset if empty.
    """

    options = ("horizon",)

    def __init__(self, name: str, environment: str, ruleset: RuleSet, horizon: int, description: str = "") -> None:
        check_horizon(horizon, f"the horizon of '{name}'")
        env, params = xminigrid.make(environment, ruleset=ruleset, max_steps=horizon, view_size=VIEW_SIZE)
        self._env, self._params = env, params
        self.name, self.horizon = name, int(horizon)
        self.environment, self.ruleset = environment, ruleset
        self.height, self.width = int(params.height), int(params.width)
        self.action_space = Discrete(6)
        goal = np.asarray(ruleset.goal)
        rules = np.atleast_2d(np.asarray(ruleset.rules))
        if int(goal[0]) == 0:
            message = f"the ruleset of '{name}' has no goal, so no episode can succeed; choose another"
            raise invalid_option("ruleset", message)
        self._goal = _GOALS[int(goal[0])].decode(jnp.asarray(goal))
        self._rules = [_RULES[int(r[0])].decode(jnp.asarray(r)) for r in rules if int(r[0])]
        self._stages = stages_of(goal, rules, np.asarray(ruleset.init_tiles))
        self.objects = words.objects_of(goal, rules, np.asarray(ruleset.init_tiles))
        self.description = description or words.describe(goal, rules, np.asarray(ruleset.init_tiles), self.horizon)
        self.rooms = int(re.search(r"-R(\d+)-", environment)[1])  # pyright: ignore[reportOptionalSubscript]
        self.state_words = words.state_words(self.horizon)
        self.state_notes = "\n".join([words.STATE_NOTES, words.layout(self.rooms, _DOORS[self.rooms]), words.ENDS])

    def reset(self, key: jax.Array) -> XLandState:
        state = self._env.reset(self._params, key).state
        return XLandState(
            grid=state.grid,
            agent=_agent_view(state.agent),
            step_num=jnp.zeros((), jnp.int32),
            solved=jnp.zeros((), bool),
        )

    def step(self, state: XLandState, action: jax.Array) -> XLandState:
        agent = AgentState(state.agent.position, state.agent.direction, state.agent.pocket)
        grid, agent, changed = take_action(state.grid, agent, action)
        for rule in self._rules:
            grid, agent = rule(grid, agent, action, changed)
        solved = self._goal(grid, agent, action, changed)
        return XLandState(grid=grid, agent=_agent_view(agent), step_num=state.step_num + 1, solved=solved)

    def terminated(self, state: XLandState) -> jax.Array:
        return state.solved

    def view(self, state: XLandState) -> XLandView:
        return XLandView(grid=state.grid, agent=state.agent, step_num=state.step_num)

    def score(self) -> Reached | WithExtraMetrics:
        """Success: the environment's own goal event at any step of the episode, the last included. Extra metrics are
        what must come before it: that a thing is held, or made by a rule, in any state after the first."""
        solved = Reached(lambda state: state.solved)
        stages = {name: Reached(partial(_has, thing=thing, held=held)) for name, thing, held in self._stages}
        return WithExtraMetrics(solved, stages, tuple(stages)) if stages else solved

    def default_observation(self, view: XLandView) -> jax.Array:
        """The paper's raw observation: the flattened 7x7 egocentric view, tile and colour ids."""
        fov = transparent_field_of_view(view.grid, _agent(view), VIEW_SIZE, VIEW_SIZE)
        return fov.reshape(-1).astype(jnp.float32)

    def sparse_reward(self, view: XLandView, action: jax.Array, next_view: XLandView) -> jax.Array:
        """1 on the step that reaches the goal, else 0.

        The goal is checked as `step` checks it: after the rules, at the cell that the action
        changed, which for a move is the agent's new cell and otherwise the cell it faces.
        """
        agent = _agent(next_view)
        faced = view.agent.position + jnp.asarray(DIRECTIONS)[view.agent.direction]
        changed = jnp.where(action >= 3, faced, agent.position)
        return self._goal(next_view.grid, agent, action, changed).astype(jnp.float32)

    def draw(self, state: XLandState) -> np.ndarray:
        """The grid as xminigrid draws it, 24 pixels a tile, what the agent sees in the raw observation highlighted."""
        from xminigrid.rendering.rgb_render import render

        state = jax.tree.map(np.asarray, state)  # drawn tile by tile on the host
        return np.asarray(render(np.asarray(state.grid), _agent(self.view(state)), VIEW_SIZE, 24), np.uint8)

    def subgoals(self) -> Subgoals:
        rules = np.atleast_2d(np.asarray(self.ruleset.rules))
        found = subgoals(np.asarray(self.ruleset.goal), rules, np.asarray(self.ruleset.init_tiles))
        return found.within({fragment.name for fragment in found.joined(self.vocabulary()).fragments})

    def vocabulary(self) -> Vocabulary:
        return xland_vocabulary(self.objects, self.height, self.width, self.horizon, doors=_DOORS[self.rooms] > 0)


def _has(state: XLandState, thing: tuple[int, int], held: bool) -> jax.Array:
    """Whether a thing is held, or else whether it is anywhere (bool scalar)."""
    in_hand = (state.agent.pocket == jnp.asarray(thing, jnp.uint8)).all()
    return in_hand if held else in_hand | (state.grid == jnp.asarray(thing, jnp.uint8)).all(-1).any()


def _agent_view(agent: Any) -> AgentView:
    # One dtype for reset and step alike, whatever xminigrid's defaults are.
    return AgentView(
        position=agent.position.astype(jnp.int32),
        direction=jnp.asarray(agent.direction).astype(jnp.int32),
        pocket=agent.pocket.astype(jnp.uint8),
    )


def _agent(view: XLandView) -> AgentState:
    return AgentState(view.agent.position, view.agent.direction, view.agent.pocket)


def tile(kind: str, colour: str) -> jax.Array:
    """The (tile, colour) ids of, say, `tile("pyramid", "blue")`, uint8 (2,)."""
    return TILES_REGISTRY[getattr(Tiles, kind.upper()), getattr(Colors, colour.upper())]


def paper_task(name: str, horizon: int | None = None) -> XLand:
    """`xland-easy`, `xland-medium` or `xland-hard`: the tasks of LIMEN, section 5.1."""
    if name == "xland-easy":
        pyramid = tile("pyramid", "blue")
        ruleset = RuleSet(
            goal=xgoals.AgentHoldGoal(tile=pyramid).encode(),
            rules=xrules.EmptyRule().encode()[None],
            init_tiles=jnp.stack([pyramid, tile("ball", "red")]),
        )
        return XLand(name, "XLand-MiniGrid-R1-9x9", ruleset, 80 if horizon is None else horizon)
    if name == "xland-medium":
        pyramid, square = tile("pyramid", "yellow"), tile("square", "green")
        ruleset = RuleSet(
            goal=xgoals.TileNearGoal(tile_a=pyramid, tile_b=square).encode(),
            rules=xrules.EmptyRule().encode()[None],
            init_tiles=jnp.stack([pyramid, square]),
        )
        return XLand(name, "XLand-MiniGrid-R1-9x9", ruleset, 80 if horizon is None else horizon)
    pyramid, ball, hexagon = tile("pyramid", "blue"), tile("ball", "green"), tile("hex", "yellow")
    purple, square, star = tile("ball", "purple"), tile("square", "orange"), tile("star", "grey")
    ruleset = RuleSet(
        goal=xgoals.TileNearGoal(tile_a=ball, tile_b=hexagon).encode(),
        rules=jnp.stack(
            [
                xrules.AgentHoldRule(tile=pyramid, prod_tile=ball).encode(),
                xrules.TileNearRule(tile_a=purple, tile_b=square, prod_tile=star).encode(),
            ]
        ),
        init_tiles=jnp.stack([pyramid, hexagon, purple, square]),
    )
    return XLand(name, "XLand-MiniGrid-R4-13x13", ruleset, 400 if horizon is None else horizon)
