"""Templates of XLand's feature and term fragments, filled in per object.

`{x}` and `{y}` become the snake-case names of objects (`blue_pyramid`),
`{X}` and `{Y}` their constants (`BLUE_PYRAMID`), `{a}` and `{b}` their names in words. The first
tag is the fragment's family. Templates know tiles, positions, distances and what actions do; none
knows which object the goal is about. The helpers they call are in `xland_vocabulary`.
"""

from __future__ import annotations

from jaxreward.tasks.fragment_template import Template

MILESTONE = (1.0, 2.0, 5.0, 0.5)
GOAL_LIKE = (5.0, 10.0, 2.0)
PER_CELL = (0.1, 0.2, 0.05, 0.3)
BONUS = (0.05, 0.02, 0.1)
PENALTY = (0.05, 0.02, 0.1)
EVERY_STEP = (0.005, 0.01, 0.002)

# fmt: off
FEATURES = (
    Template("agent_position", "agent basic", "Row and column of the agent, from 0 to 1.",
           "state.agent.position / SPAN", 2),
    Template("agent_facing", "agent basic", "One-hot of the direction: up, right, down, left.",
           "jax.nn.one_hot(state.agent.direction, 4)", 4),
    Template("agent_heading", "agent", "The direction as a step in rows and columns.",
           "heading(state).astype(jnp.float32)", 2),
    Template("hands_full", "pocket basic", "Whether the agent carries anything.",
           "flag(state.agent.pocket[0] != 0)"),
    Template("pocket_kind", "pocket", "One-hot of the kind of tile that is carried.",
           "jax.nn.one_hot(state.agent.pocket[0], 13)", 13),
    Template("pocket_scaled", "pocket", "Tile and colour carried, scaled.",
           "state.agent.pocket / jnp.array([12.0, 11.0])", 2),
    Template("time_passed", "time", "The part of the episode that is over.",
           "jnp.reshape(state.step_num / HORIZON, (1,))"),
    Template("front_kind", "front", "One-hot of the kind of tile in front of the agent.",
           "jax.nn.one_hot(tile_in_front(state)[0], 13)", 13),
    Template("front_open", "front basic", "Whether the agent can step forward.",
           "flag(is_walkable(tile_in_front(state)[0]))"),
    Template("front_free", "front", "Whether something can be put down in front.",
           "flag(tile_in_front(state)[0] == FLOOR)"),
    Template("front_wall", "front", "Whether a wall stands in front.",
           "flag(tile_in_front(state)[0] == WALL)"),
    Template("open_sides", "surroundings", "Whether the cells above, right, below and left can be entered.",
           "is_walkable(kinds_at(state.grid, around(state.agent.position))).astype(jnp.float32)", 4),
    Template("open_sides_turned", "surroundings egocentric",
           "Whether the cells ahead, right, behind and left can be entered.",
           "is_walkable(kinds_at(state.grid, around_turned(state))).astype(jnp.float32)", 4),
    Template("tiles_3x3", "local_view", "Kinds of tile in the 3x3 window around the agent, scaled.",
           "window(state.grid[:, :, 0] / 12.0, state, 1).reshape(-1)", 9),
    Template("tiles_5x5", "local_view", "Kinds of tile in the 5x5 window around the agent, scaled.",
           "window(state.grid[:, :, 0] / 12.0, state, 2).reshape(-1)", 25),
    Template("tiles_7x7", "local_view large", "Kinds of tile in the 7x7 window around the agent, scaled.",
           "window(state.grid[:, :, 0] / 12.0, state, 3).reshape(-1)", 49),
    Template("colours_5x5", "local_view", "Colours in the 5x5 window around the agent, scaled.",
           "window(state.grid[:, :, 1] / 11.0, state, 2).reshape(-1)", 25),
    Template("blocked_3x3", "local_view", "Cells of the 3x3 window that cannot be entered.",
           "window(1.0 - is_walkable(state.grid[:, :, 0]), state, 1).reshape(-1)", 9),
    Template("blocked_5x5", "local_view", "Cells of the 5x5 window that cannot be entered.",
           "window(1.0 - is_walkable(state.grid[:, :, 0]), state, 2).reshape(-1)", 25),
    Template("blocked_5x5_turned", "local_view egocentric",
           "Cells of the 5x5 window that cannot be entered, turned so that up is ahead.",
           "turned(window(1.0 - is_walkable(state.grid[:, :, 0]), state, 2), state).reshape(-1)", 25),
)

DOOR_FEATURES = (
    Template("door_offset", "door relative", "Rows and columns to the nearest door.",
           "(nearest_door(state) - state.agent.position) / SPAN", 2, (1.0, 2.0)),
    Template("door_sides", "door surroundings", "Whether a door is above, right, below or left of the agent.",
           "is_door(kinds_at(state.grid, around(state.agent.position))).astype(jnp.float32)", 4),
    Template("front_closed_door", "door front", "Whether a closed door is in front.",
           "flag((tile_in_front(state)[0] == DOOR_CLOSED) | (tile_in_front(state)[0] == DOOR_LOCKED))"),
)

OBJECT_FEATURES = (
    Template("{x}_offset", "relative", "Rows and columns from the agent to the {a}; 0 if held or absent.",
           "offset_to(state, {X}) / SPAN", 2, (1.0, 2.0, 3.0)),
    Template("{x}_offset_near", "relative", "Rows and columns to the {a}, to scale within three cells.",
           "jnp.clip(offset_to(state, {X}) / 3.0, -1.0, 1.0)", 2),
    Template("{x}_side", "relative", "On which side the {a} lies: signs of rows and columns.",
           "jnp.sign(offset_to(state, {X})).astype(jnp.float32)", 2),
    Template("{x}_ahead_right", "relative egocentric", "Cells to the {a}, ahead and to the right.",
           "ahead_and_right(state, offset_to(state, {X})) / SPAN", 2, (1.0, 2.0, 3.0)),
    Template("{x}_ahead_right_near", "relative egocentric", "The same, to scale within three cells.",
           "jnp.clip(ahead_and_right(state, offset_to(state, {X})) / 3.0, -1.0, 1.0)", 2),
    Template("{x}_turn", "relative egocentric", "Signs: whether the {a} is ahead or behind, right or left.",
           "jnp.sign(ahead_and_right(state, offset_to(state, {X}))).astype(jnp.float32)", 2),
    Template("{x}_distance", "distance", "Cells to the {a}, without regard to walls.",
           "jnp.reshape(distance_to(state, {X}) / SPAN, (1,))", 1, (1.0, 2.0)),
    Template("{x}_adjacent", "contact", "Whether the agent stands beside the {a}.",
           "flag(distance_to(state, {X}) == 1)"),
    Template("{x}_in_front", "contact front", "Whether the {a} is right in front of the agent.",
           "flag(same(tile_in_front(state), {X}))"),
    Template("{x}_held", "held", "Whether the agent holds the {a}.",
           "flag(is_held(state, {X}))"),
    Template("{x}_position", "position", "Row and column of the {a}; the agent's own while held.",
           "place_of(state, {X}) / SPAN", 2),
    Template("{x}_present", "position", "Whether the {a} lies on the grid.",
           "flag(is_on_grid(state, {X}))"),
    Template("{x}_mask_5x5", "local_view", "Cells of the 5x5 window that hold the {a}.",
           "window(same(state.grid, {X}).astype(jnp.float32), state, 2).reshape(-1)", 25),
    Template("{x}_front_free_beside", "placing", "Whether the cell in front is free and beside the {a}.",
           "flag(free_beside(state, front_cell(state), {X}))"),
    Template("{x}_free_side", "placing relative", "Rows and columns to the nearest free cell beside the {a}.",
           "(nearest_free_side(state, {X}) - state.agent.position) / SPAN", 2, (1.0, 2.0, 3.0)),
    Template("{x}_way", "walking expensive",
           "Which of the cells above, right, below, left are nearer to the {a} on foot.",
           "way_to(state, {X}, around(state.agent.position))", 4),
    Template("{x}_way_turned", "walking egocentric expensive",
           "Which of the cells ahead, right, behind, left are nearer to the {a} on foot.",
           "way_to(state, {X}, around_turned(state))", 4),
    Template("{x}_walk", "walking distance expensive", "Steps to the {a} on foot, doors counted as open.",
           "jnp.reshape(walk_to(state, {X}) / SPAN, (1,))", 1, (1.0, 0.5)),
)

PAIR_FEATURES = (
    Template("{x}_to_{y}", "relative pair", "Rows and columns from the {a} to the {b}.",
           "(place_of(state, {Y}) - place_of(state, {X})) / SPAN", 2, (1.0, 2.0)),
    Template("{x}_beside_{y}", "contact pair", "Whether the {a} lies beside the {b}.",
           "flag(lies_beside(state, {X}, {Y}))"),
)

TERMS = (
    Template("time_cost", "penalty time", "A cost for every step.", "-1.0", 1, EVERY_STEP),
    Template("bump", "penalty", "A cost for stepping forward without moving.",
           ("stayed = jnp.all(state.agent.position == next_state.agent.position)",
            "jnp.where((action == FORWARD) & stayed, -1.0, 0.0)"), 1, PENALTY),
    Template("turning", "penalty", "A cost for turning.",
           "jnp.where((action == TURN_RIGHT) | (action == TURN_LEFT), -1.0, 0.0)", 1, EVERY_STEP),
    Template("vain_pick_up", "penalty", "A cost for picking up without getting anything.",
           ("vain = state.agent.pocket[0] == next_state.agent.pocket[0]",
            "jnp.where((action == PICK_UP) & vain, -1.0, 0.0)"), 1, PENALTY),
    Template("vain_put_down", "penalty", "A cost for putting down without letting go of anything.",
           ("vain = state.agent.pocket[0] == next_state.agent.pocket[0]",
            "jnp.where((action == PUT_DOWN) & vain, -1.0, 0.0)"), 1, PENALTY),
    Template("put_down_anything", "penalty", "A cost for putting anything down.",
           "jnp.where(hands_emptied(state, next_state), -1.0, 0.0)", 1, (0.5, 0.2, 1.0)),
    Template("put_down_alone", "penalty", "A cost for putting something down with no object beside it.",
           ("kinds = kinds_at(next_state.grid, around(front_cell(state)))",
            "jnp.where(hands_emptied(state, next_state) & ~jnp.any(is_object(kinds)), -1.0, 0.0)"),
           1, (0.5, 0.2, 1.0)),
    Template("picked_up_anything", "milestone farmable", "Something was picked up.",
           "jnp.where((state.agent.pocket[0] == 0) & (next_state.agent.pocket[0] != 0), 1.0, 0.0)", 1, MILESTONE),
)

DOOR_TERMS = (
    Template("opened_door", "milestone door farmable", "A door was opened.",
           "jnp.where(open_doors(next_state) > open_doors(state), 1.0, 0.0)", 1, (0.5, 0.2, 1.0)),
    Template("vain_toggle", "penalty door", "A cost for toggling where there is no door.",
           "jnp.where((action == TOGGLE) & ~is_door(tile_in_front(state)[0]), -1.0, 0.0)", 1, PENALTY),
)

OBJECT_TERMS = (
    Template("picked_up_{x}", "milestone farmable", "The {a} was picked up, whatever a rule then made of it.",
           "jnp.where(was_picked_up(state, next_state, {X}), 1.0, 0.0)", 1, MILESTONE),
    Template("got_{x}", "milestone farmable", "The {a} came into the agent's hands.",
           "jnp.where(is_held(next_state, {X}) & ~is_held(state, {X}), 1.0, 0.0)", 1, MILESTONE),
    Template("put_something_beside_{x}", "milestone farmable", "Something was put down beside the {a}.",
           ("beside = is_beside(next_state, front_cell(state), {X})",
            "jnp.where(hands_emptied(state, next_state) & beside, 1.0, 0.0)"), 1, GOAL_LIKE),
    Template("put_down_{x}", "penalty", "A cost for putting the {a} down.",
           "jnp.where(was_put_down(state, next_state, {X}), -1.0, 0.0)", 1, (0.5, 1.0, 0.2)),
    Template("holding_{x}_potential", "potential",
           "Potential 1 while the {a} is held: pays for taking, charges for dropping.",
           "GAMMA * is_held(next_state, {X}) - is_held(state, {X})", 1, MILESTONE),
    Template("near_{x}_potential", "potential", "Potential: minus the cells to the {a}, 0 if held or gone.",
           "distance_to(state, {X}) - GAMMA * distance_to(next_state, {X})", 1, PER_CELL),
    Template("walk_to_{x}_potential", "potential walking expensive",
           "Potential: minus the steps to the {a} on foot, 0 if held or gone.",
           "walk_to(state, {X}) - GAMMA * walk_to(next_state, {X})", 1, PER_CELL),
    Template("closer_to_{x}_empty_handed", "shaping early", "Cells gained on the {a} while nothing is held.",
           "jnp.where(state.agent.pocket[0] == 0, gain_on(state, next_state, {X}), 0.0)", 1, PER_CELL),
    Template("closer_to_{x}_carrying", "shaping late", "Cells gained on the {a} while something is held.",
           "jnp.where(state.agent.pocket[0] != 0, gain_on(state, next_state, {X}), 0.0)", 1, PER_CELL),
    Template("walk_to_{x}_empty_handed", "shaping walking expensive early",
           "Steps gained on the {a}, on foot, while nothing is held.",
           "jnp.where(state.agent.pocket[0] == 0, walk_gain_on(state, next_state, {X}), 0.0)", 1, PER_CELL),
    Template("walk_to_{x}_carrying", "shaping walking expensive late",
           "Steps gained on the {a}, on foot, while something is held.",
           "jnp.where(state.agent.pocket[0] != 0, walk_gain_on(state, next_state, {X}), 0.0)", 1, PER_CELL),
    Template("reached_{x}", "milestone farmable", "The agent came to stand beside the {a}.",
           ("before, after = distance_to(state, {X}), distance_to(next_state, {X})",
            "jnp.where((before > 1) & (after == 1), 1.0, 0.0)"), 1, BONUS),
    Template("turned_to_{x}", "bonus farmable", "The agent came to face the {a}.",
           "jnp.where(faces(next_state, {X}) & ~faces(state, {X}), 1.0, 0.0)", 1, BONUS),
    Template("facing_{x}", "bonus farmable", "The agent faces the {a}.",
           "jnp.where(faces(next_state, {X}), 1.0, 0.0)", 1, BONUS),
    Template("beside_{x}", "bonus farmable", "The agent stands beside the {a}.",
           "jnp.where(distance_to(next_state, {X}) == 1, 1.0, 0.0)", 1, BONUS),
    Template("holding_{x}", "bonus farmable", "The {a} is held.",
           "jnp.where(is_held(next_state, {X}), 1.0, 0.0)", 1, BONUS),
)

ORDERED_PAIR_TERMS = (
    Template("put_{x}_beside_{y}", "milestone", "The {a} was put down beside the {b}.",
           ("beside = is_beside(next_state, front_cell(state), {Y})",
            "jnp.where(was_put_down(state, next_state, {X}) & beside, 1.0, 0.0)"), 1, GOAL_LIKE),
    Template("put_{x}_away_from_{y}", "penalty", "A cost for putting the {a} down elsewhere than beside the {b}.",
           ("beside = is_beside(next_state, front_cell(state), {Y})",
            "jnp.where(was_put_down(state, next_state, {X}) & ~beside, -1.0, 0.0)"), 1, (0.5, 1.0, 2.0)),
    Template("closer_to_{y}_with_{x}", "shaping", "Cells gained on the {b} while the {a} is held.",
           ("carried = is_held(state, {X}) & is_held(next_state, {X})",
            "jnp.where(carried, gain_on(state, next_state, {Y}), 0.0)"), 1, PER_CELL),
    Template("walk_to_{y}_with_{x}", "shaping walking expensive",
           "Steps gained on the {b}, on foot, while the {a} is held.",
           ("carried = is_held(state, {X}) & is_held(next_state, {X})",
            "jnp.where(carried, walk_gain_on(state, next_state, {Y}), 0.0)"), 1, PER_CELL),
    Template("ready_to_put_{x}_beside_{y}", "bonus farmable",
           "The {a} is held and the free cell in front is beside the {b}.",
           ("ready = free_beside(next_state, front_cell(next_state), {Y})",
            "jnp.where(is_held(next_state, {X}) & ready, 1.0, 0.0)"), 1, BONUS),
)

PAIR_TERMS = (
    Template("gap_{x}_{y}_potential", "potential pair",
           "Potential: minus the cells between {a} and {b}, what is held being at the agent.",
           ("before = gap_between(state, {X}, {Y})",
            "after = gap_between(next_state, {X}, {Y})",
            "before - GAMMA * after"), 1, PER_CELL),
    Template("{x}_lies_beside_{y}", "bonus pair farmable", "The {a} lies beside the {b}.",
           "jnp.where(lies_beside(next_state, {X}, {Y}), 1.0, 0.0)", 1, BONUS),
)
