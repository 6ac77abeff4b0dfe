"""The checker of this process, and what is done with it."""

from __future__ import annotations

import atexit
from collections.abc import Sequence
from typing import Any

from jaxreward.programs.checker import Checker
from jaxreward.programs.functions import ProgramLike
from jaxreward.programs.program import Program
from jaxreward.records import Verdict

_shared: dict[bool, Checker] = {}


def shared(unsafe_no_sandbox: bool = False) -> Checker:
    """The checker of this process; its helpers end with it."""
    if unsafe_no_sandbox not in _shared:
        checker = _shared[unsafe_no_sandbox] = Checker(unsafe_no_sandbox=unsafe_no_sandbox)
        atexit.register(checker.close)
    return _shared[unsafe_no_sandbox]


def check_program(source: str, task: Any, *, unsafe_no_sandbox: bool = False, samples: Any = None) -> Verdict:
    """The verdict on a program; `task` may be a pair `(state, action)` of `jax.ShapeDtypeStruct` trees."""
    return shared(unsafe_no_sandbox).check(source, task, samples=samples)[0]


def check_many(
    sources: Sequence[str], task: Any, *, unsafe_no_sandbox: bool = False, samples: Any = None
) -> list[Verdict]:
    """The verdicts on several programs, checked in parallel."""
    return [verdict for verdict, _ in shared(unsafe_no_sandbox).check_many(sources, task, samples=samples)]


def load_program(program: ProgramLike, task: Any, *, trusted: bool = False, unsafe_no_sandbox: bool = False) -> Program:
    """The program in a file, of a source text, of a function, or of a pair of functions.

    A function of (state) is an observation, one of (state, action, next_state) a reward; the task's default stands in
    for the other. It is written out as text (`jaxreward.function_source`), which is checked as any other.

    Args:
        trusted: trace functions of your own in this process, as they are, in place of their text: they may use any
            library of JAX, and arrays of any origin. Limits, contract and numeric checks stay.

    Raises:
        ProgramRejected: with the verdict.
        UnreadableFunction: a function that cannot be written out as text.
        UnusableFile: there is no such file.
        InvalidSetting: another kind of program, or a text that is said to be trusted.
        NoSandbox: there is no sandbox on this machine. Trusted functions need none.
    """
    return shared(unsafe_no_sandbox).load(program, task, trusted=trusted)


def sandbox_status() -> str:
    """The sandbox of this machine in words; `NoSandbox` if there is none."""
    return shared().sandbox_status()
