"""How tests compile what they run but a few times."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

OPTIMISED = "JAXREWARD_TESTS_OPTIMISED"
"""A variable of the environment: where it is set, all tests compile as users do."""

UNOPTIMISED: dict[str, Any] = {
    "xla_backend_optimization_level": 0,
    "xla_llvm_disable_expensive_passes": True,
    "xla_cpu_use_fusion_emitters": False,
    "xla_cpu_parallel_codegen_split_count": 1,
}
"""Options by which XLA compiles in a third of the time, to slower code."""


def jit(function: Callable[..., Any]) -> Callable[..., Any]:
    """`jax.jit` with those of these options that the installed XLA knows, which is asked at the first call."""

    @cache
    def compiled() -> Any:
        import jax  # not before tests/conftest.py has set its environment

        from jaxreward.devices import supported

        return jax.jit(function, compiler_options=supported(UNOPTIMISED, jax.default_backend()))

    return lambda *args, **named: compiled()(*args, **named)
