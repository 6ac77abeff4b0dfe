"""`jaxreward new-task`: the file is a task, and nothing is overwritten."""

from __future__ import annotations

from pathlib import Path

import pytest

from jaxreward.cli import main


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)


def test_the_file_passes_check(capsys: pytest.CaptureFixture[str]):
    assert main(["new-task", "lake-trip"]) == 0
    assert main(["check", "lake_trip.py"]) == 0
    said = "lake_trip.py: ok, lake-trip, measured by success, no vocabulary of its own (a search derives one)"
    assert said in capsys.readouterr().out


@pytest.mark.parametrize(
    "name, why",
    [
        ("3d", "cannot be the name"), ("a/b", "cannot be the name"), ("class", "cannot be the name"),
        ("jax", "would hide the Python module jax"), ("taken", "exists already"), ("", "say what the task is called"),
    ],
)  # fmt: skip
def test_other_names_are_refused_in_a_sentence(name: str, why: str, capsys: pytest.CaptureFixture[str]):
    Path("taken.py").write_text("mine")
    assert main(["new-task", *([name] if name else [])]) == 2
    assert why in capsys.readouterr().err
    assert {p.name for p in Path().iterdir()} == {"taken.py"} and Path("taken.py").read_text() == "mine"
