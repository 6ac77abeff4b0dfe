"""Spaces of actions that cannot be get a sentence, whoever made them."""

from __future__ import annotations

from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from jaxreward.errors import UserError
from jaxreward.programs import Program
from jaxreward.tasks import Box, Discrete, make_task
from jaxreward.tasks.probe import Probe
from jaxreward.training import PPO, train
from jaxreward.training.distributions import TanhNormal, distribution_over


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({"shape": (1,), "low": 1.0, "high": -1.0}, "low < high, .* not 1.0 and -1.0"),
        ({"shape": (1,), "low": 1.0}, "low < high"),
        ({"shape": (1,), "low": -np.inf, "high": np.inf}, "finite numbers"),
        ({"shape": (1,), "high": np.nan}, "finite numbers"),
        ({"shape": (2,), "low": np.zeros(2)}, "the same for all of its actions"),
        ({"shape": (0,)}, r"positive whole numbers, .* not \(0,\)"),
        ({"shape": (2, 0)}, "positive whole numbers"),
        ({"shape": 3}, r"a tuple of .* not 3"),
    ],
)
def test_impossible_boxes_are_refused(arguments: dict[str, Any], says: str):
    with pytest.raises(UserError, match=says):
        Box(**arguments)


def test_possible_boxes_are_accepted():
    assert Box((2, 3), low=0.0, high=np.float32(0.5)).size == 6  # type: ignore[arg-type]
    assert distribution_over(Box((), low=-2.0)) == TanhNormal(Box((), low=-2.0))


def test_a_discrete_space_without_actions_is_refused():
    with pytest.raises(UserError, match=r"Discrete\(0\) has no action"):
        Discrete(0)


@dataclass(frozen=True)
class Foreign(Probe):
    """A task whose space is another library's."""

    @property
    def action_space(self) -> Any:
        return SimpleNamespace(shape=(2,), n=3)


def test_an_unknown_action_space_is_refused():
    program = Program.default(make_task("probe-choice"))
    settings: dict[str, Any] = {"seeds": 1, "steps": 8, "checkpoints": 1, "eval_episodes": 8}
    with pytest.raises(UserError, match="is a SimpleNamespace, and must be a jaxreward.tasks.Discrete or Box"):
        train(Foreign("choice"), [program], PPO(envs=8, unroll=1, minibatches=1), **settings)
