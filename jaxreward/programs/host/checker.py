"""From the source of a program on text to its rewards: one request to the worker, and one more to see that they are
the program's alone."""

from __future__ import annotations

import json
import threading
import warnings
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from queue import SimpleQueue
from typing import Any

import numpy as np

from jaxreward.devices import cores
from jaxreward.errors import JaxrewardWarning, UserError
from jaxreward.programs.host.program import Array, TextProgram, digest_of
from jaxreward.programs.limits import Limits
from jaxreward.programs.process import Lost, NoSandbox, Process
from jaxreward.programs.worker_reply import Ends, Failed, failure_of, guard_verdict
from jaxreward.records import Failure, Notice, Verdict

LIMITS = Limits(wall_s=10.0, cpu_s=5, memory_mb=256, reply_bytes=4 << 20)
"""Of a program on all transitions of the data."""

MOST_BYTES = 24 << 20
"""Of all different texts of the data together, as JSON: they are sent with every program."""

_WAIT_S = 10.0
_SLOW = "look for fewer things, and for regular expressions that can match a text in many ways"
_ENDS: Ends = {
    "timeout": ("it did not finish in {wall_s:g} s on the states of the data", _SLOW),
    "flood": ("it answered more than {reply_bytes} bytes", "it attacked the worker"),
    "SIGXCPU": ("it used more than {cpu_s} s of processor time on the states of the data", _SLOW),
    "SIGKILL": ("it was killed: out of processor time or memory", _SLOW),
    "signal": ("the process that executed it died ({detail})", "it exhausted its memory, or attacked the worker"),
    "exit": ("the process that executed it ended without an answer", "it exhausted its memory, or attacked the worker"),
}


@dataclass(frozen=True)
class Transitions:
    """Steps between states that are text.

    Attributes:
        texts: the different texts.
        rows: of every step the indices of its state, its action and its next state.
    """

    texts: tuple[str, ...]
    rows: tuple[tuple[int, int, int], ...]

    @staticmethod
    def of(steps: Sequence[tuple[str, str, str]]) -> Transitions:
        """Steps as (state, action, next state).

        Raises:
            UserError: more text than is sent to a worker.
        """
        texts: dict[str, int] = {}
        rows = tuple((*(texts.setdefault(text, len(texts)) for text in step),) for step in steps)
        size = sum(len(json.dumps(text)) for text in texts)
        if size > MOST_BYTES:
            raise UserError(
                f"the states take {size:,} bytes together, and a program is executed on at most {MOST_BYTES:,}: give "
                "fewer episodes, or shorter states"
            )
        return Transitions(tuple(texts), rows)  # type: ignore[arg-type]


class _Pair:
    """Two processes that differ in what must not matter: the hashes of strings, and the order of evaluation."""

    def __init__(self) -> None:
        module = "jaxreward.programs.host.worker"
        self.first = Process(module, PYTHONHASHSEED="1")
        self.second = Process(module, PYTHONHASHSEED="2")

    def stop(self) -> None:
        self.first.stop()
        self.second.stop()


class TextChecker:
    """Checks programs on text by executing them on data; a program that passes has its rewards.

    Use it as a context manager. It is thread-safe. A program is executed twice, the second time in another process and
    on the last transition first; one that pays otherwise then depends on more than the transition, and is refused.

    Args:
        data: the transitions.
        limits: of a program on all of them.
        unsafe_no_sandbox: execute programs without the sandbox where the system has none, with the rights of the user.
        workers: programs at a time, by default as many as there are cores.

    Raises:
        NoSandbox: on first use, where there is no sandbox and `unsafe_no_sandbox` is not set.
        SandboxError: the processes cannot be started. Never the fault of a program.
    """

    def __init__(
        self, data: Transitions, limits: Limits = LIMITS, *, unsafe_no_sandbox: bool = False, workers: int | None = None
    ) -> None:
        self.data, self.limits, self.unsafe = data, limits, unsafe_no_sandbox
        self._pairs = [_Pair() for _ in range(workers or cores())]
        self._free: SimpleQueue[_Pair] = SimpleQueue()
        for pair in self._pairs:
            self._free.put(pair)
        self._warning, self._warned = threading.Lock(), False

    def __enter__(self) -> TextChecker:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the processes; the next check starts them again."""
        for pair in self._pairs:
            pair.stop()

    def check(self, source: str) -> tuple[Verdict, TextProgram | None]:
        """The verdict on `source`, and the program with its rewards if it passed."""
        pair = self._free.get()
        try:
            sandboxed = self._sandboxed(pair)
            aside = () if sandboxed else (Notice(kind="no_sandbox", message="checked without a sandbox"),)
            try:
                program = self._program(pair, source, sandboxed)
            except Failed as bad:
                return Verdict(failure=bad.failure, notices=aside), None
            return Verdict(summary=program.summary, notices=aside), program
        finally:
            self._free.put(pair)

    def check_many(
        self, sources: Sequence[str], task: Any = None, *, debug: bool = False
    ) -> list[tuple[Verdict, TextProgram | None]]:
        """`check` for each source, in order, as many at a time as there are workers. `task` and `debug` have no meaning
        here."""
        if len(sources) <= 1 or len(self._pairs) == 1:
            return [self.check(source) for source in sources]
        with ThreadPoolExecutor(len(self._pairs), "check") as pool:
            return list(pool.map(self.check, sources))

    def prefetch(
        self, source: str, task: Any, then: Callable[[Any], None] | None = None, *, debug: bool = False
    ) -> None:
        """Nothing: a check takes less time than a proposal."""

    def _sandboxed(self, pair: _Pair) -> bool:
        sandbox = pair.first.start()["sandbox"]
        if sandbox["ok"]:
            return True
        if not self.unsafe:
            raise NoSandbox(sandbox["reason"])
        with self._warning:
            if not self._warned:
                self._warned = True
                warnings.warn(
                    f"programs are executed without a sandbox: {sandbox['reason']}", JaxrewardWarning, stacklevel=4
                )
        return False

    def _program(self, pair: _Pair, source: str, sandboxed: bool) -> TextProgram:
        try:
            source.encode()
        except UnicodeEncodeError as error:
            raise Failed(Failure(stage="guard", message="the source is not valid Unicode text")) from error
        if len(source) > self.limits.source_bytes:  # before it is sent anywhere
            message = f"the source has {len(source)} characters; the limit is {self.limits.source_bytes} bytes"
            raise Failed(Failure(stage="limits", message=message))
        guarded, rewards, terms = self._executed(pair.first, source, sandboxed, backwards=False)
        *_, again, _ = self._executed(pair.second, source, sandboxed, backwards=True)
        if not np.array_equal(rewards, again):
            count = int((rewards != again).sum())
            raise Failed(Failure(
                stage="contract",
                message=f"{count} of {len(rewards)} states get another reward when they come in another order, or in "
                "another process",
                hint="keep nothing from one call to the next, and use no order of a set",
            ))  # fmt: skip
        return TextProgram(source, digest_of(source), rewards, terms, int(guarded["nodes"]))

    def _executed(
        self, worker: Process, source: str, sandboxed: bool, backwards: bool
    ) -> tuple[dict[str, Any], Array, tuple[str, ...]]:
        """The guard's verdict, and rewards and terms, which are untrusted."""
        request = {
            "source": source, "limits": self.limits.as_json(), "sandbox": sandboxed, "backwards": backwards,
            "texts": self.data.texts, "transitions": self.data.rows,
        }  # fmt: skip
        patience, most = self.limits.wall_s + _WAIT_S, self.limits.reply_bytes + (1 << 20)
        try:
            reply = worker.ask(json.dumps(request).encode(), patience, most)
        except Lost as lost:
            raise Failed(Failure(stage="killed", message=f"the worker was lost: {lost}")) from lost
        guarded, frames = guard_verdict(reply, self.limits, _ENDS)
        return guarded, *_sound(frames[0], len(self.data.rows), self.limits)


def _sound(answer: dict[str, Any] | None, count: int, limits: Limits) -> tuple[Array, tuple[str, ...]]:
    """Rewards and terms of an answer, whose form is checked here.

    Raises:
        Failed: it is a failure, or not what was asked for.
    """
    if answer is not None and "failure" in answer:
        raise Failed(failure_of(answer["failure"]))
    rewards, terms = (answer or {}).get("rewards"), (answer or {}).get("terms")
    if not isinstance(rewards, list) or len(rewards) != count or not all(type(x) in (int, float) for x in rewards):
        raise Failed(Failure(stage="killed", message="the worker's answer holds no rewards"))
    if not all(abs(x) <= limits.magnitude for x in rewards):  # NaN is not, either
        raise Failed(Failure(stage="killed", message="the worker's answer holds rewards that are no finite numbers"))
    named = isinstance(terms, list) and all(isinstance(t, str) and 0 < len(t) <= 64 and t.isprintable() for t in terms)
    if not isinstance(terms, list) or not named:
        raise Failed(Failure(stage="killed", message="the worker's answer has malformed terms"))
    return np.asarray(rewards, np.float32), tuple(terms[: limits.terms])
