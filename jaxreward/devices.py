"""What the installed XLA accepts for a device."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any


def supported(options: Mapping[str, Any], platform: str) -> dict[str, Any]:
    """Those compile options that the installed XLA knows on `platform` (`cpu`, `gpu` or `tpu`).

    XLA's options come and go between versions, and it refuses to compile with one that it does not know.
    """
    return {name: value for name, value in options.items() if _knows(name, value, platform)}


@cache
def _knows(name: str, value: Any, platform: str) -> bool:
    """Whether a function of one addition compiles with the option; JAX has no list of them to look it up in."""
    import jax

    on = jax.sharding.SingleDeviceSharding(jax.local_devices(backend=platform)[0])
    number = jax.ShapeDtypeStruct((), "float32", sharding=on)
    try:
        jax.jit(lambda x: x + 1.0).lower(number).compile({name: value})
    except jax.errors.JaxRuntimeError:
        return False
    return True
