"""The benchmark itself: what it counts, what it extrapolates, what it prints."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from benchmarks import candidate_throughput, gpu, regimes, scaling, table
from benchmarks.measure import Apart, Seconds, median
from jaxreward import cli
from jaxreward.errors import InvalidSetting, UserError
from jaxreward.tasks import make_task
from jaxreward.training import PPO, Execution, quick_real

ROOT = Path(__file__).resolve().parents[2]
SMALL = (
    "--task", "probe-choice", "--seeds", "1", "--steps", "256", "--checkpoints", "1", "--eval-episodes", "8",
    "--ppo.envs", "8", "--ppo.unroll", "8", "--ppo.hidden", "8",
)  # fmt: skip


def seconds(*walls: float) -> tuple[Seconds, ...]:
    return tuple(Seconds(compile=w - 1, run=1, wall=w) for w in walls)


def test_what_compiled_the_learner_is_not_carried_forward():
    """The second width is new at the third program: neither it nor the first stands for others."""
    apart = Apart(seconds(10, 4, 9, 6), (32, 32, 64, 64), shared=True)
    assert apart.total(2).wall == 14
    assert apart.total(4).wall == 29
    assert apart.total(10).wall == 29 + 6 * 5
    assert apart.total(10).run == 10
    assert Apart(seconds(10, 4), (32, 32), shared=False).total(4).wall == 28
    assert Apart(seconds(10), (32,), shared=True).total(3).wall == 30


def test_the_median_is_one_repeat():
    assert median(seconds(3, 9, 4)).wall == 4
    assert median(seconds(3, 9)).wall == 3


@pytest.mark.slow
@pytest.mark.usefixtures("unoptimised")
def test_one_candidate_is_measured_without_comparisons(capsys: pytest.CaptureFixture[str]):
    words = [*SMALL, "--candidates", "1", "--one-by-one-limit", "0", "--separate-limit", "0", "--no-second-pass"]
    assert candidate_throughput.main([*words, "--json"]) == 0
    (row,) = json.loads(capsys.readouterr().out.splitlines()[-1])["rows"]
    assert row["wall_s"] > row["run_s"] > 0 and row["wall_ratio"] is None and row["collector"] == "stepwise"


def test_only_collectors_that_the_learner_supports_are_compared():
    assert list(regimes.collectors(PPO(), "cpu")) == ["fused", "fused, fast", "stepwise"]
    assert list(regimes.collectors(PPO(gru=4), "cpu")) == ["fused", "fused, fast"]
    assert list(regimes.collectors(PPO(), "gpu")) == ["fused", "stepwise"]


def test_differing_agents_are_reported(monkeypatch: pytest.MonkeyPatch):
    by = {("fused", "full"): 0.0, ("fused", "fast"): 0.25, ("stepwise", "auto"): np.nan}

    def train(*_: Any, execution: Execution, **__: Any) -> SimpleNamespace:
        off = by[execution.collector, execution.compile]
        agents = tuple({"weights": np.ones((2, 3)) - off * (k == 1)} for k in range(2))
        return SimpleNamespace(
            agents=agents, steps=[64], seeds=(0, 1), success=np.asarray([[1, 0], [1, 2 * off]], float)
        )

    monkeypatch.setattr(regimes, "train", train)
    found = regimes.agreement(make_task("probe-choice"), [], ppo=PPO())["collectors"]
    assert found["fused, fast"] == {"max_parameter_difference": 0.25, "max_success_difference": 0.5}
    assert np.isnan(list(found["stepwise"].values())).all()
    monkeypatch.setattr(regimes, "collectors", lambda _, chunk: {"fused": Execution()})
    with pytest.raises(InvalidSetting) as error:
        regimes.agreement(make_task("probe-choice"), [], ppo=PPO())
    assert error.value.settings == ("agree",)


@pytest.mark.slow
def test_a_report_holds_rows_chunking_and_agreement(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    out = tmp_path / "results" / "small.json"
    status = candidate_throughput.main(
        [*SMALL, "--candidates", "3", "1", "--one-by-one-limit", "2", "--separate-limit", "1", "--chunking", "2",
         "--memory-gb", "1e-6", "--agree", "2", "--out", str(out), "--json"]
    )  # fmt: skip
    printed = capsys.readouterr()
    assert status == 0, printed.err
    report = json.loads(printed.out.splitlines()[-1])
    assert report == json.loads(out.read_text())
    one, three = report["rows"]
    assert (one["candidates"], three["candidates"]) == (1, 3)
    assert not one["one_by_one_extrapolated"] and three["one_by_one_extrapolated"] and three["one_by_one_measured"] == 2
    assert three["env_steps"] == 3 * one["env_steps"] == 3 * 256
    assert three["wall_ratio"] == pytest.approx(three["one_by_one_wall_s"] / three["wall_s"])
    assert three["steps_per_s"] == pytest.approx(three["env_steps"] / three["run_s"])
    assert report["ceiling"]["steps_per_s"] >= one["ceiling_steps_per_s"]
    (chunking,) = report["chunking"]
    assert chunking["whole_chunks"] == [2] and chunking["chunks"] == [1, 1] and not chunking["under_limit"]
    agreement = report["agreement"]
    assert (agreement["programs"], agreement["seeds"], agreement["steps"]) == (2, 1, 64)
    assert set(agreement["collectors"]) == {"fused, fast", "stepwise"}
    assert all(by["max_parameter_difference"] < 1e-3 for by in agreement["collectors"].values())

    page = table.fill(f"before\n{table.START}\nold\n{table.END}\nafter\n", [report])
    assert page.startswith("before\n") and page.endswith("\nafter\n") and "old" not in page
    assert "| 3 | stepwise | 3 |" in page and "~" in page
    assert table.fill(page, [report]) == page


def test_the_page_documents_every_key():
    page = table.PAGE.read_text()
    source = (ROOT / "benchmarks" / "candidate_throughput.py").read_text()
    row = source[source.index("row: dict") : source.index("# fmt: skip", source.index("row: dict"))]
    for key in re.findall(r'"(\w+)":', row):
        assert f"`{key}`" in page, key


def test_a_plan_is_only_printed(capsys: pytest.CaptureFixture[str]):
    assert candidate_throughput.main(["--dry-run", "--json"]) == 0
    assert json.loads(capsys.readouterr().out.splitlines()[-1])["dry_run"] is True


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--candidates", "0"], "each at least 1"),
        (["--steps", "0"], "--steps must be at least 1"),
        (["--task", "xland-esy", "--dry-run"], "did you mean 'xland-easy'"),
        (["--out", "results.csv"], "must end in .json"),
        (["--plot", "results.pdf"], "must end in .png or .svg"),
        (["--config"], "--config needs a value"),
        (["--chunking", "-1"], "--chunking must not be negative"),
        (["--collector", "stepwise", "--ppo.gru", "4"], "the stepwise collector agents cannot have a memory"),
    ],
)
def test_user_errors_are_one_sentence(arguments: list[str], sentence: str, capsys: pytest.CaptureFixture[str]):
    assert candidate_throughput.main(arguments) == 2
    err = capsys.readouterr().err
    assert sentence in err and len(err.splitlines()) == 1


def test_a_settings_file_is_read_and_checked(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    file = tmp_path / "bench.toml"
    file.write_text("candidates = [1, 2]\none-by-one-limit = 1\n")
    assert candidate_throughput.main(["--config", str(file), "--dry-run"]) == 0
    assert "1, 2 candidates" in capsys.readouterr().out
    file.write_text("task = 'panda-tracking'\n\n[ppo]\ndiscount = 0.99\nentropy = 0.5\n")
    words = ["--config", str(file), "--ppo.entropy", str(PPO().entropy), "--dry-run", "--json"]
    assert candidate_throughput.main(words) == 0
    found = json.loads(capsys.readouterr().out.splitlines()[-1])["settings"]["ppo"]
    wanted = quick_real(discount=0.99, entropy=PPO().entropy)  # defaults of another learner are applied too
    for name in ("discount", "entropy", "learning_rate", "envs", "normalize_observations"):
        assert found[name] == getattr(wanted, name), name
    file.write_text("candidate = [1]\n")
    assert candidate_throughput.main(["--config", str(file), "--dry-run"]) == 2
    assert "did you mean 'candidates'" in capsys.readouterr().err


def test_files_that_hold_no_results_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    other = tmp_path / "other.json"
    other.write_text("{}")
    assert table.main([str(other)]) == 2 and table.main([]) == 2
    assert "does not hold results" in capsys.readouterr().err
    with pytest.raises(UserError, match="exactly one <!-- table -->"):
        table.fill("no markers", [])


def test_the_growth_with_candidates_is_drawn(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    row = {
        "devices": 2, "steps_per_s": 1e5, "ceiling_steps_per_s": 1e6, "wall_s": 9.0, "run_s": 3.0, "peak_bytes": 10**7,
        "resident_bytes": 10**9,
    }  # fmt: skip
    settings = {"task": "probe-choice", "seeds": 2, "steps": 100}
    report = {"rows": [{"candidates": n, **row} for n in (1, 4, 16)], "settings": settings, "device": "cpu"}
    results, picture = tmp_path / "rows.json", tmp_path / "rows.png"
    results.write_text(json.dumps(report))
    assert scaling.main([str(results), str(picture)]) == 0
    assert picture.read_bytes().startswith(b"\x89PNG")
    results.write_text("{}")
    assert scaling.main([str(results), str(picture)]) == 2 and scaling.main([]) == 2
    assert "holds no rows" in capsys.readouterr().err


def test_the_script_for_a_gpu_runs_what_it_prints(tmp_path: Path):
    words = [sys.executable, str(ROOT / "benchmarks" / "gpu.py"), "throughput", "--dry-run", "--out", str(tmp_path)]
    done = subprocess.run(words, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert "candidate_throughput.py --seeds 2 --candidates 1 4" in done.stdout
    assert "16 candidates whole and in chunks" in done.stdout, "what that script itself says"


def here(words: list[str], **_: Any) -> SimpleNamespace:
    """What a script of the project does, in this process, which has imported it all."""
    script, arguments = Path(words[2]), words[3:]
    if script.parent.name == "scripts":
        return SimpleNamespace(returncode=cli.main([script.stem, *arguments]))
    assert script.stem == "candidate_throughput"
    return SimpleNamespace(returncode=candidate_throughput.main(arguments))


@pytest.mark.parametrize("part", ["throughput", "regimes", "search", "gru", "panda", "go1", "robots"])
def test_the_script_for_a_gpu_prints_its_commands(part: str, tmp_path: Path, monkeypatch, capsys):
    monkeypatch.setattr(gpu.subprocess, "run", here)
    assert gpu.main([part, "--dry-run", "--out", str(tmp_path)]) == 0
    printed = "".join(capsys.readouterr())
    trains = part in ("panda", "go1")
    assert ("interfaces of" if trains else "candidates") in printed
    assert not list(tmp_path.iterdir())
    tiny = gpu.command(gpu.GpuSettings(part=part, tiny=True))  # type: ignore[arg-type]
    assert ("--steps" if trains else "--candidates") in tiny
