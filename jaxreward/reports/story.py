"""What a report says of a run, before it is a page: the headline, the charts, the tables."""

from __future__ import annotations

import shlex
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from jaxreward.config import label_of
from jaxreward.records import Measure, Result
from jaxreward.reports import charts
from jaxreward.reports.account import ModelBill, Stretch, bills, stretches
from jaxreward.reports.baselines import WINNER, Contender, contenders, verdicts
from jaxreward.reports.details import curve, shares, table, term_rows
from jaxreward.reports.facts import BEST_OF_N, RunFacts
from jaxreward.reports.lineage import cells, forest, placed, programs
from jaxreward.reports.pedigree import Step, pedigree
from jaxreward.reports.tables import figure, task_title
from jaxreward.reports.timeline import CHECKING, FINAL, PROPOSING, REST, TRAINING
from jaxreward.reports.warnings import Doubt, doubts
from jaxreward.runs.provenance import without_header

_EXAMPLES = 3


@dataclass(frozen=True)
class Failures:
    """Candidates that failed at one stage: how many, and examples, each of another message."""

    stage: str
    count: int
    examples: tuple[Result, ...]


@dataclass(frozen=True)
class Story:
    """A run as its report tells it. Charts are Vega-Lite specifications by name; one without data is missing."""

    facts: RunFacts
    title: str
    contenders: list[Contender]
    verdicts: list[str]
    doubts: list[Doubt]
    pedigree: list[Step]
    failures: list[Failures]
    stretches: list[Stretch]
    bills: list[ModelBill]
    commands: dict[str, str]
    charts: dict[str, dict[str, Any]]
    table: list[dict[str, Any]]

    @property
    def measure(self) -> Measure:
        return self.facts.measure

    @property
    def winner(self) -> Contender | None:
        return next((c for c in self.contenders if c.name == WINNER), None)

    @property
    def source(self) -> str:
        """The winner's program."""
        best = self.facts.best
        return without_header(best.candidate.source).rstrip() if best else ""

    @property
    def progress(self) -> str:
        """How the run stands, in a sentence."""
        facts, spent = self.facts, self.facts.progress.spent
        budget = facts.started.config.get("candidates")
        done = f"{spent.trained} of {budget} candidates trained" if budget else f"{spent.trained} candidates trained"
        at = time.strftime("%Y-%m-%d %H:%M", time.localtime(facts.last_at))
        ended = facts.progress.ended
        how = {
            "running": f"It is still running; this is how it stood at {at}.",
            "finished": f"It ended on {at}: {ended.reason if ended else ''}.",
            "failed": f"It ended on {at}, and failed: {ended.reason if ended else ''}.",
            "paused": f"It stopped on {at} and can be resumed: {ended.reason if ended else ''}.",
            "stopped": f"Nobody works on it since {at}, and it did not end: it can be resumed.",
        }[facts.standing]
        return f"{done}. {how}"

    def number(self, value: float | None, sign: bool = False) -> str:
        """A value of the metric; a dash where there is none."""
        return "–" if value is None else figure(value, sign=sign, rate=self.measure.rate)


def story(facts: RunFacts) -> Story:
    """The report of a run, also of one that is going on."""
    found = contenders(facts)
    best = facts.best
    return Story(
        facts=facts,
        title=task_title(facts.started.task, facts.started.config.get("task_arg") or ()),
        contenders=found,
        verdicts=verdicts(found),
        doubts=doubts(facts, found),
        pedigree=pedigree(facts.results, best.candidate.id) if best else [],
        failures=failures(facts),
        stretches=_stretches(facts),
        bills=bills([*facts.exchanges, *(facts.beside.exchanges if facts.beside else ())]),
        commands=commands(facts),
        charts={name: chart for name, chart in _charts(facts, found).items() if chart},
        table=table(list(facts.results.values())),
    )


def failures(facts: RunFacts) -> list[Failures]:
    """What failed, the most frequent stage first, with examples of different messages."""
    lost = [r for r in facts.results.values() if r.failure]
    found = []
    for stage, count in facts.failures.items():
        different = {r.failure.message: r for r in reversed(lost) if r.failure and r.failure.stage == stage}
        found.append(Failures(stage, count, tuple(list(different.values())[::-1][:_EXAMPLES])))
    return found


def commands(facts: RunFacts) -> dict[str, str]:
    """Command lines, by what they are for."""
    config, path = facts.started.config, facts.path
    task = ["--task", label_of(facts.started.task)]
    for option in config.get("task_arg") or ():
        task += ["--task-arg", option]
    steps = config.get("final_steps") or config.get("steps") or 0
    where = ["--out", str(path.parent), "--name", path.name]
    found = {"The same search again": facts.started.command}
    if facts.standing in ("paused", "stopped"):
        found["Go on with it"] = _typed("evolve", *where, "--resume")
    if facts.best is not None:
        program = str(path / "best_interface.py")
        found["Train the winner on ten fresh seeds"] = _typed(
            "train", *task, "--interfaces", program, "--seeds", "10", *(["--steps", str(steps)] if steps else []),
            *_learner(facts.started.command),
        )  # fmt: skip
        found["Check it, without training"] = _typed("check", *task, "--interfaces", program)
    found["Repeat it from its record, without a model"] = _typed(
        "evolve", "--proposer", "replay", "--recording", str(path)
    )
    return {name: line for name, line in found.items() if line}


def _learner(command: str) -> list[str]:
    """What a command line says of the learner: its preset, and --ppo.* with their values."""
    try:
        words = shlex.split(command)
    except ValueError:
        return []
    found, taking = [], False
    for word in words:
        if word.startswith("--"):
            taking = word.startswith("--ppo.") or word.partition("=")[0] == "--preset"
        if taking:
            found.append(word)
    return found


def _typed(*words: str) -> str:
    return shlex.join(["jaxreward", *words])


# ---- charts


def _charts(facts: RunFacts, found: Sequence[Contender]) -> dict[str, dict[str, Any] | None]:
    measure, best = facts.measure, facts.best
    told = best.feedback if best else None
    nodes, edges = forest(facts)
    places, boxes = placed(facts), cells(facts)
    lost = [{"stage": stage, "count": count} for stage, count in facts.failures.items()]
    return {
        "intervals": charts.intervals(_intervals(found), measure) if _intervals(found) else None,
        "curves": charts.curves(measure, lines) if (lines := _curves(facts, found)) else None,
        "course": _course(facts),
        "archive": charts.archive(boxes, places, measure) if places else None,
        "tree": charts.tree(nodes, edges, measure) if nodes else None,
        "terms": charts.terms(rows) if told and (rows := term_rows(told)) else None,
        "shares": charts.bars(shares(told), "share", "term", "share of the reward", "share of every reward "
                              "term at the end of training", percent=True) if told and told.terms else None,
        "failures": charts.bars(lost, "count", "stage", "candidates", "failed candidates by stage") if lost else None,
        "time": charts.time(spent) if (spent := _time(facts)) else None,
    }  # fmt: skip


def _intervals(found: Sequence[Contender]) -> list[dict[str, Any]]:
    return [
        {"name": c.name, "mean": c.score.mean, "low": c.interval[0], "high": c.interval[1]}
        for c in found if c.score and c.interval
    ]  # fmt: skip


def _curves(facts: RunFacts, found: Sequence[Contender]) -> list[dict[str, Any]]:
    """Of all contenders whose training the log holds, and of the winner in the search as well."""
    rows = []
    for c in found:
        if c.feedback is not None:
            rows += curve(f"{c.name}, fresh seeds" if c.fresh else c.name, c.feedback)
    best = facts.best
    if best is not None and best.feedback is not None and facts.final is not None:
        rows += curve("winner, seeds of the search", best.feedback)
    return rows


def _course(facts: RunFacts) -> dict[str, Any] | None:
    points: list[dict[str, Any]] = []
    best: list[dict[str, Any]] = []
    searches = {facts.started.strategy: facts} | ({BEST_OF_N: facts.beside} if facts.beside else {})
    for name, search in searches.items():
        trained = [r for r in programs(search.results.values()) if r.feedback is not None or r.score is not None]
        top: Result | None = None
        for order, result in enumerate(trained, start=1):
            if result.score is None:
                continue
            row = {"search": name, "order": order, "mean": result.score.mean}
            # The other search has ids of the same names, and its candidates do not lie behind this page.
            points.append(
                {**row, "own": search is facts, "id": result.candidate.id, "operator": result.candidate.operator}
            )
            if top is None or top.score is None or result.score.merit > top.score.merit:
                top = result
                best.append(row)
        if top is not None and top.score is not None and trained:
            best.append({"search": name, "order": len(trained), "mean": top.score.mean})
    return charts.course(points, best, facts.measure) if points else None


def _stretches(facts: RunFacts) -> list[Stretch]:
    return stretches(facts.entries, facts.beside.entries if facts.beside else ())


def _time(facts: RunFacts) -> list[dict[str, Any]]:
    order = (PROPOSING, CHECKING, TRAINING, FINAL, REST)
    return [
        {"stretch": s.name, "phase": phase, "seconds": round(s.seconds[phase], 2), "order": rank}
        for s in _stretches(facts) for rank, phase in enumerate(order) if s.seconds.get(phase, 0.0) > 0.005
    ]  # fmt: skip
