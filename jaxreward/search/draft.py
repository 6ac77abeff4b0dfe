"""What a strategy wants next, before the base class gives it an identity."""

from __future__ import annotations

from dataclasses import dataclass, replace

from jaxreward.records import ExampleChoice, Result

OF_PROGRAM = "program {}, "
"""How remarks on one of several parents begin, with its number from 1."""


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
    group: int = 0
    ablations: tuple[Result, ...] = ()
    watched: Result | None = None
    examples: ExampleChoice | None = None

    def of_first(self) -> Draft:
        """With the first parent alone, and of the remarks those on it, without its number."""
        if len(self.parents) < 2:
            return self
        mine = OF_PROGRAM.format(1)
        remarks = tuple(remark.removeprefix(mine) for remark in self.remarks if remark.startswith(mine))
        return replace(self, parents=self.parents[:1], remarks=remarks)
