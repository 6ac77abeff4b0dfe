"""TensorBoard: event files in the run's folder, written through tensorboardX."""

from __future__ import annotations

import math
import shutil
import socket
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from jaxreward import files
from jaxreward.reports.run_tables import score_text
from jaxreward.tracking.items import Curve, Item, Program, Scalars, Started

FOLDER, CANDIDATES = "tensorboard", "candidates"


class TensorBoard:
    """Scalars over trained candidates in `tensorboard/search`, learning curves in `tensorboard/candidates/<id>`, each a
    run of TensorBoard's, which draws curves of one name into one chart.

    A process that begins to feed it writes everything anew, so that nothing is there twice or half.
    """

    name = "tensorboard"

    def __init__(self, run: Path) -> None:
        self.folder = run / FOLDER
        self.fed = -1
        files.require_tree(self.folder)  # tensorboardX opens files by itself
        for old in (self.folder / "search", self.folder / CANDIDATES):
            shutil.rmtree(old, ignore_errors=True)
        self._search = _EventFile(self.folder / "search")

    @property
    def where(self) -> str:
        """How to look at it."""
        return f"tensorboard --logdir {self.folder}"

    def remember(self, items: Iterable[Item]) -> None:
        """It keeps nothing from earlier processes."""

    def write(self, seq: int, items: Sequence[Item]) -> None:
        """Write the items of an event; they are in the files when this returns."""
        curves: dict[str, list[Curve]] = {}
        for item in items:
            match item:
                case Started():
                    rows = "\n".join(f"| {name} | {_cell(value)} |" for name, value in item.config.items())
                    text = f"{item.title}\n\n| setting | value |\n|---|---|\n{rows}"
                    self._search.text("settings", text, 0, item.at)
                case Scalars():
                    for name, value in item.values.items():
                        self._search.scalar(name, value, item.step, item.at)
                case Program():
                    code = "\n".join(f"    {line}" for line in item.source.splitlines())
                    text = f"{item.candidate}, {item.score.measure.name} {score_text(item.score)}\n\n{code}"
                    self._search.text("best_program", text, item.step, item.at)
                case Curve():
                    curves.setdefault(item.candidate, []).append(item)
                case _:
                    pass
        for candidate, own in curves.items():
            events = _EventFile(self.folder / CANDIDATES / candidate)
            for curve in own:
                group = curve.name if "/" in curve.name else f"curves/{curve.name}"
                for step, value in zip(curve.steps, curve.values, strict=True):
                    events.scalar(group, value, step, curve.at)
            events.file.close()
        self._search.file.flush()

    def close(self, *, whole: bool = True) -> None:
        """Close the files; they are complete after every event."""
        self._search.file.close()


class _EventFile:
    """An event file. Errors of the disk are raised by the call that meets them: `SummaryWriter` of tensorboardX writes
    in a thread, which dies of them and leaves later calls waiting forever."""

    def __init__(self, folder: Path) -> None:
        from tensorboardX import RecordWriter
        from tensorboardX.proto.event_pb2 import Event  # type: ignore[attr-defined]  # made when it is imported

        folder.mkdir(parents=True, exist_ok=True)
        now = time.time()
        self._event: Any = Event
        self.file = RecordWriter(str(folder / f"events.out.tfevents.{now:.0f}.{socket.gethostname()}"))
        self._write(wall_time=now, file_version="brain.Event:2")

    def scalar(self, tag: str, value: float, step: int, at: float) -> None:
        """Add a value; one that is not finite is left out."""
        from tensorboardX.summary import scalar

        if math.isfinite(value):
            self._write(summary=scalar(tag, value), step=step, wall_time=at)

    def text(self, tag: str, text: str, step: int, at: float) -> None:
        """Add a text in Markdown."""
        from tensorboardX.summary import text as summary_of

        self._write(summary=summary_of(tag, text), step=step, wall_time=at)

    def _write(self, **fields: Any) -> None:
        self.file.write(self._event(**fields).SerializeToString())


def _cell(value: Any) -> str:
    return str(value).replace("|", "\\|").replace("\n", " ")
