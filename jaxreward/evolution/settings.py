"""The settings of a search: the options of `jaxreward evolve` with their defaults."""

from __future__ import annotations

import dataclasses
import math
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal

from jaxreward.config import Arg, check_bounds, label_of
from jaxreward.errors import FileProblem, InvalidSetting, UnknownName, UnusableFile, UserError
from jaxreward.objectives.demonstrations.demonstration_options import DemonstrationOptions
from jaxreward.proposers.llm.llm_settings import LlmSettings
from jaxreward.records import Evolve
from jaxreward.runs.run import check_name
from jaxreward.search.option_text import read_options, write_options
from jaxreward.search.registry import make_strategy, strategy_class
from jaxreward.sentences import mention
from jaxreward.tasks import Task, make_task_of
from jaxreward.tracking import SinkName, require
from jaxreward.training.execution import Execution
from jaxreward.training.hyperparameters import PPO, CollectorOption, CompileOption, PopulationOption
from jaxreward.training.plan import EVAL_EPISODES, make_schedule
from jaxreward.training.rungs import Rung

BASELINES = ("sparse", "dense", "best-of-n")
Judge = Literal["files", "terminal"]
ObjectiveName = Literal["training", "demonstrations"]
_FOR_TRAINING = ("filter_steps", "restart", "halving", "prune", "contender_seeds", "tune", "tune_steps")
"""Settings of the training of candidates, which other objectives do not have."""
TEXTS = "texts"
"""What the settings of a search on text have in place of the name of a task; see `text_search`."""
VocabularyOption = Literal["auto", "own", "derived", "both"]
_OLD_COLLECTORS = {"linked": "stepwise", "hasty": "fused"}


@dataclass(frozen=True)
class TrainingOptions:
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
    eval_episodes: Annotated[int, Arg(least=1)] = EVAL_EPISODES
    """Held-out episodes of each seed at the end. Points of the curves have as many, but at most --ppo.envs."""
    unsafe_no_sandbox: bool = False
    """Check programs without the sandbox. For systems that have none, and programs you trust."""
    dry_run: bool = False
    """Print the plan and its estimated cost alone."""
    json: bool = False
    """End standard output with one JSON object. All else goes to standard error."""

    def execution(self, room: tuple[int, int] = (0, 0)) -> Execution:
        """Where and how the programs train."""
        return Execution(self.memory_gb, self.chunk, self.collector, self.compile, self.population, room=room)


@dataclass(frozen=True)
class SearchOptions(TrainingOptions):
    """Options of a search, and of a comparison of searches."""

    bandit: bool = False
    """Choose operators by what they have brought so far. Models are chosen so too, by cost as well."""
    vocabulary: VocabularyOption = "auto"
    """What the genetic proposer builds programs from. own: the vocabulary that the task brings; derived: one made from
    the task's view, random play and reward; both; auto: its own, and derived where it brings none."""
    blocks: bool = False
    """Genetic proposer: build programs in blocks, one for each subgoal. The task must say what leads to its goal
    (`jaxreward tasks NAME`), as XLand's do."""
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


@dataclass(frozen=True)
class EvolveSettings(SearchOptions):
    """Search for an interface: programs are proposed, trained side by side, and improved on."""

    task: str = "xland-easy"
    """What to solve (`jaxreward tasks`). Also gymnax/CartPole-v1 and the like, or a Python file, which is executed."""
    strategy: str = "limen"
    """How to search (`jaxreward strategies`). One of limen, rf-agent, revolve, forge, eureka, grace, best-of-n. Also a
    Python file, which is executed. With --objective demonstrations the default is grace."""
    option: Annotated[tuple[str, ...], Arg(keyed=True)] = ()
    """Options of the strategy. Each is KEY=VALUE; `jaxreward strategies NAME` lists them."""
    proposer: str = "genetic"
    """Who proposes: genetic, llm, manual, replay. genetic needs no network; llm takes --model; manual is a
    person, through files; replay takes --recording. Also a Python file, which is executed."""
    recording: Path | None = None
    """With --proposer replay: the run whose programs are proposed again. Its folder, or its events.jsonl."""
    evolve: Evolve | None = None
    """What may change; the other half is the task's own. By default what the strategy was made for."""
    judge: Judge = "files"
    """How people compare agents, where a strategy asks them. revolve does with fitness=preference: through files in
    the run's folder, or on the terminal."""
    candidates: Annotated[int, Arg(least=1)] = 16
    """Candidates to train."""
    steps: Annotated[int, Arg(least=1)] = 200_000
    """Environment steps of each seed."""
    restart: bool = False
    """Train the short rung apart, what passes from scratch. It has one seed then: the paper's protocol."""
    halving: Annotated[int, Arg(least=0)] = 0
    """How often half of a generation stops; 0 for never. Successive halving: at half of --steps, at half of that and
    so on, the better half goes on."""
    prune: bool = False
    """Stop candidates that cannot win any more. Their learning curves decide, at 1/2, 3/4 and 7/8 of --steps."""
    contender_seeds: Annotated[int, Arg(least=0)] = 0
    """Seeds of candidates that may be the best; 0: as others. 95 % intervals decide; the best so far is among them."""
    baselines: tuple[str, ...] = ("sparse",)
    """To compare with: sparse, dense, best-of-n. They get the same budget; sparse is the task's own interface, dense
    has a person's reward, where there is one, best-of-n is a second search."""
    seed: Annotated[int, Arg(least=0)] = 0
    """Seed of the search. Training seeds are 0 .. seeds-1 for every candidate."""
    max_env_steps: Annotated[int, Arg(least=0)] = 0
    """Environment steps in training; 0 for no limit."""
    max_device_s: Annotated[float, Arg(least=0)] = 0.0
    """Compiling and training; 0 for no limit. All devices count together, of which a CPU has one a core."""
    ppo: PPO = field(default_factory=PPO)
    """The learner."""
    out: Path = Path("runs")
    """Folder of runs."""
    name: str = ""
    """Name of the run. By default made of task, strategy and seed, and numbered where it exists."""
    resume: bool = False
    """Go on with the run of this name, if it exists. It keeps its own settings but for larger budgets."""
    profile: bool = False
    """Write down where the time went. `profile/account.md` in the run's folder has every generation; a trace of XLA's
    profiler is next to it."""
    track: tuple[SinkName, ...] = ()
    """Show the run in tensorboard, wandb or both as well. Each is an extra to install; wandb is Weights & Biases."""

    command: Annotated[str, Arg(hidden=True)] = ""
    """What the user typed, for the log and the provenance of what is found."""

    @property
    def run_name(self) -> str:
        named = f"{label_of(self.task)}-{label_of(self.strategy)}-{self.seed}"
        return self.name or re.sub(r"[^A-Za-z0-9._-]", "-", named)

    def make_task(self) -> Task:
        """The task with its options.

        Raises:
            UserError: there is no such task, or none at all: the run is a search on text.
        """
        require_task(self.task)
        return make_task_of(self.task, self.task_arg)

    @property
    def attempts(self) -> int:
        return self.max_attempts or 4 * self.candidates

    @property
    def evolves(self) -> Evolve:
        """What may change: what was asked for, or what the strategy was made for."""
        return self.evolve or strategy_class(self.strategy).natural

    @property
    def asks_people(self) -> bool:
        """Whether the strategy has people compare agents."""
        return make_strategy(self.strategy, **self.strategy_options()).asks_people

    def check(self) -> None:
        """Raise a `UserError` for the first invalid setting."""
        check_bounds(self)
        if self.filter_steps >= self.steps:
            raise InvalidSetting(
                f"{mention('filter_steps', self.filter_steps)} must be smaller than {mention('steps', self.steps)}",
                "filter_steps",
                "steps",
            )
        if self.restart and not self.filter_steps:
            raise InvalidSetting(
                f"{mention('restart', True)} trains the short rung apart: give it {mention('filter_steps')}",
                "filter_steps",
                "restart",
            )
        if not math.isfinite(self.threshold):
            raise InvalidSetting(
                f"{mention('filter_threshold')} is a value of the task's metric, not {self.filter_threshold}",
                "filter_threshold",
            )
        if 0 < self.contender_seeds <= self.seeds:
            raise InvalidSetting(
                f"{mention('contender_seeds')} are more than {mention('seeds', self.seeds)}, or 0, not "
                f"{self.contender_seeds}",
                "contender_seeds",
                "seeds",
            )
        if self.tune == 1:
            raise InvalidSetting(
                f"{mention('tune')} counts the reward's own setting: give it at least 2, or 0 for none", "tune"
            )
        if self.tune and self.evolves == "observation":
            raise InvalidSetting(
                f"{mention('tune')} searches the numbers of rewards, and this search evolves observations alone",
                "tune",
                "evolve",
            )
        if self.tune_steps and not self.tune:
            raise InvalidSetting(f"{mention('tune_steps')} is for {mention('tune')}", "tune_steps", "tune")
        if self.tune_steps > self.steps:
            raise InvalidSetting(
                f"{mention('tune_steps', self.tune_steps)} must not be larger than {mention('steps', self.steps)}",
                "tune_steps",
                "steps",
            )
        check_name(self.run_name, "run")
        require(self.track)
        if len(set(self.baselines)) < len(self.baselines):
            raise InvalidSetting(f"{mention('baselines')} names one of them twice; name each once", "baselines")
        if "best-of-n" in self.baselines and self.strategy == "best-of-n":
            raise InvalidSetting(
                f"{mention('strategy', 'best-of-n')} cannot be compared with itself; leave it out of "
                f"{mention('baselines')}",
                "baselines",
                "strategy",
            )
        unknown = [b for b in self.baselines if b not in BASELINES]
        if unknown:
            raise UnknownName("baseline", unknown[0], BASELINES, otherwise="choose from", settings=("baselines",))
        if self.judge != "files" and not self.asks_people:
            raise InvalidSetting(
                f"{mention('judge')} is for strategies that ask people, and {self.strategy} with these options "
                "does not",
                "judge",
                "strategy",
            )
        if self.observation is not None and self.evolves != "reward":
            raise InvalidSetting(
                f"{mention('observation')} is for {mention('evolve', 'reward')}; this search evolves {self.evolves}",
                "observation",
                "evolve",
            )
        given = self.observation is None or self.resume or self.proposer == "replay"
        if self.observation is not None and not (given or self.observation.is_file()):
            raise UnusableFile(
                f"{mention('observation')}: there is no file {self.observation}", self.observation, FileProblem.MISSING
            )
        if self.proposer == "replay" and self.recording is None:
            raise InvalidSetting(
                f"{mention('proposer', 'replay')} needs {mention('recording')}: the folder of a run or its "
                "events.jsonl",
                "recording",
                "proposer",
            )
        if self.blocks and (self.proposer != "genetic" or self.objective != "training"):
            raise InvalidSetting(
                f"{mention('blocks')} is for {mention('proposer', 'genetic')} and {mention('objective', 'training')}",
                "blocks",
                "proposer",
                "objective",
            )
        if self.proposer != "replay" and self.recording is not None:
            raise InvalidSetting(
                f"{mention('recording')} is for {mention('proposer', 'replay')}; the {self.proposer} proposer "
                "has no use for it",
                "recording",
                "proposer",
            )
        if self.proposer == "llm" and not self.llm.model:
            raise InvalidSetting(
                f"{mention('proposer', 'llm')} needs {mention('model')}: a name of litellm's, e.g. "
                "anthropic/claude-sonnet-4-5",
                "llm.model",
                "proposer",
            )
        unused = [name for name in self._idle_llm_options() if getattr(self.llm, name) != getattr(LlmSettings(), name)]
        if unused:
            raise InvalidSetting(
                f"{mention(unused[0])} is for {mention('proposer', 'llm')}; the {self.proposer} proposer has "
                "no use for it",
                f"llm.{unused[0]}",
                "proposer",
            )
        self._check_objective()
        self.llm.check()
        self.ppo.check()
        self.execution().check(self.ppo)
        if self.halving and self.generation < 2:
            raise InvalidSetting(
                f"{mention('halving')} stops the worse half of a generation: give it "
                f"{mention('generation', 2)} or more",
                "generation",
                "halving",
            )
        if self.halving and self.steps >> self.halving < self.ppo.batch:
            raise InvalidSetting(
                f"{mention('halving', self.halving)} would first cut after {self.steps >> self.halving} of "
                f"{self.steps} steps, "
                f"which is less than an update of {self.ppo.batch}",
                "halving",
                "steps",
            )
        if self.prune and self.steps < 8 * self.ppo.batch:
            raise InvalidSetting(
                f"{mention('prune', True)} cuts at eighths of {mention('steps')}, and {self.steps} are less "
                "than eight updates "
                f"of {self.ppo.batch}",
                "prune",
                "steps",
            )
        make_schedule(self.ppo, self.steps, 1, self.rungs())

    def _check_objective(self) -> None:
        if self.resume:  # a run has copies of its data
            return
        self.demonstrations.check(self.objective)
        if self.objective == "training":
            return
        objective = mention("objective", self.objective)
        if self.evolves != "reward":
            raise InvalidSetting(
                f"{objective} scores rewards alone: say {mention('evolve', 'reward')}, or "
                f"{mention('strategy', 'grace')}",
                *("evolve", "objective"),
            )
        given = [name for name in _FOR_TRAINING if getattr(self, name)]
        if given:
            raise InvalidSetting(
                f"{mention(given[0])} is for {mention('objective', 'training')}; {objective} trains no candidates",
                *(given[0], "objective"),
            )

    def _idle_llm_options(self) -> list[str]:
        """Options of language models that the proposer has no use for; a replay takes those of its recording."""
        if self.proposer in ("llm", "replay"):
            return []
        used = ("wait_s", "repairs", "prompts") if self.proposer == "manual" else ()
        if self.asks_people:
            used += ("wait_s",)
        return [f.name for f in dataclasses.fields(LlmSettings) if f.name not in used]

    def proposer_options(self) -> dict[str, Any]:
        if self.proposer in ("llm", "manual"):
            return {"settings": self.llm}
        if self.proposer == "genetic":
            return {"blocks": True} if self.blocks else {}
        return {"recording": self.recording} if self.recording else {}

    @property
    def threshold(self) -> float:
        """What the short rung asks for."""
        return 0.05 if self.filter_threshold is None else self.filter_threshold

    def rungs(self, incumbent: float | None = None) -> list[Rung]:
        """The cuts of every training of the search; `incumbent` is the merit that `prune` has to beat."""
        rungs = [Rung(self.filter_steps, self.threshold)] if self.filter_steps and not self.restart else []
        rungs += [Rung(self.steps >> k, keep=0.5) for k in range(self.halving, 0, -1)]
        if self.prune:
            rungs += [Rung(self.steps * k // 8, prune=True, incumbent=incumbent) for k in (4, 6, 7)]
        return rungs

    @property
    def tuning_steps(self) -> int:
        """Environment steps of each seed by which a weight setting is judged."""
        return self.tune_steps or -(-self.steps // 4)

    def strategy_options(self) -> dict[str, Any]:
        """The arguments of `make_strategy`; UserError for options that the strategy does not have."""
        shared: dict[str, Any] = {"evolve": self.evolves, "budget": self.candidates}
        if self.bandit:
            shared |= {"bandit": True, "models": tuple(self.llm.weights())}
        return shared | read_options(self.strategy, self.option)

    def as_config(self) -> dict[str, Any]:
        """TOML-ready values of everything that a run depends on, with the defaults of its strategy."""
        skip = {"out", "name", "resume", "profile", "track", "dry_run", "json", "command"}
        fields = sorted(dataclasses.fields(self), key=lambda f: f.name not in type(self).__annotations__)
        values = {f.name: getattr(self, f.name) for f in fields if f.name not in skip}
        spelt_out = write_options(self.strategy, read_options(self.strategy, self.option))
        return plain({**values, "option": spelt_out, "evolve": self.evolves, "filter_threshold": self.threshold})


def require_task(name: str) -> None:
    """Raise a `UserError` where settings are of a search on text, which has no task."""
    if name == TEXTS:
        raise UserError(
            "this is a search for a reward of texts, with no task to train on: jaxreward.evolve_texts goes on with it "
            "from Python, and best_interface.py has what it found"
        )


def plain(value: Any) -> Any:
    """`value` as TOML and JSON write it: settings as tables, without those that are None, and paths as text."""
    if dataclasses.is_dataclass(value):
        value = {f.name: getattr(value, f.name) for f in dataclasses.fields(value)}
    if isinstance(value, dict):
        return {k: plain(v) for k, v in value.items() if v is not None}
    if isinstance(value, list | tuple):
        return [plain(v) for v in value]
    return str(value) if isinstance(value, Path) else value
