"""Questions to language models sent side by side, until every one is answered or it makes no sense to go on."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from jaxreward.errors import ProposerStopped
from jaxreward.proposers.bill import Amount, Bill, dollars
from jaxreward.proposers.breaker import Breaker, Clock, backoff_s
from jaxreward.proposers.endpoint import Endpoint, Heard, Message, clean, prompt_tokens
from jaxreward.proposers.faults import Fault
from jaxreward.proposers.prompt import estimate_tokens
from jaxreward.proposers.proposer import Desk
from jaxreward.proposers.secrets import Secrets
from jaxreward.records import Exchange

# How often the run is asked whether to stop, in seconds of the wall clock.
_LOOK_S = 0.1

# How an exchange ended that gave a prompt up.
_UNANSWERED = "unanswered"


@dataclass(frozen=True)
class Question:
    """What to ask which model, for which request."""

    request_id: str
    model: str
    messages: tuple[Message, ...]


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

    Attributes:
        spent: the budget that did not reach for all of them.
        stopped: why it makes no sense to go on.
    """

    def __init__(self, office: Office, questions: Sequence[Question], total: int) -> None:
        self.office, self.settings = office, office.endpoint.settings
        self.waiting = list(reversed(questions))
        self.total, self.done = total, total - len(questions)
        self.breakers: dict[str, Breaker] = {}
        self.over = asyncio.Event()
        self.spent = self.shown = ""
        self.stopped: ProposerStopped | None = None

    async def run(self) -> None:
        """Ask until all are answered, a budget is spent, the run is asked to stop, or `stopped` says why not."""
        workers = [asyncio.create_task(self._work()) for _ in range(min(self.settings.concurrency, len(self.waiting)))]
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

    async def _work(self) -> None:
        while self.waiting and not self.over.is_set() and not self.spent:
            await self._ask(self.waiting.pop())

    async def _ask(self, question: Question) -> None:
        """Ask one question until it is answered, or given up because it alone fails."""
        clock, breaker = self.office.clock, self._breaker(question.model)
        most = self.office.bill.most(question.model, prompt_tokens(question.messages))
        failed, since, answers = 0, clock.now(), breaker.answers
        while await self._admitted(breaker):
            probe = breaker.down
            if not await self._reserved(most):
                return breaker.leave() if probe else None
            patient = failed <= 2 * self.settings.retries or clock.now() < since + self.settings.wait_s
            fault = await self._call(question, most, last=not patient and self._others_answered(question))
            if fault is None or fault.kind == "prompt":
                self.done += 1
                return (
                    self._works(question, breaker) if fault is None or fault.finish != _UNANSWERED else breaker.leave()
                )
            if fault.kind == "end":
                return self._end(fault.sentence, later=False)
            if not failed:
                since = clock.now()
            failed += 1
            alone = failed > self.settings.retries and breaker.answers == answers
            self._broke(question, breaker, fault, probe, alone)
            if not breaker.down:
                asked = min(fault.after_s or 0.0, self.settings.wait_s)
                await clock.until(self.over, max(backoff_s(question.request_id, failed - 1), asked))

    # ---- one call

    async def _call(self, question: Question, most: Amount, *, last: bool) -> Fault | None:
        """Call, book, and put the exchange into the transcript; returns what went wrong, if anything did."""
        office, began = self.office, time.monotonic()
        parameters = office.endpoint.parameters(question.model, question.request_id)
        heard = None
        # What a call that is cut off leaves behind: it was sent, so it may be charged.
        fault: Fault | None = Fault("again", "cut off, because the run was asked to stop", charged=True)
        try:
            heard = await office.endpoint.call(question.model, question.messages, parameters)
            fault = None
        except Fault as error:
            fault = self._judged(question, error, last)
        finally:
            exchange = self._exchange(question, parameters, heard, fault, time.monotonic() - began)
            office.desk.transcript.add(exchange)
            office.bill.settle(most, exchange)
        return fault

    def _judged(self, question: Question, fault: Fault, last: bool) -> Fault:
        """A fault in the light of what became of other questions."""
        if fault.kind == "again" and last:
            fault.kind, fault.finish = "prompt", _UNANSWERED
            fault.sentence = f"this prompt alone got no reply in {self.settings.wait_s:g} s: {fault.sentence}"
        elif fault.finish == "context_window" and not self._answers_of(question.model):
            fault.kind, fault.finish = "end", ""
            fault.sentence += ": use a model with a larger context window, or --prompts with shorter templates"
        return fault

    def _others_answered(self, question: Question) -> bool:
        """Whether the model answered other requests after this one had used up its retries."""
        exchanges = self.office.desk.transcript.exchanges()
        own = [i for i, e in enumerate(exchanges) if e.request_id == question.request_id]
        later = exchanges[own[self.settings.retries] :] if len(own) > self.settings.retries else ()
        return any(e.model == question.model and not e.error for e in later)

    def _answers_of(self, model: str) -> bool:
        return any(e.model == model and not e.error for e in self.office.desk.transcript.exchanges())

    def _exchange(
        self,
        question: Question,
        parameters: dict[str, Any],
        heard: Heard | None,
        fault: Fault | None,
        latency_s: float,
    ) -> Exchange:
        office, prompt = self.office, prompt_tokens(question.messages)
        text = heard.text if heard else fault.received if fault else ""
        usage = heard.usage if heard else None
        charged = heard is not None or (fault is not None and fault.charged)
        given, taken = usage or ((prompt, estimate_tokens(text)) if charged else (0, 0))
        final = fault is None or fault.kind == "prompt"
        return Exchange(
            request_id=question.request_id,
            turn=len(office.desk.transcript.of(question.request_id)),
            model=question.model,
            parameters={**parameters, "stream": self.settings.stream},
            messages=office.secrets.redact_all(tuple(map(dict, question.messages))) if final else (),
            reply=office.secrets.redact(text) if heard else "",
            finish=heard.finish if heard else fault.finish if fault else "",
            error=clean(office.secrets.redact(fault.sentence)) if fault else "",
            prompt_tokens=given,
            completion_tokens=taken,
            estimated=charged and usage is None,
            cost_usd=office.bill.cost(question.model, given, taken) if charged else 0.0,
            latency_s=round(latency_s, 3),
        )

    # ---- whether to call

    async def _admitted(self, breaker: Breaker) -> bool:
        """Wait until the endpoint may be called; False if the round is over before."""
        while not self.over.is_set():
            if breaker.enter():
                return True
            await self.office.clock.until(self.over, max(breaker.next_probe - self.office.clock.now(), 0.25))
        return False

    async def _reserved(self, most: Amount) -> bool:
        """Hold the money for a call; waits for calls in flight that may give some back."""
        bill = self.office.bill
        while not bill.reserve(most):
            if not bill.held.requests:
                self._run_out(most)
                return False
            await asyncio.sleep(0.02)
            if self.over.is_set():
                return False
        return True

    def _run_out(self, most: Amount) -> None:
        bill = self.office.bill
        if not self.spent:
            self.spent = bill.lacking(most)
            need = f"{most.tokens:,} tokens" + (f", {dollars(most.usd)}" if most.usd else "")
            self.office.desk.note(f"{self.spent}: {bill.text()} so far, and the next call may need {need}")

    def _breaker(self, model: str) -> Breaker:
        return self.breakers.setdefault(model, Breaker(self.settings.wait_s, self.office.clock))

    # ---- what came of it

    def _works(self, question: Question, breaker: Breaker) -> None:
        down = breaker.succeeded()
        if down is not None:
            self.office.desk.note(f"{self._whom(question)} answers again after {down:.0f} s")

    def _broke(self, question: Question, breaker: Breaker, fault: Fault, probe: bool, alone: bool) -> None:
        tripped = breaker.failed(probe=probe, after_s=fault.after_s, exhausted=alone)
        whom, wait = self._whom(question), self.settings.wait_s
        if breaker.expired:
            how_long = f" for {wait:g} s" if wait else ""
            self._end(f"{whom} gave no reply{how_long}: {fault}; nothing is lost, go on with --resume", later=True)
        elif tripped:
            until = f"waiting until {self._left(breaker)} for {whom}"
            self.office.desk.note(f"{until}: {fault}; after that the run ends and can be resumed")

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
        for model, breaker in self.breakers.items():
            text += f"; waiting for {model} until {self._left(breaker)}" if breaker.down else ""
        if text != self.shown:
            self.office.desk.status(text)
            self.shown = text
