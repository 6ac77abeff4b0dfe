"""Errors of calls: why there is no reply, and what to do next."""

from __future__ import annotations

import asyncio
import json
import math
import os
import re
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from typing import Any, Literal

from jaxreward.errors import CallProblem, causes
from jaxreward.proposers.llm.quiet_litellm import import_litellm
from jaxreward.sentences import RESUME, Sentence, mention

# `litellm.RateLimitError: `, `RateLimitError: OpenAIException - `, `APITimeoutError - `
_WRAPPING = re.compile(r"(litellm\.)?\w*(Error|Exception)(: | - )")

Kind = Literal["retry", "skip", "fatal"]
"""What to do: send the call again later, give this prompt up and go on with others, or end the run."""

_QUOTED = 240
"""Characters of a provider's own words that are shown."""

_POLICY = ("content_policy", "content policy", "content_filter", "content management policy", "usage policy")
_POLICY += ("safety system", "content filtering")
_LONG = ("context_length_exceeded", "context length", "context window", "too many tokens", "prompt is too long")
_NO_CREDIT = (
    "insufficient_quota",
    "exceeded your current quota",
    "credit balance",
    "billing_hard_limit",
    "payment required",
)
_MALFORMED = ("empty or invalid response", "unable to get json")
_NO_KEY = ("missing credentials", "no key is set", "missing api key", "api_key client option must be set")
_NO_KEY += ("api key not found", "no api key", "missing anthropic api key")


@dataclass(eq=False)
class CallError(Exception):
    """A call without a reply.

    Attributes:
        kind: what to do.
        sentence: what happened and, where the user can do something about it, what.
        finish: for `skip`, the reason in the provider's terms: `content_filter`, `context_window`.
        charged: whether it may have been charged.
        after_s: how long the endpoint asks to wait.
        problem: what happened, as a type.
    """

    kind: Kind
    sentence: str
    finish: str = ""
    charged: bool = False
    after_s: float | None = None
    problem: CallProblem = CallProblem.OTHER

    def __str__(self) -> str:
        return self.sentence


@dataclass(frozen=True)
class Origin:
    """Where calls of a model go, for sentences: `openai/x at http://localhost:8000/v1`."""

    model: str
    address: str | None = None
    key: str = ""
    """The variable with the key of its provider."""
    provider: str = ""
    """By litellm's name, e.g. `openai`."""

    def __str__(self) -> str:
        return f"{self.model} at {self.address}" if self.address else self.model


def unusable(reason: str) -> CallError:
    """A response that was no reply."""
    return CallError("retry", reason, charged=True, problem=CallProblem.NO_REPLY)


def explain(error: BaseException, origin: Origin, redact: Callable[[str], str] = lambda text: text) -> CallError:
    """What an exception of litellm means; `redact` takes keys out of what it says.

    litellm derives its exceptions in part from words in the message, and calls a lost connection, or a
    reply that it cannot read, an error 500; so the HTTP status and the kind of connection error are read
    from what caused it. A status that no response had counts as charged.
    """
    import httpx

    from jaxreward.proposers.llm.transport import TooLarge

    chain, said = list(causes(error)), _quoted(error, redact)
    if (large := next((e for e in chain if isinstance(e, TooLarge)), None)) is not None:
        return unusable(str(large))
    # Only what was really received: litellm makes up responses for its own exceptions.
    for e in chain:
        if isinstance(e, httpx.HTTPStatusError):
            return _of_status(e.response.status_code, e.response.headers, error, origin, said)
    for e in chain:
        if (found := _of_connection(e)) is not None:
            return found
    status, raw = getattr(error, "status_code", None), str(error).lower()
    if _any(_MALFORMED, raw) or any(isinstance(e, json.JSONDecodeError) for e in chain):
        return unusable(f"what came back is no reply of a chat API ({said})")
    if _any(_NO_KEY, raw):
        return no_key(origin)
    if isinstance(status, int) and status < 500:
        found = _of_status(status, getattr(error, "litellm_response_headers", None) or {}, error, origin, said)
        found.charged = True
        return found
    if isinstance(status, int):
        return unusable(f"what came back is no reply of a chat API ({said})")
    return CallError("retry", f"the call failed ({type(error).__name__}: {said})", charged=True)


def _of_status(status: int, headers: Mapping[str, str], error: BaseException, origin: Origin, said: str) -> CallError:
    litellm = import_litellm()
    text = f"{said} {getattr(error, 'body', '')}".lower()
    if isinstance(error, litellm.ContentPolicyViolationError) or (status == 400 and _any(_POLICY, text)):
        refusal = f"{origin.model} refuses this prompt by its content policy ({said})"
        return CallError("skip", refusal, "content_filter", problem=CallProblem.REFUSED)
    if isinstance(error, litellm.ContextWindowExceededError) or status == 413 or (status == 400 and _any(_LONG, text)):
        long = f"the prompt is too long for {origin.model} ({said})"
        return CallError("skip", long, "context_window", problem=CallProblem.TOO_LONG)
    if status == 402 or (status in (400, 429) and _any(_NO_CREDIT, text)):
        status = 402
    if status in (408, 504):
        late = f"a gateway gave up waiting for the model (HTTP {status})"
        return CallError("retry", late, charged=True, problem=CallProblem.TIMEOUT)
    if status == 429 or status >= 500:
        what = "too many requests" if status == 429 else "the endpoint is broken or overloaded"
        problem = CallProblem.RATE_LIMIT if status == 429 else CallProblem.OVERLOADED
        return CallError("retry", f"{what} (HTTP {status}: {said})", after_s=_after(headers), problem=problem)
    other = f"{origin} rejects the request (HTTP {status}: {said}): change or leave out the option it names"
    fatal = {
        401: (CallProblem.KEY, f"{origin} does not accept the key ({said}): {_set_key(origin)}"),
        402: (
            CallProblem.CREDIT,
            f"the account for {origin} has no credit left ({said}): add some, then go on with {RESUME}",
        ),
        403: (
            CallProblem.ACCESS,
            f"{origin} refuses access ({said}): use a key that may use this model, or another {mention('model')}",
        ),
        404: (
            CallProblem.NOT_FOUND,
            f"{origin} is not there ({said}): check {mention('model')} and {mention('api_base')}",
        ),
    }
    problem, sentence = fatal.get(status, (CallProblem.REJECTED, other))
    return CallError("fatal", Sentence(sentence), problem=problem)


def _of_connection(e: BaseException) -> CallError | None:
    """The error for one exception in a chain, if it tells what became of the connection."""
    import httpx

    if isinstance(e, httpx.ConnectTimeout):
        return CallError("retry", "the endpoint does not answer the connection", problem=CallProblem.UNREACHABLE)
    if isinstance(e, httpx.ConnectError):
        return CallError("retry", f"the endpoint cannot be reached ({_cause(e)})", problem=CallProblem.UNREACHABLE)
    if isinstance(e, httpx.TimeoutException | TimeoutError | asyncio.TimeoutError):
        return CallError("retry", "no reply in time", charged=True, problem=CallProblem.TIMEOUT)
    if isinstance(e, httpx.ReadError | httpx.RemoteProtocolError | httpx.NetworkError):
        broke = "the connection broke before the reply was complete"
        return CallError("retry", broke, charged=True, problem=CallProblem.UNREACHABLE)
    return None


def no_key(origin: Origin) -> CallError:
    """There is no key to send."""
    local = "; an endpoint of your own that wants none takes any value" if origin.address else ""
    return CallError("fatal", f"there is no key for {origin}: {_set_key(origin)}{local}", problem=CallProblem.NO_KEY)


def _set_key(origin: Origin) -> str:
    return f"set {origin.key or 'its key'} in the environment or in a .env file"


def _any(words: tuple[str, ...], text: str) -> bool:
    return any(word in text for word in words)


def _after(headers: Mapping[str, str]) -> float | None:
    """Seconds that `Retry-After` asks for: a number, or a date."""
    value = next((v for k, v in headers.items() if k.lower() == "retry-after"), "").strip()
    try:
        seconds = float(value)
    except ValueError:
        try:
            seconds = parsedate_to_datetime(value).timestamp() - time.time()
        except (ValueError, TypeError, IndexError, OverflowError, OSError):
            return None
    return max(0.0, seconds) if math.isfinite(seconds) else None


def _cause(e: BaseException) -> str:
    """`Connection refused` and the like, from the operating system's error."""
    cause: Any = e.__cause__ or e
    cause = getattr(cause, "os_error", None) or cause
    number = getattr(cause, "errno", None)
    return os.strerror(number) if number and number > 0 else _short(getattr(cause, "strerror", None) or str(cause))


def _quoted(error: BaseException, redact: Callable[[str], str]) -> str:
    """A provider's words without litellm's wrapping, on one line."""
    text = " ".join(redact(str(getattr(error, "message", "") or error)).split())
    while match := _WRAPPING.match(text):
        text = text[match.end() :]
    return _short(redact(_message_in(text)))


def _message_in(text: str) -> str:
    """The message of an error in JSON; an HTML page is not quoted."""
    if text.startswith("{"):
        try:
            body = json.JSONDecoder().raw_decode(text)[0]
            error = body.get("error", body)
            text = str(error.get("message", text) if isinstance(error, dict) else error)
        except ValueError:
            pass
    text = text.partition(" Traceback (most recent call last)")[0]
    return "a page of HTML" if re.search(r"<(html|!doctype)", text[:200], re.IGNORECASE) else text


def _short(text: str) -> str:
    text = " ".join(text.split()) or "no reason given"
    return text if len(text) <= _QUOTED else text[: _QUOTED - 1] + "…"
