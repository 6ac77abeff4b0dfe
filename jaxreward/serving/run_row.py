"""What the list of runs shows of one run."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote

from jaxreward import files
from jaxreward.formatting import mapped, printable
from jaxreward.reports.run_tables import score_text, summary_json, task_of
from jaxreward.reports.run_view import RunView
from jaxreward.reports.status import doing
from jaxreward.reports.timeline import TrainedCandidate
from jaxreward.runs.events import json_ready
from jaxreward.runs.malformed import explain_malformed

FILM = re.compile(r"film(-[A-Za-z0-9._-]{1,80})?\.(gif|mp4)")
"""Names of films in a run's folder: the winner's, and those of candidates."""

PROGRAM = "best_interface.py"


def run_row(path: Path, name: str) -> dict[str, Any]:
    """The row of a run: the object of `runs list --json`, and

    - `key`: its name in addresses, whatever characters it has;
    - `title`: its task with its options;
    - `score`: the best in the search so far as text, with its interval; `number`: without; `fresh_number`: on fresh
      seeds;
    - `metric`: what that is; `rate`: whether it is a rate;
    - `curve`: pairs of the number of trained candidates and the best score so far;
    - `doing`: its unfinished generation, while a process works on it;
    - `films`: by the name of the file, when it was written; `program`: whether there is one.

    Characters that cannot be seen are escaped.

    Raises:
        UserError: the run cannot be read.
    """
    with explain_malformed(path):
        view = RunView.read(path)
        score = view.best.score if view.best else None
        row = {
            **summary_json(view, name),
            "key": key_of(name),
            "title": task_of(view),
            "score": score_text(score),
            "number": score_text(score, bare=True),
            "fresh_number": score_text(view.final, bare=True),
            "curve": best_so_far(view.timeline.candidates),
            "metric": view.measure.label,
            "rate": view.measure.rate,
            "doing": doing(view.progress.in_work.values()) if view.standing == "running" else "",
            "films": films_in(path),
            "program": files.is_file(path / PROGRAM),
        }
        return mapped(json_ready(row), lambda x: printable(x) if isinstance(x, str) else x)


def key_of(name: str) -> str:
    """A name as one part of an address; `name_of` is its inverse."""
    return quote(name, safe="", errors="surrogateescape")


def name_of(key: str) -> str:
    """The name that a part of an address means."""
    return unquote(key, errors="surrogateescape")


def best_so_far(candidates: Sequence[TrainedCandidate]) -> list[tuple[int, float]]:
    """The corners of the curve of the best score over trained candidates, and its end."""
    found = list[tuple[int, float]]()
    for c in candidates:
        score = c.best.score if c.best else None
        if score is not None and (not found or found[-1][1] != score.mean):
            found.append((c.number, score.mean))
    if found and found[-1][0] < candidates[-1].number:
        found.append((candidates[-1].number, found[-1][1]))
    return found


def films_in(path: Path) -> dict[str, str]:
    """The films in a run's folder, the winner's first: by the name of the file when it was written."""
    names = [entry.name for entry in path.iterdir() if FILM.fullmatch(entry.name) and files.is_file(entry)]
    names.sort(key=lambda name: (name.partition(".")[0], name))
    return {name: f"{(path / name).lstat().st_mtime_ns:x}" for name in names}
