"""Hyperparameters of soft actor-critic, and what a learner's settings may be."""

from __future__ import annotations

import math
from typing import Any, ClassVar

from flax import struct

from jaxreward.errors import InvalidSetting
from jaxreward.training.hyperparameters import PPO, check_choice, check_types, invalid


class SAC(struct.PyTreeNode):
    """Soft actor-critic (Haarnoja et al. 2018, arXiv 1812.05905) with residual networks (SimBa: Lee et al. 2024, arXiv
    2410.09754), per agent, for continuous actions.

    After every `unroll` steps of `envs` environments an agent takes `updates` gradient steps on transitions that it
    draws from a replay buffer of its own, which lies on the device. The horizon cuts an episode, and its last step
    teaches nothing, as in Brax. The defaults are for two CPU cores; `SAC.brax()` has Brax's form. Fields in the first
    group are traced: changing one does not recompile. Those in the second, from `envs` on, are static.
    """

    learning_rate: float = 1e-3
    """Adam's, of the policy and of the values."""
    temperature_learning_rate: float = 1e-3
    """Adam's, of the logarithm of the entropy's temperature."""
    temperature: float = 0.1
    """The entropy's temperature at the start; it is learned."""
    target_entropy: float = -0.5
    """The entropy that the temperature is learned for, in nats for each number of an action."""
    discount: float = 0.97
    """Discount of the return, gamma."""
    tau: float = 0.005
    """How far the target network moves to the values' own with every gradient step."""
    weight_decay: float = 1e-2
    """Decoupled weight decay of matrices, as a rate for each unit of the learning rate (AdamW)."""
    adam_epsilon: float = 1e-8
    """Adam's epsilon."""
    reward_scale: float = 1.0
    """What rewards are multiplied by."""
    envs: int = struct.field(pytree_node=False, default=64)
    """Environments of each agent."""
    unroll: int = struct.field(pytree_node=False, default=8)
    """Steps of an environment between gradient steps."""
    updates: int = struct.field(pytree_node=False, default=8)
    """Gradient steps that follow."""
    batch_size: int = struct.field(pytree_node=False, default=256)
    """Transitions of a gradient step."""
    replay: int = struct.field(pytree_node=False, default=200_000)
    """Transitions that the replay buffer of an agent holds, the newest ones; rounded up to whole unrolls, and no more
    than the training has."""
    warmup: int = struct.field(pytree_node=False, default=2_000)
    """Transitions before the first gradient step."""
    network: str = struct.field(pytree_node=False, default="simba")
    """`simba`, residual blocks with layer norm, or `mlp`."""
    hidden: tuple[int, ...] = struct.field(pytree_node=False, default=(64,))
    """Widths of the policy: of the layers of an MLP, or of residual blocks, which are of one width."""
    value_hidden: tuple[int, ...] = struct.field(pytree_node=False, default=(64, 64))
    """Those of each of the two values."""
    activation: str = struct.field(pytree_node=False, default="relu")
    """Activation: `tanh`, `relu` or `swish`."""
    initializer: str = struct.field(pytree_node=False, default="orthogonal")
    """First weights: `orthogonal`, or `lecun`, uniform of variance 1 / inputs."""
    scale_rewards: bool = struct.field(pytree_node=False, default=True)
    """Divide rewards by the running root mean square of the discounted return. So a program's choice of units does not
    matter to the learner."""
    normalize_observations: bool = struct.field(pytree_node=False, default=True)
    """Subtract the running mean of every feature and divide by its running standard deviation."""
    observation_clip: float = struct.field(pytree_node=False, default=5.0)
    """Cut features that enter the networks to plus or minus this; inf turns it off."""
    action_repeat: int = struct.field(pytree_node=False, default=1)
    """Steps of the environment that every action lasts; rewards are summed over them."""
    precision: str = struct.field(pytree_node=False, default="float32")
    """Of the networks' matrix products on a GPU or TPU: `float32`, `tf32` or `bfloat16`. A CPU always has float32."""

    # What other learners can be told, and this one cannot.
    gru: ClassVar[int] = 0
    unrolls: ClassVar[int] = 1
    bootstrap: ClassVar[bool] = True
    absorbing: ClassVar[bool] = False

    @classmethod
    def brax(cls, **settings: Any) -> SAC:
        """The form of `brax.training.agents.sac`, with `settings` in place of its defaults.

        Brax's `grad_updates_per_step` is `updates / unroll`, its `min_replay_size` is `warmup`.
        """
        form: dict[str, Any] = {
            "learning_rate": 1e-4, "temperature_learning_rate": 3e-4, "temperature": 1.0, "discount": 0.9,
            "weight_decay": 0.0, "envs": 128, "unroll": 1, "updates": 1, "network": "mlp", "hidden": (256, 256),
            "value_hidden": (256, 256), "initializer": "lecun", "scale_rewards": False,
            "observation_clip": float("inf"),
        }  # fmt: skip
        return cls(**(form | settings))

    @property
    def length(self) -> int:
        """Actions that an environment takes per update."""
        return self.unroll

    @property
    def batch(self) -> int:
        """Environment steps an agent takes between gradient steps."""
        return self.envs * self.unroll * self.action_repeat

    @property
    def rows(self) -> int:
        """Steps of all environments that the replay buffer holds: whole unrolls, at least two."""
        return self.unroll * max(2, -(-self.replay // (self.envs * self.unroll)))

    def for_updates(self, updates: int) -> SAC:
        """With a replay buffer that is no larger than a training of so many updates needs: one unroll more than it
        fills, since a full buffer leaves out its oldest row."""
        return self.replace(replay=min(self.replay, self.envs * self.unroll * (updates + 1)))

    def check(self) -> None:
        """Raise an InvalidSetting for the first hyperparameter that is invalid."""
        check_types(self)
        for name in ("learning_rate", "temperature_learning_rate", "temperature", "adam_epsilon", "reward_scale"):
            if not 0 < getattr(self, name) < math.inf:
                raise invalid(self, name, f"must be a positive number, not {getattr(self, name)}")
        for name in ("discount", "tau"):
            if not 0 <= getattr(self, name) <= 1:
                raise invalid(self, name, f"must lie in [0, 1], not {getattr(self, name)}")
        if not math.isfinite(self.target_entropy):
            raise invalid(self, "target_entropy", f"must be a number, not {self.target_entropy}")
        if not 0 <= self.weight_decay < math.inf:
            raise invalid(self, "weight_decay", f"must be a number that is not negative, not {self.weight_decay}")
        if not self.observation_clip > 0:
            raise invalid(self, "observation_clip", f"must be positive, not {self.observation_clip}")
        for name in ("envs", "unroll", "updates", "batch_size", "replay", "action_repeat"):
            if getattr(self, name) < 1:
                raise invalid(self, name, f"must be at least 1, not {getattr(self, name)}")
        if not 0 <= self.warmup <= self.replay:
            message = f"SAC.warmup must lie between 0 and SAC.replay = {self.replay}, not {self.warmup}"
            raise InvalidSetting(message, "sac.warmup", "sac.replay")
        check_choice(self, "network", ("simba", "mlp"))
        check_choice(self, "activation", ("tanh", "relu", "swish"))
        check_choice(self, "initializer", ("orthogonal", "lecun"))
        check_choice(self, "precision", ("float32", "tf32", "bfloat16"))
        for name in ("hidden", "value_hidden"):
            widths = getattr(self, name)
            if not widths or min(widths) < 1:
                said = " ".join(map(str, widths)) or "nothing"
                raise invalid(self, name, f"must list at least one width, all positive, not {said}")
            if self.network == "simba" and len(set(widths)) > 1:
                raise invalid(self, name, f"lists residual blocks of one width, not {' '.join(map(str, widths))}")


Learner = PPO | SAC
"""The settings of a learner: the class says which."""
