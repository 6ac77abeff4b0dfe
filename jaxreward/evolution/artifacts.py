"""`best_interface.py`: the best program of a run, with its provenance."""

from __future__ import annotations

import ast
import shlex
from typing import Any

from jaxreward.evolution.settings import EvolveSettings
from jaxreward.function_source.scopes import bound_in
from jaxreward.function_source.statements import closure, split
from jaxreward.programs.entries import DEBUG
from jaxreward.proposers.replies.source import without
from jaxreward.records import Result, Score
from jaxreward.runs import Progress, Run
from jaxreward.runs.provenance import Provenance, lineage, versions


def save_interface(
    run: Run, settings: EvolveSettings, progress: Progress[Any], best: Result | None, score: Score | None
) -> None:
    """Write `best_interface.py`, with `score`, if there is one, in place of that of the search.

    Of a search on demonstrations it has neither `debug` nor what that alone needs: they have no part in the reward.
    """
    if best is None or best.candidate.summary is None:
        return
    started = progress.started
    provenance = Provenance(
        task=shlex.join((settings.task, *settings.task_arg)),
        digest=best.candidate.summary.digest,
        score=score or best.score,
        lineage=lineage(progress.results, best.candidate.id),
        versions=started.versions if started else versions(),
        command=started.command if started else "",
    )
    source = best.candidate.source
    run.save_best(without_debug(source) if settings.objective == "demonstrations" else source, provenance)


def without_debug(source: str) -> str:
    """A program without its `debug`, and without the functions and constants that this alone reads.

    One that cannot be taken apart is returned as it is.
    """
    try:
        tree, statements = ast.parse(source), split(source)
        debug = closure([DEBUG], statements)
        rest = [s for s in statements if s not in debug]
        kept = {
            name for s in closure([name for s in rest for name in (*s.binds, *s.needs)], statements) for name in s.binds
        }
    except (SyntaxError, ValueError, RecursionError):
        return source
    gone = {name for s in debug if not s.is_import for name in s.binds} - kept
    definitions = (ast.FunctionDef, ast.Assign, ast.AnnAssign)
    return without(source, [n for n in tree.body if isinstance(n, definitions) and _binds(n) and _binds(n) <= gone])


def _binds(node: ast.stmt) -> set[str]:
    return set(bound_in(node))
