"""The answers of a vision model that judges agents: criteria before it sees any, then scores of an episode; and a
rating of an episode as a whole."""

from __future__ import annotations

from collections.abc import Collection
from typing import Annotated, TypeVar

from pydantic import AfterValidator, BaseModel, BeforeValidator, Field

from jaxreward.proposers.replies.program_reply import shortened
from jaxreward.proposers.replies.schemas import identifier, no_switch, one_line, untitled_schema
from jaxreward.proposers.replies.words import read_object
from jaxreward.records import Failure, Rating, Seen
from jaxreward.records.ratings import SCALE

WHY, CRITERION = 400, 600
"""Characters of a rationale and of a criterion that are kept."""

_T = TypeVar("_T")
Name = Annotated[str, AfterValidator(identifier)]
Line = Annotated[str, AfterValidator(one_line)]


class Criterion(BaseModel):
    subtask: Name = Field(description="its name")
    criterion: Line = Field(description="what is to be seen for a score of 1, of 0.5 and of 0")


class Criteria(BaseModel):
    criteria: list[Criterion] = Field(min_length=1)


class SubtaskScore(BaseModel):
    subtask: Name = Field(description="its name")
    why: Line = Field(description="what is to be seen that decides, in a sentence or two, with the numbers of frames")
    score: Annotated[float, BeforeValidator(no_switch)] = Field(ge=0.0, le=1.0, description="from 0, not done, to 1")


class Scores(BaseModel):
    subtasks: list[SubtaskScore] = Field(min_length=1)


class Rated(BaseModel):
    why: Line = Field(description="what is to be seen that decides, in a sentence or two, with the numbers of frames")
    rating: Annotated[int, BeforeValidator(no_switch)] = Field(
        ge=1, le=SCALE, description="from 1, complete misalignment, to 5, perfect alignment"
    )


RATED_SCHEMA = untitled_schema(Rated)
CRITERIA_SCHEMA, SCORES_SCHEMA = untitled_schema(Criteria), untitled_schema(Scores)
_CRITERIA_HINT = "reply with one JSON object that has a criterion for every subtask"
_SCORES_HINT = "reply with one JSON object that has a score from 0 to 1 for every subtask"


_RATED_HINT = "reply with one JSON object that has a rating, a whole number from 1 to 5"


def read_criteria(text: str, finish: str, names: Collection[str]) -> dict[str, str] | Failure:
    """The criteria in a reply by the names of the subtasks, all of which must have one."""
    found = read_object(Criteria, text, _CRITERIA_HINT, finish)
    if isinstance(found, Failure):
        return found
    criteria = {c.subtask: shortened(c.criterion, CRITERION) for c in found.criteria}
    return _of_all(criteria, names, _CRITERIA_HINT)


def read_scores(text: str, finish: str, names: Collection[str]) -> dict[str, Seen] | Failure:
    """The scores in a reply by the names of the subtasks, all of which must have one."""
    found = read_object(Scores, text, _SCORES_HINT, finish)
    if isinstance(found, Failure):
        return found
    scores = {s.subtask: Seen(score=s.score, why=shortened(s.why, WHY)) for s in found.subtasks}
    return _of_all(scores, names, _SCORES_HINT)


def read_rating(text: str, finish: str) -> Rating | Failure:
    """The rating in a reply."""
    found = read_object(Rated, text, _RATED_HINT, finish)
    return found if isinstance(found, Failure) else Rating(score=found.rating, why=shortened(found.why, WHY))


def _of_all(found: dict[str, _T], names: Collection[str], hint: str) -> dict[str, _T] | Failure:
    spelt = {name: identifier(name) for name in names}  # as names in replies are
    lacking = [name for name in names if spelt[name] not in found]
    if lacking:
        return Failure(stage="reply", message=f"the reply says nothing of the subtask '{lacking[0]}'", hint=hint)
    return {name: found[spelt[name]] for name in names}
