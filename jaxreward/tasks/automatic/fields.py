"""The arrays of a view as random play showed them, with names to speak of them."""

from __future__ import annotations

import builtins
import keyword
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from jax import tree_util

from jaxreward.tasks.automatic.play import Array, Play

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
        name: a name in snake case, unique in the view.
        before, after: its values in the transitions of random play (N, *shape).
    """

    index: int
    path: str
    parent: str
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
    """The arrays of the view that hold quantities: neither identities nor numbers that are not finite."""
    leaves = tree_util.tree_flatten_with_path(played.views)[0]
    after = tree_util.tree_flatten_with_path(played.next_views)[0]
    names = _names([path for path, _ in leaves])
    found = []
    for k, ((path, x), (_, y)) in enumerate(zip(leaves, after, strict=True)):
        x, y = _plain(x), _plain(y)
        both = np.abs(np.concatenate([x.reshape(-1), y.reshape(-1)]).astype(np.float32))
        if both.size and np.isfinite(both).all() and both.max() <= _LARGEST:
            text = tree_util.keystr(path)
            found.append(Field(k, text, tree_util.keystr(path[:-1]), names[k], x, y))
    return tuple(found)


def _plain(x: Any) -> Array:
    """An array of a dtype that numpy computes with."""
    x = np.asarray(x)
    return x if x.dtype.kind in "biuf" else x.astype(np.float32)


def _names(paths: Sequence[Any]) -> list[str]:
    """Of every path the shortest end that no other has, without ends that say nothing alone."""
    parts = [[_snake(tree_util.keystr((key,), simple=True)) for key in path] or ["value"] for path in paths]
    names = []
    for k, own in enumerate(parts):
        for length in range(1, len(own) + 1):
            end = own[-length:]
            unique = all(other[-length:] != end for j, other in enumerate(parts) if j != k)
            says = end[0] not in _GENERIC and not end[0].isdigit()
            if unique and (says or length == len(own)):
                break
        names.append(usable("_".join(end)))
    return [name if names.index(name) == k else f"{name}_{k}" for k, name in enumerate(names)]


def usable(name: str) -> str:
    """`name` as one that a function of a program may have."""
    name = name if name[:1].isalpha() else f"part_{name.strip('_')}"
    bad = keyword.iskeyword(name) or hasattr(builtins, name) or name in _RESERVED
    return f"{name}_field" if bad else name


def _snake(text: str) -> str:
    text = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", text)
    return re.sub(r"[^a-z0-9]+", "_", text.lower()).strip("_") or "part"
