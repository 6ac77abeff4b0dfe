"""Wall time of a process by named part, for each thread."""

from __future__ import annotations

import threading
import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from contextlib import contextmanager


class Clock:
    """Adds up the wall time of named parts, and how often each was done; safe to use from several threads.

    Parts may be nested; the time of an inner one is not counted again outside.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._seconds, self._counts = defaultdict[str, float](float), Counter[str]()
        self._local = threading.local()

    @contextmanager
    def part(self, name: str) -> Iterator[None]:
        """Count the time of the block as `name`."""
        stack: list[float] = self._local.__dict__.setdefault("inner", [])
        stack.append(0.0)
        begin = time.perf_counter()
        try:
            yield
        finally:
            took = time.perf_counter() - begin
            own = took - stack.pop()
            if stack:
                stack[-1] += took
            self.add(name, own)

    def add(self, name: str, seconds: float) -> None:
        """Count seconds that were measured elsewhere."""
        with self._lock:
            self._seconds[name] += seconds
            self._counts[name] += 1

    def take(self) -> tuple[dict[str, float], dict[str, int]]:
        """Seconds and counts since the last call; both are reset."""
        with self._lock:
            taken = dict(self._seconds), dict(self._counts)
            self._seconds.clear()
            self._counts.clear()
        return taken


CLOCK = Clock()
"""That of this process."""
