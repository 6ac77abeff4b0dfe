"""The data that crosses a process boundary or the disk, as frozen pydantic records.

Device code (tasks, training) works on pytrees and never stores a record; host code (search,
proposers, runs, reports) passes records and nothing else. Unknown keys are errors.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import asdict
from typing import Any, Literal

from pydantic import AliasChoices, BaseModel, ConfigDict, Field, model_validator

from jaxreward.function_source import fragment_text

Stage = Literal[
    "declined", "refused", "reply", "guard", "trace", "contract", "limits", "numeric",
    "killed", "duplicate", "filtered", "diverged",
]  # fmt: skip
"""Where a candidate failed: `declined` (the proposer does not know the operator), `refused` (the
model or its endpoint would not answer the prompt), `reply` (no program in the proposer's answer), the
five checks of a program, `killed` (its worker died, hung, flooded or lied), `duplicate` (computes what
an earlier candidate computes), `filtered` (below the threshold of a short rung), `diverged` (every
seed)."""

TRAINED_STAGES: frozenset[Stage] = frozenset({"filtered", "diverged"})
"""Failures inside the trainer: they spend a budget of trained candidates as a score does."""

Evolve = Literal["both", "observation", "reward"]
"""What a search may change; the other half is the task's default."""


class Record(BaseModel):
    """Base of all records: immutable, and strict about unknown keys."""

    model_config = ConfigDict(frozen=True, extra="forbid", serialize_by_alias=True)


class Failure(Record):
    """Why a candidate has no score. Never carries one; `same_as` is what a duplicate repeats, by id."""

    stage: Stage
    message: str
    line: int | None = None
    hint: str = ""
    same_as: str = ""

    def __str__(self) -> str:
        where = f"line {self.line}: " if self.line else ""
        return f"{self.stage}: {where}{self.message}" + (f" ({self.hint})" if self.hint else "")


class Notice(Record):
    """A remark about a candidate that is not a failure, e.g. `farmed`, `dominant_term`."""

    kind: str
    message: str


class ProgramSummary(Record):
    """What is known of a program from its tape, without running it.

    `digest` identifies what the program computes; `flops` and `elements` (of the largest
    intermediate) are per environment step; `*_reads` name inputs such as `state.agent.position`
    or `action`.
    """

    digest: str
    observation_size: int
    terms: tuple[str, ...] = ()
    reward_nodes: int = 0
    operations: int = 0
    flops: int = 0
    elements: int = 0
    observation_reads: tuple[str, ...] = ()
    reward_reads: tuple[str, ...] = ()

    @model_validator(mode="before")
    @classmethod
    def _of_earlier_versions(cls, data: Any) -> Any:
        """Logs of earlier versions also hold a sketch of the program's outputs."""
        old = ("sketch", "reward_rms", "constants")
        return {k: v for k, v in data.items() if k not in old} if isinstance(data, dict) else data


class Verdict(Record):
    """The outcome of checking a program: a summary, or a typed failure."""

    summary: ProgramSummary | None = None
    failure: Failure | None = None
    notices: tuple[Notice, ...] = ()

    @property
    def ok(self) -> bool:
        return self.failure is None


class Measure(Record):
    """What the value of a task's metric means.

    A `rate` lies in [0, 1] and more of it is better; any other value may be negative and unbounded, in `unit`, and
    `higher_is_better` is its direction. `worst` is what an agent counts for that has no value, because it diverged,
    and no episode counts as worse.
    `sparse` and `human` are what the task's sparse reward and a person's dense one were measured to reach; between
    them the value is normalised as in RF-Agent's Table 1, (value - sparse) / (human - sparse).
    """

    name: str = "success"
    unit: str = ""
    rate: bool = True
    higher_is_better: bool = True
    worst: float = 0.0
    sparse: float | None = None
    human: float | None = None

    @model_validator(mode="after")
    def _can_be(self) -> Measure:
        known = [x for x in (self.worst, self.sparse, self.human) if x is not None]
        if not all(math.isfinite(x) for x in known):
            raise ValueError("worst, sparse and human must be finite: choose the worst that can honestly happen")
        if self.rate and not (self.higher_is_better and 0.0 <= self.worst <= 1.0):
            raise ValueError("more of a rate is better, and it lies in [0, 1]; with rate=False less may be better")
        return self

    @property
    def label(self) -> str:
        """Name, unit and, where it is not the usual one, direction."""
        unit = f" ({self.unit})" if self.unit else ""
        return f"{self.name}{unit}" + ("" if self.higher_is_better else ", less is better")

    def oriented(self, value: float) -> float:
        """`value` with the sign by which more is better."""
        return value if self.higher_is_better else -value

    def reaches(self, value: float, threshold: float) -> bool:
        """Whether `value` is as good as `threshold`, or better."""
        return self.oriented(value) >= self.oriented(threshold)

    def normalised(self, value: float) -> float | None:
        """0 for what the sparse reward reaches and 1 for a person's; None where one is unknown or they are equal."""
        if self.sparse is None or self.human is None:
            return None
        return normalised(self.oriented(value), self.oriented(self.sparse), self.oriented(self.human))

    def level(self, value: float) -> float | None:
        """How far the task is solved, about 0 to 1: of a rate the value, of others the normalised one."""
        return value if self.rate else self.normalised(value)


def normalised(value: float, sparse: float, human: float, error: float = 0.0) -> float | None:
    """The human-normalised score of RF-Agent's Table 1, of values of which more is better.

    None where `human` is not better than `sparse` by more than `error`: there is no scale then.
    """
    return (value - sparse) / (human - sparse) if human - sparse > error else None


SUCCESS = Measure()
"""The rate of success."""


class Score(Record):
    """The metric over held-out episodes: mean over `n` seeds with the standard error of that mean.

    With one seed the standard error is that over `episodes` (the total of all seeds). `measure` is the metric,
    by default a rate of success.
    """

    mean: float
    se: float
    n: int
    episodes: int
    measure: Measure = Field(default=SUCCESS, exclude_if=lambda m: m == SUCCESS)

    def __str__(self) -> str:
        """The mean, its standard error and the unit: `0.987 ± 0.002`."""
        return f"{self.mean:.4g} ± {self.se:.2g} {self.measure.unit}".rstrip()

    @property
    def merit(self) -> float:
        """The mean with the sign by which more is better: what candidates are compared by."""
        return self.measure.oriented(self.mean)

    @property
    def level(self) -> float | None:
        """How far the task is solved, about 0 to 1; None where the metric has no scale."""
        return self.measure.level(self.mean)


class TermCurve(Record):
    """One reward term through training, per step, at `Feedback.term_steps`; `share` is its part
    of the summed absolute reward over the last tenth of training, in [0, 1]."""

    name: str
    mean: tuple[float, ...]
    minimum: tuple[float, ...]
    maximum: tuple[float, ...]
    share: float


class Feedback(Record):
    """What training a candidate showed; curves are means over seeds at `steps`. `success` is the task's metric,
    `measure`.

    `return_solved` and `return_failed` are mean undiscounted returns of held-out episodes that
    reached, or did not reach, the goal (None where there was none); `by_seed` holds the success of every seed (S, P),
    empty in logs of earlier versions; `return_success_correlation` is
    the point-biserial correlation of an episode's return with its success over held-out episodes at
    the end (None where either was constant); `value_fit` is the explained variance of the value
    function at the end; `diverged` counts seeds; `extra_metrics` are further values of the task's metric by name, under
    the key `beside` in JSON.
    """

    steps: tuple[int, ...] = ()
    success: tuple[float, ...] = ()
    episode_return: tuple[float, ...] = ()
    length: tuple[float, ...] = ()
    seed_success: tuple[float, ...] = ()
    by_seed: tuple[tuple[float, ...], ...] = Field(default=(), exclude_if=lambda curves: not curves)
    term_steps: tuple[int, ...] = ()
    terms: tuple[TermCurve, ...] = ()
    dead_features: tuple[int, ...] = ()
    entropy: float = 0.0
    value_fit: float = 0.0
    return_solved: float | None = None
    return_failed: float | None = None
    return_success_correlation: float | None = None
    return_success_interval: tuple[float, float] | None = Field(default=None, exclude_if=lambda x: x is None)
    diverged: int = 0
    extra_metrics: dict[str, float] = Field(
        default_factory=dict, validation_alias=AliasChoices("beside", "extra_metrics"), serialization_alias="beside"
    )
    measure: Measure = Field(default=SUCCESS, exclude_if=lambda m: m == SUCCESS)
    notices: tuple[Notice, ...] = ()


class Candidate(Record):
    """A program and where it came from. `id` is unique in a run; `parents` are ids.

    `depth` is 0 without parents, else one more than that of the deepest (FORGE, equation 4, for any
    number of parents). `plan` is the id of the plan that it carries out, `repairs` that of the failed
    candidate that it repairs, `model` the language model that wrote it, `thought` the idea
    behind it, where the model gave one; `tokens` and `cost_usd` are what the answer cost.
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


class Request(Record):
    """What a strategy wants next: an operator (`jaxreward.operators`) and what the proposer should see.

    `parents` come first in importance, the one to start from before all; `best`, `diverse` and
    `failures` are context. `plan` is the answer to a request for a plan, to be carried out. `failed` is
    the candidate to repair, in a request that repeats another after its answer was rejected. With
    `thought` the proposer should give its idea before the program. `remarks` are those of people who
    watched the parents' agents. `model` is the language model to ask, if the strategy chose one.
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


class Proposal(Record):
    """A proposer's answer to a request: program source, or `words` where those were asked for, or a
    failure of stage `reply`, `refused` or `declined`.

    `calls` counts the calls of a language model that were answered or may have been charged;
    `tokens` and `cost_usd` are of all of them, `unpriced_tokens` those whose price is unknown.
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


class Exchange(Record):
    """One call of a language model: what was sent, the reply, and its cost.

    A transcript is a sequence of these. `request_id` is the candidate that the call was for, `turn`
    counts the calls for it from 0. `messages` are those of the chat API, `parameters` the
    other arguments; neither ever holds a key. `error` is one sentence on why there is no reply.
    `finish` is the provider's reason for the end, e.g. `stop` or `length`. Tokens are the provider's
    count, or estimates from lengths where it gave none (`estimated`); `cost_usd` is None where the
    price is unknown. A call that was never answered and cannot have been charged has 0 tokens.
    """

    request_id: str
    turn: int
    model: str
    parameters: dict[str, Any] = Field(default_factory=dict)
    messages: tuple[dict[str, Any], ...] = ()
    reply: str = ""
    finish: str = ""
    error: str = ""
    prompt_tokens: int = 0
    completion_tokens: int = 0
    estimated: bool = False
    cost_usd: float | None = 0.0
    latency_s: float = 0.0


class Fragment(Record):
    """A named piece of vocabulary: one top-level function, as readable source.

        Fragment(name="near", kind="term", source="def near(state, action, next_state): ...")
        Fragment(near)  # the same of a function

    Of a function, `name` and `doc` are its own, `kind` follows from its parameters, and `source` is its text with the
    constants and helper functions that it needs inside (`jaxreward.function_source`); the rest is given by name.

    A `feature` is `def name(state)` returning a float32 vector of `size` values of order one; a
    `term` is `def name(state, action, next_state)` returning a scalar. `scales` are the
    multipliers worth trying first; `tags` group fragments (`milestone`, `shaping`, `penalty`,
    `relative`, `local_view`, ..., and the objects they speak of). `weight` is how likely the genetic
    proposer is to draw it, against others of 1.
    """

    name: str
    kind: Literal["feature", "term"]
    source: str
    size: int = 1
    scales: tuple[float, ...] = (1.0,)
    tags: tuple[str, ...] = ()
    doc: str = ""
    weight: float = Field(default=1.0, gt=0.0)

    def __init__(self, function: Callable[..., Any] | None = None, /, **fields: Any) -> None:
        """The fields, or those of a function.

        Raises:
            UnreadableFunction: a function that cannot be written out as text.
        """
        if function is not None:
            fields = {**asdict(fragment_text(function)), **fields}
        super().__init__(**fields)


class Vocabulary(Record):
    """What a genetic proposer may build programs from.

    `constants` maps a module-level name to its literal source; `helpers` maps a function name to
    its source. Fragments and helpers refer to both by name; a program carries only what it uses.
    """

    constants: dict[str, str] = Field(default_factory=dict)
    helpers: dict[str, str] = Field(default_factory=dict)
    fragments: tuple[Fragment, ...] = ()

    def source(self, names: Iterable[str]) -> str:
        """The fragments called `names` as Python text, with the helpers and constants that they need, each after what
        it needs itself. It begins with the imports of `jax` and `jnp`; add `get_observation` or `compute_reward` that
        calls them, and it is a program.

        Raises:
            UnknownName: no fragment of a name, with the nearest one.
        """
        from jaxreward.function_source.definitions import source_of

        return source_of(self, names)


class TaskCard(Record):
    """The words and the vocabulary by which a proposer knows a task, and what its scores mean.

    `observation` is the source of a `get_observation` that is given and not searched for, if one is. `discount` and
    `rewards_scaled` are of the learner, which divides rewards by their running size if so; and `horizon_cuts`, by which
    it takes the horizon for a cut: what the last step before it pays teaches nothing.
    """

    name: str
    description: str
    state_doc: str
    vocabulary: Vocabulary = Vocabulary()
    observation: str = ""
    measure: Measure = SUCCESS
    discount: float = 0.99
    rewards_scaled: bool = True
    horizon_cuts: bool = False
