"""Populations as a search draws them, what is compiled for each, and a bank beside programs as code."""

from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import islice
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import jax
import numpy as np
import pytest

from benchmarks import bank_agreement, generations
from benchmarks.carried import write_programs
from jaxreward.errors import UserError
from jaxreward.programs import Checker, Program
from jaxreward.proposers.registry import make_proposer
from jaxreward.records import ProgramSummary, Request
from jaxreward.tasks import card, make_task

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
            found.append((None, program(source) if len(self.seen) % 4 else None))
        return found


def program(source: str) -> Any:
    summary = ProgramSummary(digest=source, observation_size=8, reward_nodes=50)
    return SimpleNamespace(digest=source, source=source, summary=summary)


@pytest.fixture
def search() -> generations.Search:
    """Its first generation are programs from scratch."""
    checker: Any = Unchecked()
    task = make_task("xland-easy")
    proposer = make_proposer("genetic", card(task))
    requests = [Request(id=f"{k}", generation=0, operator="scratch") for k in range(N)]
    answers = proposer.propose_all(requests, lambda request: np.random.default_rng(int(request.id)))
    found = generations.Search(task, checker, 0)
    found.begin([program(p.source) for p in answers.proposals])
    return found


def test_children_are_new_and_of_parents_of_the_first_generation(search):
    children = list(islice(search.children(N), 2 * N))
    digests = [p.digest for p, _ in children]
    assert len(set(digests)) == 2 * N
    assert search.rejected > 0 and search.proposed == 2 * N + search.rejected + search.duplicates
    assert {r.candidate.operator for _, r in children} == {"improve", "crossover"}
    assert {parent for _, r in children for parent in r.candidate.parents} <= {f"g0000-{k:02d}" for k in range(N)}


def test_populations_are_full_and_one_of_known_parts_alone(search):
    found = generations.bred(search, 4, lambda p: len(p.digest) % 2 == 0, lambda _: None)
    assert len(found["second"]) == len(found["known parts"]) == 4
    assert all(len(p.digest) % 2 == 0 for p in found["known parts"])
    assert found["about"]["proposed"] == 4 + found["about"]["rejected"] + found["about"]["duplicates"]


def test_a_generation_without_known_parts_is_said(search):
    with pytest.raises(UserError, match="only 0 of known parts"):
        generations.bred(search, 4, lambda _: False, lambda _: None)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--task", "no-such-task"], "no-such-task"),
        (["--device", "h300"], "h200 or v5e"),
        (["--candidates", "0"], "at least 1"),
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


@pytest.mark.slow
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
