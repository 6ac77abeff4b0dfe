"""The labelled set of rewards, and how what is said of them is counted."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from benchmarks import farmed_warning
from jaxreward.tasks import make_task


@pytest.mark.parametrize("words", [["--seeds", "0"], ["--tasks", "probe-aim"]])
def test_impossible_measurements_are_refused_at_once(words, capsys):
    assert farmed_warning.main(words) == 2
    assert capsys.readouterr().err.count("\n") == 1


def test_hits_and_false_alarms_are_counted():
    def row(farmable: bool, *kinds: str) -> dict[str, Any]:
        return {"task": "t", "farmable": farmable, "notices": dict.fromkeys(kinds, "")}

    rows = [row(True, "farmed"), row(True), row(False, "farmed", "plateau"), row(False), row(False)]
    found = {row["kind"]: row for row in farmed_warning.counts(rows)}
    assert found["farmed"] == {
        "task": "t", "kind": "farmed", "hits": 1, "farmable": 2, "false_alarms": 1, "honest": 3
    }  # fmt: skip
    assert found["plateau"]["false_alarms"] == 1 and found["unreached"]["hits"] == 0


@pytest.mark.slow
@pytest.mark.parametrize("name", farmed_warning.NAMES)
def test_the_labelled_set_is_made_of_different_programs(name):
    """None of which is a reward that is always zero."""
    programs = farmed_warning.labelled(name, make_task(name))
    own = [p for title, _, _, p in programs if not title.startswith("shipped")]
    assert len({p.digest for p in own}) == len(own) == 2 * len(farmed_warning.HONEST | farmed_warning.FARMABLE)


@pytest.mark.slow
def test_a_labelled_set_is_trained_and_reported(tmp_path: Path):
    out = tmp_path / "warnings.json"
    words = ["--tasks", "xland-easy", "--seeds", "1", "--steps", "20000", "--eval-episodes", "16", "--out", str(out)]
    assert farmed_warning.main(words) == 0
    report = json.loads(out.read_text())
    assert len(report["rows"]) == 36 and report["counts"] and report["commit"]
