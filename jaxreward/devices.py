"""The CPU cores and devices of this process, and the compile options that the installed XLA accepts."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import cache, wraps
from typing import Any

_MOST = 8


def cores() -> int:
    """Cores that this process may use, as XLA counts them."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def cores_of_a_device() -> int:
    """How many of them a CPU device of JAX has to itself."""
    return max(1, cores() // max(1, _asked()))


def use_cores() -> None:
    """Make every core, up to eight, a JAX device of its own, on which a chunk trains: two devices of one core each have
    a higher throughput than one of two cores. Each compiles for itself.

    `JAX_NUM_CPU_DEVICES` takes precedence; once JAX has computed anything, nothing changes.
    """
    import jax

    if _asked() < 1:
        with suppress(RuntimeError):
            jax.config.update("jax_num_cpu_devices", min(_MOST, cores()))


FAST_COMPILE: Mapping[str, Any] = {
    "xla_backend_optimization_level": 0, "xla_llvm_disable_expensive_passes": True,
}  # fmt: skip
"""XLA's options on a CPU for what takes longer to compile than to run."""

SMALL: Mapping[str, Any] = {"xla_cpu_use_fusion_emitters": False, "xla_cpu_parallel_codegen_split_count": 1}
"""Those by which it compiles a small function on a CPU sooner, to code that is as fast."""

FAST: Mapping[str, Any] = {**SMALL, "xla_backend_optimization_level": 1}
"""Those by which it compiles a large one sooner, to code that runs longer where that is most of a training
(docs/appendix/benchmarks.md)."""


def on_cpu(options: Mapping[str, Any], platform: str) -> dict[str, Any]:
    """`options` on a CPU, none elsewhere."""
    return dict(options) if platform == "cpu" else {}


EXACT = "float32"
"""The precision of matrix products of simulations and programs, as `jax.default_matmul_precision` takes it."""


def exact(fn: Callable[..., Any]) -> Callable[..., Any]:
    """`fn` with the matrix products in it computed in float32, but for those that ask for another precision.

    JAX's default rounds their inputs, to 10 bits on GPUs since Ampere and to 7 on TPUs, and robots whose physics is
    computed so have failed to learn (https://github.com/google-deepmind/mujoco_playground/issues/86).
    """
    import jax

    @wraps(fn)
    def traced(*args: Any, **options: Any) -> Any:
        with jax.default_matmul_precision(EXACT):
            return fn(*args, **options)

    return traced


def _asked() -> int:
    """The number of CPU devices that JAX is configured with, -1 for none."""
    import jax

    return getattr(jax.config, "jax_num_cpu_devices", -1)  # type checkers do not know its options


def supported(options: Mapping[str, Any], platform: str, device: Any = None) -> dict[str, Any]:
    """Those compile options that the installed XLA knows on `platform` (`cpu`, `gpu` or `tpu`); it is asked for
    `device`, by default the first of the platform.

    XLA's options come and go between versions, and it refuses to compile with one that it does not know.
    """
    return {name: value for name, value in options.items() if _knows(name, value, platform, device)}


@cache
def _knows(name: str, value: Any, platform: str, device: Any) -> bool:
    """Whether a function of one addition compiles with the option; JAX has no list of them to look it up in."""
    import jax

    on = jax.sharding.SingleDeviceSharding(device or jax.local_devices(backend=platform)[0])
    number = jax.ShapeDtypeStruct((), "float32", sharding=on)
    try:
        jax.jit(lambda x: x + 1.0).lower(number).compile({name: value})
    except jax.errors.JaxRuntimeError:
        return False
    return True
