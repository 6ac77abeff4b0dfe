"""The arrays of a view as random play showed them, with names to speak of them."""

from __future__ import annotations

import builtins
import keyword
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from jax import tree_util

from jaxreward.function_source.fields import NEVER_FIELDS
from jaxreward.function_source.scopes import fresh_name
from jaxreward.tasks.automatic.play import Array, Play
from jaxreward.tasks.random_keys import are_random_keys, may_be_random_key

_LARGEST = 1e6
"""A number beyond this is an identity or a random key, not a quantity."""

_RESERVED = frozenset({
    "jax", "jnp", "state", "action", "next_state", "terms", "reward", "get_observation", "compute_reward",
    "position", "offset",
})  # fmt: skip
_GENERIC = frozenset({
    "position", "pos", "location", "loc", "place", "coordinates", "coords", "coord", "xy", "row", "col", "column", "x",
    "y", "z", "value", "state", "direction", "id", "index",
})  # fmt: skip
"""Names that say nothing without that of what they belong to."""


@dataclass(frozen=True)
class Field:
    """An array of the view.

    Attributes:
        index: among the leaves of the view.
        path: how a program writes it after the name of a state: `.agent.position`, `['x'][0]`.
        parent: the path of the node that it belongs to.
        last: the last name of the path, in lower case.
        words: of all names of the path, without the numbers that they end in.
        name: a name in snake case, unique in the view.
        before, after: its values in the transitions of random play (N, *shape).
    """

    index: int
    path: str
    parent: str
    last: str
    words: frozenset[str]
    name: str
    before: Array
    after: Array

    @property
    def shape(self) -> tuple[int, ...]:
        return self.before.shape[1:]

    @property
    def size(self) -> int:
        return int(np.prod(self.shape))

    @property
    def is_bool(self) -> bool:
        return self.before.dtype == bool

    @property
    def is_integer(self) -> bool:
        return self.before.dtype.kind in "biu"

    @property
    def both(self) -> Array:
        """Values before and after, float32 (2N, *shape)."""
        return np.concatenate([self.before, self.after]).astype(np.float32)

    @property
    def is_constant(self) -> bool:
        return bool(np.all(self.both == self.both[:1]))

    def of(self, state: str, element: Sequence[int] = ()) -> str:
        """How a program writes it, or an element of it, of the state of this name."""
        return f"{state}{self.path}" + (f"[{', '.join(map(str, element))}]" if element else "")


def fields_of(played: Play) -> tuple[Field, ...]:
    """The arrays of the view that hold quantities: none that programs cannot or may not read, no identities, and no
    numbers that are not finite."""
    leaves = tree_util.tree_flatten_with_path(played.views)[0]
    after = tree_util.tree_flatten_with_path(played.next_views)[0]
    names, without = names_of(played.views), unreadable(played)
    found = []
    for k, ((path, x), (_, y)) in enumerate(zip(leaves, after, strict=True)):
        if k in without:
            continue
        x, y = _plain(x), _plain(y)
        both = np.abs(np.concatenate([x.reshape(-1), y.reshape(-1)]).astype(np.float32))
        if both.size and np.isfinite(both).all() and both.max() <= _LARGEST:
            text, last = tree_util.keystr(path), tree_util.keystr(path[-1:], simple=True).lower()
            words = words_of(tree_util.keystr(path, simple=True, separator="."))
            found.append(Field(k, text, tree_util.keystr(path[:-1]), last, words, names[k], x, y))
    return tuple(found)


def unreadable(played: Play) -> frozenset[int]:
    """Leaves of the view that no fragment may read: random keys, arrays that were not kept, and fields by whose names
    programs are rejected."""
    leaves = tree_util.tree_flatten_with_path(played.views)[0]
    may = {k for k, (_, x) in enumerate(leaves) if may_be_random_key(x.shape[1:], x.dtype)}
    keys = {k for k in may if are_random_keys(np.asarray(leaves[k][1]))}
    never = {k for k, (path, _) in enumerate(leaves) if never_read(path)}
    return frozenset(played.skipped | keys | never)


def never_read(path: Any) -> str:
    """The part of a path for which programs that read it are rejected; empty if they may."""
    names = (key.name for key in path if isinstance(key, tree_util.GetAttrKey))
    return next((name for name in names if name in NEVER_FIELDS), "")


def _plain(x: Any) -> Array:
    """An array of a dtype that numpy computes with."""
    x = np.asarray(x)
    return x if x.dtype.kind in "biuf" else x.astype(np.float32)


def names_of(view: Any) -> list[str]:
    """A name for every array of a view: the shortest end of its path that no other has, without ends that say nothing
    alone."""
    paths = [path for path, _ in tree_util.tree_flatten_with_path(view)[0]]
    parts = [[_snake(tree_util.keystr((key,), simple=True)) for key in path] or ["value"] for path in paths]
    ends = Counter(tuple(own[-length:]) for own in parts for length in range(1, len(own) + 1))
    names: dict[str, None] = {}
    for own in parts:
        end = own
        for length in range(1, len(own) + 1):
            end = own[-length:]
            if ends[tuple(end)] == 1 and end[0] not in _GENERIC and not end[0].isdigit():
                break
        names[fresh_name(usable("_".join(end)), names)] = None
    return list(names)


def words_of(name: str) -> frozenset[str]:
    """The words of a name, without the numbers that they end in."""
    return frozenset(word.rstrip("0123456789") or word for word in _snake(name).split("_"))


def usable(name: str) -> str:
    """`name` as one that a function of a program may have."""
    name = name if name[:1].isalpha() else f"part_{name.strip('_')}"
    bad = keyword.iskeyword(name) or hasattr(builtins, name) or name in _RESERVED
    return f"{name}_field" if bad else name


def _snake(text: str) -> str:
    text = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", text)
    return re.sub(r"[^a-z0-9]+", "_", text.lower()).strip("_") or "part"
