"""Functions compiled ahead of time, and kept for populations that can use them again."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from jaxreward.devices import EXACT, supported
from jaxreward.programs.unrolling import compiling_for
from jaxreward.timing import CLOCK
from jaxreward.training.banks import BANKS
from jaxreward.training.plan import Device

_EMITTERS, _LEVEL = "xla_cpu_use_fusion_emitters", "xla_backend_optimization_level"

GPU = {
    "xla_gpu_enable_command_buffer": "FUSION,CUBLAS,CUBLASLT,CUSTOM_CALL,CUDNN,DYNAMIC_SLICE_FUSION,WHILE,CONDITIONAL"
}
"""Options for a GPU: kernels are recorded in CUDA graphs, as they are without it, and loops and branches too. Otherwise
the host launches the kernels of every turn, and waits for the device before every turn of a loop whose length it does
not know, as those of robots' solvers. Latency hiding is not asked for: without communication between devices it
changes nothing. Double buffering of loops saves a fifth of the launches and takes half as long again to compile
(docs/appendix/benchmarks.md)."""


def xla_options(
    platform: str, options: Mapping[str, Any] | None = None, device: Device | None = None
) -> dict[str, Any] | None:
    """XLA's options: those of `options` that the installed one knows, on a GPU those of `GPU`, and on a CPU fewer
    optimisations by LLVM, which compiles sooner to code that is as fast, but for tasks that do without XLA's fusion
    emitters."""
    options = supported({**(GPU if platform == "gpu" else {}), **(options or {})}, platform, device)
    if platform == "cpu" and options.get(_EMITTERS, True):
        options.setdefault(_LEVEL, 1)
    return options or None


def compile_for(
    fn: Callable[..., Any], shapes: Any, device: Device, donate: tuple[int, ...] = (), options: Any = None
) -> Any:
    """`fn` compiled for arguments of these shapes on `device`, with matrix products in float32 unless it asks for
    another precision, as networks do; `options` as for `xla_options`."""
    on = jax.sharding.SingleDeviceSharding(device)
    shapes = jax.tree.map(lambda x: jax.ShapeDtypeStruct(jnp.shape(x), x.dtype, sharding=on), shapes)
    begin = time.perf_counter()
    with CLOCK.part("trace"), compiling_for(device.platform), jax.default_matmul_precision(EXACT):
        lowered = jax.jit(fn, donate_argnums=donate).lower(*shapes)
    traced = time.perf_counter()
    with CLOCK.part("compile"):
        compiled = lowered.compile(xla_options(device.platform, options, device))
    for seen in _SEEN:
        seen.append(Compilation(lowered, compiled, traced - begin, time.perf_counter() - traced))
    return compiled


class Compilation(NamedTuple):
    """What `compile_for` made, with the seconds that it took."""

    lowered: Any
    compiled: Any
    trace_s: float
    compile_s: float


_SEEN = list[list[Compilation]]()


@contextmanager
def compilations() -> Iterator[list[Compilation]]:
    """A list that everything compiled meanwhile is added to, by any thread (for benchmarks)."""
    seen = list[Compilation]()
    _SEEN.append(seen)
    try:
        yield seen
    finally:
        _SEEN.remove(seen)


def signature(shapes: Any) -> tuple[Any, ...]:
    """What of a tree of arrays a compiled function depends on; hashable."""
    leaves, structure = jax.tree.flatten(shapes)
    return structure, tuple((jnp.shape(x), str(x.dtype)) for x in leaves)


def bytes_of(compiled: Any) -> int:
    """Device memory that a compiled function needs, as the compiler reports it."""
    memory = compiled.memory_analysis()
    if memory is None:
        return 0
    held = memory.argument_size_in_bytes + memory.output_size_in_bytes + memory.temp_size_in_bytes
    return held - memory.alias_size_in_bytes


class Cache:
    """A few compiled functions, least recently used first out; safe to use from several threads."""

    def __init__(self, size: int) -> None:
        self._size, self._entries, self._lock = size, OrderedDict[Any, Any](), threading.Lock()
        self._making = dict[Any, threading.Lock]()

    def __iter__(self) -> Iterator[Any]:
        """The keys of what is kept."""
        with self._lock:
            return iter(list(self._entries))

    def get(self, key: Any, make: Callable[[], Any], keep: Any = None) -> Any:
        """What is kept for `key`, made if there is nothing; one thread makes it, others wait for that.

        `keep` is held as long as the entry lives, for keys that use its identity.
        """
        with self._lock:
            making = self._making.setdefault(key, threading.Lock())
        with making:
            try:
                with self._lock:
                    if key in self._entries:
                        self._entries.move_to_end(key)
                        return self._entries[key][0]
                made = make()
                with self._lock:
                    self._entries[key] = (made, keep)
                    while len(self._entries) > self._size:
                        self._entries.popitem(last=False)
                return made
            finally:
                with self._lock:
                    self._making.pop(key, None)

    def at_least(self, size: int) -> None:
        """Keep so many from now on."""
        with self._lock:
            self._size = max(self._size, size)

    @contextmanager
    def room_for(self, size: int) -> Iterator[None]:
        """Keep so many meanwhile."""
        usual, self._size = self._size, size
        try:
            yield
        finally:
            self._size = usual

    def clear(self) -> None:
        with self._lock:
            self._entries.clear()


POPULATIONS, STRUCTURES, COMMON, LEARNERS = Cache(4), Cache(512), Cache(12), Cache(16)
"""Functions of all programs of a population, of programs of one structure, of all that is not a program, and of PPO."""


def forget_compiled() -> None:
    """Drop every compiled function that is kept for reuse, and the banks (for benchmarks and tests)."""
    BANKS.clear()
    for cache in (POPULATIONS, STRUCTURES, COMMON, LEARNERS):
        cache.clear()
