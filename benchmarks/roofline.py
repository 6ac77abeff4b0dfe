"""Steps a second that a program could make at most, by what its kernels cost at least.

An update is one run of every compiled function. A function lasts at least as long as its launches follow each other,
as its bytes take through the device's memory, and as its arithmetic takes: the longest of the three (Williams,
Waterman and Patterson 2009, with launches as a third bound).
"""

from __future__ import annotations

from typing import Any

from benchmarks.described import Described

ASSUMED = (
    "kernels are launched one after another, launch_us apart; memory and arithmetic at the data sheet's rates, "
    "arithmetic as float32; loops of unknown length take one turn; every kernel reads its operands from and writes its "
    "results to the device's memory, of slices what they hold; resets and action noise, two small functions an update, "
    "and held-out episodes are left out; no autotuning, and products on the H200 by cuBLAS"
)
"""What the estimate takes for granted; in every file of results."""


def bounds_of(function: dict[str, Any], device: Described, launch_us: float | None = None) -> dict[str, float]:
    """Seconds that one run of a compiled function takes at least, by each bound."""
    launch_us = device.launch_us if launch_us is None else launch_us
    return {
        "launches": (function["launches"] + function["unknown_turn"]) * launch_us * 1e-6,
        "memory": function["bytes"] / device.bandwidth,
        "arithmetic": function["flops"] / device.flops,
    }


def seconds_of(function: dict[str, Any], device: Described) -> float:
    """Seconds that one run of a compiled function takes at least."""
    return max(bounds_of(function, device).values())


def estimate(row: dict[str, Any], device: Described, launch_us: float | None = None) -> dict[str, Any]:
    """Of a row of `gpu_compile`: launches for an environment step, the seconds of an update by each bound, steps/s.

    `launches_per_step` are those of what collects, by the steps of its scan, which takes one more than it commits.
    """
    launch_us = device.launch_us if launch_us is None else launch_us
    functions = row["functions"]
    steps = (row["length"] + 1) * row["repeat"]
    collecting = [f for name, f in functions.items() if name != "learn"]
    seconds, bounds = 0.0, {"launches": 0.0, "memory": 0.0, "arithmetic": 0.0}
    for f in functions.values():
        parts = bounds_of(f, device, launch_us)
        seconds += max(parts.values())
        for name, part in parts.items():
            bounds[name] += part
    return {
        "launches_per_step": sum(f["launches"] for f in collecting) / steps,
        "unknown_per_step": sum(f["unknown_turn"] for f in collecting) / steps,
        "update_s": seconds, **{f"{name}_s": value for name, value in bounds.items()},
        "bound_by": max(bounds, key=bounds.__getitem__), "steps_per_s": row["steps"] / seconds,
        "launch_us": launch_us, "bandwidth": device.bandwidth, "peak_flops": device.flops,
    }  # fmt: skip
