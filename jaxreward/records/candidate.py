"""Candidates of a search: what is asked for, proposed, paid for and found."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from jaxreward.records.base import Record
from jaxreward.records.feedback import Feedback
from jaxreward.records.measure import Score
from jaxreward.records.program import Failure, ProgramSummary

Evolve = Literal["both", "observation", "reward"]
"""What a search may change; the other half is the task's default."""


class Candidate(Record):
    """A program and where it came from. `id` is unique in a run; `parents` are ids.

    `depth` is 0 without parents, else one more than that of the deepest (FORGE, equation 4, for any
    number of parents). `plan` is the id of the plan that it carries out, `repairs` that of the failed
    candidate that it repairs, `model` the language model that wrote it, `thought` the idea
    behind it, where the model gave one; `tokens` and `cost_usd` are what the answer cost; `group` is that of
    the request.
    """

    id: str
    generation: int
    operator: str
    island: int = 0
    parents: tuple[str, ...] = ()
    depth: int = 0
    plan: str = ""
    repairs: str = ""
    proposer: str = ""
    model: str = ""
    thought: str = ""
    tokens: int = 0
    cost_usd: float = 0.0
    source: str = ""
    group: int = Field(default=0, exclude_if=lambda group: not group)
    summary: ProgramSummary | None = None


class Result(Record):
    """The outcome of a candidate: a score with feedback, or a failure; never both.

    Of a request for words: a failure, or `words`.
    """

    candidate: Candidate
    score: Score | None = None
    failure: Failure | None = None
    feedback: Feedback | None = None
    env_steps: int = 0
    words: str = ""

    def with_thought(self, thought: str) -> Result:
        """The same with another thought behind its program."""
        return self.model_copy(update={"candidate": self.candidate.model_copy(update={"thought": thought})})


class ExampleChoice(Record):
    """Which of its parents' examples a request shows: a whole `trajectory` of the expert as well, and of single states
    only those with a wrong reward, only the expert's, or both."""

    trajectory: bool = False
    only_wrong: bool = False
    only_expert: bool = False


class Request(Record):
    """What a strategy wants next: an operator (`jaxreward.operators`) and what the proposer should see.

    `parents` come first in importance, the one to start from before all; `best`, `diverse` and
    `failures` are context. `plan` is the answer to a request for a plan, to be carried out. `failed` is
    the candidate to repair, in a request that repeats another after its answer was rejected. With
    `thought` the proposer should give its idea before the program. `remarks` are those of people who
    watched the parents' agents. `model` is the language model to ask, if the strategy chose one. A
    program to `ablate` leaves out the `group`th of its groups of parts, from 0; `ablations` are the results of those
    made from the first parent. `watched` is the answer of a judge who saw the first parent's agent. `examples` are for
    searches on demonstrations, whose objective turns them into `illustrations`: lines of text about the data and the
    first parent, and adds `shared_functions`: sources of functions that good programs of the run share. Neither is
    logged.
    """

    id: str
    generation: int
    operator: str
    island: int = 0
    evolve: Evolve = "both"
    parents: tuple[Result, ...] = ()
    best: tuple[Result, ...] = ()
    diverse: tuple[Result, ...] = ()
    failures: tuple[Result, ...] = ()
    plan: Result | None = None
    failed: Result | None = None
    thought: bool = False
    remarks: tuple[str, ...] = ()
    model: str = ""
    group: int = Field(default=0, exclude_if=lambda group: not group)
    ablations: tuple[Result, ...] = Field(default=(), exclude_if=lambda results: not results)
    watched: Result | None = Field(default=None, exclude_if=lambda result: result is None)
    examples: ExampleChoice | None = Field(default=None, exclude_if=lambda choice: choice is None)
    illustrations: tuple[str, ...] = Field(default=(), exclude_if=lambda lines: not lines)
    shared_functions: tuple[str, ...] = Field(default=(), exclude_if=lambda texts: not texts)


class Proposal(Record):
    """A proposer's answer to a request: program source, or `words` where those were asked for, or a
    failure of stage `reply`, `refused` or `declined`.

    `calls` counts the calls of a language model that were answered or may have been charged;
    `tokens` and `cost_usd` are of all of them, `unpriced_tokens` those whose price is unknown. `env_steps`
    and seconds of devices are those of an answer that took training.
    """

    request_id: str
    source: str = ""
    words: str = ""
    proposer: str = ""
    model: str = ""
    thought: str = ""
    failure: Failure | None = None
    calls: int = 0
    tokens: int = 0
    cost_usd: float = 0.0
    unpriced_tokens: int = 0
    env_steps: int = Field(default=0, exclude_if=lambda steps: not steps)
    compile_s: float = Field(default=0.0, exclude_if=lambda seconds: not seconds)
    run_s: float = Field(default=0.0, exclude_if=lambda seconds: not seconds)


class Exchange(Record):
    """One call of a language model: what was sent, the reply, and its cost.

    A transcript is a sequence of these. `request_id` is the candidate that the call was for, `turn`
    counts the calls for it from 0, and `part` says which of several replies it was to give. `messages` are
    those of the chat API, with paths in a run's folder in place of pictures, `parameters` the
    other arguments; neither ever holds a key. `error` is one sentence on why there is no reply.
    `finish` is the provider's reason for the end, e.g. `stop` or `length`. Tokens are the provider's
    count, or estimates from lengths where it gave none (`estimated`); `cost_usd` is None where the
    price is unknown. A call that was never answered and cannot have been charged has 0 tokens.
    """

    request_id: str
    turn: int
    part: str = Field(default="", exclude_if=lambda part: not part)
    model: str
    parameters: dict[str, Any] = Field(default_factory=dict)
    messages: tuple[dict[str, Any], ...] = ()
    reply: str = ""
    finish: str = ""
    error: str = ""
    prompt_tokens: int = Field(default=0, ge=0)
    completion_tokens: int = Field(default=0, ge=0)
    estimated: bool = False
    cost_usd: float | None = Field(default=0.0, ge=0.0, allow_inf_nan=False)
    latency_s: float = 0.0
