"""A run on disk: its event log, the state folded from it, checkpoints, and what it leaves behind."""

# ruff: noqa: F401, these are re-exports

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
from jaxreward.runs.fold import Progress, Spent, advance, fold
from jaxreward.runs.generation import Generation
from jaxreward.runs.log import Entry, EventLog, read_log
from jaxreward.runs.run import Run
from jaxreward.runs.signals import REQUEUE_EXIT_CODE, StopSignal
from jaxreward.runs.transcripts import TranscriptLog, read_transcript
