"""The benchmark of Ray, in the smallest size."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.slow
def test_every_way_is_timed(tmp_path: Path):
    """In a process of its own, whose devices it chooses."""
    out = tmp_path / "ray.json"
    words = ["--programs", "2", "--steps", "2048", "--repeat", "1", "--out", str(out)]
    subprocess.run([sys.executable, ROOT / "benchmarks/ray_speed.py", *words], check=True, timeout=600)
    report = json.loads(out.read_text())
    assert list(report["rows"]) == ["this process", "1 worker", "2 workers"]
    assert all(row["env_steps_per_s"] > 0 for row in report["rows"].values())
    one, several = (min(report["rows"][name]["seconds"]) for name in ("1 worker", "2 workers"))
    assert report["speed_up"] == one / several
