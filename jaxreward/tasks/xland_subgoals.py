"""The subgoals of an XLand ruleset, chained backward from its goal (`xland_chain`), as fragments of its vocabulary."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from jaxreward.records import Fragment, Vocabulary
from jaxreward.records.subgoals import Subgoal, Subgoals
from jaxreward.tasks.fragment_template import Template, functions_of
from jaxreward.tasks.xland_chain import Link, Thing, chain
from jaxreward.tasks.xland_description import tile_name
from jaxreward.tasks.xland_fragments import GOAL_LIKE, MILESTONE
from jaxreward.tasks.xland_vocabulary import fill, object_name

HELPERS = '''
def exists(state, thing):
    """Whether `thing` lies on the grid or is held."""
    return is_on_grid(state, thing) | is_held(state, thing)


def carrying_near(state, thing, other):
    """From 0, `thing` is not held, to 1, it is held and `other` is where the agent stands; cells without walls."""
    return is_held(state, thing) * (1.0 - distance_to(state, other) / (HEIGHT + WIDTH))


def carrying_near_on_foot(state, thing, other):
    """The same by steps on foot."""
    return is_held(state, thing) * (1.0 - walk_to(state, other) / FLOOD)
'''

_MADE = (
    Template("made_{x}", "milestone", "A rule made the {a}.",
             "jnp.where(exists(next_state, {X}) & ~exists(state, {X}), 1.0, 0.0)", 1, MILESTONE),
    Template("made_{x}_potential", "potential", "Potential 1 while the {a} exists: pays for making it.",
             "GAMMA * exists(next_state, {X}) - exists(state, {X})", 1, GOAL_LIKE),
)  # fmt: skip
_BROUGHT = (
    Template("bring_{x}_to_{y}_potential", "potential",
             "Potential from 0, the {a} is not held, to 1, it is held at the {b}; without regard to walls.",
             "GAMMA * carrying_near(next_state, {X}, {Y}) - carrying_near(state, {X}, {Y})", 1, (2.0, 5.0, 1.0)),
    Template("walk_{x}_to_{y}_potential", "potential walking expensive", "The same by steps on foot.",
             "GAMMA * carrying_near_on_foot(next_state, {X}, {Y}) - carrying_near_on_foot(state, {X}, {Y})", 1,
             (2.0, 5.0, 1.0)),
)  # fmt: skip


def subgoals(goal: np.ndarray, rules: np.ndarray, init_tiles: np.ndarray) -> Subgoals:
    """Those of a ruleset as xminigrid encodes it; a link about a cell of the grid has no fragments but the reward."""
    links = chain(goal, rules, init_tiles)
    fragments = {fragment.name: fragment for link in links for fragment in _further(link)}
    reward = _reward(np.asarray(goal))
    vocabulary = Vocabulary(helpers=functions_of(HELPERS), fragments=(*fragments.values(), reward))
    return Subgoals(chain=tuple(map(_subgoal, links)), reward=reward.name, vocabulary=vocabulary, described=True)


def stages_of(goal: np.ndarray, rules: np.ndarray, init_tiles: np.ndarray) -> tuple[tuple[str, Thing, bool], ...]:
    """What must come before the goal of a ruleset: a name, the thing that it is about, and whether that is to be held
    or else only made."""
    found = dict[str, tuple[str, Thing, bool]]()
    for link in chain(goal, rules, init_tiles)[:-1]:
        thing, held = link.makes or link.about[0], link.verb == "hold" and not link.makes
        name = f"{'held' if held else 'made'}_{object_name(thing)}"
        found[name] = (name, thing, held)
    return tuple(found.values())


def _further(link: Link) -> list[Fragment]:
    """Fragments that a link needs and no vocabulary of XLand has."""
    found = fill("term", _MADE, link.makes) if link.makes else []
    return [*found, *(fill("term", _BROUGHT, *link.about) if link.verb == "join" else [])]


def _subgoal(link: Link) -> Subgoal:
    names = [object_name(thing) for thing in link.about]
    made = object_name(link.makes) if link.makes else ""
    words = {
        "hold": "hold the {}", "reach": "walk to the {}", "join": "put the {} beside the {}",
        "place": "put the {} on its cell", "go": "walk to the cell",
    }[link.verb].format(*map(tile_name, link.about))  # fmt: skip
    if link.makes:
        words += f", which makes the {tile_name(link.makes)}"
    if link.verb == "hold":
        x, held = names[0], made or names[0]
        return Subgoal(
            words=words, directions=_towards(x), flags=(f"{held}_held",),
            approaches=(f"walk_to_{x}_potential", f"near_{x}_potential"), completions=(f"holding_{held}_potential",),
            events=(f"got_{held}", f"picked_up_{x}"),
        )  # fmt: skip
    completions, events = ((f"made_{made}_potential",), (f"made_{made}",)) if made else ((), ())
    if link.verb == "reach":
        (x,) = names
        return Subgoal(
            words=words, directions=_towards(x), flags=(f"{made}_present" if made else f"{x}_adjacent",),
            approaches=(f"walk_to_{x}_potential", f"near_{x}_potential"), completions=completions, events=events,
        )  # fmt: skip
    if link.verb == "join":
        x, y = names
        return Subgoal(
            words=words, directions=(*_towards(y), f"{y}_free_side"),
            flags=(f"{y}_front_free_beside", *([f"{made}_present"] if made else [])),
            approaches=(f"walk_{x}_to_{y}_potential", f"bring_{x}_to_{y}_potential"), completions=completions,
            events=(*events, f"put_{x}_beside_{y}"),
        )  # fmt: skip
    return Subgoal(words=words)


def _towards(x: str) -> tuple[str, ...]:
    return f"{x}_way_turned", f"{x}_ahead_right", f"{x}_way", f"{x}_turn", f"{x}_ahead_right_near"


def _reward(goal: np.ndarray) -> Fragment:
    """A term that pays what the task's sparse reward pays, as source."""
    kind, numbers = int(goal[0]), [int(v) for v in goal[1:]]
    one, other = f"({numbers[0]}, {numbers[1]})", f"({numbers[2]}, {numbers[3]})"
    here = "next_state.agent.position"
    lines: Sequence[str]
    if kind == 1:
        lines = [f"reached = (action == PICK_UP) & is_held(next_state, {one})"]
    elif kind == 2:
        lines = [f"cell = {here}", f"reached = (action == FORWARD) & same(next_state.grid[cell[0], cell[1]], {one})"]
    elif kind == 3:
        lines = [f"reached = (action == FORWARD) & is_beside(next_state, {here}, {one})"]
    elif kind in (4, 7, 8, 9, 10):
        lines = _joined(one, other, None if kind == 4 else kind - 7)
    elif kind == 5:
        row, column = numbers[2:4]
        lines = [f"reached = same(next_state.grid[{row}, {column}], {one})"]
    elif kind == 6:
        lines = [f"reached = jnp.all({here} == jnp.array([{numbers[0]}, {numbers[1]}]))"]
    else:
        lines = [
            f"cells = around({here})", f"cell = cells[{kind - 11}]",
            "moved = (action == FORWARD) | (action == PUT_DOWN)",
            f"reached = moved & same(next_state.grid[cell[0], cell[1]], {one})",
        ]  # fmt: skip
    template = Template("goal_reached", "milestone", "The task's goal is reached.",
                        (*lines, "jnp.where(reached, 1.0, 0.0)"), 1, GOAL_LIKE)  # fmt: skip
    return fill("term", [template])[0]


def _joined(one: str, other: str, side: int | None) -> list[str]:
    """Whether a put-down brings `other` beside `one`, or to that side of it (up, right, down, left)."""
    places = ["cell = front_cell(state)", "there = next_state.grid[cell[0], cell[1]]"]
    if side is None:
        either = (
            f"same(there, {one}) & is_beside(next_state, cell, {other})",
            f"same(there, {other}) & is_beside(next_state, cell, {one})",
        )
    else:
        places += ["cells = around(cell)", "beside = next_state.grid[cells[:, 0], cells[:, 1]]"]
        either = (
            f"same(there, {one}) & same(beside[{side}], {other})",
            f"same(there, {other}) & same(beside[{(side + 2) % 4}], {one})",
        )
    return [*places, f"one = {either[0]}", f"other = {either[1]}", "reached = (action == PUT_DOWN) & (one | other)"]
