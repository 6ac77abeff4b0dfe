"""The figures that RDA's paper prints in words (sections 5.2 and 5.4): its plots have no numbers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple


class Rates(NamedTuple):
    """Alignment and success; None where the text does not say it."""

    alignment: float | None = None
    success: float | None = None


FIGURE_4: Mapping[str, Mapping[str, Rates]] = {
    "12 table-top tasks of ManiSkill": {
        "sparse": Rates(0.28, 0.17), "dense": Rates(0.68, 0.74), "eureka": Rates(0.87, 0.87), "rda": Rates(0.95, 0.90),
    },
    "4 whole-body tasks of HumanoidBench": {
        "dense": Rates(0.25, 0.08), "eureka": Rates(0.47), "rda": Rates(0.70, 0.42),
    },
}  # fmt: skip
"""Means over tasks by method."""

FIGURE_7A: Mapping[str, Rates] = {
    "Eureka": Rates(0.31, 0.50),
    "and policies of the iteration before": Rates(0.35, 0.55),
    "and what was seen": Rates(0.82, 0.83),
    "and subtasks: RDA": Rates(0.84, 1.00),
}
"""Means over a table-top task (PlugCharger) and a whole-body task (Package), three seeds each."""

FIGURE_7B: Mapping[int, Rates] = {1: Rates(0.46, 0.20), 2: Rates(0.58, 0.51), 4: Rates(), 8: Rates(0.84, 1.00)}
"""The same by the number of candidates of an iteration."""
