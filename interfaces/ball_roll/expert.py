# Task: ball-roll (roll a ball over the floor so that it comes to rest on a goal; 150 steps of 0.04 s).
# What: where ball, hands and goal are from the robot, how all move, and where the ball will come to rest; a reward for
#   that place, for the hands at the ball before the line, and for rest on the goal; touching it beyond the line costs.
# By: written by hand.
# Score: success 0.518 +- 0.144, alignment 0.690 +- 0.173, over 5 seeds of 800,000 steps (mean and standard error).
# Again: scripts/train.py --task ball-roll --interfaces interfaces/ball_roll/*.py --seeds 5 --steps 800000
import jax.numpy as jnp

NEAR, TOUCHING, AT_REST, ROLLS = 0.25, 0.02, 0.1, 1.25

def own(state, vector):
    """A vector of the world in the robot's frame."""
    cos, sin = jnp.cos(state.data.qpos[2]), jnp.sin(state.data.qpos[2])
    return jnp.stack([cos * vector[0] + sin * vector[1], cos * vector[1] - sin * vector[0]])


def get_observation(state):
    info, heading = state.info, state.data.qpos[2]
    way = info["local_goal"]
    course = way / jnp.maximum(info["ball_goal_dist"], 1e-3)
    ends = info["goal_pos"] - info["ball_pos"] - ROLLS * info["ball_vel"]
    return jnp.concatenate(
        [
            info["local_ball"],
            jnp.tanh(10.0 * info["hand_gaps"]),
            way,
            course,
            info["local_ball"] - 0.42 * course,
            own(state, ends),
            jnp.tanh(3.0 * own(state, ends)),
            own(state, state.data.qvel[:2]),
            own(state, info["ball_vel"]),
            jnp.stack([info["line_dist"], state.data.qvel[2], jnp.sin(heading), state.data.qpos[0]]),
        ]
    )


def compute_reward(state, action, next_state):
    """The hands at the ball before the line, the place where the ball will come to rest near to the goal, touching it
    beyond the line, and being at rest on the goal."""
    info = next_state.info
    course = info["local_goal"] / jnp.maximum(info["ball_goal_dist"], 1e-3)
    behind = jnp.linalg.norm(info["local_ball"] - 0.42 * course)
    hands = jnp.exp(-4.0 * jnp.maximum(info["hand_gaps"], 0.0)).mean() + jnp.exp(-4.0 * behind)
    before, ends = (jnp.linalg.norm(s["goal_pos"] - s["ball_pos"] - ROLLS * s["ball_vel"]) for s in (state.info, info))
    touched = jnp.minimum(info["hand_gaps"].min(), info["trunk_gap"]) < TOUCHING
    rest = (info["ball_goal_dist"] < NEAR) & (jnp.linalg.norm(info["ball_vel"]) < AT_REST) & ~touched
    terms = {
        "push": 0.5 * hands * (info["line_dist"] > 0.0),
        "aim": 20.0 * (before - ends) - 2.0 * ends + 3.0 * jnp.exp(-((ends / 0.2) ** 2)),
        "follow": -2.0 * (touched & (info["line_dist"] < 0.0)),
        "rest": 4.0 * rest,
        "effort": -0.01 * jnp.sum(action**2),
    }
    return sum(terms.values()), terms
