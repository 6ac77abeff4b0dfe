"""The texts of a vocabulary as statements of a program."""

from __future__ import annotations

from collections.abc import Iterable

from jaxreward.errors import UnknownName
from jaxreward.programs.statements import IMPORTS, Statement, arranged, closure
from jaxreward.records import Vocabulary


def definitions(vocabulary: Vocabulary) -> tuple[Statement, ...]:
    """Imports, constants, helpers and fragments."""
    texts = [*IMPORTS, *(f"{name} = {value}" for name, value in vocabulary.constants.items())]
    texts += [source.strip() for source in vocabulary.helpers.values()]
    texts += [fragment.source.strip() for fragment in vocabulary.fragments]
    return tuple(Statement(text) for text in texts)


def source_of(vocabulary: Vocabulary, names: Iterable[str]) -> str:
    """See `Vocabulary.source`."""
    known, wanted = [fragment.name for fragment in vocabulary.fragments], list(dict.fromkeys(names))
    for name in wanted:
        if name not in known:
            raise UnknownName("fragment", name, known)
    imports = [name for text in IMPORTS for name in Statement(text).binds]
    return arranged(closure([*imports, *wanted], definitions(vocabulary)), wanted)
