# Task: xland-easy (pick up the blue pyramid; 9x9 room, 80 steps).
# What: the pyramid in the agent's frame, and a reward for coming closer in moves.
# By: written by hand.
# Score: success 1.000 +- 0.000 over 10 seeds of 500,000 steps (mean and standard error).
# Again: scripts/train.py --task xland-easy --interfaces interfaces/xland_easy/expert.py --seeds 10 --steps 500000
import jax.numpy as jnp

WALL = 2
BALL = 3
PYRAMID = 5
BLUE = 3
PICK_UP = 3
SPAN = 8.0
HORIZON = 80.0


def same(tiles, kind, colour):
    return (tiles[..., 0] == kind) & (tiles[..., 1] == colour)


def heading(state):
    """The step, in rows and columns, that the agent would take forward."""
    up, right, down, left = [state.agent.direction == k for k in range(4)]
    return jnp.stack([down * 1 - up * 1, right * 1 - left * 1])


def pyramid_ahead_right(state):
    """Cells to the pyramid, ahead of the agent and to its right; (0, 0) once it is held."""
    here = same(state.grid, PYRAMID, BLUE)
    rows = jnp.arange(here.shape[0])[:, None]
    columns = jnp.arange(here.shape[1])[None, :]
    down = jnp.sum(jnp.where(here, rows - state.agent.position[0], 0))
    across = jnp.sum(jnp.where(here, columns - state.agent.position[1], 0))
    ahead = heading(state)
    return down * ahead[0] + across * ahead[1], across * -ahead[0] + down * ahead[1]


def potential(state):
    """Minus the moves to go, in twenties: cells to walk and turns to take, the ball in hand 4 more."""
    ahead, right = pyramid_ahead_right(state)
    turns = jnp.where(ahead < 0, 2, jnp.abs(jnp.sign(right)))
    moves = jnp.abs(ahead) + jnp.abs(right) + turns
    return -(moves + 4 * (state.agent.pocket[0] == BALL)) / 20.0


def get_observation(state):
    ahead, right = pyramid_ahead_right(state)
    forward = heading(state)
    turned = jnp.stack([forward[1], -forward[0]])
    around = state.agent.position + jnp.stack([forward, turned, -turned])
    tiles = state.grid[around[:, 0], around[:, 1]]
    place = jnp.stack([ahead, right])
    return jnp.concatenate(
        [
            place / SPAN,
            jnp.sign(place),
            jnp.stack([right == 0, ahead == 0, same(tiles[0], PYRAMID, BLUE)]),
            tiles[:, 0] == WALL,
            tiles[:, 0] == BALL,
            jnp.stack([state.agent.pocket[0] == BALL]),
            jnp.stack([state.step_num / HORIZON]),
        ]
    ).astype(jnp.float32)


def compute_reward(state, action, next_state):
    """The goal, and progress: differences of a potential, which sum to no more than its span."""
    goal = (action == PICK_UP) & same(next_state.agent.pocket, PYRAMID, BLUE)
    goal = goal.astype(jnp.float32)
    progress = potential(next_state) - potential(state)
    return goal + progress, {"goal": goal, "progress": progress}
