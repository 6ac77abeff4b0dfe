"""What a strategy wants next, before the base class gives it an identity."""

from __future__ import annotations

from dataclasses import dataclass

from jaxreward.records import Result


@dataclass(frozen=True)
class Draft:
    """A request before it has an identity; fields as in `jaxreward.records.Request`."""

    operator: str
    island: int = 0
    parents: tuple[Result, ...] = ()
    best: tuple[Result, ...] = ()
    diverse: tuple[Result, ...] = ()
    failures: tuple[Result, ...] = ()
    plan: Result | None = None
    thought: bool = False
    remarks: tuple[str, ...] = ()
    model: str = ""
