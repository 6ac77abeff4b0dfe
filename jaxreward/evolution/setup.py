"""The objects of a search: its task, strategy, proposer and judge."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from jaxreward import files
from jaxreward.errors import InvalidSetting, UserError
from jaxreward.evolution.file_code import code_of, require_same_code
from jaxreward.evolution.filming import check_drawable
from jaxreward.evolution.settings import PEOPLE, EvolveSettings
from jaxreward.evolution.task_check import require_vocabulary
from jaxreward.evolution.vocabulary import WITHOUT, demonstration_vocabulary, search_vocabulary
from jaxreward.extras import require
from jaxreward.identity import Identity, difference
from jaxreward.objectives.demonstrations.demonstration_options import DemonstrationOptions
from jaxreward.objectives.demonstrations.demonstration_sets import DemonstrationSets, is_there
from jaxreward.objectives.demonstrations.objective import DemonstrationObjective
from jaxreward.objectives.objective import Objective
from jaxreward.objectives.training.objective import TrainingObjective
from jaxreward.programs import Checker, ProgramRejected, Spec
from jaxreward.proposers.fixed import FixedObservation
from jaxreward.proposers.human.judge import Judge
from jaxreward.proposers.human.subtask_scores import SubtaskScores
from jaxreward.proposers.judging import AgentJudge, ScriptedJudge
from jaxreward.proposers.llm.vision_judge import VisionJudge
from jaxreward.proposers.proposer import Proposer
from jaxreward.proposers.registry import make_proposer, own_proposer
from jaxreward.records import Subgoals, TaskCard, Vocabulary
from jaxreward.runs import RunStarted
from jaxreward.runs.disk import write_atomic
from jaxreward.runs.resume_options import COPIES
from jaxreward.search import SearchStrategy, make_strategy
from jaxreward.sentences import Sentence, mention
from jaxreward.tasks import Dense, Drawable, Task, card, file_of, is_file, measure_of, require_sound
from jaxreward.tasks.registry import INSTRUCTED
from jaxreward.training import Learner

# The copy of a given observation in the folder of a run.
OBSERVATION = "observation.py"


@dataclass(frozen=True)
class Objects:
    """What a caller in Python gives in place of a name in the settings.

    Attributes:
        task: the task.
        proposer: the proposer, or a class or function that makes one.
        vocabulary: what programs are built from, in place of what the settings say.
        identities: what the run records of each object by the name of its setting, and requires when it is resumed.
    """

    task: Task | None = None
    proposer: Proposer | Callable[..., Any] | None = None
    vocabulary: Vocabulary | None = None
    identities: Mapping[str, Identity] = field(default_factory=dict)


@dataclass(frozen=True)
class Setup:
    """The objects that settings name, made before anything is written; `given` are those that Python code gave,
    `derived` is the vocabulary of the search where it is not the task's own: derived from the task, or given, and
    `code` is what the Python files among the settings define, by the name of the setting."""

    task: Task
    objective: Objective
    strategy: SearchStrategy[Any]
    proposer: Proposer
    observation: FixedObservation | None = None
    judge: AgentJudge | None = None
    given: Objects = Objects()
    derived: Vocabulary | None = None
    code: Mapping[str, Identity] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        settings: EvolveSettings,
        task: Task | None = None,
        observation: FixedObservation | None = None,
        given: Objects = Objects(),
        copies: Path | None = None,
    ) -> Setup:
        """The objects that `settings` name; `observation` replaces the file that they name, `task` saves making it.
        `copies` is a folder with the demonstrations, by default that of a run that is resumed.

        Raises:
            UserError: settings that cannot be, or a run that is resumed with other code than it began with.
        """
        task = given.task or task or settings.make_task()
        code = code_of(settings, task)
        if settings.resume:
            require_same_code(settings.out / settings.run_name, settings, code)
        require_sound(task)
        require_vocabulary(task, unsafe_no_sandbox=settings.unsafe_no_sandbox)
        measure = measure_of(task)
        if measure.rate and not 0.0 <= settings.threshold <= 1.0:
            raise InvalidSetting(
                f"{mention('filter_threshold')} is a success rate in [0, 1], not {settings.threshold}",
                "filter_threshold",
            )
        if not measure.rate and settings.filter_steps and settings.filter_threshold is None:
            raise InvalidSetting(
                f"{mention('filter_steps')} on {task.name} needs {mention('filter_threshold')}: a value of its "
                f"{measure.label}",
                "filter_threshold",
                "filter_steps",
            )
        if "dense" in settings.baselines and not isinstance(task, Dense):
            raise InvalidSetting(
                f"{task.name} has no dense reward by a person: leave dense out of {mention('baselines')}", "baselines"
            )
        strategy = make_strategy(settings.strategy, **settings.strategy_options())
        _check_overlap(settings, strategy)
        observation = observation or given_observation(settings)
        objective = objective_of(settings, task, copies)
        if given.vocabulary:
            vocabulary, is_kept = given.vocabulary, True
        elif isinstance(objective, DemonstrationObjective) and settings.proposer not in WITHOUT:
            vocabulary, is_kept = demonstration_vocabulary(settings, task, objective.data), True
        else:
            vocabulary, is_kept = search_vocabulary(settings, task)
        described = task_card(task, observation, settings.hyper).model_copy(update={"vocabulary": vocabulary})
        # one in place of the task's: nothing of that comes back
        if "vocabulary" in given.identities or settings.vocabulary == "derived":
            described = described.model_copy(update={"subgoals": described.subgoals.of(vocabulary)})
        elif is_kept:  # what is derived takes no name from what the subgoals bring
            apart = vocabulary.apart_from(described.subgoals.vocabulary)
            described = described.model_copy(update={"vocabulary": apart})
        if settings.objective == "demonstrations":
            described = without_words(described, task, objective, settings.demonstrations)
        if given.proposer is not None:
            proposer = own_proposer(given.proposer, described)
        else:
            proposer = make_proposer(settings.proposer, described, **settings.proposer_options())
        if settings.judged_by in PEOPLE:
            require_films(task)
        judge = judge_of(settings, strategy, described)
        if judge is not None and (settings.frames or judge.films):
            check_drawable(task)  # before anything is trained
        derived = vocabulary if is_kept else None
        return cls(task, objective, strategy, proposer, observation, judge, given, derived, code)


def _check_overlap(settings: EvolveSettings, strategy: SearchStrategy[Any]) -> None:
    """Raise an `InvalidSetting` for what an asynchronous search cannot have."""
    if settings.in_flight and not settings.asynchronous:
        raise InvalidSetting(
            f"{mention('in_flight')} is for {mention('asynchronous', True)}", "in_flight", "asynchronous"
        )
    if settings.asynchronous and settings.proposer == "manual":
        raise InvalidSetting(
            f"{mention('proposer', 'manual')} writes one generation at a time: leave {mention('asynchronous')} out",
            "asynchronous",
            "proposer",
        )
    if settings.asynchronous and settings.profile:
        raise InvalidSetting(
            f"{mention('profile')} has a page for each generation, and in an asynchronous search they overlap: leave "
            f"one of the two out",
            "profile",
            "asynchronous",
        )
    if settings.asynchronous and not strategy.asynchronous:
        raise InvalidSetting(
            f"strategy {strategy.name} with these options waits for the results of a generation before it asks "
            f"again: leave {mention('asynchronous')} out, or choose limen, revolve, best-of-n or forge with "
            f"{mention('option', ['planner=false'])}",
            "asynchronous",
            "strategy",
        )


def judge_of(settings: EvolveSettings, strategy: SearchStrategy[Any], described: TaskCard) -> AgentJudge | None:
    """Who judges agents; nobody in a search that is replayed, whose recording has what was seen.

    Raises:
        InvalidSetting: the task has no instruction, or nothing that its agents are judged by.
    """
    who = settings.judged_by
    if settings.proposer == "replay":
        return None
    if not strategy.instructed:
        return Judge(who, settings.llm.wait_s) if who in PEOPLE else None
    instruction, name = described.instruction, described.name
    if instruction is None or not (instruction.subtasks or who in ("model", *PEOPLE)):
        lacks = "no instruction()" if instruction is None else "an instruction() without subtasks"
        raise InvalidSetting(
            f"the strategy {settings.strategy} is for tasks with an instruction() and its subtasks, and {name} has "
            f"{lacks}: choose {', '.join(INSTRUCTED[:-1])} or {INSTRUCTED[-1]}, add one (docs/add_a_task.md), or "
            "choose another strategy",
            "task",
            "strategy",
        )
    if who in PEOPLE:
        return SubtaskScores(instruction, who, settings.llm.wait_s)
    if who == "model":
        require("reports", "a model that judges", "judge_model")
        return VisionJudge(described, settings.llm)
    if strategy.watches and (lacking := next((s.name for s in instruction.subtasks if not s.metric), "")):
        raise InvalidSetting(
            f"the subtask '{lacking}' of {name} has no metric, by which agents are judged: name an extra metric of the "
            f"task, or say {mention('judge_model')}",
            "task",
            "judge",
        )
    if settings.frames:
        require("reports", mention("judge_frames"), "judge_frames")
    return ScriptedJudge(instruction)


def require_films(task: Task) -> None:
    """Require what people judge agents by."""
    if not isinstance(task, Drawable):
        message = f"people cannot judge agents of {task.name}: the task has no `draw`, which makes films"
        raise InvalidSetting(message, "strategy", "option")
    require("reports", "a search whose agents people judge", "strategy", "option")


def objective_of(settings: EvolveSettings, task: Task, copies: Path | None = None) -> Objective:
    """The objective that settings name; `copies` as for `Setup.of`."""
    if settings.objective == "training":
        return TrainingObjective(task, settings)
    options = settings.demonstrations
    if copies is None and settings.resume and is_there(settings.out / settings.run_name):
        copies = settings.out / settings.run_name
    if copies is not None:
        sets = DemonstrationSets.read(task, copies, options)
    else:
        sets = DemonstrationSets.of(task, options, settings.seed, settings.task_arg)
    return DemonstrationObjective(task, settings, sets)


def given_observation(settings: EvolveSettings) -> FixedObservation | None:
    """The observation of `--observation`; a run keeps the file that it was started with."""
    if settings.observation is None:
        return None
    folders = [settings.out / settings.run_name]
    if settings.recording is not None:
        folders.append(settings.recording if settings.recording.is_dir() else settings.recording.parent)
    kept = [folder / OBSERVATION for folder in folders if files.is_there(folder / OBSERVATION)]
    return FixedObservation(kept[0], links=False) if kept else FixedObservation(settings.observation)


def task_card(task: Task, observation: FixedObservation | None, ppo: Learner) -> TaskCard:
    """The task and the learner as proposers see them."""
    learner = {"discount": float(ppo.discount), "rewards_scaled": ppo.scale_rewards, "horizon_cuts": ppo.bootstrap}
    found = card(task)
    subgoals = found.subgoals.model_copy(update={"vocabulary": found.subgoals.vocabulary.discounted(ppo.discount)})
    given = observation.source if observation else ""
    return found.model_copy(update={"observation": given, "subgoals": subgoals, **learner})


def without_words(card: TaskCard, task: Task, objective: Objective, options: DemonstrationOptions) -> TaskCard:
    """The card of a search on demonstrations, without the words about the task unless they are to be told."""
    told = {"objective": objective.name, "measure": objective.measure, "subgoals": Subgoals()}
    card = card.model_copy(update=told)
    if options.tell_task:
        return card
    return card.model_copy(update={"name": "unknown", "description": "", "state_doc": state_arrays(Spec.of(task))})


def state_arrays(spec: Spec) -> str:
    """The arrays of states and the action, a line for each, without what they mean."""
    arrays = [f"{label}: {leaf.dtype} {leaf.shape}" for label, leaf in zip(spec.labels()[0], spec.leaves, strict=True)]
    action = f"action: {spec.action.dtype} {spec.action.shape}"
    if spec.actions:
        action += f", one of 0 to {spec.actions - 1}"
    return "\n".join([*arrays, action])


def save_files(settings: EvolveSettings, folder: Path) -> None:
    """Copy the Python files of the task, the strategy and the proposer, as far as they have one, into the folder of a
    run.

    Raises:
        UserError: a file is not the one that the run began with: another task is another run.
    """
    require_same_files(settings, folder)
    for option, copy in COPIES.items():
        if is_file(name := getattr(settings, option)):
            write_atomic(folder / copy, file_of(name).read_text(encoding="utf-8"))


def require_same_files(
    settings: EvolveSettings, folder: Path, otherwise: str = f"start another run with {mention('name')}"
) -> None:
    """Require that the Python files of the settings are those that the run in `folder` has copies of, if it has any.
    `otherwise` says what else the user may do.

    Raises:
        UserError: one is another.
    """
    for option, copy in COPIES.items():
        name, kept = getattr(settings, option), folder / copy
        if not (is_file(name) and files.is_there(kept)):
            continue
        if files.read_text(kept) != file_of(name).read_text(encoding="utf-8"):
            raise UserError(
                f"{file_of(name)} has changed since {folder} began with it: its copy is {kept}; give that back, or "
                f"{otherwise}"
            )


def given_objects(started: RunStarted) -> dict[str, Identity]:
    """What the first event of a run says of the objects that Python code gave."""
    return {option: Identity(text, started.parts.get(option, {})) for option, text in started.objects.items()}


def require_same_objects(
    folder: Path,
    started: Mapping[str, Identity],
    now: Mapping[str, Identity],
    otherwise: str = f"start another run with {mention('name')}",
) -> None:
    """Require that a run is resumed with the objects that Python code began it with.

    Args:
        started: their identities when the run began.
        now: those of the objects that are given now.
        otherwise: what else the user may do.

    Raises:
        UserError: one is another, is missing, or was a name.
    """
    for option in (*COPIES, "vocabulary"):
        before, after = started.get(option, Identity()), now.get(option, Identity())
        if before.text == after.text:
            continue
        was = f"the {option} {before.text}, which was given in Python" if before.text else f"a {option} by its name"
        given = f"is now given {after.text}" if after.text else "is now given a name"
        found = difference(option, before.parts, after.parts) if before.parts and after.parts else ""
        why = f" ({found})" if found else ""
        raise UserError(f"{folder} began with {was}, and {given}{why}: give the same again, or {otherwise}")


def save_observation(observation: FixedObservation, folder: Path, checker: Checker, task: Task) -> None:
    """Keep a given observation in the folder of a run.

    Raises:
        ProgramRejected: every candidate would be rejected with it.
    """
    verdict, _ = checker.check_many([observation.source], task)[0]
    if verdict.failure is not None:
        raise ProgramRejected(Sentence(mention("observation", observation.path)), verdict)
    write_atomic(folder / OBSERVATION, observation.source)
