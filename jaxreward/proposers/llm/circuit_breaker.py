"""A circuit breaker: while an endpoint is down, one probe at a time is sent, at growing pauses."""

from __future__ import annotations

import asyncio
import time
import zlib

TRIPS = 5
"""Calls that fail in a row, without a success between them, until the endpoint counts as down."""

FIRST_PAUSE_S, LONGEST_PAUSE_S = 5.0, 120.0
"""Between probes; each pause is twice the one before."""

_BACKOFF_S, _LONGEST_BACKOFF_S = 1.0, 60.0

_DAY_S, _YEARS_S = 86_400.0, 1e8

# Of the wall clock, so that a fast clock does not make waiting a busy loop.
_SHORTEST_S = 0.005


class Clock:
    """Time, which tests can make run faster: a pause of s seconds takes `scale * s`."""

    def __init__(self, scale: float = 1.0) -> None:
        self.scale = scale

    def now(self) -> float:
        """Seconds since some moment."""
        return time.monotonic() / self.scale

    async def until(self, event: asyncio.Event, seconds: float) -> None:
        """Wait so long, or until the event."""
        try:
            await asyncio.wait_for(event.wait(), max(seconds * self.scale, _SHORTEST_S))
        except TimeoutError:
            return

    def of_day(self, seconds: float) -> str:
        """The time so many seconds from now, e.g. 14:05:09, with the date from a day on; empty if it is years away."""
        if seconds > _YEARS_S:
            return ""
        form = "%H:%M:%S" if seconds < _DAY_S else "%Y-%m-%d %H:%M:%S"
        return time.strftime(form, time.localtime(time.time() + seconds * self.scale))


class Breaker:
    """The state of one model's endpoint, shared by all requests.

    Args:
        wait_s: how long it may be down; a probe that fails after that makes it `expired`.
    """

    def __init__(self, wait_s: float, clock: Clock) -> None:
        self.wait_s, self.clock = wait_s, clock
        self.failures = self.answers = 0
        self.down = self.probing = self.expired = False
        self.since = self.next_probe = self.held_until = 0.0
        self.pause = FIRST_PAUSE_S

    def may_enter(self) -> bool:
        """Whether a call may be made now."""
        now = self.clock.now()
        if self.down:
            return not (self.expired or self.probing or now < self.next_probe)
        return now >= self.held_until

    def enter(self) -> bool:
        """A call is made, which `may_enter` allowed; whether it is the probe of an endpoint that is down."""
        self.probing = self.down
        return self.probing

    def leave(self) -> None:
        """The probe ended without a verdict on the endpoint."""
        self.probing = False

    def succeeded(self) -> float | None:
        """A call was answered; returns for how long the endpoint was down, None if it was not."""
        self.answers += 1
        was_down = self.clock.now() - self.since if self.down else None
        self.failures, self.pause = 0, FIRST_PAUSE_S
        self.down = self.probing = self.expired = False
        return was_down

    def failed(self, *, probe: bool, after_s: float | None = None, exhausted: bool = False) -> bool:
        """A call failed; returns whether the endpoint counts as down from now on.

        Args:
            probe: whether it was sent while the endpoint was down already.
            after_s: how long the endpoint asks to wait; it gets no call before.
            exhausted: whether the request has no retries left and no other call was answered meanwhile.
        """
        now = self.clock.now()
        if not self.failures:
            self.since = now
        self.failures += 1
        if after_s is not None:
            self.held_until = max(self.held_until, now + min(after_s, self.wait_s))
        if self.down and not probe:
            return False
        tripped = not self.down and (self.failures >= TRIPS or exhausted)
        if tripped or self.down:
            self.pause = FIRST_PAUSE_S if tripped else min(2 * self.pause, LONGEST_PAUSE_S)
            left = max(0.0, self.since + self.wait_s - now)
            # The last probe is when the time is up, not after it.
            self.next_probe = now + min(max(self.pause, after_s or 0.0), left)
            self.down, self.probing, self.expired = True, False, left <= 0
        return tripped


def backoff_s(request_id: str, attempt: int) -> float:
    """The pause after failed attempt 0, 1, ...: exponential, with jitter that depends on the request alone."""
    spread = zlib.crc32(f"{request_id}/{attempt}".encode()) / 2**32
    return min(_BACKOFF_S * 2.0**attempt, _LONGEST_BACKOFF_S) * (0.5 + 0.5 * spread)
