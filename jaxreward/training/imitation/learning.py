"""An update of one agent that learns from demonstrations; the population vmaps it."""

from __future__ import annotations

import jax
import jax.numpy as jnp

from jaxreward.training.hyperparameters import PPO
from jaxreward.training.imitation.discriminator import judge
from jaxreward.training.imitation.experts import Experts
from jaxreward.training.imitation.methods import AIRL, GAIL
from jaxreward.training.learn_stats import LearnStats
from jaxreward.training.networks import ActorCritic
from jaxreward.training.ppo import Agent, learn
from jaxreward.training.rollout import Trajectory


def learn_adversarially(
    agent: Agent,
    trajectory: Trajectory,
    finite: jax.Array,
    key: jax.Array,
    progress: jax.Array,
    network: ActorCritic,
    hyper: PPO,
    experts: Experts,
    method: GAIL | AIRL,
) -> tuple[Agent, LearnStats]:
    """As `ppo.learn`, with the rewards of the agent's discriminator, which learns first; the program's are not read.

    Args:
        experts: of which the set of the agent's row is learned from.
    """
    key, own = jax.random.split(key)
    found, reward = judge(agent.discriminator, agent.variables, trajectory, experts, own, hyper, network, method)
    finite = jax.tree.reduce(lambda ok, x: ok & jnp.isfinite(x).all(), found, finite)
    learned, stats = learn(agent, trajectory.replace(reward=reward), finite, key, progress, network, hyper)
    kept = jax.tree.map(lambda new, old: jnp.where(learned.diverged, old, new), found, agent.discriminator)
    return learned.replace(discriminator=kept), stats
