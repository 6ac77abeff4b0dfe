"""The code of Python files that a search uses: a run is resumed with the same, also where a file imports others."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from jaxreward.config import file_of, is_file
from jaxreward.errors import UserError
from jaxreward.evolution.settings import EvolveSettings
from jaxreward.identity import Identity, difference
from jaxreward.proposers.registry import proposer_in_file
from jaxreward.runs import RunStarted, read_log
from jaxreward.runs.provenance import versions
from jaxreward.search.registry import strategy_class
from jaxreward.sentences import mention
from jaxreward.tasks import Task

_known: dict[int, tuple[Any, Identity]] = {}
"""What was found in objects when they were first looked at, by their ids: using them may change them."""


def code_of(settings: EvolveSettings, task: Task) -> dict[str, Identity]:
    """What the task, the strategy and the proposer that are Python files consist of, by the name of the setting: all
    code and values of the user's that they lead to, also in modules that the files import. `task` is the one that the
    settings name."""
    found = dict[str, Identity]()
    if is_file(settings.task):
        found["task"] = _code(task)
    if is_file(settings.strategy):
        found["strategy"] = _code(strategy_class(settings.strategy))
    if is_file(settings.proposer):
        found["proposer"] = _code(proposer_in_file(settings.proposer))
    return found


def require_same_code(
    folder: Path,
    settings: EvolveSettings,
    now: Mapping[str, Identity],
    otherwise: str = f"start another run with {mention('name')}",
) -> None:
    """Require that the run in `folder` goes on with the code that it began with. A run of a version that did not record
    it goes on with any.

    Where packages have other versions, what the log does not have, or has in addition, is no difference.

    Args:
        now: what the files of the settings define now.
        otherwise: what else the user may do.

    Raises:
        UserError: it is another: the first difference.
    """
    first = next((entry.event for entry in read_log(folder / "events.jsonl")), None)
    if not isinstance(first, RunStarted):
        return
    for option, code in now.items():
        began = Identity(first.code.get(option, ""), first.parts.get(option, {}))
        if began.text:
            require_same_file_code(file_of(getattr(settings, option)), folder, began, code, first.versions, otherwise)


def require_same_file_code(
    file: Path, user: Path, began: Identity, now: Identity, versions_then: Mapping[str, str], otherwise: str
) -> None:
    """As `require_same_code`, of one file that `user`, a run or a training, began with.

    Raises:
        UserError: its code is another.
    """
    if began.text == now.text:
        return
    is_shared = dict(versions_then) != versions()
    found = difference(file.stem, began.parts, now.parts, shared=is_shared)
    if not found and is_shared:
        return
    raise UserError(
        f"{file}, or a module that it imports, has changed since {user} began with it: "
        f"{found or 'its code or its values differ'}; give that back, or {otherwise}"
    )


def _code(given: Any) -> Identity:
    if id(given) not in _known:
        _known[id(given)] = given, Identity.of_code(given)
    return _known[id(given)][1]
