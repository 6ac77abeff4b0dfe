"""The first run of the documentation: its training code learns on an exported file."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from jaxreward.cli import main

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "first_run.md").read_text()


@pytest.mark.slow
def test_the_training_code_learns(tmp_path):
    pytest.importorskip("gymnasium")
    (code,) = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    (tmp_path / "mine.py").write_text(code)
    found = ROOT / "interfaces" / "xland_easy" / "genetic.py"
    assert main(["export", str(found), "--to", "gymnasium", "--out", str(tmp_path / "easy.py")]) == 0
    environment = {**os.environ, "PYTHONPATH": ""}
    done = subprocess.run(
        [sys.executable, "mine.py"], cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr
    first, *_, last = (float(x) for x in re.findall(r"success (\d\.\d+)", done.stdout))
    assert last > max(0.6, first + 0.3), done.stdout
