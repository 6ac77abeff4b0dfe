import jax
import jax.numpy as jnp

H = 13
W = 13
FLOOR = 1
BALL = 3
PYRAMID = 5
HEX = 11
GREEN = 2
BLUE = 3
YELLOW = 5
DIRECTIONS = jnp.array([[-1, 0], [0, 1], [1, 0], [0, -1]], dtype=jnp.int32)


def find(grid, tile, color):
    mask = ((grid[:, :, 0] == tile) & (grid[:, :, 1] == color)).astype(jnp.float32)
    yy, xx = jnp.meshgrid(jnp.arange(H), jnp.arange(W), indexing="ij")
    count = jnp.maximum(jnp.sum(mask), 1.0)
    return jnp.stack([jnp.sum(yy * mask) / count, jnp.sum(xx * mask) / count]), (jnp.sum(mask) > 0).astype(jnp.float32)


def at(grid, y, x):
    y = jnp.clip(y, 0, H - 1).astype(jnp.int32)
    x = jnp.clip(x, 0, W - 1).astype(jnp.int32)
    return grid[y, x]


def best_placement(grid, agent, hex_pos):
    best = hex_pos
    best_dist = jnp.float32(100.0)
    free = []
    for d in range(4):
        cell = hex_pos + DIRECTIONS[d].astype(jnp.float32)
        is_floor = at(grid, cell[0], cell[1])[0] == FLOOR
        dist = jnp.sum(jnp.abs(cell - agent))
        closer = dist < best_dist
        best = jax.lax.select(is_floor & closer, cell, best)
        best_dist = jax.lax.select(is_floor & closer, dist, best_dist)
        free.extend([is_floor.astype(jnp.float32), jnp.minimum(dist, 26.0) / 26.0])
    return best, best_dist, free


def get_observation(state):
    grid = state.grid
    pocket = state.agent.pocket
    agent = state.agent.position.astype(jnp.float32)
    size = jnp.array([H - 1.0, W - 1.0])
    holding_gb = ((pocket[0] == BALL) & (pocket[1] == GREEN)).astype(jnp.float32)
    bp_pos, bp_exists = find(grid, PYRAMID, BLUE)
    hex_pos, hex_exists = find(grid, HEX, YELLOW)
    ball_pos, ball_exists = find(grid, BALL, GREEN)

    def location(pos, exists):
        rel = (pos - agent) / size
        return [*(pos / size), *rel, jnp.sum(jnp.abs(pos - agent)) / (H + W), exists]

    neighbors = []
    for d in range(4):
        cell = at(grid, state.agent.position[0] + DIRECTIONS[d, 0], state.agent.position[1] + DIRECTIONS[d, 1])
        neighbors.append(cell[0] / 12.0)
        neighbors.append(cell[1] / 11.0)
        neighbors.append((cell[0] == FLOOR).astype(jnp.float32))

    best, best_dist, hex_neighbors = best_placement(grid, agent, hex_pos)
    placed = ball_exists * (jnp.sum(jnp.abs(ball_pos - hex_pos)) <= 1.0)
    phase = [(1.0 - holding_gb) * (1.0 - placed), holding_gb, placed]
    target = jax.lax.select(holding_gb > 0.5, best, jax.lax.select(ball_exists > 0.5, ball_pos, bp_pos))
    to_target = target - agent

    local_grid = []
    local_walkable = []
    for dy in range(-2, 3):
        for dx in range(-2, 3):
            cell = at(grid, state.agent.position[0] + dy, state.agent.position[1] + dx)
            local_grid.extend([cell[0] / 12.0, cell[1] / 11.0])
            local_walkable.append((cell[0] == FLOOR).astype(jnp.float32))

    front_delta = DIRECTIONS[state.agent.direction]
    front_pos = state.agent.position + front_delta
    front = at(grid, front_pos[0], front_pos[1])
    front_floor = (front[0] == FLOOR).astype(jnp.float32)
    front_adj = (jnp.sum(jnp.abs(front_pos.astype(jnp.float32) - hex_pos)) <= 1.0).astype(jnp.float32)

    valid = 0.0
    for d in range(4):
        cell = agent + DIRECTIONS[d].astype(jnp.float32)
        is_floor = (at(grid, cell[0], cell[1])[0] == FLOOR).astype(jnp.float32)
        adj_to_hex = (jnp.sum(jnp.abs(cell - hex_pos)) <= 1.0).astype(jnp.float32)
        valid = valid + is_floor * adj_to_hex

    return jnp.concatenate(
        [
            agent / size,
            jax.nn.one_hot(state.agent.direction, 4),
            jnp.array([pocket[0] / 12.0, pocket[1] / 11.0, holding_gb]),
            jnp.array(location(bp_pos, bp_exists)),
            jnp.array(location(hex_pos, hex_exists)),
            jnp.array([*(ball_pos / size), *((ball_pos - agent) / size), ball_exists]),
            jnp.array(neighbors),
            jnp.array(hex_neighbors),
            jnp.array([*(best / size), *((best - agent) / size), best_dist / 26.0, (best_dist < 99.0) * 1.0]),
            jnp.array(phase),
            jnp.array([*(target / size), *(to_target / size), jnp.sum(jnp.abs(to_target)) / 26.0]),
            jnp.array([to_target[0] < 0, to_target[0] > 0, to_target[1] < 0, to_target[1] > 0]) * 1.0,
            jnp.array(local_grid),
            jnp.array(local_walkable),
            jnp.array([front[0] / 12.0, front[1] / 11.0, front_floor, front_adj, front_floor * front_adj * holding_gb]),
            jnp.array([valid / 4.0, state.step_num / 400.0, (agent[0] < H // 2) * 1.0]),
        ]
    ).astype(jnp.float32)


def compute_reward(state, action, next_state):
    def read(s):
        holding = (s.agent.pocket[0] == BALL) & (s.agent.pocket[1] == GREEN)
        agent = s.agent.position.astype(jnp.float32)
        bp_pos, bp_exists = find(s.grid, PYRAMID, BLUE)
        hex_pos, _ = find(s.grid, HEX, YELLOW)
        ball_pos, ball_exists = find(s.grid, BALL, GREEN)
        goal = jax.lax.select(ball_exists > 0.5, ball_pos, bp_pos)
        adjacent = (ball_exists > 0.5) & (jnp.sum(jnp.abs(ball_pos - hex_pos)) <= 1.0)
        best, best_dist, _ = best_placement(s.grid, agent, hex_pos)
        return holding, jnp.sum(jnp.abs(agent - goal)), jnp.sum(jnp.abs(agent - hex_pos)), best_dist, adjacent

    was_holding, d_pyramid, d_hex, d_best, _ = read(state)
    now_holding, next_d_pyramid, next_d_hex, next_d_best, ball_adj_to_hex = read(next_state)
    just_picked_up = (~was_holding) & now_holding
    ball_placed = was_holding & (~now_holding)
    success = ball_placed & ball_adj_to_hex
    free = (~was_holding & ~now_holding).astype(jnp.float32)
    carrying = (was_holding & now_holding).astype(jnp.float32)
    delta_to_pyramid = jnp.clip(d_pyramid - next_d_pyramid, -1.0, 1.0)
    delta_to_hex = jnp.clip(d_hex - next_d_hex, -1.0, 1.0)
    delta_to_best = jnp.clip(d_best - next_d_best, -1.0, 1.0)
    just_reached = ((d_hex > 2.0) & (next_d_hex <= 2.0)).astype(jnp.float32) * carrying
    front = next_state.agent.position + DIRECTIONS[next_state.agent.direction]
    hex_pos, _ = find(next_state.grid, HEX, YELLOW)
    front_floor = at(next_state.grid, front[0], front[1])[0] == FLOOR
    ready = front_floor & (jnp.sum(jnp.abs(front.astype(jnp.float32) - hex_pos)) <= 1.0)
    return (
        20.0 * success
        + 5.0 * just_picked_up
        - 5.0 * (ball_placed & (~ball_adj_to_hex))
        + 3.0 * delta_to_pyramid * free
        + 3.0 * delta_to_hex * carrying
        + 1.5 * delta_to_best * carrying
        + 3.0 * just_reached
        + 0.5 * ready * carrying
        - 0.01
    )
