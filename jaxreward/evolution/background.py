"""Work beside the loop of an asynchronous search."""

from __future__ import annotations

import queue
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Literal, Protocol

Kind = Literal["propose", "check", "train"]


@dataclass(frozen=True)
class Work:
    """Something to compute for generations, one of them and with a slot of the objective where it trains."""

    kind: Kind
    generations: tuple[int, ...]
    compute: Callable[[], Any]
    slot: int | None = None


class Background(Protocol):
    """Does work in any order, and hands it back in the order in which it ends."""

    def begin(self, work: Work) -> None:
        """Begin some work. What has begun and not ended is of another kind, or another slot."""
        ...

    def ended(self) -> tuple[Work, Future[Any]]:
        """Wait for some work to end; there must be some. Its future has the result, or the error."""
        ...


class Threads:
    """A thread that proposes, one that checks, and one for every slot. Use as a context, which waits for them."""

    def __init__(self) -> None:
        self._threads = dict[tuple[Kind, int | None], ThreadPoolExecutor]()
        self._ended = queue.SimpleQueue[tuple[Work, Future[Any]]]()

    def __enter__(self) -> Threads:
        return self

    def __exit__(self, *exception: object) -> None:
        for thread in self._threads.values():
            thread.shutdown(cancel_futures=True)

    def begin(self, work: Work) -> None:
        place = work.kind, work.slot
        if place not in self._threads:
            self._threads[place] = ThreadPoolExecutor(1, thread_name_prefix=work.kind)
        future = self._threads[place].submit(work.compute)
        future.add_done_callback(lambda done: self._ended.put((work, done)))

    def ended(self) -> tuple[Work, Future[Any]]:
        return self._ended.get()
