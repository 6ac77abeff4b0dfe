"""What a training run is made of: hyperparameters and rungs."""

from __future__ import annotations

import math
from typing import Any, Literal

from flax import struct

from jaxreward.errors import UserError

Collecting = Literal["fused", "hasty", "linked"]
"""How experience is collected: by one compiled function; by one that is compiled sooner and runs longer; or by one for
each structure of programs and one for everything else."""

How = Literal["auto", "fused", "hasty", "linked"]
"""The same, or what should be done soonest."""


class PPO(struct.PyTreeNode):
    """Proximal policy optimisation (Schulman et al. 2017) with an MLP, per agent.

    The defaults are the `quick` preset for discrete actions, found by measurement (docs/trainer.md);
    `PPO.brax()` has Brax's form, which suits robots. Fields in the first group are traced: changing one
    does not recompile. Those in the second are static: they set shapes or structure.

    Traced:
        learning_rate: Adam's, at the start; it falls linearly to `(1 - decay)` of itself.
        decay: in [0, 1]; 1 anneals to zero at the end of the budget.
        discount: gamma.
        gae_lambda: lambda of generalised advantage estimation.
        clip: range of the probability ratio.
        value_clip: range within which the value may move; infinity turns it off.
        entropy: coefficient of the entropy bonus.
        value_coefficient: coefficient of the value loss.
        max_grad_norm: global-norm clip of the gradient.
        adam_epsilon: Adam's epsilon.
        reward_scale: by which rewards are multiplied.

    Static:
        envs: environments per agent.
        unroll: steps of an environment over which advantages are estimated.
        unrolls: how many of these follow each other before an update.
        epochs: passes over each batch.
        minibatches: minibatches a pass; must divide `envs * unroll * unrolls`, and with `fresh_values`
            `envs * unrolls`.
        hidden: widths of the MLP of the policy, which the value shares unless `value_hidden` is given.
        value_hidden: widths of an MLP of the value's own; empty for none.
        activation: `tanh`, `relu` or `swish`.
        initializer: `orthogonal`, or `lecun` for uniform weights of variance 1 / inputs.
        scale_rewards: divide rewards by the running root mean square of the discounted return, so that
            a program's choice of units does not matter to the learner.
        normalize_observations: subtract the running mean of every feature and divide by its running
            standard deviation, for every candidate and seed by itself.
        observation_clip: features that enter the network, normalised or not, are cut to plus or minus this;
            infinity turns it off. A flag that was hardly ever set is thousands of standard deviations off
            when it is, and would decide alone.
        fresh_values: estimate values and advantages anew for every minibatch, which then consists of
            whole unrolls; otherwise once an update, and minibatches consist of steps.
        bootstrap: whether an episode that the horizon ends is cut and not over: its last step teaches
            nothing, and the step before it counts on the value of what would have followed. Otherwise the
            horizon is an end like any other.
        gru: units of a GRU behind the encoder, 0 for none. It also reads the action before, through an embedding of
            `action_embedding` numbers, and the reward before. On it stand `heads`, tanh layers of these widths for the
            policy and as many for the value. Minibatches are whole unrolls.
        reset_memory: the GRU forgets everything when an episode ends; False: it carries on, as LIMEN's does.
        action_repeat: steps of the environment that every action lasts; rewards are summed over them.
    """

    learning_rate: float = 3e-3
    decay: float = 1.0
    discount: float = 0.99
    gae_lambda: float = 0.95
    clip: float = 0.2
    value_clip: float = float("inf")
    entropy: float = 0.02
    value_coefficient: float = 0.5
    max_grad_norm: float = 0.5
    adam_epsilon: float = 1e-5
    reward_scale: float = 1.0
    envs: int = struct.field(pytree_node=False, default=64)
    unroll: int = struct.field(pytree_node=False, default=16)
    unrolls: int = struct.field(pytree_node=False, default=1)
    epochs: int = struct.field(pytree_node=False, default=2)
    minibatches: int = struct.field(pytree_node=False, default=4)
    hidden: tuple[int, ...] = struct.field(pytree_node=False, default=(64, 64))
    value_hidden: tuple[int, ...] = struct.field(pytree_node=False, default=())
    activation: str = struct.field(pytree_node=False, default="relu")
    initializer: str = struct.field(pytree_node=False, default="orthogonal")
    scale_rewards: bool = struct.field(pytree_node=False, default=True)
    normalize_observations: bool = struct.field(pytree_node=False, default=False)
    observation_clip: float = struct.field(pytree_node=False, default=float("inf"))
    fresh_values: bool = struct.field(pytree_node=False, default=False)
    bootstrap: bool = struct.field(pytree_node=False, default=False)
    action_repeat: int = struct.field(pytree_node=False, default=1)
    gru: int = struct.field(pytree_node=False, default=0)
    action_embedding: int = struct.field(pytree_node=False, default=16)
    heads: tuple[int, ...] = struct.field(pytree_node=False, default=())
    reset_memory: bool = struct.field(pytree_node=False, default=True)

    @classmethod
    def brax(cls, **settings: Any) -> PPO:
        """The form of `brax.training.agents.ppo`, with `settings` in place of its defaults.

        Brax's `batch_size` is `envs * unrolls / minibatches`, its `num_updates_per_batch` is `epochs`.
        """
        form: dict[str, Any] = {
            "learning_rate": 3e-4, "decay": 0.0, "discount": 0.97, "clip": 0.3, "entropy": 1e-2, "max_grad_norm": 1.0,
            "adam_epsilon": 1e-8, "value_coefficient": 0.5, "hidden": (32, 32, 32, 32),
            "value_hidden": (256, 256, 256, 256, 256), "activation": "swish", "initializer": "lecun",
            "scale_rewards": False, "normalize_observations": True, "fresh_values": True, "bootstrap": True,
        }  # fmt: skip
        return cls(**(form | settings))

    @property
    def length(self) -> int:
        """Actions that an environment takes per update."""
        return self.unroll * self.unrolls

    @property
    def batch(self) -> int:
        """Environment steps an agent takes per update."""
        return self.envs * self.length * self.action_repeat

    def check(self) -> None:
        """Raise a UserError that names the first impossible setting."""
        positive, unit = (
            ("learning_rate", "max_grad_norm", "adam_epsilon", "reward_scale"),
            ("decay", "discount", "gae_lambda"),
        )
        for name in positive:
            if not 0 < getattr(self, name) < math.inf:
                raise UserError(f"PPO.{name} must be a positive number, not {getattr(self, name)}")
        for name in unit:
            if not 0 <= getattr(self, name) <= 1:
                raise UserError(f"PPO.{name} must lie in [0, 1], not {getattr(self, name)}")
        for name in ("clip", "value_clip", "observation_clip"):
            if not getattr(self, name) > 0:
                raise UserError(f"PPO.{name} must be positive, not {getattr(self, name)}")
        for name in ("entropy", "value_coefficient"):
            if not 0 <= getattr(self, name) < math.inf:
                raise UserError(f"PPO.{name} must be a number that is not negative, not {getattr(self, name)}")
        for name in ("envs", "unroll", "unrolls", "epochs", "minibatches", "action_repeat"):
            if getattr(self, name) < 1:
                raise UserError(f"PPO.{name} must be at least 1, not {getattr(self, name)}")
        self._check_memory()
        whole = self.fresh_values or self.gru > 0
        shuffled = self.envs * (self.unrolls if whole else self.length)
        if shuffled % self.minibatches:
            what = "envs * unrolls" if whole else "envs * unroll * unrolls"
            raise UserError(
                f"PPO.minibatches = {self.minibatches} does not divide {what} = {shuffled}; choose a divisor"
            )
        for name, known in (("activation", ("tanh", "relu", "swish")), ("initializer", ("orthogonal", "lecun"))):
            if getattr(self, name) not in known:
                raise UserError(f"PPO.{name} must be one of {', '.join(known)}, not '{getattr(self, name)}'")
        if not self.hidden or min((*self.hidden, *self.value_hidden)) < 1:
            raise UserError(
                f"PPO.hidden must list at least one width, and widths are positive, not {self.hidden} and "
                f"{self.value_hidden}"
            )

    def _check_memory(self) -> None:
        if self.gru < 0 or self.action_embedding < 1 or min((1, *self.heads)) < 1:
            raise UserError("PPO.gru is not negative, PPO.action_embedding and PPO.heads are positive")
        if not self.gru:
            if self.heads or not self.reset_memory or self.action_embedding != PPO.action_embedding:
                raise UserError("PPO.heads, PPO.action_embedding and PPO.reset_memory are a GRU's: give PPO.gru units")
            return
        if self.unrolls > 1 or self.fresh_values or self.value_hidden:
            raise UserError(
                "PPO.gru goes with one unroll (PPO.unrolls=1), values as they were estimated on the way "
                "(PPO.fresh_values=False) and one network for policy and value (no PPO.value_hidden)"
            )
