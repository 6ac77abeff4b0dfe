"""An answer to a request for words: a JSON object in the reply, validated, in the form that strategies read."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from jaxreward.proposers.replies.program_reply import REPLY_LIMIT, empty_reply, legible
from jaxreward.proposers.replies.reasoning import without_reasoning
from jaxreward.proposers.replies.schemas import SCHEMAS
from jaxreward.records import Failure

_M = TypeVar("_M", bound=BaseModel)
_OBJECT = re.compile(r'\{\s*+"')
_DECODER = json.JSONDecoder(strict=False)

_FAILURES = 50
"""Places of a reply, at most, that look like an object and are none."""

_HINTS = {
    "plan": "reply with one JSON object that has components, each with a name and a purpose",
    "divide": "reply with one JSON object that has subtasks, each with a name and what is to be done as its purpose",
    "revise": "reply with one JSON object that has subtasks, each with a name and what is to be done as its purpose",
    "align": "reply with one JSON object that has a description of at most four sentences",
    "verify": "reply with one JSON object that has a reasoning and a score from -1 to 1",
    "identify": "reply with one JSON object that has a reasoning and a list of steps, each a number from 1 on",
}


def read_words(operator: str, text: str, finish: str = "") -> str | Failure:
    """An answer to a request for words, in the form of its schema, or a failure of stage `reply`.

    The JSON object may stand in a fence and between prose; of several, the last valid one counts. A reply without
    one that has a field of the schema is read in the plain form.

    Args:
        operator: what was asked for.
        text: the reply; its first `REPLY_LIMIT` characters are read.
        finish: the provider's reason for its end; `content_filter` makes an empty reply a refusal.
    """
    schema = SCHEMAS[operator]
    found = read_object(schema, text, _HINTS[operator], finish, schema.plain)
    return found if isinstance(found, Failure) else found.words


def read_object(
    schema: type[_M],
    text: str,
    hint: str,
    finish: str = "",
    plain_form: Callable[[str], dict[str, Any] | None] = lambda text: None,
) -> _M | Failure:
    """The JSON object of a schema in a reply, or a failure of stage `reply` with a hint; as `read_words`."""
    said = without_reasoning(legible(text[:REPLY_LIMIT]))
    if not said.strip():
        return empty_reply(finish, hint)
    fields = schema.model_fields
    objects, message = _objects(said)
    answers = [found for found in objects if found.keys() & fields.keys()]
    if answers or not (finish == "length" or any(f'"{name}"' in said for name in fields)):
        message = ""  # what cannot be decoded is not the answer
    plain = None if answers or message else plain_form(said)
    for answer in reversed(answers or ([plain] if plain else objects)):
        try:
            return schema.model_validate(answer)
        except ValidationError as error:
            message = message or _sentence(error)
    message = message or "the reply holds no JSON object of the form asked for"
    message += ": it was cut off at the token limit" if finish == "length" else ""
    return Failure(stage="reply", message=message, hint=hint)


def _objects(text: str) -> tuple[list[dict[str, Any]], str]:
    """The JSON objects in a text in order, fenced or not, and why one cannot be decoded."""
    found, problem, at, failures = list[dict[str, Any]](), "", 0, 0
    while failures < _FAILURES and (start := _OBJECT.search(text, at)):
        at = start.end()
        try:
            value, at = _DECODER.raw_decode(text, start.start())
            found.append(value)
        except json.JSONDecodeError as error:
            problem = problem or f"the JSON in the reply cannot be read: {error.msg} (line {error.lineno} of it)"
            failures += 1
        except (ValueError, RecursionError):
            problem = problem or "the JSON in the reply cannot be read"
            failures += 1
    return found, problem


def _sentence(error: ValidationError) -> str:
    """The first mistake: where it is and what is wrong."""
    first = error.errors(include_url=False, include_context=False, include_input=False)[0]
    return f"the reply is invalid: {'.'.join(map(str, first['loc']))}: {first['msg']}"
