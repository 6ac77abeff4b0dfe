"""Which states of an expert's episodes solve the task, by a language model (GRACE, section 4, data cleaning)."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from jaxreward.demonstrations import Trajectories
from jaxreward.errors import FileProblem, ProposerStopped, UnusableFile, UserError, why_unreadable
from jaxreward.evolution.repair import REASKS
from jaxreward.evolution.setup import state_arrays, task_card
from jaxreward.objectives.demonstrations.episode_text import EpisodeText, episode_text
from jaxreward.objectives.demonstrations.results import FITNESS
from jaxreward.objectives.demonstrations.scoring import Array
from jaxreward.proposers.llm.cost import Amount, Estimate, estimate_cost, too_small
from jaxreward.proposers.llm.llm_proposer import LlmProposer, proposal_of
from jaxreward.proposers.llm.llm_settings import ModelSettings
from jaxreward.proposers.prompts.prompt_builder import estimate_tokens
from jaxreward.proposers.prompts.sections import TOTAL
from jaxreward.proposers.proposer import Context
from jaxreward.proposers.replies.schemas import NONE
from jaxreward.records import Candidate, Failure, Proposal, Request, Result, TaskCard, Vocabulary
from jaxreward.runs.transcripts import TRANSCRIPT, TranscriptLog
from jaxreward.search.seeding import derive_rng
from jaxreward.sentences import mention
from jaxreward.tasks import Task
from jaxreward.training import PPO

EPISODE = TOTAL - 4_500
"""Tokens of an episode in a prompt, at most; the rest is for the words about the task."""

_SHOWN = 12
"""Numbers of steps that a sentence names."""


@dataclass(frozen=True)
class Cleaned:
    """Episodes with the steps that solve the task marked.

    Attributes:
        episodes: those that the model gave an answer for.
        left_out: the numbers of the others, from 0.
        spent: what all replies cost that were kept, also those of an earlier call.
    """

    episodes: Trajectories
    left_out: tuple[int, ...]
    spent: Amount


class Cleaning:
    """Asks a language model, for each episode, after which steps the task is solved.

    Of a step that the model was not shown, since its episode is too long for a prompt, it is taken to have said what it
    said of the steps before and after, if that is the same; else it is not known whether the step solves the task.

    Replies are kept in the folder `kept`, by the prompt and the models that are asked, so that the same cleaning, begun
    again, asks only for what is missing.

    Args:
        episodes: of an expert, which may be noisy.
        llm: the models, and what they may cost.
        task: what the model is told about; without one it sees arrays alone, and no mission.

    Raises:
        UserError: invalid settings, as of `LlmProposer`, states that are too large for a prompt, or replies that cannot
            be read or kept.
    """

    def __init__(self, episodes: Trajectories, llm: ModelSettings, kept: Path, task: Task | None = None) -> None:
        self._episodes, self._kept, self._llm = episodes, kept, llm
        if task is not None:
            words = task_card(task, None, PPO())
        else:
            words = TaskCard(name="unknown", description="", state_doc=state_arrays(episodes.spec),
                             vocabulary=Vocabulary())  # fmt: skip
        card = words.model_copy(update={"objective": "demonstrations", "measure": FITNESS})
        self._proposer = LlmProposer(card, llm)
        self._texts = [episode_text(episodes, k, estimate_tokens, EPISODE) for k in range(len(episodes))]
        missions = episodes.texts if task is not None else ()
        self._requests = [self._request(k, text, missions) for k, text in enumerate(self._texts)]
        self._transcript = TranscriptLog(kept / TRANSCRIPT)

    @property
    def hidden(self) -> int:
        """Steps that the model is not shown."""
        return self._episodes.steps - sum(len(text.steps) for text in self._texts)

    def estimate(self) -> tuple[int, int, Estimate]:
        """Calls that are still to be made, tokens of the largest prompt, and what that costs.

        Raises:
            UserError: a cap does not reach for a single call.
        """
        waiting = [request for request, found in map(self._at, range(len(self._requests))) if found is None]
        tokens = max((self._tokens(request) for request in waiting), default=0)
        if waiting and (lacking := too_small(self._llm, tokens)):
            raise UserError(lacking)
        return len(waiting), tokens, estimate_cost(self._llm, tokens, len(waiting))

    def run(
        self, note: Callable[[str], None], status: Callable[[str], None],
        should_stop: Callable[[], bool] = lambda: False,
    ) -> Cleaned:  # fmt: skip
        """Ask, and mark the steps.

        Raises:
            UserError: the endpoint gives no answer, a cap is reached, it was asked to stop, or there is no answer that
                can be used. The replies so far are kept.
        """
        try:
            self._kept.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            why = f"replies cannot be kept in {self._kept}: {why_unreadable(error)}"
            raise UnusableFile(
                f"{why}; name another file with {mention('out')}", self._kept, FileProblem.UNWRITABLE
            ) from error
        count = len(self._requests)
        if self.estimate()[0]:
            self._proposer.prepare(note)
        self._proposer.open(Context(self._kept, self._transcript, should_stop, note, status, on_endpoint=note))
        for _ in range(1 + REASKS):
            waiting = [request for request, found in map(self._at, range(count)) if found is None]
            if waiting:
                self._ask(waiting)
        return self._cleaned([self._at(k)[1] for k in range(count)])

    def _request(self, k: int, shown: EpisodeText, missions: Sequence[str]) -> Request:
        """What is asked about episode k; its id depends on all that the answer does."""
        text = f"The mission: {missions[k]}\n\n{shown.text}" if missions and missions[k] else shown.text
        request = Request(
            id="", generation=0, operator="identify", evolve="reward", illustrations=(text,),
        )  # fmt: skip
        said = [self._proposer.book.messages(request, derive_rng(0)), sorted(self._llm.weights().items())]
        digest = hashlib.sha256(json.dumps(said).encode()).hexdigest()[:12]
        return request.model_copy(update={"id": f"{k:04d}-{digest}"})

    def _tokens(self, request: Request) -> int:
        return sum(estimate_tokens(m["content"]) for m in self._proposer.book.messages(request, derive_rng(0)))

    def _at(self, k: int) -> tuple[Request, Proposal | None]:
        """The answer about episode k, or the request that waits for one: after an answer that cannot be used, the same
        with what is wrong with it."""
        request = self._requests[k]
        while (found := proposal_of(request, self._transcript.of(request.id))) is not None:
            found = self._judged(k, found)
            if found.failure is None:
                break
            request = _again(request, found.failure)
        return request, found

    def _judged(self, k: int, proposal: Proposal) -> Proposal:
        """An answer that names steps that were not shown cannot be used."""
        shown = self._texts[k].steps
        wrong = sorted(set(_named(proposal)) - set(shown.tolist()))
        if not wrong:
            return proposal
        known = (
            f"1 to {shown[-1]}" if len(shown) == shown[-1] else f"every {shown[-1] - shown[-2]} steps up to {shown[-1]}"
        )
        message = f"{_list(wrong)} {'is no step' if len(wrong) == 1 else 'are no steps'} of the episode that is shown"
        failure = Failure(
            stage="reply", message=message, hint=f"name steps by the numbers that they are shown with, {known}"
        )
        return proposal.model_copy(update={"failure": failure, "words": ""})

    def _ask(self, requests: Sequence[Request]) -> None:
        answers = self._proposer.propose_all(requests, lambda request: derive_rng(0, "clean", request.id))
        kept = f"the replies so far are in {self._kept}: give the same command again"
        if isinstance(answers.stopped, ProposerStopped):
            raise UserError(f"{answers.stopped.why.marked}; {kept}" if answers.stopped.later else answers.stopped.why)
        if answers.spent is not None:
            raise UserError(f"{answers.spent.reason}; raise it: {kept}")
        if len(answers.proposals) < len(requests):
            raise UserError(f"stopped; {kept}")

    def _cleaned(self, answers: Sequence[Proposal | None]) -> Cleaned:
        """Of the answer about each episode, None where there is none that can be used."""
        answered = {k: answer for k, answer in enumerate(answers) if answer is not None}
        if not answered:
            raise UserError(f"no answer can be used; ask another {mention('model')}, or the same again")
        solves = np.zeros(self._episodes.steps, np.int8)
        first = self._episodes.last_steps + 1 - self._episodes.lengths
        for k, answer in answered.items():
            marks = _marks(self._texts[k].steps, _named(answer))
            solves[first[k] : first[k] + len(marks)] = marks
        if not (solves == 1).any():
            other = f"ask another {mention('model')}, or say what the task is with {mention('task')}"
            raise UserError(f"by the answers no step of any episode solves the task: nothing is written; {other}")
        ids = {request.id for request in self._requests}
        spent = Amount.of(e for e in self._transcript.exchanges() if e.request_id.partition("-r")[0] in ids)
        return Cleaned(
            dataclasses.replace(self._episodes, solves=solves).take(list(answered)),
            tuple(k for k in range(len(answers)) if k not in answered), spent,
        )  # fmt: skip


def _marks(shown: Array, named: Sequence[int]) -> Array:
    """Whether each step of an episode solves the task, int8: 1, 0, or -1 for a step between two of `shown` of which one
    is `named`."""
    at = np.searchsorted(shown, np.arange(1, shown[-1] + 1))  # the first shown step that is not before
    said = np.isin(shown, named).astype(np.int8)
    after, before = said[at], np.concatenate([[np.int8(0)], said])[at]
    return np.where((after == before) | np.isin(np.arange(1, shown[-1] + 1), shown), after, np.int8(-1)).astype(np.int8)


def _named(proposal: Proposal) -> list[int]:
    return [int(word) for word in proposal.words.split() if word != NONE]


def _list(steps: Sequence[int]) -> str:
    more = f" and {len(steps) - _SHOWN} more" if len(steps) > _SHOWN else ""
    return f"{', '.join(map(str, steps[:_SHOWN]))}{more}"


def _again(request: Request, failure: Failure) -> Request:
    """The request once more, with what was wrong with the answer."""
    root, _, number = request.id.partition("-r")
    failed = Result(candidate=Candidate(id=request.id, generation=0, operator=request.operator), failure=failure)
    return request.model_copy(update={"id": f"{root}-r{int(number or 0) + 1}", "failed": failed})
