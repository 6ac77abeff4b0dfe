"""What of a log two runs must have in common."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from jaxreward.runs import Baseline, Checked, Finished, Proposed, Told, Trained, read_log


def substance(path: Path) -> list[Any]:
    """The events of a run without clocks, and without the marks of having been resumed."""
    kept = []
    for entry in read_log(path / "events.jsonl"):
        event = entry.event
        if isinstance(event, Proposed):
            untimed = event.proposal.model_copy(update={"compile_s": 0.0, "run_s": 0.0})
            event = event.model_copy(update={"proposal": untimed})
        if isinstance(event, Trained | Baseline):
            event = event.model_copy(update={"compile_s": 0.0, "run_s": 0.0})
        if isinstance(event, Proposed | Checked | Trained | Told | Baseline | Finished):
            kept.append(event)
    return kept
