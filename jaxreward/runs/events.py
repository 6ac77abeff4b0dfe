"""The events of a run as records: the lines of `events.jsonl`.

One generation is `Asked`, then for every request `Proposed` and `Checked` (unless the proposal
failed), then `Trained` for those that passed, batch by batch, then `Told`. Rejected candidates may
go back to the proposer in between (`Repair`, followed by what `Asked` is followed by), and where a
budget of the proposer ends, what it has not answered is `Withdrawn`. A generation of requests for
words ends after `Proposed`: nothing is checked or trained. Each is logged when it is
known, so that a run killed between any two resumes where it stopped. In an asynchronous search the events of several
generations lie between each other; the strategy knows what it was told in the order of the log.
"""

from __future__ import annotations

import math
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, TypeAdapter, field_validator

from jaxreward.errors import CallProblem, EndCause
from jaxreward.records import (
    SUCCESS,
    Evolve,
    ExampleChoice,
    Failure,
    Feedback,
    Measure,
    Proposal,
    Record,
    Request,
    Result,
    Score,
    Verdict,
)


def json_ready(value: Any) -> Any:
    """`value` with NaN and infinities as strings: JSON has no such numbers, and records read them back."""
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    if isinstance(value, dict):
        return {key: json_ready(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [json_ready(item) for item in value]
    return value


Config = Annotated[dict[str, Any], AfterValidator(json_ready)]
"""Settings in JSON values, so that those in memory equal those read back."""


Cause = Annotated[EndCause | None, Field(exclude_if=lambda cause: cause is None)]
"""Why a search ended; None in logs of earlier versions."""

Problem = Annotated[CallProblem | None, Field(exclude_if=lambda problem: problem is None)]


class RunStarted(Record):
    """The first event: settings, command and versions.

    `objects` says which task, strategy and proposer were given as objects of Python: their class, options and digests.
    `code` has a digest of what those that are Python files define, together with what they import. `parts` are what
    both consist of, each a short text by path, to say what differs. Logs of earlier versions have neither of the two.
    """

    type: Literal["run_started"] = "run_started"
    config: Config = Field(default_factory=dict)
    versions: dict[str, str] = Field(default_factory=dict)
    task: str
    strategy: str
    proposer: str
    seed: int = 0
    command: str = ""
    measure: Measure = Field(default=SUCCESS, exclude_if=lambda m: m == SUCCESS)
    objects: dict[str, str] = Field(default_factory=dict, exclude_if=lambda objects: not objects)
    code: dict[str, str] = Field(default_factory=dict, exclude_if=lambda code: not code)
    parts: dict[str, dict[str, str]] = Field(default_factory=dict, exclude_if=lambda parts: not parts)


class Resumed(Record):
    """Another process resumed the run, with the settings `config`."""

    type: Literal["resumed"] = "resumed"
    config: Config = Field(default_factory=dict)
    versions: dict[str, str] = Field(default_factory=dict)
    command: str = ""


class Baseline(Record):
    """A baseline was trained, for `steps` environment steps a seed; a later one of the same `name`,
    e.g. `sparse` or `best-of-n`, takes its place. `feedback` is absent in logs of earlier versions."""

    type: Literal["baseline"] = "baseline"
    name: str
    digest: str = ""
    steps: int = 0
    score: Score | None = None
    failure: Failure | None = None
    feedback: Feedback | None = Field(default=None, exclude_if=lambda feedback: feedback is None)
    env_steps: int = 0
    compile_s: float = 0.0
    run_s: float = 0.0


class AskedRequest(Record):
    """A `Request` with candidates by id; the log holds their results already. `id` becomes a part of names of files."""

    id: str = Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$")
    operator: str
    island: int = 0
    evolve: Evolve = "both"
    parents: tuple[str, ...] = ()
    best: tuple[str, ...] = ()
    diverse: tuple[str, ...] = ()
    failures: tuple[str, ...] = ()
    plan: str = ""
    failed: str = ""
    thought: bool = False
    remarks: tuple[str, ...] = ()
    model: str = ""
    group: int = Field(default=0, exclude_if=lambda group: not group)
    ablations: tuple[str, ...] = Field(default=(), exclude_if=lambda ids: not ids)
    watched: str = Field(default="", exclude_if=lambda id: not id)
    examples: ExampleChoice | None = Field(default=None, exclude_if=lambda choice: choice is None)

    @classmethod
    def of(cls, request: Request) -> AskedRequest:
        def ids(results: tuple[Result, ...]) -> tuple[str, ...]:
            return tuple(result.candidate.id for result in results)

        return cls(
            id=request.id,
            operator=request.operator,
            island=request.island,
            evolve=request.evolve,
            parents=ids(request.parents),
            best=ids(request.best),
            diverse=ids(request.diverse),
            failures=ids(request.failures),
            plan=request.plan.candidate.id if request.plan else "",
            failed=request.failed.candidate.id if request.failed else "",
            thought=request.thought,
            remarks=request.remarks,
            model=request.model,
            group=request.group,
            ablations=ids(request.ablations),
            watched=request.watched.candidate.id if request.watched else "",
            examples=request.examples,
        )


class Asked(Record):
    """The strategy asked for a generation. In an asynchronous search `incumbent` is the best candidate then, which
    those of the generation have to beat whatever is told meanwhile."""

    type: Literal["asked"] = "asked"
    generation: int
    requests: tuple[AskedRequest, ...]
    incumbent: str = Field(default="", exclude_if=lambda id: not id)

    @classmethod
    def of(cls, requests: list[Request], incumbent: str = "") -> Asked:
        """The event for what a strategy's `ask` returned."""
        asked = tuple(map(AskedRequest.of, requests))
        return cls(generation=requests[0].generation, requests=asked, incumbent=incumbent)


class Repair(Record):
    """Candidates of this generation that were rejected go back to the proposer with their verdicts,
    each as a request of its own."""

    type: Literal["repair"] = "repair"
    requests: tuple[AskedRequest, ...]


class Withdrawn(Record):
    """A budget of the proposer has ended: requests of `generation` without an answer are not asked; None for
    that in work, in a search by generations.

    `calls`, `tokens`, `cost_usd` and `unpriced_tokens`, as in `Proposal`, are of calls for them that
    were charged and led to no answer.
    """

    type: Literal["withdrawn"] = "withdrawn"
    reason: str
    generation: int | None = Field(default=None, exclude_if=lambda index: index is None)
    cause: Cause = None
    calls: int = 0
    tokens: int = 0
    cost_usd: float = 0.0
    unpriced_tokens: int = 0


class Proposed(Record):
    """A proposer answered one request."""

    type: Literal["proposed"] = "proposed"
    proposal: Proposal


class Checked(Record):
    """A proposed program was checked; `duplicate_of` names an earlier candidate of equal digest or, in
    logs of earlier versions, with `by_outputs`, of equal outputs."""

    type: Literal["checked"] = "checked"
    request_id: str
    verdict: Verdict
    duplicate_of: str | None = None
    by_outputs: bool = False


class Trained(Record):
    """Candidates that trained side by side left the trainer, each with a score or a failure such
    as `filtered`.

    One event for all, so that a kill cannot split them: the rest, trained alone, would be compiled
    anew and might round differently. `compile_s` and `run_s` are those of the whole batch.
    """

    type: Literal["trained"] = "trained"
    results: tuple[Result, ...]
    compile_s: float = 0.0
    run_s: float = 0.0

    @field_validator("results")
    @classmethod
    def _fail_closed(cls, results: tuple[Result, ...]) -> tuple[Result, ...]:
        """A failure has no score, and a score is a finite number."""
        return tuple(_closed(result) for result in results)


def _closed(result: Result) -> Result:
    if result.score is not None and not math.isfinite(result.score.mean):
        failure = Failure(stage="diverged", message=f"the score is {result.score.mean}")
        return result.model_copy(update={"score": None, "failure": result.failure or failure})
    if (result.score is None) == (result.failure is None):
        raise ValueError(f"the result of {result.candidate.id} needs a score or a failure, and not both")
    return result


class Told(Record):
    """A generation is complete and the strategy was told its results.

    `account` is logged by the strategy for readers, e.g. the nodes of a tree that changed; nothing
    depends on it.
    """

    type: Literal["told"] = "told"
    generation: int
    account: Config = Field(default_factory=dict)


class Paused(Record):
    """The run stopped before its end and can be resumed; `reason` is a sentence, `problem` that of a language model
    that could not be asked."""

    type: Literal["paused"] = "paused"
    reason: str
    cause: Cause = None
    problem: Problem = None


class Finished(Record):
    """The run reached its end, for `reason`, a sentence; `best` is the id of its best candidate."""

    type: Literal["finished"] = "finished"
    reason: str
    best: str | None = None
    cause: Cause = None


class Failed(Record):
    """The run reached its end and nothing was ever trained. `reason` is a sentence with the remedy, `budget` what
    ended it."""

    type: Literal["failed"] = "failed"
    reason: str
    budget: str = ""
    cause: Cause = None


OVER = (Finished, Failed)
"""Events after which a run is over unless it is resumed explicitly."""

Event = Annotated[
    RunStarted
    | Resumed
    | Baseline
    | Asked
    | Repair
    | Withdrawn
    | Proposed
    | Checked
    | Trained
    | Told
    | Paused
    | Finished
    | Failed,
    Field(discriminator="type"),
]

EVENT_TYPES = (
    *("run_started", "resumed", "baseline", "asked", "repair", "withdrawn", "proposed", "checked", "trained", "told"),
    *("paused", "finished", "failed"),
)

event_adapter: TypeAdapter[Event] = TypeAdapter(Event)
