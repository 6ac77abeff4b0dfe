"""The way of docs/demonstrations.md, from a task of one's own and ten episodes to an agent that is trained on what
explains them: its blocks, in an empty folder."""

from __future__ import annotations

import re
import shlex
import sys
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest

import jaxreward as jr
from jaxreward.cli import main
from jaxreward.demonstrations import load_trajectories

pytestmark = pytest.mark.usefixtures("unoptimised", "unsynced", "warm")

PAGE = (Path(__file__).resolve().parents[1] / "docs" / "demonstrations.md").read_text()
SMALL = [
    "--candidates",
    "8",
    "--generation",
    "8",
    "--option",
    "expansions=1",
    "--steps",
    "2048",
    "--final-seeds",
    "1",
    "--baselines",
    "sparse",
]
OF_POLICY = ["--ppo.envs", "16", "--ppo.unroll", "8", "--ppo.minibatches", "2", "--ppo.hidden", "8"]


def block(language: str, containing: str) -> str:
    (found,) = [text for text in re.findall(rf"```{language}\n(.*?)```", PAGE, re.DOTALL) if containing in text]
    return found


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder with the task of the page and its expert."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])  # the folder of a task file stays there for the process
    assert main(["new-task", "parcel"]) == 0
    with Path("parcel.py").open("a") as file:
        file.write("\n" + block("python", "def expert_actions"))
    return tmp_path


def commands() -> list[list[str]]:
    return [line.split()[1:] for line in block("sh", "record parcel.py").splitlines()]


@pytest.mark.slow
def test_ten_episodes_of_ones_own_task_become_a_reward_and_an_agent(folder: Path, capsys: Any) -> None:
    recording, searching, training = commands()
    assert main(recording) == 0
    said = capsys.readouterr().out
    assert "next: jaxreward evolve --task parcel.py --objective demonstrations --data parcel.npz" in said
    expert = load_trajectories("parcel.npz")
    assert len(expert) == 10 and (expert.success == 1).all() and expert.ended.all()
    assert main([*searching, *SMALL, *OF_POLICY]) == 0
    (printed,) = re.findall("train on it: jaxreward (.*)", capsys.readouterr().out)
    words = [word.replace(f"{folder}/", "") for word in shlex.split(printed)]
    assert words[:5] == training[:5] and sorted(words) == sorted([*training, *OF_POLICY]), "the learner of the search"
    assert "def compute_reward" in (folder / "runs" / "parcel.py-grace-0" / "best_interface.py").read_text()
    assert main([*shlex.split(printed), "--steps", "2048", "--seeds", "1"]) == 0
    assert (folder / "runs" / "parcel.py-grace-0" / "report.html").is_file()


def test_plain_arrays_of_another_simulator_do_as_well(folder: Path, capsys: Any) -> None:
    task: Any = jr.make_task("parcel.py")
    states, actions = list[Any](), list[Any]()
    for seed in range(3):
        state = jax.device_get(task.reset(jax.random.key(seed)))
        acts, visited = task.expert_actions(state), [state]
        for action in acts:
            visited.append(jax.device_get(task.step(visited[-1], action)))
        states.append({name: [np.asarray(getattr(x, name)).tolist() for x in visited] for name in state._fields})
        actions.append(acts)
    exec(block("python", "from_arrays(task, states"), {"states": states, "actions": actions})
    assert main(["evolve", "--objective", "demonstrations", "--data", "arrays.npz"]) == 2
    assert "arrays.npz has episodes of parcel: say with --task" in capsys.readouterr().err
    found = load_trajectories("arrays.npz")
    assert found.source == "imported" and found.ended.all() and found.lengths.tolist() == list(map(len, actions))


@pytest.mark.long
def test_the_task_of_a_search_is_the_one_of_its_data(tmp_path: Path, monkeypatch: Any, capsys: Any) -> None:
    monkeypatch.chdir(tmp_path)
    words = ["probe-corridor", "--task-arg", "length=3", "--by", "random", "--solved", "--episodes", "4"]
    assert main(["record", *words, "--out", "c.npz"]) == 0
    assert main(["evolve", "--objective", "demonstrations", "--data", "c.npz", "--dry-run", "--json"]) == 0
    shown = capsys.readouterr().out
    assert '"task": "probe-corridor"' in shown and '"length=3"' in shown and '"strategy": "grace"' in shown
