# Task: xland-medium (put the yellow pyramid next to the green square; 9x9 room, 80 steps).
# What: the baseline, raw 7x7 egocentric view and the sparse reward of the task.
# By: written by hand.
# Score: success 0.266 +- 0.104 over 10 seeds of 500,000 steps (mean and standard error).
# Again: scripts/train.py --task xland-medium --interfaces interfaces/xland_medium/sparse.py --seeds 10 --steps 500000
import jax.numpy as jnp

PYRAMID = 5
YELLOW = 5
SQUARE = 4
GREEN = 2
PUT_DOWN = 4
VIEW = 7


def heading(state):
    """The step, in rows and columns, that the agent would take forward."""
    up, right, down, left = [state.agent.direction == k for k in range(4)]
    return jnp.stack([down * 1 - up * 1, right * 1 - left * 1])


def get_observation(state):
    """Tile and colour ids of the 7x7 cells ahead: the agent stands in the middle of the last row."""
    ahead = heading(state)
    right = jnp.stack([ahead[1], -ahead[0]])
    steps_ahead = jnp.arange(VIEW - 1, -1, -1)[:, None, None]
    steps_right = jnp.arange(-(VIEW // 2), VIEW // 2 + 1)[None, :, None]
    cells = state.agent.position + steps_ahead * ahead + steps_right * right + VIEW
    grid = jnp.pad(state.grid, ((VIEW, VIEW), (VIEW, VIEW), (0, 0)))
    return grid[cells[:, :, 0], cells[:, :, 1]].reshape(-1).astype(jnp.float32)


def same(tiles, kind, colour):
    return (tiles[..., 0] == kind) & (tiles[..., 1] == colour)


def goal_reached(state, action, next_state):
    """The goal is looked for on a put-down alone, at the cell in front: one tile there, the other beside it."""
    front = state.agent.position + heading(state)
    cells = front + jnp.array([[-1, 0], [0, 1], [1, 0], [0, -1]])
    there = next_state.grid[front[0], front[1]]
    beside = next_state.grid[cells[:, 0], cells[:, 1]]
    pyramid_there = same(there, PYRAMID, YELLOW) & jnp.any(same(beside, SQUARE, GREEN))
    square_there = same(there, SQUARE, GREEN) & jnp.any(same(beside, PYRAMID, YELLOW))
    return (action == PUT_DOWN) & (pyramid_there | square_there)


def compute_reward(state, action, next_state):
    """1 on the step that reaches the goal."""
    goal = goal_reached(state, action, next_state).astype(jnp.float32)
    return goal, {"goal": goal}
