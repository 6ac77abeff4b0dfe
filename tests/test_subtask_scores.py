"""People who score the subtasks of an instruction: pages, answers, and a search that goes by them."""

from __future__ import annotations

import dataclasses
import io
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from jaxreward.errors import EndCause, InvalidSetting, ProposerStopped
from jaxreward.evolution import run_search
from jaxreward.evolution.setup import require_films
from jaxreward.proposers.human.subtask_scores import SubtaskScores
from jaxreward.proposers.llm.llm_settings import LlmSettings
from jaxreward.proposers.proposer import Context
from jaxreward.records import Watched
from jaxreward.runs import read_log
from jaxreward.runs.resume_options import names_copies, resume_options
from jaxreward.sentences import in_python
from tests.careful_corridor import CarefulCorridor
from tests.proposers.material import request, result
from tests.proposers.talk import MemoryTranscript
from tests.silent import Silent
from tests.test_rda_search import SETTINGS, seen

pytestmark = pytest.mark.usefixtures("unoptimised", "unsynced")
INSTRUCTION = CarefulCorridor().instruction()
PLAN = result("", None, name="plan").model_copy(update={"words": "- arrive: arrive\n- turn: go back a step"})
WATCH = request("watch", result("", 0.5, name="a")).model_copy(update={"id": "g0002-00", "plan": PLAN})
RNG_OF = lambda _: np.random.default_rng(0)  # noqa: E731


def judge(folder: Any, how: Any = "files", typed: str = "", notes: list[str] | None = None) -> SubtaskScores:
    (folder / "pictures").mkdir(exist_ok=True)
    for suffix in (".gif", ".png"):
        (folder / "pictures" / f"a{suffix}").write_text("film of a")
    made = SubtaskScores(INSTRUCTION, how, 0.0, io.StringIO(typed))
    made.open(Context(folder=folder, transcript=MemoryTranscript(), note=(notes if notes is not None else []).append))
    return made


def answered(folder: Any, text: str) -> Any:
    made = judge(folder)
    made.write_requests([WATCH], RNG_OF)
    (folder / "votes" / "g0002-00.txt").write_text(text)
    return made.judge_all([WATCH], RNG_OF)


def test_a_page_has_the_film_and_the_subtasks(tmp_path):
    answers = judge(tmp_path).judge_all([WATCH], RNG_OF)
    assert answers.stopped is not None and answers.stopped.cause is EndCause.PEOPLE and answers.stopped.later
    page = (tmp_path / "votes" / "g0002-00.md").read_text()
    assert "[film](g0002-00-agent.gif)" in page and "- turn: go back a step" in page and INSTRUCTION.words in page
    assert (tmp_path / "votes" / "g0002-00-agent.gif").read_text() == "film of a"
    assert str(tmp_path / "votes" / "g0002-00.txt") in page and "{" not in page


@dataclasses.dataclass(frozen=True)
class Names:
    task: str = "door-open"
    strategy: str = "rda"
    proposer: str = "genetic"


def test_what_goes_on_is_a_command_that_finds_the_run(tmp_path, monkeypatch):
    """A file is named again, since it is executed: by its path from here, or by its copy in the run."""
    monkeypatch.chdir(tmp_path)
    run = tmp_path / "my runs" / "a"
    for file in (run / "task.py", tmp_path / "own tasks" / "mine.py"):
        file.parent.mkdir(parents=True)
        file.touch()
    mine, away = f"{tmp_path}/own tasks/mine.py:Mine", "/elsewhere/mine.py:Mine"
    assert resume_options(run, Names(task=mine)) == f"--out '{run.parent}' --task 'own tasks/mine.py:Mine' --name a"
    assert resume_options(run, Names(task=away)) == f"--out '{run.parent}' --task '{run}/task.py:Mine' --name a"
    uncopied = Names(proposer="/elsewhere/own.py")
    assert resume_options(run, uncopied).endswith(" --proposer own.py --name a")
    assert names_copies(run, Names(task=away))
    assert not names_copies(run, Names(task=mine)) and not names_copies(run, uncopied)
    options = resume_options(Path("runs/a"), Names(), store="s3://b/runs")
    assert options == "--name a --store s3://b/runs"
    stopped = waiting_of(tmp_path, options)
    assert str(stopped).endswith(f"go on with jaxreward evolve {options} --resume")
    assert in_python(stopped.sentence).endswith("go on with the same call")
    assert str(waiting_of(tmp_path, None)).endswith("go on with the same call"), "no command can name what was given"


def waiting_of(folder: Any, found_by: str | None) -> ProposerStopped:
    made = judge(folder)
    made.open(Context(folder=folder, transcript=MemoryTranscript(), found_by=found_by))
    stopped = made.judge_all([WATCH], RNG_OF).stopped
    assert stopped is not None
    return stopped


def test_who_waits_says_where_the_answers_go(tmp_path):
    """At once and once, also where no status is drawn."""
    notes = list[str]()
    made = judge(tmp_path, notes=notes)
    made.box = dataclasses.replace(made.box, wait_s=0.6)
    made.judge_all([WATCH], RNG_OF)
    (said,) = notes
    assert f"waiting for 1 of 1 votes in {tmp_path / 'votes'}" in said and "g0002-00.md" in said


@pytest.mark.parametrize(
    ("text", "scores", "why"),
    [
        ("arrive: 5\nturn: 0", {"arrive": 1.0, "turn": 0.0}, ""),
        ("- turn = 2.5/5, it hesitates\n\nArrive: 4 at last", {"arrive": 0.8, "turn": 0.5}, "it hesitates"),
        ("**arrive**: 4 / 5\n`turn`: 1. It is slow", {"arrive": 0.8, "turn": 0.2}, "It is slow"),
        ("arrive: 1\nturn: 1\narrive: 3", {"arrive": 0.6, "turn": 0.2}, ""),
    ],
)
def test_answers(tmp_path, text, scores, why):
    (proposal,) = answered(tmp_path, text).proposals
    watched = Watched.read(proposal.words)
    assert watched is not None and watched.scores() == pytest.approx(scores) and proposal.proposer == "people"
    assert watched.reasons("turn") == ([why] if why else [])


@pytest.mark.parametrize("text", ["arrive: 5", "arrive: 5\nturn: 7", "arrive: 5\nturn: well", "arrive 5 turn 3", "5 3",
                                  "arrive: 3,5\nturn: 1", "arrive: 4-5\nturn: 1", "arrive: 5%\nturn: 1",
                                  "arrive: 3/10\nturn: 1", "arrive: 3 out of 10\nturn: 1"])  # fmt: skip
def test_answers_that_cannot_be_read_wait_for_their_correction(tmp_path, text):
    answers = answered(tmp_path, text)
    assert answers.proposals == () and answers.stopped is not None
    assert "cannot be read as a vote: give a line `" in str(answers.stopped)


def test_the_terminal_asks_for_each_subtask(tmp_path):
    notes: list[str] = []
    answers = judge(tmp_path, "terminal", "4 nicely\nsoso\n1\n", notes).judge_all([WATCH], RNG_OF)
    watched = Watched.read(answers.proposals[0].words)
    assert watched is not None and watched.scores() == {"arrive": 0.8, "turn": 0.2}
    assert watched.reasons("arrive") == ["nicely"]
    assert sum("from 0 to 5" in note for note in notes) == 4, "two questions, one of them twice, and its problem"
    assert any("how well" in note.lower() for note in notes) and any("-agent.gif" in note for note in notes)


def test_nobody_on_the_terminal(tmp_path):
    answers = judge(tmp_path, "terminal", "4\n").judge_all([WATCH], RNG_OF)
    assert answers.proposals == () and answers.stopped is not None and answers.stopped.later


@pytest.mark.slow
def test_a_search_goes_by_what_people_say(checker, tmp_path):
    settings = dataclasses.replace(
        SETTINGS, judge="files", llm=LlmSettings(wait_s=0.0), candidates=2, steps=256, out=tmp_path, name="run",
    )  # fmt: skip
    outcome = run_search(settings, Silent(), task=CarefulCorridor(), checker=checker)
    assert outcome.exit_code == 75
    pages = sorted((tmp_path / "run" / "votes").glob("*.md"))
    assert len(pages) == 2
    for page, score in zip(pages, (1, 4), strict=True):
        page.with_suffix(".txt").write_text(f"arrive: {score}\nturn: {score}")
        assert page.with_name(f"{page.stem}-agent.gif").read_bytes().startswith(b"GIF8")
    outcome = run_search(dataclasses.replace(settings, resume=True), Silent(), task=CarefulCorridor(), checker=checker)
    events = [entry.event for entry in read_log(tmp_path / "run" / "events.jsonl")]
    found = seen(events)
    assert sorted(watched.score for watched in found.values()) == pytest.approx([0.2, 0.8])
    assert outcome.best is not None and found[outcome.best.candidate.id].score == pytest.approx(0.8)


def test_people_need_pictures():
    with pytest.raises(InvalidSetting, match="the task has no `draw`"):
        require_films(SimpleNamespace(name="unseen"))  # type: ignore[arg-type]
