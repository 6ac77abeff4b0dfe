"""Programs that together have all fragments of a vocabulary."""

from __future__ import annotations

from collections.abc import Iterator

from jaxreward.proposers.genetic.genome import Gene, Genome, write
from jaxreward.proposers.genetic.lexicon import Lexicon
from jaxreward.records import Fragment

_EACH = 6
"""Features and terms of a program, of which searches have about as many: more may be too large to be checked."""

_WEIGHT = 0.5


def covering(lexicon: Lexicon) -> tuple[str, ...]:
    """Sources of programs that together have every feature and term of a vocabulary, each with a weight; none where it
    lacks features or terms. Terms that are constant are in the first: alone they make a reward that is refused."""
    fragments = list(lexicon.fragments.values())
    features = [f for f in fragments if f.kind == "feature"]
    terms = [f for f in fragments if f.kind == "term" and not lexicon.is_constant(f)]
    constant = [f for f in fragments if f.kind == "term" and lexicon.is_constant(f)]
    if not features or not terms:
        return ()
    count = max(-(-len(features) // _EACH), -(-len(terms) // _EACH))
    both = zip(_dealt(features, count), _dealt(terms, count), strict=True)
    return tuple(_program(lexicon, seen, paid + (constant if k == 0 else [])) for k, (seen, paid) in enumerate(both))


def _dealt(fragments: list[Fragment], count: int) -> Iterator[list[Fragment]]:
    """In so many parts, none of them empty."""
    for k in range(count):
        yield fragments[k * _EACH : (k + 1) * _EACH] or fragments[:1]


def _program(lexicon: Lexicon, features: list[Fragment], terms: list[Fragment]) -> str:
    seen, paid = (tuple(Gene(f.name, _WEIGHT) for f in half) for half in (features, terms))
    return write(Genome(seen, paid, lexicon.definition([f.name for f in (*features, *terms)])))
