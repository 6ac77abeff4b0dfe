"""What is known of one run, on a screen."""

from __future__ import annotations

import os
import shlex
import stat
import textwrap
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from jaxreward.config import is_file, label_of
from jaxreward.formatting import count, dollars, span
from jaxreward.records import Score
from jaxreward.reports.baselines import Gap, gap
from jaxreward.reports.facts import BEST_OF_N, RunFacts
from jaxreward.reports.run_tables import aligned, summary_json, task_of, told_score
from jaxreward.reports.tables import figure, score_json
from jaxreward.reports.timeline import CHECKING, FINAL, PROPOSING, TRAINING, GenerationCourse, Stopwatch, generations

FILES = {
    "best_interface.py": "the best program",
    "report.html": "the report",
    "search.png": "how the search went",
    "profile/account.md": "where the time went",
    "transcripts/exchanges.jsonl": "what was said to and by language models",
    "tensorboard": "for TensorBoard",
    "wandb": "for Weights & Biases",
}
"""What may lie in a run's folder that a person would look at."""

_GENERATIONS = 8
"""Rows of the table of generations, at most; those before are added up."""


def against(facts: RunFacts) -> dict[str, tuple[Score | None, str]]:
    """The baselines by name: the score of each, and in words how the best stands to it."""
    mine = facts.final or (facts.best.score if facts.best else None)
    said: dict[str, tuple[Score | None, str]] = {}
    for name, baseline in facts.rivals.items():
        if baseline.score is None:
            said[name] = None, f"no score: {baseline.failure.message}" if baseline.failure else "no score"
        elif mine is None:
            said[name] = baseline.score, ""
        else:
            said[name] = baseline.score, _compared(gap(mine, baseline.score), rate=mine.measure.rate)
    return said


def _compared(found: Gap, rate: bool) -> str:
    by, low, high = (figure(x, sign=True, rate=rate) for x in (found.mean, found.low, found.high))
    which = "cannot be told from it" if found.verdict == "unclear" else f"is {found.verdict}"
    return f"the best {which}, {by} ({low} to {high})"


def way_on(facts: RunFacts) -> str:
    """What to type to go on with a run, with more candidates (N in all) where it is finished; empty while a process
    works on it."""
    started, path = facts.started, facts.path
    if facts.standing == "running":
        return ""
    if started.command.startswith("jaxreward compare"):
        return "give the command of its comparison again"
    if path.name == BEST_OF_N and (path.parent / "events.jsonl").is_file():
        path = path.parent  # a search inside another run
    out = "" if path.parent == Path("runs") else f" --out {shlex.quote(str(path.parent))}"
    how = "tell" if started.proposer == "manual" else "evolve"
    resume = "" if how == "tell" else " --resume"
    task = f" --task {shlex.quote(label_of(started.task))}" if is_file(started.task) else ""
    command = f"jaxreward {how}{out}{task} --name {shlex.quote(path.name)}{resume}"
    if facts.standing == "finished":
        return f"{command} --candidates N"
    return f"{command} --max-attempts N" if facts.standing == "failed" else command


def run_json(facts: RunFacts) -> dict[str, Any]:
    """The documented object of `jaxreward runs show --json` (docs/commands.md)."""
    best = facts.best
    notices = best.feedback.notices if best and best.feedback else ()
    return {
        **summary_json(facts, facts.name),
        "way_on": way_on(facts),
        "command": facts.started.command,
        "baselines": {
            name: {"score": score_json(score), "verdict": verdict} for name, (score, verdict) in against(facts).items()
        },
        "attempts": facts.progress.spent.attempts,
        "failures": facts.failures,
        "lineage": [{"id": c.id, "operator": c.operator} for c in facts.ancestry],
        "notices": [notice.model_dump() for notice in notices],
        "waiting": list(facts.waiting),
        "generations": [_generation_json(g) for g in generations(facts.entries)],
        "files": {name: str(facts.path / name) for name in FILES if _is_there(facts.path / name)},
    }  # fmt: skip


def _generation_json(g: GenerationCourse) -> dict[str, Any]:
    return {
        "generation": g.index, "complete": g.complete, "trained": g.trained, "failed": g.failed,
        "duplicate": g.duplicate, "best": g.best.mean if g.best else None,
        "best_so_far": g.best_so_far.mean if g.best_so_far else None, "wall_s": g.wall_s, "seconds": dict(g.seconds),
        "compile_s": g.compile_s, "run_s": g.run_s,
    }  # fmt: skip


def run_lines(facts: RunFacts, width: int = 100, now: float | None = None) -> list[str]:
    """A run for people, in lines of at most `width` characters where words allow it."""
    now = time.time() if now is None else now
    s = facts.started
    lines = [
        f"{facts.name}: {task_of(facts)}, {s.strategy} with the {s.proposer} proposer, search seed {s.seed}",
        _standing(facts, now),
        "",
    ]
    for label, text in _paragraphs(facts):
        label = f"{label:<10}"
        lines += textwrap.wrap(
            text, max(40, width), initial_indent=label, subsequent_indent=" " * len(label), break_long_words=False,
            break_on_hyphens=False,
        )  # fmt: skip
    if way := way_on(facts):
        lines.append(f"{'go on':<10}{way}")  # in one piece, to be copied
    return [*lines, *_generation_table(generations(facts.entries))]


def _standing(facts: RunFacts, now: float) -> str:
    ago = f"{span(now - facts.last_at)} ago"
    match facts.standing:
        case "running":
            return f"running; its last event is from {ago}"
        case "stopped":
            return f"stopped {ago} without a word: its process was killed, or the machine went down"
        case standing:
            return f"{standing} {ago}: {facts.reason}"


def _paragraphs(facts: RunFacts) -> Iterator[tuple[str, str]]:
    """Labels with what stands behind them."""
    best, spent, config = facts.best, facts.progress.spent, facts.progress.config
    if best is None or best.score is None:
        yield "best", "no candidate has a score"
    else:
        seeds = f"{best.score.n} seed" + "s" * (best.score.n != 1)
        measure = facts.measure.label
        yield "best", f"{best.candidate.id}, {measure} {told_score(best.score)}, {seeds} of the search"
    if facts.final is not None:
        steps = facts.progress.baselines["best"].steps
        yield "fresh", f"{told_score(facts.final)}, trained again on {facts.final.n} fresh seeds x {steps:,} steps"
    label = "against"
    for name, (score, verdict) in against(facts).items():
        yield label, f"{name} {told_score(score)}" + (f": {verdict}" if verdict else "")
        label = ""
    if facts.ancestry:
        yield "lineage", " <- ".join(f"{c.id} ({c.operator})" for c in facts.ancestry)
    label = "warnings"
    for notice in best.feedback.notices if best and best.feedback else ():
        yield label, f"{notice.kind}: {notice.message}"
        label = ""
    yield "spent", _spent(facts, config)
    if facts.failures:
        yield "failures", ", ".join(f"{number} {stage}" for stage, number in facts.failures.items())
    if facts.waiting:
        yield (
            "in work",
            f"generation {facts.progress.open.index}, {len(facts.waiting)} without a result"
            if facts.progress.open
            else "",
        )
    if spent.calls or facts.cost_usd:
        unpriced = f", {spent.unpriced_tokens:,} of them of unknown price" if spent.unpriced_tokens else ""
        yield "cost", f"{dollars(facts.cost_usd)} for language models, {facts.tokens:,} tokens{unpriced}"
    yield "time", _times(facts)
    yield "files", f"{facts.path}: " + ", ".join(name for name in FILES if _is_there(facts.path / name))


def _spent(facts: RunFacts, config: Mapping[str, Any]) -> str:
    """The budgets, with their limits where there are any."""
    spent, llm = facts.progress.spent, config.get("llm", {})
    device_s = spent.compile_s + spent.run_s
    compiling = f" ({spent.compile_s / device_s:.0%} compiling)" if device_s else ""
    told = [
        _of(spent.trained, config.get("candidates"), str) + " candidates trained",
        _of(spent.attempts, config.get("max_attempts"), str) + " attempts",
        _of(spent.env_steps, config.get("max_env_steps"), count) + " environment steps",
        _of(device_s, config.get("max_device_s"), span) + f" on devices{compiling}",
    ]
    if spent.calls:
        told.append(_of(spent.calls, llm.get("max_requests"), str) + " requests to language models")
        told.append(_of(facts.cost_usd, llm.get("max_usd"), dollars))
    return ", ".join(told)


def _of(used: Any, limit: Any, how: Callable[[Any], str]) -> str:
    return f"{how(used)} of {how(limit)}" if limit else how(used)


def _times(facts: RunFacts) -> str:
    watch = Stopwatch()
    for entry in facts.entries:
        watch.add(entry)
    seconds = dict(watch.seconds)
    if facts.beside is not None and FINAL in seconds:  # the search inside it ends before the final training does
        inner = min(facts.beside.wall_s, seconds[FINAL])
        seconds |= {FINAL: seconds[FINAL] - inner, BEST_OF_N: inner}
    told = sorted(seconds.items(), key=lambda item: item[1], reverse=True)
    return f"{span(facts.wall_s)}: " + ", ".join(f"{span(s)} {name}" for name, s in told if s >= 0.05)


def _generation_table(all_of_them: list[GenerationCourse]) -> list[str]:
    if not all_of_them:
        return []
    early, late = all_of_them[:-_GENERATIONS], all_of_them[-_GENERATIONS:]
    if len(early) == 1:
        early, late = [], all_of_them
    header = (
        "generation",
        "scored",
        "failed",
        "best",
        "so far",
        "wall",
        PROPOSING,
        CHECKING,
        TRAINING,
        "device",
        "compiling",
    )
    rows = [_generation_row([g]) for g in late]
    return ["", *aligned([header, *([_generation_row(early)] if early else []), *rows])]


def _generation_row(of: list[GenerationCourse]) -> tuple[str, ...]:
    """One row for one generation or for several."""
    first, last = of[0], of[-1]
    scores = [g.best for g in of if g.best]
    best = max(scores, key=lambda score: score.merit, default=None)
    device_s = sum(g.compile_s + g.run_s for g in of)
    compiling = f"{sum(g.compile_s for g in of) / device_s:.0%}" if device_s else "-"
    name = f"{first.index}" if first is last else f"{first.index} to {last.index}"
    so_far = last.best_so_far
    return (
        name if last.complete else f"{name} (in work)", str(sum(g.trained for g in of)),
        str(sum(g.failed + g.duplicate for g in of)), *(told_score(s, bare=True) for s in (best, so_far)),
        span(sum(g.wall_s for g in of)),
        *(span(sum(g.seconds.get(name, 0.0) for g in of)) for name in (PROPOSING, CHECKING, TRAINING)),
        span(device_s), compiling,
    )  # fmt: skip


def _is_there(path: Path) -> bool:
    try:
        status = os.lstat(path)
        return stat.S_ISREG(status.st_mode) or (stat.S_ISDIR(status.st_mode) and any(path.iterdir()))
    except OSError:
        return False
