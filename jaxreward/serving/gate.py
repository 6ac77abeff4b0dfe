"""Who may read: the `Host` that a browser names, and a token in the address or in a cookie."""

from __future__ import annotations

import hmac
from dataclasses import dataclass
from http.cookies import CookieError, SimpleCookie

_LOOPBACK = frozenset({"localhost", "127.0.0.1", "[::1]"})


@dataclass(frozen=True)
class Gate:
    """The rule of a server.

    Attributes:
        token: what a reader must have; empty for none.
        hosts: names that the server is reached by, without ports; empty for any. Without a token there must be some,
            or a page of another site could read this one by a name of its own that leads here (DNS rebinding).
        cookie: the name of the cookie. Cookies are shared by the ports of a host, so it has the port.
    """

    token: str
    hosts: frozenset[str]
    cookie: str

    @classmethod
    def of(cls, host: str, port: int, *, local: bool, token: str) -> Gate:
        """The rule of a server that is bound to an address."""
        return cls(token, _LOOPBACK | {bracketed(host)} if local else frozenset(), f"jaxreward-{port}")

    def knows_host(self, header: str | None) -> bool:
        """Whether the `Host` of a request is one that the server is reached by, at any port: a tunnel may begin at
        another."""
        name, colon, port = (header or "").strip().lower().rpartition(":")
        if not colon or not port.isdecimal():
            name = f"{name}{colon}{port}"
        return not self.hosts or name in self.hosts

    def admits(self, cookies: str | None, token: str = "") -> bool:
        """Whether the token in the address, or that in the cookie of a request, is right."""
        if not self.token:
            return True
        try:
            kept = SimpleCookie(cookies or "").get(self.cookie)
        except CookieError:
            kept = None
        given = [token, kept.value if kept else ""]
        return any([hmac.compare_digest(each.encode(errors="replace"), self.token.encode()) for each in given])

    def set_cookie(self) -> str:
        """The value of `Set-Cookie` for a reader whose address had the token."""
        return f"{self.cookie}={self.token}; Path=/; HttpOnly; SameSite=Strict"


def bracketed(host: str) -> str:
    """A host as an address has it: IPv6 in brackets."""
    return f"[{host}]" if ":" in host else host.lower()
