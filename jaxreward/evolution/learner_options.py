"""Which learner trains, and its hyperparameters: options of every command that trains programs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from jaxreward.errors import InvalidSetting
from jaxreward.sentences import mention
from jaxreward.tasks import has_real_actions, is_file
from jaxreward.training import PPO, SAC, Learner

LearnerName = Literal["ppo", "sac"]


@dataclass(frozen=True)
class LearnerOptions:
    """The learner."""

    learner: LearnerName = "ppo"
    """What trains the agents. ppo: proximal policy optimisation; sac: soft actor-critic, for continuous actions."""
    ppo: PPO = field(default_factory=PPO)
    """Hyperparameters of proximal policy optimisation."""
    sac: SAC = field(default_factory=SAC)
    """Hyperparameters of soft actor-critic, with --learner sac."""

    @property
    def hyper(self) -> Learner:
        """The hyperparameters of the learner that trains."""
        return self.sac if self.learner == "sac" else self.ppo


def check_learner(settings: LearnerOptions, task: str) -> None:
    """Raise an InvalidSetting for a learner with an invalid hyperparameter, or one that `task` is not for."""
    if settings.learner == "ppo" and settings.sac != SAC():
        raise InvalidSetting(f"{mention('sac')} is for {mention('learner', 'sac')}", "sac", "learner")
    settings.hyper.check()
    if settings.learner == "sac" and task and not is_file(task) and not has_real_actions(task):
        message = f"{mention('learner', 'sac')} is for continuous actions, and those of {task} are discrete"
        raise InvalidSetting(message, "learner", "task")


def named_learner(given: Mapping[str, Any]) -> Mapping[str, Any]:
    """Keyword arguments with `ppo=jr.SAC(...)`, the form that `jaxreward.train` has, as settings."""
    if not isinstance(given.get("ppo"), SAC):
        return given
    if "sac" in given:
        raise InvalidSetting("ppo is a SAC and sac is given too: give one of them", "ppo", "sac")
    others = {name: value for name, value in given.items() if name != "ppo"}
    return {**others, "learner": "sac", "sac": given["ppo"]}


def require_one_learner(learner: str, given: Iterable[str]) -> None:
    """Raise an InvalidSetting where values are given, by these paths, for a learner that is not the one that trains."""
    if learner == "sac" and any(path.partition(".")[0] == "ppo" for path in given):
        message = f"{mention('ppo')} is for {mention('learner', 'ppo')}, and this is {mention('learner', 'sac')}"
        raise InvalidSetting(message, "ppo", "learner")
