"""One checker for the whole folder: its processes take seconds to start."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from jaxreward.programs import Checker, Limits

sys.path.insert(0, str(Path(__file__).parent))


@pytest.fixture(scope="session")
def checker() -> Iterator[Checker]:
    """Short clocks, so that what must be killed is killed soon."""
    with Checker(Limits(cpu_s=3, wall_s=12.0, verify_s=20.0)) as shared:
        yield shared


@pytest.fixture(scope="session")
def task():
    from pointtask import PointTask

    return PointTask()
