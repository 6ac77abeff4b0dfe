"""The benchmarks of the recurrent learner and of threads of devices, in the smallest sizes."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks import device_threads, plain_trainer
from benchmarks.plain_trainer import PlainSettings, flops_of
from jaxreward.programs import Program
from jaxreward.tasks import make_task

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize(
    ("benchmark", "words"),
    [
        (plain_trainer, ["--seeds", "0"]), (plain_trainer, ["--interface", "no/such/file.py"]),
        (plain_trainer, ["--envs", "100"]), (device_threads, ["--devices", "0"]),
    ],
)  # fmt: skip
def test_impossible_measurements_are_refused_at_once(benchmark, words, capsys):
    assert benchmark.main(words) == 2
    assert capsys.readouterr().err.count("\n") == 1


def test_products_are_counted_by_hand():
    """Four passes over a batch, and one over the held-out episodes."""
    program, s = Program.default(make_task("xland-easy")), PlainSettings()
    a_step = 98 * 256 + 256 * 256 + (256 + 16 + 1) * 1536 + 512 * 1536 + 2 * 512 * 256 + 256 * (6 + 1)
    assert flops_of(program, s, 6) == 2 * a_step * 3 * (4 * 131_072 + 80 * 80)


@pytest.mark.slow
def test_side_by_side(tmp_path: Path):
    out = tmp_path / "plain.json"
    words = ["--envs", "32", "--steps", "1024", "--episodes", "4", "--out", str(out)]
    assert plain_trainer.main(words) == 0
    report = json.loads(out.read_text())
    (row,) = report["rows"]
    for side in ("plain", "jaxreward"):
        assert len(row[side]["success"]) == 2 and row[side]["wall_s"] > row[side]["compile_s"] > 0
        assert all((4 * success).is_integer() for success in row[side]["success"])
    assert report["wall_s_ratio"] == row["plain"]["wall_s"] / row["jaxreward"]["wall_s"]


@pytest.mark.slow
def test_threads_of_devices(tmp_path: Path):
    """In a process of its own, whose devices it chooses."""
    out = tmp_path / "threads.json"
    words = ["--devices", "2", "--updates", "3", "--repeat", "1", "--lengths-ms", "5", "--out", str(out)]
    subprocess.run([sys.executable, ROOT / "benchmarks/device_threads.py", *words], check=True, timeout=300)
    (row,) = json.loads(out.read_text())["rows"]
    assert row["devices"] == 2 and min(row["alone_ms"], row["together_ms"]) >= 5.0
