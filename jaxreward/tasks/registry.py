"""Tasks by name."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from functools import partial
from types import MappingProxyType
from typing import Any, NamedTuple

from jaxreward.config import is_file
from jaxreward.errors import InvalidSetting, UnknownName
from jaxreward.extras import require
from jaxreward.tasks.from_file import task_from_file
from jaxreward.tasks.option_checks import call_with_options, invalid_option
from jaxreward.tasks.task import Box, Task
from jaxreward.tasks.validation import require_sound


class Entry(NamedTuple):
    """Where a task is made: a module of this package, imported on demand, and what to call in it.

    `real` says that its actions are real numbers, which is known without making it.
    """

    module: str
    maker: str
    fixed: Mapping[str, Any] = MappingProxyType({})
    real: bool = True


_EXTRAS = {
    "brax": "brax", "games.snake": "jumanji", "games.tetris": "jumanji", "robots": "mujoco", "xland": "xland",
}  # fmt: skip
"""Extras that tasks need, by the module or package that they are made in."""

_PROBES = ("constant", "signal", "delay", "choice", "corridor", "endless", "aim")
_TASKS: dict[str, Entry] = {
    "ant-lie-down": Entry("brax.ant_tasks", "AntLieDown"),
    "ant-patrol-return": Entry("brax.ant_tasks", "AntPatrolReturn"),
    "ball-roll": Entry("robots.ball", "BallRoll"),
    "cube-place": Entry("robots.place", "CubePlace"),
    "cube-stack": Entry("robots.stack", "CubeStack"),
    "door-open": Entry("robots.door", "DoorOpen"),
    "flappy-bird": Entry("games.flappy", "FlappyBird", real=False),
    "go1-push-recovery": Entry("robots.go1", "Go1PushRecovery"),
    "inverted-pendulum": Entry("brax.small", "InvertedPendulum"),
    "package-push": Entry("robots.package", "PackagePush"),
    "panda-cabinet": Entry("robots.cabinet", "PandaCabinet"),
    "panda-push": Entry("robots.push", "PandaPush"),
    "panda-tracking": Entry("robots.panda", "PandaTracking"),
    "peg-insert": Entry("robots.peg", "PegInsert"),
    "quadcopter-hover": Entry("robots.quadcopter", "QuadcopterHover"),
    "quadruped-velocity": Entry("robots.quadruped", "QuadrupedVelocity"),
    "reacher": Entry("brax.small", "Reacher"),
    "snake": Entry("games.snake", "Snake", real=False),
    "tetris": Entry("games.tetris", "Tetris", real=False),
    **{kind: Entry("brax.suite", "Run", {"kind": kind}) for kind in ("hopper", "walker2d", "ant", "humanoid")},
    **{f"probe-{kind}": Entry("probe", "Probe", {"kind": kind}, real=kind == "aim") for kind in _PROBES},
    **{
        f"xland-{level}": Entry("xland", "paper_task", {"name": f"xland-{level}"}, real=False)
        for level in ("easy", "medium", "hard")
    },
}


INSTRUCTED = (
    "package-push",
    "door-open",
    "ball-roll",
    "peg-insert",
    "cube-place",
    "cube-stack",
    "panda-push",
    "panda-cabinet",
)
"""Tasks with an instruction."""

LIBRARIES = ("brax", "gymnax", "jumanji", "playground")
"""Other libraries whose environments are tasks by the name `<library>/<environment>`."""

OPEN_NAMES = (
    "babyai/<level>",
    "xland/<environment>/<ruleset>",
    *(f"{library}/<environment>" for library in LIBRARIES),
)
"""How the names of families of tasks are made."""

_FAMILIES = {name.partition("/")[0] for name in OPEN_NAMES}
"""What the names of tasks of a family begin with."""

_made: dict[tuple[str, str], Task] = {}
"""Tasks of other libraries by name and options: what has the same is one object, whose functions are compiled once."""


def task_names() -> tuple[str, ...]:
    """The fixed names; `OPEN_NAMES` are others (see docs/tasks.md)."""
    return tuple(sorted(_TASKS))


def is_task_name(name: str) -> bool:
    """Whether a name is that of a task, or of a family of tasks, that comes with jaxreward; not of a Python file."""
    return not is_file(name) and (name in _TASKS or name.partition("/")[0] in _FAMILIES)


def extra_of(name: str) -> str:
    """The extra that the simulator of the task called `name` comes with; empty for none, and for a task in a file."""
    if name.startswith("xland/"):
        return "xland"
    if library := _library_of(name):
        return library
    module = _TASKS[name].module if name in _TASKS else ""
    return _EXTRAS.get(module, _EXTRAS.get(module.partition(".")[0], ""))


def has_real_actions(name: str) -> bool:
    """Whether the actions of the task called `name` are real numbers; False for an unknown name. A task in a file,
    or of a library that has both kinds, is made to find out."""
    if is_file(name) or _library_of(name) in ("gymnax", "jumanji"):
        return isinstance(unchecked_task(name).action_space, Box)
    if _library_of(name):
        return True
    return name in _TASKS and _TASKS[name].real


def make_task(name: str, **options: Any) -> Task:
    """The task called `name`; `options` go to its constructor (`horizon=`, ...).

    Besides the fixed names, `babyai/<level>` is a BabyAI level (see `jaxreward.tasks.levels`), or several with `+`
    between, `xland/<environment id>/<ruleset>` makes a task of any XLand-MiniGrid environment (see
    `jaxreward.tasks.xland_ruleset`), `gymnax/<id>` and the like of an environment of another library (see
    `jaxreward.tasks.adapters`), and `FILE.py` or `FILE.py:Class` the task in a file of the user's, which must be
    sound (see `jaxreward.tasks.validation`).

    Raises:
        UserError: unknown name, environment, ruleset, file or option; a mistake in the task of a file; a simulator that
            is not installed.
    """
    if not isinstance(name, str):
        raise InvalidSetting(f"a task is made by its name, such as make_task('hopper'), not {name!r}", "task")
    task = unchecked_task(name, **options)
    if is_file(name):
        require_sound(task)
    return task


def unchecked_task(name: str, **options: Any) -> Task:
    """As `make_task`, without the validation of a task in a file."""
    if is_file(name):
        return task_from_file(name, **options)
    if extra := extra_of(name):
        require(extra, f"the task {name}", "task")
    if name.startswith("babyai/"):
        from jaxreward.tasks.levels.mix import BETWEEN, LevelMix
        from jaxreward.tasks.levels.task import BabyAI

        kind = LevelMix if BETWEEN in name else BabyAI
        return call_with_options(name, partial(kind, name.removeprefix("babyai/")), options)
    if name.startswith("xland/"):
        from jaxreward.tasks.xland_ruleset import ruleset_task

        return call_with_options(name, partial(ruleset_task, name.removeprefix("xland/")), options)
    if library := _library_of(name):
        known = (name, repr(sorted(options.items())))
        if known not in _made:
            maker = getattr(importlib.import_module("jaxreward.tasks.adapters"), f"from_{library}")
            _made[known] = call_with_options(name, partial(maker, name.partition("/")[2]), options)
        return _made[known]
    if name in _TASKS:
        entry = _TASKS[name]
        maker = getattr(importlib.import_module(f"jaxreward.tasks.{entry.module}"), entry.maker)
        if fixed := sorted(entry.fixed.keys() & options.keys()):
            message = f"task '{name}' does not take the option '{fixed[0]}': its name says what that is"
            raise invalid_option(fixed[0], message)
        return call_with_options(name, maker, {**entry.fixed, **options})
    raise UnknownName("task", name, [*task_names(), *OPEN_NAMES, "FILE.py"], settings=("task",))


def _library_of(name: str) -> str:
    """The library of `<library>/<environment>`; empty for any other name."""
    library, slash, _ = name.partition("/")
    return library if slash and library in LIBRARIES else ""
