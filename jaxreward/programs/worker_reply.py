"""Parsing of the worker's reply, most of which is untrusted.

The child's lockdown mark and the guard's verdict were written before anything of the program ran;
the rest is untrusted, and its schema is checked here.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from jaxreward.programs.limits import Limits
from jaxreward.programs.process import SandboxError
from jaxreward.records import Failure

_STAGES = ("guard", "trace", "contract", "limits", "numeric", "killed")
LOOPS = "loops of Python and nested derivatives run while the program is traced: use fewer"
Ends = Mapping[str, tuple[str, str]]
"""Message and hint by how a child ended: of signals, by name, and all others."""

_ENDS: Ends = {
    "timeout": ("it did not finish in {wall_s:g} s", LOOPS),
    "flood": ("it answered more than {reply_bytes} bytes", "it unrolls too much, or tried to flood the checker"),
    "SIGXCPU": ("it used more than {cpu_s} s of processor time", LOOPS),
    "SIGKILL": ("it was killed: out of processor time or memory", "compute less while the program is traced"),
    "signal": (
        "the process that traced it died ({detail})",
        "it exhausted its memory, or attacked the worker",
    ),
    "exit": ("the process that traced it ended without an answer", "it attacked the worker, or exhausted its memory"),
}


class Failed(Exception):
    """The check ends with this failure."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(failure.message)
        self.failure = failure


def read_reply(reply: bytes, limits: Limits) -> tuple[dict[str, Any], dict[str, Any]]:
    """The guard's verdict and the traced tapes.

    Raises:
        Failed: the program failed, or its child did not answer as it should.
        SandboxError: the machine failed: no fork, no lockdown.
    """
    guarded, frames = guard_verdict(reply, limits, _ENDS)
    traced = _traced(frames[0], guarded, limits)  # how the child ended after that does not matter
    return guarded, {**traced, "lifted": _lifted(frames[1] if len(frames) > 1 else None, guarded)}


def guard_verdict(
    reply: bytes, limits: Limits, ends: Ends
) -> tuple[dict[str, Any], list[dict[str, Any] | None]]:  # fmt: skip
    """The frame that a child wrote before the program ran, and those that it wrote after, at least one, which are
    untrusted; `ends` has the words for the ends of children.

    Raises:
        Failed: the guard refused the program, or the child ended before it answered.
        SandboxError: the machine failed: no fork, no lockdown.
    """
    size = int.from_bytes(reply[:4], "little")
    header, written = json.loads(reply[4 : 4 + size]), reply[4 + size :]
    if header["end"] == "fault":
        raise SandboxError(f"the worker cannot check programs: {header['detail']}")
    if written[:1] != b"L":
        raise SandboxError("the worker cannot lock its children down")
    frames = _frames(written[1:])
    if not frames or frames[0] is None:
        raise Failed(_ended(header, limits, ends))
    if "failure" in frames[0]:
        raise Failed(failure_of(frames[0]["failure"]))
    if len(frames) < 2:
        raise Failed(_ended(header, limits, ends))
    return frames[0], frames[1:]


def _ended(header: dict[str, Any], limits: Limits, ends: Ends) -> Failure:
    message, hint = ends[header["detail"] if header["detail"] in ends else header["end"]]
    return Failure(stage="killed", message=message.format(**header, **limits.as_json()), hint=hint)


def _frames(written: bytes) -> list[dict[str, Any] | None]:
    """What the child wrote, as JSON objects; None for what is not one."""
    found: list[dict[str, Any] | None] = []
    while len(written) >= 8 and len(found) < 3:
        size = int.from_bytes(written[:8], "little")
        if size > len(written) - 8:
            break
        try:
            data = json.loads(written[8 : 8 + size])
        except (ValueError, RecursionError):
            data = None
        found.append(data if isinstance(data, dict) else None)
        written = written[8 + size :]
    return found


def _traced(data: dict[str, Any] | None, guarded: dict[str, Any], limits: Limits) -> dict[str, Any]:
    if data is not None and "failure" in data:
        raise Failed(failure_of(data["failure"]))
    wanted = [half for half in ("observation", "reward", "debug") if guarded.get(half)]
    if data is None or any(not isinstance(data.get(half), dict) for half in wanted):
        raise Failed(Failure(stage="killed", message="the worker's answer is not a tape"))
    terms = _names(data.get("terms", []), "terms", limits)
    outs = data["reward"].get("outs") if guarded["reward"] else None
    if guarded["reward"] and not (isinstance(outs, list) and len(outs) == len(terms) + 1):
        raise Failed(Failure(stage="killed", message="the worker's answer has another number of terms"))
    shown = _names(data.get("debug_names", []) if guarded.get("debug") else [], "names of arrays", limits)
    outs = data["debug"].get("outs") if guarded.get("debug") else []
    if not (isinstance(outs, list) and len(outs) == len(shown)):
        raise Failed(Failure(stage="killed", message="the worker's answer has another number of arrays"))
    return {**data, "terms": terms, "debug_names": shown}


def _names(names: Any, what: str, limits: Limits) -> tuple[str, ...]:
    sound = isinstance(names, list) and len(names) <= limits.terms and len(set(map(str, names))) == len(names)
    if not sound or not all(isinstance(n, str) and 0 < len(n) <= 64 and n.isprintable() for n in names):
        raise Failed(Failure(stage="killed", message=f"the worker's answer has malformed {what}"))
    return tuple(names)


def _lifted(data: dict[str, Any] | None, guarded: dict[str, Any]) -> tuple[Any, list[int]] | None:
    """The alleged skeleton, not yet checked, and which of the guard's constants it has; None without."""
    if data is None or not isinstance(data.get("skeleton"), dict):
        return None
    which, known = data.get("which"), len(guarded["constants"])
    if not isinstance(which, list) or not all(type(i) is int and 0 <= i < known for i in which):
        return None
    return (data["skeleton"], which) if which and sorted(set(which)) == which else None


def failure_of(data: Any) -> Failure:
    """A failure as the child reports it: text that may hold anything, so it is made printable."""
    if not isinstance(data, dict) or data.get("stage") not in _STAGES:
        return Failure(stage="killed", message="the worker's answer is malformed")
    line = data.get("line")
    return Failure(
        stage=data["stage"],
        message=_printable(data.get("message")),
        line=line if isinstance(line, int) and 0 < line < 10**6 else None,
        hint=_printable(data.get("hint")),
    )


def _printable(text: Any) -> str:
    return "".join(c if c.isprintable() else " " for c in str(text or ""))[:1000]
