"""Replays a recorded run: every request gets the answer that it got then."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from jaxreward import files
from jaxreward.config import Malformed, parse_json
from jaxreward.errors import End, EndCause, FileProblem, ProposerStopped, UnusableFile, UserError, why_unreadable
from jaxreward.proposers.proposer import Answers, Context, Move, Proposer, RngOf
from jaxreward.records import Exchange, Proposal, Request


class ReplayProposer(Proposer):
    """Recorded proposals by request id, with the exchanges that led to them.

    The replay has generations of the recorded sizes, runs out of a budget of its proposer where the
    recorded run did, sends rejected answers back (`accepts_repairs`) if it did, and stops where it stopped.

    Args:
        recording: a mapping from request id to `Proposal`, an events.jsonl, or the folder of a run.

    Raises:
        UserError: here, if the recording cannot be read or holds no proposal; in `propose_all`, if
            it knows nothing of a request.
    """

    name = "replay"

    def __init__(self, recording: Mapping[str, Proposal] | str | Path):
        self.context = Context(folder=Path())
        self.exchanges: list[Exchange] = []
        self.accepts_repairs = False
        self.order: list[Move] = []
        self._sizes: dict[int, int] = {}
        self._asked: set[str] = set()
        self._withdrawn: dict[int, End] = {}
        if isinstance(recording, Mapping):
            self.proposals = dict(recording)
            self.where = "the recording"
        else:
            path = Path(recording)
            path = path / "events.jsonl" if path.is_dir() else path
            self.where = str(path)
            self.proposals: dict[str, Proposal] = {}
            try:
                self._read([record.get("event", record) for record in _lines(path, "the log")])
                self._read_transcript(path.parent / "transcripts" / "exchanges.jsonl")
            except (KeyError, TypeError, AttributeError, ValueError) as error:
                raise UnusableFile(
                    f"{path} or the transcript beside it has a line of another form than a run writes: give the "
                    "events.jsonl of a run as this jaxreward writes it",
                    path,
                    FileProblem.DAMAGED,
                ) from error
        if not self.proposals:
            raise UnusableFile(
                f"{self.where} holds no proposals: give the events.jsonl of a run that has proposed something",
                self.where,
                FileProblem.WRONG_KIND,
            )

    def open(self, context: Context) -> None:
        self.context = context

    def answers(self, id: str) -> bool:
        return id in self.proposals

    def planned(self, generation: int) -> int | None:
        return self._sizes.get(generation)

    def propose_all(self, requests: Sequence[Request], rng_of: RngOf) -> Answers:
        answered = [request for request in requests if request.id in self.proposals]
        missing = [request for request in requests if request.id not in self.proposals]
        spent: End | None = None
        stopped: ProposerStopped | None = None
        for request in missing:
            self._expect(request)
            spent = self._withdrawn.get(request.generation)
            if spent is None:
                text = f"the recording {self.where} ends here: its run stopped before {request.id} was answered"
                stopped = ProposerStopped(text, EndCause.RECORDING, later=False)
        self._repeat(requests)
        return Answers(tuple(self.proposals[request.id] for request in answered), spent=spent, stopped=stopped)

    def _expect(self, request: Request) -> None:
        """A request without an answer must be one that the recorded run did not get to."""
        if request.id in self._asked or (self._sizes and request.generation > max(self._sizes)):
            return
        raise UserError(
            f"{self.where} has no answer to request '{request.id}': replay with the strategy, the settings and "
            f"the seed of the recorded run (it answers {len(self.proposals)} requests)"
        )

    def _repeat(self, requests: Iterable[Request]) -> None:
        """Put what was said for these requests into the transcript, in its order then."""
        # A replay that is resumed has some of it.
        seen = {request.id: len(self.context.transcript.of(request.id)) for request in requests}
        for exchange in self.exchanges:
            if exchange.turn >= seen.get(exchange.request_id, exchange.turn + 1):
                self.context.transcript.add(exchange)

    def _read(self, events: Iterable[Mapping[str, Any]]) -> None:
        generation = 0
        for event in events:
            kind = event.get("type")
            if kind == "asked":
                generation = event.get("generation", 0)
                self._sizes[generation] = len(event["requests"])
                self.order.append(("asked", generation))
            if kind in ("asked", "repair"):
                self._asked |= {request["id"] for request in event["requests"]}
                self.accepts_repairs |= kind == "repair"
            elif kind == "withdrawn":
                cause = event.get("cause")
                end = End(event["reason"], EndCause(cause) if cause else None)
                self._withdrawn[event.get("generation", generation)] = end
            elif kind == "told":
                self.order.append(("told", event.get("generation", 0)))
            elif kind == "proposed":
                proposal = Proposal.model_validate(event["proposal"])
                self.proposals[proposal.request_id] = proposal

    def _read_transcript(self, path: Path) -> None:
        if files.is_there(path):
            for record in _lines(path, "the transcript", below=path.parents[1]):
                self.exchanges.append(Exchange.model_validate({k: v for k, v in record.items() if k != "v"}))


_LARGEST = 4 << 30
"""Bytes of a recording."""


def _lines(path: Path, what: str, below: Path | None = None) -> list[dict[str, Any]]:
    """The JSON objects in a file, one a line; a torn last line is left out."""
    try:
        lines = files.read_text(path, below=below, largest=_LARGEST).removesuffix("\n").split("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise UnusableFile(
            f"cannot read the recording {path} ({why_unreadable(error)}): give the folder of a run or its events.jsonl",
            path,
            FileProblem.MISSING if isinstance(error, FileNotFoundError) else FileProblem.UNREADABLE,
        ) from None
    found = []
    for number, line in enumerate(lines, 1):
        try:
            record = parse_json(line)
        except Malformed as error:
            if number == len(lines):
                break
            message = f"{path}, line {number}, cannot be read ({error}): {what} is damaged"
            raise UnusableFile(message, path, FileProblem.DAMAGED, number) from None
        if isinstance(record, dict):
            found.append(record)
    return found
