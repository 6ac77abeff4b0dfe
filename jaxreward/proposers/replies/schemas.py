"""The JSON objects that requests for words are answered with.

The prompt shows the JSON schema of each and the reply is validated against the same model, so that the two cannot
differ. `words` is the form in which strategies read an answer and in which it is logged; `plain` reads that form, for
people, for prompt templates that ask for it, and for transcripts of runs before JSON.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, BeforeValidator, Field
from pydantic.json_schema import GenerateJsonSchema

from jaxreward.proposers.replies.program_reply import THOUGHT_LIMIT, legible, shortened
from jaxreward.records.instruction import SUBTASKS

COMPONENTS = 30
"""Components of a plan that are kept."""

SENTENCES = 4
"""Sentences of a description that are asked for, and kept."""

NONE = "none"
"""The words for no step."""

_NAME, _PURPOSE = 60, 400
"""Characters that are kept of a component's name and purpose."""

_NUMBER = r"[+-]?(?:\d{1,30}(?:\.\d{0,30})?|\.\d{1,30})"
_COMPONENT = re.compile(
    r"^[ \t]*(?:[-*]|\d{1,3}[.)])[ \t]+[*_`]*([A-Za-z][^:\n]{0,79}?)[*_`]*[ \t]*:[*_` \t]*(\S.{0,2000})", re.M
)
_SCORE = re.compile(rf"(?:(?:^|(?<= )(?<! of ))\[ ?({_NUMBER}) ?\]|^({_NUMBER}))[ .!]*$")
_FENCED = re.compile(r"^[ \t]*```.*?(?:^[ \t]*```[ \t]*$|\Z)", re.M | re.S)
_SENTENCE_END = re.compile(r"(?<!e\.g\.)(?<!i\.e\.)(?<!vs\.)(?<=[.!?]) (?=[^a-z])")


def identifier(name: str) -> str:
    """A name in snake_case; one that begins with a digit gets an underscore before it."""
    name = re.sub(r"\([^()]{0,80}\)", " ", name[: 2 * _NAME]).strip()
    name = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name) if " " not in name else name
    if identifier := re.sub(r"[^a-z0-9]+", "_", name.lower())[:_NAME].strip("_"):
        return f"_{identifier}" if identifier[0].isdigit() else identifier
    raise ValueError("a name needs letters or digits")


def one_line(text: str) -> str:
    """One line without marks of Markdown; JSON may spell out characters that the reply did not hold."""
    if line := " ".join(legible(text).replace("**", "").replace("`", "").split()):
        return line
    raise ValueError("it is empty")


def no_switch(value: object) -> object:
    """Anything but true and false, which are no numbers."""
    if isinstance(value, bool):
        raise ValueError("it is no number")
    return value


class Component(BaseModel):
    name: Annotated[str, AfterValidator(identifier)] = Field(description="in snake_case")
    purpose: Annotated[str, AfterValidator(one_line)] = Field(
        description="what it is for, or what is to be done, and why"
    )


class Plan(BaseModel):
    """An answer to `plan`; its words are lines `- name: purpose`, equal names once."""

    components: list[Component] = Field(min_length=1)

    @property
    def words(self) -> str:
        named: dict[str, str] = {}
        for component in self.components:
            named.setdefault(component.name, shortened(component.purpose, _PURPOSE))
        return "\n".join(f"- {name}: {purpose}" for name, purpose in list(named.items())[:COMPONENTS])

    @staticmethod
    def plain(text: str) -> dict[str, Any] | None:
        found = [{"name": name, "purpose": purpose} for name, purpose in _COMPONENT.findall(text)]
        return {"components": found} if found else None


class Division(BaseModel):
    """An answer to `divide` or `revise`; its words are lines `- name: what is to be done`, equal names once."""

    subtasks: list[Component] = Field(
        min_length=1, max_length=SUBTASKS, description="in the order in which they are to be done"
    )

    @property
    def words(self) -> str:
        return Plan(components=self.subtasks).words

    @staticmethod
    def plain(text: str) -> dict[str, Any] | None:
        found = Plan.plain(text)
        return {"subtasks": found["components"]} if found else None


class Description(BaseModel):
    """An answer to `align`; its words are at most `SENTENCES` sentences on one line."""

    description: Annotated[str, AfterValidator(one_line)] = Field(
        description=f"at most {SENTENCES} sentences, plain text"
    )

    @property
    def words(self) -> str:
        sentences = _SENTENCE_END.split(self.description, maxsplit=SENTENCES)
        return shortened(" ".join(sentences[:SENTENCES]), THOUGHT_LIMIT)

    @staticmethod
    def plain(text: str) -> dict[str, Any] | None:
        text = _FENCED.sub(" ", text)
        return {"description": text} if text.strip() else None


class Judgement(BaseModel):
    """An answer to `verify`; its words are the score as a decimal number."""

    reasoning: str = Field(default="", description="how an expert does it, and how far the program leads there")
    score: Annotated[float, BeforeValidator(no_switch)] = Field(
        ge=-1.0, le=1.0, description="from -1, misleading, to 1, what an expert would write"
    )

    @property
    def words(self) -> str:
        return f"{self.score + 0.0:g}"

    @staticmethod
    def plain(text: str) -> dict[str, Any] | None:
        found = _SCORE.search(text.rstrip().rpartition("\n")[2].strip())
        return {"reasoning": "", "score": found[1] or found[2]} if found else None


def _or_none(value: object) -> object:
    """-1 stands for no step, as in GRACE's prompt 1."""
    return [] if value in (-1, [-1]) else value


class Solving(BaseModel):
    """An answer to `identify`; its words are the steps in their order, each once, or `none`."""

    reasoning: str = Field(default="", description="what the expert wants to reach, and where it has")
    steps: Annotated[
        list[Annotated[int, BeforeValidator(no_switch), Field(ge=1, le=1_000_000)]], BeforeValidator(_or_none)
    ] = Field(max_length=10_000, description="the steps after which the task is solved; empty if there is none")

    @property
    def words(self) -> str:
        return " ".join(map(str, sorted(set(self.steps)))) or NONE

    @staticmethod
    def plain(text: str) -> dict[str, Any] | None:
        return None


SCHEMAS: Mapping[str, type[Plan | Division | Description | Judgement | Solving]] = {
    "plan": Plan,
    "divide": Division,
    "revise": Division,
    "align": Description,
    "verify": Judgement,
    "identify": Solving,
}
"""By operator."""


class _Untitled(GenerateJsonSchema):
    def field_title_should_be_set(self, schema: object) -> bool:
        return False


def schema_text(operator: str) -> str:
    """The JSON schema of the answer to an operator, for a prompt; empty for operators that ask for programs."""
    return untitled_schema(SCHEMAS[operator]) if operator in SCHEMAS else ""


def untitled_schema(kind: type[BaseModel]) -> str:
    """The JSON schema of an answer as a prompt shows it."""
    schema = kind.model_json_schema(schema_generator=_Untitled)
    return json.dumps({key: value for key, value in schema.items() if key not in ("title", "description")}, indent=1)
