"""Where and how a training runs: none of it changes the results, up to rounding."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import get_args

import jax

from jaxreward.errors import InvalidSetting, UnknownName
from jaxreward.tasks import Box, Task, compiler_options
from jaxreward.training.executor import Executor
from jaxreward.training.hyperparameters import (
    CollectorName,
    CollectorOption,
    CompileName,
    CompileOption,
    PopulationName,
    PopulationOption,
)
from jaxreward.training.plan import Device
from jaxreward.training.sac_hyperparameters import Learner

_FEW_STEPS, _MANY_STEPS = 20_000, 1_000_000


@dataclass(frozen=True)
class Execution:
    """Where the chunks of a population train, and how their experience is collected.

    Attributes:
        memory_gb: limit for what a chunk takes on a device, in 10^9 bytes; by default most of what is free.
        chunk: candidates of a chunk at most; by default what fits, on a CPU of at most 16 structures.
        collector: `fused`, one compiled function for the programs, the environment and the networks; `stepwise`, one
            for each structure of programs and one for the rest, which later chunks use again, called by the host at
            every step; `auto`, the one that should finish first.
        compile: of the fused collector on a CPU, `full` or `fast`: compiled sooner, to code that runs longer; `auto`
            chooses.
        population: `rows`, programs are code, each applied to its own rows; `bank`, they are data, and what they are
            made of is applied to all rows: fewer kernels, and programs whose parts are known compile nothing; `auto`,
            rows on a CPU, where arithmetic is the cost, and a bank elsewhere, where kernels are.
        devices: by default all local ones, each with chunks of its own.
        executor: where chunks train in place of `devices`, an engine that spans machines for example; it has devices
            and a memory limit of its own.
        slot: of the executor, or of the devices, that all chunks train on; all, one after another, unless given. So
            several trainings share an executor.
        room: features and terms to allocate at least, for later programs that have more: what is compiled for these
            serves those.
    """

    memory_gb: float | None = None
    chunk: int | None = None
    collector: CollectorOption = "auto"
    compile: CompileOption = "auto"
    population: PopulationOption = "auto"
    devices: Sequence[Device] | None = None
    executor: Executor | None = None
    room: tuple[int, int] = (0, 0)
    slot: int | None = None

    @property
    def platform(self) -> str:
        """Of the devices that train: `cpu`, `gpu` or `tpu`."""
        if self.executor is not None:
            return self.executor.platform
        return self.devices[0].platform if self.devices else jax.default_backend()

    def check(self, ppo: Learner) -> None:
        """Raise an InvalidSetting or UnknownName for the first setting that is invalid with this learner."""
        if self.chunk is not None and self.chunk < 1:
            raise InvalidSetting(f"a chunk holds at least 1 candidate, not {self.chunk}", "chunk")
        if self.slot is not None and self.slot < 0:
            raise InvalidSetting(f"a slot is a number from 0 on, not {self.slot}", "slot")
        if self.executor is not None and (self.devices is not None or self.memory_gb is not None):
            raise InvalidSetting(
                "an executor has devices and a limit of its own: give either it, or devices and memory_gb",
                *("executor", "devices", "memory_gb"),
            )
        for what, value, option in (("collector", self.collector, CollectorOption),
                                    ("compile option", self.compile, CompileOption),
                                    ("form of a population", self.population, PopulationOption)):  # fmt: skip
            if value not in get_args(option):
                raise UnknownName(what, str(value), get_args(option))
        if self.collector == "stepwise" and self.compile != "auto":
            raise InvalidSetting(
                f"the compile option {self.compile} is for the fused collector, not the stepwise one: leave it out, or "
                "choose fused",
                *("compile", "collector"),
            )
        if self.collector == "stepwise" and not steppable(ppo):
            what, setting = ("have a memory", "gru") if ppo.gru else ("repeat actions", "action_repeat")
            raise InvalidSetting(
                f"with the stepwise collector agents cannot {what} ({type(ppo).__name__}.{setting}): choose fused",
                *("collector", f"{type(ppo).__name__.lower()}.{setting}"),
            )

    def resolve(
        self, task: Task, ppo: Learner, seeds: int, steps: int, platform: str, shared: int = 1
    ) -> tuple[CollectorName, CompileName]:
        """What `auto` stands for in a training of `seeds` x `steps` environment steps a candidate.

        On a CPU what saves compilation costs steps a second (docs/appendix/benchmarks.md). Stepwise collection costs a
        simulation of bodies hardly any, a grid so many that it pays up to twenty thousand steps of a candidate, its
        seeds together. Fast compilation pays up to a million steps of a structure, which `shared` candidates have in
        common; not for tasks with compiler options of their own. Limits are rounded up to whole updates, as `steps`
        are. Not measured: a GPU, and fast compilation where actions are repeated.
        """

        def within(limit: int, sharing: int) -> bool:
            return -(-steps // ppo.batch) <= -(-limit // (sharing * ppo.batch))

        cpu, collector, compilation = platform == "cpu", self.collector, self.compile
        if collector == "auto":
            few = isinstance(task.action_space, Box) or within(_FEW_STEPS, seeds)
            collector = "stepwise" if compilation == "auto" and cpu and steppable(ppo) and few else "fused"
        if compilation == "auto":
            soon = collector == "fused" and ppo.action_repeat == 1 and within(_MANY_STEPS, seeds * shared)
            compilation = "fast" if soon and not compiler_options(task, platform) else "full"
        return collector, compilation if cpu else "full"

    def form(self, platform: str) -> PopulationName:
        """What `auto` stands for of a population."""
        if self.population == "auto":
            return "rows" if platform == "cpu" else "bank"
        return self.population


def steppable(ppo: Learner) -> bool:
    """Whether a stepwise collector can serve this learner."""
    return ppo.action_repeat == 1 and not ppo.gru
