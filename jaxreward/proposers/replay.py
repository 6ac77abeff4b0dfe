"""Replays a recorded run: every request gets the answer that it got then."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from jaxreward.errors import UserError
from jaxreward.proposers.proposer import Answers, Desk, RngOf
from jaxreward.records import Exchange, Proposal, Request


class ReplayProposer:
    """Recorded proposals by request id, with the exchanges that led to them.

    Where the recorded run ran out of a budget of its proposer, so does the replay. Rejected answers
    go back (`mends`) if they did then.

    Args:
        recording: a mapping from request id to `Proposal`, an events.jsonl, or the folder of a run.

    Raises:
        UserError: here, if the recording cannot be read or holds no proposal; in `propose_all`, if
            it has no answer to a request.
    """

    name = "replay"

    def __init__(self, recording: Mapping[str, Proposal] | str | Path):
        self.desk = Desk(folder=Path())
        self.exchanges: list[Exchange] = []
        self.spent = ""
        if isinstance(recording, Mapping):
            self.proposals = dict(recording)
            self.where = "the recording"
        else:
            path = Path(recording)
            path = path / "events.jsonl" if path.is_dir() else path
            events = [record.get("event", record) for record in _lines(path, "the log")]
            self.proposals = {p.request_id: p for event in events for p in _proposals_in(event)}
            self.spent = next((e["reason"] for e in reversed(events) if e.get("type") == "withdrawn"), "")
            self.where = str(path)
            self._read_transcript(path.parent / "transcripts" / "exchanges.jsonl")
        if not self.proposals:
            raise UserError(
                f"{self.where} holds no proposals: give the events.jsonl of a run that has proposed something"
            )
        self.mends = any("-r" in id for id in self.proposals)

    def open(self, desk: Desk) -> None:
        self.desk = desk

    def propose_all(self, requests: Sequence[Request], rng_of: RngOf) -> Answers:
        answered = [r for r in requests if r.id in self.proposals or not self.spent]
        found = tuple(self._answer(request) for request in answered)
        self._repeat({request.id for request in answered})
        return Answers(found, spent=self.spent if len(found) < len(requests) else "")

    def _answer(self, request: Request) -> Proposal:
        if request.id not in self.proposals:
            raise UserError(
                f"{self.where} has no answer to request '{request.id}': replay with the strategy, the settings and "
                f"the seed of the recorded run (it answers {len(self.proposals)} requests)"
            )
        return self.proposals[request.id]

    def _repeat(self, ids: set[str]) -> None:
        """Put what was said for these requests into the transcript, in its order then."""
        seen = {id: len(self.desk.transcript.of(id)) for id in ids}  # a resumed replay has some of it
        for exchange in self.exchanges:
            if exchange.request_id in ids and exchange.turn >= seen[exchange.request_id]:
                self.desk.transcript.add(exchange)

    def _read_transcript(self, path: Path) -> None:
        if not path.exists():
            return
        for record in _lines(path, "the transcript"):
            self.exchanges.append(Exchange.model_validate({k: v for k, v in record.items() if k != "v"}))


def _lines(path: Path, what: str) -> list[dict[str, Any]]:
    """The JSON objects in a file, one a line; a torn last line is left out."""
    try:
        lines = path.read_text(encoding="utf-8").removesuffix("\n").split("\n")
    except OSError as error:
        raise UserError(f"cannot read the recording {path}: {error.strerror}") from None
    found = []
    for number, line in enumerate(lines, 1):
        try:
            record = json.loads(line)
        except ValueError:
            if number == len(lines):
                break
            raise UserError(f"{path}, line {number}, is not JSON: {what} is damaged") from None
        if isinstance(record, dict):
            found.append(record)
    return found


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
