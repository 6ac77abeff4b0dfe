"""An OpenAI-compatible chat endpoint on loopback, scripted by the test, faults included."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

BOM = b"\xef\xbb\xbf"
PIECE = 64
"""Characters in a chunk of a streamed answer."""


@dataclass(frozen=True)
class Answer:
    """A reply of the model.

    Attributes:
        text: what it says; None for a message without content.
        finish: `stop`, `length`, `content_filter`, ...
        usage: prompt and completion tokens; None to say nothing of them.
        delay_s: silence before it.
        drip_s: silence before each chunk of a stream.
        cut_after: bytes of the body (chunks of a stream) after which the connection breaks.
        choices: whether there is a choice at all.
        raw_json: whether to write the text as it is between the quotes of the JSON body.
        bom: whether the body starts with a byte order mark.
    """

    text: str | None = ""
    finish: str = "stop"
    usage: tuple[int, int] | None = (100, 50)
    delay_s: float = 0.0
    drip_s: float = 0.0
    cut_after: int | None = None
    choices: bool = True
    raw_json: bool = False
    bom: bool = False


@dataclass(frozen=True)
class Fault:
    """Anything else that a server may send back.

    Attributes:
        status: of the HTTP response.
        body: sent as it is; by default an error in OpenAI's form that says `message`.
        hang: whether to accept the request and stay silent.
        drop: whether to close the connection without a word.
    """

    status: int = 500
    message: str = "something broke"
    code: str | None = None
    type: str = "test"
    body: bytes | None = None
    content_type: str = "application/json"
    headers: Mapping[str, str] = field(default_factory=dict)
    hang: bool = False
    drop: bool = False


Script = Callable[[dict[str, Any], int], Answer | Fault]
"""What to do with a request: its JSON body and how many came before it."""


def in_turn(*steps: Answer | Fault) -> Script:
    """One step after another; the last one for all that follow."""
    return lambda _, n: steps[min(n, len(steps) - 1)]


@dataclass
class Seen:
    """A request as it arrived; names of headers in lower case."""

    path: str
    headers: dict[str, str]
    body: dict[str, Any]


class ChatServer:
    """Serves a script in threads; use as a context manager."""

    def __init__(self, script: Script | Sequence[Answer | Fault]) -> None:
        self.script: Script = script if callable(script) else in_turn(*script)
        self.seen: list[Seen] = []
        self.in_flight = self.most_in_flight = 0
        self.over = threading.Event()
        self.lock = threading.Lock()
        chat = self

        class Handler(_Handler):
            server_of_chat = chat

        self.http = _Server(("127.0.0.1", 0), Handler)
        self.thread = threading.Thread(target=self.http.serve_forever, args=(0.02,), daemon=True)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.http.server_address[1]}/v1"

    @property
    def calls(self) -> int:
        return len(self.seen)

    def __enter__(self) -> ChatServer:
        self.thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.over.set()
        self.http.shutdown()
        self.http.server_close()
        self.thread.join()


def closed_port() -> int:
    """A port of loopback on which nobody listens."""
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 256

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that went away is nothing to report."""


class _Handler(BaseHTTPRequestHandler):
    server_of_chat: ChatServer
    protocol_version = "HTTP/1.1"
    wbufsize = -1

    def log_message(self, format: str, *args: Any) -> None:
        return None

    def do_POST(self) -> None:
        chat = self.server_of_chat
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        with chat.lock:
            number = len(chat.seen)
            chat.seen.append(Seen(self.path, {k.lower(): v for k, v in self.headers.items()}, body))
            chat.in_flight += 1
            chat.most_in_flight = max(chat.most_in_flight, chat.in_flight)
        try:
            step = chat.script(body, number)
            if isinstance(step, Fault):
                self.fail(step)
            elif body.get("stream"):
                self.stream(step, body)
            else:
                self.answer(step, body)
            self.wfile.flush()
        finally:
            with chat.lock:
                chat.in_flight -= 1

    def wait(self, seconds: float) -> None:
        self.server_of_chat.over.wait(seconds)

    def hang_up(self) -> None:
        self.wfile.flush()
        self.close_connection = True
        self.connection.shutdown(socket.SHUT_RDWR)

    def fail(self, fault: Fault) -> None:
        if fault.hang:
            self.wait(60.0)
        if fault.hang or fault.drop:
            return self.hang_up()
        error = {"error": {"message": fault.message, "type": fault.type, "code": fault.code}}
        self.reply(fault.status, json.dumps(error).encode() if fault.body is None else fault.body, fault)

    def reply(self, status: int, payload: bytes, fault: Fault | None = None, cut_after: int | None = None) -> None:
        self.send_response(status)
        self.send_header("Content-Type", fault.content_type if fault else "application/json")
        self.send_header("Content-Length", str(len(payload)))
        for name, value in (fault.headers if fault else {}).items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(payload[:cut_after])
        if cut_after is not None:
            self.hang_up()

    def answer(self, answer: Answer, body: dict[str, Any]) -> None:
        self.wait(answer.delay_s)
        message = {"role": "assistant", "content": "@" if answer.raw_json else answer.text}
        choice = {"index": 0, "message": message, "finish_reason": answer.finish}
        data = {**_head(body, "chat.completion"), "choices": [choice] if answer.choices else []}
        if answer.usage:
            data["usage"] = _usage(answer.usage)
        self.reply(200, (BOM if answer.bom else b"") + _encoded(data, answer), cut_after=answer.cut_after)

    def stream(self, answer: Answer, body: dict[str, Any]) -> None:
        self.wait(answer.delay_s)
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        if answer.bom:
            self.wfile.write(b"3\r\n" + BOM + b"\r\n")
        text = answer.text or ""
        head = _head(body, "chat.completion.chunk")
        pieces = (
            []
            if not answer.choices
            else [text]
            if answer.raw_json
            else [text[i : i + PIECE] for i in range(0, len(text), PIECE)]
        )
        if answer.choices:  # the first event carries the role and no text
            first = {"index": 0, "delta": {"role": "assistant", "content": ""}, "finish_reason": None}
            self.chunk(_encoded({**head, "choices": [first]}, answer))
        for number, piece in enumerate(pieces):
            if number == answer.cut_after:
                return self.hang_up()
            self.wait(answer.drip_s)
            delta = {"content": "@" if answer.raw_json else piece}
            self.chunk(_encoded({**head, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]}, answer))
        if answer.choices:
            last = {"index": 0, "delta": {}, "finish_reason": answer.finish}
            self.chunk(_encoded({**head, "choices": [last]}, Answer()))
        if answer.usage and (body.get("stream_options") or {}).get("include_usage"):
            self.chunk(_encoded({**head, "choices": [], "usage": _usage(answer.usage)}, Answer()))
        self.chunk(b"[DONE]")
        self.wfile.write(b"0\r\n\r\n")

    def chunk(self, payload: bytes) -> None:
        line = b"data: " + payload + b"\n\n"
        self.wfile.write(f"{len(line):x}\r\n".encode() + line + b"\r\n")
        self.wfile.flush()


def _head(body: dict[str, Any], kind: str) -> dict[str, Any]:
    return {"id": "chatcmpl-1", "object": kind, "created": 1_700_000_000, "model": body.get("model", "")}


def _usage(usage: tuple[int, int]) -> dict[str, int]:
    return {"prompt_tokens": usage[0], "completion_tokens": usage[1], "total_tokens": sum(usage)}


def _encoded(data: dict[str, Any], answer: Answer) -> bytes:
    text = json.dumps(data)
    if answer.raw_json:
        text = text.replace('"@"', f'"{answer.text}"')
    return text.encode()
