"""Defaults of a search by name: what two cores or an accelerator can do, and the budgets of LIMEN's paper."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

from jaxreward.errors import UnknownName, UserError
from jaxreward.evolution.search_options import ObjectiveName
from jaxreward.evolution.settings import EvolveSettings
from jaxreward.sentences import mention
from jaxreward.tasks import Box, Task, has_real_actions
from jaxreward.training import PPO, paper
from jaxreward.training.learners import for_recovered_rewards, quick_for

PRESETS = ("quick", "paper-budget", "paper")


@dataclass(frozen=True)
class Budget:
    """The paper's protocol on one task (LIMEN, sections 5.3 and 5.7): steps of the full training with three seeds,
    steps and threshold of the short rung, if there is one, seeds and steps of the final training, islands."""

    steps: int
    filter_steps: int = 0
    filter_threshold: float = 0.05
    final_seeds: int = 10
    final_steps: int = 0
    islands: int = 3


PAPER_BUDGETS = {
    "xland-easy": Budget(1_000_000, 500_000, 0.05, final_steps=2_000_000),
    "xland-medium": Budget(2_000_000, 1_000_000, 0.02, final_steps=4_000_000),
    "xland-hard": Budget(5_000_000, 3_000_000, 0.01, final_steps=6_000_000),
    "go1-push-recovery": Budget(25_000_000, final_seeds=5, islands=2),
    "panda-tracking": Budget(15_000_000, final_seeds=5, islands=2),
}

_QUICK_STEPS = {
    "xland-medium": 500_000, "xland-hard": 1_000_000, "panda-tracking": 400_000, "go1-push-recovery": 2_000_000,
    "ball-roll": 800_000, "cube-place": 1_000_000, "cube-stack": 1_000_000, "door-open": 300_000,
    "package-push": 300_000, "peg-insert": 500_000,
    "flappy-bird": 500_000, "snake": 500_000, "tetris": 500_000,
}  # fmt: skip
"""Steps of a seed where the default is not enough."""


def usual_strategy(objective: ObjectiveName | None = None) -> str:
    """The strategy of a search with this objective, by default that of the settings, where none is named."""
    return "grace" if objective == "demonstrations" else EvolveSettings.strategy


def quick_learner(task: str | Task, platform: str | None = None) -> PPO:
    """The learner for a task, or that of this name, on a platform of JAX, by default that of its default backend."""
    return quick_for(_has_real_actions(task), platform)


def quick_steps(task: str | Task) -> int:
    """Steps of a seed in which a good interface of the task shows on two CPU cores."""
    return _QUICK_STEPS.get(_name(task), 400_000 if _has_real_actions(task) else EvolveSettings.steps)


def _name(task: str | Task) -> str:
    return task if isinstance(task, str) else task.name


def _has_real_actions(task: str | Task) -> bool:
    return has_real_actions(task) if isinstance(task, str) else isinstance(task.action_space, Box)


DEMONSTRATION_CANDIDATES, EXPANSIONS = 100, 2
"""Of a search on demonstrations."""


def preset(
    name: str,
    task: str | Task,
    strategy: str = EvolveSettings.strategy,
    platform: str | None = None,
    objective: ObjectiveName = "training",
) -> EvolveSettings:
    """Defaults by name, for a task or that of this name, and for devices of a platform of JAX, by default that of its
    default backend.

    The budgets of `quick` are sized for two cores, its learner for the platform. `paper-budget` is the search of
    LIMEN's paper (30 candidates, one at a time) and its budgets with the learner of `quick`; `paper` has the paper's
    learner too. A search on demonstrations has the learner of `for_recovered_rewards`, with `grace` expansions of the
    data, and with `quick` more candidates, which cost no training.

    Raises:
        UserError: no such preset, or none for this task.
    """
    if name not in PRESETS:
        raise UnknownName("preset", name, PRESETS, otherwise="choose from", settings=("preset",))
    found = _for_training(name, task, strategy, platform)
    if objective == "training":
        return found
    candidates = DEMONSTRATION_CANDIDATES if name == "quick" else found.candidates
    option = (*found.option, f"expansions={EXPANSIONS}") if strategy == "grace" else found.option
    return dataclasses.replace(found, candidates=candidates, option=option, ppo=for_recovered_rewards(found.ppo))


def _for_training(name: str, task: str | Task, strategy: str, platform: str | None) -> EvolveSettings:
    real, learner, steps = _has_real_actions(task), quick_learner(task, platform), quick_steps(task)
    task = _name(task)
    base = EvolveSettings(task=task, steps=steps, ppo=learner)
    if name == "quick":
        if real:  # a simulator of physics is slower than a grid
            return dataclasses.replace(base, seeds=1, final_seeds=3)
        return dataclasses.replace(base, candidates=30) if task in _QUICK_STEPS else base
    if task not in PAPER_BUDGETS:
        raise UserError(
            f"the paper has no budget for '{task}'; {mention('preset', name)} is for {', '.join(PAPER_BUDGETS)}"
        )
    budget = PAPER_BUDGETS[task]
    islands = () if budget.islands == 3 else (f"islands={budget.islands}",)
    return dataclasses.replace(
        base, candidates=30, generation=1, seeds=3, steps=budget.steps, filter_steps=budget.filter_steps,
        filter_threshold=budget.filter_threshold, restart=budget.filter_steps > 0, final_seeds=budget.final_seeds,
        final_steps=budget.final_steps, option=("initial=1", *islands) if strategy == "limen" else (),
        ppo=paper(task) if name == "paper" else base.ppo,
    )  # fmt: skip
