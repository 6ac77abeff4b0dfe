"""`benchmarks/joined_comparisons.py`: searches of several comparisons in one table."""

from __future__ import annotations

import json

import pytest

from benchmarks.joined_comparisons import holm, main, over_tasks

MEASURE = {"name": "distance", "unit": "m", "rate": False, "higher_is_better": False, "worst": 3.0}


def cell(strategy, seed, mean, finished=True, **measure):
    score = None if mean is None else {"mean": mean, "se": 0.01, "n": 5, "low": 0, "high": 1, "episodes": 1280}
    score = {**score, **measure} if score else None
    return {
        "task": "t",
        "strategy": strategy,
        "proposer": "genetic",
        "seed": seed,
        "finished": finished,
        "score": score,
    }


def joined(tmp_path, *files):
    paths = []
    for k, cells in enumerate(files):
        paths.append(tmp_path / f"{k}.json")
        paths[-1].write_text(json.dumps({"cells": cells}))
    out = tmp_path / "out.json"
    assert main([*map(str, paths), "--out", str(out)]) == 0
    return {row["strategy"]: row for row in json.loads(out.read_text())["rows"]}


def test_searches_are_paired_over_files_and_the_last_file_counts(tmp_path, capsys):
    first = [cell("best-of-n", k, 0.1 * k) for k in range(3)] + [cell("limen", 0, 0.9), cell("limen", 5, 0.9)]
    second = [cell("limen", k, 0.1 * k + 0.25) for k in range(3)] + [cell("limen", 3, 0.0, finished=False)]
    rows = joined(tmp_path, first, second)
    limen = rows["limen"]
    assert limen["searches"] == 4 and limen["pairs"] == 3 and limen["files"] == ["0.json", "1.json"]
    assert limen["minus_best_of_n"] == pytest.approx(0.25)
    assert limen["scores"] == pytest.approx([0.25, 0.35, 0.45, 0.9])
    assert rows["best-of-n"]["minus_best_of_n"] is None
    assert "| t | limen | 4 | 0.487 | +0.250, " in capsys.readouterr().out


def test_a_search_that_found_nothing_counts_as_the_worst(tmp_path):
    rows = joined(tmp_path, [cell("limen", k, mean, measure=MEASURE) for k, mean in enumerate((1.0, None))])
    assert rows["limen"]["score"] == pytest.approx(2.0)


def test_p_values_are_corrected_for_their_number():
    assert holm([0.01, None, 0.04, 0.03]) == pytest.approx([0.03, None, 0.06, 0.06])
    assert holm([0.5, 0.6]) == [1.0, 1.0] and holm([None]) == [None]


def test_the_mean_over_tasks_has_the_errors_of_all():
    def of(task, *differences):
        row = {"strategy": "limen", "proposer": "genetic", "measure": "success"}
        return {**row, "task": task, "differences": differences}

    (found,) = over_tasks([of("a", 0.1, 0.3), of("b", -0.1, 0.1), {**of("c"), "strategy": "best-of-n"}])
    assert found["tasks"] == 2 and found["minus_best_of_n"] == pytest.approx(0.1)
    # two variances of 0.02 over two searches each: an error of 0.0707 with two degrees of freedom
    assert found["its_interval"] == pytest.approx([0.1 - 4.3027 * 0.0707107, 0.1 + 4.3027 * 0.0707107], abs=1e-3)
    assert over_tasks([of("a", 0.1, 0.3)]) == [] and over_tasks([of("a", 0.1, 0.3), of("b", 0.1)]) == []


def test_what_is_no_comparison_is_said(tmp_path, capsys):
    (tmp_path / "a.json").write_text("[]")
    for given, words in (
        ([], "give one file"),
        (["none.json"], "cannot be read"),
        ([str(tmp_path / "a.json")], "is no"),
    ):
        assert main(given) == 2
        assert words in capsys.readouterr().err
