"""Language models as proposers, through litellm."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from jaxreward.errors import InvalidSetting, UserError
from jaxreward.extras import require
from jaxreward.operators import OF_JUDGES
from jaxreward.proposers.llm.batch import answered
from jaxreward.proposers.llm.call_errors import CallError
from jaxreward.proposers.llm.cost import Amount, Cost
from jaxreward.proposers.llm.endpoint import Endpoint, prompt_tokens
from jaxreward.proposers.llm.event_loop import run_calls
from jaxreward.proposers.llm.llm_settings import ModelSettings
from jaxreward.proposers.llm.model_caller import ModelCaller
from jaxreward.proposers.llm.model_queue import Call
from jaxreward.proposers.prompts.prompt_builder import PromptBook
from jaxreward.proposers.proposer import Answers, Proposer, RngOf
from jaxreward.proposers.replies.answer import proposal_in
from jaxreward.records import Exchange, Failure, Proposal, Request, TaskCard
from jaxreward.secrets import Secrets
from jaxreward.sentences import mention

_EXAMPLE = mention("model", ["anthropic/claude-sonnet-4-5"])
_NO_MODEL = f"say which language model to ask with {mention('model')}, e.g. {_EXAMPLE}"


class LlmProposer(ModelCaller, Proposer):
    """Asks language models for programs and words, several requests concurrently; not for `prefer` or `watch`.

    What a request is answered with depends on its exchanges in the transcript alone; a request that
    has a reply there is not asked again. Prompt and model depend on the request and its generator.

    Args:
        card: the task's words.
        settings: which models, how they are asked, and what they may cost.

    Raises:
        UserError: invalid settings, no model, a key in the address, a cap in dollars without a
            price, a `.env` that cannot be read, or packages that are not installed.
    """

    name = "llm"
    accepts_repairs = True
    reads_data = True

    def __init__(self, card: TaskCard, settings: ModelSettings | None = None) -> None:
        require("llm", "the proposer llm", "proposer")
        settings = settings or ModelSettings()
        settings.check()
        if not settings.model:
            raise InvalidSetting(_NO_MODEL, "model")
        super().__init__(settings)
        self.book = PromptBook(card, settings.prompts)

    def propose_all(self, requests: Sequence[Request], rng_of: RngOf) -> Answers:
        context, transcript = self.session.context, self.session.context.transcript
        unanswered = [r for r in requests if r.operator not in OF_JUDGES and answered(transcript.of(r.id)) is None]
        calls = [self.call_for(request, rng_of(request)) for request in unanswered]
        by_id = {request.id: request for request in unanswered}

        def prefetch(request_id: str) -> None:
            proposal = proposal_of(by_id[request_id], transcript.of(request_id))
            if proposal is not None and proposal.source:
                context.prefetch(proposal)

        batch = self.call_all(calls, len(requests), on_reply=prefetch)
        found = [self._proposal(request, transcript.of(request.id)) for request in requests]
        complete = tuple(proposal for proposal in found if proposal is not None)
        return Answers(complete, spent=batch.spent, stopped=batch.stopped)

    def call_for(self, request: Request, rng: np.random.Generator) -> Call:
        """The call that a request leads to: the model is drawn first, then the prompt.

        A model that the request names is asked, if the settings have it; the prompt does not depend on that.
        """
        weights = self.settings.weights()
        drawn = list(weights)[int(rng.choice(len(weights), p=list(weights.values())))]
        model = request.model if request.model in weights else drawn
        return Call(request.id, model, tuple(self.book.messages(request, rng)))

    def _proposal(self, request: Request, exchanges: Sequence[Exchange]) -> Proposal | None:
        if request.operator not in OF_JUDGES:
            return proposal_of(request, exchanges)
        message = f"a language model has not seen the agents: a judge answers '{request.operator}'"
        return Proposal(request_id=request.id, proposer=self.name, failure=Failure(stage="declined", message=message))


def proposal_of(request: Request, exchanges: Sequence[Exchange]) -> Proposal | None:
    """The proposal that the exchanges for a request amount to; None if they did not lead to one yet."""
    last = answered(exchanges)
    if last is None:
        return None
    spent = Amount.of(exchanges)
    about: dict[str, Any] = {
        "proposer": LlmProposer.name,
        "model": last.model,
        "calls": spent.requests,
        "tokens": spent.tokens,
        "cost_usd": spent.usd,
        "unpriced_tokens": spent.unpriced,
    }
    if last.error:
        return Proposal(request_id=request.id, failure=Failure(stage="refused", message=last.error), **about)
    return proposal_in(request, last.reply, last.finish, **about)


@dataclass(frozen=True)
class Ping:
    """What a tiny request to a model came to; `error` is empty if it was answered.

    `cost_usd` is None where the price is unknown.
    """

    model: str
    latency_s: float = 0.0
    tokens: int = 0
    cost_usd: float | None = None
    text: str = ""
    error: str = ""


def ping(settings: ModelSettings, note: Callable[[str], None] = lambda _: None) -> list[Ping]:
    """Ask every model of the settings for one word, once; `note` shows where, and what in `.env` is ignored.

    Raises:
        UserError: no model, invalid settings, or packages that are not installed.
    """
    require("llm", mention("model"), "model")
    settings.check()
    if not settings.model:
        raise InvalidSetting(_NO_MODEL, "model")
    secrets = Secrets(models=settings.weights())
    for sentence in secrets.install():
        note(sentence)
    endpoint = Endpoint(settings, redact=secrets.redact, on_endpoint=lambda text: note(secrets.redact(text)))
    cost = Cost(dataclasses.replace(settings, max_usd=None))
    return [run_calls(_ping(model, endpoint, cost, secrets)) for model in settings.weights()]


async def _ping(model: str, endpoint: Endpoint, cost: Cost, secrets: Secrets) -> Ping:
    messages = [{"role": "user", "content": "Reply with the word ready."}]
    began = time.monotonic()
    try:
        parameters = endpoint.parameters(model, "ping")
        began = time.monotonic()  # without the import of litellm
        origin = endpoint.origin(model)
        secrets.guard(origin.provider, origin.key)
        completion = await endpoint.call(model, messages, parameters)
    except (CallError, UserError) as error:
        return Ping(model, time.monotonic() - began, error=secrets.redact(str(error)))
    prompt, written, _ = completion.tokens(prompt_tokens(messages), endpoint.settings.max_tokens)
    latency = time.monotonic() - began
    return Ping(
        model, latency, prompt + written, cost.usd(model, prompt, written), secrets.redact(completion.text.strip())
    )
