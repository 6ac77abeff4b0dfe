"""The candidates of a run as JSON: rows of a table, and the details of each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from jaxreward.records import Exchange, Feedback, Result
from jaxreward.reports.chart_data import curve, programs, shares, state_of, term_rows
from jaxreward.reports.judged import Judged
from jaxreward.reports.lineage import changes
from jaxreward.reports.tables import interval
from jaxreward.runs.provenance import without_header

Row = dict[str, Any]

_MOST_MESSAGE, _MOST_LINES = 60_000, 1_500
"""Characters of a text, and lines of a difference, that the page keeps."""


def table(results: Sequence[Result]) -> list[Row]:
    """A row for each program, in the order of the requests; absent figures are None."""
    rows: list[Row] = []
    for order, result in enumerate(programs(results)):
        c, summary, score = result.candidate, result.candidate.summary, result.score
        low, high = interval(score) if score else (None, None)
        notices = result.feedback.notices if result.feedback else ()
        rows.append({
            "id": c.id, "order": order, "generation": c.generation, "operator": c.operator, "parents": list(c.parents),
            "state": state_of(result), "score": score.mean if score else None,
            "merit": score.merit if score else None, "low": low, "high": high, "seeds": score.n if score else None,
            "features": summary.observation_size if summary else None,
            "reward_nodes": summary.reward_nodes if summary else None,
            "terms": len(summary.terms) if summary else None,
            "warnings": sorted({n.kind for n in notices}), "steps": result.env_steps, "tokens": c.tokens,
            "cost": c.cost_usd, "model": c.model,
        })  # fmt: skip
    return rows


def details(results: Mapping[str, Result], exchanges: Sequence[Exchange], judged: Judged) -> dict[str, Row]:
    """What the page shows when a candidate is opened, by id."""
    of: dict[str, list[Row]] = {}
    for exchange in exchanges:
        of.setdefault(exchange.request_id, []).append(_exchange(exchange))
    asked = {agent.id: of.get(agent.request, []) for agent in judged.agents}
    return {
        id: _detail(result, results, of.get(id, [])) | judged.detail(id) | {"judging": asked.get(id, [])}
        for id, result in results.items()
    }


def _detail(result: Result, results: Mapping[str, Result], exchanges: list[Row]) -> Row:
    c, summary = result.candidate, result.candidate.summary
    parent = results.get(c.parents[0]) if c.parents else None
    return {
        "thought": _short(c.thought), "words": _short(result.words),
        "plan": c.plan, "repairs": c.repairs, "island": c.island,
        "proposer": c.proposer, "source": _short(without_header(c.source).rstrip()),
        "changes": list(changes(parent, result))[:_MOST_LINES] if parent is not None and c.source else [],
        "failure": {k: _short(v) if isinstance(v, str) else v for k, v in result.failure.model_dump().items()}
        if result.failure else None,
        "summary": None if summary is None else {
            "digest": summary.digest, "operations": summary.operations, "flops": summary.flops,
            "reads": sorted({*summary.observation_reads, *summary.reward_reads}),
        },
        "feedback": feedback(result.feedback) if result.feedback else None,
        "exchanges": exchanges,
    }  # fmt: skip


def feedback(f: Feedback) -> Row:
    """One training: rows for `charts.curves` and `charts.terms`, shares, warnings and the figures at its end."""
    return {
        "curve": curve("this candidate", f),
        "terms": term_rows(f),
        "shares": shares(f),
        "notices": [n.model_dump() for n in f.notices],
        "figures": {
            "correlation of return and metric": f.return_success_correlation,
            "return of episodes that succeed": f.return_solved,
            "return of episodes that fail": f.return_failed,
            "entropy of the policy": f.entropy, "explained variance of the value function": f.value_fit,
            "length of an episode": f.length[-1] if f.length else None,
            "features that never changed": len(f.dead_features), "seeds that diverged": f.diverged,
            **{name.replace("_", " "): value for name, value in f.extra_metrics.items()},
        },
    }  # fmt: skip


def _exchange(e: Exchange) -> Row:
    return {
        "turn": e.turn, "part": e.part, "model": e.model, "reply": _short(e.reply), "error": e.error,
        "finish": e.finish,
        "messages": [{"role": str(m.get("role", "")), "parts": _parts(m.get("content"))} for m in e.messages],
        "prompt_tokens": e.prompt_tokens, "completion_tokens": e.completion_tokens, "cost": e.cost_usd,
        "latency_s": e.latency_s,
    }  # fmt: skip


def _parts(content: Any) -> list[Row]:
    """A message's content, as texts and paths of pictures; of other parts, the type."""
    parts = content if isinstance(content, list | tuple) else [content]
    return [_part(part) for part in parts]


def _part(part: Any) -> Row:
    if not isinstance(part, dict):
        return {"text": _short(str(part))}
    if part.get("type") == "image" and isinstance(part.get("path"), str):
        return {"image": part["path"]}
    return {"text": _short(str(part.get("text", f"[{part.get('type', 'part')}]")))}


def _short(text: str) -> str:
    left = len(text) - _MOST_MESSAGE
    return text if left <= 0 else f"{text[:_MOST_MESSAGE]}\n... and {left:,} more characters, in the run's folder"
