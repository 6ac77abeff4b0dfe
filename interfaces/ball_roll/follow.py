# Task: ball-roll (roll a ball over the floor so that it comes to rest on a goal; 150 steps of 0.04 s).
# What: what expert.py sees; a reward that is misaligned on purpose: it pays for the ball's way to the goal, however that
#   is made.
# By: written by hand.
# Score: success 0.858 +- 0.072, alignment 0.585 +- 0.056, over 5 seeds of 800,000 steps (mean and standard error).
# Again: scripts/train.py --task ball-roll --interfaces interfaces/ball_roll/*.py --seeds 5 --steps 800000
import jax.numpy as jnp

NEAR, ROLLS = 0.25, 1.25

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
    """The hands at the ball, the way of the ball towards the goal, and the ball on it."""
    info, left = next_state.info, next_state.info["ball_goal_dist"]
    terms = {
        "reach": 0.5 * jnp.exp(-4.0 * jnp.maximum(info["hand_gaps"], 0.0)).mean(),
        "closer": 30.0 * (state.info["ball_goal_dist"] - left),
        "there": 3.0 * (left < NEAR),
    }
    return sum(terms.values()), terms
