"""Alignment rates by a vision model: `jaxreward rate` over HTTP on loopback."""

from __future__ import annotations

import base64
import dataclasses
import io
import json
import shutil
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import jax
import numpy as np
import pytest
from PIL import Image

from jaxreward.cli import main
from jaxreward.comparison.comparison_table import row_json, score_sheet
from jaxreward.comparison.finished_searches import Grid, read_search, rows_of
from jaxreward.evolution import run_search
from jaxreward.evolution.policies import keep_fresh
from jaxreward.evolution.rating import agents_of, film_agents
from jaxreward.evolution.started import started_settings
from jaxreward.proposers.replies.seen import read_rating
from jaxreward.records import Evidence, Failure, RatedProgram, Rating
from jaxreward.reports.page import write_report
from jaxreward.reports.run_text import paragraphs, run_json
from jaxreward.reports.run_view import RunView
from jaxreward.runs import read_transcript
from jaxreward.runs.checkpoint import Checkpoints
from jaxreward.runs.ratings import RATINGS
from tests.careful_corridor import CarefulCorridor
from tests.proposers.server import Answer, ChatServer, Fault, closed_port
from tests.proposers.talk import KEY
from tests.silent import Silent
from tests.test_rda_search import SETTINGS

pytestmark = [pytest.mark.usefixtures("warm", "unoptimised", "unsynced"), pytest.mark.long]
TASK = "tests/careful_corridor.py:CarefulCorridor"
VOTES, EPISODES, FRAMES, SEEDS = 2, 2, 3, 2
CALLS = 2 * SEEDS * EPISODES * VOTES
"""For the winner and the sparse baseline."""


@pytest.fixture(autouse=True)
def key(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", KEY)


@pytest.fixture(scope="module")
def searched(checker, tmp_path_factory):
    out = tmp_path_factory.mktemp("rate")
    settings = dataclasses.replace(
        SETTINGS, task=TASK, strategy="eureka", option=(), out=out, name="run", candidates=2,
        final_seeds=SEEDS, baselines=("sparse",),
    )  # fmt: skip
    run_search(settings, Silent(), checker=checker)
    return out / "run"


@pytest.fixture
def run(searched, tmp_path):
    return Path(shutil.copytree(searched, tmp_path / "run"))


def rating(value: int, why: str = "it arrives in frame 3") -> Answer:
    return Answer(json.dumps({"why": why, "rating": value}))


def pictures(body: dict[str, Any]) -> list[Image.Image]:
    content = body["messages"][-1]["content"]
    urls = [part["image_url"]["url"] for part in content if part["type"] == "image_url"]
    return [Image.open(io.BytesIO(base64.b64decode(url.split(",")[1]))) for url in urls]


def rate(run: Path, url: str, *words: str) -> int:
    return main([
        "rate", str(run), "--task", TASK, "--model", "openai/eye", "--api-base", url, "--price", "openai/eye=1,2",
        "--votes", str(VOTES), "--episodes", str(EPISODES), "--frames", str(FRAMES), *words,
    ])  # fmt: skip


@pytest.mark.slow
def test_the_best_and_baselines_are_rated_by_frames_alone(run, capsys):
    bodies = list[dict[str, Any]]()

    def eye(body: dict[str, Any], n: int) -> Answer:
        bodies.append(body)
        assert 1 <= len(pictures(body)) <= FRAMES and all(picture.format == "JPEG" for picture in pictures(body))
        return rating(4)

    with ChatServer(eye) as server:
        assert rate(run, server.url, "--json") == 0
    said = json.loads(capsys.readouterr().out.splitlines()[-1])["runs"][str(run)]
    assert len(bodies) == CALLS
    text = json.dumps(bodies)
    assert CarefulCorridor().instruction().words in text
    assert "Paid" not in text and "arrive at the right end" not in text  # neither rewards nor subtasks
    assert said["model"] == "openai/eye" and set(said["programs"]) == {"best", "sparse"}
    rate_of = said["programs"]["best"]["rate"]
    assert (rate_of["mean"], rate_of["n"], rate_of["episodes"]) == (0.8, SEEDS, SEEDS * EPISODES)
    kept = read_transcript(run / "transcripts" / "ratings.jsonl")
    assert len(kept) == CALLS and "base64" not in (run / "transcripts" / "ratings.jsonl").read_text()
    assert not read_transcript(run / "transcripts" / "exchanges.jsonl")  # caps of the search do not count them


def test_what_is_rated_stands_beside_success(run):
    with ChatServer(lambda body, n: rating(2 if "sparse" in json.dumps(body) else 5, "it stands still")) as server:
        assert rate(run, server.url) == 0
    view = RunView.read(run)
    assert run_json(view)["alignment_rate"]["programs"]["best"]["mean"] == 1.0
    assert "winner 1.000" in dict(paragraphs(view))["rated"] and "openai/eye" in dict(paragraphs(view))["rated"]
    page = write_report(run).read_text()
    assert "Alignment rate, of frames alone: winner 1.000" in page and "it stands still" in page
    search = read_search(run)
    assert search is not None and search.rate is not None and search.rate.mean == 1.0
    assert search.rated_by == f"openai/eye, {VOTES} votes on {EPISODES} episodes of {FRAMES} frames"
    grid = Grid(tasks=(search.key.task,), strategies=("eureka",), proposers=("genetic",), search_seeds=2)
    (row,) = rows_of([search], grid)
    sheet = score_sheet([row], None)
    assert "alignment rate by openai/eye" in sheet.title
    other = dataclasses.replace(search, rated_by="another")
    assert dataclasses.replace(row, searches=(search, other)).rate is None  # two models are not averaged
    assert "alignment rate" in sheet.columns and row_json(row)["alignment_rate"]["mean"] == 1.0
    assert all(len(line) == len(sheet.columns) for line in sheet.rows)


@pytest.mark.slow
def test_begun_again_it_asks_for_what_is_missing(run, capsys):
    def stops(body: dict[str, Any], n: int) -> Answer | Fault:
        return rating(3) if n < 5 else Fault(401)

    with ChatServer(stops) as server:
        assert rate(run, server.url, "--concurrency", "1", "--retries", "0") == 2
    assert not (run / RATINGS).exists() and "Traceback" not in capsys.readouterr().err
    with ChatServer(lambda body, n: rating(3)) as server:
        assert rate(run, server.url) == 0
        assert len(server.seen) == CALLS - 5
    with ChatServer(lambda body, n: rating(1)) as server:
        assert rate(run, server.url) == 0 and not server.seen  # all answers are there
        assert rate(run, server.url, "--votes", "3") == 0 and len(server.seen) == CALLS // VOTES
    assert json.loads((run / RATINGS).read_text())["votes"] == 3


@pytest.mark.slow
def test_votes_that_cannot_be_read_are_asked_for_once_more(run, capsys):
    asked = dict[str, int]()

    def unsure(body: dict[str, Any], n: int) -> Answer:
        asked["n"] = asked.get("n", 0) + 1
        return Answer("a fine agent") if asked["n"] <= 3 else rating(9 if asked["n"] == 4 else 5)

    with ChatServer(unsure) as server:
        assert rate(run, server.url, "--concurrency", "1") == 0
        assert len(server.seen) == CALLS + 4
    with ChatServer(lambda body, n: Answer("a fine agent")) as server:
        assert rate(run, server.url, "--frames", "2") == 2
    assert "no answer about the agents of best can be used" in capsys.readouterr().err


def test_a_cap_holds_and_nothing_is_lost(run, capsys):
    with ChatServer(lambda body, n: rating(3)) as server:
        assert rate(run, server.url, "--max-requests", "6") == 2
        assert len(server.seen) == 6
        assert "the budget of requests is spent; raise it: answers so far are kept" in capsys.readouterr().err
        assert rate(run, server.url, "--max-requests", str(CALLS)) == 0
        assert len(server.seen) == CALLS


@pytest.mark.slow
def test_caps_and_questions_are_of_all_runs_together(run, tmp_path, capsys):
    other = Path(shutil.copytree(run, tmp_path / "other"))
    with ChatServer(lambda body, n: rating(3)) as server:
        assert rate(other, server.url) == 0 and len(server.seen) == CALLS
        assert rate(run, server.url, str(other), "--max-requests", str(CALLS + 4)) == 2
        assert len(server.seen) == CALLS + 4  # those of before count
        assert rate(run, server.url, str(run.absolute()), "--confirm-usd", "0.01") == 2  # one run, by two names
        assert "will cost about" in capsys.readouterr().err and len(server.seen) == CALLS + 4


@pytest.mark.filterwarnings("ignore:checkpoint")
def test_a_policy_that_cannot_be_read_is_no_bad_agent(run, capsys):
    (first, *_) = sorted((run / "checkpoints").glob("fresh-best-*-000*"))
    for path in first.rglob("*"):
        if path.is_file() and path.name != "checksums.json":
            path.write_bytes(b"damaged")
    with ChatServer(lambda body, n: rating(3)) as server:
        assert rate(run, server.url) == 2 and not server.seen
    assert "cannot be read, so its agent cannot be rated" in capsys.readouterr().err


def test_policies_of_one_name_are_not_those_of_a_longer_one(tmp_path):
    store = Checkpoints(tmp_path)
    digest = "a" * 16
    kept = [f"fresh-best-of-n-{digest}-64-000", f"fresh-best-{digest}-64-000", f"fresh-sparse-{digest}-64-000"]
    for tag in kept:
        store.save(tag, {"x": np.zeros(1)})
    trained: Any = SimpleNamespace(
        diverged=np.zeros((1, 1), bool), programs=[SimpleNamespace(digest="b" * 64)],
        variables=lambda row, seed: {"x": np.ones(1)},
    )  # fmt: skip
    keep_fresh(store, "best", trained, 0, 128)
    assert set(store.tags()) == {kept[0], kept[2], f"fresh-best-{'b' * 16}-128-000"}


def test_what_is_shown_does_not_depend_on_rewards(run):
    with ChatServer(lambda body, n: rating(3)) as server:
        assert rate(run, server.url) == 0
    found = [Evidence.model_validate_json(p.read_bytes()) for p in (run / "evidence").glob("rated-*/episodes.json")]
    assert len(found) == 2 * SEEDS and all(not e.paid for evidence in found for e in evidence.episodes)


def test_a_dead_model_costs_nothing(run, capsys):
    assert rate(run, f"http://127.0.0.1:{closed_port()}/v1", "--wait-s", "0", "--retries", "0") == 2
    said = capsys.readouterr().err
    assert "Connection refused" in said and "--resume" not in said and "same command" in said
    assert not (run / RATINGS).exists()


def test_ratings_of_another_program_are_not_shown(run):
    with ChatServer(lambda body, n: rating(3)) as server:
        assert rate(run, server.url) == 0
    path = run / RATINGS
    found = json.loads(path.read_text())
    found["programs"]["best"]["digest"] = "0" * 64
    path.write_text(json.dumps(found))
    ratings = RunView.read(run).ratings
    assert ratings is not None and set(ratings.programs) == {"sparse"}
    path.write_text("{")
    assert RunView.read(run).ratings is None


def test_a_run_without_policies_of_its_final_training_has_the_best_of_its_search(run):
    for path in (run / "checkpoints").glob("fresh-*"):
        shutil.rmtree(path)
    with ChatServer(lambda body, n: rating(3)) as server:
        assert rate(run, server.url) == 0
        assert len(server.seen) == EPISODES * VOTES
    assert set(json.loads((run / RATINGS).read_text())["programs"]) == {"best"}


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["rate"], "say which runs"),
        (["rate", "RUN"], "would be executed"),
        (["rate", "RUN", "--task", TASK], "one vision model rates"),
        (["rate", "RUN", "--task", TASK, "--model", "openai/a", "openai/b"], "one vision model rates"),
        (["rate", "RUN", "--task", TASK, "--model", "openai/a", "--votes", "0"], "--votes must be at least 1"),
        (["rate", "no-such-run", "--model", "openai/a"], "no-such-run"),
    ],
)
def test_what_cannot_be_rated_is_one_sentence(run, capsys, words, message):
    assert main([str(run) if word == "RUN" else word for word in words]) == 2
    said = capsys.readouterr().err
    assert message in said and "Traceback" not in said


def of(*seeds: list[list[int]]) -> RatedProgram:
    votes = tuple(tuple(tuple(Rating(score=v) for v in votes) for votes in seed) for seed in seeds)
    return RatedProgram(digest="d", seeds=votes)


def test_the_rate_is_the_mean_over_votes_episodes_and_seeds():
    score = of([[5, 3], [4]], [[1, 1], [2]]).score
    assert score.mean == pytest.approx(((4 / 5 + 4 / 5) / 2 + (1 / 5 + 2 / 5) / 2) / 2)
    assert score.n == 2 and score.episodes == 4 and score.se == pytest.approx(abs(0.8 - 0.3) / 2)
    assert of([[5, 3], [1]]).score.se == pytest.approx((0.8 - 0.2) / 2)  # of one seed over its episodes
    assert of([[5]], []).score.mean == pytest.approx((1.0 + 0.2) / 2)  # a seed that diverged does nothing of it
    assert of([[5, 2], [3]]).spread == 3
    unread = of([[5], [5]], [[], []]).score  # no answer about the second seed could be used
    assert unread.mean == 1.0 and unread.n == 1


@pytest.mark.parametrize("text", ["", "4", '{"rating": 0, "why": "x"}', '{"rating": 6, "why": "x"}',
                                  '{"rating": true, "why": "x"}', '{"rating": 4.5, "why": "x"}'])  # fmt: skip
def test_no_rating_is_read_from_other_words(text):
    assert isinstance(read_rating(text, "stop"), Failure)


def test_a_film_is_of_a_policy(run, checker):
    """The same program, trained again for longer, is filmed anew."""
    settings = started_settings(run)
    task = CarefulCorridor()
    agents = agents_of(RunView.read(run), settings, task, checker)[:1]
    other = [dataclasses.replace(agents[0], policies=jax.tree.map(lambda x: x + 1, agents[0].policies))]
    each = [film_agents(run, task, settings, a, episodes=1, frames=2) for a in (agents, agents, other)]
    ids = [{film.id for film in films.values()} for films in each]
    assert ids[0] == ids[1] and not ids[0] & ids[2]
