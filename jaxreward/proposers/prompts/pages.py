"""The layout of the page of each operator; its text is in its template."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Literal

from jaxreward.operators import PLANNED
from jaxreward.records import Request


@dataclass(frozen=True)
class Page:
    """The make-up of a page for a program.

    Attributes:
        least: programs without which the page of `improve` is used; without any, that of `scratch`.
        called: what the headings call the programs that it is about.
        guidance: advice for the parents' level of success, for a new design, or none where it would
            contradict what the operator asks for.
        feedback: whether how training went is always shown.
        oldest_first: whether the programs are shown in the reverse order of the request's.
    """

    least: int = 1
    called: str = "Parent"
    guidance: Literal["parents", "scratch", ""] = "parents"
    feedback: bool = True
    oldest_first: bool = False


PAGES: Mapping[str, Page] = {
    "scratch": Page(0, guidance="scratch"),
    "improve": Page(feedback=False),
    "structure": Page(guidance=""),
    "weights": Page(guidance=""),
    "term": Page(guidance=""),
    "ablate": Page(guidance=""),
    "reflect": Page(),
    "crossover": Page(2),
    "path": Page(2, called="Step", guidance="", oldest_first=True),
    "different": Page(called="Program", guidance="scratch"),
    "implement": Page(0, guidance=""),
    "compose": Page(0, guidance=""),
    "amend": Page(guidance=""),
    "shape": Page(guidance=""),
}

OTHER = Page(0, feedback=False)
"""The page of an operator that only a user's folder has."""


def page_name(request: Request, operators: Collection[str]) -> str:
    """The operator whose page a request gets; `operators` are those that have one.

    One that is unknown, or lacks the programs or the plan that it is about, gets the nearest that fits.
    """
    operator, parents = request.operator, len(request.parents)
    wants_plan = operator in PLANNED and request.plan is None
    if operator in operators and parents >= PAGES.get(operator, OTHER).least and not wants_plan:
        return operator
    return "improve" if parents else "scratch"
