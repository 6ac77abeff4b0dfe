import jax
import jax.numpy as jnp

H = 9
W = 9
PYRAMID = 5
BLUE = 3
DIRECTIONS = jnp.array([[-1, 0], [0, 1], [1, 0], [0, -1]])


def _front(state):
    delta = DIRECTIONS[state.agent.direction]
    row = jnp.clip(state.agent.position[0] + delta[0], 0, H - 1)
    col = jnp.clip(state.agent.position[1] + delta[1], 0, W - 1)
    return state.grid[row, col, 0], state.grid[row, col, 1]


def _locate(grid):
    yy, xx = jnp.meshgrid(jnp.arange(H), jnp.arange(W), indexing="ij")
    mask = ((grid[:, :, 0] == PYRAMID) & (grid[:, :, 1] == BLUE)).astype(jnp.float32)
    count = jnp.sum(mask)
    row = jnp.sum(yy * mask) / jnp.maximum(count, 1.0)
    col = jnp.sum(xx * mask) / jnp.maximum(count, 1.0)
    return row, col, count > 0


def get_observation(state):
    """174 features: pose, pocket, pyramid, local 7x7 map."""
    grid = state.grid
    agent_row = state.agent.position[0]
    agent_col = state.agent.position[1]
    agent_y = agent_row.astype(jnp.float32) / (H - 1)
    agent_x = agent_col.astype(jnp.float32) / (W - 1)
    dir_oh = jax.nn.one_hot(state.agent.direction, 4)
    pocket_tile = state.agent.pocket[0].astype(jnp.float32) / 12.0
    pocket_color = state.agent.pocket[1].astype(jnp.float32) / 11.0
    holding = (state.agent.pocket[0] == PYRAMID) & (state.agent.pocket[1] == BLUE)

    bp_row, bp_col, exists = _locate(grid)
    bp_y = bp_row / (H - 1)
    bp_x = bp_col / (W - 1)
    rel_y = (bp_row - agent_row) / H
    rel_x = (bp_col - agent_col) / W
    dist = (jnp.abs(rel_y) + jnp.abs(rel_x)) / 2.0

    front_tile, front_color = _front(state)
    facing = (front_tile == PYRAMID) & (front_color == BLUE)

    local_tiles = []
    local_colors = []
    local_is_bp = []
    for dy in range(-3, 4):
        for dx in range(-3, 4):
            row = jnp.clip(agent_row + dy, 0, H - 1)
            col = jnp.clip(agent_col + dx, 0, W - 1)
            tile = grid[row, col, 0]
            color = grid[row, col, 1]
            local_tiles.append(tile.astype(jnp.float32) / 12.0)
            local_colors.append(color.astype(jnp.float32) / 11.0)
            local_is_bp.append(((tile == PYRAMID) & (color == BLUE)).astype(jnp.float32))

    features = [
        agent_y,
        agent_x,
        *[dir_oh[i] for i in range(4)],
        pocket_tile,
        pocket_color,
        holding.astype(jnp.float32),
        bp_y,
        bp_x,
        exists.astype(jnp.float32),
        rel_y,
        rel_x,
        dist,
        (rel_y < 0).astype(jnp.float32),
        (rel_y > 0).astype(jnp.float32),
        (rel_x < 0).astype(jnp.float32),
        (rel_x > 0).astype(jnp.float32),
        facing.astype(jnp.float32),
        (dist * H <= 1.0).astype(jnp.float32),
        front_tile.astype(jnp.float32) / 12.0,
        front_color.astype(jnp.float32) / 11.0,
        state.step_num.astype(jnp.float32) / 80.0,
        agent_y - 0.5,
        agent_x - 0.5,
        jnp.asarray(1.0, dtype=jnp.float32),
    ]
    features.extend(local_tiles)
    features.extend(local_colors)
    features.extend(local_is_bp)
    return jnp.stack(features).astype(jnp.float32)


def compute_reward(state, action, next_state):
    was_holding = (state.agent.pocket[0] == PYRAMID) & (state.agent.pocket[1] == BLUE)
    holding_now = (next_state.agent.pocket[0] == PYRAMID) & (next_state.agent.pocket[1] == BLUE)
    just_picked_up = holding_now & (~was_holding)

    bp_row, bp_col, exists = _locate(state.grid)
    dist_before = jnp.abs(state.agent.position[0] - bp_row) + jnp.abs(state.agent.position[1] - bp_col)
    dist_after = jnp.abs(next_state.agent.position[0] - bp_row) + jnp.abs(next_state.agent.position[1] - bp_col)
    became_adjacent = (dist_after <= 1.0) & (dist_before > 1.0)
    front_tile, front_color = _front(next_state)
    facing_pyramid = (front_tile == PYRAMID) & (front_color == BLUE)
    searching = (exists & ~holding_now).astype(jnp.float32)
    reward = (
        10.0 * just_picked_up.astype(jnp.float32)
        + 0.5 * (dist_before - dist_after) * searching
        + 0.5 * became_adjacent.astype(jnp.float32) * searching
        + 1.0 * facing_pyramid.astype(jnp.float32)
        - 0.005
    )
    return reward
