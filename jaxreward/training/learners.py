"""Learners by task: the quick one, by the device that trains it too, and those of the papers."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax

from jaxreward.errors import InvalidSetting
from jaxreward.tasks import Box, Task
from jaxreward.training.hyperparameters import PPO


class Shape(NamedTuple):
    """What of the quick learner depends on the device: the fields of `PPO` by these names."""

    envs: int
    unroll: int
    unrolls: int
    minibatches: int
    epochs: int
    learning_rate: float

    def of(self, ppo: PPO) -> PPO:
        """`ppo` in this shape."""
        return ppo.replace(**self._asdict())


PLATFORMS = ("cpu", "gpu", "tpu")
"""The platforms of JAX that have a shape."""

_CPU = Shape(envs=64, unroll=16, unrolls=1, minibatches=4, epochs=2, learning_rate=3e-3)
_CPU_REAL = Shape(envs=128, unroll=10, unrolls=4, minibatches=8, epochs=4, learning_rate=1e-3)
_WIDE, _WIDE_REAL = _CPU._replace(envs=256, minibatches=16), _CPU_REAL._replace(envs=256, minibatches=16)

SHAPES: dict[str, dict[str, Shape]] = {
    # A CPU pays for arithmetic: small batches learn most from a step. Elsewhere launches in sequence are what takes
    # time, and a step of four times the environments has hardly more of them. Minibatches keep their size, by which as
    # many steps teach as much. With more than the 256 held-out episodes another collector would be compiled for these.
    "discrete": {"cpu": _CPU, "gpu": _WIDE, "tpu": _WIDE},
    # Likewise, measured on the hopper alone: six seeds show no difference to a CPU's; with 512 it learned less.
    "continuous": {"cpu": _CPU_REAL, "gpu": _WIDE_REAL, "tpu": _WIDE_REAL},
}
"""The shapes of the quick learner by kind of action and platform (docs/appendix/quick_learner.md)."""

_QUICK_REAL: dict[str, Any] = {
    **SHAPES["continuous"]["cpu"]._asdict(),
    "entropy": 5e-3, "hidden": (64, 64), "value_hidden": (128, 128), "scale_rewards": True, "reward_scale": 30.0,
    "observation_clip": 5.0,
}  # fmt: skip
# The rewards of programs have any scale, and when they are small the noise of an untrained value network dominates:
# returns are scaled to a size at which robots learn (benchmarks/reward_units.py). The learning rate is constant: decay
# preserves early solutions, which robots do not reach within these budgets (docs/appendix/robot_results.md).


def quick_real(**settings: Any) -> PPO:
    """Brax's form of PPO in the size that two CPU cores can train within minutes (docs/robots.md); `settings` in place
    of its own."""
    return PPO.brax(**(_QUICK_REAL | settings))


_BRAX_PAPER = PPO.brax(
    learning_rate=3e-4, discount=0.97, clip=0.2, entropy=0.0, envs=2048, unroll=5, unrolls=16, minibatches=32, epochs=4,
    hidden=(64, 64), value_hidden=(64, 64),
)  # fmt: skip

_XLAND_PAPER = PPO(
    learning_rate=1e-3, decay=1.0, discount=0.99, gae_lambda=0.95, clip=0.2, value_clip=0.2, entropy=0.01,
    value_coefficient=0.5, max_grad_norm=0.5, adam_epsilon=1e-8, envs=8192, unroll=16, epochs=1, minibatches=16,
    hidden=(256, 256), activation="relu", scale_rewards=False, gru=512, action_embedding=16, heads=(256,),
    reset_memory=False,
)  # fmt: skip

PAPER: dict[str, PPO] = {
    **dict.fromkeys(("xland-easy", "xland-medium", "xland-hard"), _XLAND_PAPER),
    "go1-push-recovery": PPO.brax(
        learning_rate=3e-4, discount=0.97, clip=0.2, entropy=0.01, envs=4096, unroll=20, unrolls=2, minibatches=32,
        epochs=4, hidden=(512, 256, 128), value_hidden=(512, 256, 128),
    ),
    "panda-tracking": PPO.brax(
        learning_rate=5e-4, discount=0.97, clip=0.2, entropy=0.015, envs=2048, unroll=10, unrolls=16, minibatches=32,
        epochs=8, hidden=(32,) * 4, value_hidden=(256,) * 5,
    ),
    "ant": _BRAX_PAPER,
    "humanoid": _BRAX_PAPER,
}  # fmt: skip
"""LIMEN's learners (appendices A.1 and A.2 and its reference implementation). Of robots, the batch of B unrolls and M
minibatches there is `unrolls = B * M / envs` here."""


def shape_of(real: bool, platform: str | None = None) -> Shape:
    """The row of `SHAPES` for real or discrete actions on a platform of JAX, by default that of its default backend.

    A platform that is neither a CPU nor a TPU is a GPU.
    """
    rows = SHAPES["continuous" if real else "discrete"]
    return rows.get(platform or jax.default_backend(), rows["gpu"])


def quick_for(real: bool, platform: str | None = None) -> PPO:
    """The quick learner for real or discrete actions, in the shape for the platform, as in `shape_of`."""
    return shape_of(real, platform).of(quick_real() if real else PPO())


def quick(task: Task, platform: str | None = None) -> PPO:
    """The learner for `task` on a device of `platform`: `cpu`, `gpu` or `tpu`, by default JAX's default backend."""
    return quick_for(isinstance(task.action_space, Box), platform)


def for_recovered_rewards(ppo: PPO) -> PPO:
    """`ppo` for a reward that was recovered from demonstrations, which most often costs in all states but a few.

    Values are estimated from their mean, and the horizon cuts an episode and is no end of it. As an end it would be
    worth as much as success is, and since the agent does not see it come, that is noise in every estimate (Pardo et al.
    2018, "Time limits in reinforcement learning"). An early end is a state that is never left: else agents would end
    episodes in order to pay no more, or put off a success in order to be paid for being near it.
    """
    return ppo.replace(bootstrap=True, center_values=True, absorbing=True)


def for_imitation(ppo: PPO) -> PPO:
    """`ppo` for the rewards of a discriminator: the horizon cuts an episode and an early end is a state that is never
    left, as in `for_recovered_rewards` (Kostrikov et al. 2019, "Discriminator-actor-critic"), and the learning rate
    falls to 0, without which agent and discriminator may go in circles. Values are not centred: what a discriminator
    pays at first says nothing of later."""
    return ppo.replace(bootstrap=True, decay=1.0, absorbing=True)


def paper(name: str) -> PPO:
    """The learner that LIMEN's paper has for the task called `name`.

    Raises:
        UserError: a task for which it has none, or one that this project does not have.
    """
    if name not in PAPER:
        message = f"the paper's learner for '{name}' is not here; it is for {', '.join(sorted(PAPER))}"
        raise InvalidSetting(message, "task")
    return PAPER[name]
