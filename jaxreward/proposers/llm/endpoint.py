"""One call of a language model through litellm: what is sent, what comes back, for how long."""

from __future__ import annotations

import asyncio
import contextlib
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

from jaxreward.errors import CallProblem, InvalidSetting
from jaxreward.proposers.llm.call_errors import CallError, Origin, explain, no_key, unusable
from jaxreward.proposers.llm.llm_settings import ModelSettings
from jaxreward.proposers.llm.quiet_litellm import import_litellm
from jaxreward.proposers.prompts.prompt_builder import estimate_tokens
from jaxreward.proposers.replies.program_reply import REPLY_LIMIT

Message = Mapping[str, Any]
"""A message of the chat API; its content is text, or a list of text and image parts."""

IMAGE_TOKENS = 1_500
"""What an image is estimated to cost; providers count between 85 and about 1,600 for one of moderate size."""

# What a chat format adds to a message, and to a conversation.
_OVERHEAD = 16

_DRY_RUN_S = 30.0

_OPTIONS = ("max_tokens", "reasoning_effort", "temperature", "top_p", "seed")


# A count above so many times what was estimated, and so much more, is a mistake of the server's.
_TIMES, _MORE = 10, 100_000


@dataclass(frozen=True)
class Completion:
    """A reply: its text, the provider's reason for its end, and its counts of prompt and completion tokens.

    A count is None where the provider gives none that can be.
    """

    text: str
    finish: str
    usage: tuple[int | None, int | None] = (None, None)

    def tokens(self, prompt: int, longest: int) -> tuple[int, int, bool]:
        """Prompt and completion tokens, and whether one of them is an estimate.

        Args:
            prompt: the estimate for the prompt.
            longest: the most that was asked for; a reply that was cut there has as many at least.
        """
        reply = estimate_tokens(self.text)
        if self.finish == "length":
            reply = max(reply, longest)
        counted = _possible(self.usage[0], prompt, least=1)
        written = _possible(self.usage[1], longest + reply, least=1 if self.text else 0)
        estimated = counted is None or written is None
        return prompt if counted is None else counted, reply if written is None else written, estimated


def _possible(count: int | None, expected: int, least: int) -> int | None:
    return count if count is not None and least <= count <= _TIMES * expected + _MORE else None


class Endpoint:
    """Sends single calls, without retries.

    Args:
        settings: how to ask.
        note: shows, once a model, the options that it does not have.
        redact: takes keys out of whatever comes back, before it is shortened.
        on_endpoint: called before the first call of a model with a sentence that says where its calls go.
    """

    def __init__(
        self,
        settings: ModelSettings,
        note: Callable[[str], None] = lambda _: None,
        redact: Callable[[str], str] = lambda text: text,
        on_endpoint: Callable[[str], None] = lambda _: None,
    ) -> None:
        self.settings, self.note, self.redact, self.on_endpoint = settings, note, redact, on_endpoint
        self._supported: dict[str, frozenset[str]] = {}
        self._origins: dict[str, Origin] = {}
        self.shown: set[tuple[str, str]] = set()

    def origin(self, model: str) -> Origin:
        """The provider and the address of a model.

        Raises:
            InvalidSetting: litellm cannot tell a provider from the name.
        """
        if model not in self._origins:
            litellm = import_litellm()
            try:
                provider = litellm.get_llm_provider(model=model, api_base=self.settings.api_base)[1]
            except Exception:  # whatever a provider's configuration raises
                raise InvalidSetting(
                    f"litellm does not know whose model '{model}' is: put the provider before it, e.g. openai/{model} "
                    "for an OpenAI-compatible endpoint",
                    "model",
                ) from None
            missing = litellm.validate_environment(model=model).get("missing_keys", [])
            keys = [name for name in missing if name.endswith("KEY")]
            key = (keys or [f"{provider.upper()}_API_KEY"])[-1]
            self._origins[model] = Origin(model, self.settings.api_base, key, provider)
        return self._origins[model]

    def parameters(self, model: str, request_id: str) -> dict[str, Any]:
        """The settings that are given and that the model has."""
        given = self._given(request_id)
        if model not in self._supported:
            self._supported[model] = self._have(model, given)
        return {name: value for name, value in given.items() if name in self._supported[model]}

    async def call(
        self,
        model: str,
        messages: Sequence[Message],
        parameters: Mapping[str, Any],
        received: list[str] | None = None,
    ) -> Completion:
        """Send one call.

        Args:
            received: gets the pieces of a stream as they come, so that they are there if it breaks.

        Raises:
            CallError: there is no reply, or not within `timeout_s`.
        """
        received = [] if received is None else received
        try:
            async with asyncio.timeout(self.settings.timeout_s):
                return await self._call(model, messages, parameters, received)
        except CallError:
            raise
        except TimeoutError:
            limit = f"no complete reply within {self.settings.timeout_s:g} s"
            raise CallError("retry", limit, charged=True, problem=CallProblem.TIMEOUT) from None
        except Exception as error:
            raise explain(error, self.origin(model), self.redact) from error

    async def _call(
        self, model: str, messages: Sequence[Message], parameters: Mapping[str, Any], received: list[str]
    ) -> Completion:
        from jaxreward.proposers.llm import transport

        litellm, stream = import_litellm(), self.settings.stream
        largest = transport.LARGEST_STREAM if stream else transport.LARGEST_REPLY
        with transport.watched(largest, lambda request: self._announce(model, transport.address_of(request))):
            response = await litellm.acompletion(
                model=model,
                messages=[dict(message) for message in messages],
                api_base=self.settings.api_base,
                stream=stream,
                timeout=self.settings.timeout_s,
                max_retries=0,
                num_retries=0,
                **({"stream_options": {"include_usage": True}} if stream else {}),
                **parameters,
            )
        if stream:
            completion = await _listen(response, received)
            return Completion(clean(self.redact(completion.text)), clean(completion.finish), completion.usage)
        choices = getattr(response, "choices", None)
        if not choices:
            raise unusable("the response holds no choices")
        text = choices[0].message.content or ""
        finish = "length" if len(text) > REPLY_LIMIT else choices[0].finish_reason or ""
        return Completion(clean(self.redact(text)), clean(finish), _usage(getattr(response, "usage", None)))

    def _announce(self, model: str, address: str) -> None:
        """Say once where the calls of a model go."""
        if (model, address) not in self.shown:
            self.shown.add((model, address))
            self.on_endpoint(f"{model} is asked at {address}")

    async def dry_run(self, model: str) -> None:
        """Prepare a call and do not send it: `on_endpoint` gets the address.

        Raises:
            CallError: there is no key for it. Whatever else is wrong, the first call will tell.
        """
        from jaxreward.proposers.llm import transport

        prepared: list[Any] = []

        def stop(request: Any) -> NoReturn:
            prepared.append(request)
            raise transport.NotSent

        try:
            with transport.watched(0, stop):
                async with asyncio.timeout(_DRY_RUN_S):
                    await import_litellm().acompletion(
                        model=model, messages=[{"role": "user", "content": "hello"}], api_base=self.settings.api_base,
                        max_retries=0, num_retries=0,
                    )  # fmt: skip
        except Exception as error:
            problem = None if prepared else explain(error, self.origin(model), self.redact)
            if problem and problem.sentence == no_key(self.origin(model)).sentence:
                raise problem from error
        for request in prepared[:1]:
            # Some providers' code sends a request without a key, and lets the server refuse it.
            missing = import_litellm().validate_environment(model=model).get("missing_keys", [])
            only_key = bool(missing) and all(name.endswith("_API_KEY") for name in missing)
            if self.settings.api_base is None and only_key and not transport.has_key(request):
                raise no_key(self.origin(model))
            self._announce(model, transport.address_of(request))

    def _given(self, request_id: str) -> dict[str, Any]:
        s = self.settings
        seed = None if s.model_seed is None else (s.model_seed + zlib.crc32(request_id.encode())) % 2**31
        values = dict(zip(_OPTIONS, (s.max_tokens, s.reasoning_effort, s.temperature, s.top_p, seed)))
        return {name: value for name, value in values.items() if value is not None}

    def _have(self, model: str, given: Mapping[str, Any]) -> frozenset[str]:
        """The options that litellm accepts for a model, with their values and together."""
        self.origin(model)
        litellm = import_litellm()
        name, provider, _, _ = litellm.get_llm_provider(model=model, api_base=self.settings.api_base)
        taken: dict[str, Any] = {}
        for option, value in given.items():
            try:
                litellm.utils.get_optional_params(
                    model=name, custom_llm_provider=provider, drop_params=False, **taken, **{option: value}
                )
            except Exception:  # UnsupportedParamsError, or what a provider raises in its place
                flag = "model_seed" if option == "seed" else option
                shown = "" if option == "seed" else f" {value}"
                self.note(f"{model} does not take --{flag.replace('_', '-')}{shown}: left out")
            else:
                taken[option] = value
        return frozenset(taken)


async def _listen(stream: Any, received: list[str]) -> Completion:
    """Collect a stream, up to the longest reply that is read."""
    finish, usage, length = "", (None, None), 0
    try:
        async for chunk in stream:
            for choice in chunk.choices[:1]:
                piece = choice.delta.content or ""
                received.append(piece)
                length += len(piece)
                finish = choice.finish_reason or finish
            if (counted := _usage(getattr(chunk, "usage", None))) != (None, None):
                usage = counted
            if length >= REPLY_LIMIT:
                return Completion("".join(received), "length")
    finally:
        with contextlib.suppress(Exception):
            await stream.aclose()
    counted = any(getattr(chunk, "usage", None) for chunk in getattr(stream, "chunks", ()))
    # litellm ends any stream with "stop", also one that broke off or was a page of HTML.
    if getattr(stream, "received_finish_reason", finish) is None and not (counted and length):
        raise unusable("the stream ended before the reply did" if length else "the stream held no reply")
    # Without the provider's count litellm makes one up.
    return Completion("".join(received), finish, usage if counted else (None, None))


def _usage(usage: Any) -> tuple[int | None, int | None]:
    """The provider's counts; litellm says 0 for one that it did not get."""
    counts = _count(getattr(usage, "prompt_tokens", None)), _count(getattr(usage, "completion_tokens", None))
    return counts if any(counts) else (None, None)


def _count(value: Any) -> int | None:
    return value if isinstance(value, int) and value >= 0 else None


def clean(text: str) -> str:
    """At most `REPLY_LIMIT` characters of Unicode that can be stored: halves of surrogate pairs are replaced."""
    return text[:REPLY_LIMIT].encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def prompt_tokens(messages: Sequence[Message]) -> int:
    """An estimate of the tokens of messages, rather too many than too few."""
    total = _OVERHEAD
    for message in messages:
        content = message.get("content") or ""
        parts = [{"type": "text", "text": content}] if isinstance(content, str) else content
        total += _OVERHEAD
        for part in parts:
            total += estimate_tokens(part.get("text", "")) if part.get("type") == "text" else IMAGE_TOKENS
    return total
