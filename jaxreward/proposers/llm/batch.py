"""Calls of language models, several in flight, until every one is answered or it makes no sense to go on."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from jaxreward.errors import CallProblem, End, EndCause, ProposerStopped
from jaxreward.proposers.llm.call_errors import CallError
from jaxreward.proposers.llm.circuit_breaker import TRIPS, Breaker, Clock
from jaxreward.proposers.llm.cost import Cost, dollars
from jaxreward.proposers.llm.endpoint import Completion, Endpoint, clean, prompt_tokens
from jaxreward.proposers.llm.model_queue import Call, ModelQueue, PendingCall
from jaxreward.proposers.prompts.prompt_builder import estimate_tokens
from jaxreward.proposers.proposer import Context
from jaxreward.records import Exchange
from jaxreward.secrets import Secrets
from jaxreward.sentences import RESUME, Sentence, marked, mention

# Seconds of the wall clock between two looks at whether the run should stop.
_POLL_S = 0.1

# Seconds between two looks of an idle worker for a call that may be sent.
_IDLE_S = 0.25

# The `finish` of an exchange that gave its prompt up.
_UNANSWERED = "unanswered"

# What to do about refusals of prompts by a model that has answered none yet.
_REFUSALS = {
    "context_window": f"use a model with a larger context window, or {mention('prompts')} with shorter templates",
    "content_filter": f"use another {mention('model')}, or {mention('prompts')} in other words",
}


@dataclass(frozen=True)
class Session:
    """What the batches of a run share."""

    endpoint: Endpoint
    cost: Cost
    context: Context
    secrets: Secrets
    clock: Clock


def answered(exchanges: Sequence[Exchange]) -> Exchange | None:
    """The exchange that settles a request: a reply, or a prompt that was given up."""
    return next((e for e in exchanges if not e.error or e.finish), None)


class Batch:
    """Makes a number of calls; every exchange is in the transcript before anything else happens.

    Args:
        total: replies that are wanted, including those that need no call.
        on_reply: called with the id of every request that got a reply.

    Attributes:
        spent: the budget that ran out.
        stopped: why it makes no sense to go on.
    """

    def __init__(
        self, session: Session, calls: Sequence[Call], total: int, on_reply: Callable[[str], None] = lambda _: None
    ) -> None:
        self.session, self.context, self.cost = session, session.context, session.cost
        self.settings = session.endpoint.settings
        self.total, self.done = total, total - len(calls)
        self.on_reply = on_reply
        self.queues: dict[str, ModelQueue] = {}
        self.lost: dict[str, tuple[str, CallProblem]] = {}
        for number, call in enumerate(calls):
            if call.model not in self.queues:
                breaker = Breaker(self.settings.wait_s, session.clock)
                self.queues[call.model] = ModelQueue(breaker, self.settings.concurrency)
            most = self.cost.at_most(call.model, prompt_tokens(call.messages))
            self.queues[call.model].unsent.append(PendingCall(call, number, most))
        self.failed_before = {call.key: self._failures(call) for call in calls}
        self.over = asyncio.Event()
        self.spent: End | None = None
        self.shown = ""
        self.stopped: ProposerStopped | None = None

    async def run(self) -> None:
        """Run until all calls are answered, a budget is spent, the run should stop, or `stopped` is set."""
        width = min(self.settings.concurrency, self.waiting)
        workers = [asyncio.create_task(self._work()) for _ in range(width)]
        try:
            running: set[asyncio.Task[None]] = set(workers)
            while running and not self.context.should_stop():
                self._show()
                _, running = await asyncio.wait(running, timeout=_POLL_S, return_when=asyncio.FIRST_EXCEPTION)
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
        return sum(queue.waiting for queue in self.queues.values())

    async def _work(self) -> None:
        while self.waiting and not self.over.is_set() and not self.spent:
            if (pending := self._next()) is not None:
                await self._process(pending, self.queues[pending.call.model])
            elif self._all_lost():
                sentences, problems = zip(*self.lost.values(), strict=True)
                self._end("; ".join(map(marked, sentences)), problems[0], f"; nothing is lost, go on with {RESUME}")
            else:
                await self.session.clock.until(self.over, _IDLE_S)

    def _next(self) -> PendingCall | None:
        """The first call that may be sent now, its cost reserved."""
        ready = [(pending, queue) for queue in self.queues.values() if (pending := queue.next()) is not None]
        if not ready:
            return None
        pending, queue = min(ready, key=lambda pair: pair[0].number)
        if self.cost.reserve(pending.most):
            queue.take(pending)
            return pending
        if not self.cost.reserved.requests and self.spent is None:  # calls in flight may give some back
            self.spent, most = self.cost.lacking(pending.most), pending.most
            assert self.spent is not None
            need = f"{most.tokens:,} tokens" + (f", {dollars(most.usd)}" if most.usd else "")
            self.context.note(f"{self.spent.reason}: {self.cost.text()} so far, and the next call may need {need}")
        return None

    def _all_lost(self) -> bool:
        """Whether all calls that wait are for endpoints that did not come back within `wait_s`."""
        queues = self.queues.values()
        return all(q.breaker.expired for q in queues if q.waiting) and not any(q.in_flight for q in queues)

    async def _process(self, pending: PendingCall, queue: ModelQueue) -> None:
        error = await self._send(pending, queue)
        queue.in_flight -= 1
        if error is not None and error.kind == "fatal":
            return self._end(error.sentence, error.problem)
        if error is None or error.kind == "skip":
            self.done += 1
            if error is None:
                self.on_reply(pending.call.request_id)
            if error is None or error.finish != _UNANSWERED:
                self._endpoint_works(pending.call, queue.breaker)
            elif pending.probe:
                queue.breaker.leave()
            return None
        if not pending.probe:
            queue.failed(pending)
        self._endpoint_failed(pending, queue, error)
        queue.put_back(pending)

    # ---- one call

    async def _send(self, pending: PendingCall, queue: ModelQueue) -> CallError | None:
        """Send a call, settle its cost, and put the exchange into the transcript; returns the error, if any."""
        endpoint, call, began = self.session.endpoint, pending.call, time.monotonic()
        parameters = endpoint.parameters(call.model, call.key)
        completion, received = None, []
        # Recorded for a call that is cancelled: it was sent, so it may be charged.
        error: CallError | None = CallError("retry", "cut off, because the run was asked to stop", charged=True)
        try:
            completion = await endpoint.call(call.model, call.messages, parameters, received)
            error = None
        except CallError as raised:
            error = self._final(pending, queue, raised)
        finally:
            latency_s = time.monotonic() - began
            exchange = self._exchange(call, parameters, completion, error, "".join(received), latency_s)
            self.context.transcript.add(exchange)
            self.cost.settle(pending.most, exchange)
        return error

    def _final(self, pending: PendingCall, queue: ModelQueue, error: CallError) -> CallError:
        """An error in the light of what became of other calls: it may give the prompt up, or end the run."""
        retried = error.kind == "retry" and not pending.probe and pending.failed >= self.settings.retries
        if error.problem is CallProblem.TIMEOUT and self._always_late(pending.call):
            error.kind, error.finish = "skip", _UNANSWERED
            error.sentence = f"this prompt gets no reply in time, as before the run was resumed: {error.sentence}"
        elif retried and queue.others_answered(pending):
            attempts = f"{pending.failed + 1} attempt{'s' if pending.failed else ''}"
            error.kind, error.finish = "skip", _UNANSWERED
            error.sentence = f"this prompt alone got no reply in {attempts}: {error.sentence}"
        elif error.finish in _REFUSALS and not self._has_answered(pending.call.model):
            sentence = marked(error.sentence).replace(pending.call.model, self._endpoint_name(pending.call), 1)
            error.kind, error.sentence = "fatal", Sentence(f"{sentence}: {_REFUSALS[error.finish]}")
            error.finish = ""
        return error

    def _always_late(self, call: Call) -> bool:
        """Whether a call failed as often as calls are tried before the run was resumed, and its model has answered
        others: alone in its batch, it would stop the run again and again."""
        enough = min(TRIPS, self.settings.retries + 1)
        return self.failed_before[call.key] >= enough and self._has_answered(call.model)

    def _failures(self, call: Call) -> int:
        made = self.context.transcript.of(call.request_id)
        return sum(bool(e.error) and e.part == call.part and e.model == call.model for e in made)

    def _has_answered(self, model: str) -> bool:
        return any(e.model == model and not e.error for e in self.context.transcript.exchanges())

    def _exchange(
        self,
        call: Call,
        parameters: dict[str, Any],
        completion: Completion | None,
        error: CallError | None,
        received: str,
        latency_s: float,
    ) -> Exchange:
        secrets, estimate = self.session.secrets, prompt_tokens(call.messages)
        charged = completion is not None or (error is not None and error.charged)
        prompt, written, estimated = 0, 0, charged
        if completion is not None:
            prompt, written, estimated = completion.tokens(estimate, self.settings.max_tokens)
        elif charged:  # unknown: as much as the model may have written, so that caps hold
            prompt, written = estimate, max(self.settings.max_tokens, estimate_tokens(received))
        final = error is None or error.kind == "skip"
        return Exchange(
            request_id=call.request_id,
            turn=len(self.context.transcript.of(call.request_id)),
            part=call.part,
            model=call.model,
            parameters={**parameters, "stream": self.settings.stream},
            messages=secrets.redact_all(tuple(map(dict, call.recorded or call.messages))) if final else (),
            reply=completion.text if completion else "",
            finish=completion.finish if completion else error.finish if error else "",
            error=clean(secrets.redact(error.sentence)) if error else "",
            prompt_tokens=prompt,
            completion_tokens=written,
            estimated=estimated,
            cost_usd=self.cost.usd(call.model, prompt, written) if charged else 0.0,
            latency_s=round(latency_s, 3),
        )

    # ---- the state of an endpoint

    def _endpoint_works(self, call: Call, breaker: Breaker) -> None:
        down = breaker.succeeded()
        self.lost.pop(call.model, None)
        if down is not None:
            self.context.note(f"{self._endpoint_name(call)} answers again after {down:.0f} s")

    def _endpoint_failed(self, pending: PendingCall, queue: ModelQueue, error: CallError) -> None:
        breaker, name, wait = queue.breaker, self._endpoint_name(pending.call), self.settings.wait_s
        exhausted = pending.failed > self.settings.retries and not queue.others_answered(pending)
        tripped = breaker.failed(probe=pending.probe, after_s=error.after_s, exhausted=exhausted)
        if breaker.expired and pending.call.model not in self.lost:
            how_long = f" for {wait:g} s" if wait else ""
            lost = f"{name} gave no reply{how_long}: {error}"
            self.lost[pending.call.model] = lost, error.problem
            if any(other.waiting and not other.breaker.expired for other in self.queues.values()):
                self.context.note(f"{lost}; other models are asked on")
        elif tripped:
            until = self._deadline(breaker)
            after = "; after that the run ends and can be resumed" if until else ""
            self.context.note(f"waiting {_until(until)} for {name}: {error}{after}")

    def _end(self, sentence: str, problem: CallProblem, later: str = "") -> None:
        """End the batch; `later` is what else to say where the same may succeed later."""
        if self.stopped is None:
            why = self.session.secrets.redact(marked(sentence))
            self.stopped = ProposerStopped(
                f"{why}{later}", EndCause.ENDPOINT, later=bool(later), problem=problem, why=why
            )
        self.over.set()

    def _endpoint_name(self, call: Call) -> str:
        return str(self.session.endpoint.origin(call.model))

    def _deadline(self, breaker: Breaker) -> str:
        clock = self.session.clock
        return clock.of_day(breaker.since + breaker.wait_s - clock.now())

    def _show(self) -> None:
        text = f"{self.done}/{self.total} replies, {self.cost.money()}"
        for model, queue in self.queues.items():
            if queue.breaker.down and not queue.breaker.expired:
                text += f"; waiting for {model} {_until(self._deadline(queue.breaker))}"
        if text != self.shown:
            self.context.status(text)
            self.shown = text


def _until(time_of_day: str) -> str:
    return f"until {time_of_day}" if time_of_day else "until it answers"
