"""What checks say of a program."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import model_validator

from jaxreward.records.base import Record

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
