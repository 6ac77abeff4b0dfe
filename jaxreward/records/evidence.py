"""Episodes of an agent as a judge sees them: frames, and what the reward paid between them."""

from __future__ import annotations

import math
from pathlib import Path

from pydantic import Field, model_validator

from jaxreward.records.base import Record

EVIDENCE = "evidence"
"""Folder of a run with a folder for every agent that was filmed."""


class FilmedEpisode(Record):
    """An episode of `length` steps, of which the states after `steps` are shown.

    `paid` has for every reward term a number a frame: what it paid since the frame before. `success` is by the metric
    of the task, and no part of what a judge is told.
    """

    length: int
    success: float
    steps: tuple[int, ...] = Field(min_length=1)
    paid: dict[str, tuple[float, ...]] = {}

    @model_validator(mode="after")
    def _can_be(self) -> FilmedEpisode:
        if any(len(values) != len(self.steps) for values in self.paid.values()):
            raise ValueError("every term has a number for each frame")
        if not all(map(math.isfinite, [self.success, *(x for values in self.paid.values() for x in values)])):
            raise ValueError("what was paid, and success, are finite")
        return self


class Evidence(Record):
    """The episodes of an agent; those of every agent of a run begin alike."""

    episodes: tuple[FilmedEpisode, ...] = Field(min_length=1)


def evidence_folder(run: Path, id: str) -> Path:
    """Where the evidence of a candidate of a run lies."""
    return run / EVIDENCE / id


def index_path(run: Path, id: str) -> Path:
    """The file with a candidate's `Evidence`."""
    return evidence_folder(run, id) / "episodes.json"


def frame_path(run: Path, id: str, episode: int, frame: int) -> Path:
    """The picture of a frame, a JPEG."""
    return evidence_folder(run, id) / f"{episode}-{frame:02d}.jpg"
