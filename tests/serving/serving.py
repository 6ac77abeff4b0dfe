"""A server on a free port of loopback in a thread, and a client that sends what no browser would."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.client import HTTPConnection, HTTPMessage
from pathlib import Path
from typing import Any
from urllib.parse import quote

from jaxreward.serving import Catalogue, Server


@dataclass
class Answer:
    status: int
    headers: HTTPMessage
    body: bytes

    @property
    def text(self) -> str:
        return self.body.decode()

    @property
    def json(self) -> Any:
        return json.loads(self.body)


@dataclass
class Client:
    port: int

    def get(self, address: str, *, method: str = "GET", **headers: str) -> Answer:
        """Ask for an address exactly as it is written; `_` in the name of a header is a dash."""
        connection = HTTPConnection("127.0.0.1", self.port, timeout=30)
        host = headers.pop("Host", f"127.0.0.1:{self.port}")
        try:
            connection.putrequest(method, address, skip_host=True, skip_accept_encoding=True)
            for name, value in {"Host": host, **headers}.items():
                connection.putheader(name.replace("_", "-"), value)
            connection.endheaders()
            reply = connection.getresponse()
            return Answer(reply.status, reply.headers, reply.read())
        finally:
            connection.close()


def of(run: str, part: str = "") -> str:
    """The address of a part of a run."""
    return f"/run/{quote(run, safe='')}/{part}"


@contextmanager
def serving(*folders: Path, token: str = "", host: str = "127.0.0.1") -> Iterator[Client]:
    with Server(Catalogue(folders), host, 0, token) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield Client(server.port)
        finally:
            server.shutdown()
            thread.join()
