"""The figures that RF-Agent's paper prints (tables 1, 6 and 7, by GPT-4o-mini)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from jaxreward.reproduction.layout import Published


class Scores(NamedTuple):
    """Of a task, with standard deviations over 5 seeds; None where the table has no such row."""

    sparse: Published
    human: Published | None
    eureka: Published
    revolve: Published
    rf_agent: Published


TABLE_1: Mapping[str, Scores] = {
    "ant, speed": Scores(
        Published(0.14, 0.05), Published(6.75, 0.30), Published(4.87, 1.34), Published(5.16, 1.37),
        Published(6.22, 0.90),
    ),
    "quadruped-velocity": Scores(
        Published(-2.05, 0.24), Published(-0.03, 0.00), Published(-0.67, 0.04), Published(-0.80, 0.09),
        Published(-0.01, 0.00),
    ),
    "humanoid, speed": Scores(
        Published(3.01, 1.99), Published(5.89, 0.81), Published(3.29, 0.19), Published(3.12, 0.33),
        Published(5.91, 1.21),
    ),
    "quadcopter-hover": Scores(
        Published(-1.35, 0.04), Published(-0.08, 0.03), Published(-0.07, 0.02), Published(-0.08, 0.02),
        Published(-0.03, 0.00),
    ),
    "panda-cabinet": Scores(
        Published(0.04, 0.08), Published(0.11, 0.07), Published(0.01, 0.00), Published(0.19, 0.17),
        Published(0.35, 0.15),
    ),
}  # fmt: skip
"""Table 1 less its two hands, by the tasks that stand for its own here: Ant, Anymal, Humanoid, Quadcopter and
FrankaCabinet. Its quadcopter is scored by minus the distance."""

TABLE_6: Mapping[str, Scores] = {
    "ant-lie-down": Scores(
        Published(0.12, 0.03), None, Published(0.64, 0.08), Published(0.59, 0.11), Published(0.73, 0.08)
    ),
    "ant-patrol-return": Scores(
        Published(0.05, 0.02), None, Published(0.52, 0.07), Published(0.63, 0.05), Published(0.82, 0.06)
    ),
}


class Combination(NamedTuple):
    """Actions of an expansion: their numbers, in the order of the option `counts`, and the paper's score on the ant."""

    counts: tuple[int, ...]
    ant: float


TABLE_7: Mapping[str, Combination] = {
    "mutation": Combination((4, 4, 0, 0, 0), 5.13),
    "mutation, crossover": Combination((3, 3, 2, 0, 0), 5.77),
    "mutation, reasoning": Combination((3, 3, 0, 2, 0), 5.94),
    "crossover, reasoning": Combination((0, 0, 5, 3, 0), 4.85),
    "mutation, crossover, reasoning": Combination((2, 2, 2, 2, 0), 6.08),
    "all": Combination((2, 2, 2, 1, 1), 6.22),
}
"""The paper does not say how many children each action has in a combination: here eight in all, as with all
actions."""
