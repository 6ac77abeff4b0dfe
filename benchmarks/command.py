"""Benchmarks as commands: exit codes for errors, and one file of results."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from jaxreward.errors import UserError
from jaxreward.runs.disk import make_folder, write_atomic


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
