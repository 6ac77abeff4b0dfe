"""HTTP below litellm: the address of a call is reported before it is sent, and no response is larger than a limit.

Whatever client a provider's code uses, its requests go through one of a few transports of httpx. These are wrapped once
in a process; the wrapper does something only within `watched`, in the task of a call.

A response is asked for without compression. Where one is compressed all the same, it is decompressed here, in pieces
that are counted: a megabyte of gzip can hold a gigabyte.
"""

from __future__ import annotations

import inspect
import zlib
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import cache
from typing import Any

import httpx

LARGEST_REPLY, LARGEST_STREAM = 16 << 20, 64 << 20
"""Bytes of a response as a whole and of a stream, decompressed. A stream has some 300 bytes for every token."""

LARGEST_EVENT = 4 << 20
"""Bytes of an event of a stream: what reads them keeps an event together, copying it with every piece that comes."""

_PIECE = 1 << 16


class TooLarge(httpx.DecodingError):
    """A response that is larger than the limit, or compressed in a way that was not asked for."""


class NotSent(Exception):
    """A request that was prepared, and kept from being sent."""


@dataclass(frozen=True)
class _Watch:
    largest: int
    before: Callable[[httpx.Request], None]


_WATCH: ContextVar[_Watch | None] = ContextVar("watch", default=None)


@contextmanager
def watched(largest: int, before: Callable[[httpx.Request], None]) -> Iterator[None]:
    """Bound the responses to requests of this task.

    Args:
        largest: bytes of a response's body, decompressed.
        before: called with each request before it is sent; what it raises keeps it from being sent.
    """
    token = _WATCH.set(_Watch(largest, before))
    try:
        yield
    finally:
        _WATCH.reset(token)


def address_of(request: httpx.Request) -> str:
    """Scheme, host and port of where a request goes; never a path or a password, which may be a key."""
    return str(httpx.URL(scheme=request.url.scheme, host=request.url.host, port=request.url.port))


def has_key(request: httpx.Request) -> bool:
    """Whether a request carries a key, as far as its headers and its address tell."""
    said = [value for name, value in request.headers.items() if name in _KEYS]
    said += [value for name, value in request.url.params.items() if "key" in name.lower()]
    return any(value.removeprefix("Bearer").strip() not in ("", "None") for value in said)


_KEYS = ("authorization", "x-api-key", "api-key", "x-goog-api-key", "ocp-apim-subscription-key")


@cache
def wrap_transports() -> None:
    """Have the transports of httpx and of litellm look for `watched`."""
    from litellm.llms.custom_httpx.aiohttp_transport import LiteLLMAiohttpTransport

    for kind in (httpx.AsyncHTTPTransport, LiteLLMAiohttpTransport):
        kind.handle_async_request = _wrapped(kind.handle_async_request)
    httpx.HTTPTransport.handle_request = _wrapped(httpx.HTTPTransport.handle_request)


def _wrapped(handle: Callable[..., Any]) -> Callable[..., Any]:
    """A transport's method for requests, plain or a coroutine."""

    async def bounded(response: Awaitable[httpx.Response], largest: int) -> httpx.Response:
        return _bounded(await response, largest)

    def handle_request(self: Any, request: httpx.Request) -> Any:
        watch = _WATCH.get()
        if watch is None:
            return handle(self, request)
        watch.before(request)
        request.headers["Accept-Encoding"] = "identity"
        response = handle(self, request)
        asynchronous = inspect.isawaitable(response)
        return bounded(response, watch.largest) if asynchronous else _bounded(response, watch.largest)

    return handle_request


def _bounded(response: httpx.Response, largest: int) -> httpx.Response:
    """The response with a body that is decompressed, and that breaks off with `TooLarge` after so many bytes."""
    of_events = response.headers.get("content-type", "").startswith("text/event-stream")
    decoder = _Decoder(response.headers.get("content-encoding", ""), largest, of_events)
    headers = [(k, v) for k, v in response.headers.raw if k.lower() not in (b"content-encoding", b"content-length")]
    stream = response.stream
    body = _AsyncBody(stream, decoder) if isinstance(stream, httpx.AsyncByteStream) else _Body(stream, decoder)
    return httpx.Response(response.status_code, headers=headers, stream=body, extensions=response.extensions)


class _Decoder:
    """Pieces of a body, decompressed and counted."""

    def __init__(self, encoding: str, largest: int, of_events: bool) -> None:
        self.encoding, self.largest, self.of_events = encoding.strip().lower(), largest, of_events
        self._event = 0
        self._left = self._left_raw = largest
        self._inflate: Any = None
        if self.encoding in ("gzip", "x-gzip"):
            self._inflate = zlib.decompressobj(zlib.MAX_WBITS | 16)
        elif self.encoding == "deflate":
            self._inflate = zlib.decompressobj()

    def pieces(self, data: bytes) -> Iterator[bytes]:
        if self._inflate is None:
            if self.encoding not in ("", "identity"):
                raise TooLarge(f"the response is compressed by {self.encoding[:20]!r}, which was not asked for")
            self._count(data)
            yield data
            return
        self._left_raw -= len(data)
        if self._left_raw < 0:
            self._refuse()
        while data and not self._inflate.eof:
            piece = self._inflated(data)
            data = self._inflate.unconsumed_tail
            self._count(piece)
            if piece:
                yield piece

    def _inflated(self, data: bytes) -> bytes:
        try:
            return self._inflate.decompress(data, _PIECE)
        except zlib.error as error:
            if self.encoding == "deflate" and self._left == self.largest:  # some servers leave the header out
                self._inflate, self.encoding = zlib.decompressobj(-zlib.MAX_WBITS), "raw deflate"
                return self._inflated(data)
            raise httpx.DecodingError(str(error)) from error

    def _count(self, piece: bytes) -> None:
        self._left -= len(piece)
        if self._left < 0:
            self._refuse()
        if self.of_events:
            end = max(piece.rfind(mark) for mark in (b"\n\n", b"\r\n\r\n", b"\r\r"))
            self._event = len(piece) - end if end >= 0 else self._event + len(piece)
            if self._event > LARGEST_EVENT:
                raise TooLarge(f"an event of the stream is larger than {LARGEST_EVENT / (1 << 20):g} MiB")

    def _refuse(self) -> None:
        raise TooLarge(f"the response is larger than {self.largest / (1 << 20):g} MiB")


@dataclass
class _AsyncBody(httpx.AsyncByteStream):
    inner: Any
    decoder: _Decoder

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for data in self.inner:
            for piece in self.decoder.pieces(data):
                yield piece

    async def aclose(self) -> None:
        await self.inner.aclose()


@dataclass
class _Body(httpx.SyncByteStream):
    inner: Any
    decoder: _Decoder

    def __iter__(self) -> Iterator[bytes]:
        for data in self.inner:
            yield from self.decoder.pieces(data)

    def close(self) -> None:
        self.inner.close()
