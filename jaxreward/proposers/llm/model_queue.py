"""The calls of one model: which may be sent now, which back off after a failure, how many are in flight."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

from jaxreward.proposers.llm.circuit_breaker import Breaker, backoff_s
from jaxreward.proposers.llm.cost import Amount
from jaxreward.proposers.llm.endpoint import Message


@dataclass(frozen=True)
class Call:
    """What to send to which model, for which request; `part` says which of several calls for it this is, and `recorded`
    is what the transcript has of the messages, where it is not the same."""

    request_id: str
    model: str
    messages: tuple[Message, ...]
    part: str = ""
    recorded: tuple[Message, ...] | None = None

    @property
    def key(self) -> str:
        """Different for all calls of a run."""
        return f"{self.request_id} {self.part}".rstrip()


@dataclass(eq=False)
class PendingCall:
    """A call and what became of it so far.

    Attributes:
        number: its place in the batch.
        most: the most that it can cost.
        sent: how often it was sent.
        failed: how often it failed, not counting probes of an endpoint that was down.
        answers: what the model had answered before this call was first sent, or, once it failed, until then.
        due: when it may be sent again.
        probe: whether it was last sent as the probe of an endpoint that was down.
    """

    call: Call
    number: int
    most: Amount
    sent: int = 0
    failed: int = 0
    answers: int = 0
    due: float = 0.0
    probe: bool = False


class ModelQueue:
    """The calls of one model.

    Args:
        breaker: of the model's endpoint.
        width: how many may be in flight or back off after a failure; a call that failed keeps its slot while it
            backs off, so that a busy endpoint gets no more calls.
    """

    def __init__(self, breaker: Breaker, width: int) -> None:
        self.breaker, self.width = breaker, width
        self.unsent: deque[PendingCall] = deque()
        self.backing_off: list[PendingCall] = []
        self.in_flight = 0

    @property
    def waiting(self) -> int:
        """Calls that are neither in flight nor answered."""
        return len(self.unsent) + len(self.backing_off)

    def next(self) -> PendingCall | None:
        """The call that may be sent now, if any."""
        breaker = self.breaker
        if not breaker.may_enter():
            return None
        if breaker.down:  # not with a prompt that may fail for reasons of its own, if there is another
            return min([*self.backing_off, *list(self.unsent)[:1]], key=lambda p: (p.sent, p.number), default=None)
        due = [pending for pending in self.backing_off if pending.due <= breaker.clock.now()]
        if due:
            return min(due, key=lambda pending: pending.number)
        return self.unsent[0] if self.unsent and self.in_flight + len(self.backing_off) < self.width else None

    def take(self, pending: PendingCall) -> None:
        """Mark what `next` returned as in flight."""
        if pending in self.backing_off:
            self.backing_off.remove(pending)
        else:
            self.unsent.popleft()
        if not pending.sent:
            pending.answers = self.breaker.answers
        pending.sent += 1
        self.in_flight += 1
        pending.probe = self.breaker.enter()

    def failed(self, pending: PendingCall) -> None:
        """A call failed that was no probe.

        What was answered before the first failure says nothing of the endpoint after it: an outage must not
        give up the calls that were in flight when it began.
        """
        pending.failed += 1
        if pending.failed == 1:
            pending.answers = self.breaker.answers

    def put_back(self, pending: PendingCall) -> None:
        """Send it again after a pause that grows with its failures."""
        pending.due = self.breaker.clock.now() + backoff_s(pending.call.key, max(0, pending.failed - 1))
        self.backing_off.append(pending)

    def others_answered(self, pending: PendingCall) -> bool:
        """Whether the model answered other calls since this one was first sent, or since it failed first."""
        return self.breaker.answers > pending.answers
