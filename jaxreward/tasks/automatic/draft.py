"""A fragment before it is known what it is worth."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from jaxreward.records import Fragment
from jaxreward.tasks.fragment_template import Template


@dataclass(frozen=True)
class Draft:
    """A fragment, with the weight that its form deserves and the leaves of the view that it reads. A plain one is kept
    where it is constant in random play: a cost of time, a reward that was never reached."""

    template: Template
    kind: Literal["feature", "term"]
    weight: float = 1.0
    reads: frozenset[int] = frozenset()
    is_plain: bool = False

    @property
    def name(self) -> str:
        return self.template.name

    @property
    def source(self) -> str:
        return self.template.source(self.kind)

    @property
    def family(self) -> str:
        return self.template.tags.split()[0]

    def fragment(self, weight: float) -> Fragment:
        t = self.template
        return Fragment(
            name=t.name, kind=self.kind, source=self.source, size=t.size, scales=t.scales, tags=tuple(t.tags.split()),
            doc=t.doc, weight=float(f"{weight:.2g}"),
        )  # fmt: skip


def rounded(value: float, digits: int = 2) -> float:
    """`value` to so many significant digits, as a program has it; 1 for 0 and what is not finite."""
    return float(f"{value:.{digits}g}") if value and math.isfinite(value) else 1.0


def divided(text: str, unit: float) -> str:
    """The text of a quantity by `unit`."""
    return text if unit == 1.0 else f"{text} / {unit!r}"
