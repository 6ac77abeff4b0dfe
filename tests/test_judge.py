"""People as judges: films to watch, votes in files or on the terminal, ratings and remarks in the search."""

from __future__ import annotations

import dataclasses
import io
import os
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from jaxreward.errors import EndCause, InvalidSetting
from jaxreward.evolution import ask, run_search
from jaxreward.evolution.settings import EvolveSettings
from jaxreward.evolution.setup import Setup
from jaxreward.proposers.human.judge import Judge
from jaxreward.proposers.proposer import Context
from jaxreward.records import Exchange, Request
from jaxreward.runs import REQUEUE_EXIT_CODE, Asked, read_log
from jaxreward.search.elo import read_preference
from jaxreward.tasks import make_task
from jaxreward.training import PPO
from tests.search.conftest import make_result
from tests.silent import Silent

pytestmark = pytest.mark.usefixtures("unoptimised", "unsynced")
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


def judge(
    tmp_path: Path, how: Any = "files", answers: Any = "", notes: list[str] | None = None, **context: Any
) -> Judge:
    """A judge of a run with pictures of both agents, whose bytes say whose they are."""
    (tmp_path / "pictures").mkdir(exist_ok=True)
    for id in ("new", "old"):
        for suffix in (".gif", ".png"):
            (tmp_path / "pictures" / f"{id}{suffix}").write_text(id)
    made = Judge(how, wait_s=0, answers=io.StringIO(answers) if isinstance(answers, str) else answers)
    made.open(
        Context(folder=tmp_path, transcript=Memory(), note=(notes if notes is not None else []).append, **context)
    )
    return made


def drawn(seed: int = 0):
    return lambda _: np.random.default_rng(seed)


def left_of(folder: Path) -> str:
    """Who stands left on the page, by the film that it links."""
    page = (folder / "votes" / "g0001-00.md").read_text()
    assert "- left: [film](g0001-00-left.gif)" in page and "- right: [film](g0001-00-right.gif)" in page
    films = {side: (folder / "votes" / f"g0001-00-{side}.gif").read_text() for side in ("left", "right")}
    strips = {side: (folder / "votes" / f"g0001-00-{side}.png").read_text() for side in ("left", "right")}
    assert films == strips and set(films.values()) == {"new", "old"}
    return films["left"]


@pytest.mark.parametrize("seed", range(4))
def test_a_vote_counts_for_the_agent_that_was_seen_on_that_side(tmp_path, seed):
    made = judge(tmp_path)
    stopped = made.judge_all([VOTE], drawn(seed)).stopped
    assert stopped is not None and stopped.later and stopped.cause is EndCause.PEOPLE
    assert "put g0001-00.txt into" in str(stopped)
    left = "first" if left_of(tmp_path) == "new" else "second"
    (tmp_path / "votes" / "g0001-00.txt").write_text("left, it wastes no steps")
    (proposal,) = made.judge_all([VOTE], drawn(seed)).proposals
    assert proposal.words == f"{left}\nleft: {left}\nit wastes no steps"
    assert read_preference(proposal.words)[0] == left
    other = tmp_path / "other"
    other.mkdir()
    made = judge(other)
    made.write_requests([VOTE], drawn(seed))
    (other / "votes" / "g0001-00.txt").write_text("right")
    assert made.judge_all([VOTE], drawn(seed)).proposals[0].words == ("second" if left == "first" else "first")


def test_sides_are_drawn(tmp_path):
    def left(seed: int) -> str:
        folder = tmp_path / str(seed)
        folder.mkdir()
        judge(folder).write_requests([VOTE], drawn(seed))
        return left_of(folder)

    assert {left(seed) for seed in range(8)} == {"new", "old"}


def test_voters_cannot_see_which_agent_is_new(tmp_path):
    notes: list[str] = []
    judge(tmp_path).write_requests([VOTE], drawn())
    judge(tmp_path, "terminal", "left\n", notes).judge_all([VOTE], drawn())
    (page,) = (tmp_path / "votes").glob("*.md")
    for text in (page.read_text(), "\n".join(notes)):
        text = text.replace(str(tmp_path), "")
        assert "left" in text and "new" not in text and "old" not in text


def test_an_unreadable_vote_waits_for_its_correction(tmp_path):
    notes: list[str] = []
    made = judge(tmp_path, notes=notes)
    made.wait_s = 0.6  # a poll or two
    made.open(desk_of(made))
    made.write_requests([VOTE], drawn())
    reply = tmp_path / "votes" / "g0001-00.txt"
    reply.write_text("hard to say, maybe the left one")
    os.utime(reply, (time.time() - 60, time.time() - 60))
    answers = made.judge_all([VOTE], drawn())
    sentence = f"{reply} cannot be read as a vote: begin with left, right or equal"
    assert answers.proposals == () and notes[0] == sentence
    assert len(notes) == 2 and notes[1].startswith("waiting for 1 of 1 votes")
    assert answers.stopped is not None and answers.stopped.later and sentence in str(answers.stopped)
    assert not desk_of(made).transcript.of(VOTE.id)
    reply.write_text("left, I think")
    answers = made.judge_all([VOTE], drawn())
    assert answers.stopped is None and answers.proposals[0].failure is None and answers.proposals[0].words


def desk_of(made: Judge) -> Context:
    assert made.box is not None
    return made.box.context


@pytest.mark.parametrize("how", ["files", "terminal"])
def test_keys_in_remarks_are_not_kept(tmp_path, monkeypatch, how):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-9f8e7d6c5b4a3210")
    made = judge(tmp_path, how, "left: it ran with sk-9f8e7d6c5b4a3210\n")
    made.write_requests([VOTE], drawn())
    (tmp_path / "votes" / "g0001-00.txt").write_text("left: it ran with sk-9f8e7d6c5b4a3210")
    (proposal,) = made.judge_all([VOTE], drawn()).proposals
    (kept,) = desk_of(made).transcript.exchanges()
    assert kept.reply == "left: it ran with ***" and proposal.words.endswith("\nit ran with ***")


def test_on_the_terminal_a_vote_that_cannot_be_read_is_asked_for_again(tmp_path):
    notes: list[str] = []
    made = judge(tmp_path, "terminal", "hm\nequal\n", notes)
    (proposal,) = made.judge_all([VOTE], drawn()).proposals
    assert proposal.words == "equal" and any("please begin with" in note for note in notes)
    stopped = judge(tmp_path, "terminal", "").judge_all([VOTE], drawn()).stopped
    assert stopped is not None and stopped.later and stopped.cause is EndCause.PEOPLE


def test_the_terminal_asks_a_limited_number_of_times(tmp_path):
    answers = judge(tmp_path, "terminal", "hm\n" * 5 + "left\n").judge_all([VOTE], drawn())
    assert answers.proposals == () and answers.stopped is not None and answers.stopped.later
    assert "5 lines in a row cannot be read as a vote: begin with left" in str(answers.stopped)
    assert judge(tmp_path, "terminal", "hm\n" * 4 + "left\n").judge_all([VOTE], drawn()).stopped is None


@pytest.fixture
def typed():
    """A pipe in place of a terminal: where to write, and the stream to read."""
    to_read, to_write = os.pipe()
    with os.fdopen(to_read) as source, os.fdopen(to_write, "w") as sink:
        yield sink, source


def test_a_stop_ends_the_wait_for_the_terminal(tmp_path, typed):
    sink, source = typed
    sink.write("lef")
    sink.flush()
    deadline = time.monotonic() + 0.3
    made = judge(tmp_path, "terminal", source, should_stop=lambda: time.monotonic() > deadline)
    answers = made.judge_all([VOTE], drawn())
    assert answers.proposals == () and answers.stopped is None and time.monotonic() < deadline + 5
    assert not desk_of(made).transcript.of(VOTE.id)


def test_votes_that_are_typed_ahead_count(tmp_path, typed):
    sink, source = typed
    sink.write("hm\nequal\nequal, both fall\nequal")
    sink.close()
    made = judge(tmp_path, "terminal", source)
    three = [VOTE.model_copy(update={"id": f"g0001-0{k}"}) for k in range(3)]
    first = made.judge_all(three[:1], drawn())
    answers = made.judge_all(three, drawn())
    assert first.proposals[0].words == "equal" and answers.stopped is None
    assert [p.words.partition("\n")[0] for p in answers.proposals] == ["equal"] * 3
    assert answers.proposals[1].words.endswith("both fall")
    stopped = made.judge_all([VOTE.model_copy(update={"id": "g0001-09"})], drawn()).stopped
    assert stopped is not None and stopped.cause is EndCause.PEOPLE


@pytest.mark.long
def test_a_task_that_cannot_be_drawn_is_refused_before_anything_starts(tmp_path):
    class Blind:
        name = "blind"

        def __getattr__(self, attribute: str) -> Any:
            if attribute == "draw":
                raise AttributeError(attribute)
            return getattr(make_task("probe-choice"), attribute)

    with pytest.raises(InvalidSetting) as error:
        Setup.of(SETTINGS, Blind())  # type: ignore[arg-type]
    assert error.value.settings == ("strategy", "option")


@pytest.mark.long
def test_a_search_that_people_judge_stops_for_votes_and_shows_their_remarks(tmp_path, checker, task_of):
    task = task_of("probe-choice")
    settings = dataclasses.replace(SETTINGS, out=tmp_path, name="run")
    settings = dataclasses.replace(settings, llm=dataclasses.replace(settings.llm, wait_s=0.0))
    run = tmp_path / "run"
    voted: dict[str, str] = {}
    outcome = run_search(settings, Silent(), task=task, checker=checker)
    for _ in range(6):
        if outcome.exit_code == 0:
            break
        assert outcome.exit_code == REQUEUE_EXIT_CODE
        for page in (run / "votes").glob("*.md"):
            reply = page.with_suffix(".txt")
            if not reply.exists():
                reply.write_text("right: the other one dawdles")
                voted[page.stem] = page.read_text()
        outcome = run_search(dataclasses.replace(settings, resume=True), Silent(), task=task, checker=checker)
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
    remarks = [remark for r in asked for remark in r.remarks]
    assert any("on the right of two, the right was preferred: the other one dawdles" in remark for remark in remarks)


PROGRAM = (
    "import jax.numpy as jnp\n\n\ndef get_observation(state):\n    return jnp.stack([state.signal * {}])\n\n\n"
    "def compute_reward(state, action, next_state):\n    return next_state.hit.astype(jnp.float32)\n"
)


@pytest.mark.long
@pytest.mark.parametrize("how", ["files", "terminal"])
def test_by_hand_programs_and_votes_are_both_asked_for(tmp_path, how, checker, task_of):
    task = task_of("probe-choice")
    settings = dataclasses.replace(SETTINGS, out=tmp_path, name="hand", proposer="manual", judge=how)
    settings = dataclasses.replace(settings, llm=dataclasses.replace(settings.llm, wait_s=0.0))
    asked, _ = ask(settings, Silent(), task=task)
    run = tmp_path / "hand"
    ids = ["g0000-00", "g0000-01"]
    assert [page for page, _ in asked] == [run / "requests" / f"{id}.md" for id in ids]
    assert [reply for _, reply in asked] == [run / "replies" / f"{id}.py" for id in ids]
    for k, (_, reply) in enumerate(asked):
        reply.write_text(PROGRAM.format(k + 1.0))
    settings = dataclasses.replace(settings, resume=True)
    run_search(settings, Silent(), task=task, checker=checker, generations=1)
    asked, why = ask(settings, Silent(), task=task)
    if how == "terminal":
        assert asked == [] and "on the terminal" in why
    else:
        assert asked == [(run / "votes" / "g0001-00.md", run / "votes" / "g0001-00.txt")]
        assert str(asked[0][1]) in asked[0][0].read_text()
