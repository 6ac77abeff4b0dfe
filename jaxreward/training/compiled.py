"""Functions compiled ahead of time, and kept for populations that can use them again."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import jax
import jax.numpy as jnp

from jaxreward.devices import supported
from jaxreward.timing import CLOCK
from jaxreward.training.banks import BANKS
from jaxreward.training.plan import Device

_EMITTERS, _LEVEL = "xla_cpu_use_fusion_emitters", "xla_backend_optimization_level"

SMALL = {_EMITTERS: False, "xla_cpu_parallel_codegen_split_count": 1}
"""Options by which XLA compiles a small function on CPU sooner, to code that is as fast."""

FAST = SMALL | {_LEVEL: 1}
"""Options by which it compiles a large one sooner, to code that runs longer (docs/appendix/benchmarks.md)."""


def xla_options(platform: str, options: Mapping[str, Any] | None = None) -> dict[str, Any] | None:
    """XLA's options: those of `options` that the installed one knows, and on a CPU fewer optimisations by LLVM, which
    compiles sooner to code that is as fast, but for tasks that do without XLA's fusion emitters."""
    options = supported(options or {}, platform)
    if platform == "cpu" and options.get(_EMITTERS, True):
        options.setdefault(_LEVEL, 1)
    return options or None


def compile_for(
    fn: Callable[..., Any], shapes: Any, device: Device, donate: tuple[int, ...] = (), options: Any = None
) -> Any:
    """`fn` compiled for arguments of these shapes on `device`; `options` as for `xla_options`."""
    on = jax.sharding.SingleDeviceSharding(device)
    shapes = jax.tree.map(lambda x: jax.ShapeDtypeStruct(jnp.shape(x), x.dtype, sharding=on), shapes)
    with CLOCK.part("trace"):
        lowered = jax.jit(fn, donate_argnums=donate).lower(*shapes)
    with CLOCK.part("compile"):
        return lowered.compile(xla_options(device.platform, options))


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
