"""A search whose agents a vision model judges, end to end over HTTP on loopback."""

from __future__ import annotations

import base64
import dataclasses
import gzip
import io
import json
import os
import re
import shutil
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest
from PIL import Image

from jaxreward.commands.spending import spending_of
from jaxreward.comparison.cells import with_defaults
from jaxreward.errors import ChangedSetting, InvalidSetting
from jaxreward.evolution import run_search
from jaxreward.evolution.evidence import filmed_episode, telling_steps
from jaxreward.evolution.resuming import require_same_call
from jaxreward.evolution.settings import EvolveSettings
from jaxreward.evolution.started import started_settings
from jaxreward.proposers.llm.cost import Amount
from jaxreward.proposers.llm.llm_settings import LlmSettings
from jaxreward.records import Evidence
from jaxreward.records.evidence import frame_path, index_path
from jaxreward.reports.page import write_report
from jaxreward.reports.run_view import RunView
from jaxreward.runs import Proposed, Trained, read_log, read_transcript
from tests.careful_corridor import CarefulCorridor
from tests.proposers.server import Answer, ChatServer, closed_port
from tests.proposers.talk import KEY
from tests.silent import Silent
from tests.test_rda_search import SETTINGS, asked, seen

pytestmark = [pytest.mark.usefixtures("unoptimised", "unsynced"), pytest.mark.long]
TASK = CarefulCorridor()
FRAMES = 4


def eye(body: dict[str, Any], n: int) -> Answer:
    """A model that gives the agent that it is asked about last the highest score."""
    content = body["messages"][-1]["content"]
    names = [subtask.name for subtask in TASK.instruction().subtasks]
    if isinstance(content, str):
        return Answer(json.dumps({"criteria": [{"subtask": name, "criterion": f"{name} is seen"} for name in names]}))
    score = min(1.0, n / 40)
    return Answer(json.dumps({"subtasks": [{"subtask": name, "why": f"call {n}", "score": score} for name in names]}))


def settings(url: str, out: Any, **changes: Any) -> EvolveSettings:
    llm = LlmSettings(judge_model="openai/eye", api_base=url, price=("openai/eye=1,2",), judge_frames=FRAMES,
                      judge_episodes=2, **changes.pop("llm", {}))  # fmt: skip
    return dataclasses.replace(SETTINGS, llm=llm, out=out, name="run", **changes)


@pytest.fixture(scope="module")
def judged(checker, tmp_path_factory):
    out = tmp_path_factory.mktemp("vision")
    patch = pytest.MonkeyPatch()
    patch.setenv("OPENAI_API_KEY", KEY)
    with ChatServer(eye) as server:
        outcome = run_search(settings(server.url, out), Silent(), task=TASK, checker=checker)
    patch.undo()
    return outcome, out / "run", server


def events_of(run: Any) -> list[Any]:
    return [entry.event for entry in read_log(run / "events.jsonl")]


@pytest.mark.slow
def test_the_model_decides_which_agent_is_best(judged):
    outcome, run, _ = judged
    events = events_of(run)
    assert asked(events) == [["divide"], ["compose"] * 2, ["watch"] * 2, ["revise"], ["amend"] * 2, ["watch"] * 2]
    found = seen(events)
    trained = [r.candidate.id for e in events if isinstance(e, Trained) for r in e.results]
    assert set(found) == set(trained)
    assert outcome.best.candidate.id == max(found, key=lambda id: found[id].score)
    assert RunView.read(run).best.candidate.id == outcome.best.candidate.id  # type: ignore[union-attr]


def test_calls_and_money_are_those_of_the_judge_alone(judged):
    _, run, server = judged
    exchanges = read_transcript(run / "transcripts" / "exchanges.jsonl")
    # the genetic proposer rewords nothing: the criteria are asked for once
    assert server.calls == 1 + 4 * 2 * 2 == len(exchanges)
    proposals = [e.proposal for e in events_of(run) if isinstance(e, Proposed)]
    assert sum(p.calls for p in proposals) == server.calls
    assert sum(p.cost_usd for p in proposals) == pytest.approx(Amount.of(exchanges).usd)
    assert RunView.read(run).cost_usd == pytest.approx(Amount.of(exchanges).usd)
    assert not any(KEY.encode() in path.read_bytes() for path in run.rglob("*") if path.is_file())


def test_evidence_is_of_alike_beginnings(judged):
    _, run, _ = judged
    trained = [r.candidate for e in events_of(run) if isinstance(e, Trained) for r in e.results]
    first = set()
    for candidate in trained:
        evidence = Evidence.model_validate_json(index_path(run, candidate.id).read_bytes())
        assert len(evidence.episodes) == 2
        for number, episode in enumerate(evidence.episodes):
            assert episode.steps[0] == 0 and episode.steps[-1] == episode.length
            assert len(episode.steps) <= FRAMES and set(episode.paid) == {"arrive", "turn"}
            assert all(
                frame_path(run, candidate.id, number, k).stat().st_size < 50_000 for k in range(len(episode.steps))
            )
        first.add(frame_path(run, candidate.id, 0, 0).read_bytes())
    assert len(first) == 1, "the same picture of the same state"


def test_the_report_has_the_frames_and_the_dialogue(judged):
    _, run, server = judged
    page = write_report(run).read_text()
    assert '<section id="judged">' in page and "Scores are by openai/eye" in page and "agreement of votes" in page
    packed = re.findall(r'id="details">([^<]+)<', page)[0]
    behind = json.loads(gzip.decompress(base64.b64decode(packed)))
    found = seen(events_of(run))
    for id, watched in found.items():
        detail = behind["candidates"][id]
        assert len(detail["episodes"]) == 2 and set(detail["seen"]) == set(watched.subtasks)
    calls = [call for detail in behind["candidates"].values() for call in detail["exchanges"]]
    assert len(calls) == server.calls
    shown = [p["image"] for call in calls for m in call["messages"] for p in m["parts"] if "image" in p]
    assert shown and set(shown) <= set(behind["frames"])
    for data in behind["frames"].values():
        picture = Image.open(io.BytesIO(base64.b64decode(data)))
        assert picture.format == "JPEG" and max(picture.size) <= 160


def test_a_report_of_a_run_whose_frames_are_gone_or_hostile(judged, tmp_path):
    run = tmp_path / "run"
    shutil.copytree(judged[1], run)
    first, second, *_ = sorted((run / "evidence").iterdir())
    shutil.rmtree(first)
    (second / "episodes.json").write_text('{"episodes": [{}]}')
    for frame in run.glob("evidence/*/0-00.jpg"):
        frame.write_bytes(b"<svg onload=alert(1)>")
    page = write_report(run).read_text()
    assert '<section id="judged">' in page
    os.symlink("/etc", run / "evidence" / "g9999-99")
    write_report(run)


def test_it_is_replayed_without_a_model(judged, checker, tmp_path):
    _, run, _ = judged
    again = dataclasses.replace(settings(f"http://127.0.0.1:{closed_port()}/v1", tmp_path), proposer="replay",
                                recording=run)  # fmt: skip
    run_search(again, Silent(), task=TASK, checker=checker)
    assert seen(events_of(tmp_path / "run")) == seen(events_of(run))
    assert not (tmp_path / "run" / "evidence").exists()


def test_a_dead_judge_pauses_the_run_which_goes_on_later(checker, tmp_path, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    dead = settings(f"http://127.0.0.1:{closed_port()}/v1", tmp_path, llm={"wait_s": 0.0, "retries": 0}, candidates=2)
    outcome = run_search(dead, Silent(), task=TASK, checker=checker)
    assert outcome.exit_code and outcome.progress.spent.trained == 2 and outcome.progress.spent.cost_usd == 0
    with ChatServer(eye) as server:
        alive = settings(server.url, tmp_path, candidates=2, resume=True)
        outcome = run_search(alive, Silent(), task=TASK, checker=checker)
    assert outcome.exit_code == 0 and len(seen(events_of(tmp_path / "run"))) == 2
    assert outcome.progress.spent.trained == 2, "nothing is trained twice"


def test_a_judge_stays_who_it_is(judged, monkeypatch):
    _, run, server = judged
    again = settings(server.url, run.parent, candidates=8, resume=True)
    other = dataclasses.replace(again, llm=dataclasses.replace(again.llm, judge_model="openai/other", price=()))
    with pytest.raises(ChangedSetting, match=r"llm.judge_model"):
        require_same_call(run, other, {})
    require_same_call(run, dataclasses.replace(again, llm=dataclasses.replace(again.llm, api_base="http://x")), {})


def test_a_cap_is_one_for_all_models(monkeypatch):
    both = settings("http://127.0.0.1:1", Path("runs"), proposer="llm", task="panda-cabinet", candidates=400)
    llm = dataclasses.replace(both.llm, model=("openai/writer",), price=("openai/eye=1,2", "openai/writer=1,2"))
    free = spending_of(dataclasses.replace(both, llm=llm))
    capped = spending_of(dataclasses.replace(both, llm=dataclasses.replace(llm, max_usd=0.5)))
    assert free is not None and capped is not None and free.estimate.expected_usd > 1.0
    assert capped.estimate.expected_usd == capped.estimate.most_usd == 0.5
    assert free.judging == 400 * 2 * 2 and "calls of the model that judges, with pictures" in free.text()


def test_a_spent_cap_ends_the_search_with_what_is_judged(checker, tmp_path, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    with ChatServer(eye) as server:
        capped = settings(server.url, tmp_path, llm={"max_requests": 6, "concurrency": 1})
        outcome = run_search(capped, Silent(), task=TASK, checker=checker)
        assert server.calls == 6
    (judged,) = seen(events_of(tmp_path / "run"))
    assert outcome.best is not None and outcome.best.candidate.id == judged
    assert "budget of requests is spent" in outcome.reason


def test_frames_are_taken_for_metrics_too_where_they_are_asked_for(checker, tmp_path):
    scripted = dataclasses.replace(
        SETTINGS, llm=LlmSettings(judge_frames=3, judge_episodes=1), out=tmp_path, name="run", candidates=2,
    )  # fmt: skip
    run_search(scripted, Silent(), task=TASK, checker=checker)
    assert len(list((tmp_path / "run" / "evidence").glob("*/0-*.jpg"))) >= 4


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"judge": "model"}, "needs .*judge-model"),
        ({"llm": LlmSettings(judge_model="openai/eye"), "judge": "scripted"}, "judge-model is for"),
        ({"llm": LlmSettings(judge_model="openai/eye"), "option": ("watch=false",)}, "judge-model is for"),
        ({"llm": LlmSettings(judge_model="openai/eye"), "strategy": "limen", "option": ()}, "judge-model is for"),
        ({"llm": LlmSettings(judge_votes=3)}, "judge-votes is for --judge-model"),
        ({"llm": LlmSettings(judge_episodes=2)}, "judge-episodes is for --judge-frames"),
        ({"llm": LlmSettings(model=("openai/x",), judge_frames=2), "proposer": "llm", "strategy": "limen",
          "option": ()}, "judge-frames is for --judge-model"),
        ({"judge": "scripted", "strategy": "limen", "option": ()}, "have agents judged"),
        ({"strategy": "revolve", "option": ("fitness=preference",), "judge": "scripted"}, "people compare agents"),
    ],
)  # fmt: skip
def test_judges_that_cannot_be_are_refused(changes, words):
    with pytest.raises(InvalidSetting, match=words):
        dataclasses.replace(SETTINGS, **changes).check()


def test_frames_are_where_much_happens():
    figures = np.zeros((101, 2))
    figures[60:70, 0] = np.arange(10)
    figures[70:, 0] = 9
    terms = np.zeros((100, 1))
    terms[30:33] = 1.0
    steps = telling_steps(figures, terms, 12)
    assert steps[0] == 0 and steps[-1] == 100 and len(steps) == len(set(steps)) == 12
    assert sum(58 <= t <= 70 for t in steps) >= 4 and any(29 <= t <= 34 for t in steps)


@pytest.mark.parametrize("length", [0, 1, 5, 11, 12, 40])
def test_frames_of_short_and_still_episodes(length):
    steps = telling_steps(np.zeros((length + 1, 1)), np.zeros((length, 0)), 12)
    assert len(steps) == min(12, length + 1) and steps[0] == 0 and steps[-1] == length
    assert list(steps) == sorted(steps) and max(np.diff(steps), default=1) <= -(-length // 11) + 1


def test_numbers_that_are_none_choose_no_frames():
    figures = np.full((41, 1), np.nan)
    assert len(telling_steps(figures, np.full((40, 1), np.inf), 8)) == 8


def test_what_a_term_paid_is_told_after_a_step_that_is_no_number():
    terms = np.ones((10, 2))
    terms[2, 0], terms[2, 1] = np.nan, np.inf
    found = filmed_episode(cast(Any, SimpleNamespace(length=10, success=1.0)), (0, 3, 6, 10), terms, ("a", "b"))
    assert found.paid["a"] == (0.0, 2.0, 3.0, 4.0) and found.paid["b"][2:] == (3.0, 4.0) and found.paid["b"][1] > 1e3


def test_runs_from_before_models_judged_go_on(checker, tmp_path):
    """They say `files`, whatever their strategy: it was the default."""
    settings = dataclasses.replace(
        SETTINGS, strategy="limen", option=(), evolve="both", task="probe-choice", candidates=2, steps=256,
        out=tmp_path, name="run",
    )  # fmt: skip
    run_search(settings, Silent(), checker=checker)
    config = tmp_path / "run" / "config.toml"
    text = config.read_text()
    old = re.sub(r"(?m)^judge_\w+ = .*\n", "", text.replace('judge = "auto"', 'judge = "files"'))
    assert old != text
    config.write_text(old)
    assert started_settings(tmp_path / "run") == started_settings_of(text, tmp_path)
    assert with_defaults({"judge": "files", "llm": {}}, "limen")["judge"] == "auto"


def started_settings_of(text: str, folder: Any) -> EvolveSettings:
    (folder / "new").mkdir()
    (folder / "new" / "config.toml").write_text(text)
    return started_settings(folder / "new")
