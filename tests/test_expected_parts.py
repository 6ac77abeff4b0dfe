"""Where programs are data, a search compiles for its first generation alone."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pytest

from jaxreward.evolution import run_search
from jaxreward.evolution.settings import EvolveSettings
from jaxreward.evolution.setup import Objects
from jaxreward.programs.bank import Bank
from jaxreward.programs.parts import parts_of
from jaxreward.proposers.genetic.coverage import covering
from jaxreward.proposers.genetic.genetic_proposer import GeneticProposer
from jaxreward.proposers.genetic.genome import Part, read
from jaxreward.records import Evolve, Fragment, Vocabulary
from jaxreward.tasks import card
from jaxreward.training import PPO
from jaxreward.training.compiled import compilations, forget_compiled
from tests.proposers.material import request, result
from tests.silent import Silent

pytestmark = pytest.mark.usefixtures("unoptimised", "unsynced")

SETTINGS = EvolveSettings(
    task="probe-corridor", strategy="limen", evolve="both", candidates=15, generation=5, steps=128, seeds=1, seed=3,
    final_seeds=0, baselines=(), eval_episodes=12,
    ppo=PPO(envs=8, unroll=8, minibatches=2, hidden=(8,)), name="run", collector="fused",
    population="bank",
)  # fmt: skip


def _fragment(kind: Literal["feature", "term"], k: int) -> Fragment:
    if kind == "feature":
        source = f"def wave_{k}(state):\n    return jnp.reshape(jnp.sin({k}.0 * state.place), (1,))"
        return Fragment(name=f"wave_{k}", kind=kind, source=source, size=1)
    source = f"def pays_{k}(state, action, next_state):\n    return jnp.cos({k}.0 * next_state.place)"
    return Fragment(name=f"pays_{k}", kind=kind, source=source)


MANY = Vocabulary(fragments=tuple(_fragment(kind, k) for kind in ("feature", "term") for k in range(1, 41)))


PARTS: tuple[Part, Part] = ("observation", "reward")


class Counting(Silent):
    """Keeps how much is compiled after every generation."""

    def __init__(self, made: list[Any]) -> None:
        self.made, self.after, self.notes = made, list[int](), list[str]()

    def note(self, text: str) -> None:
        self.notes.append(text)

    def generation(self, index: int, results: Any, best: Any, spent: Any) -> None:
        self.after.append(len(self.made))


def compiled(folder: Path, task: Any, checker: Any, **changed: Any) -> list[int]:
    """How many functions are compiled after each generation."""
    forget_compiled()
    given = Objects(vocabulary=MANY)
    with compilations() as made:
        watcher = Counting(made)
        run_search(replace(SETTINGS, out=folder, **changed), watcher, task=task, checker=checker, given=given)
    return watcher.after


@pytest.mark.slow
def test_later_generations_compile_nothing(tmp_path, task_of, checker, monkeypatch):
    first, *later = compiled(tmp_path / "with", task_of("probe-corridor"), checker)
    assert len(later) >= 2 and all(after == first > 0 for after in later)
    monkeypatch.setattr("jaxreward.evolution.loop.covering_of", lambda *_: ())
    without = compiled(tmp_path / "without", task_of("probe-corridor"), checker)
    assert without[-1] > without[0], "as new programs bring new parts"


@pytest.mark.long
def test_it_is_said_what_is_checked_and_what_the_bank_leaves_out(tmp_path, task_of, checker, monkeypatch):
    monkeypatch.setattr("jaxreward.training.banks._EXPECTED_NODES", 60)
    watcher, given = Counting([]), Objects(vocabulary=MANY)
    settings = replace(SETTINGS, out=tmp_path, candidates=4, generation=2)
    run_search(settings, watcher, task=task_of("probe-corridor"), checker=checker, given=given)
    first, second = watcher.notes
    assert re.match(r"checking all parts of the vocabulary, in \d+ programs", first)
    assert re.match(r"the bank has the parts of [1-6] of them", second)


@pytest.mark.slow
def test_covering_programs_have_all_fragments_and_all_that_is_built_of_them(task_of, checker):
    task = task_of("xland-easy")
    proposer = GeneticProposer(card(task))
    sources = covering(proposer.lexicon)
    named = {gene.name for s in sources for part in PARTS for gene in read(s).genes(part)}
    fragments = proposer.lexicon.fragments.values()
    assert named == {f.name for f in fragments}
    halves: tuple[tuple[Evolve, str], ...] = (("observation", "feature"), ("reward", "term"))
    for evolve, kind in halves:
        some = {g.name for s in covering(proposer.lexicon, evolve) for p in PARTS for g in read(s).genes(p)}
        assert some == {f.name for f in fragments if f.kind == kind}
    sound = [program for _, program in checker.check_many(sources, task)]
    assert all(sound)
    bank = Bank([parts_of(p) for p in sound], sound[0].spec)
    parents = [proposer.propose(request(), np.random.default_rng(k)).source for k in range(6)]
    shown = [result(source, 0.1, name=str(k)) for k, source in enumerate(parents)]
    asked = [request("improve", shown[k]) for k in range(3)] + [request("crossover", *shown[3:5])]
    children = [proposer.propose(r, np.random.default_rng(k)).source for k, r in enumerate(asked)]
    made = [program for _, program in checker.check_many([*parents, *children], task)]
    assert all(bank.covers(parts_of(p)) for p in made if p is not None)
