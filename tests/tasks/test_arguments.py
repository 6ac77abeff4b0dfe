"""Options of tasks as text, and tasks from files."""

from __future__ import annotations

from pathlib import Path

import pytest

from jaxreward.errors import FileProblem, InvalidSetting, UnknownName, UnusableFile
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
    ("argument", "setting", "says"),
    [
        ("push_interval=2.5", "task.push_interval", "a whole number is expected, not '2.5'"),
        ("push_force_scale=strong", "task.push_force_scale", "a number is expected"),
        ("push_force_scale", "task_arg", ""),
        ("push_force_scale=-1", "task.push_force_scale", "not negative, not -1"),
        ("impl=cuda", "task.impl", "jax, warp"),
    ],
)
def test_an_invalid_option_is_named_in_a_sentence(argument, setting, says):
    with pytest.raises(InvalidSetting) as error:
        getattr(make_task_of("go1-push-recovery", (argument,)), "physics", None)
    assert error.value.settings == (setting,)
    assert says in str(error.value) and "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("argument", "name", "nearest"),
    [("push_force_scal=2", "push_force_scal", "push_force_scale"), ("gravity=2", "gravity", None)],
)
def test_an_unknown_option_is_named_with_the_nearest_or_all(argument, name, nearest):
    task = make_task("go1-push-recovery")
    with pytest.raises(UnknownName) as error:
        make_task_of("go1-push-recovery", (argument,))
    assert (error.value.kind, error.value.name, error.value.nearest) == ("option", name, nearest)
    assert error.value.known == tuple(options_of(task))
    assert nearest or all(f"{key}={value}" in str(error.value) for key, value in options_of(task).items())


def test_an_option_is_given_once():
    with pytest.raises(InvalidSetting) as error:
        make_task_of("panda-tracking", ("horizon=3", "horizon=4"))
    assert error.value.settings == ("task.horizon",)


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
    with pytest.raises(InvalidSetting) as error:
        make_task(str(file))
    assert error.value.settings == ("task",) and f"{file}:Mine or {file}:Other" in str(error.value)
    assert type(make_task(f"{file}:Other")).__name__ == "Other"


@pytest.mark.parametrize(
    ("text", "name", "problem", "line", "says"),
    [
        (None, "mine.py", FileProblem.MISSING, None, ""),
        ("\nimport no_such_module_at_all", "mine.py", FileProblem.DAMAGED, 2, "ModuleNotFoundError"),
        ("def f(:\n", "mine.py", FileProblem.DAMAGED, 1, "SyntaxError"),
        ("x = 1\n", "mine.py", FileProblem.WRONG_KIND, None, "no class"),
        (
            "class A:\n    horizon = 3\n    def reset(self, key): ...\n", "mine.py", FileProblem.WRONG_KIND, None,
            "A lacks action_space, default_obs",
        ),
        ("class A:\n    horizon = 3\n", "mine.py:A", FileProblem.WRONG_KIND, None, "A in"),
    ],
)  # fmt: skip
def test_a_file_without_a_task_is_named_with_the_line(tmp_path, text, name, problem, line, says):
    file = tmp_path / "mine.py"
    if text is not None:
        file.write_text(text)
    with pytest.raises(UnusableFile) as error:
        make_task(str(tmp_path / name))
    assert (error.value.path, error.value.problem, error.value.line) == (file, problem, line)
    assert says in str(error.value) and "\n" not in str(error.value)


def test_an_unknown_class_is_named_with_those_of_the_file(tmp_path):
    (tmp_path / "mine.py").write_text(TASK)
    with pytest.raises(UnknownName) as error:
        make_task(str(tmp_path / "mine.py:Yours"))
    assert (error.value.kind, error.value.name, error.value.known) == ("class", "Yours", ("Mine",))
