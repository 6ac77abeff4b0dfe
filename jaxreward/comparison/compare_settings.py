"""The settings of `jaxreward compare`, and the cells of the comparison."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from typing import Annotated, Any

from jaxreward.comparison.cells import Cell, SearchCell, SparseCell
from jaxreward.comparison.finished_searches import Grid, SearchKey, folder_of
from jaxreward.config import Arg, check_bounds, is_file
from jaxreward.errors import InvalidSetting, nearest
from jaxreward.evolution.candidate_training import CandidateTraining
from jaxreward.evolution.presets import preset
from jaxreward.evolution.search_options import OF_GENETIC, SearchOptions
from jaxreward.evolution.settings import EvolveSettings
from jaxreward.evolution.setup import Objects
from jaxreward.identity import Identity
from jaxreward.proposers.llm.llm_settings import JUDGE_OPTIONS, LlmSettings
from jaxreward.records import Evolve
from jaxreward.search import STRATEGIES
from jaxreward.search.registry import own_strategy, strategy_class
from jaxreward.sentences import mention
from jaxreward.tasks import Task

PROPOSERS = ("genetic", "llm")


@dataclass(frozen=True)
class CompareSettings(CandidateTraining):
    """Search with several strategies at equal budget, on the same tasks with the same search seeds, and compare what
    they found on fresh seeds.

    Every search is a run of its own in OUT/<task>/; the same command goes on where it stopped.
    """

    tasks: tuple[str, ...] = ("xland-easy",)
    """What to solve (`jaxreward tasks`). Also gymnax/CartPole-v1 and the like."""
    task_arg: Annotated[tuple[str, ...], Arg(adds=True)] = ()
    """Options of the tasks. Each is KEY=VALUE; all of --tasks must have them."""
    strategies: tuple[str, ...] = field(
        default_factory=lambda: tuple(s for s, kind in STRATEGIES.items() if not kind.instructed)
    )
    """How to search (`jaxreward strategies`). Also Python files, which are executed. best-of-n among them is what the
    others are compared with. rda, for tasks with an instruction, is not among the defaults."""
    proposers: tuple[str, ...] = ("genetic",)
    """Who proposes: genetic, llm or both. llm takes --model. Also Python files, which are executed."""
    search_seeds: Annotated[int, Arg(least=1)] = 3
    """Searches of each strategy and task. So many for each proposer; their seeds are 0 .. search_seeds-1."""
    candidates: Annotated[int, Arg(least=1)] = 30
    """Candidates that each search trains."""
    max_env_steps: Annotated[int, Arg(least=0)] = 0
    """Environment steps after which a search begins no generation; 0 for no limit. Those of tuning and of candidates
    that stop early count: with more --candidates than that allows, searches are compared at equal steps."""
    steps: Annotated[int, Arg(least=0)] = 0
    """Environment steps of each seed; 0: as `evolve`. What that has for the task by default."""
    final_seeds: Annotated[int, Arg(least=1)] = 5
    """Fresh seeds of the final training. The best of each search is trained again on them."""
    evolve: Evolve = "reward"
    """What may change; the other half is the task's own. The same for all strategies."""
    option: Annotated[tuple[str, ...], Arg(unit="STRATEGY.KEY=VALUE", adds=True)] = ()
    """Options of a strategy. `jaxreward strategies NAME` lists them."""
    shard: Annotated[str, Arg(unit="I/N")] = "1/1"
    """Which of how many parts of the work to do. --merge puts them together."""
    merge: tuple[Path, ...] = ()
    """Folders of comparisons or shards to put together. Nothing is searched."""
    out: Path = Path("runs/compare")
    """Folder of searches, table and picture."""

    of_ppo: Annotated[Mapping[str, Any], Arg(hidden=True)] = field(default_factory=dict)
    """Values of `ppo` that were given, by name, in place of those that `jaxreward evolve` has for each task."""
    platform: Annotated[str, Arg(hidden=True)] = "cpu"
    """The platform whose learner the tasks have."""
    command: Annotated[str, Arg(hidden=True)] = ""
    """What the user typed, for the logs."""
    own_tasks: Annotated[Mapping[str, Task], Arg(hidden=True)] = field(default_factory=dict)
    """Tasks that Python code gave as objects, by name."""
    own_proposers: Annotated[Mapping[str, Callable[..., Any]], Arg(hidden=True)] = field(default_factory=dict)
    """What makes the proposers that Python code gave, by name."""

    def check(self) -> None:
        """Raise an `InvalidSetting` for the first invalid setting."""
        self.part()
        for name in ("tasks", "strategies", "proposers"):
            values = getattr(self, name)
            if not values:
                raise InvalidSetting(f"{mention(name)} names nothing; name at least one", name)
            if len(set(values)) < len(values):
                raise InvalidSetting(f"{mention(name)} names one of them twice; name each once", name)
        for proposer in self.proposers:
            if not (proposer in PROPOSERS or is_file(proposer) or proposer in self.own_proposers):
                raise InvalidSetting(
                    f"{mention('proposers')} are {' and '.join(PROPOSERS)}, not {proposer}: nobody else can "
                    "answer for all "
                    "searches",
                    "proposers",
                )
        if judging := [name for name in JUDGE_OPTIONS if getattr(self.llm, name) != getattr(LlmSettings(), name)]:
            message = f"searches that are compared are judged by the task's metrics: leave {mention(judging[0])} out"
            raise InvalidSetting(message, f"llm.{judging[0]}")
        if self.llm != LlmSettings() and "llm" not in self.proposers:
            raise InvalidSetting(
                f"{mention('model')} and what else concerns language models are for "
                f"{mention('proposers', ['llm'])}; name it, "
                "or leave them out",
                "proposers",
                "llm",
            )
        for name in OF_GENETIC if "genetic" not in self.proposers else ():
            if getattr(self, name) != getattr(SearchOptions, name):
                genetic = mention("proposers", ["genetic"])
                message = f"{mention(name)} is for {genetic}; name it, or leave {mention(name)} out"
                raise InvalidSetting(message, name, "proposers")
        check_bounds(self)
        for text in self.option:
            strategy, dot, rest = text.partition(".")
            named = [strategy_class(name).name for name in self.strategies]
            if not dot or "=" not in rest:
                raise InvalidSetting(
                    f"{mention('option', [text])} must be STRATEGY.KEY=VALUE, e.g. limen.islands=2", "option"
                )
            if strategy not in named:
                near = nearest(strategy, named)
                message = f"{mention('option', [text])} is for {strategy}, which is not among {mention('strategies')}"
                raise InvalidSetting(message + (f"; did you mean {near}?" if near else ""), "option", "strategies")
        paths = [folder_of(task) for task in self.tasks]
        if len(set(paths)) < len(paths):
            raise InvalidSetting(
                f"{mention('tasks')} has two whose names make the same folder; compare them apart", "tasks"
            )
        for cell in self.cells():
            cell.settings.check()

    def part(self) -> tuple[int, int]:
        """The shard i of n, from 1."""
        index, _, count = self.shard.partition("/")
        if not (index.isdecimal() and count.isdecimal() and 1 <= int(index) <= int(count)):
            raise InvalidSetting(f"{mention('shard', self.shard)} must be i/n with i from 1 to n, e.g. 2/4", "shard")
        return int(index), int(count)

    def grid(self) -> Grid:
        """What is to be compared, whoever runs it."""
        return Grid(
            tasks=self.tasks, strategies=self.strategies, proposers=self.proposers, search_seeds=self.search_seeds
        )

    def cells(self) -> list[Cell]:
        """All parts of the comparison: per task its own interface first, then seed by seed every strategy."""
        found: list[Cell] = []
        identities = self._identities()
        for task in self.tasks:
            base = self._search(task)
            found.append(SparseCell(base, identities.get(("task", task), Identity())))
            for seed, strategy, proposer in product(range(self.search_seeds), self.strategies, self.proposers):
                own = f"{strategy_class(strategy).name}."
                option = tuple(o.removeprefix(own) for o in self.option if o.startswith(own))
                named = {"task": task, "strategy": strategy, "proposer": proposer}
                known = {pair[0]: identities[pair] for pair in named.items() if pair in identities}
                given = Objects(self.own_tasks.get(task), self.own_proposers.get(proposer), identities=known)
                found.append(SearchCell(dataclasses.replace(
                    base, strategy=strategy, option=option, bandit=self.bandit, proposer=proposer, seed=seed,
                    ablations=self.ablations if strategy_class(strategy).ablates else 0,
                    confirm_seeds=self.confirm_seeds if strategy_class(strategy).confirms else 0,
                    llm=self.llm if proposer == "llm" else LlmSettings(),
                    name=SearchKey(task, strategy, proposer, seed).name,
                    **(({} if strategy_class(strategy).learns else {"surrogate": 0})
                       | ({} if proposer == "genetic" else OF_GENETIC)),
                ), given))  # fmt: skip
        return found

    def dealt(self) -> list[Cell]:
        """The cells of this shard."""
        index, count = self.part()
        return self.cells()[index - 1 :: count]

    def _identities(self) -> dict[tuple[str, str], Identity]:
        """The identities of what Python code gave, by the kind and the name of each."""
        strategies = {name: kind for name in self.strategies if (kind := own_strategy(name)) is not None}
        found = {("task", name): Identity.of(task) for name, task in self.own_tasks.items()}
        found |= {("strategy", name): Identity.of(kind) for name, kind in strategies.items()}
        makers = self.own_proposers.items()
        return found | {("proposer", name): Identity.of(maker, private=False) for name, maker in makers}

    def _search(self, task: str) -> EvolveSettings:
        """What all searches on a task have in common."""
        default = preset("quick", self.own_tasks.get(task, task), platform=self.platform)
        shared = {f.name: getattr(self, f.name) for f in dataclasses.fields(CandidateTraining)}
        shared |= {"llm": LlmSettings(), "bandit": False, "ablations": 0, "confirm_seeds": 0}
        shared |= {"dry_run": False, "json": False}
        return EvolveSettings(**{
            **shared, "task": task, "evolve": self.evolve, "candidates": self.candidates, "baselines": (),
            "max_env_steps": self.max_env_steps,
            "steps": self.steps or default.steps, "observation": self.observation and self.observation.absolute(),
            "ppo": dataclasses.replace(default.ppo, **self.of_ppo), "out": self.out / folder_of(task),
            "command": self.command,
        })  # fmt: skip
