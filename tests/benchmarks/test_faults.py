"""The fault campaign: its table, and two of its faults."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks import faults
from benchmarks.fault_scenarios import last_words


def test_the_last_line_is_what_the_user_saw():
    assert last_words("one\n\n  two  \n") == "two"
    assert last_words("") == ""
    said = "Traceback (most recent call last):\n  File x\nValueError: no"
    assert last_words(said) == "Traceback: ValueError: no"


def test_a_row_says_what_was_lost_and_whether_the_end_is_the_same():
    report = {
        "cpu": "one", "cores": 2, "versions": {"jax": "0"}, "commit": "c",
        "rows": [
            {"fault": "a", "how": "so", "status": -9, "seen": "x|y", "events": 7, "resumed": 0, "lost": 2,
             "same": False},
            {"fault": "b", "how": "so", "left_out": "no file system can be mounted here"},
        ],
    }  # fmt: skip
    a, b = faults.markdown(report).splitlines()[-2:]
    assert "killed" in a and "2 of 7" in a and "**another end**" in a and "x\\|y" in a
    assert "left out" in b


def test_a_fault_that_there_is_not_is_refused(capsys):
    assert faults.main(["--faults", "an earthquake"]) == 2
    assert "choose from" in capsys.readouterr().err


def test_the_page_has_the_committed_results():
    committed = json.loads(faults.RESULTS.read_text())
    assert faults.markdown(committed) in faults.PAGE.read_text()
    assert {row["fault"] for row in committed["rows"]} == set(faults.FAULTS)


@pytest.mark.slow
def test_nothing_of_a_log_is_lost(tmp_path: Path):
    out = tmp_path / "faults.json"
    words = [
        "--faults",
        "loss of power",
        "asynchronous: SIGKILL of the command",
        "--steps",
        "200000",
        "--out",
        str(out),
    ]
    assert faults.main(words) == 0
    for row in json.loads(out.read_text())["rows"]:
        assert row["same"] and not row["lost"], row
