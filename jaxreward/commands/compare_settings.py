"""What `jaxreward compare` is told to do, and the cells that come of it."""

from __future__ import annotations

import dataclasses
import difflib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

import tyro

from jaxreward.commands.compare_cells import Cell, SearchCell, SparseCell
from jaxreward.errors import UserError
from jaxreward.presets import preset
from jaxreward.proposers.llm_settings import LlmSettings
from jaxreward.records import Evolve
from jaxreward.reports.comparison import Grid, folder_of, name_of
from jaxreward.search import STRATEGIES
from jaxreward.settings import EvolveSettings
from jaxreward.training import PPO, How

PROPOSERS = ("genetic", "llm")


@dataclass(frozen=True)
class CompareSettings:
    """Search with several strategies at equal budget, with the same search seeds on the same tasks, and compare
    what they found on fresh seeds. Every search is a run of its own in OUT/<task>/; the same command goes on
    where it stopped."""

    tasks: tuple[str, ...] = ("xland-easy",)
    """Tasks: names of `jaxreward tasks`, or xland/<environment>/<ruleset>."""
    task_arg: tuple[str, ...] = ()
    """Options of the tasks, each as KEY=VALUE; all of --tasks must have them."""
    strategies: tuple[str, ...] = field(default_factory=lambda: tuple(STRATEGIES))
    """Search strategies; best-of-n among them is what the others are compared with."""
    proposers: tuple[str, ...] = ("genetic",)
    """Who writes programs: genetic, llm (with --model)."""
    search_seeds: int = 3
    """Searches of every strategy, proposer and task: seeds 0 .. search_seeds-1."""
    candidates: int = 30
    """Budget of each search: candidates to train."""
    generation: int = 8
    """Candidates proposed and trained side by side."""
    seeds: int = 2
    """Training seeds of a candidate."""
    steps: int = 0
    """Environment steps of each seed; 0 for the default of `jaxreward evolve` for the task."""
    final_seeds: int = 5
    """Fresh seeds on which the best of each search is trained again."""
    final_steps: int = 0
    """Environment steps of each of them; 0 for as many as in the search."""
    evolve: Evolve = "reward"
    """What may change, the same for all strategies; the other half is the task's default."""
    observation: Path | None = None
    """With --evolve reward: a program whose get_observation all candidates have, in place of the task's own."""
    option: tuple[str, ...] = ()
    """Options of a strategy, each as STRATEGY.KEY=VALUE; `jaxreward strategies NAME` lists them."""
    bandit: bool = False
    """Choose operators, and models where there are several, by what they have brought and cost so far."""
    filter_steps: int = 0
    """Short rung: after so many steps a candidate below --filter-threshold stops; 0 for none."""
    filter_threshold: float | None = None
    """What the short rung asks for, in the task's metric; by default a success rate of 0.05."""
    tune: int = 0
    """Weight settings of every reward to try side by side before its candidate is trained; 0: none."""
    tune_steps: int = 0
    """Environment steps of each seed by which a setting is judged; 0 means a quarter of --steps."""
    max_attempts: int = 0
    """Budget of each search: programs proposed, failures and duplicates included; 0 means 4 x candidates."""
    memory_gb: float | None = None
    """Memory that training may take on a device; by default most of what is free."""
    chunk: int | None = None
    """Candidates compiled together, at most; by default what fits, on a CPU of at most 16 structures."""
    collector: How = "auto"
    """How experience is collected: fused, one compiled function; hasty, the same compiled sooner on a CPU, to code that
    takes longer; linked, one for each structure of programs and one for the rest; auto, what should be done soonest."""
    llm: Annotated[LlmSettings, tyro.conf.OmitArgPrefixes] = field(default_factory=LlmSettings)
    """Language models (proposer llm). Budgets such as --max-usd are of each search, not of all together."""
    shard: str = "1/1"
    """i/n: of n equal parts of the work, this process does the i-th; --merge puts them together."""
    merge: tuple[Path, ...] = ()
    """Run nothing: compare what is in these folders, each the --out of a comparison or of a shard of it."""
    out: Path = Path("runs/compare")
    """Folder of the searches, the table and the picture."""
    unsafe_no_sandbox: bool = False
    """Check programs without the sandbox, where the system has none. Only for programs you trust."""
    dry_run: bool = False
    """Print the cells, which of them are done, and the estimated cost, and do nothing."""
    json: Annotated[bool, tyro.conf.FlagCreatePairsOff] = False
    """Print one JSON object as the last line of standard output; all else goes to standard error."""

    learners: Annotated[Mapping[str, PPO], tyro.conf.Suppress, tyro.conf.Fixed] = field(default_factory=dict)
    """The learner by task; a task that is not there has that of `jaxreward evolve`."""
    command: Annotated[str, tyro.conf.Suppress] = ""
    """What the user typed, for the logs."""

    def check(self) -> None:
        """Raise a UserError for the first setting that cannot be."""
        self.part()
        for name in ("tasks", "strategies", "proposers"):
            values = getattr(self, name)
            if not values:
                raise UserError(f"--{name} names nothing; name at least one")
            if len(set(values)) < len(values):
                raise UserError(f"--{name} names one of them twice; name each once")
        for proposer in self.proposers:
            if proposer not in PROPOSERS:
                raise UserError(f"--proposers are {' and '.join(PROPOSERS)}, not {proposer}: nobody else can answer "
                                "for all searches")  # fmt: skip
        if self.llm != LlmSettings() and "llm" not in self.proposers:
            raise UserError("--model and what else concerns language models are for --proposers llm; name it, or "
                            "leave them out")  # fmt: skip
        for name in ("search_seeds", "final_seeds"):
            if getattr(self, name) < 1:
                raise UserError(f"--{name.replace('_', '-')} must be at least 1, not {getattr(self, name)}")
        if self.steps < 0:
            raise UserError(f"--steps must not be negative, not {self.steps}; 0 is for the task's default")
        for text in self.option:
            strategy, dot, rest = text.partition(".")
            if not dot or "=" not in rest:
                raise UserError(f"--option {text} must be STRATEGY.KEY=VALUE, e.g. limen.islands=2")
            if strategy not in self.strategies:
                near = difflib.get_close_matches(strategy, self.strategies, 1)
                raise UserError(f"--option {text} is for {strategy}, which is not among --strategies"
                                + (f"; did you mean {near[0]}?" if near else ""))  # fmt: skip
        paths = [folder_of(task) for task in self.tasks]
        if len(set(paths)) < len(paths):
            raise UserError("--tasks has two whose names make the same folder; compare them apart")
        for cell in self.cells():
            cell.settings.check()

    def part(self) -> tuple[int, int]:
        """The shard i of n, from 1."""
        index, _, count = self.shard.partition("/")
        if not (index.isdecimal() and count.isdecimal() and 1 <= int(index) <= int(count)):
            raise UserError(f"--shard {self.shard} must be i/n with i from 1 to n, e.g. 2/4")
        return int(index), int(count)

    def grid(self) -> Grid:
        """What is to be compared, whoever runs it."""
        return Grid(
            tasks=self.tasks, strategies=self.strategies, proposers=self.proposers, search_seeds=self.search_seeds
        )

    def cells(self) -> list[Cell]:
        """All parts of the comparison: per task its own interface first, then seed by seed every strategy."""
        found: list[Cell] = []
        for task in self.tasks:
            base = self._search(task)
            found.append(SparseCell(base))
            for seed in range(self.search_seeds):
                for strategy in self.strategies:
                    option = tuple(o.removeprefix(f"{strategy}.") for o in self.option if o.startswith(f"{strategy}."))
                    for proposer in self.proposers:
                        found.append(SearchCell(dataclasses.replace(
                            base, strategy=strategy, option=option, bandit=self.bandit, proposer=proposer, seed=seed,
                            llm=self.llm if proposer == "llm" else LlmSettings(),
                            name=name_of(strategy, proposer, seed),
                        )))  # fmt: skip
        return found

    def dealt(self) -> list[Cell]:
        """The cells of this shard."""
        index, count = self.part()
        return self.cells()[index - 1 :: count]

    def _search(self, task: str) -> EvolveSettings:
        """What all searches on a task have in common."""
        default = preset("quick", task)
        return EvolveSettings(
            task=task, task_arg=self.task_arg, evolve=self.evolve,
            observation=self.observation and self.observation.absolute(), candidates=self.candidates,
            generation=self.generation, seeds=self.seeds, steps=self.steps or default.steps,
            filter_steps=self.filter_steps, filter_threshold=self.filter_threshold, baselines=(),
            tune=self.tune, tune_steps=self.tune_steps,
            final_seeds=self.final_seeds, final_steps=self.final_steps, max_attempts=self.max_attempts,
            memory_gb=self.memory_gb, chunk=self.chunk, collector=self.collector,
            ppo=self.learners.get(task, default.ppo), out=self.out / folder_of(task),
            unsafe_no_sandbox=self.unsafe_no_sandbox, command=self.command,
        )  # fmt: skip


@dataclass(frozen=True)
class Typed(CompareSettings):
    __doc__ = CompareSettings.__doc__

    ppo: PPO = field(default_factory=PPO)
    """The learner: what is given here in place of the settings that `jaxreward evolve` has for the task."""
