"""What an agent is asked to do, in words, and the subtasks that it consists of."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from statistics import fmean

from pydantic import Field, ValidationError

from jaxreward.records.base import Record

SUBTASKS = 8
"""Subtasks that an instruction may have."""

_LINE = re.compile(r"^- ([a-z_][a-z0-9_]*): +(\S.*)$", re.MULTILINE)


class Subtask(Record):
    """A part of an instruction that can be seen to be done or not.

    Attributes:
        name: the name of the reward's term for it.
        words: what is to be done, in a sentence.
        metric: the extra metric of the task, in [0, 1], that says how well an episode does it.
        terms: names of fragments of the vocabulary that pay for it.
    """

    name: str = Field(pattern=r"^[a-z_][a-z0-9_]*$")
    words: str = Field(pattern=r"\S")
    metric: str = ""
    terms: tuple[str, ...] = ()


class Instruction(Record):
    """What an agent is to do and how, and the task's own subtasks of it."""

    words: str = Field(pattern=r"\S")
    subtasks: tuple[Subtask, ...] = Field(default=(), max_length=SUBTASKS)

    @classmethod
    def of(cls, words: str, said: Mapping[str, tuple[str, str]], terms: Mapping[str, tuple[str, ...]]) -> Instruction:
        """An instruction whose subtasks have, by name, words and a metric in `said`, and terms that pay for them."""
        subtasks = (Subtask(name=k, words=what, metric=metric, terms=terms[k]) for k, (what, metric) in said.items())
        return cls(words=words, subtasks=tuple(subtasks))

    def divided(self, words: str) -> tuple[Subtask, ...]:
        """What a judge scores: the subtasks in lines of text, and where there are none the instruction as a whole."""
        return read_subtasks(words) or (Subtask(name="instruction", words=" ".join(self.words.split())),)


class Seen(Record):
    """How well a trajectory, or several, were seen to do a subtask: a score in [0, 1], and why; `votes` are the scores
    of a judge who was asked several times, of which it is the mean."""

    score: float = Field(ge=0.0, le=1.0)
    why: str = ""
    votes: tuple[float, ...] = Field(default=(), exclude_if=lambda votes: not votes)

    @property
    def agreement(self) -> float | None:
        """1 less the mean distance of two votes; None where there are no two."""
        pairs = [abs(a - b) for k, a in enumerate(self.votes) for b in self.votes[:k]]
        return 1.0 - fmean(pairs) if pairs else None


class Watched(Record):
    """What a judge saw of an agent: of each subtask, by name, its trajectories."""

    subtasks: dict[str, tuple[Seen, ...]]

    def scores(self) -> dict[str, float]:
        """The mean score of each subtask that was seen at all."""
        return {name: fmean(s.score for s in seen) for name, seen in self.subtasks.items() if seen}

    @property
    def score(self) -> float:
        """The visual score of an agent, the mean over subtasks and trajectories (RDA, section 4.2)."""
        return fmean(self.scores().values()) if self.scores() else 0.0

    @property
    def agreement(self) -> float | None:
        """How far the votes of the judge agree with each other, on average; None where it voted once."""
        found = [s.agreement for seen in self.subtasks.values() for s in seen]
        known = [agreement for agreement in found if agreement is not None]
        return fmean(known) if known else None

    def reasons(self, name: str, most: int = 3) -> list[str]:
        """Why a subtask was scored as it was, the lowest scores first, each reason once."""
        seen = sorted(self.subtasks.get(name, ()), key=lambda s: s.score)
        return list(dict.fromkeys(s.why for s in seen if s.why))[:most]

    def as_words(self) -> str:
        return json.dumps(self.model_dump()["subtasks"])

    @classmethod
    def read(cls, words: str) -> Watched | None:
        """What `as_words` wrote; None for anything else."""
        try:
            return cls.model_validate({"subtasks": json.loads(words)})
        except (ValueError, ValidationError, RecursionError):
            return None


def write_subtasks(subtasks: Sequence[Subtask]) -> str:
    """Subtasks as lines of text, `- name: what is to be done`."""
    return "\n".join(f"- {subtask.name}: {' '.join(subtask.words.split())}" for subtask in subtasks)


def read_subtasks(words: str) -> tuple[Subtask, ...]:
    """The subtasks in lines of text, each name once."""
    found = {name: text.strip() for name, text in reversed(_LINE.findall(words))}
    return tuple(Subtask(name=name, words=text) for name, text in reversed(found.items()))
