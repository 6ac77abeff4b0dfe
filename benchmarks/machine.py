"""What a measurement was made on."""

from __future__ import annotations

import contextlib
import os
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import jax

from jaxreward.devices import cores
from jaxreward.runs.provenance import VERSIONED, commit, device, versions


def machine() -> dict[str, Any]:
    """Device, processor, versions, commit, load and date, as they are now."""
    return {
        "device": device(),
        "devices": len(jax.local_devices()),
        "cpu": _cpu_model(),
        "cores": cores(),
        "versions": versions(*VERSIONED),
        "commit": commit() or "unknown",
        "load_average": round(os.getloadavg()[0], 2),
        "date": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
    }


def _cpu_model() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return "unknown"
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else "unknown"


def start_peak() -> None:
    """Begin to watch the largest resident memory of this process anew."""
    with contextlib.suppress(OSError):  # else the peak is that of the whole life of the process
        Path("/proc/self/clear_refs").write_text("5")


def peak_resident() -> int:
    """Largest resident memory of this process since `start_peak`, in bytes, the compiler's included."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * 1024
    return 0
