"""`--profile`: a page on where the time of every generation went, and a trace of XLA's own."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from pathlib import Path

import jax

from jaxreward import files
from jaxreward.runs.disk import explain_full_disk, make_folder, write_atomic
from jaxreward.training import Progress

PAGE, TRACE = "account.md", "trace"

OUTER = {
    "propose": "propose: ask the proposer",
    "verify": "verify: check programs in the sandbox",
    "write": "write: log, programs, policies",
    "training": "train, see below",
}
DEVICE = {
    "wait": "wait for the compiler",
    "update": "update: collect experience and learn",
    "evaluate": "evaluate: held-out episodes",
    "keep": "write: the state between updates",
}
COMPILER = {"trace": "trace programs to XLA", "compile": "compile"}

_HEAD = """\
# Where the time went

Wall seconds of each generation. A training's are those of all its devices together: what the table leaves over is what
they stood idle for, at the start and where one ended before the others. The compiler's threads work in
parallel with the devices and with each other, so that their seconds are not part of any sum.
"""


class Profile:
    """Writes `account.md` into a folder of a run, a section for each generation, and a trace of XLA's profiler: what
    every device did between two points of the learning curves, the first time that there are two."""

    def __init__(self, folder: Path, devices: int) -> None:
        self.folder, self.devices = folder, devices
        with explain_full_disk(folder):
            files.require_tree(folder)  # the profiler opens files by itself
        page = folder / PAGE
        self._page = files.read_text(page) if files.is_file(page) else _HEAD
        self._lock, self._tracing, self._traced = threading.Lock(), False, False

    def progress(self, progress: Progress) -> None:
        """Begin or end the trace at a point of the learning curves."""
        if progress.phase != "train":
            return
        with self._lock:
            if self._tracing:
                self._end_trace()
            elif not self._traced:
                self._tracing = True
                jax.profiler.start_trace(str(self.folder / TRACE))

    def _end_trace(self) -> None:
        self._tracing, self._traced = False, True
        jax.profiler.stop_trace()

    def close(self) -> None:
        """End the trace, if one has begun."""
        with self._lock:
            if self._tracing:
                self._end_trace()

    def generation(self, name: str, wall_s: float, seconds: Mapping[str, float], counts: Mapping[str, int]) -> None:
        """Write the section of a generation."""
        self.close()  # where the training ended at its first point
        self._page += section(name, wall_s, seconds, counts, self.devices)
        make_folder(self.folder, below=self.folder.parent)
        write_atomic(self.folder / PAGE, self._page, below=self.folder.parent)


def section(name: str, wall_s: float, seconds: Mapping[str, float], counts: Mapping[str, int], devices: int) -> str:
    """The account of a generation as Markdown; `seconds` and `counts` are the clock's."""
    tables = [_table("", OUTER, seconds, counts, wall_s, "all else")]
    if training := seconds.get("training", 0.0) * devices:
        title = f"of {devices} device" + "s" * (devices > 1)
        tables.append(_table(title, DEVICE, seconds, counts, training, "idle"))
        tables.append(_table("of the compiler", COMPILER, seconds, counts))
    return "\n\n".join([f"\n## {name}: {wall_s:.1f} s", *tables]) + "\n"


def _table(
    title: str, parts: Mapping[str, str], seconds: Mapping[str, float], counts: Mapping[str, int], total: float = 0.0,
    rest: str = "",
) -> str:  # fmt: skip
    """A row for each part, and one called `rest` for what the parts leave of `total`, if that is given."""
    rows = [(text, seconds.get(key, 0.0), counts.get(key, 0)) for key, text in parts.items()]
    if total:
        rows.append((rest, max(0.0, total - sum(s for _, s, _ in rows)), 0))
    share = " share |" if total else ""
    lines = [f"| {title} | seconds |{share} times |", "|---|--:|" + ("--:|" if total else "") + "--:|"]
    for text, spent, count in rows:
        part = f" {100 * spent / total:.1f} % |" if total else ""
        lines.append(f"| {text} | {spent:.2f} |{part} {count or ''} |")
    return "\n".join(lines)
