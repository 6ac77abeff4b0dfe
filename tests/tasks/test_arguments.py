"""Options of tasks as text, and tasks from files."""

from __future__ import annotations

from pathlib import Path

import pytest

from jaxreward.errors import UserError
from jaxreward.tasks import Box, has_real_actions, make_task, make_task_of, options_of, task_names

ROOT = Path(__file__).resolve().parents[2]


def test_options_are_read_by_their_kind():
    task = make_task_of("go1-push-recovery", ("push_force_scale=2", "push-interval = 40"))
    assert options_of(task) == options_of(make_task("go1-push-recovery")) | {
        "push_force_scale": 2.0, "push_interval": 40,
    }  # fmt: skip
    panda = make_task_of("panda-tracking", ("speed_scale=1.5", "radius_scale=2", "impl=jax"))
    assert options_of(panda)["speed_scale"] == 1.5 and options_of(panda)["radius_scale"] == 2.0
    assert make_task_of("xland-easy").horizon == 80


@pytest.mark.parametrize(
    ("argument", "says"),
    [
        ("push_force_scal=2", "did you mean push_force_scale"),
        ("gravity=2", "it has horizon=500"),
        ("push_interval=2.5", "a whole number is expected, not '2.5'"),
        ("push_force_scale=strong", "a number is expected"),
        ("push_force_scale", "must be KEY=VALUE"),
        ("push_force_scale=-1", "must be a number that is not negative"),
        ("impl=cuda", "choose one of jax, warp"),
    ],
)
def test_mistakes_get_a_sentence(argument, says):
    with pytest.raises(UserError, match=says) as caught:
        getattr(make_task_of("go1-push-recovery", (argument,)), "physics", None)
    assert "\n" not in str(caught.value)


def test_an_option_is_given_once():
    with pytest.raises(UserError, match="gives horizon twice"):
        make_task_of("panda-tracking", ("horizon=3", "horizon=4"))


def test_the_names_of_tasks_with_real_actions_are_known():
    for name in task_names():
        assert has_real_actions(name) == isinstance(make_task(name).action_space, Box), name
    assert not has_real_actions("no-such-task")


def test_options_that_are_listed_are_taken():
    for name in task_names():
        known = options_of(make_task(name))
        assert "kind" not in known and options_of(make_task(name, **known)) == known, name


# ---- files

TASK = """
from jaxreward.tasks.probe import Probe

class Mine(Probe):
    def __init__(self, kind="choice", length=6):
        super().__init__(kind, length)
"""


def test_a_file_is_a_task(tmp_path):
    file = tmp_path / "mine.py"
    file.write_text(TASK)
    assert make_task(str(file)).name == "probe-choice"
    assert not has_real_actions(str(file))
    file.write_text(TASK + "\n\nclass Other(Mine):\n    pass\n")
    with pytest.raises(UserError, match=r"several tasks: name one, .*mine.py:Mine or .*mine.py:Other"):
        make_task(str(file))
    assert type(make_task(f"{file}:Other")).__name__ == "Other"


@pytest.mark.parametrize(
    ("text", "name", "says"),
    [
        (None, "none.py", "there is no file"),
        ("import no_such_module_at_all", "mine.py", "cannot be imported: ModuleNotFoundError"),
        ("def f(:\n", "mine.py", "cannot be imported: SyntaxError"),
        ("x = 1\n", "mine.py", "no class that is a task"),
        ("class A:\n    horizon = 3\n    def reset(self, key): ...\n", "mine.py", "A lacks action_space, default_obs"),
        (TASK, "mine.py:Yours", "no class Yours; it has Mine"),
        ("class A:\n    horizon = 3\n", "mine.py:A", "is no task yet: it lacks action_space"),
    ],
)
def test_an_unknown_task_is_named(tmp_path, text, name, says):
    if text is not None:
        (tmp_path / "mine.py").write_text(text)
    with pytest.raises(UserError, match=says) as caught:
        make_task(str(tmp_path / name))
    assert "\n" not in str(caught.value)
