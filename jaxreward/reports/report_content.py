"""The content of a run's report, before it is a page: headline, warnings, charts, tables, commands."""

from __future__ import annotations

import ast
import shlex
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from jaxreward.config import label_of
from jaxreward.records import Feedback, FunctionLibrary, Measure, Result
from jaxreward.reports import charts
from jaxreward.reports.baselines import WINNER, ScoredProgram, scored_programs, verdicts
from jaxreward.reports.candidates import table
from jaxreward.reports.chart_data import (
    cells,
    curve,
    forest,
    function_rows,
    generation_rows,
    period_rows,
    search_rows,
    shares,
    size_rows,
    term_rows,
    use_rows,
)
from jaxreward.reports.demonstrated import Demonstrated
from jaxreward.reports.judged import Judged
from jaxreward.reports.lineage import LineageStep, lineage
from jaxreward.reports.model_costs import ModelCost, model_costs
from jaxreward.reports.ratings import rated_programs, rating_text
from jaxreward.reports.run_text import resume_command
from jaxreward.reports.run_view import RunView
from jaxreward.reports.tables import alignment_text, figure, task_title
from jaxreward.reports.warnings import RunWarning, run_warnings
from jaxreward.runs.provenance import without_header

_EXAMPLES = 3

FUNCTIONS = 12
"""Shared functions that a report shows."""


@dataclass(frozen=True)
class Report:
    """The content of a run's report. Charts are Vega-Lite specifications by name; one without data is missing.
    `demonstrated` is what a search on demonstrations adds, its charts excepted, which are among the others; `judged`
    are the agents that a judge saw."""

    view: RunView
    title: str
    programs: list[ScoredProgram]
    verdicts: list[str]
    warnings: list[RunWarning]
    lineage: list[LineageStep]
    failures: dict[str, list[Result]]
    costs: list[ModelCost]
    commands: dict[str, str]
    charts: dict[str, dict[str, Any]]
    table: list[dict[str, Any]]
    library: FunctionLibrary
    demonstrated: Demonstrated | None
    judged: Judged

    @property
    def measure(self) -> Measure:
        return self.view.measure

    @property
    def winner(self) -> ScoredProgram | None:
        return next((p for p in self.programs if p.name == WINNER), None)

    @property
    def alignments(self) -> list[tuple[str, str]]:
        """How far the winner and the baselines do the subtasks of the instruction."""
        each = [(p.name, alignment_text(p.alignment)) for p in self.programs]
        return [(name, text) for name, text in each if text]

    @property
    def rates(self) -> str:
        """The alignment rates by a model."""
        return rating_text(self.view.ratings)

    @property
    def rated_lowest(self) -> list[tuple[str, int, str]]:
        """Of each program that was rated the lowest vote, and why."""
        each = [(name, rated.lowest) for name, rated in rated_programs(self.view.ratings).items()]
        return [(name, vote.score, vote.why) for name, vote in each if vote is not None]

    @property
    def source(self) -> str:
        """The winner's program."""
        best = self.view.best
        return without_header(best.candidate.source).rstrip() if best else ""

    @property
    def progress(self) -> str:
        """The state of the run in a sentence."""
        view, spent = self.view, self.view.progress.spent
        budget = view.started.config.get("candidates")
        done = f"{spent.trained} of {budget} candidates" if budget else f"{spent.trained} candidates"
        at = time.strftime("%Y-%m-%d %H:%M", time.localtime(view.last_at))
        how = {
            "running": f"It is still running; this is its state at {at}.",
            "finished": f"It ended on {at}: {view.reason}.",
            "failed": f"It ended on {at}, and failed: {view.reason}.",
            "paused": f"It stopped on {at} and can be resumed: {view.reason}.",
            "stopped": f"No process has worked on it since {at}, and it did not end: it can be resumed.",
        }[view.standing]
        return f"{done} {view.treated}. {how}"

    def number(self, value: float | None, sign: bool = False, measure: Measure | None = None) -> str:
        """A value of a metric, by default that of the search; a dash where there is none."""
        return "–" if value is None else figure(value, sign=sign, rate=(measure or self.measure).rate)


def make_report(view: RunView) -> Report:
    """The report of a run, also of one that is still running."""
    programs, best, library = scored_programs(view), view.best, FunctionLibrary.of(view.results.values())
    demonstrated = Demonstrated.of(view)
    return Report(
        view=view,
        title=task_title(view.started.task, view.started.config.get("task_arg") or ()),
        programs=programs,
        verdicts=verdicts(programs),
        warnings=run_warnings(view, programs),
        lineage=lineage(view.results, best.candidate.id) if best else [],
        failures=failures(view),
        costs=model_costs([*view.exchanges, *(view.best_of_n.exchanges if view.best_of_n else ())]),
        commands=commands(view),
        charts=_charts(view, programs, library) | (demonstrated.charts if demonstrated else {}),
        table=table(list(view.results.values())),
        library=library,
        demonstrated=demonstrated,
        judged=Judged.of(view.path, view.results),
    )


def failures(view: RunView) -> dict[str, list[Result]]:
    """Examples of failures with different messages by stage, the most frequent stage first."""
    found: dict[str, dict[str, Result]] = {stage: {} for stage in view.failures}
    for result in view.results.values():
        if result.failure is not None:
            found[result.failure.stage].setdefault(result.failure.message, result)
    return {stage: list(results.values())[:_EXAMPLES] for stage, results in found.items()}


def commands(view: RunView) -> dict[str, str]:
    """Command lines by their purpose, calls in Python where the task was an object."""
    config, path = view.started.config, view.path
    if "task" in view.started.objects:
        return _calls(view)
    task = ["--task", label_of(view.started.task)]
    for option in config.get("task_arg") or ():
        task += ["--task-arg", option]
    steps = config.get("final_steps") or config.get("steps") or 0
    found = {"Run the same search again": view.started.command}
    if view.standing in ("paused", "stopped"):
        found["Resume it"] = resume_command(view)
    if view.best is not None:
        program = str(path / "best_interface.py")
        found["Train the winner on ten fresh seeds"] = _typed(
            "train", *task, "--interfaces", program, "--seeds", "10", *(["--steps", str(steps)] if steps else []),
            *_learner(view.started.command),
        )  # fmt: skip
        found["Check it, without training"] = _typed("check", *task, "--interfaces", program)
    found["Repeat it from its record, without a model"] = _typed(
        "evolve", "--proposer", "replay", "--recording", str(path)
    )
    return {name: line for name, line in found.items() if line}


def _calls(view: RunView) -> dict[str, str]:
    """What is typed in Python, with the task as `task`."""
    config, path = view.started.config, repr(str(view.path))
    steps = config.get("final_steps") or config.get("steps")
    found = {"Run the same search again": _with_task(view.started.command)}
    if view.best is not None:
        more = f", steps={steps}" if steps else ""
        found["Train the winner on ten fresh seeds"] = (
            f"run = jaxreward.open_run({path}, task=task)\n"
            f"jaxreward.train(task, [run.best.program], run.ppo, seeds=10{more})"
        )
    found["Repeat it from its record, without a model"] = _with_task(
        view.started.command, leave=("name", "proposer"), proposer="'replay'", recording=path, resume="False"
    )
    return found


def _with_task(command: str, leave: Sequence[str] = (), **more: str) -> str:
    """A call of `jaxreward.evolve` with the object `task` in place of its name, without the arguments `leave` and with
    `more`; as it is where it cannot be read."""
    try:
        call = ast.parse(command, mode="eval").body
    except SyntaxError:
        return command
    keywords = call.keywords if isinstance(call, ast.Call) else ()
    kept = [f"{k.arg}={ast.unparse(k.value)}" for k in keywords if k.arg not in ("task", *leave, *more)]
    return f"jaxreward.evolve({', '.join(['task', *kept, *(f'{name}={value}' for name, value in more.items())])})"


def _learner(command: str) -> list[str]:
    """The arguments of a command line for the learner: its preset, its name, and its hyperparameters."""
    try:
        words = shlex.split(command)
    except ValueError:
        return []
    found, taking = [], False
    for word in words:
        if word.startswith("--"):
            taking = word.startswith(("--ppo.", "--sac.")) or word.partition("=")[0] in ("--preset", "--learner")
        if taking:
            found.append(word)
    return found


def _typed(*words: str) -> str:
    return shlex.join(["jaxreward", *words])


# ---- charts


def _charts(view: RunView, programs: Sequence[ScoredProgram], library: FunctionLibrary) -> dict[str, dict[str, Any]]:
    """The charts that have data."""
    measure, trained, feedback = view.measure, view.trained_measure, _with_terms(view, programs)
    failed = [{"stage": stage, "count": count} for stage, count in view.failures.items()]
    nodes, edges = forest(view)
    points, best = search_rows(view)
    found = {
        "intervals": (rows := _intervals(programs)) and charts.intervals(rows, trained),
        "curves": (rows := _curves(view, programs)) and charts.curves(trained, rows),
        "search": points and charts.search(points, best, measure, f"{view.treated} candidates"),
        "archive": (rows := size_rows(view)) and charts.archive(cells(view), rows, measure),
        "tree": nodes and charts.tree(nodes, edges, measure),
        "functions": library.shared and charts.functions(function_rows(library), generation_rows(view), measure),
        "uses": (rows := use_rows(library, FUNCTIONS)) and charts.bars(
            rows, "programs", "name", "programs that have it", "functions by the number of programs that have them",
        ),
        "terms": feedback and (rows := term_rows(feedback)) and charts.terms(rows),
        "shares": feedback and (rows := shares(feedback)) and charts.bars(
            rows, "share", "term", "share of the reward", "share of every reward term at the end of training",
            percent=True,
        ),
        "failures": failed and charts.bars(failed, "count", "stage", "candidates", "failed candidates by stage"),
        "time": (rows := period_rows(view)) and charts.time(rows),
    }  # fmt: skip
    return {name: chart for name, chart in found.items() if isinstance(chart, dict)}


def _with_terms(view: RunView, programs: Sequence[ScoredProgram]) -> Feedback | None:
    """The training that shows the best program's reward terms: that of the search, or on fresh seeds where the search
    did not train it."""
    found = view.best.feedback if view.best else None
    if found is None or not found.terms:
        found = next((p.feedback for p in programs if p.name == WINNER and p.feedback is not None), found)
    return found


def _intervals(programs: Sequence[ScoredProgram]) -> list[dict[str, Any]]:
    return [
        {"name": p.name, "mean": p.score.mean, "low": p.interval[0], "high": p.interval[1]}
        for p in programs if p.score and p.interval
    ]  # fmt: skip


def _curves(view: RunView, programs: Sequence[ScoredProgram]) -> list[dict[str, Any]]:
    """Of the winner and the baselines whose training is logged, and of the winner in the search."""
    rows = []
    for p in programs:
        if p.feedback is not None:
            rows += curve(f"{p.name}, fresh seeds" if p.fresh else p.name, p.feedback)
    if view.best is not None and view.best.feedback is not None and view.final is not None:
        rows += curve("winner, seeds of the search", view.best.feedback)
    return rows
