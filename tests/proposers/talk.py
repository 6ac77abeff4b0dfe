"""A run's side of a conversation with a language model, without a run."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from jaxreward.errors import EndCause, ProposerStopped
from jaxreward.proposers.llm.circuit_breaker import Clock
from jaxreward.proposers.llm.llm_proposer import LlmProposer
from jaxreward.proposers.llm.llm_settings import LlmSettings
from jaxreward.proposers.proposer import Answers, Context, Transcript
from jaxreward.records import Exchange, Proposal, Request
from tests.proposers.material import XLAND

KEY = "sk-loopback-0123456789abcdef"
PROGRAM = "def get_observation(state):\n    return state.agent.position"
GOOD = f"Here it is.\n\n```python\n{PROGRAM}\n```\n"
LONG = GOOD.replace("```python\n", "```python\n" + "# a long explanation of what follows\n" * 40)
PRICE = "openai/mine=1,2"


class MemoryTranscript:
    """A transcript that checks that what it gets can be stored."""

    def __init__(self) -> None:
        self.kept: list[Exchange] = []

    def add(self, exchange: Exchange) -> None:
        assert Exchange.model_validate_json(exchange.model_dump_json()) == exchange
        assert exchange.turn == len(self.of(exchange.request_id))
        self.kept.append(exchange)

    def exchanges(self) -> Sequence[Exchange]:
        return tuple(self.kept)

    def of(self, request_id: str) -> Sequence[Exchange]:
        return tuple(e for e in self.kept if e.request_id == request_id)


class Book:
    """Prompts that say which request they are for and draw a number, as real ones do."""

    def messages(self, request: Request, rng: np.random.Generator) -> list[dict[str, str]]:
        return [{"role": "user", "content": f"program for {request.id}, number {rng.integers(1000)}"}]


class Talk:
    """A proposer at a context.

    Args:
        url: of the server.
        transcript: of an earlier talk that this one resumes.
        scale: how fast pauses pass.
        elsewhere: what other searches spent.
        settings: of `LlmSettings`.
    """

    def __init__(
        self,
        url: str | None,
        transcript: Transcript | None = None,
        scale: float = 0.001,
        elsewhere: Sequence[Exchange] = (),
        **settings: Any,
    ):
        given = {"model": ("openai/mine",), "price": (PRICE,), "timeout_s": 10.0, **settings}
        self.transcript = transcript or MemoryTranscript()
        self.notes: list[str] = []
        self.statuses: list[str] = []
        self.prefetched: list[Proposal] = []
        self.stop: Callable[[], bool] = lambda: False
        self.proposer = LlmProposer(XLAND, LlmSettings(api_base=url, **given))
        self.proposer.clock = Clock(scale)
        self.proposer.book = Book()  # type: ignore[assignment]
        self.proposer.open(
            Context(
                Path(),
                transcript=self.transcript,
                shared_exchanges=elsewhere,
                should_stop=lambda: self.stop(),
                note=self.notes.append,
                status=self.statuses.append,
                prefetch=self.prefetched.append,
            )
        )

    def ask(self, *ids: str) -> Answers:
        return self.proposer.propose_all([wanted(id) for id in ids], rng_of)

    def one(self, id: str = "g0000-00") -> Proposal:
        (proposal,) = self.ask(id).proposals
        return proposal

    def stopped(self, *ids: str) -> ProposerStopped:
        stopped = self.ask(*ids).stopped
        assert stopped is not None and stopped.cause is EndCause.ENDPOINT
        return stopped

    @property
    def kept(self) -> Sequence[Exchange]:
        return self.transcript.exchanges()

    @property
    def errors(self) -> list[str]:
        return [e.error for e in self.kept if e.error]


def wanted(id: str) -> Request:
    return Request(id=id, generation=0, operator="scratch", evolve="observation")


def rng_of(request: Request) -> np.random.Generator:
    return np.random.default_rng([ord(c) for c in request.id])


def ids(n: int) -> list[str]:
    return [f"g0000-{i:02d}" for i in range(n)]
