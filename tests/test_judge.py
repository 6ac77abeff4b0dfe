"""People as judges: films to watch, votes in files or on the terminal, ratings and remarks in the search."""

from __future__ import annotations

import dataclasses
import io
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from jaxreward.errors import UserError
from jaxreward.evolve import ask, evolve
from jaxreward.parts import Parts
from jaxreward.programs import Checker
from jaxreward.proposers.judge import Judge
from jaxreward.proposers.proposer import Desk
from jaxreward.records import Exchange, Request
from jaxreward.reports.live import Silent
from jaxreward.runs import REQUEUE_EXIT_CODE, Asked, read_log
from jaxreward.settings import EvolveSettings
from jaxreward.tasks import make_task
from jaxreward.training import PPO
from tests.search.conftest import make_result

SETTINGS = EvolveSettings(
    task="probe-choice", strategy="revolve", option=("fitness=preference", "initial=2", "islands=1", "votes=1"),
    candidates=4, generation=2, seeds=1, steps=64, final_seeds=0, baselines=(), evolve="both",
    ppo=PPO(envs=8, unroll=8, minibatches=2, hidden=(8,)),
)  # fmt: skip
NEW, OLD = make_result("new", 0.1), make_result("old", 0.9)
VOTE = Request(id="g0001-00", generation=1, operator="prefer", parents=(NEW, OLD))


class Memory:
    """A transcript in memory."""

    def __init__(self) -> None:
        self.kept: list[Exchange] = []

    def add(self, exchange: Exchange) -> None:
        self.kept.append(exchange)

    def exchanges(self):
        return self.kept

    def of(self, request_id: str):
        return [e for e in self.kept if e.request_id == request_id]


def judge(tmp_path: Path, how: Any = "files", answers: str = "", notes: list[str] | None = None) -> Judge:
    made = Judge(how, wait_s=0, answers=io.StringIO(answers))
    made.open(Desk(folder=tmp_path, transcript=Memory(), note=(notes if notes is not None else []).append))
    return made


def left_of(page: str) -> str:
    return "new" if page.index("pictures/new.gif") < page.index("pictures/old.gif") else "old"


@pytest.mark.parametrize("seed", range(4))
def test_a_vote_counts_for_the_agent_that_was_seen_on_that_side(tmp_path, seed):
    made = judge(tmp_path)
    stopped = made.judge_all([VOTE], lambda _: np.random.default_rng(seed)).stopped
    assert stopped is not None and stopped.later and "put g0001-00.txt into" in str(stopped)
    left = left_of((tmp_path / "votes" / "g0001-00.md").read_text())
    (tmp_path / "votes" / "g0001-00.txt").write_text("left, it wastes no steps")
    (proposal,) = made.judge_all([VOTE], lambda _: np.random.default_rng(seed)).proposals
    side, remark = proposal.words.split("\n")
    place = "first" if left == "new" else "second"
    assert side == place and remark == f"it wastes no steps [left was the {place}]"


def test_sides_are_drawn(tmp_path):
    def left(seed: int) -> str:
        folder = tmp_path / str(seed)
        folder.mkdir()
        judge(folder).write_requests([VOTE], lambda _: np.random.default_rng(seed))
        return left_of((folder / "votes" / "g0001-00.md").read_text())

    assert {left(seed) for seed in range(8)} == {"new", "old"}


def test_on_the_terminal_a_vote_that_cannot_be_read_is_asked_for_again(tmp_path):
    notes: list[str] = []
    made = judge(tmp_path, "terminal", "hm\nequal\n", notes)
    (proposal,) = made.judge_all([VOTE], lambda _: np.random.default_rng(0)).proposals
    assert proposal.words == "equal" and any("please begin with" in note for note in notes)
    again = judge(tmp_path, "terminal", "")
    assert again.judge_all([VOTE], lambda _: np.random.default_rng(0)).stopped is not None


def test_a_task_that_cannot_be_drawn_is_refused_before_anything_starts(tmp_path):
    class Blind:
        name = "blind"

        def __getattr__(self, attribute: str) -> Any:
            if attribute == "draw":
                raise AttributeError(attribute)
            return getattr(make_task("probe-choice"), attribute)

    with pytest.raises(UserError, match="blind: the task has no `draw`"):
        Parts.of(SETTINGS, Blind())  # type: ignore[arg-type]


def test_a_search_that_people_judge_stops_for_votes_goes_on_with_them_and_shows_their_remarks(tmp_path):
    task = make_task("probe-choice")
    settings = dataclasses.replace(SETTINGS, out=tmp_path, name="run")
    settings = dataclasses.replace(settings, llm=dataclasses.replace(settings.llm, wait_s=0.0))
    run = tmp_path / "run"
    voted: dict[str, str] = {}
    with Checker() as checker:
        outcome = evolve(settings, Silent(), task=task, checker=checker)
        for _ in range(6):
            if outcome.exit_code == 0:
                break
            assert outcome.exit_code == REQUEUE_EXIT_CODE
            for page in (run / "votes").glob("*.md"):
                reply = page.with_suffix(".txt")
                if not reply.exists():
                    reply.write_text("right: the other one dawdles")
                    voted[page.stem] = page.read_text()
            outcome = evolve(dataclasses.replace(settings, resume=True), Silent(), task=task, checker=checker)
    assert outcome.exit_code == 0 and voted
    trained = [r.candidate.id for r in outcome.progress.results.values() if r.score]
    assert len(trained) == 4
    for id in trained:
        with Image.open(run / "pictures" / f"{id}.gif") as film:
            assert film.size[0] > 64
        assert (run / "pictures" / f"{id}.png").exists()
    ratings = outcome.progress.state.memory.ratings
    assert outcome.best is not None and ratings[outcome.best.candidate.id] == max(ratings.values()) > 1500
    asked = [r for e in read_log(run / "events.jsonl") if isinstance(e.event, Asked) for r in e.event.requests]
    assert any("dawdles" in remark for r in asked for remark in r.remarks)


def test_by_hand_programs_and_votes_are_both_asked_for(tmp_path):
    settings = dataclasses.replace(SETTINGS, out=tmp_path, name="hand", proposer="manual")
    paths, _ = ask(settings, Silent(), task=make_task("probe-choice"))
    assert [p.parent.name for p in paths] == ["requests", "requests"]
