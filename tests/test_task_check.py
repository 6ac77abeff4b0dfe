"""Tasks with their vocabularies, by the command line: mistakes are reported before anything starts."""

from __future__ import annotations

import json
import sys
from contextlib import nullcontext
from pathlib import Path

import pytest

import jaxreward as jr
from jaxreward.errors import UserError
from jaxreward.evolution.task_check import check_task
from jaxreward.records import Fragment, Vocabulary
from jaxreward.tasks import make_task
from tests.docs.test_docs import blocks
from tests.tasks.test_validation import marked, module_of, written
from tests.test_cli import outcome


@pytest.fixture(autouse=True)
def running(checker, monkeypatch):
    """Commands find a checker that runs."""
    for room in ("programs", "evolution.task_check", "evolution.api", "commands.train", "commands.export"):
        monkeypatch.setattr(f"jaxreward.{room}.Checker", lambda **_: nullcontext(checker))


FRAGMENTS = '''    def vocabulary(self):
        far = """
def far(state):
    return jnp.stack([1.0 - {at}])  # <-
"""
        up = "def up(state, action, next_state):\\n    return next_state['at'] - state['at']\\n"
        far = Fragment(name="far", kind="feature", source=far)
        return Vocabulary(fragments=({more}far, Fragment(name="up", kind="term", source=up)))'''


def with_fragments(folder: Path, at: str = "state['at']", more: str = "") -> Path:
    return written(folder, vocabulary=FRAGMENTS.replace("{at}", at).replace("{more}", more))


WRONG = {
    "a field that is not there": ("state['nowhere']", "is rejected (trace), KeyError: the state has no key 'nowhere'"),
    "an attribute that is not there": (
        "state.nowhere",
        "is rejected (guard), 'nowhere' is neither an array method",
    ),
    "a name that is not defined": ("width", "is rejected (guard), the name 'width' is not defined"),
    "another size": ("state['at'], 0.0", "is rejected (contract), it has 2 values and says 1: write size=2"),
    "no Python": ("state[", "is not valid Python"),
}


@pytest.mark.parametrize("what", WRONG)
def test_an_unusable_fragment_is_reported_with_its_line(what, tmp_path, checker):
    at, says = WRONG[what]
    file = with_fragments(tmp_path, at)
    (finding,) = check_task(module_of(file).Ball(), checker=checker)
    assert "the feature 'far'" in finding.message and says in finding.message
    assert (finding.file, finding.line) == (str(file), marked(file))


@pytest.mark.parametrize(
    ("more", "says"),
    [
        (
            'Fragment(name="other", kind="term", source="def up(s):\\n    pass"), ',
            "the text of one function of that name",
        ),
        (
            'Fragment(name="up", kind="term", source="def up(s, a, n):\\n    return 1"), ',
            "another part of the vocabulary has",
        ),
        (
            'Fragment(name="reward", kind="term", source="def reward(s):\\n    return 1"), ',
            "name of a function of a program",
        ),
    ],
)
def test_texts_that_make_no_vocabulary(more, says, tmp_path, checker):
    found = check_task(module_of(with_fragments(tmp_path, more=more)).Ball(), checker=checker)
    assert len(found) == 1 and says in found[0].message and found[0].line


SUBGOALS = """
from jaxreward.records import Subgoal, Subgoals

GO = Fragment(name="go", kind="feature", source="def go(state):\\n    return jnp.stack([state['at']])")
PAY = Fragment(name="pay", kind="term", source="def pay(state, action, next_state):\\n    return next_state['at']")
LOST = Fragment(name="lost", kind="feature", source="def lost(state):\\n    return jnp.stack([state['no']])")
"""


@pytest.mark.parametrize(
    ("returned", "says"),
    [
        ("Subgoals(chain=(Subgoal(words='go', directions=('nope',)),))", "the subgoal 'go' of ball names 'nope'"),
        ("[1]", "returns list: let it return Subgoals of jaxreward.records"),
        ("{}['x']", "`subgoals()` fails: KeyError: 'x'"),
        ("Subgoals(chain=(Subgoal(words='go', directions='go'),))", "is invalid: directions: Input should be a valid"),
        ("some(PAY, directions=('pay',))", "names the term 'pay' among its directions, which are features"),
        ("some(GO, approaches=('go',))", "names the feature 'go' among its approaches, which are terms"),
        ("some(GO, reward='go')", "the reward of the subgoals of ball names the feature 'go': name a term there"),
        ("some(LOST, directions=('lost',))", "the feature 'lost' of the vocabulary is rejected (trace)"),
        ("some(GO, PAY, directions=('go',), approaches=('pay',), reward='pay')", ""),
    ],
)
def test_subgoals_are_examined(returned, says, tmp_path, checker):
    some = (
        "def some(*fragments, reward='', **roles):\n    vocabulary = Vocabulary(fragments=fragments)\n"
        "    chain = (Subgoal(words='go', **roles),)\n"
        "    return Subgoals(chain=chain, reward=reward, vocabulary=vocabulary)\n"
    )
    file = written(tmp_path, also=SUBGOALS + some, subgoals=f"    def subgoals(self):\n        return {returned}\n")
    found = check_task(module_of(file).Ball(), checker=checker)
    assert [says in finding.message for finding in found] == [True] * bool(says), found


def test_subgoals_bring_no_other_part_of_a_name_of_the_tasks(tmp_path, checker):
    own = (
        "    def subgoals(self):\n"
        '        far = Fragment(name="far", kind="feature", source="def far(state):\\n    return jnp.ones(1)")\n'
        "        return Subgoals(chain=(), vocabulary=Vocabulary(fragments=(far,)))\n"
    )
    theirs = FRAGMENTS.replace("{at}", "state['at']").replace("{more}", "")
    file = written(tmp_path, also=SUBGOALS, vocabulary=theirs, subgoals=own)
    (finding,) = check_task(module_of(file).Ball(), checker=checker)
    assert "the vocabulary of the subgoals of ball has another 'far' than the task's" in finding.message


def test_parts_of_a_vocabulary_get_other_names_where_they_differ():
    text = "def {0}(state):\n    return way(state) + SPAN\n"
    far, near = (Fragment(name=name, kind="feature", source=text.format(name)) for name in ("far", "near"))
    theirs = Vocabulary(
        constants={"SPAN": "8.0"}, helpers={"way": "def way(state):\n    return state"}, fragments=(far,)
    )
    mine = Vocabulary(
        constants={"SPAN": "8.0"}, helpers={"way": "def way(state):\n    return 1"}, fragments=(far, near)
    )
    assert mine.differing(theirs) == ("way",)
    apart = mine.apart_from(theirs)
    assert set(apart.texts) == {"SPAN", "way_2", "far", "near"}
    assert "return way_2(state) + SPAN" in apart.texts["near"] and apart.texts["way_2"].startswith("def way_2(")
    assert theirs.apart_from(theirs) is theirs
    assert apart.differing(theirs) == ("far",), "which calls what was renamed"


def test_a_sound_vocabulary_has_no_mistake(tmp_path, checker):
    assert check_task(module_of(with_fragments(tmp_path)).Ball(), checker=checker) == ()


def test_fragments_are_checked_despite_unrelated_mistakes(tmp_path, checker):
    score = "    def score(self):\n        return None"
    vocabulary = FRAGMENTS.replace("{at}", "state['nowhere']").replace("{more}", "")
    found = check_task(module_of(written(tmp_path, vocabulary=vocabulary, score=score)).Ball(), checker=checker)
    assert [finding.message.split("'")[0] for finding in found] == [
        "`score` returns None: end it with a return statement, such as return Reached(...)",
        "the feature ",
    ]
    unseen = "    def view(self, state):\n        return None"
    (finding,) = check_task(module_of(written(tmp_path, vocabulary=vocabulary, view=unseen)).Ball(), checker=checker)
    assert finding.message.startswith("`view` returns None")


def test_check_reports_all_mistakes_of_a_task(tmp_path, capsys):
    steps = "    def step(self, state, action):\n        return {**state, 't': state['t'] + 0.5}"
    file = written(tmp_path, step=steps, score="    def score(self):\n        return None")
    status, out, err = outcome(capsys, "check", str(file))
    lines = out.splitlines()
    assert status == 1 and not err and len(lines) == 2
    assert lines[0].startswith("`step` turns state.t from int32 () into float32 ()") and "(ball.py, line" in lines[0]
    assert lines[1].startswith("`score` returns None") and "(ball.py, line" in lines[1]
    status, out, _ = outcome(capsys, "check", "--task", str(file), "--json")
    (row,) = json.loads(out.splitlines()[-1])["tasks"]
    assert status == 1 and row["task"] == "ball.py" and {f["file"] for f in row["findings"]} == {str(file)}
    assert all(finding["line"] for finding in row["findings"])


@pytest.mark.long
def test_check_distinguishes_tasks_from_programs(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    key = 'jax.random.key_data(state["key"])'
    view = f'    def view(self, state):\n        return {{"at": state["at"], "t": state["t"], "noise": {key}}}  # <-'
    vocabulary = FRAGMENTS.replace("{at}", "state['at']").replace("{more}", "")
    line = marked(written(tmp_path, vocabulary=vocabulary.replace("  # <-", ""), view=view))
    program = "def get_observation(state):\n    return jnp.stack([state['at']])\n"
    Path("program.py").write_text("import jax.numpy as jnp\n\n" + program)
    status, out, err = outcome(capsys, "check", "ball.py", "program.py")
    assert status == 0, out + err
    assert "ball.py: ok, ball, measured by success, a vocabulary of 2 fragments" in out and "program.py: ok, 1" in out
    assert "note: the view shows a random key, view.noise: leave it out of the view" in " ".join(out.split())
    assert f"(ball.py, line {line})" in " ".join(out.split())
    functions = blocks("tasks.md", "python")
    (simulator,) = [block for block in functions if "jr.from_functions(" in block]
    Path("rail.py").write_text(f"import jax\nimport jax.numpy as jnp\nimport jaxreward as jr\n\n{simulator}")
    Path("made.py").write_text("from ball import Ball\n\ntask = Ball()\n")
    monkeypatch.setitem(sys.modules, "ball", module_of(tmp_path / "ball.py"))
    status, out, err = outcome(capsys, "check", "rail.py", "made.py")
    assert status == 0 and "rail.py: ok, ball, measured by return" in out and "made.py: ok, ball" in out, out + err
    Path("both.py").write_text(f"{program}\nclass Task:\n    pass\n")
    Path("neither.py").write_text("x = 1\n")
    Path("torn.py").write_text("def f(:\n")
    for name, says in (
        ("both.py", "say --interfaces both.py to check it as a program, or --task both.py as a task"),
        ("neither.py", "neither.py holds neither a program"),
        ("torn.py", "torn.py, line 1, is not valid Python"),
    ):
        status, _, err = outcome(capsys, "check", name)
        assert status == 2 and says in err and err.count("\n") == 1


def test_a_program_is_not_executed_to_see_what_it_is(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    text = "open('executed', 'w')\n\n\ndef get_observation(state):\n    return state\n"
    Path("program.py").write_text(text)
    status, out, _ = outcome(capsys, "check", "--task", "probe-choice", "program.py")
    assert status == 1 and "program.py: guard: line 1" in out and not Path("executed").exists()


TAKE_A_TASK = [
    ["evolve", "--task", "ball.py", "--name", "x"],
    ["evolve", "--task", "ball.py", "--dry-run"],
    ["ask", "--task", "ball.py", "--name", "x"],
    ["train", "--task", "ball.py"],
    ["compare", "--tasks", "ball.py", "--strategies", "limen"],
    ["export", "program.py", "--task", "ball.py", "--to", "plain"],
    ["film", "program.py", "--task", "ball.py"],
    ["prompt", "show", "--task", "ball.py"],
    ["tasks", "ball.py"],
    ["check", "--task", "ball.py", "--interfaces", "program.py"],
]


@pytest.mark.parametrize("argv", TAKE_A_TASK, ids=" ".join)
def test_every_command_refuses_a_task_with_a_mistake_before_a_folder_exists(argv, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    written(tmp_path, terminated="    def terminated(self, state):  # <-\n        state['at'] > 1.0")
    Path("program.py").write_text("def get_observation(state):\n    return state\n")
    before = sorted(tmp_path.rglob("*"))
    status, _, err = outcome(capsys, *argv)
    assert status == 2 and err.count("\n") == 1
    assert (
        f"`terminated` returns None: end it with a return statement (ball.py, line {marked(tmp_path / 'ball.py')})"
        in err
    )
    assert sorted(p for p in tmp_path.rglob("*") if "__pycache__" not in str(p)) == before


@pytest.mark.parametrize("argv", TAKE_A_TASK[:4], ids=" ".join)
def test_a_wrong_fragment_is_refused_too(argv, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with_fragments(tmp_path, "state['nowhere']")
    status, _, err = outcome(capsys, *argv)
    assert status == 2 and "the feature 'far' of the vocabulary is rejected" in err and err.count("\n") == 1
    assert not Path("runs").exists()


def test_the_library_reports_the_same_mistakes(tmp_path):
    file = written(tmp_path, terminated="    def terminated(self, state):\n        return 1.0")
    task = module_of(file).Ball()
    (finding,) = jr.check_task(task)
    assert "must return a bool" in finding.message
    with pytest.raises(UserError, match="must return a bool"):
        jr.train(task, [], seeds=1, steps=1)
    with pytest.raises(UserError, match="must return a bool"):
        make_task(str(file))
