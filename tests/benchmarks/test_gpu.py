"""The benchmark of a bare machine: what it imports is what it says it needs."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import pytest

from benchmarks import gpu
from benchmarks.carried import write_programs
from benchmarks.evidence import ROBOTS, TINY
from jaxreward.programs import Program
from jaxreward.tasks import make_task

ROOT = Path(__file__).resolve().parents[2]
NEEDED_BY_JAX = ("jax", "jaxlib", "ml_dtypes", "numpy", "opt_einsum", "scipy")

BARE = """
import importlib.abc, sys
from importlib.metadata import packages_distributions

norm = lambda name: name.lower().replace("_", "-")
allowed = {norm(name) for name in sys.argv.pop(1).split()}
modules = {top: {norm(d) for d in found} for top, found in packages_distributions().items()}


class Bare(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        top = name.split(".")[0]
        if top in modules and top not in sys.stdlib_module_names and not modules[top] & allowed:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)


sys.meta_path.insert(0, Bare())
"""
"""Nothing can be imported but the standard library, this repository and the distributions of the first argument."""


def bare(code: str, *words: str, timeout: float = 300.0) -> str:
    allowed = " ".join((*gpu.WHEELS, *NEEDED_BY_JAX, "jaxreward"))
    env = os.environ | {"JAX_PLATFORMS": "cpu", "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, "-c", BARE + code, allowed, *words], cwd=ROOT, env=env, capture_output=True, text=True,
        timeout=timeout,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


@pytest.mark.slow
def test_trainer_tasks_and_benchmark_are_imported_with_the_listed_wheels_alone():
    bare("""
import jaxreward, jaxreward.training, benchmarks.evidence, benchmarks.gpu
from benchmarks.evidence import ROBOTS
from jaxreward.tasks import make_task

for name in ("xland-easy", *ROBOTS):
    make_task(name).vocabulary()
try:
    import litellm
except ModuleNotFoundError:
    pass
else:
    raise SystemExit("litellm is not blocked")
""")


def test_wheels_are_printed_as_pip_takes_them(capsys):
    assert gpu.main(["--wheels"]) == 0
    printed = dict(line.split("==") for line in capsys.readouterr().out.split())
    assert printed == {name: metadata.version(name) for name in gpu.WHEELS}


@pytest.mark.slow
def test_the_evidence_is_measured_in_small_on_a_cpu_with_the_listed_wheels(tmp_path: Path):
    out = tmp_path / "evidence.json"
    for name in ("xland-easy", *ROBOTS):
        write_programs(tmp_path / f"{name}.json.gz", [Program.default(make_task(name))] * 2)
    code = "import sys\nfrom benchmarks import evidence\nsys.exit(evidence.main(sys.argv[1:]))"
    bare(code, "--tiny", "--programs", str(tmp_path), "--out", str(out), timeout=590.0)
    report = json.loads(out.read_text())
    rows = {
        kind: [row for row in report["rows"] if row["kind"] == kind] for kind in ("launches", "training", "agreement")
    }
    assert not report["left_out"] and not [row for row in report["rows"] if "error" in row]
    assert len(rows["training"]) == len(TINY.grid) + len(ROBOTS) and all(r["steps_per_s"] > 0 for r in rows["training"])
    (agreed,) = rows["agreement"]
    assert agreed["observation_all"] == agreed["reward_all"] == 0 and agreed["same_actions"] == 1, "a CPU with itself"
    assert rows["launches"][0]["loop_us"] > 0


@pytest.mark.parametrize("words", [["--seconds", "0"], ["no-such-part"]])
def test_bad_input_ends_in_one_sentence(words, capsys):
    assert gpu.main(words) == 2
    error = capsys.readouterr().err
    assert error.startswith("gpu: ") and error.count("\n") == 1
