"""Several devices, each with chunks of its own, in a process that has three."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).with_name("on_three_devices.py")
ROOT = SCRIPT.parents[2]


@pytest.mark.slow
@pytest.mark.parametrize("collector", ["stepwise", pytest.param("fused", marks=pytest.mark.slow)])
def test_three_devices_train_as_one(collector):
    """The same results, also of survivors and after a stop; a failure on one ends the others.

    Chunks are dealt to devices alike for both collectors, so the stepwise case carries the fused one.
    """
    env = os.environ | {"JAX_NUM_CPU_DEVICES": "3", "JAX_PLATFORMS": "cpu", "PYTHONPATH": str(ROOT)}
    env["JAX_DISABLE_MOST_OPTIMIZATIONS"] = "1"
    command = [sys.executable, str(SCRIPT), collector]
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=900)
    assert done.returncode == 0 and "all held" in done.stdout, done.stderr[-3000:]
