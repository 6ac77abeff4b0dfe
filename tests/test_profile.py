"""Where the time goes: the clock, and the page of a run."""

from __future__ import annotations

import dataclasses
import threading
import time

import pytest

from jaxreward.evolution import run_search
from jaxreward.evolution.profiling import section
from jaxreward.evolution.settings import EvolveSettings
from jaxreward.timing import Clock
from jaxreward.training import PPO
from tests.silent import Silent


@pytest.fixture
def seconds(monkeypatch) -> list[float]:
    """What the clock reads; the test moves its hand."""
    hand = [0.0]
    monkeypatch.setattr(time, "perf_counter", lambda: hand[0])
    return hand


def test_nested_sections_are_not_counted_twice(seconds):
    clock = Clock()
    with clock.part("outer"):
        seconds[0] += 1
        for _ in range(2):
            with clock.part("inner"):
                seconds[0] += 3
        with pytest.raises(ZeroDivisionError), clock.part("broken"):
            seconds[0] += 5
            _ = 1 / 0
        seconds[0] += 10
    assert clock.take() == ({"outer": 11, "inner": 6, "broken": 5}, {"outer": 1, "inner": 2, "broken": 1})
    assert clock.take() == ({}, {})


def test_threads_have_separate_sections(seconds):
    clock = Clock()

    def other() -> None:
        with clock.part("other"):
            seconds[0] += 2

    with clock.part("mine"):
        thread = threading.Thread(target=other)
        thread.start()
        thread.join()
    assert clock.take()[0] == {"mine": 2, "other": 2}


def test_a_section_adds_up():
    seconds = {"propose": 1.0, "verify": 2.0, "write": 0.5, "training": 6.0, "wait": 3.0, "update": 6.0, "compile": 4.0}
    page = section("generation 3", 10.0, seconds, {"compile": 17}, devices=2)
    assert "## generation 3: 10.0 s" in page
    for row in (
        "| verify: check programs in the sandbox | 2.00 | 20.0 % |  |", "| all else | 0.50 | 5.0 % |  |",
        "| wait for the compiler | 3.00 | 25.0 % |  |", "| idle | 3.00 | 25.0 % |  |", "| compile | 4.00 | 17 |",
    ):  # fmt: skip
        assert row in page
    assert "of 2 devices" in page and "device" not in section("generation 4", 1.0, {"propose": 0.5}, {}, devices=2)


@pytest.mark.long
@pytest.mark.usefixtures("unoptimised")
def test_a_run_writes_its_profile_and_a_trace(task_of, checker, tmp_path):
    settings = EvolveSettings(
        task="probe-choice", candidates=4, generation=2, seeds=1, steps=1024, baselines=(), final_seeds=0,
        ppo=PPO(envs=8, unroll=8, minibatches=2, hidden=(8,)), out=tmp_path, name="run", profile=True,
    )  # fmt: skip
    run_search(settings, Silent(), task=task_of("probe-choice"), checker=checker)
    page = (tmp_path / "run" / "profile" / "account.md").read_text()
    assert page.count("\n## generation ") == 2 and "update: collect experience and learn" in page
    assert list((tmp_path / "run" / "profile" / "trace").rglob("*.xplane.pb"))
    run_search(
        dataclasses.replace(settings, name="plain", profile=False),
        Silent(),
        task=task_of("probe-choice"),
        checker=checker,
    )
    assert not (tmp_path / "plain" / "profile").exists()
