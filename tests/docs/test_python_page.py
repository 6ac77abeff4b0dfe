"""The code of docs/python.md and README.md runs as it stands, on a task that trains in a second with small budgets."""

from __future__ import annotations

import runpy
import sys
import types
from typing import Any

import jax
import numpy as np
import pytest

import jaxreward as jr
from jaxreward.evolution.task_check import require_vocabulary
from jaxreward.records import Request
from jaxreward.tasks import card
from tests.docs.test_docs import blocks

pytestmark = pytest.mark.usefixtures("warm", "unoptimised", "unsynced")

READ_BY_A_CHECK = ("action_space", "reset", "view", "default_observation", "sparse_reward")
SMALL: dict[str, Any] = {
    "candidates": 2, "generation": 2, "seeds": 1, "steps": 256, "final_seeds": 1, "progress": False,
    "ppo": {"envs": 8, "unroll": 8, "minibatches": 2, "hidden": [8]},
}  # fmt: skip


@pytest.fixture
def page(tmp_path, monkeypatch) -> Any:
    """Executes blocks of a page, from the first to the last that has a word in it."""
    monkeypatch.chdir(tmp_path)
    evolve, compare = jr.evolve, jr.compare
    monkeypatch.setattr(jr, "evolve", lambda *given, **how: evolve(*given, **{**how, **SMALL}))
    few = {**SMALL, "search_seeds": 1}
    monkeypatch.setattr(jr, "compare", lambda *given, **how: compare(*given, **{**how, **few}))

    def execute(*words: str, of: str = "python.md") -> types.ModuleType:
        module = types.ModuleType("documentation_example")
        monkeypatch.setitem(sys.modules, module.__name__, module)
        for block in blocks(of, "python"):
            if "import jaxreward as jr" in block or any(word in block for word in words):
                code = block.replace("xland-easy", "probe-choice")
                exec(compile(code, f"docs/{of}", "exec"), module.__dict__)
        return module

    return execute


@pytest.mark.slow
def test_a_search_is_read_and_played(page, capsys):
    example = page("run.policy()", "remember(", "class Log")
    out = capsys.readouterr().out
    assert "def compute_reward" in out and "run_started 0" in out and "finished 2" in out
    assert example.scores and float(example.state.t) == 1


@pytest.mark.long
def test_the_front_page_runs_as_it_stands(page, capsys):
    (block,) = blocks("../README.md", "python")
    assert len([line for line in block.splitlines() if line.strip()]) <= 6
    example = page(of="../README.md")
    assert "def compute_reward" in capsys.readouterr().out
    example.policy(example.run.task.reset(jax.random.key(0)), jax.random.key(1))


@pytest.mark.long
def test_a_strategy_and_a_proposer_of_ones_own_search(page):
    example = page("class Climb", "class Terms")
    assert example.run.view.started.proposer == "terms" and example.run.best is not None
    assert jr.open_run("runs/probe-choice-climb-0").view.started.config["option"] == ["initial=2"]


@pytest.mark.long
def test_the_proposer_of_ones_own_writes_programs_for_the_task_of_the_page(checker, task_of, monkeypatch):
    """Its fragments call helpers and constants. Here nothing is trained, and without a `step` nothing is played."""
    searches = list[tuple[str, Any]]()
    monkeypatch.setattr(jr, "evolve", lambda task, proposer, **_: searches.append((task, proposer)))
    (block,) = [block for block in blocks("python.md", "python") if "class Terms" in block]
    exec(compile(f"import jaxreward as jr\n{block}", "docs/python.md", "exec"), {"__name__": "documentation_example"})
    ((name, Terms),) = searches
    task, rng = task_of(name), np.random.default_rng(0)
    proposer, request = Terms(card(task)), Request(id="a", generation=0, operator="scratch", evolve="reward")
    sources = [proposer.propose(request, rng).source for _ in range(8)]
    still = types.SimpleNamespace(**{name: getattr(task, name) for name in READ_BY_A_CHECK})
    passed = [program for _, program in checker.check_many(sources, still) if program is not None]
    assert name == "xland-easy" and len(passed) > 6


def test_the_vocabulary_of_ones_own_is_one_for_the_task_of_the_page(checker, task_of, monkeypatch, tmp_path):
    searches = list[tuple[str, Any]]()
    monkeypatch.setattr(jr, "evolve", lambda task, vocabulary, **_: searches.append((task, vocabulary)))
    (block,) = [block for block in blocks("python.md", "python") if "vocabulary=parts" in block]
    (tmp_path / "page.py").write_text(f"import jaxreward as jr\n{block}")
    runpy.run_path(str(tmp_path / "page.py"))
    ((name, parts),) = searches
    assert name == "xland-easy" and [part.kind for part in parts] == ["feature", "term"]
    require_vocabulary(task_of(name), jr.Vocabulary(fragments=tuple(parts)), checker=checker)


@pytest.mark.slow
def test_strategies_are_compared(page, capsys):
    example = page("class Climb", "jr.compare(")
    assert example.found.table()["strategy"] == ["limen", "climb", "best-of-n", "sparse"]


def test_every_block_is_run():
    words = (
        "import jaxreward as jr",
        "run.policy()",
        "remember(",
        "class Log",
        "class Climb",
        "class Terms",
        "vocabulary=parts",
        "compare(",
    )
    assert all(any(word in block for word in words) for block in blocks("python.md", "python"))
    assert len(blocks("python.md", "python")) == 8
