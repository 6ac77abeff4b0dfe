"""One run as text for a terminal, and as JSON."""

from __future__ import annotations

import os
import stat
import textwrap
import time
from collections.abc import Callable, Iterator
from functools import reduce
from pathlib import Path
from typing import Any

from jaxreward.config import label_of
from jaxreward.formatting import count, dollars, seeds_text, span
from jaxreward.records import Result, Score
from jaxreward.reports.baselines import Gap, gap, scored_programs
from jaxreward.reports.ratings import rating_text
from jaxreward.reports.run_tables import aligned, score_text, summary_json, task_of
from jaxreward.reports.run_view import RunView
from jaxreward.reports.status import named
from jaxreward.reports.tables import alignment_text, figure, score_json
from jaxreward.reports.timeline import BEST_OF_N, CHECKING, FINAL, PROPOSING, TRAINING, Period, better
from jaxreward.reports.warnings import is_about
from jaxreward.reports.watched import seen_text, watched_of
from jaxreward.runs.resume_options import names_copies, resume_options

FILES = {
    "best_interface.py": "the best program",
    "report.html": "the report",
    "search.png": "the scores through the search",
    "profile/account.md": "where the time went",
    "transcripts/exchanges.jsonl": "the calls of language models",
    "tensorboard": "for TensorBoard",
    "wandb": "for Weights & Biases",
}
"""Files of a run for people, where they exist."""

_PHASES = (PROPOSING, CHECKING, TRAINING)
_GENERATIONS = 8
"""Most rows of the table of generations; earlier ones are summed in one row."""


def baseline_verdicts(view: RunView) -> dict[str, tuple[Score | None, str]]:
    """The score of each baseline by name, and how the best compares with it."""
    mine = view.final or (view.best.score if view.best else None)
    found: dict[str, tuple[Score | None, str]] = {}
    for name, baseline in view.baselines.items():
        if baseline.score is None:
            found[name] = None, f"no score: {baseline.failure.message}" if baseline.failure else "no score"
        elif mine is None:
            found[name] = baseline.score, ""
        elif mine.measure.name != baseline.score.measure.name:
            found[name] = (
                baseline.score,
                f"{baseline.score.measure.label}, not to be compared with {mine.measure.label}",
            )
        else:
            found[name] = baseline.score, _compared(gap(mine, baseline.score), rate=mine.measure.rate)
    return found


def _compared(found: Gap, rate: bool) -> str:
    by, low, high = (figure(x, sign=True, rate=rate) for x in (found.mean, found.low, found.high))
    verdict = "no significant difference" if found.verdict == "unclear" else f"the best is {found.verdict}"
    if found.seeds < 2:
        verdict = "no conclusion from a single seed"
    return f"{verdict}, {by} ({low} to {high})"


def resume_command(view: RunView) -> str:
    """The command that resumes a run, with more candidates (N in all) where it is finished; empty while it runs."""
    started, path = view.started, view.path
    if view.standing == "running":
        return ""
    if started.command.startswith("jaxreward compare"):
        return "give the command of its comparison again"
    if path.name == BEST_OF_N and (path.parent / "events.jsonl").is_file():
        path = path.parent  # a search inside another run
    if started.objects:
        return "give its call of jaxreward.evolve again"
    how = "tell" if started.proposer == "manual" else "evolve"
    resume = "" if how == "tell" else " --resume"
    command = f"jaxreward {how} {resume_options(path, started)}{resume}"
    if view.standing == "finished":
        return f"{command} --candidates N"
    return f"{command} --max-attempts N" if view.standing == "failed" else command


def run_json(view: RunView) -> dict[str, Any]:
    """The documented object of `jaxreward runs show --json` (docs/commands.md)."""
    best = view.best
    notices = best.feedback.notices if best and best.feedback else ()
    return {
        **summary_json(view, view.name),
        "way_on": resume_command(view),
        "command": view.started.command,
        "baselines": {
            name: {"score": score_json(score), "verdict": verdict}
            for name, (score, verdict) in baseline_verdicts(view).items()
        },
        "alignment": {
            p.name: score_json(p.alignment) for p in scored_programs(view) if p.alignment is not None
        },
        "alignment_rate": None if view.ratings is None else {
            "model": view.ratings.model,
            "programs": {name: score_json(rated.score) for name, rated in view.ratings.programs.items()},
        },
        "attempts": view.progress.spent.attempts,
        "failures": view.failures,
        "lineage": [{"id": c.id, "operator": c.operator} for c in view.ancestry],
        "notices": [notice.model_dump() for notice in notices],
        "waiting": list(view.waiting),
        "generations": [_generation_json(g) for g in view.timeline.generations],
        "files": {name: str(view.path / name) for name in FILES if _is_there(view.path / name)},
    }  # fmt: skip


def _generation_json(g: Period) -> dict[str, Any]:
    return {
        "generation": g.index, "complete": g.complete, "trained": g.scored, "failed": g.failed,
        "duplicate": g.duplicate, "best": _mean(g.best), "best_so_far": _mean(g.best_so_far), "wall_s": g.wall_s,
        "seconds": g.seconds, "compile_s": g.compile_s, "run_s": g.run_s,
    }  # fmt: skip


def _mean(result: Result | None) -> float | None:
    return result.score.mean if result and result.score else None


def run_lines(view: RunView, width: int = 100, now: float | None = None) -> list[str]:
    """A run as lines of at most `width` characters, longer words excepted."""
    now = time.time() if now is None else now
    s = view.started
    lines = [
        f"{view.name}: {task_of(view)}, {label_of(s.strategy)} with the {label_of(s.proposer)} proposer, "
        f"search seed {s.seed}",
        standing_line(view, now),
        "",
    ]
    for label, text in paragraphs(view):
        label = f"{label:<10}"
        lines += textwrap.wrap(
            text, max(40, width), initial_indent=label, subsequent_indent=" " * len(label), break_long_words=False,
            break_on_hyphens=False,
        )  # fmt: skip
    if way := resume_command(view):
        lines.append(f"{'resume':<10}{way}")  # unwrapped, to be copied
        if not s.objects and names_copies(view.path, s):
            lines.append(f"{'':<10}which executes files that came with the run: look at them first")
    return [*lines, *_generation_table(view.timeline.generations)]


def standing_line(view: RunView, now: float) -> str:
    ago = f"{span(now - view.last_at)} ago"
    match view.standing:
        case "running":
            return f"running; its last event is from {ago}"
        case "stopped":
            return f"stopped {ago} without an end: its process was killed, or the machine went down"
        case standing:
            return f"{standing} {ago}: {view.reason}"


def _alignments(view: RunView) -> str:
    """How far the best and the baselines do the subtasks of the instruction."""
    each = {p.name: alignment_text(p.alignment) for p in scored_programs(view)}
    return "; ".join(f"{name} {text}" for name, text in each.items() if text)


def paragraphs(view: RunView) -> Iterator[tuple[str, str]]:
    """Labels and texts."""
    best, spent = view.best, view.progress.spent
    if best is None or best.score is None:
        yield "best", "no candidate has a score"
    else:
        seeds = f"{best.score.n} seed" + "s" * (best.score.n != 1)
        measure = view.measure.label
        yield "best", f"{best.candidate.id}, {measure} {score_text(best.score)}, {seeds} of the search"
        if (watched := watched_of(best.candidate.id, view.results.values())) is not None:
            yield "seen", seen_text(watched)
    if view.final is not None:
        steps = view.progress.baselines["best"].steps
        yield (
            "fresh",
            f"{score_text(view.final)}, trained again on {seeds_text(view.final.n, 'fresh ')} x {steps:,} steps",
        )
    if alignments := _alignments(view):
        yield "alignment", alignments
    if rates := rating_text(view.ratings):
        yield "rated", f"alignment rate: {rates}"
    for k, (name, (score, verdict)) in enumerate(baseline_verdicts(view).items()):
        yield "" if k else "against", f"{name} {score_text(score)}" + (f": {verdict}" if verdict else "")
    if view.ancestry:
        yield "lineage", " <- ".join(f"{c.id} ({c.operator})" for c in view.ancestry)
    notices = [n for n in (best.feedback.notices if best and best.feedback else ()) if is_about(n, view)]
    for k, notice in enumerate(notices):
        yield "" if k else "warnings", f"{notice.kind}: {notice.message}"
    yield "spent", _spent(view)
    if view.failures:
        yield "failures", ", ".join(f"{number} {stage}" for stage, number in view.failures.items())
    if view.waiting:
        yield "in work", f"{named(view.progress.in_work)}, {len(view.waiting)} without a result"
    if spent.calls or view.cost_usd:
        unpriced = f", {spent.unpriced_tokens:,} of them of unknown price" if spent.unpriced_tokens else ""
        yield "cost", f"{dollars(view.cost_usd)} for language models, {view.tokens:,} tokens{unpriced}"
    yield "time", _times(view)
    yield "files", f"{view.path}: " + ", ".join(name for name in FILES if _is_there(view.path / name))


def _spent(view: RunView) -> str:
    """What was used of each budget."""
    spent, config = view.progress.spent, view.progress.config
    llm = config.get("llm", {})
    device_s = spent.compile_s + spent.run_s
    compiling = f" ({spent.compile_s / device_s:.0%} compiling)" if device_s else ""
    used = [
        _of(spent.trained, config.get("candidates"), str) + f" candidates {view.treated}",
        _of(spent.attempts, config.get("max_attempts"), str) + " attempts",
        _of(spent.env_steps, config.get("max_env_steps"), count) + " environment steps",
        _of(device_s, config.get("max_device_s"), span) + f" on devices{compiling}",
    ]
    if spent.calls:
        used.append(_of(spent.calls, llm.get("max_requests"), str) + " requests to language models")
        used.append(_of(view.cost_usd, llm.get("max_usd"), dollars))
    return ", ".join(used)


def _of(used: Any, limit: Any, how: Callable[[Any], str]) -> str:
    return f"{how(used)} of {how(limit)}" if limit else how(used)


def _times(view: RunView) -> str:
    seconds = dict(view.timeline.seconds)
    if view.best_of_n is not None and FINAL in seconds:  # that search ends before the final training does
        inner = min(view.best_of_n.wall_s, seconds[FINAL])
        seconds |= {FINAL: seconds[FINAL] - inner, BEST_OF_N: inner}
    listed = sorted(seconds.items(), key=lambda item: item[1], reverse=True)
    return f"{span(view.wall_s)}: " + ", ".join(f"{span(s)} {name}" for name, s in listed if s >= 0.05)


def _generation_table(generations: list[Period]) -> list[str]:
    if not generations:
        return []
    early, late = generations[:-_GENERATIONS], generations[-_GENERATIONS:]
    if len(early) == 1:
        early, late = [], generations
    header = ("generation", "scored", "failed", "best", "so far", "wall", *_PHASES, "device", "compiling")
    rows = [_generation_row([g]) for g in late]
    return ["", *aligned([header, *([_generation_row(early)] if early else []), *rows])]


def _generation_row(of: list[Period]) -> tuple[str, ...]:
    """One row for one generation or for several."""
    first, last = of[0], of[-1]
    bests = reduce(better, filter(None, (g.best for g in of)), None), last.best_so_far
    device_s = sum(g.compile_s + g.run_s for g in of)
    timed = any(g.seconds for g in of)  # not where generations overlap
    compiling = f"{sum(g.compile_s for g in of) / device_s:.0%}" if device_s else "-"
    name = f"{first.index}" if first is last else f"{first.index} to {last.index}"
    return (
        name if last.complete else f"{name} (in work)", str(sum(g.scored for g in of)),
        str(sum(g.failed + g.duplicate for g in of)), *(score_text(r.score if r else None, bare=True) for r in bests),
        span(sum(g.wall_s for g in of)) if timed else "-",
        *(span(sum(g.seconds.get(name, 0.0) for g in of)) if timed else "-" for name in _PHASES),
        span(device_s), compiling,
    )  # fmt: skip


def _is_there(path: Path) -> bool:
    try:
        status = os.lstat(path)
        return stat.S_ISREG(status.st_mode) or (stat.S_ISDIR(status.st_mode) and any(path.iterdir()))
    except OSError:
        return False
