"""How far agents do the subtasks of an instruction, beside success: in results, tables, reports and comparisons."""

from __future__ import annotations

import dataclasses
import json

import numpy as np
import pytest

import jaxreward as jr
from jaxreward.cli import main
from jaxreward.commands.summary import evolve_json
from jaxreward.evolution import run_search
from jaxreward.programs import Program
from jaxreward.reports.page import write_report
from jaxreward.reports.run_text import paragraphs, run_json
from jaxreward.reports.run_view import RunView
from jaxreward.tasks import make_task
from jaxreward.training import PPO, train
from tests.careful_corridor import CarefulCorridor
from tests.silent import Silent
from tests.test_rda_search import SETTINGS

pytestmark = pytest.mark.usefixtures("unoptimised", "unsynced")
TASK = CarefulCorridor()
QUICK = PPO(envs=16, unroll=8, minibatches=2, hidden=(8,))


@pytest.fixture(scope="module")
def trained():
    return train(TASK, [Program.default(TASK)], QUICK, seeds=3, steps=1024)


def test_alignment_is_the_mean_over_subtasks_and_seeds(trained):
    found = trained.alignment(0)
    each = np.stack([trained.extra("arrived")[0], trained.extra("went_back")[0]]).mean(0)
    assert found is not None and found.mean == pytest.approx(each.mean()) and found.n == 3
    assert found.se == pytest.approx(each.std(ddof=1) / np.sqrt(3)) and found.measure.name == "alignment"
    assert trained.feedback(0).alignment == found


def test_a_seed_that_diverged_does_nothing_of_it(trained):
    lost = dataclasses.replace(trained, diverged=np.array([[True, False, False]]))
    each = np.stack([trained.extra("arrived")[0], trained.extra("went_back")[0]]).mean(0)
    assert lost.alignment(0).mean == pytest.approx(each[1:].sum() / 3)


@pytest.mark.long
def test_of_one_seed_the_error_is_what_episodes_allow():
    alone = train(TASK, [Program.default(TASK)], QUICK, seeds=1, steps=1024).alignment(0)
    assert alone is not None and alone.se == pytest.approx(np.sqrt(alone.mean * (1 - alone.mean) / alone.episodes))


def test_tasks_without_an_instruction_have_none():
    task = make_task("probe-choice")
    assert train(task, [Program.default(task)], QUICK, seeds=1, steps=128).alignment(0) is None


@pytest.fixture(scope="module")
def run(checker, tmp_path_factory):
    """A search that knows nothing of the instruction, by success alone."""
    out = tmp_path_factory.mktemp("eureka")
    settings = dataclasses.replace(
        SETTINGS, strategy="eureka", option=(), evolve="reward", baselines=("sparse",), final_seeds=2, candidates=2,
        steps=1024, out=out, name="run",
    )  # fmt: skip
    return run_search(settings, Silent(), task=TASK, checker=checker), out / "run"


@pytest.mark.slow
def test_every_search_tells_it_beside_success(run):
    outcome, path = run
    view = RunView.read(path)
    text = dict(paragraphs(view))["alignment"]
    assert text.startswith("winner 0.") and "; sparse 0." in text
    assert set(run_json(view)["alignment"]) == {"winner", "sparse"}
    assert set(evolve_json(outcome)["alignment"]) == {"best", "sparse"}
    assert (
        "Alignment with the instruction, by the task's metrics of its subtasks: winner"
        in write_report(path).read_text()
    )


PROGRAM = """
import jax.numpy as jnp

def get_observation(state):
    return jnp.array([state.place], jnp.float32)

def compute_reward(state, action, next_state):
    return next_state.hit.astype(jnp.float32)
"""
TASK_FILE = """
from tests.careful_corridor import CarefulCorridor

class Corridor(CarefulCorridor):
    pass
"""


@pytest.mark.slow
def test_train_and_compare_have_a_column_of_it(tmp_path, monkeypatch, capsys):
    (tmp_path / "corridor.py").write_text(TASK_FILE)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "hit.py").write_text(PROGRAM)
    quick = ["--ppo.envs", "16", "--ppo.unroll", "8", "--ppo.minibatches", "2", "--ppo.hidden", "8"]
    assert main(["train", "--task", "corridor.py", "--interfaces", "hit.py", "--seeds", "2", "--steps", "512",
                 "--json", *quick]) == 0  # fmt: skip
    out = capsys.readouterr()
    (row,) = json.loads(out.out.splitlines()[-1])["rows"]
    assert row["alignment"]["n"] == 2 and "alignment" in out.err
    found = jr.compare(
        TASK, strategies=["eureka", "best-of-n"], search_seeds=1, candidates=2, generation=2, seeds=1, steps=512,
        final_seeds=1, ppo=QUICK, out=tmp_path / "compare",
    )  # fmt: skip
    del found
    table = json.loads((tmp_path / "compare" / "comparison.json").read_text())
    assert all(0.0 <= row["alignment"]["mean"] <= 1.0 for row in table["rows"])
    assert "alignment" in (tmp_path / "compare" / "comparison.md").read_text()
    (sparse,) = table["sparse"].values()
    assert sparse["alignment"]["n"] == 1
