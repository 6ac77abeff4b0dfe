"""A vision model that judges trained agents by frames of their episodes (RDA, section 4.2)."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

from jaxreward.errors import InvalidSetting
from jaxreward.extras import require
from jaxreward.proposers.llm.batch import answered
from jaxreward.proposers.llm.cost import Amount
from jaxreward.proposers.llm.film import Film, Messages
from jaxreward.proposers.llm.llm_settings import LlmSettings
from jaxreward.proposers.llm.model_caller import ModelCaller
from jaxreward.proposers.llm.model_queue import Call
from jaxreward.proposers.prompts.templates import Templates
from jaxreward.proposers.proposer import Answers, RngOf
from jaxreward.proposers.replies.seen import CRITERIA_SCHEMA, SCORES_SCHEMA, read_criteria, read_scores
from jaxreward.records import (
    Evidence,
    Failure,
    FilmedEpisode,
    Proposal,
    Request,
    Seen,
    Subtask,
    TaskCard,
    Watched,
    write_subtasks,
)
from jaxreward.sentences import mention

APART = 0.5
"""Votes of one episode that differ by more are reported."""

_TERMS = 12
"""Terms of a reward that are told with a frame, those that paid most."""

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,39}")

_TASK = 4_000
"""Characters of a task's description that the model is told."""


@dataclass(frozen=True)
class _Agent:
    """An agent to judge: the request, the subtasks by name, and its filmed episodes."""

    request: Request
    subtasks: tuple[Subtask, ...]
    film: Film

    @property
    def evidence(self) -> Evidence:
        return self.film.evidence

    @property
    def id(self) -> str:
        return self.request.parents[0].candidate.id

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(subtask.name for subtask in self.subtasks)

    @property
    def words(self) -> str:
        return write_subtasks(self.subtasks)

    @property
    def criteria_part(self) -> str:
        """The part of a transcript with the criteria for its subtasks, the same for all agents with these."""
        return f"criteria {hashlib.sha256(self.words.encode()).hexdigest()[:12]}"


class VisionJudge(ModelCaller):
    """Shows a vision model frames of every agent's episodes, and what its reward paid between them, and asks for a
    score and a reason for every subtask.

    The model writes down by what it will score the subtasks before it sees any agent. It is asked about every episode
    `judge_votes` times; a reply that cannot be read is asked for once more. What an answer is depends on the exchanges
    in the transcript alone, which has the paths of the pictures in place of them.

    Args:
        card: the task's words, with its instruction.
        settings: which model judges, how it is asked, and what it may cost.

    Raises:
        UserError: no model, as `ModelCaller`, or packages that are not installed.
    """

    operators = frozenset({"watch"})
    waits = True
    films = False

    def __init__(self, card: TaskCard, settings: LlmSettings) -> None:
        require("llm", "a model that judges", "judge_model")
        if not settings.judge_model:
            raise InvalidSetting(f"say which vision model judges with {mention('judge_model')}", "judge_model")
        super().__init__(settings.of_judge())
        assert card.instruction is not None
        self.model, self.card, self.instruction = settings.judge_model, card, card.instruction
        self._votes_each = settings.judge_votes
        self._said = set[str]()
        self._templates = Templates(settings.prompts, card.objective, card.states)
        subtask = Subtask(name="arrive", words="arrive")
        self._criteria_messages((subtask,))  # a user's templates that do not render are found before a run
        self._question((subtask,), {"arrive": "it arrives"}, FilmedEpisode(length=1, success=0.0, steps=(0,), paid={}))

    def judge_all(self, requests: Sequence[Request], rng_of: RngOf) -> Answers:
        """A proposal with what was seen for every request that was answered."""
        agents, failed = list[_Agent](), dict[str, Proposal]()
        for request in requests:
            found = self._agent(request)
            if isinstance(found, Failure):
                failed[request.id] = Proposal(request_id=request.id, failure=found, proposer="vision")
            else:
                agents.append(found)
        spent, stopped = self.call_while_missing(lambda: self._calls(agents), "judge_model")
        judged = {agent.request.id: self._proposal(agent) for agent in agents if not self._calls([agent])}
        found = failed | judged
        return Answers(tuple(found[r.id] for r in requests if r.id in found), spent=spent, stopped=stopped)

    def _agent(self, request: Request) -> _Agent | Failure:
        subtasks = self.instruction.divided(request.plan.words if request.plan is not None else "")
        film = Film.read(self.session.context.folder, request.parents[0].candidate.id)
        return film if isinstance(film, Failure) else _Agent(request, subtasks, film)

    # ---- calls

    def _calls(self, agents: Sequence[_Agent]) -> list[Call]:
        """The calls that are missing: criteria first, then the votes of agents that have theirs."""
        calls, asked = list[Call](), set[str]()
        for agent in agents:
            criteria, part = self._criteria(agent)
            if part and part not in asked:
                asked.add(part)
                calls.append(Call(agent.request.id, self.model, self._criteria_messages(agent.subtasks), part))
            elif not part:
                calls += self._votes(agent, criteria)
        return calls

    def _votes(self, agent: _Agent, criteria: dict[str, str]) -> Iterator[Call]:
        for number in range(len(agent.evidence.episodes)):
            for vote in range(self._votes_each):
                _, part = self._vote(agent, _vote_part(number, vote))
                if part:
                    shown, recorded = self._watch_messages(agent, criteria, number)
                    yield Call(agent.request.id, self.model, shown, part, recorded)

    def _criteria(self, agent: _Agent) -> tuple[dict[str, str], str]:
        """The criteria by subtask, and the part to ask for them by, empty where they are there."""
        exchanges = self.session.context.transcript.exchanges()
        for attempt in ("", " again"):
            part = agent.criteria_part + attempt
            last = answered([e for e in exchanges if e.part == part])
            if last is None:
                return {}, part
            found = read_criteria(last.reply, last.finish, agent.names)
            if not isinstance(found, Failure):
                return found, ""
        self._note_once(
            f"the judge wrote no criteria that can be read for {agent.names}: it scores by the subtasks' words"
        )
        return {subtask.name: subtask.words for subtask in agent.subtasks}, ""

    def _note_once(self, sentence: str) -> None:
        if sentence not in self._said:
            self._said.add(sentence)
            self.session.context.note(sentence)

    def _vote(self, agent: _Agent, part: str) -> tuple[dict[str, Seen] | Failure | None, str]:
        """A vote as far as it is known, and the part to ask for it by, empty where it is there, or is given up."""
        return self.vote(agent.request.id, part, lambda reply, finish: read_scores(reply, finish, agent.names))

    # ---- messages

    def _criteria_messages(self, subtasks: tuple[Subtask, ...]) -> tuple[dict[str, Any], ...]:
        user = self._templates.render("judge_criteria", {
            "instruction": self.instruction.words, "subtasks": write_subtasks(subtasks),
            "description": self.card.description[:_TASK], "schema": CRITERIA_SCHEMA,
        })  # fmt: skip
        return ({"role": "system", "content": self._system}, {"role": "user", "content": user})

    @property
    def _system(self) -> str:
        return self._templates.render("judge_system", {})

    def _question(self, subtasks: tuple[Subtask, ...], criteria: dict[str, str], episode: FilmedEpisode) -> str:
        lines = [f"- {s.name}: {' '.join(s.words.split())}\n  Criterion: {criteria[s.name]}" for s in subtasks]
        return self._templates.render("judge_watch", {
            "instruction": self.instruction.words, "criteria": "\n".join(lines), "frames": len(episode.steps),
            "length": episode.length, "schema": SCORES_SCHEMA,
        })  # fmt: skip

    def _watch_messages(self, agent: _Agent, criteria: dict[str, str], number: int) -> tuple[Messages, Messages]:
        """The messages about an episode, and the same with paths in place of pictures."""
        question = self._question(agent.subtasks, criteria, agent.evidence.episodes[number])
        return agent.film.messages(number, self._system, _heading, question)

    # ---- answers

    def _proposal(self, agent: _Agent) -> Proposal:
        exchanges = self.session.context.transcript.of(agent.request.id)
        spent = Amount.of(exchanges)
        about: dict[str, Any] = {
            "request_id": agent.request.id, "proposer": "vision", "model": self.model, "calls": spent.requests,
            "tokens": spent.tokens, "cost_usd": spent.usd, "unpriced_tokens": spent.unpriced,
        }  # fmt: skip
        seen, unread = dict[str, list[Seen]](), list[str]()
        for number in range(len(agent.evidence.episodes)):
            votes, problems = self._votes_on(agent, number)
            unread += problems
            if not votes:  # scores of other episodes alone could not be compared with those of other agents
                why = f"none of the votes on its episode {number + 1} can be read: {problems[-1]}"
                failure = Failure(stage="reply", message=f"the judge did not score {agent.id}, {why}")
                return Proposal(failure=failure, **about)
            for name in agent.names:
                seen.setdefault(name, []).append(_together([vote[name] for vote in votes]))
        asked = len(agent.evidence.episodes) * self._votes_each
        watched = Watched(subtasks={name: tuple(of_episodes) for name, of_episodes in seen.items()})
        if unread:
            self._note_once(
                f"{len(unread)} of {asked} votes on {agent.id} cannot be read, and do not count: {unread[-1]}"
            )
        self._report(agent, watched)
        return Proposal(words=watched.as_words(), **about)

    def _votes_on(self, agent: _Agent, number: int) -> tuple[list[dict[str, Seen]], list[str]]:
        """The votes on an episode that can be read, and what is wrong with each of the others."""
        each = [self._vote(agent, _vote_part(number, vote))[0] for vote in range(self._votes_each)]
        votes = [found for found in each if isinstance(found, dict)]
        return votes, [found.message for found in each if isinstance(found, Failure)]

    def _report(self, agent: _Agent, watched: Watched) -> None:
        """Say where votes on the same episode are far apart."""
        apart = [
            f"{name} {', '.join(f'{vote:.2f}' for vote in seen.votes)}"
            for name, of_episodes in watched.subtasks.items()
            for seen in of_episodes if seen.votes and max(seen.votes) - min(seen.votes) > APART
        ]  # fmt: skip
        if apart:
            more = f" and {len(apart) - 3} more" if len(apart) > 3 else ""
            self.session.context.note(
                f"the judge disagrees with itself on {agent.id}: {'; '.join(apart[:3])}{more} (votes on one episode); "
                "its scores are their means"
            )


def _vote_part(episode: int, vote: int) -> str:
    return f"episode {episode + 1} vote {vote + 1}"


def _heading(episode: FilmedEpisode, k: int, step: int) -> str:
    """What stands before a frame."""
    if not k:
        return f"Frame 1, at the start of {episode.length} steps."
    # Names are the program's: what is no identifier could be words to the judge.
    named = (
        (name if _NAME.fullmatch(name) else f"term {n + 1}", x[k]) for n, (name, x) in enumerate(episode.paid.items())
    )
    paid = dict(named)
    largest = sorted(paid, key=lambda name: -abs(paid[name]))[:_TERMS]
    told = ", ".join(f"{name} {paid[name]:.3g}" for name in paid if name in largest)
    return f"Frame {k + 1}, after step {step} of {episode.length}. Paid since the frame before: {told or 'nothing'}."


def _together(votes: Sequence[Seen]) -> Seen:
    """Votes on a subtask of one episode as one: the mean, and the reason of the vote that is nearest to it."""
    mean = fmean(vote.score for vote in votes)
    nearest = min(votes, key=lambda vote: abs(vote.score - mean))
    return Seen(score=mean, why=nearest.why, votes=tuple(vote.score for vote in votes))
