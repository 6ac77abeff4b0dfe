# Task: snake (eat and grow, without running into walls or oneself; 12 by 12 cells, 500 steps).
# What: the baseline, where head and food are, and the length; 1 for food and -1 for the end.
# By: written by hand.
# Score: food eaten 8.163 +- 0.299 over 5 seeds of 1,000,000 steps (mean and standard error).
# Again: scripts/train.py --task snake --interfaces interfaces/snake/*.py --seeds 5 --steps 1000000
import jax.numpy as jnp

SIZE = 12


def get_observation(state):
    places = jnp.concatenate([state.head, state.food]) / (SIZE - 1)
    return jnp.append(places, state.length / SIZE**2).astype(jnp.float32)


def compute_reward(state, action, next_state):
    terms = {"food": next_state.food_eaten.astype(jnp.float32), "end": -next_state.snake_death.astype(jnp.float32)}
    return sum(terms.values()), terms
