"""Populations as a search draws them, what is compiled for each, and a bank beside programs as code."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import jax
import pytest

from benchmarks import bank_agreement, generations
from benchmarks.carried import write_programs
from jaxreward.errors import UserError
from jaxreward.programs import Checker, Program
from jaxreward.records import ProgramSummary
from jaxreward.tasks import make_task

INTERFACES = Path(__file__).resolve().parents[2] / "interfaces" / "xland_easy"
N = 12


class Unchecked:
    """Passes every program but each fourth, whose digest is its source."""

    def __init__(self) -> None:
        self.seen = list[str]()

    def check_many(self, sources: Sequence[str], _: Any) -> list[tuple[None, Any]]:
        found = list[tuple[None, Any]]()
        for source in sources:
            self.seen.append(source)
            summary = ProgramSummary(digest=source, observation_size=8, reward_nodes=50)
            found.append((None, (len(self.seen) % 4 and SimpleNamespace(digest=source, summary=summary)) or None))
        return found


@pytest.fixture
def search() -> generations.Search:
    checker: Any = Unchecked()
    return generations.Search(make_task("xland-easy"), checker, 0)


def test_a_generation_is_full_and_has_no_program_of_before(search):
    search.tell(first := search.draw(N, "first"))
    second = search.draw(N, "second")
    digests = [p.digest for p in (*first.programs, *second.programs)]
    assert len(set(digests)) == 2 * N and first.rejected > 0 and first.proposed >= N + first.rejected
    assert {r.candidate.operator for r in first.results} == {"scratch"}
    assert {r.candidate.operator for r in second.results} <= {"improve", "crossover"}
    parents = {parent for r in second.results for parent in r.candidate.parents}
    assert parents <= {r.candidate.id for r in first.results}


def test_the_same_is_drawn_again():
    found = []
    for _ in range(2):
        checker: Any = Unchecked()
        search = generations.Search(make_task("xland-easy"), checker, 0)
        search.tell(search.draw(N, "first"))
        found.append([[p.digest for p in search.draw(N, name).programs] for name in ("second", "third")])
    assert found[0] == found[1] and found[0][0] != found[0][1]


def test_only_what_is_wanted_is_drawn(search):
    search.tell(search.draw(N, "first"))
    found = search.draw(4, "short", wanted=lambda p: len(p.digest) % 2 == 0)
    assert len(found.programs) == 4 and all(len(p.digest) % 2 == 0 for p in found.programs)
    with pytest.raises(UserError, match="only 0 such programs"):
        search.draw(4, "none", wanted=lambda _: False)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--task", "no-such-task"], "no-such-task"),
        (["--device", "h300"], "h200 or v5e"),
        (["--generations", "0"], "at least 1"),
        (["--cuda-site", "no-such-folder"], "--cuda-site DIR"),
    ],
)
def test_bad_input_ends_in_one_sentence(words, said, capsys):
    assert generations.main(words) == 2
    error = capsys.readouterr().err
    assert error.startswith("generations: ") and said in error and error.count("\n") == 1


@pytest.fixture(scope="module")
def two(checker: Checker) -> list[Program]:
    task = make_task("xland-easy")
    program = checker.check((INTERFACES / "sparse.py").read_text(), task)[1]
    assert program is not None
    return [Program.default(task), program]


@pytest.mark.slow
def test_a_population_of_known_parts_compiles_nothing(two, tmp_path: Path, monkeypatch):
    """On a CPU in place of the described device."""
    here = SimpleNamespace(device=lambda: jax.local_devices(backend="cpu")[0])
    monkeypatch.setattr(generations, "DEVICES", {"here": here})
    monkeypatch.setattr(generations, "first_to_go", lambda: None)
    paths = [("first", str(tmp_path / "a.json.gz")), ("other", str(tmp_path / "b.json.gz"))]
    write_programs(Path(paths[0][1]), two)
    write_programs(Path(paths[1][1]), two[::-1])
    first, other = generations.compiled(generations.Job("xland-easy", "here", 1, 8, paths))
    assert first["known"] == 0 and first["functions"] == 2
    assert other["known"] == 2 and other["functions"] == 0 and other["compile_s"] == 0


def test_a_bank_is_compared_with_programs_as_code(two, tmp_path: Path, capsys):
    out = tmp_path / "agreement.json"
    write_programs(tmp_path / "xland-easy.json.gz", two)
    words = ["--candidates", "2", "--transitions", "8", "--programs", str(tmp_path), "--out", str(out)]
    assert bank_agreement.main(words) == 0
    report = json.loads(out.read_text())
    assert capsys.readouterr().out.count("differ by at most") == 6
    for found in report["bank_as_for"].values():
        assert found["observations"]["max_difference"] == 0 and found["rewards"]["max_difference"] < 1e-6
        assert found["observations"]["largest"] > 0
    assert report["versions"]["jax"] == jax.__version__ and report["commit"]


def test_a_comparison_of_nothing_is_refused(capsys):
    assert bank_agreement.main(["--candidates", "0"]) == 2
    assert "at least 1" in capsys.readouterr().err
