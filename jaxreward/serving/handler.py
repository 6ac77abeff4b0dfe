"""The answers to requests: `GET` and `HEAD` of a fixed set of addresses, below which nothing is looked up by path.

Names of runs and files in an address are compared with those that the catalogue lists; no path is made of them.
"""

from __future__ import annotations

import html
import json
import os
import sys
import traceback
from collections.abc import Callable
from functools import cache
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler
from importlib import resources
from pathlib import Path
from typing import Any, BinaryIO
from urllib.parse import parse_qs, urlsplit

from jaxreward import files
from jaxreward.errors import UserError
from jaxreward.formatting import mapped, printable
from jaxreward.serving.byte_range import Unsatisfiable, byte_range
from jaxreward.serving.catalogue import COMPARISON, Catalogue
from jaxreward.serving.gate import Gate
from jaxreward.serving.run_row import PROGRAM, films_in, name_of

_OURS = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; "
    "media-src 'self'; frame-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
"""Content security policy of the pages around a report: no script but that of the server."""

_REPORT = (
    "sandbox allow-scripts; default-src 'none'; img-src data:; media-src data:; style-src 'unsafe-inline'; "
    "script-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; frame-ancestors 'self'"
)
"""Of a report, which holds texts of models and its own script: an origin of its own, without requests."""

_DATA = "default-src 'none'; img-src 'self'; media-src 'self'; style-src 'unsafe-inline'; frame-ancestors 'none'"
"""Of everything else."""

_ASSETS = {
    "index.js": ("jaxreward.serving", "text/javascript"), "run.js": ("jaxreward.serving", "text/javascript"),
    "shared.js": ("jaxreward.serving", "text/javascript"),
    "serve.css": ("jaxreward.serving", "text/css"), "report.css": ("jaxreward.reports", "text/css"),
}  # fmt: skip
_TYPES = {".gif": "image/gif", ".mp4": "video/mp4", ".png": "image/png", ".md": "text/plain; charset=utf-8"}
_BLOCK = 1 << 16


class Handler(BaseHTTPRequestHandler):
    """Answers one connection of a `Server`."""

    server: Any
    """The `server.Server`, with a `catalogue` and a `gate`."""

    protocol_version = "HTTP/1.1"
    server_version, sys_version = "jaxreward", ""
    timeout = 60  # seconds without a request, after which a connection is closed

    def do_GET(self) -> None:
        if self.headers.get("Content-Length") or self.headers.get("Transfer-Encoding"):
            self.close_connection = True  # a body, which is not read
        self._begun = False
        try:
            self._answer()
        except ConnectionError:
            raise
        except Exception as error:
            if not isinstance(error, UserError | OSError):
                traceback.print_exc(file=sys.stderr)
            if self._begun:  # an answer that cannot be completed
                self.close_connection = True
            elif isinstance(error, UserError | OSError):
                self._refuse(HTTPStatus.NOT_FOUND, " ".join(str(error).split()))
            else:
                self._refuse(HTTPStatus.INTERNAL_SERVER_ERROR, "the server failed; its output has the traceback")

    do_HEAD = do_GET

    def log_message(self, format: str, *args: Any) -> None:
        """Requests are not logged: their addresses may hold the token."""

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """The answer to what is no request, as text."""
        self.close_connection = True
        self._refuse(HTTPStatus(code), message or "")

    # ---- addresses

    def _answer(self) -> None:
        gate: Gate = self.server.gate
        if not gate.knows_host(self.headers.get("Host")):
            return self._refuse(
                HTTPStatus.MISDIRECTED_REQUEST, "this server is reached as localhost: open the address that it printed"
            )
        try:
            address = urlsplit(self.path)
        except ValueError:
            return self._refuse(HTTPStatus.BAD_REQUEST, "this is no address")
        token = parse_qs(address.query).get("token", [""])[0]
        if not gate.admits(self.headers.get("Cookie"), token):
            return self._refuse(
                HTTPStatus.UNAUTHORIZED, "open the address that `jaxreward serve` printed, with its token"
            )
        if gate.token and token:
            return self._enter(gate)
        parts = [name_of(part) for part in address.path.split("/")[1:]]
        found = self._places(parts)
        if found is None:
            return self._refuse(HTTPStatus.NOT_FOUND, "there is nothing at this address")
        found()

    def _enter(self, gate: Gate) -> None:
        """Keep the token of the address in a cookie and go to the list without it. By a page and not by a redirect,
        with which a browser that comes from another site would not send the cookie."""
        page = (
            b'<!doctype html><title>jaxreward</title><link rel="icon" href="data:,">'  # or a browser asks for one
            b'<meta http-equiv="refresh" content="0; url=./">'
        )
        self._send(page, "text/html; charset=utf-8", policy=_OURS, extra={"Set-Cookie": gate.set_cookie()})

    def _places(self, parts: list[str]) -> Callable[[], None] | None:
        """What answers at an address; None where nothing does."""
        catalogue: Catalogue = self.server.catalogue
        match parts:
            case [""]:
                return lambda: self._asset("index.html")
            case [name] if name in _ASSETS:
                return lambda: self._asset(name)
            case ["runs.json"]:
                return lambda: self._json(catalogue.listing())
            case ["run", name, *rest] if (path := catalogue.runs().get(name)) is not None:
                return self._of_run(rest, name, path)
            case ["comparison", name, file] if file in COMPARISON and (path := catalogue.comparisons().get(name)):
                return lambda: self._file(path / file)
        return None

    def _of_run(self, parts: list[str], name: str, path: Path) -> Callable[[], None] | None:
        match parts:
            case [""]:
                return lambda: self._asset("run.html")
            case ["state.json"]:
                return lambda: self._json(self.server.catalogue.state(name, path))
            case ["report.html"]:
                return lambda: self._report(path)
            case ["program.py"]:
                return lambda: self._text(printable(files.read_text(path / PROGRAM)))
            case ["films", film] if film in films_in(path):
                return lambda: self._file(path / film)
        return None

    # ---- contents

    def _asset(self, name: str) -> None:
        package, kind = _ASSETS.get(name, ("jaxreward.serving", "text/html"))
        self._send(_asset(package, name), f"{kind}; charset=utf-8", policy=_OURS)

    def _json(self, value: Any) -> None:
        shown = mapped(value, lambda x: printable(x) if isinstance(x, str) else x)
        self._send(json.dumps(shown, separators=(",", ":"), allow_nan=False).encode(), "application/json")

    def _text(self, text: str) -> None:
        self._send(text.encode(), "text/plain; charset=utf-8")

    def _report(self, path: Path) -> None:
        try:
            page = self.server.catalogue.page(path)
        except (UserError, ImportError) as error:
            page = _sentence(printable(" ".join(str(error).split())))
        self._send(page, "text/html; charset=utf-8", policy=_REPORT)

    def _file(self, path: Path) -> None:
        """A regular file, or the range of it that is asked for."""
        with files.open_binary(path) as file:
            status = os.fstat(file.fileno())
            tag = f'"{status.st_ino:x}-{status.st_size:x}-{status.st_mtime_ns:x}"'
            asked = self.headers.get("Range") if self.headers.get("If-Range", tag) == tag else None
            try:
                part = byte_range(asked, status.st_size)
            except Unsatisfiable:
                said = {"Content-Range": f"bytes */{status.st_size}"}
                return self._send(b"", "text/plain", HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE, extra=said)
            begin, end = part or (0, status.st_size)
            extra = {"Accept-Ranges": "bytes", "ETag": tag}
            if part is not None:
                extra["Content-Range"] = f"bytes {begin}-{end - 1}/{status.st_size}"
            code = HTTPStatus.OK if part is None else HTTPStatus.PARTIAL_CONTENT
            self._head(code, _TYPES[path.suffix], end - begin, extra=extra)
            if self.command != "HEAD":
                file.seek(begin)
                self._copy(file, end - begin)

    def _copy(self, file: BinaryIO, size: int) -> None:
        while size > 0 and (block := file.read(min(_BLOCK, size))):
            self.wfile.write(block)
            size -= len(block)
        if size:  # it was cut meanwhile, and the length that was promised cannot be kept
            self.close_connection = True

    def _refuse(self, code: HTTPStatus, sentence: str) -> None:
        self._send(f"{printable(sentence)}\n".encode(errors="replace"), "text/plain; charset=utf-8", code)

    # ---- what is sent

    def _send(
        self, body: bytes, kind: str, code: HTTPStatus = HTTPStatus.OK, *,
        policy: str = _DATA, extra: dict[str, str] | None = None,
    ) -> None:  # fmt: skip
        self._head(code, kind, len(body), policy, extra)
        if self.command != "HEAD":
            self.wfile.write(body)

    def _head(
        self, code: HTTPStatus, kind: str, size: int, policy: str = _DATA, extra: dict[str, str] | None = None
    ) -> None:
        self._begun = True
        self.send_response(code)
        headers = {
            "Content-Type": kind, "Content-Length": str(size), "Content-Security-Policy": policy,
            "Cache-Control": "no-store", "Referrer-Policy": "no-referrer", "X-Content-Type-Options": "nosniff",
            "Cross-Origin-Resource-Policy": "same-origin", "Cross-Origin-Opener-Policy": "same-origin",
        }  # fmt: skip
        for name, value in {**headers, **(extra or {})}.items():
            self.send_header(name, value)
        if self.close_connection:
            self.send_header("Connection", "close")
        self.end_headers()


@cache
def _asset(package: str, name: str) -> bytes:
    return (resources.files(package) / "web" / name).read_bytes()


def _sentence(text: str) -> bytes:
    """A page with a sentence in place of a report."""
    return (
        '<!doctype html><html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">'
        "<title>no report</title><style>:root { color-scheme: light dark; } body { font: 16px/1.55 system-ui, "
        "sans-serif; max-width: 44rem; margin: 3rem auto; padding: 0 1rem; overflow-wrap: anywhere; }</style>"
        f"<p>There is no report of this run: {html.escape(text)}</p>"
    ).encode()
