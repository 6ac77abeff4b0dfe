"""Replays a recorded run: every request gets the answer that it got then."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from jaxreward.errors import UserError
from jaxreward.records import Proposal, Request


class ReplayProposer:
    """Recorded proposals by request id.

    Args:
        recording: a mapping from request id to `Proposal`, an events.jsonl, or the folder of a run.

    Raises:
        UserError: here, if the recording cannot be read or holds no proposal; in `propose`, if it
            has no answer to the request.
    """

    name = "replay"

    def __init__(self, recording: Mapping[str, Proposal] | str | Path):
        if isinstance(recording, Mapping):
            self.proposals = dict(recording)
            self.where = "the recording"
        else:
            path = Path(recording)
            path = path / "events.jsonl" if path.is_dir() else path
            self.proposals = {p.request_id: p for p in _recorded(path)}
            self.where = str(path)
        if not self.proposals:
            raise UserError(
                f"{self.where} holds no proposals: give the events.jsonl of a run that has proposed something"
            )

    def propose(self, request: Request, rng: np.random.Generator) -> Proposal:
        try:
            return self.proposals[request.id]
        except KeyError:
            raise UserError(
                f"{self.where} has no answer to request '{request.id}': replay with the strategy, the settings and "
                f"the seed of the recorded run (it answers {len(self.proposals)} requests)"
            ) from None


def _recorded(path: Path) -> Iterator[Proposal]:
    """The proposals in a log, wherever an event carries one; a torn last line is left out."""
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except OSError as error:
        raise UserError(f"cannot read the recording {path}: {error.strerror}") from None
    for number, line in enumerate(lines, 1):
        try:
            event = json.loads(line)
        except ValueError:
            if number == len(lines):
                return
            raise UserError(f"{path}, line {number}, is not JSON: the log is damaged") from None
        yield from _proposals_in(event)


def _proposals_in(value: Any) -> Iterator[Proposal]:
    if isinstance(value, Mapping):
        if "request_id" in value and set(value) <= set(Proposal.model_fields):
            yield Proposal.model_validate(value)
        else:
            for inner in value.values():
                yield from _proposals_in(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _proposals_in(inner)
