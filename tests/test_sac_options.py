"""Soft actor-critic on the command line and in searches."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import jaxreward as jr
from jaxreward.cli import main
from jaxreward.commands.compare import COMMANDS as COMPARE
from jaxreward.commands.resolve import resolve
from jaxreward.errors import InvalidSetting
from jaxreward.evolution.costs import cost_s
from jaxreward.evolution.settings import EvolveSettings
from jaxreward.evolution.started import started_settings
from jaxreward.runs.checkpoint import Checkpoints
from jaxreward.tasks import make_task

pytestmark = pytest.mark.usefixtures("unoptimised")

SMALL = ("--sac.envs", "8", "--sac.unroll", "2", "--sac.updates", "2", "--sac.batch-size", "16", "--sac.warmup", "16",
         "--sac.hidden", "8", "--sac.value-hidden", "8")  # fmt: skip
SEARCH = ("evolve", "--task", "probe-aim", "--learner", "sac", *SMALL, "--candidates", "2", "--generation", "2",
          "--seeds", "1", "--steps", "64", "--final-seeds", "1", "--eval-episodes", "8")  # fmt: skip


@pytest.mark.slow
def test_train_has_it(capsys):
    words = ("train", "--task", "probe-aim", "--learner", "sac", *SMALL, "--seeds", "2", "--steps", "64",
             "--checkpoints", "2", "--eval-episodes", "8", "--json")  # fmt: skip
    assert main(list(words)) == 0
    said = capsys.readouterr()
    assert "8 environments x 2 steps, then 2 gradient steps on 16 transitions" in said.err
    found = json.loads(said.out.splitlines()[-1])
    assert found["learner"] == "sac" and found["sac"]["updates"] == 2 and "ppo" not in found


@pytest.fixture(scope="module")
def searched(tmp_path_factory) -> Path:
    out = tmp_path_factory.mktemp("sac")
    assert main([*SEARCH, "--name", "found", "--out", str(out)]) == 0
    return out / "found"


@pytest.mark.slow
def test_a_search_trains_with_it_and_keeps_its_policy(searched):
    settings = started_settings(searched)
    assert settings.learner == "sac" and settings.hyper == settings.sac and settings.sac.value_hidden == (8,)
    run = jr.open_run(searched)
    task = make_task("probe-aim")
    state = task.reset(jr_key())
    action = run.policy(deterministic=True)(state)
    assert action.shape == (1,) and "best-policy" in Checkpoints(searched / "checkpoints").tags()


def jr_key() -> Any:
    import jax

    return jax.random.key(0)


@pytest.mark.slow
def test_a_run_goes_on_with_the_learner_that_it_began_with(searched, capsys):
    again = ["evolve", "--name", "found", "--out", str(searched.parent), "--resume", "--candidates", "3"]
    assert main(again) == 0
    assert main([*again, "--ppo.envs", "4"]) == 2
    assert "--ppo is for --learner ppo, and this is --learner sac" in capsys.readouterr().err


@pytest.mark.long
def test_python_takes_the_object(tmp_path):
    small = jr.SAC(envs=8, unroll=2, updates=2, batch_size=16, warmup=16, hidden=(8,), value_hidden=(8,))
    common: dict[str, Any] = {
        "candidates": 2,
        "generation": 2,
        "seeds": 1,
        "steps": 64,
        "final_seeds": 0,
        "baselines": (),
    }
    run = jr.evolve("probe-aim", ppo=small, out=tmp_path, eval_episodes=8, progress=False, **common)
    assert started_settings(run.path).hyper == small
    with pytest.raises(InvalidSetting, match="give one of them"):
        jr.evolve("probe-aim", ppo=small, sac=small, out=tmp_path, progress=False)


@pytest.mark.slow
def test_searches_with_it_are_compared(tmp_path, capsys):
    without = ["compare", "--tasks", "probe-aim", "--strategies", "best-of-n", "--search-seeds", "1", "--candidates",
               "2", "--seeds", "1", "--steps", "64", "--final-seeds", "1", "--eval-episodes", "8", "--out",
               str(tmp_path)]  # fmt: skip
    words = [*without, "--learner", "sac", *SMALL]
    assert main(words) == 0
    sparse = json.loads(next(tmp_path.glob("*/sparse.json")).read_text())
    assert sparse["learner"] == "sac" and sparse["ppo"]["envs"] == 8
    assert main(words) == 0  # nothing is left to do, and nothing differs
    assert main([*words, "--sac.updates", "3"]) == 2
    assert "sac.updates" in capsys.readouterr().err
    assert main(without) == 2
    assert "learner" in capsys.readouterr().err
    (command,) = COMPARE
    settings = resolve(command, words[1:]).settings
    assert all(cell.settings.learner == "sac" for cell in settings.cells())


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("train", "--task", "xland-easy", "--learner", "sac"), "--learner sac is for continuous actions"),
        (("train", "--task", "hopper", "--sac.updates", "4"), "--sac is for --learner sac"),
        (("train", "--task", "hopper", "--learner", "sac", "--ppo.envs", "4"), "--ppo is for --learner ppo"),
        (("train", "--task", "hopper", "--learner", "sac", "--sac.tau", "2"), "SAC.tau must lie in"),
        (("train", "--task", "hopper", "--learner", "dqn"), "--learner"),
        (("evolve", "--task", "hopper", "--learner", "sac", "--halving", "2", "--steps", "1000"), "--halving"),
    ],
)  # fmt: skip
def test_what_cannot_be_is_one_sentence(words, says, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(list(words)) == 2
    said = capsys.readouterr().err
    assert says in said and len(said.strip().splitlines()) == 1


def test_settings_of_the_learner_alone_are_kept():
    with_sac, with_ppo = EvolveSettings(learner="sac").as_config(), EvolveSettings().as_config()
    assert "ppo" not in with_sac and "sac" not in with_ppo and with_sac["sac"]["envs"] == 64


def test_gradient_steps_are_in_the_estimate():
    task = make_task("hopper")
    few, many = (cost_s(task, jr.SAC(updates=n), 4, 2, 100_000) for n in (1, 32))
    assert many > 2 * few
