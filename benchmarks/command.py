"""Benchmarks as commands: exit codes for errors, and one file of results."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from jaxreward.errors import UserError
from jaxreward.runs.disk import make_folder, write_atomic

ROOT = Path(__file__).resolve().parents[1]


def status_of(name: str, work: Callable[[], Any]) -> int:
    """The exit status of `work`: what it returns if that is a number, 2 after a UserError, 130 when interrupted."""
    try:
        done = work()
        return done if isinstance(done, int) else 0
    except UserError as error:
        print(f"{name}: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print(f"{name}: interrupted", file=sys.stderr)
        return 130


def save(report: Mapping[str, Any], path: Path | None, indent: int | None = 1) -> None:
    """Write the results so far, if they go anywhere."""
    if path is not None:
        make_folder(path.parent)
        write_atomic(path, json.dumps(report, indent=indent) + "\n")


def begun(path: Path | None, how: Mapping[str, Any]) -> dict[str, Any] | None:
    """The results that a file has already, of the settings `how`.

    Raises:
        UserError: they are of other settings.
    """
    if path is None or not path.exists():
        return None
    report = json.loads(path.read_text(encoding="utf-8"))
    if any(report.get(name) != value for name, value in how.items()):
        raise UserError(f"{path} has results of other settings: give another --out")
    return report


def in_a_process(words: Sequence[str], env: Mapping[str, str], limit_s: float) -> dict[str, Any]:
    """The JSON that a Python process prints last, or an `error` that says why there is none."""
    words = [sys.executable, *words]
    try:
        done = subprocess.run(words, cwd=ROOT, env=dict(env), capture_output=True, text=True, timeout=limit_s)
    except subprocess.TimeoutExpired:
        return {"error": f"not done within {limit_s:g} s"}
    if done.returncode < 0:
        return {"error": f"ended by signal {-done.returncode}, as where memory runs out"}
    if done.returncode > 0:
        lines = done.stderr.strip().splitlines() or ["no message"]
        said = [x for x in lines if re.match(r"[\w.]+(Error|Exception|Interrupt)\b", x)]
        return {"error": (said or lines)[-1][:500]}
    return json.loads(done.stdout.splitlines()[-1])


def first_to_go() -> None:
    """Where memory runs out, this process is the one that the system ends."""
    Path("/proc/self/oom_score_adj").write_text("1000")
