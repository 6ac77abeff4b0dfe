"""Cells: searches whose candidates are trained, what they found trained on fresh seeds, and what they compare with."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from statistics import fmean
from typing import Any, ClassVar, cast

from jaxreward import files
from jaxreward.comparison.cells import Tools, Unfinished
from jaxreward.comparison.finished_searches import read_search
from jaxreward.errors import FAILED_EXIT_CODE, USAGE_EXIT_CODE, EndCause
from jaxreward.evolution import run_search
from jaxreward.evolution.costs import cost_s, search_s
from jaxreward.evolution.final_evaluation import FIRST_SEED
from jaxreward.evolution.presets import PAPER_BUDGETS, preset, quick_steps
from jaxreward.evolution.settings import EvolveSettings
from jaxreward.programs import Checker, Program
from jaxreward.proposers.llm.llm_settings import JUDGE_OPTIONS, LlmSettings
from jaxreward.records import ALIGNMENT, Evolve, Score
from jaxreward.reports.tables import interval
from jaxreward.reproduction.cell import Cell, Plan
from jaxreward.reproduction.entry import Results
from jaxreward.reproduction.layout import Measured
from jaxreward.reproduction.training_cell import Training
from jaxreward.tasks import Task, make_task_of, measure_of
from jaxreward.tasks.documentation import subtask_metrics
from jaxreward.training import TrainResult, train
from jaxreward.training.plan import EVAL_EPISODES, curve_points

FRESH = "fresh"
"""The name of the metric by fresh seed in the numbers of a search."""

ENDED_EARLY = "ended_early"
"""The name, in the numbers of a search, of why it ended before all its candidates were trained."""

TASK_ARGS: Mapping[str, tuple[str, ...]] = {"ant, speed": ("metric=speed",), "humanoid, speed": ("metric=speed",)}
"""Options of tasks that parts of entries are named with, after the name of the task and a comma."""


def task_name(part: str) -> str:
    """The name of the task that a part is about."""
    return part.partition(",")[0]


@lru_cache(maxsize=2)
def task_of(part: str, arguments: tuple[str, ...] = ()) -> Task:
    """The task of a part, with further options as KEY=VALUE: the same object for all cells in a row."""
    return make_task_of(task_name(part), (*TASK_ARGS.get(part, ()), *arguments))


def steps_of(part: str, plan: Plan) -> int:
    """Environment steps of every policy of a part."""
    return plan.steps or quick_steps(task_name(part))


def rung_of(part: str, steps: int) -> dict[str, Any]:
    """The settings of LIMEN's short run (section 5.3), here the first part of a training of so many steps; none for a
    task without one."""
    paper = PAPER_BUDGETS.get(part)
    if paper is None or not paper.filter_steps:
        return {}
    return {"filter_steps": paper.filter_steps * steps // paper.steps, "filter_threshold": paper.filter_threshold}


@dataclass(frozen=True)
class TrainedSearch(Cell):
    """A search, and what it found trained on fresh seeds.

    Attributes:
        strategy: its name.
        evolve: what it changes.
        option: of the strategy, as KEY=VALUE, with spaces between several; empty for none.
        seed: of the search.
        fresh: seeds of the final training.
    """

    kind: ClassVar[str] = "search"
    shown: ClassVar[tuple[str, ...]] = ("search", FRESH)

    strategy: str
    evolve: str
    seed: int = 0
    option: str = ""
    fresh: int = 10

    def settings(self, plan: Plan) -> dict[str, Any]:
        asked: dict[str, Any] = {"model": list(plan.llm.model)} if plan.proposer == "llm" else {}
        if (llm := self.search(plan).llm).judge_model:
            asked |= {name: getattr(llm, name) for name in JUDGE_OPTIONS}
        steps = steps_of(self.part, plan)
        own = {"steps": steps, "candidates": self.candidates(plan), "proposer": plan.proposer}
        return {**own, **asked, **rung_of(self.part, steps)}

    def candidates(self, plan: Plan) -> int:
        """How many it trains."""
        return plan.candidates

    def env_steps(self, plan: Plan) -> int:
        s = self.search(plan)
        return s.steps * (s.candidates * s.seeds + s.final_seeds)

    def seconds(self, plan: Plan) -> float:
        s, task = self.search(plan), task_of(self.part)
        return search_s(s, task) + cost_s(task, s.ppo, 1, s.final_seeds, s.steps, episodes=s.eval_episodes)

    def search(self, plan: Plan) -> EvolveSettings:
        path, base = self._run_folder(plan), preset("quick", task_name(self.part))
        steps = steps_of(self.part, plan)
        found = dataclasses.replace(
            base, task_arg=TASK_ARGS.get(self.part, ()), strategy=self.strategy, evolve=cast(Evolve, self.evolve),
            option=tuple(self.option.split()), proposer=plan.proposer, candidates=self.candidates(plan), steps=steps,
            final_seeds=self.fresh, surrogate=0, baselines=(), seed=self.seed, llm=plan.llm,
            unsafe_no_sandbox=plan.unsafe_no_sandbox, command=plan.command, out=path.parent, name=path.name,
            resume=files.is_there(path / "config.toml"), **rung_of(self.part, steps),
        )  # fmt: skip
        if found.judged_by == "model":
            return found
        return dataclasses.replace(found, llm=plan.llm.without_judge() if plan.proposer == "llm" else LlmSettings())

    def run(self, plan: Plan, tools: Tools) -> Mapping[str, Any] | Unfinished:
        settings = self.search(plan)
        settings.check()
        task = task_of(self.part)
        outcome = run_search(settings, tools.watcher, task=task, stop=tools.stop, checker=tools.checker)
        if outcome.exit_code not in (0, FAILED_EXIT_CODE):
            return Unfinished(self.label, outcome.reason, outcome.exit_code != USAGE_EXIT_CODE)
        found = read_search(self._run_folder(plan))
        assert found is not None
        worst, final = measure_of(task).worst, outcome.progress.baselines.get("best")
        feedback = final.feedback if final is not None else None
        curves = {"steps": feedback.steps, "curves": feedback.by_seed} if feedback is not None else {}
        early = {} if outcome.cause in (None, EndCause.CANDIDATES) else {ENDED_EARLY: outcome.reason}
        return {
            "search": found.search_score.mean if found.search_score is not None else worst,  # it found nothing
            FRESH: list(feedback.seed_success) if feedback is not None else [worst],
            "episodes": final.score.episodes if final is not None and final.score is not None else EVAL_EPISODES,
            "scores": found.scores, "env_steps": found.spent.env_steps, **curves, **early,
            **_aligned(FRESH, feedback.alignment if feedback is not None else _nothing_done(task)),
        }  # fmt: skip

    def found(self, plan: Plan, checker: Checker, task: Task) -> Program:
        """The best program of the finished search, checked for a task with the same views."""
        program = checker.load(self._run_folder(plan) / "best_interface.py", task)
        return dataclasses.replace(program, name=self.label)

    def found_nothing(self, plan: Plan) -> bool:
        """Whether the search has no program with a score."""
        return not files.is_there(self._run_folder(plan) / "best_interface.py")

    def _run_folder(self, plan: Plan) -> Path:
        return self.folder(plan.out) / "search"


@dataclass(frozen=True)
class FreshTraining(Training):
    """A training with the fresh seeds on which what searches found is trained.

    Attributes:
        fresh: how many.
    """

    fresh: int = 10

    def task(self) -> Task:
        return task_of(self.part)

    def seeds(self, plan: Plan) -> range:
        return range(FIRST_SEED, FIRST_SEED + self.fresh)

    def steps(self, plan: Plan) -> int:
        return steps_of(self.part, plan)

    def points(self, plan: Plan) -> int:
        return curve_points(self.task(), self.ppo(), self.steps(plan), EVAL_EPISODES)

    def programs(self) -> int:
        """How many programs it trains."""
        return 1

    def env_steps(self, plan: Plan) -> int:
        return self.programs() * self.fresh * self.steps(plan)

    def seconds(self, plan: Plan) -> float:
        return cost_s(self.task(), self.ppo(), self.programs(), self.fresh, self.steps(plan))


@dataclass(frozen=True)
class OwnInterfaces(FreshTraining):
    """The task's own observation with its sparse reward, and with a person's dense one where there is one."""

    kind: ClassVar[str] = "own"
    shown: ClassVar[tuple[str, ...]] = ("sparse", "dense")

    def programs(self) -> int:
        return 1 + hasattr(self.task(), "dense_reward")

    def train(self, plan: Plan, tools: Tools, **how: Any) -> TrainResult:
        return train(self.task(), Program.own(self.task())[: self.programs()], self.ppo(), **how)

    def numbers(self, values: list[list[float]], result: TrainResult, plan: Plan) -> dict[str, Any]:
        found: dict[str, Any] = {"steps": result.feedback(0).steps}
        for row, name in enumerate(("sparse", "dense")[: len(values)]):
            found |= {name: values[row], f"{name}_curves": result.feedback(row).by_seed}
            found |= _aligned(name, result.alignment(row))
        return found


@dataclass(frozen=True)
class SparseInterface(OwnInterfaces):
    """With its sparse reward alone."""

    kind: ClassVar[str] = "sparse"

    def programs(self) -> int:
        return 1


@dataclass(frozen=True)
class ShiftedTraining(FreshTraining):
    """What a search found, trained in another variant of its task.

    Attributes:
        seed: of the search.
        argument: the option of the task that differs, as KEY=VALUE; empty for none.
    """

    kind: ClassVar[str] = "shifted"
    shown: ClassVar[tuple[str, ...]] = (FRESH,)

    fresh: int = 5
    strategy: str = "limen"
    seed: int = 0
    argument: str = ""

    def task(self) -> Task:
        return task_of(self.part, (self.argument,) if self.argument else ())

    def needs(self, plan: Plan) -> Sequence[TrainedSearch]:
        return [TrainedSearch(self.part, self.strategy, "both", self.seed)]

    def settings(self, plan: Plan) -> dict[str, Any]:
        return super().settings(plan) | self.needs(plan)[0].settings(plan)

    def run(self, plan: Plan, tools: Tools) -> Mapping[str, Any] | Unfinished:
        if self.needs(plan)[0].found_nothing(plan):
            return {FRESH: [measure_of(self.task()).worst], "episodes": EVAL_EPISODES}
        return super().run(plan, tools)

    def train(self, plan: Plan, tools: Tools, **how: Any) -> TrainResult:
        (search,) = self.needs(plan)
        return train(self.task(), [search.found(plan, tools.checker, self.task())], self.ppo(), **how)

    def numbers(self, values: list[list[float]], result: TrainResult, plan: Plan) -> dict[str, Any]:
        return {FRESH: values[0]}


def fresh_score(results: Results, cells: Sequence[Cell], name: str = FRESH) -> Measured | None:
    """The metric on fresh seeds: of one cell over these seeds, of several over the cells' means; None without any."""
    known = [results[cell].numbers for cell in cells if cell in results and name in results[cell].numbers]
    if not known:
        return None
    measure = measure_of(task_of(cells[0].part))
    values = [float(x) for x in known[0][name]] if len(known) == 1 else [fmean(n[name]) for n in known]
    return Measured.of_episodes(values, sum(int(n["episodes"]) for n in known), measure)


def fresh_alignment(results: Results, cells: Sequence[Cell], name: str = FRESH) -> Measured | None:
    """The alignment with the task's instruction of the same; None where it is not measured."""
    known = [results[cell].numbers for cell in cells if cell in results]
    found = [Score.model_validate(n[f"{name}_alignment"]) for n in known if f"{name}_alignment" in n]
    if len(found) == 1:
        return Measured(found[0].mean, interval(found[0]), found[0].n)
    return Measured.of([score.mean for score in found])


def early_ends(results: Results) -> tuple[str, ...]:
    """A sentence for every reason why searches ended before all their candidates were trained."""
    counts = Counter(str(cell.numbers[ENDED_EARLY]) for cell in results.values() if ENDED_EARLY in cell.numbers)
    searches = sum(isinstance(cell, TrainedSearch) for cell in results)
    return tuple(
        f"Searches that ended before all their candidates were trained: {n} of {searches} ({reason})."
        for reason, n in sorted(counts.items())
    )


def _nothing_done(task: Task) -> Score | None:
    """The alignment where nothing was found; None where it is not measured."""
    if not subtask_metrics(task):
        return None
    return Score(mean=0.0, se=0.0, n=1, episodes=EVAL_EPISODES, measure=ALIGNMENT)


def _aligned(name: str, score: Score | None) -> dict[str, Any]:
    """How an alignment stands in a cell."""
    return {} if score is None else {f"{name}_alignment": score.model_dump(mode="json")}


def number(results: Results, cells: Sequence[Cell], of: Callable[[Mapping[str, Any]], float]) -> Measured | None:
    """The mean over cells of a function of their numbers; None without any."""
    values = [float(of(results[cell].numbers)) for cell in cells if cell in results]
    return Measured.of(values, rate=measure_of(task_of(cells[0].part)).rate) if values else None
