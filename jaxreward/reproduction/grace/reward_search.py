"""Cells: a search for a reward on recorded episodes, and how well what it found tells held-out ones apart."""

from __future__ import annotations

import dataclasses
from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from jaxreward import files
from jaxreward.comparison.cells import Tools, Unfinished
from jaxreward.errors import FAILED_EXIT_CODE, USAGE_EXIT_CODE, UserError
from jaxreward.evolution import run_search
from jaxreward.evolution.presets import EXPANSIONS
from jaxreward.evolution.settings import EvolveSettings
from jaxreward.evolution.setup import Setup
from jaxreward.objectives.demonstrations.demonstration_options import DemonstrationOptions
from jaxreward.objectives.demonstrations.demonstration_sets import FOLDER, DemonstrationSets, is_there
from jaxreward.objectives.demonstrations.scoring import RULES, DemonstrationData, separate
from jaxreward.programs import Checker, Program
from jaxreward.records import ACCURACY
from jaxreward.reproduction.cell import Cell, Plan
from jaxreward.reproduction.grace.episodes import LevelEpisodes, level_seconds, level_task
from jaxreward.search.grace import Grace
from jaxreward.tasks import Task
from jaxreward.training import quick
from jaxreward.training.learners import for_recovered_rewards

CANDIDATES = 40
"""Rewards that a search scores by default. The paper asks for 2,000: 100 generations of 20."""
POPULATION = 20
"""The paper's (table 6)."""
EXPANSION_STEPS = 200_000
"""Environment steps of each policy that expands the data of a level."""
POLICIES = EXPANSIONS + Grace.confirmations
"""The most policies that expand the data of a search."""
_SEARCH = "search"

_SECONDS, _SECONDS_A_CANDIDATE = 4.0, 0.16
"""On two CPU cores, with the recordings of a level over all of its searches."""


@dataclass(frozen=True)
class RewardSearch(Cell):
    """A search.

    Attributes:
        expert, negative: how many episodes it is given.
        seed: of the search, and of the episodes.
    """

    kind: ClassVar[str] = "search"
    shown: ClassVar[tuple[str, ...]] = ("held_out_accuracy", "accuracy", "fitness")

    expert: int
    negative: int
    seed: int

    @abstractmethod
    def task(self) -> Task:
        """The same object for all cells of a part, by which programs and compiled functions are kept."""

    @abstractmethod
    def sets(self, plan: Plan) -> DemonstrationSets:
        """The episodes that it is given."""

    @abstractmethod
    def held_out(self, plan: Plan) -> DemonstrationData:
        """What its reward is judged by in the end."""

    def options(self, plan: Plan) -> tuple[str, ...]:
        """Further options of the strategy, as KEY=VALUE."""
        return ()

    def more(self, plan: Plan) -> dict[str, Any]:
        """Further settings of the search, by name."""
        return {}

    def settings(self, plan: Plan) -> dict[str, Any]:
        asked = {"model": list(plan.llm.model)} if plan.proposer == "llm" else {}
        return {"candidates": plan.candidates, "proposer": plan.proposer, **asked}

    def seconds(self, plan: Plan) -> float:
        return _SECONDS + _SECONDS_A_CANDIDATE * plan.candidates

    def search(self, plan: Plan) -> EvolveSettings:
        path, task = self._run_folder(plan), self.task()
        given = DemonstrationOptions(
            data=(path / FOLDER / "expert.npz",), expert_episodes=self.expert, negative_episodes=self.negative
        )
        return EvolveSettings(
            task=task.name, strategy="grace", option=self.options(plan),
            proposer=plan.proposer, objective="demonstrations", demonstrations=given, candidates=plan.candidates,
            generation=min(POPULATION, plan.candidates), final_seeds=0, baselines=(), seed=self.seed, llm=plan.llm,
            unsafe_no_sandbox=plan.unsafe_no_sandbox, command=plan.command, out=path.parent, name=path.name,
            resume=files.is_there(path / "config.toml"), **self.more(plan),
        )  # fmt: skip

    def run(self, plan: Plan, tools: Tools) -> Mapping[str, Any] | Unfinished:
        path = self._run_folder(plan)
        if not is_there(path):
            self.sets(plan).write(path)
        settings = self.search(plan)
        settings.check()
        setup = Setup.of(settings, self.task(), copies=path)
        outcome = run_search(settings, tools.watcher, setup=setup, stop=tools.stop, checker=tools.checker)
        if outcome.exit_code == FAILED_EXIT_CODE or (not outcome.exit_code and outcome.best is None):
            raise UserError(f"the search found no reward: {outcome.reason}")
        if outcome.exit_code:
            return Unfinished(self.label, outcome.reason, outcome.exit_code != USAGE_EXIT_CODE)
        assert outcome.best is not None and outcome.best.score is not None and outcome.best.feedback is not None
        program = self.found(plan, tools.checker)
        (held_out,) = separate([program], self.held_out(plan))
        return {
            "held_out_accuracy": float(held_out.accuracy[0]),
            "accuracy": outcome.best.feedback.extra_metrics[ACCURACY],
            "fitness": outcome.best.score.mean,
            "held_out_fitness": float(held_out.fitness[0]),
            "candidates": outcome.progress.spent.trained,
            "env_steps": outcome.progress.spent.env_steps,
            "digest": program.digest,
        }  # fmt: skip

    def found(self, plan: Plan, checker: Checker) -> Program:
        """The best reward of the finished search, checked, with the task's default observation."""
        program = checker.load(self._run_folder(plan) / "best_interface.py", self.task())
        return dataclasses.replace(program, name=self.label)

    def _run_folder(self, plan: Plan) -> Path:
        """The run that the search is."""
        return self.folder(plan.out) / _SEARCH


@dataclass(frozen=True)
class LevelSearch(RewardSearch):
    """A search on a BabyAI level. As in the paper, only the last state of an expert's episode is told from others."""

    def task(self) -> Task:
        return level_task(self.part)

    def sets(self, plan: Plan) -> DemonstrationSets:
        return LevelEpisodes(self.part, plan.out).sets(self.expert, self.negative, self.seed)

    def held_out(self, plan: Plan) -> DemonstrationData:
        return LevelEpisodes(self.part, plan.out).held_out()


@dataclass(frozen=True)
class ExpandedLevelSearch(LevelSearch):
    """A search whose data are expanded by the policies of its rewards, which the paper needs on robots alone: a
    language model guesses what the expert meant, and the genetic proposer must see what it did not."""

    kind: ClassVar[str] = "expanded"

    def settings(self, plan: Plan) -> dict[str, Any]:
        asked = {"confirmations": Grace.confirmations, "reserve": Grace.reserve, "rules": RULES}
        return super().settings(plan) | {"expansions": EXPANSIONS, "expansion_steps": EXPANSION_STEPS, **asked}

    def env_steps(self, plan: Plan) -> int:
        return POLICIES * EXPANSION_STEPS

    def seconds(self, plan: Plan) -> float:
        return super().seconds(plan) + POLICIES * level_seconds(EXPANSION_STEPS)

    def options(self, plan: Plan) -> tuple[str, ...]:
        return (f"expansions={EXPANSIONS}",)

    def more(self, plan: Plan) -> dict[str, Any]:
        return {"steps": EXPANSION_STEPS, "ppo": for_recovered_rewards(quick(self.task()))}
