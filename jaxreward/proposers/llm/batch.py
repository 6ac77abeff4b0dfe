"""Questions to language models sent side by side, until every one is answered or it makes no sense to go on."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from jaxreward.errors import ProposerStopped
from jaxreward.proposers.llm.call_errors import Fault
from jaxreward.proposers.llm.circuit_breaker import Breaker, Clock
from jaxreward.proposers.llm.cost import Amount, Bill, dollars
from jaxreward.proposers.llm.endpoint import Endpoint, Heard, clean, prompt_tokens
from jaxreward.proposers.llm.lane import Asked, Lane, Question
from jaxreward.proposers.llm.secrets import Secrets
from jaxreward.proposers.prompts.prompt_builder import estimate_tokens
from jaxreward.proposers.proposer import Desk
from jaxreward.records import Exchange

# How often the run is asked whether to stop, in seconds of the wall clock.
_LOOK_S = 0.1

# How often a worker without a question looks for one, in seconds.
_IDLE_S = 0.25

# How an exchange ended that gave a prompt up.
_UNANSWERED = "unanswered"

# What to do about refusals of prompts by a model that has answered none yet.
_REFUSALS = {
    "context_window": "use a model with a larger context window, or --prompts with shorter templates",
    "content_filter": "use another --model, or --prompts in other words",
}


@dataclass(frozen=True)
class Office:
    """What questions are asked with: kept from one round to the next."""

    endpoint: Endpoint
    bill: Bill
    desk: Desk
    secrets: Secrets
    clock: Clock


def answered(exchanges: Sequence[Exchange]) -> Exchange | None:
    """The exchange that ends the asking for a request: a reply, or a prompt that was given up."""
    return next((e for e in exchanges if not e.error or e.finish), None)


class Round:
    """Asks a number of questions; every exchange is in the transcript before anything else happens.

    Args:
        total: requests of the generation, those included that need not be asked.
        heard: called with the id of every request that is answered.

    Attributes:
        spent: the budget that did not reach for all of them.
        stopped: why it makes no sense to go on.
    """

    def __init__(
        self, office: Office, questions: Sequence[Question], total: int, heard: Callable[[str], None] = lambda _: None
    ) -> None:
        self.office, self.settings = office, office.endpoint.settings
        self.total, self.done = total, total - len(questions)
        self.heard = heard
        self.lanes: dict[str, Lane] = {}
        self.lost: dict[str, str] = {}
        for number, question in enumerate(questions):
            most = office.bill.most(question.model, prompt_tokens(question.messages))
            self._lane(question.model).fresh.append(Asked(question, number, most))
        self.over = asyncio.Event()
        self.spent = self.shown = ""
        self.stopped: ProposerStopped | None = None

    async def run(self) -> None:
        """Ask until all are answered, a budget is spent, the run is asked to stop, or `stopped` says why not."""
        width = min(self.settings.concurrency, self.waiting)
        workers = [asyncio.create_task(self._work()) for _ in range(width)]
        try:
            pending: set[asyncio.Task[None]] = set(workers)
            while pending and not self.office.desk.should_stop():
                self._show()
                _, pending = await asyncio.wait(pending, timeout=_LOOK_S, return_when=asyncio.FIRST_EXCEPTION)
                for worker in workers:
                    if worker.done():
                        worker.result()  # raises what went wrong
        finally:
            for worker in workers:
                worker.cancel()
            await asyncio.gather(*workers, return_exceptions=True)
        self._show()

    @property
    def waiting(self) -> int:
        return sum(lane.waiting for lane in self.lanes.values())

    async def _work(self) -> None:
        while (found := await self._next()) is not None:
            await self._ask(*found)

    async def _next(self) -> tuple[Asked, Lane, bool] | None:
        """A question, once one may be sent; None where there is none left for this worker."""
        while self.waiting and not self.over.is_set() and not self.spent:
            if (found := self._picked()) is not None:
                return found
            if self._nobody_is_left():
                return self._end(f"{'; '.join(self.lost.values())}; nothing is lost, go on with --resume", later=True)
            await self.office.clock.until(self.over, _IDLE_S)
        return None

    def _picked(self) -> tuple[Asked, Lane, bool] | None:
        """The first question whose endpoint may be called, its money held, and whether it is a probe."""
        ready = [(asked, lane) for lane in self.lanes.values() if (asked := lane.next()) is not None]
        if not ready:
            return None
        asked, lane = min(ready, key=lambda pair: pair[0].number)
        bill = self.office.bill
        if not bill.reserve(asked.most):  # calls in flight may give some back
            return None if bill.held.requests else self._run_out(asked.most)
        return asked, lane, lane.take(asked)

    def _nobody_is_left(self) -> bool:
        """Whether all questions that wait are for endpoints that were waited for in vain."""
        lanes = self.lanes.values()
        return all(lane.breaker.expired for lane in lanes if lane.waiting) and not any(lane.flying for lane in lanes)

    async def _ask(self, asked: Asked, lane: Lane, probe: bool) -> None:
        fault = await self._call(asked, lane, probe)
        lane.flying -= 1
        if fault is not None and fault.kind == "end":
            return self._end(fault.sentence, later=False)
        if fault is None or fault.kind == "prompt":
            self.done += 1
            if fault is None:
                self.heard(asked.question.request_id)
            if fault is None or fault.finish != _UNANSWERED:
                self._works(asked.question, lane.breaker)
            elif probe:
                lane.breaker.leave()
            return None
        if not probe:
            lane.failed(asked)
        alone = asked.failed > self.settings.retries and not lane.others_answered(asked)
        self._broke(asked.question, lane, fault, probe, alone)
        lane.put_back(asked)

    # ---- one call

    async def _call(self, asked: Asked, lane: Lane, probe: bool) -> Fault | None:
        """Call, book, and put the exchange into the transcript; returns what went wrong, if anything did."""
        office, question, began = self.office, asked.question, time.monotonic()
        parameters = office.endpoint.parameters(question.model, question.request_id)
        heard, received = None, []
        # What a call that is cut off leaves behind: it was sent, so it may be charged.
        fault: Fault | None = Fault("again", "cut off, because the run was asked to stop", charged=True)
        try:
            heard = await office.endpoint.call(question.model, question.messages, parameters, received)
            fault = None
        except Fault as error:
            fault = self._judged(asked, lane, error, probe)
        finally:
            exchange = self._exchange(question, parameters, heard, fault, "".join(received), time.monotonic() - began)
            office.desk.transcript.add(exchange)
            office.bill.settle(asked.most, exchange)
        return fault

    def _judged(self, asked: Asked, lane: Lane, fault: Fault, probe: bool) -> Fault:
        """A fault in the light of what became of other questions."""
        model = asked.question.model
        if (
            fault.kind == "again"
            and not probe
            and asked.failed >= self.settings.retries
            and lane.others_answered(asked)
        ):
            attempts = f"{asked.failed + 1} attempt{'s' if asked.failed else ''}"
            fault.kind, fault.finish = "prompt", _UNANSWERED
            fault.sentence = f"this prompt alone got no reply in {attempts}: {fault.sentence}"
        elif fault.finish in _REFUSALS and not self._answers_of(model):
            sentence = fault.sentence.replace(model, self._whom(asked.question), 1)
            fault.kind, fault.sentence = "end", f"{sentence}: {_REFUSALS[fault.finish]}"
            fault.finish = ""
        return fault

    def _answers_of(self, model: str) -> bool:
        return any(e.model == model and not e.error for e in self.office.desk.transcript.exchanges())

    def _exchange(
        self,
        question: Question,
        parameters: dict[str, Any],
        heard: Heard | None,
        fault: Fault | None,
        received: str,
        latency_s: float,
    ) -> Exchange:
        office, prompt = self.office, prompt_tokens(question.messages)
        charged = heard is not None or (fault is not None and fault.charged)
        given, taken, estimated = 0, 0, charged
        if heard is not None:
            given, taken, estimated = heard.tokens(prompt, self.settings.max_tokens)
        elif charged:  # nobody knows what the model wrote: as much as it may have, so that caps hold
            given, taken = prompt, max(self.settings.max_tokens, estimate_tokens(received))
        final = fault is None or fault.kind == "prompt"
        return Exchange(
            request_id=question.request_id,
            turn=len(office.desk.transcript.of(question.request_id)),
            model=question.model,
            parameters={**parameters, "stream": self.settings.stream},
            messages=office.secrets.redact_all(tuple(map(dict, question.messages))) if final else (),
            reply=heard.text if heard else "",
            finish=heard.finish if heard else fault.finish if fault else "",
            error=clean(office.secrets.redact(fault.sentence)) if fault else "",
            prompt_tokens=given,
            completion_tokens=taken,
            estimated=estimated,
            cost_usd=office.bill.cost(question.model, given, taken) if charged else 0.0,
            latency_s=round(latency_s, 3),
        )

    # ---- money and models

    def _run_out(self, most: Amount) -> None:
        """Say once that a call does not fit though nothing is in flight."""
        bill = self.office.bill
        if not self.spent:
            self.spent = bill.lacking(most)
            need = f"{most.tokens:,} tokens" + (f", {dollars(most.usd)}" if most.usd else "")
            self.office.desk.note(f"{self.spent}: {bill.text()} so far, and the next call may need {need}")

    def _lane(self, model: str) -> Lane:
        if model not in self.lanes:
            self.lanes[model] = Lane(Breaker(self.settings.wait_s, self.office.clock), self.settings.concurrency)
        return self.lanes[model]

    # ---- what came of it

    def _works(self, question: Question, breaker: Breaker) -> None:
        down = breaker.succeeded()
        self.lost.pop(question.model, None)
        if down is not None:
            self.office.desk.note(f"{self._whom(question)} answers again after {down:.0f} s")

    def _broke(self, question: Question, lane: Lane, fault: Fault, probe: bool, alone: bool) -> None:
        breaker, whom, wait = lane.breaker, self._whom(question), self.settings.wait_s
        tripped = breaker.failed(probe=probe, after_s=fault.after_s, exhausted=alone)
        if breaker.expired and question.model not in self.lost:
            how_long = f" for {wait:g} s" if wait else ""
            self.lost[question.model] = f"{whom} gave no reply{how_long}: {fault}"
            if any(other.waiting and not other.breaker.expired for other in self.lanes.values()):
                self.office.desk.note(f"{self.lost[question.model]}; other models are asked on")
        elif tripped:
            until = self._left(breaker)
            after = "; after that the run ends and can be resumed" if until else ""
            self.office.desk.note(f"waiting {_until(until)} for {whom}: {fault}{after}")

    def _end(self, sentence: str, *, later: bool) -> None:
        if self.stopped is None:
            self.stopped = ProposerStopped(self.office.secrets.redact(sentence), later=later)
        self.over.set()

    def _whom(self, question: Question) -> str:
        return str(self.office.endpoint.origin(question.model))

    def _left(self, breaker: Breaker) -> str:
        clock = self.office.clock
        return clock.of_day(breaker.since + breaker.wait_s - clock.now())

    def _show(self) -> None:
        text = f"{self.done}/{self.total} replies, {self.office.bill.money()}"
        for model, lane in self.lanes.items():
            if lane.breaker.down and not lane.breaker.expired:
                text += f"; waiting for {model} {_until(self._left(lane.breaker))}"
        if text != self.shown:
            self.office.desk.status(text)
            self.shown = text


def _until(time_of_day: str) -> str:
    return f"until {time_of_day}" if time_of_day else "until it answers"
