"""`jaxreward export`: what it writes and says, and that what it writes does without jaxreward."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from jaxreward.cli import main
from jaxreward.exports import Target, export
from jaxreward.runs.provenance import named_task
from tests.exports.modules import INTERFACES, unchecked, unplayed
from tests.replacing import replacing

pytestmark = pytest.mark.usefixtures("warm_exports")
EASY = INTERFACES / "xland_easy" / "sparse.py"


@pytest.fixture(scope="module")
def warm_exports(checker, task_of):
    """Commands find a checker that runs, and does not play their tasks; they make each task once."""

    def check(source: str, task: Any, name: str) -> Any:
        return checker.check(source, unplayed(task), name=name)

    running: Any = lambda **_: nullcontext(SimpleNamespace(check=check))  # noqa: E731
    with replacing({"jaxreward.commands.export.Checker": running, "jaxreward.commands.export.make_task_of": task_of}):
        yield


def run(capsys: pytest.CaptureFixture[str], *argv: object) -> tuple[int, str, str]:
    try:
        status = main(["export", *map(str, argv)])
    except SystemExit as exit:  # how --help leaves
        status = int(exit.code or 0)
    captured = capsys.readouterr()
    return status, captured.out, captured.err


def test_it_writes_a_module_and_says_what_that_needs(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    status, out, _ = run(capsys, EASY, "--to", "plain", "--json")
    report = json.loads(out.splitlines()[-1])
    assert status == 0 and Path(report["out"]) == Path("xland_easy_plain.py") and Path(report["out"]).is_file()
    assert {
        "to": "plain",
        "task": "xland-easy",
        "needs": ["jax"],
        "terms": ["goal"],
        "defaults": [],
    }.items() <= report.items()
    status, out, _ = run(capsys, EASY, "--to", "plain")  # the same again is no harm
    assert status == 0 and "xland_easy_plain.py: xland-easy for plain; it needs jax" in out


def test_the_task_comes_from_a_run_and_its_options_can_be_changed(capsys, tmp_path):
    folder, file = tmp_path / "run", tmp_path / "module.py"
    folder.mkdir()
    header = "# An interface found by jaxreward\n# task: xland-easy horizon=40\n# digest: x\n\n"
    (folder / "best_interface.py").write_text(header + EASY.read_text())
    assert run(capsys, folder, "--to", "xminigrid", "--out", file)[0] == 0
    assert "HORIZON = 40" in file.read_text() and header.strip() in file.read_text()
    (config := tmp_path / "export.toml").write_text('to = "xminigrid"\ntask-arg = ["horizon=50"]\n')
    assert run(capsys, folder, "--config", config, "--out", tmp_path / "other.py")[0] == 0
    assert "HORIZON = 50" in (tmp_path / "other.py").read_text()


MISTAKES = [
    ([], "name the interface first"),
    ([EASY], "say what the module is for"),
    ([EASY, "--to", "gym"], "gymnasium"),
    (["nothing.py", "--to", "plain"], "there is no interface file nothing.py"),
    ([".", "--to", "plain"], "has no best_interface.py"),
    (["unsaid.py", "--to", "plain"], "give --task NAME"),
    ([EASY, "--to", "brax"], "--to brax is for tasks with continuous actions"),
    ([EASY, "--to", "plain", "--task", "xland-esy"], "did you mean 'xland-easy'"),
    ([EASY, "--to", "plain", "--task-arg", "horizn=3"], "did you mean horizon"),
    ([EASY, "--to", "plain", "--out", "unsaid.py"], "unsaid.py exists and is something else"),
    ([EASY, "--to", "plain", "--out", "no/where.py"], "cannot write no/where.py"),
    ([EASY, "--to", "plain", "--task", "probe-choice"], "sparse.py is rejected: guard"),
]


@pytest.mark.parametrize(("argv", "says"), MISTAKES, ids=[" ".join(map(str, argv[-3:])) for argv, _ in MISTAKES])
def test_a_mistake_gets_a_sentence(argv, says, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("unsaid.py").write_text("def get_observation(state): ...\n")
    status, _, err = run(capsys, *argv)
    assert status == 2 and says in " ".join(err.replace("│", " ").split()) and "Traceback" not in err
    assert [p.name for p in tmp_path.iterdir()] == ["unsaid.py"]


ALONE = """
import sys
sys.modules["jaxreward"] = None  # whoever imports it fails
import jax
import by_brax, by_gymnasium, by_plain, by_xminigrid
env, params = by_xminigrid.make()
first = jax.eval_shape(lambda: env.reset(params, jax.random.key(0)))
later = jax.eval_shape(lambda timestep: env.step(params, timestep, 0), first)
assert first.observation.shape == later.observation.shape == (by_xminigrid.OBSERVATION_SIZE,)
view = jax.eval_shape(by_xminigrid.view_of, first.state)
assert jax.eval_shape(by_plain.get_observation, view) == later.observation
assert jax.eval_shape(by_brax.Env().reset, jax.random.key(0)).obs.shape == (by_brax.OBSERVATION_SIZE,)
assert by_gymnasium.Env().observation_space.shape == first.observation.shape
assert not [name for name in sys.modules if name.startswith("jaxreward.")]
"""


@pytest.mark.slow
def test_exported_modules_run_without_jaxreward(task_of, tmp_path):
    pytest.importorskip("gymnasium")
    hopper = INTERFACES / "hopper" / "sparse.py"
    targets: tuple[Target, ...] = ("plain", "gymnasium", "xminigrid", "brax")
    for target in targets:
        file, size = (hopper, 11) if target == "brax" else (EASY, 98)
        (name,), check = named_task(file.read_text()), partial(unchecked, size=size)
        text = export(file.read_text(), task_of(name), name, target, check).text
        (tmp_path / f"by_{target}.py").write_text(text)
    env = {**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), *sys.path])}
    words = [sys.executable, "-W", "ignore", "-c", ALONE]
    done = subprocess.run(words, cwd=tmp_path, env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
