"""What a program can be exported to, and which tasks each target is for."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal, NamedTuple

from jaxreward.errors import UserError
from jaxreward.exports.simulations import is_grid, is_mujoco
from jaxreward.tasks import Box

Target = Literal["plain", "gymnasium", "brax", "playground", "xminigrid"]


class Kind(NamedTuple):
    """A target: what comes out, in words; the packages that its modules import besides JAX; whether they hold a
    simulation; and which tasks it is for, as a test and in words."""

    words: str
    packages: tuple[str, ...]
    simulates: bool
    fits: Callable[[Any], bool]
    only: str


TARGETS: dict[Target, Kind] = {
    "plain": Kind("functions of JAX alone", (), False, lambda _: True, "every task"),
    "gymnasium": Kind("Gymnasium environments", ("gymnasium", "numpy"), True, lambda _: True, "every task"),
    "brax": Kind(
        "a Brax environment",
        ("brax",),
        True,
        lambda t: isinstance(t.action_space, Box),
        "tasks with continuous actions",
    ),
    "playground": Kind("a MuJoCo Playground environment", ("playground",), True, is_mujoco, "robots in MuJoCo XLA"),
    "xminigrid": Kind("an XLand-MiniGrid environment", ("xminigrid",), True, is_grid, "tasks of XLand-MiniGrid"),
}


class UnsuitableTarget(UserError):
    """A target that is not for a task; `fitting` are those that are."""

    def __init__(self, target: Target, task: str, fitting: Sequence[str]) -> None:
        super().__init__(
            f"--to {target} is for {TARGETS[target].only}, which {task} is not; for it there are "
            f"{', '.join(fitting[:-1])} and {fitting[-1]}"
        )
        self.target, self.fitting = target, tuple(fitting)


def check_target(target: Target, task: Any) -> None:
    """Require that `target` suits `task`.

    Raises:
        UnsuitableTarget: it does not.
    """
    if not TARGETS[target].fits(task):
        fitting = [name for name, kind in TARGETS.items() if kind.fits(task)]
        raise UnsuitableTarget(target, task.name, fitting)
