"""Tasks of a user's own, from a Python file: `swing_up.py`, or `robots.py:SwingUp` where it has several."""

from __future__ import annotations

import hashlib
import importlib.util
import sys
from pathlib import Path
from traceback import walk_tb
from types import ModuleType
from typing import Any

from jaxreward.config import class_of, file_of
from jaxreward.errors import FILE_OF_USER, FileProblem, InvalidSetting, UnknownName, UnusableFile, UserError, in_a_line
from jaxreward.tasks.base import BaseTask
from jaxreward.tasks.option_checks import call_with_options
from jaxreward.tasks.task import Task

_NEEDED = tuple(name for name in dir(Task) if not name.startswith("_"))
_DIGEST = "_jaxreward_digest"


def digest_of(task: Task) -> str:
    """SHA-256 of the file that `task` or its class was imported from by its name; empty for any other task."""
    return getattr(task, _DIGEST, "") or getattr(sys.modules.get(type(task).__module__), _DIGEST, "")


def task_from_file(name: str, **options: Any) -> Task:
    """The task in a file, `FILE.py` or `FILE.py:Class`, made with `options`. The file is imported: it is the user's.

    A file may make its task itself, as in `task = jr.from_functions(...)`: `FILE.py`, or `FILE.py:task`. The same file,
    class and options give the same object. Its methods are not called: see `validation`.

    Raises:
        UnusableFile: no such file, one that cannot be imported, or one without a task.
        UnknownName: no such class, or an option that it does not take.
        InvalidSetting: several tasks, and the name says none.
    """
    path, wanted = file_of(name), class_of(name)
    if not path.is_file():
        raise UnusableFile(f"there is no file {path} to take a task from", path, FileProblem.MISSING)
    module = _imported(path)
    own = [c for c in vars(module).values() if isinstance(c, type) and c.__module__ == module.__name__]
    tasks = {c.__name__: c for c in own if not _lacking(c)}
    objects = {n: task for n, task in vars(module).items() if isinstance(task, BaseTask) and not n.startswith("_")}
    if wanted in objects or (objects and not wanted and not tasks):
        return _object(path, wanted, objects, options)
    if wanted:
        named = {c.__name__: c for c in own}.get(wanted)
        if named is None:
            message = f"{path} has no class {wanted}; it has {', '.join(tasks) or 'no task'}"
            raise UnknownName("class", wanted, tasks, message=message)
        if lacking := _lacking(named):
            message = f"{wanted} in {path} is no task yet: it lacks {', '.join(lacking)} (see docs/tasks.md)"
            raise UnusableFile(message, path, FileProblem.WRONG_KIND)
    elif len(tasks) != 1:
        if tasks:
            names = " or ".join(f"{path}:{n}" for n in tasks)
            raise InvalidSetting(f"{path} has several tasks: name one, {names}", "task")
        nearest = min(own, key=lambda c: len(_lacking(c)), default=None)
        why = f"; {nearest.__name__} lacks {', '.join(_lacking(nearest))}" if nearest else ""
        message = f"{path} has no class that is a task{why} (see docs/tasks.md)"
        raise UnusableFile(message, path, FileProblem.WRONG_KIND)
    kind = tasks[wanted or next(iter(tasks))]
    known = (kind, repr(sorted(options.items())))
    if known not in _made:
        try:
            _made[known] = call_with_options(name, kind, options)
        except UserError:
            raise
        except (Exception, SystemExit) as error:
            raise _failed(f"{kind.__name__} of {path} cannot be made", path, error) from error
    return _made[known]


def _object(path: Path, wanted: str, objects: dict[str, BaseTask], options: dict[str, Any]) -> Task:
    """The task that the file at `path` makes under the name `wanted`, or the only one."""
    if not wanted and len({id(task) for task in objects.values()}) > 1:
        names = " or ".join(f"{path}:{n}" for n in objects)
        raise InvalidSetting(f"{path} has several tasks: name one, {names}", "task")
    if options:
        message = f"{path} makes its task itself: change {next(iter(options))} there"
        raise InvalidSetting(message, f"task.{next(iter(options))}")
    task = objects[wanted or next(iter(objects))]
    vars(task)[_DIGEST] = hashlib.sha256(path.read_bytes()).hexdigest()
    return task


_made: dict[tuple[type, str], Task] = {}


def _lacking(kind: type) -> list[str]:
    """Members of `Task` that instances of `kind` lack, as far as its class shows."""
    fields = {name for base in kind.__mro__ for name in getattr(base, "__annotations__", {})}
    return [name for name in _NEEDED if not hasattr(kind, name) and name not in fields]


def _imported(path: Path) -> ModuleType:
    """The file as a module, imported again only when the file changes."""
    stamp = path.stat()
    name = f"jaxreward_task_{path.stem}_{abs(hash((str(path.resolve()), stamp.st_mtime_ns, stamp.st_size)))}"
    if name in sys.modules:
        return sys.modules[name]
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # dataclasses look their module up
    vars(module)[FILE_OF_USER] = str(path)
    vars(module)[_DIGEST] = hashlib.sha256(path.read_bytes()).hexdigest()
    try:
        spec.loader.exec_module(module)
    except (Exception, SystemExit) as error:
        del sys.modules[name]
        raise _failed(f"{path} cannot be imported", path, error) from error
    return module


def _failed(what: str, path: Path, error: BaseException) -> UnusableFile:
    """The error of a file whose code raised `error`, with the last line of the file that was executed."""
    lines = [line for frame, line in walk_tb(error.__traceback__) if frame.f_code.co_filename == str(path)]
    line = error.lineno if isinstance(error, SyntaxError) else lines[-1] if lines else None
    return UnusableFile(f"{what}: {in_a_line(error)}", path, FileProblem.DAMAGED, line)
