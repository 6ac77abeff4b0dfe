"""The vocabulary of Flappy Bird: what a genetic proposer may build observations and rewards from."""

from __future__ import annotations

from jaxreward.records import Vocabulary
from jaxreward.tasks.fragment_template import Template, make_vocabulary

HELPERS = '''
def bell(x, width):
    return jnp.exp(-((x / width) ** 2))


def ahead(state):
    """Whether the first pipe from the left is not behind the bird."""
    return state.last_pipe_x + 52.0 > state.player_x


def pipe_end(state):
    """How far the right edge of the pipe ahead is from the bird (pixels)."""
    return jnp.where(ahead(state), state.last_pipe_x, state.next_pipe_x) + 52.0 - state.player_x


def middle(state):
    return state.player_y + 0.5 * state.player_height


def to_top(state):
    """How far the bird is below where the gap ahead begins (pixels)."""
    return state.player_y - jnp.where(ahead(state), state.last_top_pipe_y, state.next_top_pipe_y)


def to_bottom(state):
    """How far the bird is above where the gap ahead ends (pixels)."""
    bottom = jnp.where(ahead(state), state.last_bottom_pipe_y, state.next_bottom_pipe_y)
    return bottom - state.player_y - state.player_height


def off(state):
    """How far the bird is below the middle of the gap ahead (pixels)."""
    return 0.5 * (to_top(state) - to_bottom(state))


def nearer(state, next_state):
    """How much nearer the bird came to the middle of the gap that was ahead (pixels)."""
    return jnp.abs(off(state)) - jnp.abs(off(state) + next_state.player_y - state.player_y)


def off_after(state):
    """The same of the gap behind it; of a pipe that is not on the screen the middle is 256."""
    top = jnp.where(ahead(state), state.next_top_pipe_y, state.next_next_top_pipe_y)
    bottom = jnp.where(ahead(state), state.next_bottom_pipe_y, state.next_next_bottom_pipe_y)
    return middle(state) - 0.5 * (top + bottom)
'''

NEAR = (1.0, 3.0, 0.3)
STEP = (0.1, 0.3, 0.03)
EVENT = (3.0, 10.0, 1.0)

FEATURES = (
    Template("bird", "basic bird", "Height of the bird, its velocity and its rotation, each about in [-1, 1].",
             "jnp.stack([state.player_y / 256.0 - 1.0, state.player_y_velocity / 10.0, state.player_rotation / 90.0])",
             3),
    Template("pipes", "basic pipe", "Where the three pipes and their gaps are, in screens.",
             ("xs = jnp.stack([state.last_pipe_x, state.next_pipe_x, state.next_next_pipe_x]) / 288.0",
              "tops = jnp.stack([state.last_top_pipe_y, state.next_top_pipe_y, state.next_next_top_pipe_y]) / 512.0",
              "ends = jnp.stack([state.last_bottom_pipe_y, state.next_bottom_pipe_y, state.next_next_bottom_pipe_y])",
              "jnp.concatenate([xs, tops, ends / 512.0])"), 9),
    Template("gap_offset", "gap", "How far the bird is below the middle of the gap ahead, in half gaps.",
             "off(state)[None] / (0.5 * GAP)"),
    Template("gap_offset_fine", "gap scales", "The same, saturating at about a quarter of a gap.",
             "jnp.tanh(off(state) / (0.25 * GAP))[None]"),
    Template("gap_edges", "gap scales", "How far the bird is from the ends of the gap ahead, in half gaps.",
             "jnp.stack([to_top(state), to_bottom(state)]) / (0.5 * GAP)", 2),
    Template("offset_soon", "gap bird", "How far below that middle the bird would be in five steps at its velocity.",
             "(off(state) + 5.0 * state.player_y_velocity)[None] / (0.5 * GAP)"),
    Template("pipe_distance", "pipe", "How far the end of the pipe ahead is, in half screens.",
             "pipe_end(state)[None] / 144.0"),
    Template("pipe_near", "pipe scales", "Whether the pipe ahead is over or under the bird.",
             "(pipe_end(state) < 86.0).astype(jnp.float32)[None]"),
    Template("offset_after", "gap pipe", "How far the bird is below the middle of the gap behind that, in gaps.",
             "off_after(state)[None] / GAP"),
    Template("falling", "bird", "Whether the bird falls.", "(state.player_y_velocity > 0.0).astype(jnp.float32)[None]"),
)  # fmt: skip

TERMS = (
    Template("alive", "bonus", "One for every step that the bird lives through.",
             "1.0 - next_state.player_dead.astype(jnp.float32)", 1, STEP),
    Template("death_cost", "penalty event", "Minus one when the bird dies.",
             "-next_state.player_dead.astype(jnp.float32)", 1, EVENT),
    Template("pipe_bonus", "event pipe", "One for every pipe that is passed.",
             "next_state.pipe_passed.astype(jnp.float32)", 1, EVENT),
    Template("offset_cost", "shaping gap", "Minus the distance from the middle of the gap ahead, in half gaps.",
             "-jnp.abs(off(next_state)) / (0.5 * GAP)", 1, STEP),
    Template("in_gap", "shaping gap", "Whether the bird is as high as the gap ahead.",
             "((to_top(next_state) > 0.0) & (to_bottom(next_state) > 0.0)).astype(jnp.float32)", 1, STEP),
    Template("near_middle", "shaping gap", "A bell of half a gap around the middle of the gap ahead.",
             "bell(off(next_state), 0.5 * GAP)", 1, STEP),
    Template("near_low", "shaping gap", "A bell of a quarter of a gap around 15 pixels below that middle.",
             "bell(off(next_state) - 15.0, 0.25 * GAP)", 1, STEP),
    Template("closer", "shaping potential gap",
             "How much nearer the bird came to the middle of the gap that was ahead, in half gaps.",
             "nearer(state, next_state) / (0.5 * GAP)", 1, NEAR),
    Template("near_after", "shaping pipe", "A bell of a gap around the middle of the gap behind the one ahead.",
             "bell(off_after(next_state), GAP)", 1, STEP),
    Template("edge_cost", "penalty gap", "Minus how far the bird is outside the gap ahead, in half gaps.",
             "jnp.minimum(jnp.minimum(to_top(next_state), to_bottom(next_state)), 0.0) / (0.5 * GAP)", 1, STEP),
    Template("high_cost", "penalty bird", "Minus one in the upper fifth of the screen.",
             "-(next_state.player_y < 100.0).astype(jnp.float32)", 1, STEP),
    Template("low_cost", "penalty bird", "Minus one near the ground.",
             "-(next_state.player_y > 320.0).astype(jnp.float32)", 1, STEP),
    Template("flap_cost", "penalty action", "Minus one for a flap.", "-(action == 1).astype(jnp.float32)", 1, STEP),
    Template("speed_cost", "penalty bird", "Minus the squared velocity of the bird, in its largest.",
             "-((next_state.player_y_velocity / 10.0) ** 2)", 1, STEP),
)  # fmt: skip


def vocabulary(gap: int) -> Vocabulary:
    """Features and terms for gaps of `gap` pixels."""
    return make_vocabulary(FEATURES, TERMS, HELPERS, {"GAP": repr(float(gap))})
