"""The figures that FORGE's paper prints (tables 2 and 3, by Claude Sonnet 4)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

TASKS = ("tetris", "snake", "flappy-bird", "humanoid")
"""The tasks here that stand for its own: lines cleared, length of the snake, pipes passed, return."""


class Scores(NamedTuple):
    """Mean extrinsic rewards: of rewards as they were first proposed, and after the search; None where it has none."""

    zero_shot: float | None = None
    evolved: float | None = None


TABLE_2: Mapping[str, Mapping[str, Scores]] = {
    "native": {
        "tetris": Scores(4.2), "snake": Scores(17.0), "flappy-bird": Scores(36.8), "humanoid": Scores(696.7),
    },
    "eureka": {
        "tetris": Scores(0.0, 6.8), "snake": Scores(10.2, 19.2), "flappy-bird": Scores(49.0, 114.8),
        "humanoid": Scores(105.8, 756.7),
    },
    "revolve": {
        "tetris": Scores(1.2, 9.4), "snake": Scores(14.0, 17.2), "flappy-bird": Scores(32.4, 129.2),
        "humanoid": Scores(686.7, 880.7),
    },
    "forge": {
        "tetris": Scores(8.8, 11.2), "snake": Scores(6.0, 19.8), "flappy-bird": Scores(86.0, 254.8),
        "humanoid": Scores(815.2, 1048.0),
    },
}  # fmt: skip
"""Table 2 less other models and agents that write one reward."""

TABLE_3: Mapping[str, Mapping[str, float]] = {
    "without selection": {"tetris": 10.6, "snake": 13.8, "flappy-bird": 151.4, "humanoid": 872.7},
    "without planning": {"tetris": 10.0, "snake": 19.6, "flappy-bird": 126.8, "humanoid": 635.1},
    "whole": {"tetris": 11.2, "snake": 19.8, "flappy-bird": 254.8, "humanoid": 1048.0},
}
