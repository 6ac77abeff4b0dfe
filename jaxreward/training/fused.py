"""A population's collector as one compiled function: nothing is dispatched between steps, and nothing is reused by
populations of other structures."""

from __future__ import annotations

from functools import cached_property, partial
from typing import Any

import jax

from jaxreward.devices import FAST
from jaxreward.tasks import compiler_options
from jaxreward.training.collector import Collection
from jaxreward.training.compiled import POPULATIONS, bytes_of, compile_for, signature
from jaxreward.training.networks import Variables
from jaxreward.training.rollout import RolloutState, Trajectory, collect
from jaxreward.training.rollout_statistics import Stats


class Fused:
    """`rollout.collect` in one jit."""

    def __init__(self, what: Collection, fast: bool = False) -> None:
        """`fast`: compiled sooner on a CPU, to code that runs longer."""
        self._what, population, platform = what, what.population, what.device.platform

        def compiled() -> Any:
            whole = partial(collect, what.task, population, what.network, what.length, what.repeat, platform)
            shapes, options = (population.data, *what.shapes), compiler_options(what.task, platform)
            if fast:
                options = {**FAST, **options}
            return compile_for(whole, shapes, what.device, donate=(2, 5), options=options)

        key = (what.key, population.key, signature(population.data), fast)
        self._collect = POPULATIONS.get(key, compiled, keep=what.task)

    @cached_property
    def _data(self) -> Any:
        """On the device: only now, since one that is compiled for need not be there."""
        return jax.device_put(self._what.population.data, self._what.device)

    def __call__(
        self, variables: Variables, rollout: RolloutState, pool: Any, noise: Any, stats: Stats
    ) -> tuple[RolloutState, Trajectory, Stats]:
        return self._collect(self._data, variables, rollout, pool, noise, stats)

    def peak_bytes(self) -> int:
        return bytes_of(self._collect)
