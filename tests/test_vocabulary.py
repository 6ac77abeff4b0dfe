"""The vocabulary of a search: whose it is, and that a run keeps it."""

from __future__ import annotations

import dataclasses
from collections import Counter

import numpy as np
import pytest

from jaxreward.errors import InvalidSetting, UnusableFile
from jaxreward.evolution import run_search, vocabulary
from jaxreward.evolution.settings import EvolveSettings
from jaxreward.evolution.setup import Setup, task_card
from jaxreward.evolution.vocabulary import FILE, merged, read_vocabulary, search_vocabulary, write_vocabulary
from jaxreward.proposers.genetic.lexicon import Lexicon
from jaxreward.records import Fragment, Subgoals, Vocabulary
from jaxreward.tasks import make_task
from jaxreward.training import PPO
from tests.silent import Silent
from tests.tasks.key_door import KeyDoor

OWN = Vocabulary(
    constants={"UNIT": "2.0"},
    helpers={"near": "def near(state):\n    return state.x / UNIT"},
    fragments=(Fragment(name="x", kind="feature", source="def x(state):\n    return near(state)"),),
)
DERIVED = Vocabulary(
    constants={"GAMMA": "0.99"},
    helpers={"near": "def near(state):\n    return state.y"},
    fragments=(
        Fragment(name="x", kind="feature", source="def x(state):\n    return near(state)"),
        Fragment(name="nearer", kind="feature", source="def nearer(state):\n    return GAMMA * near(state)"),
    ),
    discount="GAMMA",
)
SETTINGS = EvolveSettings(
    task="probe-choice", candidates=4, generation=2, seeds=1, steps=512, final_seeds=0, baselines=(), name="run",
    option=("initial=2", "islands=2", "migration_interval=2"), vocabulary="derived",
    ppo=PPO(envs=8, unroll=8, minibatches=2, hidden=(8,), discount=0.9),
)  # fmt: skip


@pytest.fixture
def without_play(monkeypatch):
    """What is derived is `DERIVED`."""
    monkeypatch.setattr(vocabulary, "automatic_vocabulary", lambda task: DERIVED)
    vocabulary._derived.clear()
    yield
    vocabulary._derived.clear()


def test_a_task_with_a_vocabulary_keeps_it_and_one_without_gets_a_derived_one(without_play):
    probe = make_task("probe-choice")
    auto = dataclasses.replace(SETTINGS, vocabulary="auto")
    assert search_vocabulary(auto, probe) == (probe.vocabulary(), False)
    found, is_derived = search_vocabulary(auto, KeyDoor())
    assert is_derived and found.fragments == DERIVED.fragments
    assert found.constants == {"GAMMA": "0.9"}, "potentials have the learner's discount"


def test_both_have_the_parts_of_both_under_names_of_their_own():
    both = merged(OWN, DERIVED)
    assert [f.name for f in both.fragments] == ["x", "x_2", "nearer"]
    assert both.fragments[1].source == "def x_2(state):\n    return near_2(state)"
    assert both.helpers["near"] == OWN.helpers["near"]
    assert both.helpers["near_2"] == "def near_2(state):\n    return state.y"


def test_a_field_keeps_its_name_where_a_part_of_that_name_gets_another():
    reads = DERIVED.fragments[0].model_copy(update={"source": "def x(state):\n    return near(state) + state.x"})
    both = merged(OWN, DERIVED.model_copy(update={"fragments": (reads,)}))
    assert both.fragments[1].source == "def x_2(state):\n    return near_2(state) + state.x"


def test_a_constant_of_the_task_keeps_its_value_beside_derived_potentials(without_play):
    class WithOwn(KeyDoor):
        def vocabulary(self) -> Vocabulary:
            return OWN.model_copy(update={"constants": {"UNIT": "2.0", "GAMMA": "0.5"}})

    found, _ = search_vocabulary(dataclasses.replace(SETTINGS, vocabulary="both"), WithOwn())
    assert found.constants == {"UNIT": "2.0", "GAMMA": "0.5", "GAMMA_2": "0.9"}
    assert "GAMMA_2 * near_2(state)" in found.fragments[-1].source


def test_what_a_task_calls_its_discount_is_the_learners(without_play):
    class WithOwn(KeyDoor):
        def vocabulary(self) -> Vocabulary:
            return OWN.model_copy(update={"constants": {"UNIT": "2.0", "D": "0.5"}, "discount": "D"})

    found, _ = search_vocabulary(dataclasses.replace(SETTINGS, vocabulary="auto"), WithOwn())
    assert found.constants == {"UNIT": "2.0", "D": "0.9"}


def test_a_discount_is_one_of_the_constants():
    with pytest.raises(ValueError, match="discount names 'D', which is none of the constants"):
        Vocabulary(constants={"E": "0.9"}, discount="D")


def test_a_discount_of_subgoals_counts_where_the_task_has_the_constant_too():
    subgoals = Subgoals(vocabulary=Vocabulary(constants={"G": "0.9"}, discount="G"))
    assert subgoals.joined(Vocabulary(constants={"G": "0.3"})).constants == {"G": "0.9"}


@pytest.mark.parametrize("name", ["xland-hard", "door-open"])
def test_potentials_of_subgoals_have_the_learners_discount(name):
    settings, task = dataclasses.replace(SETTINGS, vocabulary="auto"), make_task(name)
    subgoals = task_card(task, None, settings.ppo).subgoals
    assert subgoals.joined(search_vocabulary(settings, task)[0]).constants["GAMMA"] == "0.9"


def test_without_a_vocabulary_the_setting_is_named(without_play):
    with pytest.raises(InvalidSetting, match="leave --vocabulary own out"):
        Setup.of(dataclasses.replace(SETTINGS, vocabulary="own"), KeyDoor())


def test_a_run_is_resumed_with_the_vocabulary_of_its_folder(tmp_path, monkeypatch):
    """Also one that a person edited; and what a search derives is not derived again."""
    (tmp_path / "run").mkdir()
    write_vocabulary(tmp_path / "run", OWN)
    monkeypatch.setattr(vocabulary, "automatic_vocabulary", pytest.fail)
    assert search_vocabulary(dataclasses.replace(SETTINGS, out=tmp_path, resume=True), KeyDoor()) == (OWN, True)


@pytest.mark.parametrize("text", ["", "[]", '{"fragments": 3}'])
def test_a_damaged_vocabulary_is_named(text, tmp_path):
    (tmp_path / FILE).write_text(text)
    with pytest.raises(UnusableFile, match="holds no vocabulary"):
        read_vocabulary(tmp_path / FILE)


@pytest.mark.slow
@pytest.mark.usefixtures("unoptimised", "unsynced")
def test_a_search_with_a_derived_vocabulary_is_the_same_resumed(tmp_path, checker, monkeypatch):
    task = make_task("probe-choice")

    def sources(out, **changes):
        settings = dataclasses.replace(SETTINGS, out=out)
        run_search(settings, Silent(), task=task, checker=checker, **changes)
        if changes:
            monkeypatch.setattr(vocabulary, "automatic_vocabulary", pytest.fail)
            vocabulary._derived.clear()
            run_search(dataclasses.replace(settings, resume=True), Silent(), task=task, checker=checker)
        return sorted(path.name for path in (out / "run" / "programs").glob("*.py"))

    whole, resumed = sources(tmp_path / "whole"), sources(tmp_path / "cut", generations=1)
    assert whole and whole == resumed
    kept = read_vocabulary(tmp_path / "cut" / "run" / FILE)
    assert kept == read_vocabulary(tmp_path / "whole" / "run" / FILE)
    assert "signal_scaled" in {f.name for f in kept.fragments}


def test_a_fragment_of_more_weight_is_drawn_more_often():
    text = "def {0}(state):\n    return state.x"
    made = [
        Fragment(name=n, kind="feature", source=text.format(n), tags=("value", f"about:{n}"), weight=w)
        for n, w in (("heavy", 4.0), ("light", 1.0))
    ]
    lexicon, rng = Lexicon(Vocabulary(fragments=tuple(made))), np.random.default_rng(0)
    drawn = Counter(f.name for _ in range(500) if (f := lexicon.draw(rng, "observation")))
    assert drawn["heavy"] / 500 == pytest.approx(0.8, abs=0.06)
    first = Counter(lexicon.theme(rng)[0] for _ in range(500))
    assert first["heavy"] / 500 == pytest.approx(0.8, abs=0.06)
