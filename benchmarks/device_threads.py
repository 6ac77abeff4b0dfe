"""What threads that share Python's lock lose: many devices whose updates are short.

    python benchmarks/device_threads.py --out benchmarks/results/device_threads.json

Every device of a process has a thread that calls its functions (`training/local.py`). Here the functions do nothing but
return what they were given, after a wait as long as an update, and take arguments as those of a real chunk. The waits
need no processor, so what is lost by more devices is Python's lock and the dispatch of calls. `host_ms` is what an
update takes of one thread: with n devices and updates of L, threads can keep up while n * host_ms is less than L.
"""

from __future__ import annotations

import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import jax
import jax.numpy as jnp

from benchmarks.command import save, status_of
from benchmarks.machine import machine
from jaxreward.commands.resolve import parse
from jaxreward.errors import UserError
from jaxreward.programs import Program
from jaxreward.tasks import make_task
from jaxreward.training import PPO
from jaxreward.training.chunk import Chunk
from jaxreward.training.compiled import compile_for
from jaxreward.training.learn_stats import LearnStats
from jaxreward.training.population import Population


@dataclass(frozen=True)
class ThreadsSettings:
    """Time updates of a given length on one device and on many."""

    devices: int = 8
    """Devices, which are threads of this process."""
    lengths_ms: tuple[float, ...] = (2.0, 5.0, 10.0, 20.0)
    """Lengths of an update."""
    updates: int = 200
    """Updates of each device."""
    repeat: int = 3
    """How often one device and all take turns; the best of each counts."""
    out: Path | None = None
    """File for the results."""

    def check(self) -> None:
        """Raise a UserError for the first setting that cannot be."""
        if min(self.devices, self.updates, self.repeat) < 1 or not self.lengths_ms or min(self.lengths_ms) < 0:
            raise UserError("--devices, --updates and --repeat are at least 1, --lengths-ms not negative")


class Stub:
    """A chunk on one device whose two functions wait and return what they were given."""

    def __init__(self, device: Any) -> None:
        task, ppo = make_task("probe-choice"), PPO(envs=8, unroll=2, minibatches=2, epochs=1, hidden=(8,))
        self._wait_s = 0.0
        self._chunk = chunk = Chunk(task, Population([Program.default(task)]), ppo, (0,), device)
        agents, rollout, pool, stats = chunk._shapes(ppo.envs)
        noise = jax.eval_shape(lambda: chunk._noise(chunk._keys, ppo.envs))
        trajectory = chunk._trajectory(rollout)
        zeros = lambda tree: jax.tree.map(lambda x: jnp.zeros(x.shape, x.dtype), tree)  # noqa: E731

        def collect(variables: Any, rollout: Any, pool: Any, noise: Any, stats: Any) -> Any:
            return rollout, zeros(trajectory.replace(memory=None)), stats

        def learn(agents: Any, trajectory: Any, finite: Any, keys: Any, progress: Any, hyper: Any) -> Any:
            return agents, LearnStats(progress, progress)

        with jax.default_device(device):
            given = (agents.variables, rollout, pool, noise, stats)
            collected = compile_for(collect, given, device, donate=(1, 4))
            given = (agents, trajectory, stats.finite, chunk._keys, jnp.float32(0), chunk._hyper)
            learned = compile_for(learn, given, device, donate=(0,))

        def waiting(function: Any) -> Any:
            def call(*arguments: Any) -> Any:
                if self._wait_s:
                    time.sleep(self._wait_s / 2)
                return function(*arguments)

            return call

        stub: Any = chunk
        stub._collect, stub._learn = waiting(collected), waiting(learned)

    def run(self, updates: int, length_s: float) -> tuple[float, float]:
        """Seconds of so many updates, and processor seconds of this thread."""
        self._wait_s = length_s
        state, stats = self._chunk.start(), self._chunk.fresh_stats()
        state, stats, _ = self._chunk.update(state, stats, 0, 0.0)
        begin, cpu = time.perf_counter(), time.thread_time()
        for at in range(updates):
            state, stats, _ = self._chunk.update(state, stats, at, 0.0)
        jax.block_until_ready(state)
        return time.perf_counter() - begin, time.thread_time() - cpu


def run(s: ThreadsSettings) -> dict[str, Any]:
    """Every length on one device and on all, in turns."""
    s.check()
    jax.config.update("jax_num_cpu_devices", s.devices)
    report: dict[str, Any] = {"benchmark": "device_threads", **machine(), "updates": s.updates, "rows": []}
    stubs = [Stub(device) for device in jax.local_devices()[: s.devices]]
    with ThreadPoolExecutor(len(stubs)) as threads:
        for length in s.lengths_ms:
            alone, together, host = float("inf"), float("inf"), float("inf")
            for _ in range(s.repeat):
                took, cpu = stubs[0].run(s.updates, length / 1e3)
                alone, host = min(alone, took), min(host, cpu)
                many = threads.map(lambda stub, length=length: stub.run(s.updates, length / 1e3)[0], stubs)
                together = min(together, max(many))
            row = {
                "length_ms": length, "devices": len(stubs), "alone_ms": 1e3 * alone / s.updates,
                "together_ms": 1e3 * together / s.updates, "host_ms": 1e3 * host / s.updates,
                "lost": 1.0 - alone / together,
            }  # fmt: skip
            report["rows"].append(row)
            print(
                f"updates of {length:g} ms: {row['alone_ms']:.2f} ms on one device, {row['together_ms']:.2f} on each "
                f"of {len(stubs)}, {row['lost']:.0%} lost; {row['host_ms']:.2f} ms of a thread an update", flush=True,
            )  # fmt: skip
            save(report, s.out)
    return report


def main(argv: list[str] | None = None) -> int:
    return status_of("device_threads", lambda: run(parse(ThreadsSettings, None, argv, "device_threads.py")))


if __name__ == "__main__":
    sys.exit(main())
