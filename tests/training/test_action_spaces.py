"""Invalid action spaces are named, whoever made them."""

from __future__ import annotations

from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from jaxreward.errors import InvalidSetting
from jaxreward.programs import Program
from jaxreward.tasks import Box, Discrete, make_task
from jaxreward.tasks.probe import Probe
from jaxreward.tasks.validation import InvalidTask
from jaxreward.training import PPO, train
from jaxreward.training.distributions import TanhNormal, distribution_over


@pytest.mark.parametrize(
    ("arguments", "settings"),
    [
        ({"shape": (1,), "low": 1.0, "high": -1.0}, ("low", "high")),
        ({"shape": (1,), "low": 1.0}, ("low", "high")),
        ({"shape": (1,), "low": -np.inf, "high": np.inf}, ("low", "high")),
        ({"shape": (1,), "high": np.nan}, ("low", "high")),
        ({"shape": (2,), "low": np.zeros(2)}, ("low", "high")),
        ({"shape": (0,)}, ("shape",)),
        ({"shape": (2, 0)}, ("shape",)),
        ({"shape": 3}, ("shape",)),
    ],
)
def test_invalid_arguments_of_a_box_are_named(arguments: dict[str, Any], settings: tuple[str, ...]):
    with pytest.raises(InvalidSetting) as error:
        Box(**arguments)
    assert error.value.settings == settings


def test_possible_boxes_are_accepted():
    assert Box((2, 3), low=0.0, high=np.float32(0.5)).size == 6  # type: ignore[arg-type]
    assert distribution_over(Box((), low=-2.0)) == TanhNormal(Box((), low=-2.0))


def test_a_discrete_space_without_actions_is_refused():
    with pytest.raises(InvalidSetting) as error:
        Discrete(0)
    assert error.value.settings == ("n",)


@dataclass(frozen=True)
class Foreign(Probe):
    """A task whose space is another library's."""

    @property
    def action_space(self) -> Any:
        return SimpleNamespace(shape=(2,), n=3)


def test_an_unknown_action_space_is_refused():
    program = Program.default(make_task("probe-choice"))
    settings: dict[str, Any] = {"seeds": 1, "steps": 8, "checkpoints": 1, "eval_episodes": 8}
    with pytest.raises(InvalidTask) as error:
        train(Foreign("choice"), [program], PPO(envs=8, unroll=1, minibatches=1), **settings)
    (finding,) = error.value.findings
    assert "`action_space` is a SimpleNamespace" in finding.message and finding.file == __file__
