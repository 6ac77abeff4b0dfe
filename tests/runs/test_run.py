"""Run directories: created once, resumed, and left in one piece."""

from __future__ import annotations

import ast
import errno
import os
import stat

import pytest

from jaxreward.errors import FileProblem, InvalidSetting, UnknownName, UnusableFile
from jaxreward.records import Candidate, Result, Score
from jaxreward.runs import Run, Told, read_log
from jaxreward.runs.disk import write_atomic
from jaxreward.runs.provenance import Provenance, lineage, read_header, versions, with_header, without_header

CONFIG = {"task": "xland-easy", "seed": 3, "lr": 1e-3, "strategy": {"name": "limen", "islands": 3}, "note": None}


def test_a_run_is_created_once_and_resumed(tmp_path):
    path = tmp_path / "runs" / "first"
    with Run.create(path, CONFIG) as run:
        assert run.config == {key: value for key, value in CONFIG.items() if value is not None}
        run.append(Told(generation=0))
        run.save_program("abc123", "x = 1\n")
    assert read_log(path / "events.jsonl")
    with pytest.raises(UnusableFile, check=lambda e: e.problem is FileProblem.EXISTS):
        Run.create(path, CONFIG)
    with Run.resume(path) as run:
        assert run.config["strategy"] == {"name": "limen", "islands": 3}
        assert [entry.event for entry in run.entries] == [Told(generation=0)]
        assert run.program("abc123").read_text() == "x = 1\n"
    assert sorted(p.name for p in path.iterdir()) == [
        "checkpoints", "config.toml", "events.jsonl", "events.lock", "programs", "transcripts",
    ]  # fmt: skip


def test_a_run_that_died_before_its_first_event_can_be_created_again(tmp_path):
    Run.create(tmp_path / "r", {"seed": 1}).close()
    with Run.create(tmp_path / "r", {"seed": 2}) as run:
        assert run.config == {"seed": 2}


def test_an_open_run_is_refused_to_others(tmp_path):
    with Run.create(tmp_path / "r", CONFIG):
        for opening in (lambda: Run.resume(tmp_path / "r"), lambda: Run.create(tmp_path / "r", CONFIG)):
            with pytest.raises(UnusableFile, check=lambda e: e.problem is FileProblem.IN_USE):
                opening()


def test_resuming_what_is_not_there_suggests_a_neighbour(tmp_path):
    Run.create(tmp_path / "medium-1", CONFIG).close()
    with pytest.raises(UnknownName, check=lambda e: (e.name, e.nearest) == ("medium-2", "medium-1")):
        Run.resume(tmp_path / "medium-2")
    with pytest.raises(UnknownName, check=lambda e: e.nearest is None):
        Run.resume(tmp_path / "nowhere" / "zzz")


def test_a_damaged_configuration_is_named(tmp_path):
    Run.create(tmp_path / "r", CONFIG).close()
    (tmp_path / "r" / "config.toml").write_text("seed = = 3")
    with pytest.raises(UnusableFile, check=lambda e: e.problem is FileProblem.DAMAGED and e.path.name == "config.toml"):
        Run.resume(tmp_path / "r")


@pytest.mark.parametrize("name", ["", ".hidden", "a b", "-x", "x" * 101, "naïve", "a\n"])
def test_unsafe_names_are_refused(tmp_path, name):
    if name:
        with pytest.raises(InvalidSetting, match="the name of a run"):
            Run.create(tmp_path / name, CONFIG)
    with Run.create(tmp_path / "ok", CONFIG) as run, pytest.raises(InvalidSetting, match="the name of a digest"):
        run.program(name)


def test_a_file_in_the_way_is_named(tmp_path):
    (tmp_path / "r").write_text("")
    with pytest.raises(UnusableFile, check=lambda e: e.problem is FileProblem.WRONG_KIND and e.path == tmp_path / "r"):
        Run.create(tmp_path / "r", CONFIG)
    with pytest.raises(UnusableFile, check=lambda e: e.problem is FileProblem.WRONG_KIND and e.path.parent.name == "s"):
        Run.create(tmp_path / "r" / "s", CONFIG)


def test_writing_is_all_or_nothing(tmp_path, monkeypatch):
    path = tmp_path / "file"
    write_atomic(path, "old\r\n")
    assert path.read_bytes() == b"old\r\n"
    assert stat.S_IMODE(path.stat().st_mode) & 0o044, "others may read it, as the umask allows"

    def full(*args):
        raise OSError(errno.ENOSPC, "full")

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        with pytest.raises(UnusableFile, check=lambda e: e.problem is FileProblem.FULL):
            write_atomic(path, "new")
    assert path.read_bytes() == b"old\r\n" and [p.name for p in tmp_path.iterdir()] == ["file"]


def ancestors() -> dict[str, Result]:
    def result(id: str, operator: str, *parents: str) -> Result:
        return Result(candidate=Candidate(id=id, generation=0, operator=operator, parents=parents))

    results = [result("a", "scratch"), result("b", "scratch"), result("c", "crossover", "a", "b")]
    return {r.candidate.id: r for r in [*results, result("d", "improve", "c"), result("x", "improve", "x", "gone")]}


def test_lineage_is_breadth_first_and_ends():
    assert [candidate.id for candidate in lineage(ancestors(), "d")] == ["d", "c", "a", "b"]
    assert [candidate.id for candidate in lineage(ancestors(), "x")] == ["x"]
    assert lineage(ancestors(), "gone") == ()


def provenance(**changes) -> Provenance:
    return Provenance(
        **{
            "task": "xland-easy",
            "digest": "abc",
            "score": Score(mean=0.98765, se=0.00321, n=3, episodes=768),
            "lineage": lineage(ancestors(), "c"),
            "versions": versions(),
            "command": "jaxreward evolve --task xland-easy",
            **changes,
        }
    )


def test_the_best_interface_says_where_it_came_from(tmp_path):
    source = "import jax\n\ndef get_observation(state):\n    return state\n"
    with Run.create(tmp_path / "r", CONFIG) as run:
        text = run.save_best(source, provenance()).read_text()
    header = read_header(text)
    assert header["task"] == "xland-easy"
    assert header["score"] == "0.9877 +- 0.0032 (3 seeds, 768 episodes)"
    assert header["lineage"] == "c (crossover) <- a (scratch) <- b (scratch)"
    assert header["command"] == "jaxreward evolve --task xland-easy"
    assert "jaxreward " in header["versions"] and "python 3." in header["versions"]
    assert ast.dump(ast.parse(text)) == ast.dump(ast.parse(source))


def test_a_header_replaces_the_one_before_and_can_be_taken_off():
    source = "# my own comment\nx = 1\n"
    twice = with_header(with_header(source, provenance()), provenance(task="other"))
    assert read_header(twice)["task"] == "other" and twice.count("found by jaxreward") == 1
    assert without_header(twice) == source
    assert without_header(source) == source and read_header(source) == {}


def test_a_header_cannot_smuggle_code():
    text = with_header("x = 1\n", provenance(command="a\nimport os\r\n\u2028import sys", task="t\x0cimport os"))
    assert ast.dump(ast.parse(text)) == ast.dump(ast.parse("x = 1"))
