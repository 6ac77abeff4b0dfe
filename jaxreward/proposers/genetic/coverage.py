"""Programs that together have all fragments of a vocabulary."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import zip_longest

from jaxreward.proposers.genetic.genome import Gene, Genome, write
from jaxreward.proposers.genetic.lexicon import Lexicon
from jaxreward.records import Evolve, Fragment

_EACH = 6
"""Features and terms of a program, of which searches have about as many: more may be too large to be checked."""

_WEIGHT = 0.5


def covering(lexicon: Lexicon, evolve: Evolve = "both") -> tuple[str, ...]:
    """Sources of programs that together have every fragment of a vocabulary for what may change, each with a weight.
    Terms that are constant are in the first: alone they make a reward that is refused."""
    fragments = list(lexicon.fragments.values())
    features = [f for f in fragments if f.kind == "feature" and evolve != "reward"]
    terms = [f for f in fragments if f.kind == "term" and evolve != "observation"]
    terms.sort(key=lexicon.is_constant)
    varying = sum(not lexicon.is_constant(f) for f in terms)
    seen, paid = _dealt(features), _dealt(terms[:varying])
    if paid:
        paid[0] = [*paid[0], *terms[varying:]]
    return tuple(_program(lexicon, *halves) for halves in zip_longest(seen, paid, fillvalue=()))


def _dealt(fragments: Sequence[Fragment]) -> list[Sequence[Fragment]]:
    return [fragments[k : k + _EACH] for k in range(0, len(fragments), _EACH)]


def _program(lexicon: Lexicon, features: Sequence[Fragment], terms: Sequence[Fragment]) -> str:
    """A half without fragments is left to the task."""
    seen, paid = (tuple(Gene(f.name, _WEIGHT) for f in half) or None for half in (features, terms))
    return write(Genome(seen, paid, lexicon.definition([f.name for f in (*features, *terms)])))
