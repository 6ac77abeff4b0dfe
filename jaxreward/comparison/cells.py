"""The cells of a comparison: a search each, and for every task the training of its own interface."""

from __future__ import annotations

import dataclasses
import hashlib
import shutil
import time
import traceback
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from jaxreward import files
from jaxreward.comparison.finished_searches import Dense, SearchKey, Sparse, read_search, read_sparse
from jaxreward.config import file_of, label_of, with_new_names
from jaxreward.errors import (
    FAILED_EXIT_CODE,
    USAGE_EXIT_CODE,
    ChangedSetting,
    FileProblem,
    UnusableFile,
    UserError,
)
from jaxreward.evolution import run_search
from jaxreward.evolution.file_code import code_of, require_same_code, require_same_file_code
from jaxreward.evolution.final_evaluation import FIRST_SEED
from jaxreward.evolution.learner_options import LearnerName
from jaxreward.evolution.resuming import objects_of
from jaxreward.evolution.search_options import OF_EXECUTOR
from jaxreward.evolution.settings import EvolveSettings
from jaxreward.evolution.setup import OBSERVATION, Objects, require_same_files, require_same_objects
from jaxreward.evolution.started import AS_BEFORE, as_now, started_settings
from jaxreward.evolution.watcher import Watcher
from jaxreward.formatting import printable
from jaxreward.identity import Identity, difference
from jaxreward.programs import Checker, Program
from jaxreward.proposers.fixed import FixedObservation
from jaxreward.runs import REQUEUE_EXIT_CODE, StopSignal
from jaxreward.runs.checkpoint import Checkpoints
from jaxreward.runs.disk import write_atomic
from jaxreward.runs.events import json_ready
from jaxreward.runs.provenance import versions
from jaxreward.runs.toml import flat
from jaxreward.search.option_text import read_options, write_options
from jaxreward.search.registry import STRATEGIES
from jaxreward.sentences import Sentence, mention
from jaxreward.tasks import Task
from jaxreward.training import Checkpointing, Interrupted, train
from jaxreward.training.plan import curve_points

Status = Literal["done", "begun", "to do"]

# Settings that may differ when a cell is resumed: its result does not depend on them.
HARMLESS = frozenset({
    *OF_EXECUTOR,
    *("memory_gb", "unsafe_no_sandbox", "command", "llm.api_base", "llm.stream", "llm.concurrency", "llm.timeout_s"),
    *("llm.retries", "llm.wait_s", "llm.confirm_usd"),
})  # fmt: skip

_ELSEWHERE = f"compare in another folder with {mention('out')}"


@dataclass(frozen=True)
class Tools:
    """Shared by the cells of one process."""

    checker: Checker
    watcher: Watcher
    stop: StopSignal
    redact: Callable[[str], str]


@dataclass(frozen=True)
class Unfinished:
    """Why a cell could not be finished; `later` is whether the same command may finish it later."""

    cell: str
    reason: str
    later: bool


def sparse_label(task: str) -> str:
    """What the training of a task's own interface is called."""
    return f"{label_of(task)}, sparse"


@dataclass(frozen=True)
class SearchCell:
    """One search: an ordinary run, named after strategy, proposer and search seed."""

    settings: EvolveSettings
    given: Objects = field(default_factory=Objects)

    @property
    def label(self) -> str:
        s = self.settings
        return SearchKey(s.task, s.strategy, s.proposer, s.seed).label

    @property
    def path(self) -> Path:
        return self.settings.out / self.settings.run_name

    @property
    def begun(self) -> bool:
        return files.is_there(self.path / "config.toml")

    def status(self) -> Status:
        with suppress(UserError):  # a damaged log: running it raises the error
            search = read_search(self.path)
            if search is not None and search.finished:
                return "done"
        return "begun" if self.begun else "to do"

    def require_same(self, task: Task) -> None:
        if not self.begun:
            return
        began = None
        with suppress(UserError):  # a damaged log: running it raises the error
            began = objects_of(self.path)
        if began is not None:
            require_same_objects(self.path, began, self.given.identities, _ELSEWHERE)
        require_same_files(self.settings, self.path, _ELSEWHERE)
        if began is not None:
            require_same_code(self.path, self.settings, code_of(self.settings, task), _ELSEWHERE)
        before, now = started_with(self.path), self.settings.as_config()
        known, asked = observation_digest(self.path, before), given_digest(self.settings.observation)
        if known is not None and known != asked:
            copy = f"another observation (its copy is {self.path / OBSERVATION})" if known else "the task's observation"
            file = f"that of {self.settings.observation}" if asked else "the task's"
            raise ChangedSetting(
                f"{self.path} was started with {copy} and is now asked for with {file}: give what it was started "
                f"with, or another folder with {mention('out')}",
                "observation",
            )
        _require_same(self.path, before | {"observation": None}, now | {"observation": None})

    def run(self, task: Task, tools: Tools) -> Unfinished | None:
        settings = dataclasses.replace(self.settings, resume=self.begun)
        outcome = run_search(
            settings, tools.watcher, task=task, given=self.given, stop=tools.stop, checker=tools.checker
        )
        if outcome.exit_code in (0, FAILED_EXIT_CODE):  # a search without a score is a result, the worst
            return None
        return Unfinished(self.label, outcome.reason, outcome.exit_code != USAGE_EXIT_CODE)


@dataclass(frozen=True)
class SparseCell:
    """The task's own observation with its sparse reward, and with a person's dense one where there is one, trained on
    the fresh seeds of the searches; no search. `identity` is that of a task that Python code gave as an object."""

    settings: EvolveSettings
    identity: Identity = field(default_factory=Identity)

    @property
    def label(self) -> str:
        return sparse_label(self.settings.task)

    @property
    def path(self) -> Path:
        return self.settings.out / "sparse.json"

    def status(self) -> Status:
        return "done" if read_sparse(self.path) else "to do"

    def require_same(self, task: Task) -> None:
        known = read_sparse(self.path)
        if known is None:
            return
        s, code = self.settings, self._code(task)
        digest, *dense = (program.digest for program in Program.own(task))
        if known.code and code.text:
            began = Identity(known.code, known.parts)
            require_same_file_code(file_of(s.task), self.path, began, code, known.versions, _ELSEWHERE)
        if (
            known.digest != digest
            or (known.dense and [known.dense.digest] != dense)
            or (known.identity and known.identity != self.identity.text)
        ):
            found = difference("task", known.parts, self.identity.parts) if known.parts and self.identity.parts else ""
            why = f" ({found})" if found else ""
            raise ChangedSetting(f"{self.path} is of another version of {label_of(s.task)}{why}: {_ELSEWHERE}", "task")
        started = {
            "task_arg": list(known.task_arg), "final_seeds": known.seeds, "final_steps": known.steps,
            "learner": known.learner, known.learner: learner_with_defaults(known.learner, known.ppo),
        }  # fmt: skip
        asked = {
            "task_arg": list(s.task_arg), "final_seeds": s.final_seeds, "final_steps": s.final_steps or s.steps,
            "learner": s.learner, s.learner: s.as_config()[s.learner],
        }  # fmt: skip
        _require_same(self.path, started, json_ready(asked))

    def _code(self, task: Task) -> Identity:
        """That of a task that is a file."""
        return code_of(EvolveSettings(task=self.settings.task), task).get("task", Identity())

    def run(self, task: Task, tools: Tools) -> Unfinished | None:
        s, steps = self.settings, self.settings.final_steps or self.settings.steps
        programs, half_done, code = Program.own(task), s.out / "sparse-checkpoints", self._code(task)
        try:
            trained = train(
                task, programs, s.hyper, seeds=range(FIRST_SEED, FIRST_SEED + s.final_seeds), steps=steps,
                checkpoints=curve_points(task, s.hyper, steps, s.eval_episodes), eval_episodes=s.eval_episodes,
                execution=s.execution(),
                checkpointing=Checkpointing(Checkpoints(half_done), "sparse"),
                progress=lambda p: tools.watcher.training("sparse", p), should_stop=lambda: tools.stop.requested,
            )  # fmt: skip
        except Interrupted as interrupted:
            return Unfinished(self.label, str(interrupted), later=True)
        found = Sparse(
            task=s.task, task_arg=s.task_arg, digest=programs[0].digest, seeds=s.final_seeds, steps=steps,
            learner=s.learner, ppo=s.as_config()[s.learner], identity=self.identity.text, code=code.text,
            parts=dict((code if code.text else self.identity).parts), versions=versions(),
            score=trained.score(0), alignment=trained.alignment(0),
            dense=Dense(digest=programs[1].digest, score=trained.score(1), alignment=trained.alignment(1))
            if programs[1:] else None,
            env_steps=trained.env_steps, compile_s=trained.compile_s, run_s=trained.run_s,
        )  # fmt: skip
        self.path.parent.mkdir(parents=True, exist_ok=True)
        write_atomic(self.path, found.model_dump_json(indent=1) + "\n")
        shutil.rmtree(half_done, ignore_errors=True)
        return None


Cell = SearchCell | SparseCell
"""A part of a comparison that is run, resumed and skipped as a whole."""


def attempt(cell: Cell, task: Task, tools: Tools) -> Unfinished | None:
    """Run a cell and return its error, so that the other cells run as well; see `attempted`."""
    return attempted(cell.label, cell.path, lambda: cell.run(task, tools), tools)


def attempted(label: str, path: Path, work: Callable[[], Unfinished | None], tools: Tools) -> Unfinished | None:
    """Do the work of the cell in `path` and return its error, if there is one.

    The traceback of an error that is no UserError is added to `error_file(path)`, keys hidden.
    """
    try:
        return work()
    except UserError as error:
        return Unfinished(label, error.sentence, error.later)
    except Exception as error:
        first = printable(tools.redact(str(error))).strip().partition("\n")[0]
        text = ": ".join(filter(None, (type(error).__name__, first)))
        kept = _keep_traceback(label, path, printable(tools.redact(traceback.format_exc())), tools.watcher)
        memory = isinstance(error, MemoryError) or "RESOURCE_EXHAUSTED" in str(error)
        advice = f"let training take less with {mention('memory_gb')}" if memory else "correct the cause"
        reason = f"{text} (traceback: {kept}); {advice}, and give the same command again"
        # later=False: it would fail again, and a scheduler would retry forever.
        return Unfinished(label, Sentence(reason), later=False)


def error_file(path: Path) -> Path:
    """Where the tracebacks of the cell in `path` are kept."""
    return path.with_name(f"{path.name}.error.txt")


def _keep_traceback(label: str, path: Path, text: str, watcher: Watcher) -> str:
    """Add a traceback to the file of the cell in `path`; returns where it is."""
    file = error_file(path)
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        earlier = files.read_text(file) + "\n" if files.is_there(file) else ""
        write_atomic(file, f"{earlier}{time.strftime('%Y-%m-%d %H:%M:%S')}, {label}\n{text}")
    except (OSError, ValueError, UserError):  # such as a full disk
        watcher.note(text)
        return "above"
    return str(file)


def exit_code(unfinished: Sequence[Unfinished]) -> int:
    """0 if all cells are finished, the code for a scheduler to queue the command again if that may help, else that of a
    mistake of the user."""
    if not unfinished:
        return 0
    return REQUEUE_EXIT_CODE if all(t.later for t in unfinished) else USAGE_EXIT_CODE


# ---- settings of cells that have begun


def started_with(path: Path) -> dict[str, Any]:
    """The settings that the search in `path` was started with, with defaults."""
    return started_settings(path).as_config()


def with_defaults(config: Mapping[str, Any], strategy: str) -> dict[str, Any]:
    """The settings of a search with the defaults of those that its version did not have.

    Unlike `started_with` it keeps settings that this version does not have: they only have to be equal.
    """
    usual = EvolveSettings(strategy=strategy, learner=config.get("learner", "ppo"))
    found = json_ready(usual.as_config()) if strategy in STRATEGIES else {}
    for name, value in with_new_names(EvolveSettings, {**AS_BEFORE, **as_now(config)}).items():
        table = found.get(name)
        found[name] = {**table, **value} if isinstance(table, dict) and isinstance(value, Mapping) else value
    with suppress(UserError):  # an option that this version does not have
        found["option"] = list(write_options(strategy, read_options(strategy, found.get("option", ()))))
    return found


def learner_with_defaults(name: LearnerName, values: Mapping[str, Any]) -> dict[str, Any]:
    """As `with_defaults`, of the hyperparameters of a learner."""
    return {**json_ready(EvolveSettings(learner=name).as_config()[name]), **values}


def given_digest(file: Path | None, *, links: bool = True) -> str:
    """The digest of a given observation's source; empty for none. `links` as in `FixedObservation`.

    Raises:
        UserError: the file cannot be read or parsed.
    """
    return hashlib.sha256(FixedObservation(file, links=links).source.encode()).hexdigest() if file else ""


def observation_digest(path: Path, config: Mapping[str, Any]) -> str | None:
    """As `given_digest`, of the observation that the search in `path` keeps; None before it has proposed anything.

    Raises:
        UnusableFile: the copy is gone.
    """
    if config.get("observation") is None:
        return ""
    copy = path / OBSERVATION
    if files.is_there(copy):
        return given_digest(copy, links=False)
    if read_search(path) is None:
        return None
    raise UnusableFile(
        f"{copy} is missing, the observation that the search was given: put it back from a copy of the folder, or move "
        "the search away",
        copy,
        FileProblem.MISSING,
    )


def first_difference(
    a: Mapping[str, Any], b: Mapping[str, Any], ignored: Collection[str] = ()
) -> tuple[str, Any, Any] | None:
    """The first setting by name that differs, with both values, None for an absent one."""
    mine, other = dict(flat(a)), dict(flat(b))
    names = sorted((mine.keys() | other.keys()) - set(ignored))
    return next(((name, x, y) for name in names if (x := mine.get(name)) != (y := other.get(name))), None)


def _require_same(path: Path, started: Mapping[str, Any], asked: Mapping[str, Any]) -> None:
    if found := first_difference(started, asked, HARMLESS):
        name, before, now = found
        raise ChangedSetting(
            f"{path} was started with {name} {_text(before)} and is now asked for with {_text(now)}: give what it was "
            f"started with, or another folder with {mention('out')}",
            name,
        )


def _text(value: Any) -> str:
    return "none" if value is None or value == [] or value == () else str(value)
