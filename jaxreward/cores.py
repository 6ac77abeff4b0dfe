"""The CPU cores of this machine."""

from __future__ import annotations

import os


def cores() -> int:
    """Cores that this process may use, as XLA counts them."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
