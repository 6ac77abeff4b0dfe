"""Rows and curves of a comparison from logs written by hand, with their arithmetic."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from matplotlib.axes import Axes
from rich.console import Console

from jaxreward.comparison.comparison_plot import search_curves
from jaxreward.comparison.comparison_table import notes, row_json, score_sheet, search_json, use_sheet
from jaxreward.comparison.finished_searches import (
    Grid,
    Search,
    Sparse,
    folder_of,
    joined,
    over_candidates,
    over_seconds,
    read_search,
    read_sparse,
    rows_of,
    searches_of,
)
from jaxreward.errors import FileProblem, UnusableFile
from jaxreward.records import Failure, Measure, ProgramSummary, Proposal, Request, Result, Score, Verdict
from jaxreward.reports.tables import Sheet, interval_over_searches, mean_over, paired_difference, wilson
from jaxreward.runs import (
    Asked,
    Baseline,
    Checked,
    EventLog,
    Finished,
    Paused,
    Progress,
    Proposed,
    RunStarted,
    Told,
    Trained,
    advance,
)

CONFIG = {"candidates": 4, "generation": 2, "seeds": 2, "steps": 1000, "final_seeds": 5, "final_steps": 0}
EPISODES = 1280


def score(mean: float, n: int = 5, episodes: int = EPISODES) -> Score:
    return Score(mean=mean, se=0.01, n=n, episodes=episodes)


def write(
    path: Path,
    batches: Sequence[Sequence[float | None]],
    seconds: float = 10.0,
    final: float | None = None,
    reason: str = "all candidates are trained",
    strategy: str = "limen",
    seed: int = 0,
    proposer: str = "genetic",
    config: Mapping[str, Any] = CONFIG,
    task: str = "toy",
) -> Search:
    """A run in which each batch of scores is a generation; None is a candidate that the short rung stopped.

    Each batch compiles for `seconds` and trains for half of that. Without `final` the run is not finished.
    """
    path.mkdir(parents=True)
    best: tuple[float, str] | None = None
    with EventLog(path / "events.jsonl") as log:
        progress: Progress[None] = Progress(None)

        def append(event) -> None:
            nonlocal progress
            log.append(event)
            progress = advance(progress, event, lambda state, _: state)

        append(RunStarted(task=task, strategy=strategy, proposer=proposer, seed=seed, config=dict(config)))
        for generation, scores in enumerate(batches):
            ids = [f"g{generation:04d}-{k:02d}" for k in range(len(scores))]
            append(Asked.of([Request(id=id, generation=generation, operator="scratch") for id in ids]))
            for id in ids:
                append(
                    Proposed(proposal=Proposal(request_id=id, source=f"x = '{id}'", tokens=10, cost_usd=0.5, calls=1))
                )
                summary = ProgramSummary(digest=id, observation_size=1)
                append(Checked(request_id=id, verdict=Verdict(summary=summary)))
            assert progress.open is not None
            results = []
            for id, value in zip(ids, scores, strict=True):
                candidate = progress.open.candidate(id)
                failure = Failure(stage="filtered", message="below the threshold") if value is None else None
                known = None if value is None else score(value, n=2, episodes=512)
                results.append(Result(candidate=candidate, score=known, failure=failure, env_steps=100))
                if value is not None and (best is None or value > best[0]):
                    best = (value, id)
            append(Trained(results=tuple(results), compile_s=seconds, run_s=seconds / 2))
            append(Told(generation=generation))
        if final is not None:
            if best is not None:
                append(Baseline(name="best", digest=best[1], steps=1000, score=score(final), compile_s=7.0, run_s=7.0))
            append(Finished(reason=reason, best=best[1] if best else None))
        else:
            append(Paused(reason="stopped by SIGTERM"))
    found = read_search(path)
    assert found is not None
    return found


@pytest.fixture
def searches(tmp_path: Path) -> list[Search]:
    """Three searches of limen and of best-of-n; the last of limen ended early."""
    return [
        write(tmp_path / "l0", [[0.2, None], [0.6, 0.4]], final=0.50, seed=0),
        write(tmp_path / "l1", [[0.3, 0.1], [0.2, 0.9]], final=0.80, seed=1, seconds=20.0),
        write(tmp_path / "l2", [[0.4, 0.5]], final=0.35, seed=2, reason="depth no longer pays"),
        write(tmp_path / "b0", [[0.2, 0.3], [0.1, 0.4]], final=0.40, seed=0, strategy="best-of-n"),
        write(tmp_path / "b1", [[0.3, 0.6], [0.1, 0.2]], final=0.50, seed=1, strategy="best-of-n"),
        write(tmp_path / "b2", [[0.3, 0.6], [0.1, 0.2]], final=0.45, seed=2, strategy="best-of-n"),
    ]


GRID = Grid(tasks=("toy",), strategies=("limen", "best-of-n"), proposers=("genetic",), search_seeds=3)


def test_a_search_is_read_from_its_log(searches: list[Search]):
    first = searches[0]
    assert (first.key.strategy, first.key.seed, first.budget, first.finished) == ("limen", 0, 4, True)
    assert first.score == score(0.5) and first.search_score is not None and first.search_score.mean == 0.6
    assert first.scores == (0.2, None, 0.6, 0.4)
    assert first.device_s == (15.0, 15.0, 30.0, 30.0)
    # the training on fresh seeds is not among the seconds of the search
    assert (first.compile_s, first.run_s) == (20.0, 10.0)
    assert first.used["trained"] == 4 and first.used["env_steps"] == 400
    assert (first.used["tokens"], first.used["cost_usd"], first.used["calls"]) == (40, 2.0, 4)


def test_where_nothing_has_begun_there_is_no_search(tmp_path: Path):
    assert read_search(tmp_path) is None


def test_an_unfinished_search_says_why_and_has_no_final_score(tmp_path: Path):
    half = write(tmp_path / "half", [[0.2, 0.7]])
    assert not half.finished and half.reason == "stopped by SIGTERM" and half.score is None
    assert half.search_score is not None and half.search_score.mean == 0.7


def test_best_so_far_never_falls_and_a_failure_changes_nothing(searches: list[Search]):
    assert searches[0].best_so_far.tolist() == [0.0, 0.2, 0.2, 0.6, 0.6]


def test_curves_over_candidates_keep_what_a_shorter_search_had(searches: list[Search]):
    curve = over_candidates(searches[:3])
    assert curve.at.tolist() == [1, 2, 3, 4]
    assert curve.values.tolist() == [[0.2, 0.2, 0.6, 0.6], [0.3, 0.3, 0.3, 0.9], [0.4, 0.5, 0.5, 0.5]]


def test_curves_over_seconds_step_when_a_batch_is_known(searches: list[Search]):
    curve = over_seconds(searches[:1])
    assert curve.at.tolist() == [15.0, 30.0] and curve.values.tolist() == [[0.2, 0.6]]
    curve = over_seconds(searches[:2])  # batches of 15 s and of 30 s: before 30 s one of them knows nothing
    assert curve.at.tolist() == [30.0, 60.0]
    assert curve.values.tolist() == [[0.6, 0.6], [0.3, 0.9]]


def test_the_mean_over_searches_has_an_interval():
    found = mean_over([score(0.5), score(0.8), score(0.35)])
    assert found is not None and found.n == 3 and found.episodes == EPISODES
    deviation = math.sqrt(((0.5 - 0.55) ** 2 + (0.8 - 0.55) ** 2 + (0.35 - 0.55) ** 2) / 2)
    assert found.mean == pytest.approx(0.55) and found.se == pytest.approx(deviation / math.sqrt(3))
    assert interval_over_searches(found) == pytest.approx((0.0, 1.0))  # wider than that, and cut
    near = mean_over([score(0.5), score(0.52), score(0.54)])
    assert near is not None
    assert interval_over_searches(near) == pytest.approx(
        (0.52 - 4.302652729911275 * near.se, 0.52 + 4.302652729911275 * near.se)
    )


def test_searches_that_agree_have_an_interval_of_their_episodes():
    same = mean_over([score(1.0), score(1.0), score(1.0)])
    assert same is not None
    limits = interval_over_searches(same)
    assert limits is not None and limits[0] == pytest.approx(wilson(score(1.0))[0]) and limits[1] == 1.0


def test_one_search_has_no_interval_and_none_no_mean():
    one = mean_over([score(0.5)])
    assert one is not None and interval_over_searches(one) is None
    assert mean_over([]) is None and paired_difference([]) is None


def test_a_search_that_found_nothing_counts_as_zero():
    found = mean_over([score(0.6), None])
    assert found is not None and found.mean == pytest.approx(0.3) and found.n == 2
    nothing = mean_over([None, None])
    assert nothing is not None and nothing.mean == 0.0 and interval_over_searches(nothing) is None


def test_differences_are_paired():
    pairs = [(score(0.50), score(0.40)), (score(0.80), score(0.50)), (score(0.35), score(0.45))]
    found = paired_difference(pairs)
    assert found is not None and found.pairs == 3 and found.mean == pytest.approx(0.1)
    assert found.interval == pytest.approx(
        (0.1 - 4.302652729911275 * 0.2 / math.sqrt(3), 0.1 + 4.302652729911275 * 0.2 / math.sqrt(3))
    )
    one = paired_difference(pairs[:1])
    assert one is not None and one.mean == pytest.approx(0.1) and one.interval is None


def test_pairs_that_agree_are_no_certainty():
    found = paired_difference([(score(0.6), score(0.5))] * 3)
    (low, high), (rival_low, rival_high) = wilson(score(0.6)), wilson(score(0.5))
    assert found is not None and found.interval is not None
    assert found.interval[0] == pytest.approx(0.1 - math.hypot(0.6 - low, rival_high - 0.5))
    assert found.interval[1] == pytest.approx(0.1 + math.hypot(high - 0.6, 0.5 - rival_low))


def test_rows_compare_with_the_same_seed_of_best_of_n(searches: list[Search]):
    limen, rival = rows_of(searches, GRID)
    assert limen.score is not None and limen.score.mean == pytest.approx(0.55)
    assert limen.search_score is not None and limen.search_score.mean == pytest.approx((0.6 + 0.9 + 0.5) / 3)
    assert limen.versus_best_of_n is not None and limen.versus_best_of_n.mean == pytest.approx(0.1)
    assert rival.versus_best_of_n is None
    assert limen.used["trained"] == pytest.approx(10 / 3)


def test_missing_and_unfinished_searches_are_left_out_and_said(searches: list[Search], tmp_path: Path):
    half = write(tmp_path / "half", [[0.9]], seed=1)
    limen, rival = rows_of([searches[0], half, searches[2], searches[3]], GRID)
    assert [s.key.seed for s in limen.searches] == [0, 2] and limen.asked == 3
    assert limen.versus_best_of_n is not None and limen.versus_best_of_n.pairs == 1
    sheet = score_sheet([limen, rival], None)
    assert sheet.rows[0][-1] == "2 of 3" and sheet.rows[1][-1] == "1 of 3"
    assert "the difference to best-of-n is over 1 of its 2 searches" in " ".join(notes([limen, rival], None))


def test_a_row_without_searches_is_shown_as_one():
    rows = rows_of([], GRID)
    assert score_sheet(rows, None).rows[0] == ("limen", "-", "-", "-", "-", "-", "0 of 3")
    assert set(use_sheet(rows).rows[0][1:]) == {"-"}
    assert row_json(rows[0])["score"] is None


def test_tables_say_what_was_found_and_what_it_took(searches: list[Search]):
    rows = rows_of(searches, GRID)
    sparse = Sparse(task="toy", digest="d", seeds=5, steps=1000, score=score(0.25))
    found = score_sheet(rows, sparse)
    assert found.rows[0][:2] == ("limen", "0.550") and found.rows[0][3] == "+0.100" and found.rows[0][5] == "0.667"
    assert found.rows[-1][:2] == ("sparse", "0.250")
    assert "5 fresh seeds x 1,000 steps" in found.title
    used = use_sheet(rows)
    cells = dict(zip(used.columns, used.rows[0], strict=True))
    assert cells["trained"] == "3.3" and cells["failed / duplicate"] == "0 / 0"
    assert (cells["compile s"], cells["run s"], cells["tokens"], cells["USD"]) == ("23", "12", "33", "1.6667")
    said = notes(rows, sparse)
    assert "over its 5 training seeds" in said[0]
    assert said[1] == "limen: 1 of 3 searches ended early, with 2 candidates: depth no longer pays."


def test_the_options_of_a_task_and_small_figures_are_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    config = {**CONFIG, "task_arg": ["length=3", "wide=true"]}
    rows = rows_of([write(tmp_path / "a", [[0.0004]], final=0.0004, config=config)], GRID)
    assert score_sheet(rows, None).title.startswith("toy (length=3, wide=true): ")
    assert use_sheet(rows).title.startswith("toy (length=3, wide=true): ")
    titles: list[str] = []
    monkeypatch.setattr(Axes, "set_title", lambda _, text, **__: titles.append(text))
    search_curves(tmp_path / "curves.png", rows)
    assert titles == ["toy (length=3, wide=true)"]
    assert score_sheet(rows, None).rows[0][1] == "0.000"
    distance = Measure(name="distance", unit="m", rate=False, higher_is_better=False, worst=9.0)
    measured = [
        dataclasses.replace(search, measure=distance, score=search.score.model_copy(update={"measure": distance}))
        for row in rows for search in row.searches if search.score
    ]  # fmt: skip
    assert score_sheet(rows_of(measured, GRID), None).rows[0][1] == "0.000400"


def test_a_search_without_any_score_is_said(tmp_path: Path):
    rows = rows_of([write(tmp_path / "no", [[None, None], [None, None]], final=0.0)], GRID)
    assert rows[0].searches[0].score is None
    assert rows[0].score is not None and rows[0].score.mean == 0.0
    assert "1 of 1 searches found no score at all, counted as 0" in " ".join(notes(rows, None))
    assert over_candidates(rows[0].searches).values.tolist() == [[0.0] * 4]


def test_several_proposers_are_named(searches: list[Search], tmp_path: Path):
    grid = joined([GRID, Grid(tasks=("toy",), strategies=("limen",), proposers=("llm",), search_seeds=1)])
    assert grid.proposers == ("genetic", "llm") and grid.search_seeds == 3
    rows = rows_of([*searches, write(tmp_path / "llm", [[0.3]], final=0.3, proposer="llm")], grid)
    assert [row[0] for row in score_sheet(rows, None).rows] == [
        "limen, genetic", "limen, llm", "best-of-n, genetic", "best-of-n, llm",
    ]  # fmt: skip
    assert rows[1].versus_best_of_n is None  # no best-of-n with the same proposer


def test_of_several_grids_only_what_was_asked_for_is_a_row(searches: list[Search]):
    """Two commands in one folder: the second asked for one seed of another strategy and proposer."""
    more = Grid(tasks=("toy",), strategies=("eureka",), proposers=("llm",), search_seeds=1)
    rows = rows_of(searches, GRID, more)
    assert [(r.strategy, r.proposer, len(r.searches), r.asked) for r in rows] == [
        ("limen", "genetic", 3, 3), ("best-of-n", "genetic", 3, 3), ("eureka", "llm", 0, 1),
    ]  # fmt: skip
    assert searches_of([GRID, more]) == [*GRID.searches(), *more.searches()] and searches_of([]) == []
    assert joined([GRID, more]).strategies == ("limen", "best-of-n", "eureka")


def test_figures_are_json(searches: list[Search]):
    row = row_json(rows_of(searches, GRID)[0])
    assert row["minus_best_of_n"]["pairs"] == 3 and row["score"]["low"] <= row["score"]["mean"] <= row["score"]["high"]
    cell = search_json(searches[0])
    assert cell["scores"] == [0.2, None, 0.6, 0.4] and cell["score"]["n"] == 5 and cell["used"]["attempts"] == 4


def test_a_sheet_is_the_same_in_markdown_and_on_the_terminal():
    sheet = Sheet("what there is", ("name", "mean score"), (("a", "1"), ("b", "0.25")))
    assert sheet.markdown() == "what there is\n\n| name | mean score |\n| --- | ---: |\n| a | 1 |\n| b | 0.25 |\n"
    out = StringIO()
    Console(file=out, width=60).print(sheet.rich())
    assert "what there is" in out.getvalue() and "0.25" in out.getvalue()


def test_the_picture_is_drawn(searches: list[Search], tmp_path: Path):
    search_curves(tmp_path / "curves.png", rows_of(searches, GRID))
    search_curves(tmp_path / "curves.svg", rows_of(searches[:1], GRID))  # one search has no band
    assert (tmp_path / "curves.png").stat().st_size > 5000 and "<svg" in (tmp_path / "curves.svg").read_text()


def test_a_damaged_sparse_file_gets_a_sentence(tmp_path: Path):
    file = tmp_path / "sparse.json"
    assert read_sparse(file) is None
    file.write_text(Sparse(task="toy", digest="d", seeds=5, steps=10, score=score(0.5)).model_dump_json())
    assert read_sparse(file) is not None
    file.write_text("{")
    with pytest.raises(UnusableFile, check=lambda e: (e.path, e.problem) == (file, FileProblem.DAMAGED)):
        read_sparse(file)


def test_a_task_of_any_name_has_a_folder():
    assert folder_of("xland/XLand-MiniGrid-R1-9x9/my rules.toml") == "xland-XLand-MiniGrid-R1-9x9-my-rules.toml"
