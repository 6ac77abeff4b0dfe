"""The objects of a search: its task, strategy, proposer and judge."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jaxreward import files
from jaxreward.errors import InvalidSetting, UserError
from jaxreward.evolution.settings import EvolveSettings
from jaxreward.evolution.task_check import require_vocabulary
from jaxreward.evolution.vocabulary import search_vocabulary
from jaxreward.proposers.fixed import FixedObservation
from jaxreward.proposers.human.judge import Judge
from jaxreward.proposers.proposer import Proposer
from jaxreward.proposers.registry import make_proposer
from jaxreward.records import TaskCard, Vocabulary
from jaxreward.runs.disk import write_atomic
from jaxreward.search import SearchStrategy, make_strategy
from jaxreward.tasks import Dense, Drawable, Task, card, file_of, is_file, measure_of, require_sound
from jaxreward.training import PPO

# The copy of a given observation in the folder of a run.
OBSERVATION = "observation.py"
# And of the file that its task is from.
TASK = "task.py"


@dataclass(frozen=True)
class Setup:
    """The objects that settings name, made before anything is written. `derived` is the vocabulary of the search where
    any of it was derived from the task."""

    task: Task
    strategy: SearchStrategy[Any]
    proposer: Proposer
    observation: FixedObservation | None = None
    judge: Judge | None = None
    derived: Vocabulary | None = None

    @classmethod
    def of(
        cls, settings: EvolveSettings, task: Task | None = None, observation: FixedObservation | None = None
    ) -> Setup:
        """The objects that `settings` name; `observation` replaces the file that they name."""
        task = task or settings.make_task()
        require_sound(task)
        require_vocabulary(task, unsafe_no_sandbox=settings.unsafe_no_sandbox)
        measure = measure_of(task)
        if measure.rate and not 0.0 <= settings.threshold <= 1.0:
            raise InvalidSetting(
                f"--filter-threshold is a success rate in [0, 1], not {settings.threshold}", "filter_threshold"
            )
        if not measure.rate and settings.filter_steps and settings.filter_threshold is None:
            raise InvalidSetting(
                f"--filter-steps on {task.name} needs --filter-threshold: a value of its {measure.label}",
                "filter_threshold",
                "filter_steps",
            )
        if "dense" in settings.baselines and not isinstance(task, Dense):
            raise InvalidSetting(
                f"{task.name} has no dense reward by a person: leave dense out of --baselines", "baselines"
            )
        strategy = make_strategy(settings.strategy, **settings.strategy_options())
        observation = observation or given_observation(settings)
        vocabulary, is_derived = search_vocabulary(settings, task)
        described = task_card(task, observation, settings.ppo).model_copy(update={"vocabulary": vocabulary})
        proposer = make_proposer(settings.proposer, described, **settings.proposer_options())
        if strategy.asks_people and not isinstance(task, Drawable):
            raise InvalidSetting(
                f"people cannot compare agents of {task.name}: the task has no `draw`; use its score",
                "strategy",
                "option",
            )
        asks = strategy.asks_people and settings.proposer != "replay"  # a recording has the votes
        judge = Judge(settings.judge, settings.llm.wait_s) if asks else None
        return cls(task, strategy, proposer, observation, judge, vocabulary if is_derived else None)


def given_observation(settings: EvolveSettings) -> FixedObservation | None:
    """The observation of `--observation`; a run keeps the file that it was started with."""
    if settings.observation is None:
        return None
    folders = [settings.out / settings.run_name]
    if settings.recording is not None:
        folders.append(settings.recording if settings.recording.is_dir() else settings.recording.parent)
    kept = [folder / OBSERVATION for folder in folders if files.is_there(folder / OBSERVATION)]
    return FixedObservation(kept[0], links=False) if kept else FixedObservation(settings.observation)


def task_card(task: Task, observation: FixedObservation | None, ppo: PPO) -> TaskCard:
    """The task and the learner as proposers see them."""
    learner = {"discount": float(ppo.discount), "rewards_scaled": ppo.scale_rewards, "horizon_cuts": ppo.bootstrap}
    return card(task).model_copy(update={"observation": observation.source if observation else "", **learner})


def save_task_file(settings: EvolveSettings, folder: Path) -> None:
    """Copy the Python file of the task, if it has one, into the folder of a run.

    Raises:
        UserError: the file is not the one that the run began with: another task is another run.
    """
    if not is_file(settings.task):
        return
    file, kept = file_of(settings.task), folder / TASK
    text = file.read_text(encoding="utf-8")
    if files.is_there(kept) and files.read_text(kept) != text:
        raise UserError(
            f"{file} has changed since {folder} began with it: its copy is {kept}; give that back, or start another "
            "run with --name"
        )
    write_atomic(kept, text)
