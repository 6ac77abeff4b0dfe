"""Signals as a flag that the evolution loop checks."""

from __future__ import annotations

import signal
import threading
from collections.abc import Sequence
from types import FrameType
from typing import Any

REQUEUE_EXIT_CODE = 75
"""EX_TEMPFAIL of sysexits.h: the work is unfinished, run the same command again."""

INTERRUPTED_EXIT_CODE = 130
"""What a shell reports for a command that Ctrl-C ended."""

SCHEDULER = (signal.SIGTERM, signal.SIGUSR1)
"""What schedulers warn with."""

WATCHED = (*SCHEDULER, signal.SIGINT)


class StopSignal:
    """While entered, SIGTERM, SIGUSR1 and the first Ctrl-C set `requested` in place of killing.

    A second Ctrl-C raises KeyboardInterrupt. Python runs handlers between bytecodes of the main
    thread, so a signal takes effect when the running device computation returns. Outside the main
    thread nothing is watched and the flag stays down. The former handlers return on exit.
    """

    def __init__(self, watched: Sequence[signal.Signals] = WATCHED) -> None:
        self.watched = watched
        self.reason: str | None = None
        self._former: dict[signal.Signals, Any] = {}

    @property
    def requested(self) -> bool:
        """Whether to stop at the next safe point."""
        return self.reason is not None

    @property
    def exit_code(self) -> int:
        """What the process should exit with after stopping."""
        if self.reason is None:
            return 0
        return INTERRUPTED_EXIT_CODE if self.reason == "SIGINT" else REQUEUE_EXIT_CODE

    def __enter__(self) -> StopSignal:
        if threading.current_thread() is threading.main_thread():
            for watched in self.watched:
                former = self._former[watched] = signal.signal(watched, self._handle)
                outer = getattr(former, "__self__", None)
                if isinstance(outer, StopSignal) and outer.reason:  # it was asked to stop before this one watched
                    self.reason = outer.reason
        return self

    def __exit__(self, *exception: object) -> None:
        for watched, former in self._former.items():
            # None: the former handler was not installed from Python and cannot be put back by it.
            signal.signal(watched, signal.SIG_DFL if former is None else former)
        self._former.clear()

    def _handle(self, number: int, frame: FrameType | None) -> None:
        if number == signal.SIGINT and self.reason == "SIGINT":
            raise KeyboardInterrupt
        # A scheduler's warning outranks a Ctrl-C that came before: the job wants to be requeued.
        if self.reason is None or number != signal.SIGINT:
            self.reason = signal.Signals(number).name
