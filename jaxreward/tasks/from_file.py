"""Tasks of a user's own, from a Python file: `swing_up.py`, or `robots.py:SwingUp` where it has several."""

from __future__ import annotations

from typing import Any

from jaxreward.config import file_of
from jaxreward.errors import UserError
from jaxreward.tasks.option_checks import call_with_options
from jaxreward.tasks.task import Task
from jaxreward.user_files import Wanted, class_from_file, failed

_NEEDED = tuple(name for name in dir(Task) if not name.startswith("_"))


def task_from_file(name: str, **options: Any) -> Task:
    """The task in a file, `FILE.py` or `FILE.py:Class`, made with `options`. The file is imported: it is the user's.

    The same file, class and options give the same object. Its methods are not called: see `validation`.

    Raises:
        UnusableFile: no such file, one that cannot be imported, or one without a task.
        MissingPackage: it imports tasks of ours whose simulator is not installed.
        UnknownName: no such class, or an option that it does not take.
        InvalidSetting: several tasks, and the name says none.
    """
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


_made: dict[tuple[type, str], Task] = {}


def _lacking(kind: type) -> list[str]:
    """Members of `Task` that instances of `kind` lack, as far as its class shows."""
    fields = {name for base in kind.__mro__ for name in getattr(base, "__annotations__", {})}
    return [name for name in _NEEDED if not hasattr(kind, name) and name not in fields]


_TASK = Wanted("task", "tasks", _lacking, "task", "docs/tasks.md")
