"""The HTTP server of `jaxreward serve`, of the standard library."""

from __future__ import annotations

import errno
import ipaddress
import socket
import socketserver
import sys
from http.server import ThreadingHTTPServer
from typing import Any

from jaxreward.errors import InvalidSetting
from jaxreward.serving.catalogue import Catalogue
from jaxreward.serving.gate import Gate, bracketed
from jaxreward.serving.handler import Handler


class Server(ThreadingHTTPServer):
    """Serves a catalogue until `shutdown`; a context manager that closes the port.

    Args:
        catalogue: what is served.
        host: the address to bind: a name, IPv4 or IPv6; `0.0.0.0` for all of the machine.
        port: 0 for any free one.
        token: what readers must have in the address or a cookie; "" for none.

    Raises:
        InvalidSetting: the host or port cannot be bound.
    """

    daemon_threads = True

    def __init__(self, catalogue: Catalogue, host: str = "127.0.0.1", port: int = 8411, token: str = "") -> None:
        self.catalogue, self.host, self.token = catalogue, host, token
        family, address = _resolved(host, port)
        self.address_family = family
        if not token and not is_local(host):
            raise ValueError(f"{host} can be reached from other machines: a token is needed")
        try:
            super().__init__(address, Handler)
        except OSError as error:
            raise InvalidSetting(
                _why(error, host, port), "host" if error.errno == errno.EADDRNOTAVAIL else "port"
            ) from error
        self.port: int = self.socket.getsockname()[1]
        self.gate = Gate.of(host, self.port, local=is_local(host), token=token)

    def server_bind(self) -> None:
        """Bind without asking a name server for the name of this machine, as `HTTPServer` does."""
        socketserver.TCPServer.server_bind(self)
        self.server_name, self.server_port = self.host, self.socket.getsockname()[1]

    @property
    def address(self) -> str:
        """Where a browser finds it, with the token."""
        everywhere = self.host in ("0.0.0.0", "::")
        name = socket.gethostname() if everywhere else bracketed(self.host)
        return f"http://{name}:{self.port}/" + (f"?token={self.token}" if self.token else "")

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Nothing for a reader who has left; a traceback for what is a fault of ours."""
        if not isinstance(sys.exc_info()[1], ConnectionError | TimeoutError):
            super().handle_error(request, client_address)


def is_local(host: str) -> bool:
    """Whether only processes of this machine reach a host that is bound."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host.lower() == "localhost"


def _resolved(host: str, port: int) -> tuple[socket.AddressFamily, tuple[str, int]]:
    try:
        family, _, _, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]  # fmt: skip
    except (OSError, UnicodeError, OverflowError) as error:
        why = getattr(error, "strerror", None) or error
        raise InvalidSetting(f"--host {host} is no address of this machine: {why}", "host") from error
    return family, (str(address[0]), port)


def _why(error: OSError, host: str, port: int) -> str:
    match error.errno:
        case errno.EADDRINUSE:
            return f"port {port} is in use, perhaps by another `jaxreward serve`: --port 0 takes any that is free"
        case errno.EACCES:
            return f"port {port} is not yours to use: take one from 1024, or --port 0 for any that is free"
        case errno.EADDRNOTAVAIL:
            return f"--host {host} is no address of this machine"
    return f"{host}:{port} cannot be used: {error.strerror}"
