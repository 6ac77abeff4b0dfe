"""The figures that GRACE's paper prints (Sapora et al. 2026; tables 1 to 3, figure 4)."""

from __future__ import annotations

from typing import NamedTuple

from jaxreward.reproduction.layout import Published


class Rates(NamedTuple):
    """Success rates of a level in table 3: PPO on the true reward, GAIL with 2,000 expert trajectories, GRACE with
    8."""

    ppo: float
    gail: float
    grace: float


TABLE_3: dict[str, Rates] = {
    "GoToRedBallNoDist": Rates(1.00, 1.00, 1.00),
    "GoToRedBall": Rates(1.00, 0.35, 1.00),
    "PickupDist": Rates(0.31, 0.15, 0.32),
    "PickupLoc": Rates(0.21, 0.00, 0.26),
    "GoToObj": Rates(1.00, 0.92, 1.00),
    "OpenDoorColor": Rates(1.00, 0.98, 1.00),
    "OpenTwoDoors": Rates(1.00, 0.37, 1.00),
    "OpenRedDoor": Rates(1.00, 1.00, 1.00),
    "GoToObjS4": Rates(1.00, 1.00, 1.00),
    "GoToRedBlueBall": Rates(0.96, 0.40, 0.99),
    "GoToRedBallGrey": Rates(0.97, 0.77, 0.99),
    "Pickup": Rates(0.10, 0.00, 0.09),
    "Open": Rates(0.30, 0.18, 0.22),
    "OpenRedBlueDoors": Rates(1.00, 0.96, 0.98),
    "OpenDoorLoc": Rates(0.39, 0.40, 1.00),
    "GoToLocalS8N7": Rates(0.64, 0.39, 0.97),
    "GoToDoor": Rates(0.74, 0.37, 0.99),
    "SortColors": Rates(0.00, 0.00, 0.00),
    "PlaceBetween": Rates(0.09, 0.01, 0.09),
    "OpenMatchingDoor": Rates(0.79, 0.20, 0.35),
}
"""Table 3 less its last row."""

MULTI_TASK = "Multi-task"
"""The last row of tables 2 and 3: one reward for all levels, that reads the mission."""

MULTI_TASK_RATES = Rates(0.95, 0.31, 0.92)

TABLE_2 = (
    "GoToRedBallNoDist", "GoToRedBall", "PickupDist", "PickupLoc", "GoToObj", "OpenDoorColor", "OpenTwoDoors",
    "PlaceBetween", "OpenMatchingDoor",
)  # fmt: skip
"""The levels of table 2, whose figures are those of table 3."""

TRAJECTORIES = (1, 2, 4, 8, 16)
"""Numbers of expert and negative trajectories in figure 4."""

FIGURE_4A: dict[int, float] = {8: 1.0, 16: 1.0}
"""Accuracy on the test set by number of trajectories, as far as the text says it (section 5.2): "perfect scores
achieved using only eight expert trajectories"."""

FIGURE_4B_ONE_NEGATIVE = 0.95
"""Accuracy over all levels with one negative trajectory, "provided that sufficient expert trajectories are available"
(section 5.2)."""


class Returns(NamedTuple):
    """Average returns of a robot in table 1 with their standard deviations over 5 seeds."""

    ppo: Published
    grace: Published
    gail: Published


def _return(value: float, deviation: float) -> Published:
    return Published(value, deviation, digits=0)


TABLE_1: dict[str, Returns] = {
    "hopper": Returns(_return(2212, 54), _return(2143, 80), _return(2056, 92)),
    "walker2d": Returns(_return(2675, 292), _return(2072, 576), _return(1982, 101)),
    "ant": Returns(_return(6239, 237), _return(5707, 210), _return(5521, 674)),
    "humanoid": Returns(_return(6455, 302), _return(5809, 106), _return(6521, 337)),
}
"""Table 1: PPO on the native reward, GRACE with GPT-4o, GAIL with 200 trajectories."""
