"""What a training run is made of: hyperparameters and rungs."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
from flax import struct

from jaxreward.errors import InvalidSetting
from jaxreward.value_words import kind_in_words, short

CollectorName = Literal["fused", "stepwise"]
CompileName = Literal["full", "fast"]
PopulationName = Literal["rows", "bank"]
CollectorOption = Literal["auto", "fused", "stepwise"]
CompileOption = Literal["auto", "full", "fast"]
PopulationOption = Literal["auto", "rows", "bank"]
"""How experience is collected, see `execution.Execution`."""


class PPO(struct.PyTreeNode):
    """Proximal policy optimisation (Schulman et al. 2017) with an MLP, per agent.

    The defaults are the `quick` preset for discrete actions on a CPU, found by measurement
    (docs/appendix/quick_learner.md); `PPO.brax()` has Brax's form, which suits robots. Fields in the first group are
    traced: changing one does not recompile. Those in the second, from `envs` on, are static: they set shapes or
    structure.
    """

    learning_rate: float = 3e-3
    """Adam's at the start; it falls linearly to `(1 - decay)` of itself."""
    decay: float = 1.0
    """Part of the learning rate that is lost by the end of the budget; 1 anneals to zero."""
    discount: float = 0.99
    """Discount of the return, gamma."""
    gae_lambda: float = 0.95
    """Lambda of generalised advantage estimation."""
    clip: float = 0.2
    """Range of the probability ratio."""
    value_clip: float = float("inf")
    """Range within which the value may move; inf turns it off."""
    entropy: float = 0.02
    """Coefficient of the entropy bonus."""
    value_coefficient: float = 0.5
    """Coefficient of the value loss."""
    max_grad_norm: float = 0.5
    """Clip of the gradient's global norm."""
    adam_epsilon: float = 1e-5
    """Adam's epsilon."""
    reward_scale: float = 1.0
    """What rewards are multiplied by."""
    envs: int = struct.field(pytree_node=False, default=64)
    """Environments of each agent. Commands that are told nothing of it have more on a GPU or TPU."""
    unroll: int = struct.field(pytree_node=False, default=16)
    """Steps of an environment over which advantages are estimated."""
    unrolls: int = struct.field(pytree_node=False, default=1)
    """Unrolls that follow each other before an update."""
    epochs: int = struct.field(pytree_node=False, default=2)
    """Passes over each batch."""
    minibatches: int = struct.field(pytree_node=False, default=4)
    """Minibatches a pass; must divide `envs * unroll * unrolls`, and with `fresh_values` or a GRU `envs * unrolls`.
    Commands that are told nothing of it have more on a GPU or TPU."""
    hidden: tuple[int, ...] = struct.field(pytree_node=False, default=(64, 64))
    """Widths of the policy's MLP, which the value shares unless `value_hidden` is given."""
    value_hidden: tuple[int, ...] = struct.field(pytree_node=False, default=())
    """Widths of an MLP of the value's own; empty for none."""
    activation: str = struct.field(pytree_node=False, default="relu")
    """Activation of the MLP: `tanh`, `relu` or `swish`."""
    initializer: str = struct.field(pytree_node=False, default="orthogonal")
    """Its first weights: `orthogonal`, or `lecun`, uniform of variance 1 / inputs."""
    scale_rewards: bool = struct.field(pytree_node=False, default=True)
    """Divide rewards by the running root mean square of the discounted return. So a program's choice of units does not
    matter to the learner."""
    center_values: bool = struct.field(pytree_node=False, default=False)
    """Estimate values from their mean under the first policy, as the rewards and ends of the first update say it: the
    network learns the difference, and advantages are what they were. Where every step costs, or pays, values are far
    from 0, where a network begins."""
    normalize_observations: bool = struct.field(pytree_node=False, default=False)
    """Subtract the running mean of every feature and divide by its running standard deviation. Every candidate and seed
    does so by itself."""
    observation_clip: float = struct.field(pytree_node=False, default=float("inf"))
    """Cut features that enter the network to plus or minus this; inf turns it off. A flag that was hardly ever set is
    thousands of standard deviations off when it is, and would decide alone."""
    fresh_values: bool = struct.field(pytree_node=False, default=False)
    """Estimate values and advantages anew for every minibatch, of whole unrolls. Otherwise once an update, and
    minibatches consist of steps."""
    bootstrap: bool = struct.field(pytree_node=False, default=False)
    """Take an episode that the horizon ends as cut and not over. Its last step teaches nothing, and the step before it
    counts on the value of what would have followed. Otherwise the horizon is an end like any other."""
    absorbing: bool = struct.field(pytree_node=False, default=False)
    """Take what ends an episode before the horizon as a state that is never left, where every step pays what the last
    one paid. So an agent gains nothing by an early end where rewards are negative, nor loses by one that they praise:
    both are biases of rewards that tell an expert's states from others (Kostrikov et al. 2019). Needs `bootstrap`."""
    action_repeat: int = struct.field(pytree_node=False, default=1)
    """Steps of the environment that every action lasts; rewards are summed over them."""
    gru: int = struct.field(pytree_node=False, default=0)
    """Units of a GRU behind the encoder; 0 for none. It also reads the action before, through `action_embedding`, and
    the reward before. Minibatches are whole unrolls."""
    action_embedding: int = struct.field(pytree_node=False, default=16)
    """With a GRU: numbers that stand for the action before."""
    heads: tuple[int, ...] = struct.field(pytree_node=False, default=())
    """With a GRU: widths of tanh layers behind it, for the policy and as many for the value."""
    reset_memory: bool = struct.field(pytree_node=False, default=True)
    """Forget everything when an episode ends, with a GRU. Otherwise it carries on, as LIMEN's does."""
    precision: str = struct.field(pytree_node=False, default="float32")
    """Of the networks' matrix products on a GPU or TPU: `float32`, `tf32` or `bfloat16`. A CPU always has float32."""

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
        """Raise an InvalidSetting for the first hyperparameter that is invalid."""
        check_types(self)
        positive, unit = (
            ("learning_rate", "max_grad_norm", "adam_epsilon", "reward_scale"),
            ("decay", "discount", "gae_lambda"),
        )
        for name in positive:
            if not 0 < getattr(self, name) < math.inf:
                raise invalid(self, name, f"must be a positive number, not {getattr(self, name)}")
        for name in unit:
            if not 0 <= getattr(self, name) <= 1:
                raise invalid(self, name, f"must lie in [0, 1], not {getattr(self, name)}")
        for name in ("center_values", "absorbing"):
            if getattr(self, name) and self.discount == 1:
                message = f"PPO.{name} needs a discount below 1: without one values may be infinite"
                raise InvalidSetting(message, "ppo.discount", f"ppo.{name}")
        if self.absorbing and not self.bootstrap:
            message = "PPO.absorbing needs PPO.bootstrap: else the horizon is an end that nothing follows"
            raise InvalidSetting(message, "ppo.absorbing", "ppo.bootstrap")
        for name in ("clip", "value_clip", "observation_clip"):
            if not getattr(self, name) > 0:
                raise invalid(self, name, f"must be positive, not {getattr(self, name)}")
        for name in ("entropy", "value_coefficient"):
            if not 0 <= getattr(self, name) < math.inf:
                raise InvalidSetting(
                    f"PPO.{name} must be a number that is not negative, not {getattr(self, name)}", f"ppo.{name}"
                )
        for name in ("envs", "unroll", "unrolls", "epochs", "minibatches", "action_repeat"):
            if getattr(self, name) < 1:
                raise invalid(self, name, f"must be at least 1, not {getattr(self, name)}")
        self._check_memory()
        whole = self.fresh_values or self.gru > 0
        shuffled = self.envs * (self.unrolls if whole else self.length)
        if shuffled % self.minibatches:
            what = "envs * unrolls" if whole else "envs * unroll * unrolls"
            raise InvalidSetting(
                f"PPO.minibatches = {self.minibatches} does not divide {what} = {shuffled}; choose a divisor",
                *("ppo.minibatches", "ppo.envs", "ppo.unrolls", *(() if whole else ("ppo.unroll",))),
            )
        for name, known in (
            ("activation", ("tanh", "relu", "swish")), ("initializer", ("orthogonal", "lecun")),
            ("precision", ("float32", "tf32", "bfloat16")),
        ):  # fmt: skip
            check_choice(self, name, known)
        if not self.hidden or min((*self.hidden, *self.value_hidden)) < 1:
            said = " ".join(map(str, (*self.hidden, *self.value_hidden))) or "nothing"
            raise InvalidSetting(
                f"PPO.hidden must list at least one width, and widths, those of PPO.value_hidden too, are positive, "
                f"not {said}",
                *("ppo.hidden", "ppo.value_hidden"),
            )

    def _check_memory(self) -> None:
        if self.gru < 0:
            raise invalid(self, "gru", f"must not be negative, not {self.gru}; 0 is for no memory")
        for name, least in (("action_embedding", self.action_embedding), ("heads", min((1, *self.heads)))):
            if least < 1:
                raise invalid(self, name, f"must be at least 1, not {least}")
        if not self.gru:
            if self.heads or not self.reset_memory or self.action_embedding != PPO.action_embedding:
                raise InvalidSetting(
                    "PPO.heads, PPO.action_embedding and PPO.reset_memory are a GRU's: give PPO.gru units",
                    *("ppo.gru", "ppo.heads", "ppo.action_embedding", "ppo.reset_memory"),
                )
            return
        if self.unrolls > 1 or self.fresh_values or self.value_hidden:
            raise InvalidSetting(
                "PPO.gru goes with one unroll (PPO.unrolls=1), values as they were estimated on the way "
                "(PPO.fresh_values=False) and one network for policy and value (no PPO.value_hidden)",
                *("ppo.gru", "ppo.unrolls", "ppo.fresh_values", "ppo.value_hidden"),
            )


_NUMBERS = {int: "__index__", float: "__float__"}


def check_types(settings: Any) -> None:
    """Raise an InvalidSetting for the first field of a learner's settings that is of another type than its default."""
    for field in dataclasses.fields(settings):
        value, default = getattr(settings, field.name), field.default
        kind = type(default)
        if kind is tuple and isinstance(value, list | tuple) and all(hasattr(item, "__index__") for item in value):
            continue
        if kind in _NUMBERS and hasattr(value, _NUMBERS[kind]):  # of Python, NumPy or JAX
            continue
        if (kind is bool and isinstance(value, bool | np.bool_)) or (kind is str and isinstance(value, str)):
            continue
        words = kind_in_words(tuple[int, ...] if kind is tuple else kind)
        raise invalid(settings, field.name, f"must be {words}, not {short(value)}")


def as_python(settings: Any) -> Any:
    """A learner's valid settings with numbers, flags and tuples of Python, which can be hashed."""
    values = {field.name: getattr(settings, field.name) for field in dataclasses.fields(settings)}
    kinds = {field.name: type(field.default) for field in dataclasses.fields(settings)}
    made = {n: tuple(map(int, v)) if kinds[n] is tuple else kinds[n](v) for n, v in values.items()}
    return dataclasses.replace(settings, **made)


def check_choice(settings: Any, name: str, known: Sequence[str]) -> None:
    """Raise an InvalidSetting unless the field `name` is one of these."""
    if getattr(settings, name) not in known:
        raise invalid(settings, name, f"must be one of {', '.join(known)}, not '{getattr(settings, name)}'")


def invalid(settings: Any, name: str, rule: str) -> InvalidSetting:
    """The error of a hyperparameter that breaks a rule."""
    of = type(settings).__name__
    return InvalidSetting(f"{of}.{name} {rule}", f"{of.lower()}.{name}")
