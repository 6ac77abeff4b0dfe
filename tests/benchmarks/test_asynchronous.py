"""The benchmark of asynchronous searches, in the smallest size, and its page."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks import asynchronous, asynchronous_page
from benchmarks.virtual_time import Simulation, Times, simulate


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    out = tmp_path_factory.mktemp("asynchronous") / "results.json"
    words = ["--parts", "staleness", "scale", "--landscapes", "smooth", "--candidates", "24", "--devices", "2"]
    words += ["--seeds", "2", "--scale", "1", "3", "--scale-candidates", "12", "--out", str(out)]
    assert asynchronous.main(words) == 0
    before = out.read_text()
    assert asynchronous.main(words) == 0 and out.read_text() == before, "it goes on with what it has"
    return json.loads(before)


def test_every_way_is_simulated(report):
    ways = {row["way"] for row in report["staleness"]}
    assert ways == {"one device", "waits", "asynchronous, 3", "asynchronous, 4"}
    assert all(row["staleness"] == 0 for row in report["staleness"] if not row["way"].startswith("async"))
    assert [(row["devices"], row["trained"]) for row in report["scale"]] == [(1, 12), (1, 12), (3, 12), (3, 12)]


def test_its_page_has_a_row_for_each_and_a_picture(report, tmp_path: Path):
    text = asynchronous_page.markdown(report)
    rows = [line for line in text.splitlines() if line.startswith("| smooth")]
    assert len(rows) == len(report["staleness"])
    asynchronous_page.picture(report, tmp_path / "it.png")
    assert (tmp_path / "it.png").stat().st_size > 1000


def test_a_simulation_is_the_same_each_time(tmp_path: Path):
    sim = Simulation("noisy", "limen", 16, 1, 3, 2, times=Times(spread=1.0))
    found = []
    for name in "ab":
        (tmp_path / name).mkdir()
        found.append(simulate(sim, tmp_path / name))
    assert found[0].curve == found[1].curve and found[0].staleness > 0


def test_devices_that_wait_for_the_slowest_are_idle_longer(tmp_path: Path):
    idle = []
    for asynchronous_ in (True, False):
        out = tmp_path / str(asynchronous_)
        out.mkdir()
        sim = Simulation("smooth", "limen", 48, 0, 4, 2, asynchronous_, in_flight=8 if asynchronous_ else 0)
        idle.append(simulate(sim, out).idle)
    assert idle[0] < 0.7 * idle[1]


def test_results_of_other_settings_are_not_gone_on_with(tmp_path: Path, capsys):
    out = tmp_path / "results.json"
    out.write_text(json.dumps({"benchmark": "asynchronous", "candidates": 1}))
    assert asynchronous.main(["--parts", "scale", "--out", str(out)]) == 2
    assert "other settings" in capsys.readouterr().err
