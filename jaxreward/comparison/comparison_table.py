"""A comparison of searches as tables, notes and JSON; each function takes the rows of one task."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from jaxreward.comparison.finished_searches import Row, Search, Sparse
from jaxreward.config import label_of
from jaxreward.formatting import seeds_text
from jaxreward.records import SUCCESS, Measure, Score
from jaxreward.reports.tables import Sheet, figure, interval, interval_over_searches, score_json, task_title

_NONE = "-"


def score_sheet(rows: Sequence[Row], sparse: Sparse | None) -> Sheet:
    """Scores on fresh seeds, differences to best-of-n, and scores as measured by the searches."""
    aligned = any(row.alignment is not None for row in rows)
    columns = ("strategy", "score", "95 % interval", "minus best-of-n", "95 % interval", "search score", "n")
    columns += ("alignment", "95 % interval") if aligned else ()
    rated = any(row.rate is not None for row in rows)
    columns += ("alignment rate", "95 % interval") if rated else ()
    body, rate = [], _measure(rows).rate

    def more(
        aligns: tuple[Score | None, ...], interval_of: Callable[[Score], tuple[float, float] | None] = interval
    ) -> tuple[str, ...]:
        """The columns of the alignment by metrics and of the rate by a model, those that there are."""
        shown = (score for score, there in zip(aligns, (aligned, rated), strict=True) if there)
        each = ((figure(x.mean), _range(interval_of(x), True)) if x is not None else (_NONE, _NONE) for x in shown)
        return tuple(text for pair in each for text in pair)

    for name, row in zip(names(rows), rows, strict=True):
        count = str(len(row.searches)) + (f" of {row.asked}" if len(row.searches) < row.asked else "")
        if row.score is None or row.search_score is None:
            body.append((name, *[_NONE] * 5, count, *more((None, None))))
            continue
        delta = row.versus_best_of_n
        body.append((
            name, figure(row.score.mean, rate=rate), _range(interval_over_searches(row.score), rate),
            figure(delta.mean, sign=True, rate=rate) if delta else _NONE,
            _range(delta.interval if delta else None, rate, sign=True),
            figure(row.search_score.mean, rate=rate), count,
            *more((row.alignment, row.rate), interval_over_searches),
        ))  # fmt: skip
    for name, (score, alignment) in (sparse.rows() if sparse is not None else {}).items():
        rate = score.measure.rate
        body.append((
            name, figure(score.mean, rate=rate), _range(interval(score), rate), *[_NONE] * 4,
            *more((alignment, None)),
        ))  # fmt: skip
    title = f"{_task(rows)}: {_measure(rows).label} of what each search found"
    if config := _config(rows):
        steps = config["final_steps"] or config["steps"]
        title += f", trained again on {seeds_text(config['final_seeds'], 'fresh ')} x {steps:,} steps"
    raters = {search.rated_by for row in rows if row.rate is not None for search in row.searches}
    title += f"; alignment rate by {' and by '.join(sorted(raters))}" if raters else ""
    return Sheet(title + "; means over searches", columns, tuple(body))


def use_sheet(rows: Sequence[Row]) -> Sheet:
    """What the searches used; words and the cost of language models only where there were any."""
    worded, asked = (any(row.used.get(name) for row in rows) for name in ("words", "calls"))
    columns = ["strategy", "trained", "attempts", "failed / duplicate", "million steps", "compile s", "run s"]
    columns += (["words"] if worded else []) + (["tokens", "USD"] if asked else [])
    body = []
    for name, row in zip(names(rows), rows, strict=True):
        used = row.used
        if not used:
            body.append((name, *[_NONE] * (len(columns) - 1)))
            continue
        cells = [
            _number(used["trained"]), _number(used["attempts"]),
            f"{_number(used['failed'])} / {_number(used['duplicate'])}", f"{used['env_steps'] / 1e6:.3g}",
            f"{used['compile_s']:.0f}", f"{used['run_s']:.0f}",
        ]  # fmt: skip
        cells += [_number(used["words"])] if worded else []
        if asked:
            more = "+" if used["unpriced_tokens"] else ""
            cells += [f"{used['tokens']:,.0f}", f"{used['cost_usd']:.4f}{more}"]
        body.append((name, *cells))
    title = f"{_task(rows)}: what one search used, means over searches"
    if config := _config(rows):
        steps = config.get("max_env_steps", 0)
        title += (
            f"; the budget of each is {f'{steps:,} environment steps, or ' if steps else ''}"
            f"{config['candidates']} candidates, {config['generation']} at a time, "
            f"{seeds_text(config['seeds'])} x {config['steps']:,} steps"
        )
    return Sheet(title, tuple(columns), tuple(body))


def notes(rows: Sequence[Row], sparse: Sparse | None) -> list[str]:
    """Notes on the tables: what intervals are over, searches that ended early or without a score."""
    found = ["Intervals are over the n searches of a row" + (
        f", {_own_rows(sparse)} {sparse.seeds} training seeds." if sparse else "."
    )]  # fmt: skip
    worst = _measure(rows).worst
    for name, row in zip(names(rows), rows, strict=True):
        early: dict[str, list[str]] = {}
        for search in row.searches:
            limit = search.config.get("max_env_steps", 0)
            if search.spent.trained < search.budget and not 0 < limit <= search.spent.env_steps:
                early.setdefault(search.reason, []).append(str(search.spent.trained))
        for reason, trained in early.items():
            found.append(
                f"{name}: {len(trained)} of {len(row.searches)} searches ended early, with {', '.join(trained)} "
                f"candidates: {reason}."
            )
        if nothing := sum(search.score is None for search in row.searches):
            text = f"{name}: {nothing} of {len(row.searches)} searches found no score at all"
            found.append(f"{text}, counted as {worst:g}.")
        pairs = row.versus_best_of_n.pairs if row.versus_best_of_n else len(row.searches)
        if pairs < len(row.searches):
            found.append(f"{name}: the difference to best-of-n is over {pairs} of its {len(row.searches)} searches.")
        if row.used.get("unpriced_tokens"):
            found.append(f"{name}: some of its tokens have no known price; the dollars are of the others.")
    return found


def names(rows: Sequence[Row]) -> list[str]:
    """What to call each row: its strategy, and its proposer where there are several."""
    several = len({row.proposer for row in rows}) > 1
    named = [(label_of(row.strategy), label_of(row.proposer)) for row in rows]
    return [", ".join(both) if several else both[0] for both in named]


def _measure(rows: Sequence[Row]) -> Measure:
    """What the scores of these rows, of one task, are."""
    return next((row.measure for row in rows if row.searches), SUCCESS)


def _task(rows: Sequence[Row]) -> str:
    return next((row.title for row in rows if row.searches), task_title(rows[0].task, ()) if rows else "")


def _config(rows: Sequence[Row]) -> dict[str, Any]:
    """The settings of a search of these rows, which share their budget; {} where none has finished."""
    return next((dict(search.config) for row in rows for search in row.searches), {})


def _range(limits: tuple[float, float] | None, rate: bool, sign: bool = False) -> str:
    return _NONE if limits is None else " to ".join(figure(x, sign=sign, rate=rate) for x in limits)


def _number(value: float) -> str:
    """A mean of whole numbers: with a decimal only where it has one."""
    return f"{value:,.0f}" if value == round(value) else f"{value:,.1f}"


# ---- JSON


def row_json(row: Row) -> dict[str, Any]:
    """A row of `comparison.json`."""
    delta = row.versus_best_of_n
    low, high = (delta.interval if delta else None) or (None, None)
    return {
        "task": row.task, "strategy": row.strategy, "proposer": row.proposer,
        "asked": row.asked, "searches": len(row.searches),
        "score": _mean_json(row.score), "search_score": _mean_json(row.search_score),
        **({"alignment": _mean_json(row.alignment)} if row.alignment is not None else {}),
        **({"alignment_rate": _mean_json(row.rate)} if row.rate is not None else {}),
        "minus_best_of_n": {"mean": delta.mean, "low": low, "high": high, "pairs": delta.pairs} if delta else None,
        "used": row.used,
    }  # fmt: skip


def search_json(search: Search) -> dict[str, Any]:
    """A cell of `comparison.json`."""
    return {
        **search.key._asdict(), "path": str(search.path), "finished": search.finished, "reason": search.reason,
        "score": score_json(search.score), "search_score": score_json(search.search_score),
        **({"alignment": score_json(search.alignment)} if search.alignment is not None else {}),
        **({"alignment_rate": score_json(search.rate)} if search.rate is not None else {}),
        "used": search.used, "scores": list(search.scores), "device_s": list(search.device_s),
    }  # fmt: skip


def _mean_json(score: Score | None) -> dict[str, Any] | None:
    if score is None:
        return None
    low, high = interval_over_searches(score) or (None, None)
    return {"mean": score.mean, "se": score.se, "n": score.n, "low": low, "high": high}


def _own_rows(sparse: Sparse) -> str:
    """What the rows without a search are, and over whose seeds."""
    if sparse.dense is None:
        return "that of sparse (the task's own interface, no search) over its"
    return (
        "those of sparse and dense (the task's own observation, with its reward and a person's; no search) over their"
    )
