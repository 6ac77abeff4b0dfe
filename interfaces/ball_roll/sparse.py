# Task: ball-roll (roll a ball over the floor so that it comes to rest on a goal; 150 steps of 0.04 s).
# What: the baseline, the task's raw observation and its sparse reward.
# By: written by hand.
# Score: success 0.362 +- 0.039, alignment 0.576 +- 0.034, over 5 seeds of 800,000 steps (mean and standard error).
# Again: scripts/train.py --task ball-roll --interfaces interfaces/ball_roll/*.py --seeds 5 --steps 800000
import jax.numpy as jnp

NEAR = 0.25

def own(state, vector):
    """A vector of the world in the robot's frame."""
    cos, sin = jnp.cos(state.data.qpos[2]), jnp.sin(state.data.qpos[2])
    return jnp.stack([cos * vector[0] + sin * vector[1], cos * vector[1] - sin * vector[0]])


def get_observation(state):
    """The ways to the ball and from there to the goal, the heading, how both move, and gaps to the hands and the line."""
    info, qvel, heading = state.info, state.data.qvel, state.data.qpos[2]
    turn = jnp.stack([jnp.sin(heading), jnp.cos(heading)])
    moves = [own(state, qvel[:2]), qvel[2:3], own(state, qvel[3:5])]
    gaps = [info["hand_gaps"], info["line_dist"][None]]
    return jnp.concatenate([info["local_ball"], info["local_goal"], turn, *moves, *gaps])


def compute_reward(state, action, next_state):
    """1 for every step that ends with the ball within 0.25 m of the goal."""
    there = (next_state.info["ball_goal_dist"] < NEAR).astype(jnp.float32)
    return there, {"there": there}
