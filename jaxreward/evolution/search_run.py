"""`SearchRun`: a search for notebooks and scripts, read from its folder."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from jaxreward.config import is_file
from jaxreward.errors import CallProblem, EndCause, InvalidSetting, UserError
from jaxreward.evolution.filming import (
    EPISODES,
    LEAST_EPISODES,
    LEAST_FRAMES,
    MOST_FRAMES,
    OF_THE_SEARCH,
    check_drawable,
    film,
    policy_of,
)
from jaxreward.evolution.policies import is_policy_of
from jaxreward.evolution.python_settings import task_of
from jaxreward.evolution.settings import EvolveSettings, require_task
from jaxreward.evolution.setup import given_objects, require_same_objects
from jaxreward.evolution.started import started_settings
from jaxreward.extras import require
from jaxreward.formatting import printable
from jaxreward.identity import Identity
from jaxreward.programs import Program, load_program
from jaxreward.records import Result, Score
from jaxreward.reports.films import check_format
from jaxreward.reports.page import FILM, embed_film, write_report
from jaxreward.reports.run_tables import task_of as task_title
from jaxreward.reports.run_text import paragraphs
from jaxreward.reports.run_view import RunView
from jaxreward.reports.tables import interval
from jaxreward.runs.checkpoint import Checkpoints
from jaxreward.runs.folders import find_run
from jaxreward.runs.malformed import explain_malformed
from jaxreward.table import Table, escaped
from jaxreward.tasks import Task, make_task_of
from jaxreward.training.networks import Variables
from jaxreward.training.policy import Policy
from jaxreward.training.sac_hyperparameters import Learner

_SHOWN = ("best", "fresh", "against", "warnings", "spent", "failures", "cost")
_LINES = 10


@dataclass(frozen=True)
class Best:
    """The best candidate of a run.

    Attributes:
        result: all that the search knows of it.
        score: on fresh seeds where it was trained again, else that of the search; `interval` is of it.
    """

    result: Result
    score: Score | None
    run: SearchRun

    @property
    def id(self) -> str:
        return self.result.candidate.id

    @property
    def interval(self) -> tuple[float, float] | None:
        """The 95 % interval of the score's mean, over seeds; see `reports.tables.interval`."""
        return interval(self.score) if self.score else None

    @property
    def source(self) -> str:
        """The program: `get_observation`, `compute_reward`, or both."""
        return self.result.candidate.source

    @property
    def program(self) -> Program:
        """The program, checked, for `jaxreward.train`."""
        return self.run._program

    def __repr__(self) -> str:
        low, high = (f"{end:.4g}" for end in self.interval) if self.interval else ("", "")
        return f"Best({self.id}, score={self.score!r}, interval=({low}, {high}))\n{self.source}"


class SearchRun:
    """A search as its folder holds it when it is read; made by `jaxreward.evolve` and `jaxreward.open_run`.

    Attributes:
        path: the folder.
        view: everything in its log.
    """

    def __init__(self, path: Path, task: Task | None = None) -> None:
        self.path = path
        self._task = task
        with explain_malformed(path):
            self.view = RunView.read(path)

    @property
    def best(self) -> Best | None:
        """The best candidate; None where none has a score."""
        found = self.view.best
        if found is None or found.score is None:
            return None
        return Best(found, self.view.final or found.score, self)

    @property
    def baselines(self) -> dict[str, Score | None]:
        """The scores of the baselines by name, None for one without a score."""
        return {name: baseline.score for name, baseline in self.view.baselines.items()}

    @property
    def standing(self) -> str:
        """`running`, `finished`, `failed`, `paused`, or `stopped` where its process was killed."""
        return self.view.standing

    @property
    def reason(self) -> str:
        """Why it ended or paused."""
        return self.view.reason

    @property
    def cause(self) -> EndCause | None:
        """The same as a type."""
        ended = self.view.progress.ended
        return ended.cause if ended is not None else None

    @property
    def problem(self) -> CallProblem | None:
        """Why a language model could not be asked any more, where that is why the run paused (`EndCause.ENDPOINT`)."""
        return getattr(self.view.progress.ended, "problem", None)

    def table(self) -> Table:
        """All candidates in order, with the mean of their metric, its standard error and 95 % interval (`low`, `high`)
        over the seeds of the search, and what became of them."""
        columns = ["id", "generation", "operator", "se", "low", "high", "status", "features", "terms"]
        name = self.view.measure.name
        columns.insert(3, "score" if name in columns else name)
        rows = []
        for result in self.view.results.values():
            c, score, summary = result.candidate, result.score, result.candidate.summary
            ends = interval(score) if score else (None, None)
            rows.append((
                c.id, c.generation, c.operator, score and score.mean, score and score.se, *ends,
                "trained" if score else result.failure.stage if result.failure else "answered",
                summary and summary.observation_size, summary and len(summary.terms),
            ))  # fmt: skip
        return Table(columns, rows)

    @cached_property
    def task(self) -> Task:
        """The task.

        Raises:
            UserError: it is a file, which would be executed, or was an object: it must be given.
        """
        if self._task is not None:
            return self._task
        started, give = self.view.started, f"jaxreward.open_run({str(self.path)!r}, task=...)"
        if "task" in started.objects:
            raise UserError(f"the task of {self.path} was given in Python, {started.objects['task']}: {give}")
        if is_file(started.task):
            raise UserError(
                f"the task of {self.path} is the Python file {started.task}, which would be executed: look at it "
                f"first, then say {give}"
            )
        require_task(started.task)
        return make_task_of(started.task, self._settings.task_arg)

    @property
    def ppo(self) -> Learner:
        """The learner of the search, for `jaxreward.train`."""
        return self._settings.hyper

    def policy(self, *, deterministic: bool = False) -> Policy:
        """The trained agent of the best candidate, the best of its seeds, as `policy(state, key) -> action`; see
        `training.Policy` for those with a memory.

        Args:
            deterministic: choose the most likely action in place of drawing one.

        Raises:
            UserError: no policy is kept, or the task must be given, see `task`.
        """
        return Policy(self.task, self._program, self._variables, self._settings.hyper, deterministic)

    def film(
        self, path: str | Path | None = None, *, episodes: int = EPISODES, frames: int = MOST_FRAMES, seed: int = 0
    ) -> Path:
        """Film the trained agent of the best candidate: its best, median and worst episode side by side, with what
        every reward term pays below. A task without `draw` is shown as the numbers of its view.

        Args:
            path: the film, `.gif` or `.mp4`; by default `film.gif` in the folder of the run, where its report shows it.
            episodes: how many are played, at least 3.
            frames: pictures of the film at most, at least 4; of longer episodes some steps are left out.
            seed: of the episodes.

        Returns:
            Where the film is.

        Raises:
            MissingPackage: the extra `reports`, or what the task is drawn with, is not installed.
            UserError: no policy is kept, the task must be given, see `task`, it cannot be drawn on this machine, or
                another format.
        """
        require("reports", "a film")
        for name, value, least in (("episodes", episodes, LEAST_EPISODES), ("frames", frames, LEAST_FRAMES)):
            if not isinstance(value, int) or value < least:
                raise InvalidSetting(f"{name} must be a whole number, at least {least}, not {value!r}", name)
        target = Path(path) if path is not None else self.path / f"{FILM}.gif"
        check_format(target)
        variables, program = self._variables, self._program
        check_drawable(self.task)
        settings = self._settings
        film(target, self.task, program, variables, settings.hyper, episodes=episodes, frames=frames, seed=seed)
        if path is None:
            embed_film(self.path, target.name, program.digest, OF_THE_SEARCH)
        return target

    def report(self, path: str | Path | None = None) -> Path:
        """Write the report, one page of HTML, by default into the folder of the run; returns where it is."""
        return write_report(self.path, Path(path) if path is not None else None)

    @property
    def _settings(self) -> EvolveSettings:
        return started_settings(self.path)

    @property
    def _variables(self) -> Variables:
        """Those of the best candidate's network."""
        best = self.view.best
        if best is None or not is_policy_of(self.view, best):
            why = " yet"
            if self._settings.objective == "demonstrations":
                why = ": a search on demonstrations keeps that of its final training"
            raise UserError(f"{self.path} keeps no policy of its best candidate{why}")
        store, ppo = Checkpoints(self.path / "checkpoints"), self._settings.hyper
        variables = policy_of(store, ["best-policy"], self.task, self._program, ppo)
        if variables is None:
            raise UserError(f"{self.path} has no policy in its checkpoints: train its program with jaxreward.train")
        return variables

    @cached_property
    def _program(self) -> Program:
        if self.best is None:
            raise UserError(f"no candidate of {self.path} has a score")
        return load_program(self.best.source, self.task)

    def __repr__(self) -> str:
        s, view = self.view.started, self.view
        lines = [
            f"SearchRun({str(self.path)!r}): {view.standing}" + (f", {view.reason}" if view.reason else ""),
            f"{'task':<10}{task_title(view)}",
            f"{'search':<10}{s.strategy}, {s.proposer}, seed {s.seed}",
        ]
        label = ""
        for named, text in paragraphs(view):
            label = named or label
            if label in _SHOWN:
                lines.append(f"{named:<10}{text}")
        return "\n".join(map(printable, lines[:_LINES]))

    def _repr_html_(self) -> str:
        text = "\n".join(map(escaped, repr(self).splitlines()))
        best = self.best
        source = "\n".join(map(escaped, best.source.splitlines())) if best else ""
        program = f"<details><summary>program</summary><pre>{source}</pre></details>"
        return f"<pre>{text}</pre>{program if best else ''}"


def open_run(path: str | Path, task: str | Path | Task | None = None) -> SearchRun:
    """The run in a folder, or of that name in `runs/`, also one that is running. Nothing of it is executed.

    Args:
        task: its task, where that is a Python file or was an object; needed for the program and the policy alone.

    Raises:
        UnknownName: there is no run.
        UserError: its log is damaged, or it began with another task.
    """
    name, own = task_of(task) if task is not None else ("", None)
    if name and own is None:
        own = make_task_of(name)
    run = SearchRun(find_run(str(path)), own)
    began = given_objects(run.view.started) if run.view.progress.started else {}
    if own is not None and "task" in began:
        now = began | {"task": Identity.of(own)}
        require_same_objects(run.path, began, now, "open it without task=")
    return run
