"""Programs: untrusted source in, checked and replayable functions out.

    source -> guard -> worker (locked down; executes and traces) -> tape (JSON) -> verify -> Program

The source of a candidate is never executed in the process that imports this package.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from jaxreward.programs.checker import Checker
    from jaxreward.programs.limits import Limits
    from jaxreward.programs.process import SandboxError
    from jaxreward.programs.program import Program, ProgramRejected
    from jaxreward.programs.shared_checker import check_many, check_program, load_program, sandbox_status
    from jaxreward.programs.spec import Spec

__all__ = [
    "Checker",
    "Limits",
    "Program",
    "ProgramRejected",
    "SandboxError",
    "Spec",
    "check_many",
    "check_program",
    "load_program",
    "sandbox_status",
]

# Lazy, because the worker imports this package too and must stay small: it is forked for every candidate.
_FILE_OF = {
    "Checker": "checker",
    "check_many": "shared_checker",
    "check_program": "shared_checker",
    "load_program": "shared_checker",
    "sandbox_status": "shared_checker",
    "Limits": "limits",
    "SandboxError": "process",
    "Program": "program",
    "ProgramRejected": "program",
    "Spec": "spec",
}


def __getattr__(name: str) -> Any:
    if name not in _FILE_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{_FILE_OF[name]}"), name)
    globals()[name] = value
    return value
