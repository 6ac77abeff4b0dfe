"""The output at the end of a command: tables for people, one JSON object for programs."""

from __future__ import annotations

import dataclasses
import math
import shlex
from collections.abc import Sequence
from typing import Any

from rich.console import Console

from jaxreward.commands.options import words_between
from jaxreward.config import label_of
from jaxreward.devices import cores
from jaxreward.errors import EndCause, UserError
from jaxreward.evolution import Outcome
from jaxreward.evolution.presets import quick_learner
from jaxreward.extras import missing
from jaxreward.formatting import seeds_text
from jaxreward.objectives.demonstrations.results import told_apart
from jaxreward.proposers.llm.cost import Amount
from jaxreward.records import Feedback, Result, Score, normalised
from jaxreward.reports.demonstrated import verdict
from jaxreward.reports.plots import search_plot
from jaxreward.reports.run_view import RunView
from jaxreward.reports.tables import alignment_text, measure_of_scores, score_json, score_table, task_title
from jaxreward.reports.timeline import Timeline
from jaxreward.runs import Checked, Entry, Proposed, Trained, read_log, read_transcript
from jaxreward.runs.provenance import VERSIONED, commit, device, versions
from jaxreward.runs.resume_options import resume_options
from jaxreward.runs.transcripts import TRANSCRIPT

_BUDGETS = {
    EndCause.ATTEMPTS: "--max-attempts", EndCause.ENV_STEPS: "--max-env-steps", EndCause.DEVICE_S: "--max-device-s",
    EndCause.USD: "--max-usd", EndCause.TOKENS: "--max-tokens-total", EndCause.REQUESTS: "--max-requests",
}  # fmt: skip
"""What raises the budget that ended a search before all its candidates were trained."""


def show_outcome(outcome: Outcome, console: Console) -> None:
    """The scores, the warnings about the best, and where its program is."""
    s = outcome.settings
    if outcome.best is None:
        console.print(f"no candidate has a score ({outcome.reason}); see {outcome.path / 'events.jsonl'}")
        _show_what_goes_on(outcome, console)
        return
    summary = outcome.best.candidate.summary
    features = {"features": str(summary.observation_size) if summary else ""}
    scores = {name: baseline.score for name, baseline in outcome.baselines.items() if name != "best"}
    feedback = {name: baseline.feedback for name, baseline in outcome.baselines.items()}
    trained = feedback.get("best") or outcome.best.feedback
    more = features | _normalised(outcome, outcome.score) | _aligned(trained)
    rows = [(f"{label_of(s.strategy)} (best)", outcome.score, more)]
    rows += [(name, score, _normalised(outcome, score) | _aligned(feedback[name])) for name, score in scores.items()]
    fresh = "best" in outcome.baselines
    how = (
        f"{seeds_text(s.final_seeds, 'fresh ')} x {s.final_steps or s.steps:,} steps"
        if fresh
        else "seeds of the search"
    )
    task = task_title(s.task, s.task_arg)
    metric = measure_of_scores([outcome.score, *scores.values()]).label
    console.print(score_table(f"{metric} on {task}, {how}", rows))
    if outcome.best.feedback is not None:
        for notice in outcome.best.feedback.notices:
            console.print(f"{notice.kind}: {notice.message}")
    console.print(f"{outcome.reason}; the best interface is {outcome.path / 'best_interface.py'}")
    if s.objective == "demonstrations":
        for line in told_apart(outcome.best):
            console.print(line, soft_wrap=True)
        if known := verdict(RunView.read(outcome.path)):
            console.print(known, soft_wrap=True)
        console.print(f"train on it: {_training_of(outcome)}", soft_wrap=True)
    if not missing("reports"):
        console.print(_drawn(outcome, task))
    _show_what_goes_on(outcome, console)


def _show_what_goes_on(outcome: Outcome, console: Console) -> None:
    """What continues a search that ended before all its candidates were trained."""
    s = outcome.settings
    again = f"jaxreward evolve {resume_options(outcome.path, s, s.store)} --resume"
    if (budget := _BUDGETS.get(outcome.cause) if outcome.cause else None) is not None:
        console.print(f"for more: {again} and a larger {budget}", soft_wrap=True)
    elif outcome.exit_code:
        console.print(f"unfinished: go on with {again}", soft_wrap=True)


def _training_of(outcome: Outcome) -> str:
    """The command that trains on what was recovered, with the learner of the search."""
    s = outcome.settings
    words = ["jaxreward", "train", "--task", s.task, *(word for x in s.task_arg for word in ("--task-arg", x))]
    words += ["--interfaces", str(outcome.path / "best_interface.py")]
    usual = dataclasses.replace(s, ppo=quick_learner(s.task))
    return shlex.join([*words, *words_between(usual, s, "ppo.")])


def _drawn(outcome: Outcome, task: str) -> str:
    """Draw the scores through the search; returns what came of it."""
    picture = outcome.path / "search.png"
    try:
        search_plot(picture, _trained(outcome), title=f"{task}, search seed {outcome.settings.seed}")
        return f"scores through the search: {picture}"
    except UserError as error:  # a failed plot does not lose the result
        return f"the picture of the search was not drawn: {error}"


def rejections(entries: Sequence[Entry]) -> list[str]:
    """A line for each rejected program: the candidate, the stage, the line of its source, the error, a hint."""
    found: list[str] = []
    for event in (entry.event for entry in entries):
        match event:
            case Proposed(proposal=proposal) if proposal.failure is not None:
                found.append(f"{proposal.request_id} is rejected, {proposal.failure}")
            case Checked() if event.verdict.failure is not None:
                found.append(f"{event.request_id} is rejected, {event.verdict.failure}")
            case Checked() if event.duplicate_of is not None:
                how = "its outputs equal those of" if event.by_outputs else "it computes the same as"
                found.append(f"{event.request_id} is not trained, {how} {event.duplicate_of}")
            case Trained(results=results):
                found += [f"{r.candidate.id} has no score, {r.failure}" for r in results if r.failure]
            case _:
                pass
    return found


def human_normalised(outcome: Outcome, score: Score | None) -> float | None:
    """A score on the scale from the sparse baseline to a person's: those of the run where it trained them, else what
    the task knows of them (RF-Agent, Table 1)."""
    if score is None:
        return None
    sparse, human = (b.score if (b := outcome.baselines.get(name)) else None for name in ("sparse", "dense"))
    if sparse is not None and human is not None:
        return normalised(score.merit, sparse.merit, human.merit, error=2.0 * math.hypot(sparse.se, human.se))
    return score.measure.normalised(score.mean)


def _normalised(outcome: Outcome, score: Score | None) -> dict[str, str]:
    """The column of the human-normalised score, where there is one."""
    value = human_normalised(outcome, score)
    return {} if value is None else {"normalised": f"{value:.2f}"}


def _aligned(feedback: Feedback | None) -> dict[str, str]:
    """The column of the alignment, where the task has an instruction."""
    text = alignment_text(feedback.alignment if feedback is not None else None)
    return {"alignment": text} if text else {}


def _trained(outcome: Outcome) -> dict[str, list[Result]]:
    """Trained candidates in order, by search: the run's own, and best-of-n's where it was run."""
    logs = {label_of(outcome.settings.strategy): outcome.path}
    logs.setdefault("best-of-n", outcome.path / "best-of-n")
    trained = {name: Timeline(read_log(path / "events.jsonl")).candidates for name, path in logs.items()}
    return {name: [c.result for c in candidates] for name, candidates in trained.items() if candidates}


def evolve_json(outcome: Outcome) -> dict[str, Any]:
    """The documented object of `jaxreward evolve --json` (docs/commands.md)."""
    s, spent, best = outcome.settings, outcome.progress.spent, outcome.best
    # The transcripts also hold calls without an answer so far.
    searches = (outcome.path, outcome.path / "best-of-n")
    billed = Amount.of(e for path in searches for e in read_transcript(path / "transcripts" / TRANSCRIPT))
    found = None
    if best is not None and best.candidate.summary is not None:
        found = {
            "digest": best.candidate.summary.digest,
            "path": str(outcome.path / "best_interface.py"),
            "score": score_json(outcome.score),
            "human_normalised": human_normalised(outcome, outcome.score),
            "search_score": score_json(best.score),
        }
    return {
        "task": s.task,
        "task_arg": list(s.task_arg),
        "strategy": s.strategy,
        "proposer": s.proposer,
        "best": found,
        "baselines": {n: score_json(b.score) for n, b in outcome.baselines.items() if n != "best"},
        "alignment": {
            n: score_json(b.feedback.alignment)
            for n, b in outcome.baselines.items()
            if b.feedback is not None and b.feedback.alignment is not None
        },
        "results": [_result_json(result) for result in outcome.progress.results.values()],
        "candidates": {"trained": spent.trained, "failed": spent.failed, "duplicate": spent.duplicate},
        "env_steps": spent.env_steps,
        "wall_s": Timeline(read_log(outcome.path / "events.jsonl")).wall_s,
        "compile_s": spent.compile_s,
        "cost_usd": billed.usd,
        "tokens": billed.tokens,
        "reason": outcome.reason,
        "finished": outcome.exit_code == 0,
        **made_on(),
    }


def _result_json(result: Result) -> dict[str, Any]:
    """The outcome of a candidate."""
    feedback = result.feedback
    return {
        "id": result.candidate.id, "operator": result.candidate.operator,
        "score": result.score.mean if result.score else None,
        "failure": result.failure.stage if result.failure else None,
        "beside": dict(feedback.extra_metrics) if feedback else {},
    }  # fmt: skip


def made_on() -> dict[str, Any]:
    """The device, versions and commit that figures were made with."""
    return {"device": device(), "cores": cores(), "versions": versions(*VERSIONED), "commit": commit()}
