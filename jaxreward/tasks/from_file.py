"""Tasks of a user's own, from a Python file: `swing_up.py`, or `robots.py:SwingUp` where it has several."""

from __future__ import annotations

from typing import Any

from jaxreward.config import class_of, file_of
from jaxreward.errors import InvalidSetting, UserError
from jaxreward.tasks.base import BaseTask
from jaxreward.tasks.option_checks import call_with_options
from jaxreward.tasks.task import Task
from jaxreward.user_files import Wanted, class_from_file, failed, imported, keep_digest

_NEEDED = tuple(name for name in dir(Task) if not name.startswith("_"))


def task_from_file(name: str, **options: Any) -> Task:
    """The task in a file, `FILE.py` or `FILE.py:Class`, made with `options`. The file is imported: it is the user's.

    A file may make its task itself, as in `task = jr.from_functions(...)`: `FILE.py`, or `FILE.py:task`. The same file,
    class and options give the same object. Its methods are not called: see `validation`.

    Raises:
        UnusableFile: no such file, one that cannot be imported, or one without a task.
        MissingPackage: it imports tasks of ours whose simulator is not installed.
        UnknownName: no such class, or an option that it does not take.
        InvalidSetting: several tasks, and the name says none.
    """
    if task := _made_there(name, options):
        return task
    kind = class_from_file(name, _TASK)
    known = (kind, repr(sorted(options.items())))
    if known not in _made:
        try:
            _made[known] = call_with_options(name, kind, options)
        except UserError:
            raise
        except (Exception, SystemExit) as error:
            path = file_of(name)
            raise failed(f"{kind.__name__} of {path} cannot be made", path, error) from error
    return _made[known]


def _made_there(name: str, options: dict[str, Any]) -> Task | None:
    """The task that a file makes itself, under the name that is asked for, or as the only one in a file without a class
    of a task; None where there is none."""
    path, wanted = file_of(name), class_of(name)
    if not path.is_file():
        return None
    module = imported(path)
    objects = {n: value for n, value in vars(module).items() if _is_task(value) and not n.startswith("_")}
    if not wanted:  # a task of this package may be what a file makes its own of
        objects = {n: task for n, task in objects.items() if isinstance(task, BaseTask)} or objects
    own = [c for c in vars(module).values() if isinstance(c, type) and c.__module__ == module.__name__]
    if wanted not in objects and (wanted or not objects or not all(map(_lacking, own))):
        return None
    if not wanted and len({id(task) for task in objects.values()}) > 1:
        names = " or ".join(f"{path}:{n}" for n in objects)
        raise InvalidSetting(f"{path} has several tasks: name one, {names}", "task")
    if options:
        message = f"{path} makes its task itself: change {next(iter(options))} there"
        raise InvalidSetting(message, f"task.{next(iter(options))}")
    task = objects[wanted or next(iter(objects))]
    keep_digest(task, module)
    return task


_made: dict[tuple[type, str], Task] = {}


def _is_task(value: Any) -> bool:
    """Whether a value is an object that is a task, as far as its class shows."""
    return isinstance(value, BaseTask) or not (isinstance(value, type) or _lacking(type(value)))


def _lacking(kind: type) -> list[str]:
    """Members of `Task` that instances of `kind` lack, as far as its class shows."""
    fields = {name for base in kind.__mro__ for name in getattr(base, "__annotations__", {})}
    return [name for name in _NEEDED if not hasattr(kind, name) and name not in fields]


_TASK = Wanted("task", "tasks", _lacking, "task", "docs/tasks.md")
