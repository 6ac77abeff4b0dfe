"""What a training run is made of: hyperparameters and rungs."""

from __future__ import annotations

import math
from dataclasses import dataclass

from flax import struct

from jaxreward.errors import UserError


class PPO(struct.PyTreeNode):
    """Proximal policy optimisation (Schulman et al. 2017) with an MLP, per agent.

    The defaults are the `quick` preset, found by measurement (docs/trainer.md). Fields in the
    first group are traced: changing one does not recompile. Those in the second are static: they
    set shapes or structure.

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

    Static:
        envs: environments per agent.
        unroll: steps per environment and update.
        epochs: passes over each batch.
        minibatches: minibatches a pass; must divide `envs * unroll`.
        hidden: widths of the MLP, shared by policy and value.
        activation: `tanh` or `relu`.
        scale_rewards: divide rewards by the running root mean square of the discounted return, so that
            a program's choice of units does not matter to the learner.
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
    envs: int = struct.field(pytree_node=False, default=64)
    unroll: int = struct.field(pytree_node=False, default=16)
    epochs: int = struct.field(pytree_node=False, default=2)
    minibatches: int = struct.field(pytree_node=False, default=4)
    hidden: tuple[int, ...] = struct.field(pytree_node=False, default=(64, 64))
    activation: str = struct.field(pytree_node=False, default="relu")
    scale_rewards: bool = struct.field(pytree_node=False, default=True)

    @property
    def batch(self) -> int:
        """Environment steps an agent takes per update."""
        return self.envs * self.unroll

    def check(self) -> None:
        """Raise a UserError that names the first impossible setting."""
        positive, unit = ("learning_rate", "max_grad_norm", "adam_epsilon"), ("decay", "discount", "gae_lambda")
        for name in positive:
            if not 0 < getattr(self, name) < math.inf:
                raise UserError(f"PPO.{name} must be a positive number, not {getattr(self, name)}")
        for name in unit:
            if not 0 <= getattr(self, name) <= 1:
                raise UserError(f"PPO.{name} must lie in [0, 1], not {getattr(self, name)}")
        for name in ("clip", "value_clip"):
            if not getattr(self, name) > 0:
                raise UserError(f"PPO.{name} must be positive, not {getattr(self, name)}")
        for name in ("entropy", "value_coefficient"):
            if not 0 <= getattr(self, name) < math.inf:
                raise UserError(f"PPO.{name} must be a number that is not negative, not {getattr(self, name)}")
        for name in ("envs", "unroll", "epochs", "minibatches"):
            if getattr(self, name) < 1:
                raise UserError(f"PPO.{name} must be at least 1, not {getattr(self, name)}")
        if self.batch % self.minibatches:
            raise UserError(
                f"PPO.minibatches = {self.minibatches} does not divide envs * unroll = {self.batch}; choose a divisor"
            )
        if self.activation not in ("tanh", "relu"):
            raise UserError(f"PPO.activation must be 'tanh' or 'relu', not '{self.activation}'")
        if not self.hidden or min(self.hidden) < 1:
            raise UserError(f"PPO.hidden must list at least one positive width, not {self.hidden}")


@dataclass(frozen=True)
class Rung:
    """A cut in the course of training: after `steps` environment steps a seed, a candidate whose
    mean success is below `threshold` stops; the others go on as if nothing had happened."""

    steps: int
    threshold: float
