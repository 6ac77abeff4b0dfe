"""What a report says, and that it is one page which needs nothing else."""

from __future__ import annotations

import base64
import gzip
import json
import re
import shutil
from collections import Counter
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from jaxreward.errors import FileProblem, UnknownName, UnusableFile
from jaxreward.records import Candidate, Measure, Result, Score
from jaxreward.reports import charts
from jaxreward.reports.baselines import WINNER, ScoredProgram, gap, scored_programs, verdicts
from jaxreward.reports.chart_data import cells, forest, size_rows
from jaxreward.reports.lineage import changes, lineage
from jaxreward.reports.page import QUESTIONS, entry_functions, render, write_report
from jaxreward.reports.report_content import make_report
from jaxreward.reports.run_view import RunView
from jaxreward.reports.timeline import FINAL, REST, TRAINING, Timeline, listed_periods
from jaxreward.reports.warnings import run_warnings
from jaxreward.runs import Asked, Baseline, Entry, EventLog, Finished, Resumed, Trained
from tests.reports.demonstrated_run import EDGES, make_demonstrated_run
from tests.reports.made_run import make_run


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_run(tmp_path_factory.mktemp("runs") / "made", 40)


@pytest.fixture(scope="module")
def view(run: Path) -> RunView:
    return RunView.read(run)


@pytest.fixture(scope="module")
def page(view: RunView) -> str:
    return render(view)


def embedded(page: str, id: str) -> str:
    found = re.search(rf'<script type="[^"]+" id="{id}">(.*?)</script>', page, re.DOTALL)
    assert found is not None
    return found.group(1)


# ---- what is said


def score(mean: float, se: float = 0.02, measure: Measure | None = None) -> Score:
    return Score(mean=mean, se=se, n=5, episodes=1280, **({"measure": measure} if measure else {}))


def test_a_gap_is_better_unclear_or_worse():
    assert gap(score(0.8), score(0.3)).verdict == "better"
    assert gap(score(0.3), score(0.8)).verdict == "worse"
    assert gap(score(0.5), score(0.52)).verdict == "unclear"
    metres = Measure(name="distance", unit="m", rate=False, higher_is_better=False, worst=9.0)
    nearer = gap(score(0.2, measure=metres), score(3.0, measure=metres))
    assert nearer.verdict == "better" and nearer.mean == pytest.approx(2.8) and nearer.low < 2.8 < nearer.high


def test_a_gap_against_a_certain_score_is_the_interval_itself():
    metres = Measure(name="distance", rate=False, worst=0.0)
    found = gap(score(3.0, 0.1, metres), score(1.0, 0.0, metres))
    assert (found.low, found.high) == pytest.approx((2.0 - 2.7764451051977987 * 0.1, 2.0 + 2.7764451051977987 * 0.1))


def test_one_seed_and_the_score_of_the_search_are_no_proof():
    one = Score(mean=0.9, se=0.02, n=1, episodes=256)
    assert gap(one, score(0.1)).verdict == "unclear"
    sparse = ScoredProgram("sparse", score(0.1), None, False)
    (said,) = verdicts([ScoredProgram(WINNER, score(0.9), None, False), sparse])
    assert "that is biased" in said
    (said,) = verdicts([ScoredProgram(WINNER, one, None, True), sparse])
    assert said.startswith("No conclusion about sparse")


def test_the_headline_compares_the_winner_with_every_baseline(view):
    found = scored_programs(view)
    assert [c.name for c in found] == ["winner", "sparse", "best-of-n"] and found[0].fresh
    better, without = verdicts(found)
    assert better.startswith("It is better than sparse: the difference is +0.600")
    assert without == "best-of-n has no score to compare with."


def test_warnings_say_what_they_mean(view):
    kinds = {d.kind: d for d in run_warnings(view, scored_programs(view))}
    assert "not_fresh" not in kinds and all(d.means for d in kinds.values())
    unfinished = [d.kind for d in run_warnings(view, [c for c in _without_finals(view)])]
    assert "not_fresh" in unfinished and "few_seeds" in unfinished


def _without_finals(view):
    best = view.best
    return [ScoredProgram(WINNER, best.score, best.feedback, False)]


def test_a_lineage_goes_from_the_first_ancestor_to_the_winner(view):
    assert view.best is not None
    steps = lineage(view.results, view.best.candidate.id)
    assert not steps[0].result.candidate.parents and steps[-1].result is view.best
    for before, step in pairwise(steps):
        assert step.parent is before.result
        lines = step.result.candidate.source.splitlines()
        added = [line[1:] for line in step.changes if line.startswith("+")]
        gone = [line[1:] for line in step.changes if line.startswith("-")]
        assert added and all(line in lines for line in added) and not any(line in lines for line in gone)


def test_parents_in_a_circle_end():
    def one(id: str, parent: str) -> Result:
        return Result(candidate=Candidate(id=id, generation=0, operator="improve", parents=(parent,)), words="x")

    circle = {"a": one("a", "b"), "b": one("b", "a")}
    assert len(lineage(circle, "a")) == 2 and changes(None, circle["a"]) == ()


def test_every_node_of_the_tree_is_one_below_its_parent(view):
    nodes, edges = forest(view)
    assert {n["id"] for n in nodes} == set(view.results)
    assert all(e["depth2"] == e["depth"] + 1 for e in edges)
    children = sum(1 for r in view.results.values() if r.candidate.parents)
    assert len(edges) == children
    assert len({(n["x"], n["depth"]) for n in nodes}) == len(nodes), "no two nodes overlap"


def test_every_cell_shows_its_best(view):
    shown, found = size_rows(view), cells(view)
    assert found and len(found) <= len(shown)
    for cell in found:
        inside = [
            row["mean"] for row in shown
            if cell["x"] <= row["reward_nodes"] < cell["x2"] and cell["y"] < row["observation_size"] < cell["y2"]
        ]  # fmt: skip
        assert cell["mean"] == max(inside)


def test_periods_and_costs_add_up_to_the_totals(view):
    periods = view.periods
    assert sum(p.wall_s for p in periods) == pytest.approx(view.wall_s, abs=0.06 * (len(periods) + 1))
    spent = view.progress.spent
    assert sum(s.compile_s for s in periods) == pytest.approx(spent.compile_s)
    assert sum(s.run_s for s in periods) == pytest.approx(spent.run_s)
    (cost,) = make_report(view).costs
    assert (cost.calls, cost.usd) == (40, pytest.approx(0.4))


def test_the_search_that_a_run_is_compared_with_is_no_final_training():
    """It runs before the first event of the final training, in a log of its own."""

    def log(*events: tuple[float, Any]) -> list[Entry]:
        return [Entry(i, at, event) for i, (at, event) in enumerate(events)]

    asked, trained = Asked(generation=0, requests=()), Trained(results=(), compile_s=4.0, run_s=5.0)
    whole = log((0, asked), (10, trained), (50, Baseline(name="best", run_s=7.0)), (53, Finished(reason="budget")))
    samples = log((11, asked), (12, trained), (41, Finished(reason="budget")))
    found = {s.name: s for s in listed_periods(Timeline(whole), Timeline(samples))}
    assert list(found) == ["generation 0", "best-of-n", "final"]
    assert found["best-of-n"].seconds == {TRAINING: 1, REST: 29} and found["best-of-n"].run_s == 5.0
    assert found["final"].seconds == {FINAL: 40 - 30, REST: 3} and found["final"].run_s == 7.0
    assert [s.name for s in listed_periods(Timeline(whole))] == ["generation 0", "final"]


def test_depths_of_the_tree_are_whole_numbers():
    def ticks(deepest: int) -> list[int]:
        nodes = [{"x": 0.0, "depth": d, "id": str(d), "operator": "o", "state": "scored"} for d in range(deepest + 1)]
        y = charts.tree(nodes, [], Measure())["layer"][0]["encoding"]["y"]
        return y["axis"]["values"]

    assert ticks(0) == [0] and ticks(1) == [0, 1] and ticks(4) == [0, 1, 2, 3, 4]
    assert len(ticks(100)) <= 11


def test_failures_are_counted_with_examples(view):
    lost = Counter(r.failure.stage for r in view.results.values() if r.failure)
    examples = make_report(view).failures
    assert view.failures == lost and list(examples) == list(view.failures)
    assert all(1 <= len(found) <= 3 for found in examples.values())
    assert next(iter(view.failures.values())) == max(lost.values())


# ---- the page


GIF = b"GIF89a" + b"\0" * 40


@pytest.mark.long
def test_a_film_is_shown_under_the_program_that_it_shows(run, tmp_path):
    shutil.copytree(run, tmp_path / "run")
    run, film = tmp_path / "run", tmp_path / "run" / "film.gif"
    shown = lambda: "data:image/gif" in write_report(run).read_text()  # noqa: E731
    best = RunView.read(run).best
    assert best is not None and best.candidate.summary is not None
    film.write_bytes(GIF)
    assert not shown(), "nobody says whose it is"
    about = {"digest": best.candidate.summary.digest, "agent": "the agent of the search"}
    (run / "film.json").write_text(json.dumps(about))
    assert shown() and "played by the agent of the search" in write_report(run).read_text()
    film.write_bytes(b"a secret")
    assert not shown()
    (tmp_path / "elsewhere").write_bytes(GIF)
    film.unlink()
    film.symlink_to(tmp_path / "elsewhere")
    assert not shown()
    film.unlink()
    film.write_bytes(GIF)
    (run / "film.json").write_text(json.dumps({**about, "digest": "of another"}))
    assert not shown()


def test_points_of_the_other_search_open_nothing(run, tmp_path):
    shutil.copytree(run, tmp_path / "run")
    shutil.copytree(run, tmp_path / "run" / "best-of-n")
    layers = charts_of(render(RunView.read(tmp_path / "run")))["search"]["layer"]
    points = layers[1]["data"]["values"]
    assert {(p["search"], p["own"]) for p in points} == {("limen", True), ("best-of-n", False)}
    (tmp_path / "run" / "best-of-n" / "events.jsonl").write_text("damaged\nlog\n")
    assert RunView.read(tmp_path / "run").best_of_n is None


@pytest.mark.parametrize("target", ["folder", "file/page.html"])
def test_a_report_that_cannot_be_written_says_so(run, tmp_path, target):
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").touch()
    problem = FileProblem.WRONG_KIND
    with pytest.raises(UnusableFile, check=lambda e: (e.path, e.problem) == (tmp_path / target, problem)):
        write_report(run, tmp_path / target)


def test_control_characters_stay_out(run, tmp_path):
    shutil.copytree(run, tmp_path / "run")
    log = tmp_path / "run" / "events.jsonl"
    log.write_text(log.read_text().replace("walk to the goal", "walk\\u0000\\u001b[31m \\ud800 on"))
    text = write_report(tmp_path / "run").read_text()
    assert "\0" not in text and "\x1b" not in text and "walk\\x00\\x1b[31m \\ud800 on" in text


def test_every_question_leads_to_a_section(page):
    for question, id, _ in QUESTIONS:
        assert f'<section id="{id}">' in page and f'<a href="#{id}">{question.replace("&", "&amp;")}</a>' in page
    assert len(QUESTIONS) == 10


def test_the_page_holds_the_program_and_all_candidates(page, view):
    rows = json.loads(embedded(page, "run"))["table"]
    assert [row["id"] for row in rows] == list(view.results)
    behind = json.loads(gzip.decompress(base64.b64decode(embedded(page, "details"))))["candidates"]
    assert behind.keys() == view.results.keys()
    best = view.best.candidate
    assert behind[best.id]["source"] == best.source.rstrip()
    assert "Write a program for" in behind[best.id]["exchanges"][0]["messages"][0]["parts"][0]["text"]
    assert '<span class="nf">get_observation</span>' in page, "the winner's source is highlighted"
    functions, whole = page.split("The whole file, with its constants and helpers")
    assert functions.rfind("compute_reward</span>") > functions.rfind("get_observation</span>") > 0
    assert '<span class="nf">helper_3</span>' in whole and '<span class="nf">helper_3</span>' not in functions


def test_the_entry_functions_are_cut_out_of_a_program():
    source = "import jax\nA = 1\n\n@jax.jit\ndef get_observation(state):\n    return state.x\n\ndef h():\n    pass\n"
    assert entry_functions(source) == "@jax.jit\ndef get_observation(state):\n    return state.x"
    assert entry_functions("not a program(") == "not a program("


def test_replies_of_models_are_escaped(page):
    outside = page.replace(embedded(page, "details"), "")
    assert "<img src=x" not in outside and "<script>alert" not in outside
    assert "&lt;img src=x onerror=alert(1)&gt;" in page


def test_the_page_makes_no_requests(page):
    head = page.split("<style>")[0]
    assert "default-src 'none'" in head and "unsafe-eval" not in head
    assert not re.findall(r"<(?:link|img|script|iframe)[^>]+(?:src|href)=\"(?!data:)", page.split("<script>")[0])


@pytest.mark.long
def test_a_hundred_candidates_with_long_prompts_stay_below_five_megabytes(tmp_path):
    run = make_run(tmp_path / "large", 100, talk=40_000)
    assert write_report(run).stat().st_size < 5e6


@pytest.mark.parametrize("strategy", ["rf-agent", "limen"])
def test_a_run_that_goes_on_has_a_report(tmp_path, strategy):
    run = make_run(tmp_path / "open", 12, strategy=strategy, finished=False)
    with EventLog(run / "events.jsonl") as log:
        page = render(RunView.read(run))
        assert ">running<" in page and "It is still running" in page
        log.append(Resumed())
    with open(run / "events.jsonl", "ab") as file:
        file.write(b'{"v":1,"seq":')  # torn
    page = render(RunView.read(run))
    assert ">stopped<" in page and "--resume" in page and "not trained again on fresh seeds" in page


def test_a_run_of_which_nothing_is_known_has_a_report_too(tmp_path):
    run = make_run(tmp_path / "young", 8, finished=False)
    lines = (run / "events.jsonl").read_bytes().splitlines(keepends=True)
    (run / "best_interface.py").unlink()
    for count in range(1, len(lines)):
        (run / "events.jsonl").write_bytes(b"".join(lines[:count]))
        report = make_report(RunView.read(run))
        assert report.title == "xland-easy"
    (run / "events.jsonl").write_bytes(lines[0])
    page = render(RunView.read(run))
    assert "no candidate has a score" in page and 'id="lineage"' not in page


def test_a_folder_without_a_run_is_a_mistake(tmp_path):
    with pytest.raises(UnknownName, match="there is no run in", check=lambda e: e.kind == "run"):
        write_report(tmp_path)


def charts_of(page: str) -> dict[str, Any]:
    return json.loads(embedded(page, "run"))["charts"]


def test_charts_have_data(page):
    found = charts_of(page)
    everything = {"intervals", "curves", "search", "archive", "tree", "terms", "shares", "failures", "time"}
    assert found.keys() == everything | {"functions", "uses"}
    for name, spec in found.items():
        layers = [spec, *spec.get("layer", ())]
        assert any(layer.get("data", {}).get("values") for layer in layers), name


# ---- demonstrations


def test_rewards_on_demonstrations_are_shown_of_the_best_alone(tmp_path):
    run = make_demonstrated_run(tmp_path / "run")
    page = render(RunView.read(run))
    charts = charts_of(page)
    expert = charts["along_expert"]["data"]["values"]
    assert {(row["group"], row["episode"]) for row in expert} == {
        (name, k) for name in ("expert", "expert, held out") for k in (1, 2)
    }
    last = [row for row in expert if row["positive"]]
    assert [row["reward"] for row in last] == [1.0, 1.0, 0.5, 0.5] and [row["step"] for row in last] == [4, 7, 4, 7]
    bins = [row for row in charts["rewards"]["data"]["values"] if row["group"] == "policy of expansion 1"]
    assert [row["share"] for row in bins] == [pytest.approx(2 / 3, abs=1e-6), 0.0, pytest.approx(1 / 3, abs=1e-6)]
    assert [(row["reward"], row["to"]) for row in bins] == list(pairwise(EDGES))
    accuracy = charts["accuracy_over_generations"]["layer"][-1]["data"]["values"]
    assert {row["of"] for row in accuracy} == {"searched with", "held out"}
    assert "candidates scored." in page
    kept = run / "demonstrations" / "rewards.json"
    for text in ("not JSON", json.dumps({**json.loads(kept.read_text()), "digest": "of another"})):
        kept.write_text(text)
        page = render(RunView.read(run))
        assert "along_expert" not in charts_of(page) and "accuracy_over_generations" in charts_of(page)
        assert "is written when the search ends" in page


def test_a_run_that_trains_has_no_demonstrations(page):
    assert 'id="demonstrations"' not in page and "candidates trained." in page
