"""Which states of an expert's episodes solve the task, by a language model (GRACE, section 4, data cleaning)."""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from jaxreward.demonstrations import Trajectories
from jaxreward.errors import ProposerStopped, UserError
from jaxreward.evolution.repair import REASKS
from jaxreward.evolution.setup import state_arrays, task_card
from jaxreward.objectives.demonstrations.episode_text import episode_text
from jaxreward.objectives.demonstrations.results import FITNESS
from jaxreward.proposers.llm.cost import Estimate, estimate_cost, too_small
from jaxreward.proposers.llm.llm_proposer import LlmProposer
from jaxreward.proposers.llm.llm_settings import LlmSettings
from jaxreward.proposers.prompts.prompt_builder import PromptBook, estimate_tokens
from jaxreward.proposers.prompts.sections import TOTAL
from jaxreward.proposers.proposer import Context
from jaxreward.proposers.replies.schemas import NONE
from jaxreward.records import Candidate, Proposal, Request, Result, TaskCard, Vocabulary
from jaxreward.runs.transcripts import TRANSCRIPT, TranscriptLog
from jaxreward.search.seeding import derive_rng
from jaxreward.sentences import mention
from jaxreward.tasks import Task
from jaxreward.training import PPO

EPISODE = TOTAL - 4_500
"""Tokens of an episode in a prompt, at most; the rest is for the words about the task."""


@dataclass(frozen=True)
class Cleaned:
    """Episodes with the steps that solve the task marked.

    Attributes:
        episodes: those that the model gave an answer for.
        left_out: the numbers of the others, from 0.
        usd: what the answers cost; None where the price is not known.
    """

    episodes: Trajectories
    left_out: tuple[int, ...]
    usd: float | None


class Cleaning:
    """Asks a language model, for each episode, after which steps the task is solved.

    Replies are kept in the folder `kept`, so that the same cleaning, begun again, asks only for what is missing.

    Args:
        episodes: of an expert, which may be noisy.
        llm: the models, and what they may cost.
        task: what the model is told about; without one it sees arrays alone, and no mission.

    Raises:
        UserError: invalid settings, as of `LlmProposer`, or a task that the episodes are not of.
    """

    def __init__(self, episodes: Trajectories, llm: LlmSettings, kept: Path, task: Task | None = None) -> None:
        self._all, self._kept, self._llm = episodes, kept, llm
        if task is not None:
            words = task_card(task, None, PPO())
        else:
            words = TaskCard(name="unknown", description="", state_doc=state_arrays(episodes.spec),
                             vocabulary=Vocabulary())  # fmt: skip
        card = words.model_copy(update={"objective": "demonstrations", "measure": FITNESS})
        self._proposer = LlmProposer(card, llm)
        missions = episodes.texts if task is not None else ()
        texts = [_text(episodes, k, missions) for k in range(len(episodes))]
        self._requests = [
            Request(id=f"{k:04d}-{hashlib.sha256(text.encode()).hexdigest()[:12]}", generation=0, operator="identify",
                    evolve="reward", illustrations=(text,))
            for k, text in enumerate(texts)
        ]  # fmt: skip
        book = PromptBook(card, llm.prompts)
        pages = [book.messages(request, derive_rng(0)) for request in self._requests]
        self._tokens = max(sum(estimate_tokens(message["content"]) for message in page) for page in pages)

    def estimate(self) -> tuple[int, int, Estimate]:
        """Calls, tokens of the largest prompt, and what that costs.

        Raises:
            UserError: a cap does not reach for a single call.
        """
        if lacking := too_small(self._llm, self._tokens):
            raise UserError(lacking)
        return len(self._requests), self._tokens, estimate_cost(self._llm, self._tokens, len(self._requests))

    def run(
        self, note: Callable[[str], None], status: Callable[[str], None],
        should_stop: Callable[[], bool] = lambda: False,
    ) -> Cleaned:  # fmt: skip
        """Ask, and mark the steps.

        Raises:
            UserError: the endpoint gives no answer, a cap is reached, it was asked to stop, or there is no answer that
                can be used. The replies so far are kept.
        """
        self._kept.mkdir(parents=True, exist_ok=True)
        transcript = TranscriptLog(self._kept / TRANSCRIPT)
        self._proposer.prepare(note)
        self._proposer.open(Context(self._kept, transcript, should_stop, note, status, on_endpoint=note))
        waiting, found = list(self._requests), dict[str, Proposal]()
        for again in range(1 + REASKS):
            for request, proposal in zip(waiting, self._answers(waiting), strict=True):
                found[request.id.partition("-r")[0]] = proposal
            waiting = [_again(r, p) for r in waiting if (p := found[r.id.partition("-r")[0]]).failure is not None]
            if not waiting or again == REASKS:
                break
        return self._cleaned([found[request.id] for request in self._requests])

    def _answers(self, requests: Sequence[Request]) -> tuple[Proposal, ...]:
        answers = self._proposer.propose_all(requests, lambda request: derive_rng(0, "clean", request.id))
        kept = f"the replies so far are in {self._kept}: give the same command again"
        if isinstance(answers.stopped, ProposerStopped):
            raise UserError(f"{answers.stopped.why.marked}; {kept}" if answers.stopped.later else answers.stopped.why)
        if answers.spent is not None:
            raise UserError(f"{answers.spent.reason}; raise it: {kept}")
        if len(answers.proposals) < len(requests):
            raise UserError(f"stopped; {kept}")
        return answers.proposals

    def _cleaned(self, proposals: Sequence[Proposal]) -> Cleaned:
        solves, first = np.zeros(self._all.steps, bool), self._all.last_steps + 1 - self._all.lengths
        for k, proposal in enumerate(proposals):
            named = [] if proposal.words in ("", NONE) else [int(word) for word in proposal.words.split()]
            solves[[int(first[k]) + step - 1 for step in named if step <= self._all.lengths[k]]] = True
        answered = [k for k, proposal in enumerate(proposals) if proposal.failure is None]
        if not answered:
            why = next(p.failure for p in proposals if p.failure is not None)
            raise UserError(f"no answer can be used: {why.message}; ask another model")
        if not solves.any():
            other = f"ask another {mention('model')}, or say what the task is with {mention('task')}"
            raise UserError(f"by the answers no step of any episode solves the task: nothing is written; {other}")
        priced = not any(proposal.unpriced_tokens for proposal in proposals)
        return Cleaned(
            dataclasses.replace(self._all, solves=solves).take(answered),
            tuple(k for k in range(len(proposals)) if k not in answered),
            sum(proposal.cost_usd for proposal in proposals) if priced else None,
        )


def _text(episodes: Trajectories, k: int, missions: Sequence[str]) -> str:
    text = episode_text(episodes, k, estimate_tokens, EPISODE)
    return f"The mission: {missions[k]}\n\n{text}" if missions and missions[k] else text


def _again(request: Request, proposal: Proposal) -> Request:
    """The request once more, with what was wrong with the answer."""
    candidate = Candidate(id=request.id, generation=0, operator=request.operator)
    root, _, number = request.id.partition("-r")
    failed = Result(candidate=candidate, failure=proposal.failure)
    return request.model_copy(update={"id": f"{root}-r{int(number or 0) + 1}", "failed": failed})
