"""One checker for the whole folder: its processes take seconds to start."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from jaxreward.programs import Checker, Limits, Program
from jaxreward.records import Verdict

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


@pytest.fixture(scope="session")
def good(checker: Checker, task) -> dict[str, tuple[Verdict, Program | None]]:
    """What the checker says of the good programs of the suite."""
    import suite_good

    outcomes = checker.check_many([source for source, _ in suite_good.CASES.values()], task)
    return dict(zip(suite_good.CASES, outcomes, strict=True))
