"""An answer to a request for words: a JSON object in the reply, validated, in the form that strategies read."""

from __future__ import annotations

import json
import re
from typing import Any

from pydantic import ValidationError

from jaxreward.proposers.replies.fences import fences
from jaxreward.proposers.replies.program_reply import REPLY_LIMIT, empty_reply, legible
from jaxreward.proposers.replies.reasoning import without_reasoning
from jaxreward.proposers.replies.schemas import SCHEMAS
from jaxreward.records import Failure

_OBJECT = re.compile(r'\{\s*+"')
_DECODER = json.JSONDecoder(strict=False)

_HINTS = {
    "plan": "reply with one JSON object that has components, each with a name and a purpose",
    "align": "reply with one JSON object that has a description of at most four sentences",
    "verify": "reply with one JSON object that has a reasoning and a score from -1 to 1",
}


def read_words(operator: str, text: str, finish: str = "") -> str | Failure:
    """An answer to `plan`, `align` or `verify` as words, or a failure of stage `reply`.

    The JSON object may stand in a fence and between prose; of several, the last valid one counts. A reply without
    one is read in the plain form.

    Args:
        operator: what was asked for.
        text: the reply; its first `REPLY_LIMIT` characters are read.
        finish: the provider's reason for its end; `content_filter` makes an empty reply a refusal.
    """
    schema = SCHEMAS[operator]
    said = without_reasoning(legible(text[:REPLY_LIMIT]))
    if not said.strip():
        return empty_reply(finish, _HINTS[operator])
    documents, message = _objects(said)
    if not documents and not message:
        documents = [schema.plain(said)]
    for document in filter(None, documents):
        try:
            return schema.model_validate(document).words
        except ValidationError as error:
            message = _sentence(error)
    message = message or "the reply holds no JSON object of the form asked for"
    message += ": it was cut off at the token limit" if finish == "length" else ""
    return Failure(stage="reply", message=message, hint=_HINTS[operator])


def _objects(text: str) -> tuple[list[dict[str, Any] | None], str]:
    """The JSON objects in a text, the last first, at most one of each fence; and why one cannot be decoded."""
    found, problem = [], ""
    for block in (text, *(fence.text for fence in fences(text))):
        if start := _OBJECT.search(block):
            try:
                found.insert(0, _DECODER.raw_decode(block, start.start())[0])
            except json.JSONDecodeError as error:
                problem = f"the JSON in the reply cannot be read: {error.msg} (line {error.lineno} of it)"
            except (ValueError, RecursionError):
                problem = "the JSON in the reply cannot be read"
    return found, problem


def _sentence(error: ValidationError) -> str:
    """The first mistake: where it is and what is wrong."""
    first = error.errors(include_url=False, include_context=False, include_input=False)[0]
    return f"the reply is invalid: {'.'.join(map(str, first['loc']))}: {first['msg']}"
