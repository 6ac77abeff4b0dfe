"""Weights & Biases, through its own package; `WANDB_MODE=offline` keeps everything in the run's folder."""

from __future__ import annotations

import hashlib
import html
import json
import os
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from jaxreward import files
from jaxreward.config import parse_json
from jaxreward.errors import InvalidSetting
from jaxreward.runs.disk import write_atomic
from jaxreward.sentences import mention
from jaxreward.tracking.items import COLUMNS, Curve, Ended, Item, Line, Program, Scalars, Started

PROJECT = "jaxreward"
"""The project, unless WANDB_PROJECT is set."""

FINISH_S = 60.0
"""Most seconds that the end of a run waits for uploads: a scheduler kills the process after a time."""

STEP = "candidates_trained"

_CURVES = ("candidate", "series", "environment_steps", "value")


def require_key() -> None:
    """Raise an `InvalidSetting` if runs would go to a server and there is no key."""
    wandb = _wandb()
    if wandb.setup().settings.mode != "online" or wandb.login(prompt=False, verify=False):
        return
    raise InvalidSetting(
        f"{mention('track', ['wandb'])} needs a key: run `wandb login`, set WANDB_API_KEY, or keep everything "
        "in the run's "
        "folder with WANDB_MODE=offline",
        "track",
    )


class WeightsAndBiases:
    """The W&B run of a run, one however often it is resumed.

    Rows are numbered in the order of the log, and W&B takes no row twice; the number of the last event that it was
    given is in `wandb/fed.json` in the run's folder. When a run is paused or ends, two tables show all candidates and
    their learning curves.
    """

    name = "wandb"

    def __init__(self, run: Path) -> None:
        self.path = run
        self._marker = run / "wandb" / "fed.json"
        self.fed = -1
        # Links in it are made by W&B, which follows none to write.
        files.require_folder(self._marker.parent)
        with suppress(FileNotFoundError, ValueError, TypeError, KeyError):
            self.fed = int(parse_json(files.read_text(self._marker))["seq"])
        self._run: Any = None
        self._row = 0
        self._started: Started | None = None
        self._lines: list[Line] = []
        self._curves: list[Curve] = []
        self._program: Program | None = None

    @property
    def where(self) -> str:
        """Where to look at it; empty before it has begun, or where WANDB_MODE disables it."""
        if self._run is None or self._run.disabled:
            return ""
        if not self._run.offline:
            return f"Weights & Biases: {self._run.url}"
        return f"Weights & Biases, offline: `wandb sync {Path(self._run.dir).parent}` sends it to the server"

    def remember(self, items: Iterable[Item]) -> None:
        """Items that W&B has: the tables at the end show them too."""
        for item in items:
            self._keep(item)
            self._row += isinstance(item, Scalars | Ended)

    def write(self, seq: int, items: Sequence[Item]) -> None:
        """Give W&B the items of an event."""
        for item in items:
            self._keep(item)
            if isinstance(item, Program):
                self._program = item
            elif isinstance(item, Started):
                self._begin()
            elif isinstance(item, Scalars):
                self._log({STEP: item.step, **item.values, **self._best_program()})
            elif isinstance(item, Ended):
                self._log({STEP: item.step, **self._tables()})
        if items and self._run is not None and not self._run.disabled:
            self._marker.parent.mkdir(exist_ok=True)
            write_atomic(self._marker, json.dumps({"id": self._run.id, "seq": seq}) + "\n")
        self.fed = seq

    def close(self, *, whole: bool = True) -> None:
        """Wait until W&B has everything."""
        if self._run is not None:
            self._run.finish(exit_code=0 if whole else 1)
            self._run = None

    def _keep(self, item: Item) -> None:
        match item:
            case Started():
                self._started = item
            case Line():
                self._lines.append(item)
            case Curve():
                self._curves.append(item)
            case _:
                pass

    def _begin(self) -> None:
        item = self._started
        if self._run is not None or item is None:
            return
        digest = hashlib.sha256(f"{item.at!r} {item.title}".encode()).hexdigest()
        self._run = _wandb().init(
            project=os.environ.get("WANDB_PROJECT", PROJECT), id=digest[:16], name=self.path.resolve().name,
            notes=item.title, config=item.config, dir=str(self.path), resume="allow",
            # No command line, environment or output is sent: they may hold keys.
            settings=_wandb().Settings(
                console="off", silent=True, save_code=False, disable_code=True, disable_git=True, x_disable_meta=True,
                x_disable_stats=True, finish_timeout=FINISH_S, finish_timeout_raises=True,
            ),
        )  # fmt: skip
        self._run.define_metric(STEP, hidden=True)
        self._run.define_metric("*", step_metric=STEP)

    def _log(self, values: dict[str, Any]) -> None:
        self._begin()  # of a run that began in an earlier process
        self._run.log(values, step=self._row)
        self._row += 1

    def _best_program(self) -> dict[str, Any]:
        if self._program is None:
            return {}
        program, self._program = self._program, None
        title = html.escape(f"{program.candidate}, {program.score.mean:.4f}")
        return {"best_program": _wandb().Html(f"<p>{title}</p><pre>{html.escape(program.source)}</pre>", inject=False)}

    def _tables(self) -> dict[str, Any]:
        return {
            "candidates": _wandb().Table(columns=list(COLUMNS), data=[list(line.values) for line in self._lines]),
            "learning_curves": _wandb().Table(
                columns=list(_CURVES),
                data=[
                    [c.candidate, c.name, step, value]
                    for c in self._curves
                    for step, value in zip(c.steps, c.values, strict=True)
                ],
            ),
        }


def _wandb() -> Any:
    """The package, which takes a second to import."""
    import wandb  # type: ignore[import-not-found]  # an extra

    return wandb
