"""What a genetic proposer builds rewards of texts from: what the expert's states have, and others lack.

Of XML a piece is an attribute of a node with its value, or two of one node; of any other text it is a word.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import combinations

from jaxreward.function_source.scopes import fresh_name
from jaxreward.objectives.texts.text_sets import TextData
from jaxreward.records import Fragment, Vocabulary

MOST = 48
"""Pieces of which terms are made."""

_NODE, _ATTRIBUTE = re.compile(r"<[A-Za-z][^<>]*>"), re.compile(r'([\w:.-]+)="([^"]*)"')
_WORD, _ASCII = re.compile(r"\w+"), re.compile(r"[A-Za-z0-9]+")
_PLACES = ("bounds", "index", "rotation", "window")
"""Attributes that say where a node is, and not what."""
_LONGEST, _PAIRED = 80, 8
_SCALES, _CONSTANT = (4.0, 8.0, 2.0, 16.0), (2.0, 4.0, 1.0, 8.0)

_HAS = '''
def has(state, parts):
    """1 if one node of the state, or line of other text, has all of these parts, else 0."""
    for node in state.replace("<", "\\n<").split("\\n"):
        if all(part in node for part in parts):
            return 1.0
    return 0.0
'''

Piece = tuple[str, ...]
"""Parts of a text that stand in one node."""


def pieces_of(state: str) -> frozenset[Piece]:
    """The pieces of a state."""
    found = set[Piece]()
    nodes = _NODE.findall(state)
    for node in nodes:
        facts = [
            f'{name}="{value}"'
            for name, value in _ATTRIBUTE.findall(node)
            if value and name not in _PLACES and len(value) <= _LONGEST
        ]
        found.update((fact,) for fact in facts)
        found.update(combinations(facts[:_PAIRED], 2))
    return frozenset(found) if nodes else frozenset((word,) for word in _WORD.findall(state) if len(word) <= _LONGEST)


def text_vocabulary(data: TextData) -> Vocabulary:
    """Terms of the pieces in which both sets differ most, and a cost of every state."""
    states = [pieces_of(state) for _, _, state in data.steps]
    own, others = states[: data.experts], states[data.experts :]
    taken = {"has", "everywhere"}
    terms = list[Fragment]()
    for gain, piece, shares in _telling(own, others):
        name = fresh_name(("with_" if gain > 0 else "without_") + _label(piece), taken)
        taken.add(name)
        value = f"has(next_state, {piece!r})"
        doc = f"{shares[0]:.0%} of the expert's states have this, {shares[1]:.0%} of others."
        terms.append(
            _term(name, doc, value if gain > 0 else f"1.0 - {value}", _SCALES, ("shaping",), 0.2 + 4 * abs(gain))
        )
    everywhere = _term("everywhere", "A cost of every state.", "-1.0", _CONSTANT, ("bonus", "basic"), 1.0)
    return Vocabulary(helpers={"has": _HAS.strip()}, fragments=(*terms, everywhere))


def _telling(
    own: Sequence[frozenset[Piece]], others: Sequence[frozenset[Piece]]
) -> Iterator[tuple[float, Piece, tuple[float, float]]]:
    """Pieces by how much more of the expert's states than of others have them, in [-1, 1], the largest differences
    first; of pieces that the same states have, the shortest."""
    count = [Counter(piece for state in states for piece in state) for states in (own, others)]
    found = list[tuple[float, Piece, tuple[float, float]]]()
    for piece in {*count[0], *count[1]}:
        shares = count[0][piece] / len(own), count[1][piece] / len(others)
        found.append((shares[0] - shares[1], piece, shares))
    found.sort(key=lambda item: (-abs(item[0]), len(item[1]), sum(map(len, item[1])), item[1]))
    seen, kept = set[frozenset[int]](), 0
    for gain, piece, shares in found:
        where = frozenset(k for k, state in enumerate((*own, *others)) if piece in state)
        if where in seen or gain == 0.0:
            continue
        seen.add(where)
        yield gain, piece, shares
        kept += 1
        if kept == MOST:
            return


def _term(
    name: str, doc: str, value: str, scales: tuple[float, ...], tags: tuple[str, ...], weight: float
) -> Fragment:  # fmt: skip
    source = f'def {name}(state, action, next_state):\n    """{doc}"""\n    return {value}'
    return Fragment(
        name=name, kind="term", source=source, scales=scales, tags=tags, doc=doc, weight=float(f"{weight:.2g}")
    )


def _label(piece: Piece) -> str:
    """A piece as part of a name: the last words of its values."""
    values = [part.partition('="')[2].strip('"') or part for part in piece]
    words = [word for value in values for word in _ASCII.findall(value.rpartition("/")[2])]
    return "_".join(words).lower()[:40].strip("_") or "piece"
