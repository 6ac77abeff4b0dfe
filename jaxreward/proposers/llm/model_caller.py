"""What asks language models within a run: their keys, their endpoints, what they may cost."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import TypeVar

from jaxreward.errors import CallProblem, End, InvalidSetting, ProposerStopped
from jaxreward.proposers.llm.batch import Batch, Session, answered
from jaxreward.proposers.llm.call_errors import CallError
from jaxreward.proposers.llm.circuit_breaker import Clock
from jaxreward.proposers.llm.cost import Amount, Cost
from jaxreward.proposers.llm.endpoint import Endpoint
from jaxreward.proposers.llm.event_loop import run_calls
from jaxreward.proposers.llm.llm_settings import ModelSettings
from jaxreward.proposers.llm.model_queue import Call
from jaxreward.proposers.proposer import Context
from jaxreward.records import Failure
from jaxreward.secrets import Secrets
from jaxreward.sentences import mention

_T = TypeVar("_T")


class ModelCaller:
    """Base of what asks language models. All within a run have one transcript, and share the caps of its settings.

    Args:
        settings: which models, how they are asked, and what they may cost.

    Raises:
        UserError: a key in the address, a cap in dollars without a price, or a `.env` that cannot be read.
    """

    def __init__(self, settings: ModelSettings) -> None:
        self.settings = settings
        self.secrets = Secrets(models=settings.weights())
        self._check_address()
        self.cost = Cost(settings)
        self.clock = Clock()
        self._session: Session | None = None
        self._shown: set[tuple[str, str]] = set()

    def prepare(self, note: Callable[[str], None]) -> None:
        """Show where the calls of every model will go; nothing is sent.

        Raises:
            InvalidSetting: there is no key for a model, or a model of no known provider.
        """
        endpoint = guarded_endpoint(self.settings, self.secrets, note, note)
        for model in self.settings.weights():
            try:
                run_calls(endpoint.dry_run(model))
            except CallError as error:
                raise InvalidSetting(self.secrets.redact(str(error)), "model") from error
        self._shown = endpoint.shown

    def open(self, context: Context) -> None:
        """Begin, or go on where the transcript ends.

        Raises:
            UserError: a model of no known provider, or a key in the address.
        """
        endpoint = guarded_endpoint(self.settings, self.secrets, context.note, context.on_endpoint)
        endpoint.shown = self._shown
        self._check_address()
        context = dataclasses.replace(context, note=endpoint.note)
        self._session = Session(endpoint, self.cost, context, self.secrets, self.clock)
        self._count_all()

    @property
    def session(self) -> Session:
        if self._session is None:
            raise RuntimeError("open it with the context of a run before asking it")
        return self._session

    def call_all(self, calls: Sequence[Call], total: int, on_reply: Callable[[str], None] = lambda _: None) -> Batch:
        """Make calls until all are answered or it makes no sense to go on; arguments as for `Batch`."""
        self._count_all()
        batch = Batch(self.session, calls, total, on_reply)
        if calls:
            run_calls(batch.run())
        return batch

    def vote(
        self, request_id: str, part: str, read: Callable[[str, str], _T | Failure]
    ) -> tuple[_T | Failure | None, str]:
        """An answer as far as the transcript has it, and the part to ask for it by, empty where nothing is to be asked:
        it is there, or it is given up after it was asked for once more.

        Args:
            request_id: of the request that it is a part of.
            part: which part.
            read: reads a reply and why it ended.
        """
        found: _T | Failure | None = None
        exchanges = self.session.context.transcript.of(request_id)
        for attempt in (part, f"{part} again"):
            last = answered([e for e in exchanges if e.part == attempt])
            if last is None:
                return found, attempt
            if last.error:
                return Failure(stage="refused", message=last.error), ""
            found = read(last.reply, last.finish)
            if not isinstance(found, Failure):
                return found, ""
        return found, ""

    def call_while_missing(
        self, missing: Callable[[], Sequence[Call]], option: str
    ) -> tuple[End | None, ProposerStopped | None]:
        """Make the calls, with pictures, that `missing` lists until there are none; returns the budget that ran out,
        and why it makes no sense to go on. A model that rejects pictures is named by the `option` that chose it."""
        while calls := missing():
            batch = self.call_all(calls, len(calls))
            stopped = batch.stopped
            if stopped is not None and stopped.problem is CallProblem.REJECTED and any(call.recorded for call in calls):
                why = f"{stopped.why}; the call had pictures: {mention(option)} is to be a model that sees them"
                stopped = ProposerStopped(why, stopped.cause, later=False, problem=stopped.problem)
            if batch.spent or stopped or self.session.context.should_stop():
                return batch.spent, stopped
        return None, None

    def _count_all(self) -> None:
        """Count what the run has spent so far, by whomever."""
        context = self.session.context
        self.cost.spent = Amount.of(context.transcript.exchanges()) + Amount.of(context.shared_exchanges)

    def _check_address(self) -> None:
        address = self.settings.api_base
        if address is not None and self.secrets.redact(address) != address:
            message = f"{mention('api_base')} holds a key: take it out, keys belong into the environment or a .env file"
            raise InvalidSetting(message, "api_base")


def guarded_endpoint(
    settings: ModelSettings, secrets: Secrets, note: Callable[[str], None], on_endpoint: Callable[[str], None]
) -> Endpoint:
    """An endpoint that has the keys of `.env` and shows no key."""
    for sentence in secrets.install():
        note(sentence)

    def redacted(show: Callable[[str], None]) -> Callable[[str], None]:
        return lambda text: show(secrets.redact(text))

    endpoint = Endpoint(settings, redacted(note), secrets.redact, redacted(on_endpoint))
    for model in settings.weights():
        origin = endpoint.origin(model)
        secrets.guard(origin.provider, origin.key)
    return endpoint
