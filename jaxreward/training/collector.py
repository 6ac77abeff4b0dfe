"""How experience is collected: what has to be compiled, and what a compiled collector is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

from jaxreward.tasks import Task, slice_limit
from jaxreward.training.compiled import signature
from jaxreward.training.networks import PolicyNetwork, Variables
from jaxreward.training.plan import Device
from jaxreward.training.population import Population
from jaxreward.training.rollout import RolloutState, Trajectory
from jaxreward.training.rollout_statistics import Stats


class Collector(Protocol):
    """`rollout.collect` for one population, compiled in one way or another."""

    def __call__(
        self, variables: Variables, rollout: RolloutState, pool: Any, noise: Any, stats: Stats
    ) -> tuple[RolloutState, Trajectory, Stats]:
        """What `rollout.collect` returns; `rollout` and `stats` are used up."""
        ...

    def peak_bytes(self) -> int:
        """Device memory that it needs, as the compiler reports it."""
        ...


@dataclass(frozen=True)
class Collection:
    """What a collector is compiled for. `shapes` are of its arguments."""

    task: Task
    population: Population
    network: PolicyNetwork
    length: int
    repeat: int
    device: Device
    shapes: tuple[Any, ...]

    @property
    def key(self) -> tuple[Any, ...]:
        """What every collector depends on but for the programs; good while `task` lives."""
        return (
            id(self.task), self.population.width, self.population.terms, self.network, self.length, self.repeat,
            self.device, slice_limit(self.task, self.device.platform), signature(self.shapes),
        )  # fmt: skip
