"""How agents learn from demonstrations in place of a program's reward, and what there is to set."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, get_args

from jaxreward.errors import InvalidSetting

Form = Literal["difference", "positive", "negative"]
"""The reward by a discriminator D: log D - log(1 - D), -log(1 - D), or log D."""


@dataclass(frozen=True)
class Adversarial:
    """A discriminator that learns beside the agent to tell its transitions from the expert's, and pays it for being
    taken for the expert.

    Before every update of PPO the discriminator takes `updates` steps of Adam on batches of `batch` transitions of each
    side.

    Attributes:
        hidden: widths of the MLP, with tanh.
        learning_rate: Adam's.
        updates: steps of the discriminator for each update of the agent.
        batch: transitions of either side in a step, drawn with replacement.
        gradient_penalty: weight of (|gradient by the input| - 1)^2 between pairs of both sides (Gulrajani et al. 2017),
            in the units of the input, so that observations should be of a size of about 1; 0 turns it off.
    """

    name: ClassVar[str] = ""
    plays: ClassVar[bool] = True
    hidden: tuple[int, ...] = (64, 64)
    learning_rate: float = 1e-3
    updates: int = 4
    batch: int = 256
    gradient_penalty: float = 1.0

    def check(self) -> None:
        """Raise an InvalidSetting for the first invalid field."""
        if not isinstance(self.hidden, tuple) or not self.hidden or not all(map(_whole, self.hidden)):
            raise _invalid(self, "hidden", f"is a tuple of positive widths, such as (64, 64), not {self.hidden!r}")
        for name in ("updates", "batch"):
            if not _whole(value := getattr(self, name)):
                raise _invalid(self, name, f"must be a whole number of at least 1, not {value!r}")
        if not (_number(self.learning_rate) and self.learning_rate > 0):
            raise _invalid(self, "learning_rate", f"must be a positive number, not {self.learning_rate!r}")
        if not (_number(self.gradient_penalty) and self.gradient_penalty >= 0):
            raise _invalid(self, "gradient_penalty", f"must be 0 or a positive number, not {self.gradient_penalty!r}")


@dataclass(frozen=True)
class GAIL(Adversarial):
    """Generative adversarial imitation learning (Ho and Ermon 2016): a discriminator of observation and action.

    Attributes:
        reward: what it pays. `positive`, as published, pays for going on and `negative` for ending, whatever is done
            (Kostrikov et al. 2019); the default is the sum of both, which has either sign. No state after an episode is
            learned, so that none of them is free of a bias where episodes end.
    """

    name: ClassVar[str] = "gail"
    reward: Form = "difference"

    def check(self) -> None:
        super().check()
        if self.reward not in get_args(Form):
            raise _invalid(self, "reward", f"is one of {', '.join(get_args(Form))}, not {self.reward!r}")


@dataclass(frozen=True)
class AIRL(Adversarial):
    """Adversarial inverse reinforcement learning (Fu et al. 2018): D = exp(f) / (exp(f) + pi(a|s)) with
    f = g(s, a) + discount h(s') - h(s), of which h is 0 where an episode is over, and the reward log D - log(1 - D), in
    which log pi(a|s) is bounded by 20 either way. It comes on top of PPO's bonus of the entropy; the penalty is of f.

    Attributes:
        state_only: g reads the observation alone.
    """

    name: ClassVar[str] = "airl"
    state_only: bool = False


@dataclass(frozen=True)
class Cloning:
    """Behaviour cloning: the policy is fitted to the expert's actions, and nothing is played but held-out episodes.

    An update draws as many transitions of the expert, with replacement, as an update of PPO has steps, and takes a step
    of Adam for each of as many minibatches. The learning rate, its decay and the bound of gradients are PPO's.
    """

    name: ClassVar[str] = "bc"
    plays: ClassVar[bool] = False

    def check(self) -> None:
        pass


Method = GAIL | AIRL | Cloning
METHODS: dict[str, type[Method]] = {method.name: method for method in (GAIL, AIRL, Cloning)}


def method_of(given: str | Method) -> Method:
    """A method by its name, with its defaults, or one that is given; checked.

    Raises:
        InvalidSetting: there is none of this name, or a field is invalid.
    """
    if isinstance(given, str) and given in METHODS:
        given = METHODS[given]()
    if not isinstance(given, Method):
        known = ", ".join(METHODS)
        raise InvalidSetting(f"method is one of {known}, or such as jr.GAIL(updates=8), not {given!r}", "method")
    given.check()
    return given


def _whole(value: Any) -> bool:
    return hasattr(value, "__index__") and not isinstance(value, bool) and value >= 1


def _number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _invalid(method: Any, field: str, what: str) -> InvalidSetting:
    return InvalidSetting(f"{type(method).__name__}.{field} {what}", f"method.{field}")
