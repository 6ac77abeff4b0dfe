"""The texts of a vocabulary as statements of a program."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol

from jaxreward.errors import UnknownName
from jaxreward.function_source.statements import IMPORTS, Statement, arranged, closure


class NamedText(Protocol):
    """A function by its name and its text."""

    @property
    def name(self) -> str: ...

    @property
    def source(self) -> str: ...


class Texts(Protocol):
    """A vocabulary: constants and helpers by name, and fragments."""

    @property
    def constants(self) -> dict[str, str]: ...

    @property
    def helpers(self) -> dict[str, str]: ...

    @property
    def fragments(self) -> Sequence[NamedText]: ...


def definitions(vocabulary: Texts) -> tuple[Statement, ...]:
    """Imports, constants, helpers and fragments."""
    texts = [*IMPORTS, *(f"{name} = {value}" for name, value in vocabulary.constants.items())]
    texts += [source.strip() for source in vocabulary.helpers.values()]
    texts += [fragment.source.strip() for fragment in vocabulary.fragments]
    return tuple(Statement(text) for text in texts)


def source_of(vocabulary: Texts, names: Iterable[str]) -> str:
    """See `Vocabulary.source`."""
    known, wanted = [fragment.name for fragment in vocabulary.fragments], list(dict.fromkeys(names))
    for name in wanted:
        if name not in known:
            raise UnknownName("fragment", name, known)
    imports = [name for text in IMPORTS for name in Statement(text).binds]
    return arranged(closure([*imports, *wanted], definitions(vocabulary)), wanted)
