"""Judges of trained agents: who they are, and one that goes by the metrics of a task."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from jaxreward.proposers.proposer import Answers, Context, RngOf
from jaxreward.records import Failure, Instruction, Proposal, Request, Seen, Subtask, Watched, write_subtasks


class AgentJudge(Protocol):
    """Answers requests about trained agents; `operators` are those of the requests that it answers, `waits` is whether
    it takes time or money, and `films` whether it watches films of whole episodes."""

    operators: frozenset[str]
    waits: bool
    films: bool

    def prepare(self, note: Callable[[str], None]) -> None:
        """Called before a run is created: raises UserError if nobody can be asked; `note` shows who will be."""
        ...

    def open(self, context: Context) -> None:
        """Called once, before a search begins or goes on."""
        ...

    def judge_all(self, requests: Sequence[Request], rng_of: RngOf) -> Answers:
        """A proposal with words for every request that was answered."""
        ...


class ScriptedJudge:
    """Scores the subtasks of a task's instruction by their metrics, over all held-out episodes of an agent.

    It sees the true states and costs nothing. It knows no subtasks but the task's own: it also answers how the
    instruction is divided.
    """

    operators = frozenset({"divide", "watch"})
    waits = False
    films = False

    def __init__(self, instruction: Instruction) -> None:
        self.instruction = instruction

    def prepare(self, note: Callable[[str], None]) -> None:
        return None

    def open(self, context: Context) -> None:
        return None

    def judge_all(self, requests: Sequence[Request], rng_of: RngOf) -> Answers:
        return Answers(tuple(map(self._judged, requests)))

    def _judged(self, request: Request) -> Proposal:
        if request.operator == "divide":
            words = write_subtasks(self.instruction.subtasks)
            return Proposal(request_id=request.id, words=words, proposer="scripted")
        parent = request.parents[0]
        found = parent.feedback.extra_metrics if parent.feedback is not None else {}
        lacking = [s.metric for s in self.instruction.subtasks if s.metric not in found]
        if lacking:
            message = f"the training of {parent.candidate.id} has no {lacking[0]}, by which a subtask is scored"
            return Proposal(request_id=request.id, failure=Failure(stage="reply", message=message), proposer="scripted")
        score, feedback = parent.score, parent.feedback
        episodes = score.episodes if score is not None else 0
        # the means are of the seeds that did not diverge; the others do nothing of it
        share = 1.0 - feedback.diverged / score.n if feedback is not None and score is not None and score.n else 1.0
        seen = {s.name: (_seen(s, found[s.metric] * share, episodes),) for s in self.instruction.subtasks}
        return Proposal(request_id=request.id, words=Watched(subtasks=seen).as_words(), proposer="scripted")


def _seen(subtask: Subtask, value: float, episodes: int) -> Seen:
    score = min(1.0, max(0.0, value)) if value == value else 0.0
    how = "done" if score > 0.9 else "mostly done" if score > 0.6 else "half done" if score > 0.3 else "hardly done"
    what = subtask.words.rstrip(".")
    return Seen(score=score, why=f"{how} ({score:.2f} of 1 over {episodes} episodes): {what[:1].lower()}{what[1:]}")
