"""Tasks that are changed after their first use: what is compiled for an object holds the values that it had then."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from jaxreward.errors import InvalidSetting
from jaxreward.identity import Identity, difference
from jaxreward.identity.parts import SOURCE

_MOST = 32
_PRIVATE = re.compile(r"(?:^|[.(])_")
"""In the path of a value: a name that begins with an underscore."""
_USED = dict[int, tuple[Any, Mapping[str, str]]]()
"""Some tasks by id, referenced so that no other object gets the same id, each with its values at its first use."""


def require_unchanged(task: Any) -> None:
    """Require that a task holds what it held when it was first given to this function: its attributes, and the globals
    that its methods read. What is new, and what has a name that begins with an underscore, may change: tracing a task
    may fill its caches.

    Raises:
        InvalidSetting: something else has changed; it is named.
    """
    parts = Identity.of_code(task).parts
    values = {path: text for path, text in parts.items() if not (path.startswith(SOURCE) or _PRIVATE.search(path))}
    _, before = _USED.setdefault(id(task), (task, values))
    if len(_USED) > _MOST:
        del _USED[next(iter(_USED))]
    if changed := difference("task", before, values, shared=True):
        message = f"{changed} since it was first used, and compiled functions hold the former value"
        raise InvalidSetting(f"{message}: make another object; only names that begin with _ may change", "task")
