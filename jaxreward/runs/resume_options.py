"""The options by which a command finds a run."""

from __future__ import annotations

import shlex
from pathlib import Path

from jaxreward.config import is_file

RUNS = Path("runs")
"""Where commands look for runs unless they are told otherwise."""


def resume_options(path: Path, *, task: str = "", strategy: str = "", proposer: str = "") -> str:
    """The options of `jaxreward evolve` and `tell` by which they find the run in `path`, to be typed into a shell: its
    folder, its name, and the files of its task, strategy and proposer, which are named again since they are executed.
    """
    out = "" if path.parent == RUNS else f"--out {shlex.quote(str(path.parent))} "
    named = {"task": task, "strategy": strategy, "proposer": proposer}
    own = "".join(f"--{option} {shlex.quote(name)} " for option, name in named.items() if is_file(name))
    return f"{out}{own}--name {shlex.quote(path.name)}"
