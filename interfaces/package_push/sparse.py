# Task: package-push (push a package over the floor to a goal with two hands; 150 steps of 0.04 s).
# What: the baseline, the task's raw observation and its sparse reward.
# By: written by hand.
# Score: success 0.114 +- 0.056, alignment 0.189 +- 0.088, over 5 seeds of 300,000 steps (mean and standard error).
# Again: scripts/train.py --task package-push --interfaces interfaces/package_push/*.py --seeds 5 --steps 300000
import jax.numpy as jnp

NEAR = 0.15


def own(state, vector):
    """A vector of the world in the robot's frame."""
    cos, sin = jnp.cos(state.data.qpos[2]), jnp.sin(state.data.qpos[2])
    return jnp.stack([cos * vector[0] + sin * vector[1], cos * vector[1] - sin * vector[0]])


def get_observation(state):
    """The ways to the package and from there to the goal, the package's turn, how both move, and the hands' gaps."""
    info, qvel = state.info, state.data.qvel
    turn = jnp.stack([jnp.sin(info["package_turn"]), jnp.cos(info["package_turn"])])
    moves = [own(state, qvel[:2]), qvel[2:3], own(state, qvel[3:5]), qvel[5:]]
    return jnp.concatenate([info["local_package"], info["local_goal"], turn, *moves, info["hand_gaps"]])


def compute_reward(state, action, next_state):
    """1 for every step that ends with the package within 0.15 m of the goal."""
    there = (next_state.info["package_goal_dist"] < NEAR).astype(jnp.float32)
    return there, {"there": there}
