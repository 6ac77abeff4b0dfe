"""The questions for one model: which may be sent now, which rest after a failure, how many are in flight."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

from jaxreward.proposers.llm.circuit_breaker import Breaker, backoff_s
from jaxreward.proposers.llm.cost import Amount
from jaxreward.proposers.llm.endpoint import Message


@dataclass(frozen=True)
class Question:
    """What to ask which model, for which request."""

    request_id: str
    model: str
    messages: tuple[Message, ...]


@dataclass(eq=False)
class Asked:
    """A question and what became of it so far.

    Attributes:
        number: its place among the questions of the round.
        most: the most that a call for it can cost.
        calls: how often it was sent.
        failed: calls for it that failed, probes of an endpoint that was down apart.
        answers: what the model had answered before this question was first sent, or once it failed, until then.
        due: when it may be sent again.
    """

    question: Question
    number: int
    most: Amount
    calls: int = 0
    failed: int = 0
    answers: int = 0
    due: float = 0.0


class Lane:
    """The questions for one model.

    Args:
        breaker: of the model's endpoint.
        width: how many may be in flight or rest after a failure; a call that failed keeps its place while it
            rests, so that a busy endpoint is not asked more often for it.
    """

    def __init__(self, breaker: Breaker, width: int) -> None:
        self.breaker, self.width = breaker, width
        self.fresh: deque[Asked] = deque()
        self.resting: list[Asked] = []
        self.flying = 0

    @property
    def waiting(self) -> int:
        """Questions that are not in flight and not answered."""
        return len(self.fresh) + len(self.resting)

    def next(self) -> Asked | None:
        """The question that may be sent now, if any."""
        breaker = self.breaker
        if not breaker.may_enter():
            return None
        if breaker.down:  # not with a prompt that may fail for reasons of its own, if there is another
            return min([*self.resting, *list(self.fresh)[:1]], key=lambda a: (a.calls, a.number), default=None)
        due = [asked for asked in self.resting if asked.due <= breaker.clock.now()]
        if due:
            return min(due, key=lambda asked: asked.number)
        return self.fresh[0] if self.fresh and self.flying + len(self.resting) < self.width else None

    def take(self, asked: Asked) -> bool:
        """Send what `next` returned; whether it is the probe of an endpoint that is down."""
        if asked in self.resting:
            self.resting.remove(asked)
        else:
            self.fresh.popleft()
        if not asked.calls:
            asked.answers = self.breaker.answers
        asked.calls += 1
        self.flying += 1
        return self.breaker.enter()

    def failed(self, asked: Asked) -> None:
        """A call for it failed, which was no probe.

        What was answered before the first failure says nothing of the endpoint after it: an outage must not
        give up those that were in flight when it began.
        """
        asked.failed += 1
        if asked.failed == 1:
            asked.answers = self.breaker.answers

    def put_back(self, asked: Asked) -> None:
        """Ask it again after a pause that grows with its failures."""
        asked.due = self.breaker.clock.now() + backoff_s(asked.question.request_id, max(0, asked.failed - 1))
        self.resting.append(asked)

    def others_answered(self, asked: Asked) -> bool:
        """Whether the model answered other questions since this one was first sent, or since it failed first."""
        return self.breaker.answers > asked.answers
