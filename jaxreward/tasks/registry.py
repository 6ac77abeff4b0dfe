"""Tasks by name."""

from __future__ import annotations

from collections.abc import Callable
from difflib import get_close_matches
from typing import Any

from jaxreward.errors import UserError
from jaxreward.tasks.task import Task


def _probe(kind: str) -> Callable[..., Task]:
    def make(**options: Any) -> Task:
        from jaxreward.tasks.probe import Probe

        return Probe(kind, **options)

    return make


def _xland(name: str) -> Callable[..., Task]:
    def make(**options: Any) -> Task:
        from jaxreward.tasks.xland import paper_task

        return paper_task(name, **options)

    return make


def _go1(**options: Any) -> Task:
    from jaxreward.tasks.robots.go1 import Go1PushRecovery

    return Go1PushRecovery(**options)


def _panda(**options: Any) -> Task:
    from jaxreward.tasks.robots.panda import PandaTracking

    return PandaTracking(**options)


_TASKS: dict[str, Callable[..., Task]] = {
    "go1-push-recovery": _go1,
    "panda-tracking": _panda,
    **{
        f"probe-{kind}": _probe(kind)
        for kind in ("constant", "signal", "delay", "choice", "corridor", "endless", "aim")
    },
    **{name: _xland(name) for name in ("xland-easy", "xland-medium", "xland-hard")},
}


def task_names() -> tuple[str, ...]:
    """The fixed names; `xland/<environment>/<ruleset>` is open-ended (see docs/tasks.md)."""
    return tuple(sorted(_TASKS))


def make_task(name: str, **options: Any) -> Task:
    """The task called `name`; `options` go to its constructor (`horizon=`, ...).

    Besides the fixed names, `xland/<environment id>/<ruleset>` makes a task of any
    XLand-MiniGrid environment; see `jaxreward.tasks.xland_ruleset`.

    Raises:
        UserError: unknown name, environment, ruleset or option.
    """
    if name.startswith("xland/"):
        from jaxreward.tasks.xland_ruleset import ruleset_task

        make: Callable[..., Task] = lambda **kw: ruleset_task(name.removeprefix("xland/"), **kw)  # noqa: E731
    elif name in _TASKS:
        make = _TASKS[name]
    else:
        near = get_close_matches(name, _TASKS, 1)
        raise UserError(
            f"there is no task '{name}'"
            + (f"; did you mean '{near[0]}'?" if near else ".")
            + f" Choose one of {', '.join(task_names())}, or xland/<environment>/<ruleset>."
        )
    try:
        return make(**options)
    except TypeError as error:
        raise UserError(f"task '{name}' does not take these options: {error}") from error
