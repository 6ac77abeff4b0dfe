"""The settings of a search: the options of `jaxreward evolve` with their defaults."""

from __future__ import annotations

import dataclasses
import re
import typing
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

from jaxreward.config import Arg, check_bounds, label_of
from jaxreward.errors import FileProblem, InvalidSetting, UnknownName, UnusableFile, UserError
from jaxreward.evolution.candidate_training import CandidateTraining, check_cuts, check_training
from jaxreward.evolution.learner_options import check_learner
from jaxreward.evolution.search_options import Switch
from jaxreward.proposers.llm.llm_settings import JUDGE_FRAMES, JUDGE_OPTIONS, LlmSettings
from jaxreward.records import Evolve
from jaxreward.runs.folders import RUNS
from jaxreward.runs.run import check_name
from jaxreward.search.option_text import read_options, write_options
from jaxreward.search.registry import make_strategy, strategy_class
from jaxreward.sentences import mention
from jaxreward.tasks import Task, make_task_of
from jaxreward.tracking import SinkName, require

Judge = Literal["auto", "scripted", "model", "files", "terminal"]
PEOPLE = ("files", "terminal")
"""Judges who are people."""
TEXTS = "texts"
"""What the settings of a search on text have in place of the name of a task; see `text_search`."""
BASELINES = ("sparse", "dense", "best-of-n")
_FOR_TRAINING = ("stages", "filter_steps", "restart", "halving", "prune", "contender_seeds",
                 "confirm_seeds", "tune", "tune_steps")  # fmt: skip
"""Settings of the training of candidates, which other objectives do not have."""


@dataclass(frozen=True)
class EvolveSettings(CandidateTraining):
    """Search for an interface: programs are proposed, trained side by side, and improved on."""

    task: str = "xland-easy"
    """What to solve (`jaxreward tasks`). Also gymnax/CartPole-v1 and the like, or a Python file, which is executed."""
    strategy: str = "limen"
    """How to search (`jaxreward strategies`). One of limen, rf-agent, revolve, forge, eureka, rda, grace, best-of-n.
    Also a Python file, which is executed. With --objective demonstrations the default is grace."""
    option: Annotated[tuple[str, ...], Arg(keyed=True)] = ()
    """Options of the strategy. Each is KEY=VALUE; `jaxreward strategies NAME` lists them."""
    proposer: str = "genetic"
    """Who proposes: genetic, llm, manual, replay. genetic needs no network; llm takes --model; manual is a
    person, through files; replay takes --recording. Also a Python file, which is executed."""
    recording: Path | None = None
    """With --proposer replay: the run whose programs are proposed again. Its folder, or its events.jsonl."""
    evolve: Evolve | None = None
    """What may change; the other half is the task's own. By default what the strategy was made for."""
    judge: Judge = "auto"
    """Who judges agents, where a strategy has them judged. rda: scripted, by the task's metrics, or model, which is
    --judge-model, or people; revolve with fitness=preference: people, through files in the run's folder or on the
    terminal."""
    asynchronous: bool = False
    """Ask for more as soon as a device is free. A generation trains on one device, and the strategy goes by what it
    knows while others train; for limen, revolve, best-of-n, and forge without its planner."""
    in_flight: Annotated[int, Arg(least=0)] = 0
    """With --asynchronous: generations in work at most; 0: one for each device, and half as many that are proposed
    meanwhile. More keep slow proposers from holding devices up, but are asked for with less known."""
    candidates: Annotated[int, Arg(least=1)] = 16
    """Candidates to train."""
    baselines: tuple[str, ...] = ("sparse",)
    """To compare with: sparse, dense, best-of-n. They get the same budget; sparse is the task's own interface, dense
    has a person's reward, where there is one, best-of-n is a second search."""
    seed: Annotated[int, Arg(least=0)] = 0
    """Seed of the search. Training seeds are 0 .. seeds-1 for every candidate."""
    max_env_steps: Annotated[int, Arg(least=0)] = 0
    """Environment steps in training; 0 for no limit."""
    max_device_s: Annotated[float, Arg(least=0)] = 0.0
    """Compiling and training; 0 for no limit. All devices count together, of which a CPU has one a core."""
    out: Path = RUNS
    """Folder of runs."""
    name: str = ""
    """Name of the run. By default made of task, strategy and seed, and numbered where it exists."""
    store: str = ""
    """Keep a copy of the run there. An address of fsspec: s3://bucket/runs, gs://bucket/runs, file:///mnt/runs; it goes
    into a folder of the run's name. `jaxreward runs fetch` brings it to another machine."""
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

    @property
    def judged_by(self) -> Judge | None:
        """Who judges agents; None where nobody does."""
        strategy = make_strategy(self.strategy, **self.strategy_options())
        if strategy.asks_people:
            return "files" if self.judge == "auto" else self.judge
        if strategy.watches:
            return self.judge if self.judge != "auto" else "model" if self.llm.judge_model else "scripted"
        return None

    @property
    def frames(self) -> int:
        """Frames that are kept of every episode that a judge sees."""
        default = {"model": JUDGE_FRAMES, "scripted": 0}.get(self.judged_by or "")
        return 0 if default is None else self.llm.judge_frames or default

    def check(self) -> None:
        """Raise a `UserError` for the first invalid setting."""
        _check(self)

    def proposer_options(self) -> dict[str, Any]:
        if self.proposer in ("llm", "manual"):
            return {"settings": self.llm}
        if self.proposer == "genetic":
            blocks = {} if self.blocks == "auto" else {"blocks": self.blocks == "on"}
            return blocks | ({"surrogate": self.draws} if self.draws else {})
        return {"recording": self.recording} if self.recording else {}

    @property
    def draws(self) -> int:
        """Programs drawn for each that the genetic proposer proposes, for a model of the scores to choose from; 0 where
        there is none. By default, with strategies that have options for it, no more than a thousand or so a generation,
        each of which takes milliseconds."""
        if self.surrogate is not None:
            return self.surrogate if self.surrogate > 1 else 0
        kind = strategy_class(self.strategy)
        usual = self.proposer == "genetic" and self.objective == "training" and bool(kind.with_model)
        return min(32, max(4, 1024 // self.generation)) if usual else 0

    def strategy_options(self) -> dict[str, Any]:
        """The arguments of `make_strategy`; UserError for options that the strategy does not have."""
        shared: dict[str, Any] = {"evolve": self.evolves, "budget": self.candidates}
        if self.bandit:
            shared |= {"bandit": True, "models": tuple(self.llm.weights())}
        if self.ablations:
            shared |= {"ablations": self.ablations}
        if self.confirm_seeds:
            shared |= {"confirm": True}
        return shared | self._own_options()

    def _own_options(self) -> dict[str, Any]:
        """The options that only this strategy has, but for those at their defaults."""
        of_model = strategy_class(self.strategy).with_model if self.draws else {}
        return {**of_model, **read_options(self.strategy, self.option)}

    def as_config(self) -> dict[str, Any]:
        """TOML-ready values of everything that a run depends on, with the defaults of its strategy."""
        skip = {"out", "name", "store", "resume", "profile", "track", "dry_run", "json", "command"}
        fields = sorted(dataclasses.fields(self), key=lambda f: f.name not in type(self).__annotations__)
        values = {f.name: getattr(self, f.name) for f in fields if f.name not in skip}
        spelt_out = write_options(self.strategy, self._own_options())
        del values["ppo" if self.learner == "sac" else "sac"]
        return plain({**values, "option": spelt_out, "evolve": self.evolves, "filter_threshold": self.threshold,
                      "surrogate": self.draws})  # fmt: skip


def _check(settings: EvolveSettings) -> None:
    check_bounds(settings)
    check_training(settings)
    check_name(settings.run_name, "run")
    require(settings.track)
    _check_baselines(settings)
    _check_parts(settings)
    _check_proposer(settings)
    _check_objective(settings)
    settings.llm.check()
    check_learner(settings, settings.task)
    settings.check_execution()
    check_cuts(settings)


def _check_baselines(settings: EvolveSettings) -> None:
    """What the best is compared with."""
    if len(set(settings.baselines)) < len(settings.baselines):
        raise InvalidSetting(f"{mention('baselines')} names one of them twice; name each once", "baselines")
    if "best-of-n" in settings.baselines and settings.strategy == "best-of-n":
        raise InvalidSetting(
            f"{mention('strategy', 'best-of-n')} cannot be compared with itself; leave it out of "
            f"{mention('baselines')}",
            "baselines",
            "strategy",
        )
    unknown = [b for b in settings.baselines if b not in BASELINES]
    if unknown:
        raise UnknownName("baseline", unknown[0], BASELINES, otherwise="choose from", settings=("baselines",))


def _check_parts(settings: EvolveSettings) -> None:
    """What is tuned, the judge, and the observation that is given."""
    if settings.tune and settings.evolves == "observation":
        raise InvalidSetting(
            f"{mention('tune')} searches the numbers of rewards, and this search evolves observations alone",
            "tune",
            "evolve",
        )
    _check_judge(settings)
    if settings.observation is not None and settings.evolves != "reward":
        raise InvalidSetting(
            f"{mention('observation')} is for {mention('evolve', 'reward')}; this search evolves {settings.evolves}",
            "observation",
            "evolve",
        )
    given = settings.observation is None or settings.resume or settings.proposer == "replay"
    if settings.observation is not None and not (given or settings.observation.is_file()):
        raise UnusableFile(
            f"{mention('observation')}: there is no file {settings.observation}",
            settings.observation,
            FileProblem.MISSING,
        )


def _check_judge(settings: EvolveSettings) -> None:
    """Who judges agents, and whether the strategy has them judged so."""
    who, judge, model = settings.judged_by, settings.judge, settings.llm.judge_model
    if judge != "auto" and who is None:
        raise InvalidSetting(
            f"{mention('judge')} is for strategies that have agents judged, and {settings.strategy} with these options "
            "does not",
            "judge",
            "strategy",
        )
    if settings.asks_people and who not in PEOPLE:
        message = f"{settings.strategy} has people compare agents: {mention('judge')} is files or terminal, not {judge}"
        raise InvalidSetting(message, "judge", "strategy")
    if who == "model" and not model:
        message = f"{mention('judge', 'model')} needs {mention('judge_model')}: a vision model, by a name of litellm's"
        raise InvalidSetting(message, "llm.judge_model", "judge")
    if model and who != "model":
        raise InvalidSetting(
            f"{mention('judge_model')} is for {mention('judge', 'model')}, and a strategy that has each agent judged, "
            f"as {mention('strategy', 'rda')}",
            "llm.judge_model",
            "judge",
            "strategy",
        )
    if settings.proposer == "replay":  # with the options of its recording
        return
    of_frames = ("judge_episodes", "judge_frames") if settings.frames else ()
    used = JUDGE_OPTIONS if who == "model" else of_frames
    for name in JUDGE_OPTIONS:
        if name not in used and getattr(settings.llm, name) != getattr(LlmSettings(), name):
            frames = mention("judge_frames") if name == "judge_episodes" and who == "scripted" else ""
            message = f"{mention(name)} is for {frames or mention('judge_model')}, which this search does not have"
            raise InvalidSetting(message, f"llm.{name}", "judge")


def _check_proposer(settings: EvolveSettings) -> None:
    """The proposer, and what is for another one."""
    if settings.proposer == "replay" and settings.recording is None:
        raise InvalidSetting(
            f"{mention('proposer', 'replay')} needs {mention('recording')}: the folder of a run or its events.jsonl",
            "recording",
            "proposer",
        )
    if settings.blocks not in typing.get_args(Switch):
        raise UnknownName("value of blocks", str(settings.blocks), typing.get_args(Switch), settings=("blocks",))
    if settings.blocks == "on" and (settings.proposer != "genetic" or settings.objective != "training"):
        raise InvalidSetting(
            f"{mention('blocks', 'on')} is for {mention('proposer', 'genetic')} and {mention('objective', 'training')}",
            "blocks",
            "proposer",
            "objective",
        )
    if settings.surrogate and settings.proposer != "genetic":
        raise InvalidSetting(f"{mention('surrogate')} is for {mention('proposer', 'genetic')}", "surrogate", "proposer")
    if settings.surrogate and not strategy_class(settings.strategy).learns:
        message = f"{settings.strategy} does not go by the scores so far: leave {mention('surrogate')} out"
        raise InvalidSetting(message, "surrogate", "strategy")
    if settings.proposer != "replay" and settings.recording is not None:
        raise InvalidSetting(
            f"{mention('recording')} is for {mention('proposer', 'replay')}; the {settings.proposer} proposer "
            "has no use for it",
            "recording",
            "proposer",
        )
    if settings.proposer == "llm" and not settings.llm.model:
        raise InvalidSetting(
            f"{mention('proposer', 'llm')} needs {mention('model')}: a name of litellm's, e.g. "
            "anthropic/claude-sonnet-4-5",
            "llm.model",
            "proposer",
        )
    unused = [
        name for name in _idle_llm_options(settings) if getattr(settings.llm, name) != getattr(LlmSettings(), name)
    ]
    if unused:
        raise InvalidSetting(
            f"{mention(unused[0])} is for {mention('proposer', 'llm')}; the {settings.proposer} proposer has "
            "no use for it",
            f"llm.{unused[0]}",
            "proposer",
        )


def _check_objective(settings: EvolveSettings) -> None:
    """The objective, and what is for another one."""
    if settings.resume:  # a run has copies of its data
        return
    settings.demonstrations.check(settings.objective)
    if settings.objective == "training":
        return
    objective = mention("objective", settings.objective)
    if settings.evolves != "reward":
        raise InvalidSetting(
            f"{objective} scores rewards alone: say {mention('evolve', 'reward')}, or {mention('strategy', 'grace')}",
            *("evolve", "objective"),
        )
    if settings.learner == "sac":
        alone = mention("learner", "ppo")
        message = f"{objective} takes early ends for states that are never left, which {alone} alone can"
        raise InvalidSetting(message, "learner", "objective")
    given = [name for name in _FOR_TRAINING if getattr(settings, name)]
    if given:
        raise InvalidSetting(
            f"{mention(given[0])} is for {mention('objective', 'training')}; {objective} trains no candidates",
            *(given[0], "objective"),
        )


def _idle_llm_options(settings: EvolveSettings) -> list[str]:
    """Options of language models that the proposer has no use for; a replay takes those of its recording."""
    if settings.proposer in ("llm", "replay"):
        return []
    used = ("wait_s", "repairs", "prompts") if settings.proposer == "manual" else ()
    if settings.judged_by in PEOPLE:
        used += ("wait_s",)
    if settings.judged_by == "model":
        used += tuple(f.name for f in dataclasses.fields(LlmSettings) if f.name not in ("model", "repairs"))
    used += JUDGE_OPTIONS  # of which `_check_judge` knows
    return [f.name for f in dataclasses.fields(LlmSettings) if f.name not in used]


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
