"""Options that commands share: of training programs, and of searching."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal

from jaxreward.config import Arg
from jaxreward.errors import InvalidSetting
from jaxreward.evolution.learner_options import LearnerOptions
from jaxreward.extras import require
from jaxreward.objectives.demonstrations.demonstration_options import DemonstrationOptions
from jaxreward.proposers.llm.llm_settings import LlmSettings
from jaxreward.sentences import mention
from jaxreward.training.execution import Execution
from jaxreward.training.hyperparameters import CollectorOption, CompileOption, PopulationOption
from jaxreward.training.plan import EVAL_EPISODES
from jaxreward.training.ray_executor import shared_executor

ExecutorOption = Literal["local", "ray"]
ObjectiveName = Literal["training", "demonstrations"]
Switch = Literal["auto", "on", "off"]
VocabularyOption = Literal["auto", "own", "derived", "both"]
OF_EXECUTOR = ("executor", "ray_address", "ray_workers")
"""Settings of where programs train, on which no result depends."""
OF_GENETIC: dict[str, Any] = {"blocks": "off", "surrogate": 0}
"""Settings of the genetic proposer alone, and what they are with others."""

_OLD_COLLECTORS: dict[str | bool, str] = {"linked": "stepwise", "hasty": "fused"}
_WAS_A_FLAG: dict[str | bool, str] = {True: "on", False: "off"}


@dataclass(frozen=True)
class TrainingOptions(LearnerOptions):
    """Options of every command that trains programs."""

    task_arg: Annotated[tuple[str, ...], Arg(adds=True)] = ()
    """Options of the task. Each is KEY=VALUE, such as push_force_scale=2; `jaxreward tasks NAME` lists them."""
    memory_gb: Annotated[float | None, Arg(positive=True)] = None
    """Memory that training may take on a device. By default most of what is free."""
    chunk: Annotated[int | None, Arg(least=1)] = None
    """Programs compiled together, at most. By default what fits, on a CPU of at most 16 structures."""
    collector: Annotated[CollectorOption, Arg(renamed=_OLD_COLLECTORS)] = "auto"
    """How experience is collected. fused: by one compiled function; stepwise: by one for each structure of programs and
    one for the rest; auto: the one that should finish first."""
    compile: CompileOption = "auto"
    """Of the fused collector on a CPU: full optimisation, or fast compilation to slower code."""
    population: PopulationOption = "auto"
    """Whether programs are code or data. rows: each is compiled and applied to its own rows; bank: what they are made
    of is applied to all rows, and programs of known parts compile nothing; auto: rows on a CPU, bank elsewhere."""
    executor: ExecutorOption = "local"
    """Where programs train. local: on the devices of this process; ray: on those of a Ray cluster, by a worker each."""
    ray_address: str = ""
    """With --executor ray: the cluster. HOST:PORT, or auto; by default that of RAY_ADDRESS, and without it one of this
    machine alone, which ends with the command."""
    ray_workers: Annotated[int, Arg(least=0)] = 0
    """With --executor ray: workers at most; 0 for no limit. There is one for every GPU of the cluster, or for every CPU
    where it has none."""
    eval_episodes: Annotated[int, Arg(least=1)] = EVAL_EPISODES
    """Held-out episodes of each seed at the end. Points of the curves have as many, but at most as many as
    there are environments."""
    unsafe_no_sandbox: bool = False
    """Check programs without the sandbox. For systems that have none, and programs you trust."""
    dry_run: bool = False
    """Print the plan and its estimated cost alone."""
    json: bool = False
    """End standard output with one JSON object. All else goes to standard error."""

    def execution(self, room: tuple[int, int] = (0, 0)) -> Execution:
        """Where and how the programs train; the first time the workers of a Ray cluster begin."""
        how = self._how(room)
        if self.executor == "local":
            return how
        executor = shared_executor(self.ray_address or None, self.ray_workers or None, self.memory_gb)
        return dataclasses.replace(how, executor=executor, memory_gb=None)

    def check_execution(self) -> None:
        """Raise a `UserError` for the first setting of the execution that is invalid, or lacks a package."""
        self._how().check(self.hyper)
        for name in OF_EXECUTOR[1:]:
            if getattr(self, name) and self.executor != "ray":
                raise InvalidSetting(f"{mention(name)} is for {mention('executor', 'ray')}", name, "executor")
        if self.executor == "ray":
            require("ray", mention("executor", "ray"), "executor")

    def _how(self, room: tuple[int, int] = (0, 0)) -> Execution:
        return Execution(self.memory_gb, self.chunk, self.collector, self.compile, self.population, room=room)


@dataclass(frozen=True)
class SearchOptions(TrainingOptions):
    """Options of a search, and of a comparison of searches."""

    bandit: bool = False
    """Choose operators by what they have brought so far. Models are chosen so too, by cost as well."""
    ablations: Annotated[int, Arg(least=0)] = 0
    """Groups of parts that each new best program is tried without. What they are worth steers further edits, and models
    are told."""
    vocabulary: VocabularyOption = "auto"
    """What the genetic proposer builds programs from. own: the vocabulary that the task brings; derived: one made from
    the task's view, random play and reward; both; auto: its own, and derived where it brings none."""
    blocks: Annotated[Switch, Arg(renamed=_WAS_A_FLAG)] = "auto"
    """Genetic proposer: whether programs are built in blocks, one for each subgoal. auto: where the task says what
    leads to its goal (`jaxreward tasks NAME`), as XLand's tasks and nine robots do."""
    surrogate: Annotated[int | None, Arg(least=0)] = None
    """Genetic proposer: programs drawn for each that is proposed, the one that is best by a linear model of the scores
    so far, from eight scores on; 0: one. Default: 32 with limen, of generations of more than 32 fewer; 0 with other
    strategies and for rewards from demonstrations."""
    stages: Annotated[bool, Arg(formerly="progress")] = False
    """Compare programs by the stages that episodes reached where no success is above that of random actions. The task
    must say what comes before success, as XLand's with rules or two objects do; final tables are by success alone."""
    observation: Path | None = None
    """With --evolve reward: a file whose get_observation all have. It takes the place of the task's own."""
    generation: Annotated[int, Arg(least=1)] = 8
    """Candidates proposed and trained side by side."""
    seeds: Annotated[int, Arg(least=1)] = 2
    """Training seeds of a candidate."""
    filter_steps: Annotated[int, Arg(least=0)] = 0
    """Short rung: when candidates that lag stop; 0 for none. A candidate lags below --filter-threshold."""
    filter_threshold: float | None = None
    """What the short rung asks for, in the task's metric. By default a success rate of 0.05."""
    tune: Annotated[int, Arg(least=0)] = 0
    """Weight settings of each reward to try first; 0: none. They train side by side, its own among them; the best is
    written into the source before its candidate is trained."""
    tune_steps: Annotated[int, Arg(least=0)] = 0
    """Environment steps of each setting and seed; 0: --steps / 4."""
    confirm_seeds: Annotated[int, Arg(least=0)] = 0
    """Fresh seeds that choose among candidates that may be the best, when the search ends; 0: the scores of the search
    choose. Those whose 95 % interval reaches the best's are trained again, until the best is one of them."""
    final_seeds: Annotated[int, Arg(least=0)] = 5
    """Fresh seeds of the final training; 0 for none. The best and the baselines are trained again on them."""
    final_steps: Annotated[int, Arg(least=0)] = 0
    """Environment steps of each of them; 0: --steps."""
    max_attempts: Annotated[int, Arg(least=0)] = 0
    """Programs proposed at most; 0: 4 x candidates. Failures and duplicates count."""
    objective: ObjectiveName = "training"
    """What a program is scored by. training: what agents that train with it reach; demonstrations: how well its reward
    tells the states of an expert from others, without any training."""
    demonstrations: Annotated[DemonstrationOptions, Arg(flat=True)] = field(default_factory=DemonstrationOptions)
    """Demonstrations."""
    llm: Annotated[LlmSettings, Arg(flat=True)] = field(default_factory=LlmSettings)
    """Language models."""
