"""A run on disk: its event log, the state folded from it, checkpoints, and what it leaves behind."""

from jaxreward.runs.events import (
    Asked,
    AskedRequest,
    Baseline,
    Checked,
    Event,
    Failed,
    Finished,
    Paused,
    Proposed,
    Repair,
    Resumed,
    RunStarted,
    Told,
    Trained,
    Withdrawn,
)
from jaxreward.runs.fold import Generation, Progress, Spent, advance, fold
from jaxreward.runs.log import Entry, EventLog, read_log
from jaxreward.runs.run import Run
from jaxreward.runs.signals import REQUEUE_EXIT_CODE, StopSignal
from jaxreward.runs.transcripts import TranscriptLog, read_transcript

__all__ = [
    "REQUEUE_EXIT_CODE",
    "Asked",
    "AskedRequest",
    "Baseline",
    "Checked",
    "Entry",
    "Event",
    "EventLog",
    "Failed",
    "Finished",
    "Generation",
    "Paused",
    "Progress",
    "Proposed",
    "Repair",
    "Resumed",
    "Run",
    "RunStarted",
    "Spent",
    "StopSignal",
    "Told",
    "Trained",
    "TranscriptLog",
    "Withdrawn",
    "advance",
    "fold",
    "read_log",
    "read_transcript",
]
