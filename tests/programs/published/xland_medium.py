import jax
import jax.numpy as jnp

H = 9
W = 9
FLOOR = 1
PYRAMID = 5
SQUARE = 4
GREEN = 2
YELLOW = 5
DIRECTIONS = jnp.array([[-1, 0], [0, 1], [1, 0], [0, -1]])


def _locate(grid, tile, color):
    yy, xx = jnp.meshgrid(jnp.arange(H), jnp.arange(W), indexing="ij")
    mask = (grid[:, :, 0] == tile) & (grid[:, :, 1] == color)
    count = jnp.sum(mask)
    y = jnp.sum(yy * mask) / jnp.maximum(count, 1)
    x = jnp.sum(xx * mask) / jnp.maximum(count, 1)
    return y.astype(jnp.float32), x.astype(jnp.float32), (count > 0).astype(jnp.float32)


def _manhattan(ay, ax, by, bx):
    return jnp.abs(ay - by) + jnp.abs(ax - bx)


def get_observation(state):
    grid = state.grid
    pocket = state.agent.pocket
    row, col = state.agent.position[0], state.agent.position[1]
    agent_y = row.astype(jnp.float32)
    agent_x = col.astype(jnp.float32)
    agent_pos = jnp.array([agent_y / (H - 1), agent_x / (W - 1)])
    dir_oh = jax.nn.one_hot(state.agent.direction, 4)
    holding_yp = ((pocket[0] == PYRAMID) & (pocket[1] == YELLOW)).astype(jnp.float32)
    pocket_feats = jnp.array([pocket[0] / 12.0, pocket[1] / 11.0, holding_yp])

    yp_y, yp_x, yp_exists = _locate(grid, PYRAMID, YELLOW)
    gs_y, gs_x, gs_exists = _locate(grid, SQUARE, GREEN)
    obj_pos = jnp.array([yp_y / (H - 1), yp_x / (W - 1), yp_exists, gs_y / (H - 1), gs_x / (W - 1), gs_exists])
    rels = jnp.array(
        [
            (yp_y - agent_y) / H,
            (yp_x - agent_x) / W,
            (gs_y - agent_y) / H,
            (gs_x - agent_x) / W,
            (gs_y - yp_y) / H,
            (gs_x - yp_x) / W,
        ]
    )
    dist_agent_yp = _manhattan(agent_y, agent_x, yp_y, yp_x)
    dist_agent_gs = _manhattan(agent_y, agent_x, gs_y, gs_x)
    dist_yp_gs = _manhattan(yp_y, yp_x, gs_y, gs_x)
    dists = jnp.array([dist_agent_yp, dist_agent_gs, dist_yp_gs]) / (H + W)

    yp_adj_gs = ((dist_yp_gs <= 1.0) & (yp_exists > 0.5) & (gs_exists > 0.5)).astype(jnp.float32)
    phase_pickup = (1.0 - holding_yp) * (1.0 - yp_adj_gs)
    phase_carry = holding_yp
    phase_done = yp_adj_gs * (1.0 - holding_yp)
    phases = jnp.array([phase_pickup, phase_carry, phase_done])

    best_dist = jnp.array(1e3, dtype=jnp.float32)
    best_y = gs_y
    best_x = gs_x
    found = jnp.array(0.0, dtype=jnp.float32)
    gs_free = []
    for d in range(4):
        ny = jnp.clip(gs_y.astype(jnp.int32) + DIRECTIONS[d, 0], 0, H - 1)
        nx = jnp.clip(gs_x.astype(jnp.int32) + DIRECTIONS[d, 1], 0, W - 1)
        is_floor = grid[ny, nx, 0] == FLOOR
        gs_free.append(is_floor.astype(jnp.float32))
        dist = _manhattan(agent_y, agent_x, ny.astype(jnp.float32), nx.astype(jnp.float32))
        better = is_floor & (dist < best_dist)
        best_dist = jnp.where(better, dist, best_dist)
        best_y = jnp.where(better, ny.astype(jnp.float32), best_y)
        best_x = jnp.where(better, nx.astype(jnp.float32), best_x)
        found = jnp.maximum(found, is_floor.astype(jnp.float32))
    best_adj = jnp.array(
        [
            best_y / (H - 1),
            best_x / (W - 1),
            (best_y - agent_y) / H,
            (best_x - agent_x) / W,
            jnp.minimum(best_dist, 20.0) / 20.0,
            found,
        ]
    )

    delta = DIRECTIONS[state.agent.direction]
    front_y = jnp.clip(row + delta[0], 0, H - 1)
    front_x = jnp.clip(col + delta[1], 0, W - 1)
    front_tile = grid[front_y, front_x, 0]
    front_color = grid[front_y, front_x, 1]
    front_is_floor = (front_tile == FLOOR).astype(jnp.float32)
    front_to_gs = _manhattan(front_y.astype(jnp.float32), front_x.astype(jnp.float32), gs_y, gs_x)
    front_adj_to_gs = (front_to_gs <= 1.0).astype(jnp.float32)
    front_ideal_putdown = front_is_floor * front_adj_to_gs
    front_is_yp = ((front_tile == PYRAMID) & (front_color == YELLOW)).astype(jnp.float32)
    front = jnp.array(
        [front_tile / 12.0, front_color / 11.0, front_is_floor, front_adj_to_gs, front_ideal_putdown, front_is_yp]
    )

    local = []
    for dy in range(-2, 3):
        for dx in range(-2, 3):
            y = jnp.clip(row + dy, 0, H - 1)
            x = jnp.clip(col + dx, 0, W - 1)
            local.append(grid[y, x, 0] / 12.0)
            local.append(grid[y, x, 1] / 11.0)
    walkable = []
    for d in range(4):
        y = jnp.clip(row + DIRECTIONS[d, 0], 0, H - 1)
        x = jnp.clip(col + DIRECTIONS[d, 1], 0, W - 1)
        walkable.append((grid[y, x, 0] == FLOOR).astype(jnp.float32))

    flags = jnp.array(
        [
            yp_adj_gs,
            ((dist_agent_yp <= 1.0) & (yp_exists > 0.5)).astype(jnp.float32),
            (dist_agent_gs <= 1.0).astype(jnp.float32),
            ((front_tile == SQUARE) & (front_color == GREEN)).astype(jnp.float32),
        ]
    )
    return jnp.concatenate(
        [
            agent_pos,
            dir_oh,
            pocket_feats,
            obj_pos,
            rels,
            dists,
            phases,
            best_adj,
            front,
            jnp.array([state.step_num / 80.0]),
            jnp.array(local),
            jnp.stack(walkable),
            jnp.stack(gs_free),
            flags,
        ]
    ).astype(jnp.float32)


def compute_reward(state, action, next_state):
    def holding(s):
        return (s.agent.pocket[0] == PYRAMID) & (s.agent.pocket[1] == YELLOW)

    def summary(s):
        ay = s.agent.position[0].astype(jnp.float32)
        ax = s.agent.position[1].astype(jnp.float32)
        yp_y, yp_x, yp_exists = _locate(s.grid, PYRAMID, YELLOW)
        gs_y, gs_x, _ = _locate(s.grid, SQUARE, GREEN)
        adjacent = (_manhattan(yp_y, yp_x, gs_y, gs_x) <= 1.0) & (yp_exists > 0.5)
        return _manhattan(ay, ax, yp_y, yp_x), _manhattan(ay, ax, gs_y, gs_x), adjacent

    was_holding = holding(state)
    now_holding = holding(next_state)
    d_yp, d_gs, was_adjacent = summary(state)
    next_d_yp, next_d_gs, now_adjacent = summary(next_state)
    was_success = was_adjacent & (~was_holding)
    just_picked_up = (~was_holding) & now_holding
    placed = was_holding & (~now_holding)
    just_succeeded = (~was_success) & now_adjacent & (~now_holding)
    placed_adjacent = placed & now_adjacent
    placed_wrong_spot = placed & (~now_adjacent)
    free = (~was_holding & ~now_holding).astype(jnp.float32)
    carrying = (was_holding & now_holding).astype(jnp.float32)
    delta_to_pyramid = jnp.clip(d_yp - next_d_yp, -1.0, 1.0)
    delta_to_square = jnp.clip(d_gs - next_d_gs, -1.0, 1.0)
    just_became_adj_to_square = ((next_d_gs <= 2.0) & (d_gs > 2.0)).astype(jnp.float32) * carrying

    delta = DIRECTIONS[next_state.agent.direction]
    fy = jnp.clip(next_state.agent.position[0] + delta[0], 0, H - 1)
    fx = jnp.clip(next_state.agent.position[1] + delta[1], 0, W - 1)
    gs_y, gs_x, _ = _locate(next_state.grid, SQUARE, GREEN)
    front_ok = (next_state.grid[fy, fx, 0] == FLOOR) & (_manhattan(fy, fx, gs_y, gs_x) <= 1.0)
    ready_to_putdown = front_ok.astype(jnp.float32) * carrying
    reward = (
        10.0 * just_succeeded.astype(jnp.float32)
        + 2.0 * just_picked_up.astype(jnp.float32)
        + 2.0 * delta_to_pyramid * free
        + 3.0 * delta_to_square * carrying
        - 1.5 * placed_wrong_spot.astype(jnp.float32)
        + 3.0 * placed_adjacent.astype(jnp.float32)
        + 2.0 * just_became_adj_to_square
        + 0.5 * ready_to_putdown
        - 0.01
    )
    return reward
