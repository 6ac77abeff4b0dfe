# Task: door-open (open a door with a hand and go through it; 150 steps of 0.04 s).
# What: the baseline, the task's raw observation and its sparse reward.
# By: written by hand.
# Score: success 0.455 +- 0.217, alignment 0.360 +- 0.138, over 5 seeds of 300,000 steps (mean and standard error).
# Again: scripts/train.py --task door-open --interfaces interfaces/door_open/*.py --seeds 5 --steps 300000
import jax.numpy as jnp

def own(state, vector):
    """A vector of the world in the robot's frame."""
    cos, sin = jnp.cos(state.data.qpos[2]), jnp.sin(state.data.qpos[2])
    return jnp.stack([cos * vector[0] + sin * vector[1], cos * vector[1] - sin * vector[0]])


def get_observation(state):
    """The ways to the door's edge and through the doorway, how the robot moves, its heading, the door, and the gaps."""
    info, qvel, heading = state.info, state.data.qvel, state.data.qpos[2]
    door = jnp.stack([info["door_turn"], info["door_rate"], jnp.sin(heading), jnp.cos(heading)])
    gaps = [info["hand_gaps"], info["trunk_gap"][None]]
    return jnp.concatenate([info["local_edge"], info["local_exit"], own(state, qvel[:2]), qvel[2:3], door, *gaps])


def compute_reward(state, action, next_state):
    """1 for every step that ends with the robot through, 0.6 m beyond the wall."""
    there = (next_state.info["left_to_go"] < 0.0).astype(jnp.float32)
    return there, {"there": there}
