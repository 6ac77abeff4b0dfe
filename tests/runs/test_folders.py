"""Finding runs: those of comparisons, by name, in spite of a typo."""

from __future__ import annotations

from pathlib import Path

import pytest

from jaxreward.errors import FileProblem, UnknownName, UnusableFile, UserError
from jaxreward.runs.folders import find_run, runs_under


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    names = (
        "first",
        "second-1",
        "six/xland-easy/limen-genetic-0",
        "six/xland-medium/limen-genetic-0",
        "six/toy/eureka-llm-0",
    )
    for name in names:
        (tmp_path / "runs" / name / "best-of-n").mkdir(parents=True)
        for folder in (tmp_path / "runs" / name, tmp_path / "runs" / name / "best-of-n"):
            (folder / "events.jsonl").write_text("")
    (tmp_path / "runs" / "notes").mkdir()
    (tmp_path / "runs" / ".hidden").mkdir()
    (tmp_path / "runs" / ".hidden" / "events.jsonl").write_text("")
    return tmp_path / "runs"


def test_runs_of_comparisons_are_found_and_what_lies_inside_a_run_is_a_part_of_it(runs: Path):
    assert [str(path.relative_to(runs)) for path in runs_under(runs)] == [
        "first", "second-1", "six/toy/eureka-llm-0", "six/xland-easy/limen-genetic-0",
        "six/xland-medium/limen-genetic-0",
    ]  # fmt: skip
    assert runs_under(runs / "first") == [runs / "first"]
    with pytest.raises(UnusableFile, check=lambda e: e.problem is FileProblem.MISSING):
        runs_under(runs / "none")


@pytest.mark.parametrize("said", ["first", "six/xland-easy/limen-genetic-0", "eureka-llm-0", "first/best-of-n"])
def test_a_run_is_found_by_its_name(runs: Path, said: str):
    assert find_run(said, runs).name == said.rpartition("/")[2]
    assert find_run(str(runs / "first"), Path("elsewhere")) == runs / "first"


@pytest.mark.parametrize(
    "name, nearest",
    [("frist", "first"), ("eureka-lm-0", "six/toy/eureka-llm-0"), ("qqqq", None), ("six", None), ("notes", None)],
)
def test_a_name_that_is_not_there_comes_with_the_nearest(runs: Path, name: str, nearest: str | None):
    with pytest.raises(UnknownName) as error:
        find_run(name, runs)
    assert (error.value.kind, error.value.name, error.value.nearest) == ("run", name, nearest)


def test_a_name_of_several_runs_comes_with_all_of_them(runs: Path):
    with pytest.raises(UserError, match="say which, six/xland-easy/limen-genetic-0, six/xland-medium"):
        find_run("limen-genetic-0", runs)


def test_a_typo_in_a_path_comes_with_the_run_beside(runs: Path):
    with pytest.raises(UnknownName) as error:
        find_run(str(runs / "secnd-1"), Path("elsewhere"))
    assert error.value.nearest == str(runs / "second-1")
