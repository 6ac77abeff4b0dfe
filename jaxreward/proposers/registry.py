"""Proposers by name."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from importlib import import_module
from typing import Any

from jaxreward.config import file_of, is_file
from jaxreward.errors import InvalidSetting, UnknownName, UserError, did_you_mean
from jaxreward.function_source import name_of
from jaxreward.proposers.proposer import Proposer
from jaxreward.records import TaskCard
from jaxreward.sentences import mention
from jaxreward.user_files import Wanted, class_from_file, failed

_PROPOSERS = {
    "genetic": ("genetic.genetic_proposer", "GeneticProposer", ("blocks", "surrogate")),
    "llm": ("llm.llm_proposer", "LlmProposer", ("settings",)),
    "manual": ("human.manual", "ManualProposer", ("settings",)),
    "replay": ("replay", "ReplayProposer", ("recording",)),
}
"""The module, the class and the options of each; the module is imported when the proposer is made."""

NAMES = tuple(_PROPOSERS)

_of_files: dict[str, type] = {}
"""Proposers of the user's by the names of their files."""


def load_proposer(name: str) -> None:
    """Import the proposer in a file, `FILE.py` or `FILE.py:Class`, which is then one by that name.

    The file is executed: the name must be the user's own, not that of a run's folder alone.

    Raises:
        UserError: as `user_files.class_from_file`.
    """
    _of_files[name] = class_from_file(name, _WANTED)


def proposer_in_file(name: str) -> type:
    """The proposer in a file that `load_proposer` has imported.

    Raises:
        UserError: it has not.
    """
    if name not in _of_files:
        raise UserError(
            f"the proposer is the Python file {name}, which would be executed: look at it first, then say "
            f"{mention('proposer', name)}"
        )
    return _of_files[name]


def make_proposer(name: str, card: TaskCard, **options: Any) -> Proposer:
    """Make the proposer called `name` for a task.

    Args:
        name: `genetic`, with `blocks` and `surrogate` as `GeneticProposer` has them; `llm` and `manual` with
            `settings`, an `LlmSettings`; `replay` with `recording`: an events.jsonl, the folder that holds one, or a
            mapping from request id to `Proposal`; or a file that `load_proposer` has imported.
        card: the task's words and vocabulary.

    Raises:
        UserError: if there is no such proposer, an option it does not have, or one it misses.
    """
    if is_file(name):
        kind = proposer_in_file(name)
        try:
            return own_proposer(kind, card)
        except UserError:
            raise
        except (Exception, SystemExit) as error:
            raise failed(f"the proposer of {file_of(name)} cannot be made", file_of(name), error) from error
    if name not in _PROPOSERS:
        raise UnknownName("proposer", name, NAMES, settings=("proposer",))
    module, kind, known = _PROPOSERS[name]
    for option in options:
        if option not in known:
            message = f"the {name} proposer has no option '{option}'; {did_you_mean(option, known, 'it has')}"
            raise UnknownName(f"option of proposer {name}", option, known, message=message)
    make = getattr(import_module(f"jaxreward.proposers.{module}"), kind)
    if name != "replay":
        return make(card, **options)
    if "recording" not in options:
        raise InvalidSetting("the replay proposer needs a recording: give it the events.jsonl of a run", "recording")
    return make(options["recording"])


def own_proposer(given: Proposer | Callable[..., Any], card: TaskCard) -> Proposer:
    """A proposer of the user's: an object, or what a class or function makes. It is given the `TaskCard` where it has
    a parameter without a default, or one called `card`.

    Raises:
        UserError: the object is no proposer.
    """
    if isinstance(given, type) or (callable(given) and not hasattr(given, "propose_all")):
        signature, name = inspect.signature(given), name_of(given)
        named = [p for p in signature.parameters.values() if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
        wanted = (card,) if any(p.default is p.empty or p.name == "card" for p in named[:1]) else ()
        try:
            signature.bind(*wanted)
        except TypeError:
            message = f"{name} takes {signature} and is called with the TaskCard alone: give all else a default"
            raise InvalidSetting(f"the proposer {message}", "proposer") from None
        made = given(*wanted)
        if made is None:
            raise InvalidSetting(f"the function {name} returns None: let it return a proposer", "proposer")
        given = made
    if lacking := _missing(lambda name: hasattr(given, name)):
        raise UserError(
            f"{type(given).__name__} is no proposer yet: it lacks {', '.join(lacking)} (see {_WANTED.page}); the base "
            "class jaxreward.proposers.proposer.OneByOne has all but name and propose"
        )
    return given  # type: ignore[return-value]


_OWN = ("name", "propose_all")
"""What every proposer defines itself."""
_BY_BASE = tuple(name for name in vars(Proposer) if not name.startswith("_") and name not in _OWN)


def _missing(has: Callable[[str], bool]) -> list[str]:
    """What a proposer lacks; what the base class has is not named one by one."""
    base = [] if all(map(has, _BY_BASE)) else ["the base class jaxreward.proposers.proposer.Proposer"]
    return [name for name in _OWN if not has(name)] + base


def _lacking(kind: type) -> list[str]:
    """What a class lacks to be a proposer, as far as it shows."""
    abstract = getattr(kind, "__abstractmethods__", frozenset())
    own = {name for base in kind.__mro__ if base is not Proposer for name in getattr(base, "__annotations__", {})}
    return _missing(lambda name: hasattr(kind, name) or name in own) + sorted(abstract)


_WANTED = Wanted("proposer", "proposers", _lacking, "proposer", "docs/search.md")
