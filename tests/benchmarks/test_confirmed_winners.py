"""`benchmarks/confirmed_winners.py`: the winner by the search's own seeds beside the confirmed one."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks import confirmed_winners
from benchmarks.confirmed_winners import fresh_score, main, sums, winners
from jaxreward.cli import main as jaxreward
from jaxreward.records import Score

pytestmark = pytest.mark.usefixtures("unoptimised")

SEARCH = ("evolve", "--task", "probe-choice", "--candidates", "4", "--generation", "4", "--seeds", "1", "--steps",
          "512", "--final-seeds", "2", "--eval-episodes", "16", "--baselines", "sparse", "--ppo.envs", "8",
          "--ppo.minibatches", "2")  # fmt: skip


@pytest.fixture(scope="module")
def searched(tmp_path_factory) -> Path:
    out = tmp_path_factory.mktemp("confirmed")
    assert jaxreward([*SEARCH, "--confirm-seeds", "2", "--name", "found", "--out", str(out)]) == 0
    return out / "found"


@pytest.mark.slow
def test_both_winners_of_a_search_are_in_its_log(searched):
    found = winners(searched)
    assert found.chosen.candidate.operator != "keep" and found.confirmed.score is not None
    again = fresh_score(searched, found.confirmed, unsafe_no_sandbox=False)
    assert again.mean == pytest.approx(found.fresh.mean, abs=1e-6), "trained as the search's final training was"


@pytest.mark.slow
def test_what_was_not_confirmed_is_trained_and_kept(searched, tmp_path, monkeypatch, capsys):
    found, trained = winners(searched), list[str]()
    other = found.chosen.model_copy(update={"candidate": found.chosen.candidate.model_copy(update={"source": "x = 1"})})
    monkeypatch.setattr(confirmed_winners, "winners", lambda path: confirmed_winners.Winners(other, *found_of(found)))

    def fresh(path: Path, winner, unsafe_no_sandbox: bool) -> Score:
        trained.append(winner.candidate.source)
        return Score(mean=0.25, se=0.1, n=2, episodes=32)

    monkeypatch.setattr(confirmed_winners, "fresh_score", fresh)
    out = tmp_path / "rows.json"
    assert main([str(searched), "--out", str(out)]) == 0
    assert main([str(searched), "--out", str(out)]) == 0
    assert trained == ["x = 1"], "a run that is in the file is not trained again"
    (row,) = json.loads(out.read_text())["rows"]
    assert row["unconfirmed"]["fresh"] == 0.25 and row["confirmed"]["fresh"] == found.fresh.mean and not row["same"]


def found_of(found: confirmed_winners.Winners) -> tuple:
    return found.confirmed, found.fresh


def test_means_are_over_the_searches_of_a_task():
    def row(task: str, fresh: float, same: bool) -> dict:
        both = {name: {"search": 1.0, "fresh": fresh} for name in ("unconfirmed", "confirmed")}
        return {"task": task, "same": same, **both}

    one, two = sums([row("a", 0.2, True), row("b", 0.5, False), row("a", 0.4, False)])
    assert (one["task"], one["searches"], one["same"], one["confirmed"]["fresh"]) == ("a", 2, 1, pytest.approx(0.3))
    assert (two["task"], two["unconfirmed"]["fresh"]) == ("b", 0.5)


@pytest.mark.slow
def test_a_search_that_was_not_confirmed_is_one_sentence(tmp_path, capsys):
    assert main([]) == 2
    assert jaxreward([*SEARCH, "--name", "plain", "--out", str(tmp_path)]) == 0
    capsys.readouterr()
    assert main([str(tmp_path / "plain")]) == 2
    assert "was searched without --confirm-seeds" in capsys.readouterr().err
