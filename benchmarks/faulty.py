"""A command of jaxreward on a machine with a fault that its operating system cannot be asked for.

python benchmarks/faulty.py clock evolve --task ...     # the clock goes back by a day while it runs
python benchmarks/faulty.py slow evolve --task ...      # everything that is forced onto the disk takes a quarter second
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

BACK_S, SOON = 86_400.0, 60
"""How far the clock goes back, and after how many looks at it."""

SLOW_S = 0.25


def clock() -> None:
    """The clock goes back by a day."""
    real, looks = time.time, 0

    def jumping() -> float:
        nonlocal looks
        looks += 1
        return real() - BACK_S * (looks > SOON)

    time.time = jumping


def slow() -> None:
    """`fsync` takes long, as on a network file system."""
    real = os.fsync

    def late(file: int) -> None:
        time.sleep(SLOW_S)
        real(file)

    os.fsync = late  # type: ignore[assignment]


if __name__ == "__main__":
    {"clock": clock, "slow": slow}[sys.argv[1]]()
    from jaxreward.cli import main

    sys.exit(main(sys.argv[2:]))
