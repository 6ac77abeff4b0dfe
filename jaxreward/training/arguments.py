"""The arguments of `train`, checked by type before anything else is done with them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import jax

from jaxreward.errors import InvalidSetting
from jaxreward.training.hyperparameters import PPO, as_python
from jaxreward.training.rungs import Rung
from jaxreward.training.sac_hyperparameters import SAC, Learner
from jaxreward.value_words import short

_SEEDS = 2**32


def check_task(task: Any) -> None:
    """Raise an InvalidSetting for the name of a task in place of the object."""
    if isinstance(task, str | Path):
        raise InvalidSetting(f"task is an object here: write jr.make_task({str(task)!r})", "task")


def require_32_bits() -> None:
    """Raise an InvalidSetting where JAX computes in 64 bits."""
    if jax.config.jax_enable_x64:  # pyright: ignore[reportAttributeAccessIssue]
        message = "jax_enable_x64 is on, and agents train in 32 bits"
        raise InvalidSetting(f'{message}: call jax.config.update("jax_enable_x64", False) before', "task")


def learner_of(ppo: Any) -> Learner:
    """The learner that is given, its hyperparameters as numbers and tuples of Python.

    Raises:
        InvalidSetting: it is none, or has an invalid hyperparameter.
    """
    if not isinstance(ppo, PPO | SAC):
        message = f"ppo is a jaxreward.PPO or SAC, such as PPO(learning_rate=1e-3), not {short(ppo)}"
        raise InvalidSetting(message, "ppo")
    ppo.check()
    return as_python(ppo)


def for_budget(ppo: Learner, updates: int, imitates: bool) -> Learner:
    """The learner for a training of so many updates.

    Raises:
        InvalidSetting: SAC would take no gradient step in it, or is to learn from demonstrations.
    """
    if not isinstance(ppo, SAC):
        return ppo
    if imitates:
        raise InvalidSetting("SAC learns from the rewards of programs: learn from demonstrations with PPO", "ppo")
    if ppo.warmup > (steps := updates * ppo.envs * ppo.unroll):
        message = f"SAC.warmup = {ppo.warmup} transitions precede gradient steps, and this training has {steps}"
        raise InvalidSetting(f"{message}: give a smaller warmup, or more steps", "sac.warmup", "steps")
    return ppo.for_updates(updates)


def whole(name: str, value: Any) -> int:
    """The argument `name` as a whole number; 1e6 is one.

    Raises:
        InvalidSetting: it is none.
    """
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        raise InvalidSetting(f"{name} must be a whole number, not {short(value)}", name)
    return int(value)


def seeds_of(given: int | Sequence[int]) -> tuple[int, ...]:
    """The seeds that a number of them, or a sequence, stands for.

    Raises:
        InvalidSetting: there is none, or one twice, or one that is no whole number of 32 bits, as many as a key has.
    """
    try:
        counted = hasattr(given, "__index__")
        seeds = tuple(range(int(given))) if counted else tuple(whole("seeds", seed) for seed in given)  # type: ignore
    except (TypeError, InvalidSetting):
        message = f"seeds are a number of seeds or a sequence of integers, not {short(given)}"
        raise InvalidSetting(message, "seeds") from None
    if not seeds or min(seeds) < 0 or max(seeds) >= _SEEDS or len(set(seeds)) < len(seeds):
        message = f"seeds must be distinct integers from 0 to 2**32 - 1, at least one, not {short(given)}"
        raise InvalidSetting(message, "seeds")
    return seeds


def check_rungs(rungs: Any) -> None:
    """Raise an InvalidSetting for what is no list of rungs."""
    if not isinstance(rungs, Sequence) or not all(isinstance(rung, Rung) for rung in rungs):
        raise InvalidSetting(f"rungs are a list such as [jr.Rung(steps=100_000)], not {short(rungs)}", "rungs")


def check_function(name: str, given: Callable[..., Any] | None) -> None:
    """Raise an InvalidSetting for an argument that is to be called and cannot be."""
    if given is not None and not callable(given):
        raise InvalidSetting(f"{name} is called while it trains: give a function, not {short(given)}", name)
