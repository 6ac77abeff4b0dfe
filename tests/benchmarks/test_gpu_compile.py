"""The compiler of a GPU that need not be there, and what is said where the compiler is missing."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from benchmarks import compile_table, gpu_compile, table
from benchmarks.carried import read_programs, write_programs
from benchmarks.command import in_a_process
from benchmarks.described import environment
from benchmarks.markdown import results
from jaxreward.errors import UserError
from jaxreward.programs import Checker, Program
from jaxreward.tasks import make_task

ROOT = Path(__file__).resolve().parents[2]

LAUNCHES_AT_64 = 110
"""Of one environment step of xland-easy with 64 candidates on an H200: 97 were counted (benchmarks/results)."""


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--cases", "no-such-task"], "no-such-task"),
        (["--cases", "hopper:gru"], "hopper"),
        (["--devices", "h300"], "h200 and v5e"),
        (["--candidates", "0"], "at least 1"),
        (["--cases", "hopper", "--envs", "3"], "does not divide"),
        (["--out", "results.txt"], ".json"),
        (["--devices", "h200", "--cuda-site", "no-such-folder"], "--cuda-site DIR or pip install"),
        (["--devices", "v5e", "--libtpu", "no-such-folder"], "--libtpu DIR or pip install"),
    ],
)
def test_bad_input_ends_in_one_sentence(words, said, capsys):
    assert gpu_compile.main(words) == 2
    error = capsys.readouterr().err
    assert error.startswith("gpu_compile: ") and said in error and error.count("\n") == 1


def test_a_plugin_of_another_version_than_jax_is_refused(tmp_path: Path):
    (tmp_path / "nvidia" / "cu13" / "nvvm").mkdir(parents=True)
    wheel = tmp_path / "jax_cuda13_plugin-0.0.1.dist-info"
    wheel.mkdir()
    (wheel / "METADATA").write_text("Metadata-Version: 2.1\nName: jax-cuda13-plugin\nVersion: 0.0.1\n")
    with pytest.raises(UserError, match=r"version 0\.0\.1 and JAX of"):
        environment("h200", tmp_path)


def test_results_of_another_benchmark_are_not_overwritten(tmp_path: Path):
    other = tmp_path / "other.json"
    other.write_text('{"benchmark": "task_speed", "rows": [1]}')
    with pytest.raises(UserError, match="holds other results"):
        gpu_compile.Results(other)
    assert json.loads(other.read_text())["rows"] == [1]


def test_rows_are_appended_to_those_of_before(tmp_path: Path):
    path = tmp_path / "results.json"
    gpu_compile.Results(path).append({"a": 1})
    gpu_compile.Results(path).append({"a": 2})
    assert json.loads(path.read_text())["rows"] == [{"a": 1}, {"a": 2}]


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("import sys; sys.stderr.write('Traceback\\nValueError: no luck\\n-----\\nFrames were removed.'); sys.exit(1)",
         "ValueError: no luck"),
        ("import os, signal; os.kill(os.getpid(), signal.SIGKILL)", "ended by signal 9"),
        ("import time; time.sleep(60)", "not done within 2 s"),
    ],
)  # fmt: skip
def test_a_process_that_fails_costs_its_row_alone(code, said):
    assert said in in_a_process(["-c", code], {}, 2.0)["error"]


def test_carried_programs_are_those_that_were_written(checker: Checker, tmp_path: Path):
    task = make_task("xland-easy")
    verdict, expert = checker.check((ROOT / "interfaces" / "xland_easy" / "expert.py").read_text(), task)
    assert expert is not None and expert.skeleton is not None, verdict.failure
    programs = [Program.default(task), expert]
    path = tmp_path / "programs.json.gz"
    write_programs(path, programs)
    found = read_programs(path, task)
    assert found == programs and [p.structure for p in found] == [p.structure for p in programs]
    assert all((a.constants == b.constants).all() for a, b in zip(found, programs, strict=True))
    with pytest.raises(UserError, match="the state of another task"):
        read_programs(path, make_task("probe-choice"))
    path.write_bytes(path.read_bytes()[:50])
    with pytest.raises(UserError, match="cannot be read as programs"):
        read_programs(path, task)


@pytest.fixture
def report() -> dict[str, Any]:
    return results(compile_table.RESULTS, "gpu_compile")


def test_the_page_has_the_table_of_the_results(report):
    page = table.PAGE.read_text()
    assert compile_table.fill(page, report) == page, "run benchmarks/compile_table.py"


def test_a_row_that_failed_says_why_in_the_table(report):
    row = {**report["rows"][0], "error": "not done within 900 s"}
    cells = compile_table.cells(row)
    assert cells[3] == "not done within 900 s" and len(cells) == len(compile_table.COLUMNS)


def _installed() -> str:
    """Why nothing can be compiled for an H200 here; empty if it can."""
    try:
        environment("h200")
    except UserError as error:
        return str(error)
    return ""


@pytest.mark.slow
@pytest.mark.skipif(bool(_installed()), reason=_installed())
def test_an_environment_step_of_many_candidates_takes_few_launches(tmp_path: Path):
    """Also where the compiler is in folders of its own: PYTHONPATH may name them."""
    out = tmp_path / "rows.json"
    words = ["--cases", "xland-easy", "--devices", "h200", "--candidates", "64", "--limit-s", "550", "--out", str(out)]
    assert gpu_compile.main(words) == 0
    (row,) = json.loads(out.read_text())["rows"]
    assert row["estimate"]["launches_per_step"] <= LAUNCHES_AT_64 and not row["estimate"]["unknown_per_step"]
