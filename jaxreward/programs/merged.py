"""Several tapes as one computation, in which what they compute alike stands once.

Programs of one search resemble each other: they come of the same vocabulary, or of the same parents. A node of the
merged computation belongs to all tapes that have it, and is applied to their rows together, so that a compiler meets
it once. Nodes that belong to the same tapes form a part. What a part reads comes of the inputs or of parts that belong
to more tapes, so parts are evaluated in the order of how many theirs are.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any

import jax
import jax.numpy as jnp

from jaxreward.programs.replay import Step, step_of
from jaxreward.programs.tape import COMMUTATIVE, Tape, TapeError, dumps

_Owners = tuple[int, ...]


@dataclass
class _Node:
    step: Step
    operands: list[int]
    outputs: range
    owners: set[int] = field(default_factory=set[int])


@dataclass(frozen=True)
class _Part:
    """Nodes of the same tapes as a function of values that are made elsewhere. `owners` is empty where no input
    reaches them."""

    owners: _Owners
    nodes: list[_Node]
    reads: list[int]
    gives: list[int]

    def __call__(self, *arguments: Any) -> list[Any]:
        values = dict(zip(self.reads, arguments, strict=True))
        for node in self.nodes:
            results = node.step([values[i] for i in node.operands])
            if len(results) != len(node.outputs):
                raise TapeError(f"malformed tape: a node has {len(results)} outputs, not {len(node.outputs)}")
            values.update(zip(node.outputs, results, strict=True))
        return [values[i] for i in self.gives]


class Merged:
    """Tapes over the same inputs, of which later ones may be missing at the end of a tape."""

    def __init__(self, tapes: Sequence[Tape]) -> None:
        """
        Raises:
            TapeError: inputs that are not alike, or parameters that mean nothing.
        """
        longest = max((tape["ins"] for tape in tapes), key=len)
        if any(tape["ins"] != longest[: len(tape["ins"])] for tape in tapes):
            raise TapeError("merged tapes have other inputs")
        self._inputs = len(longest)
        self._nodes, self._outs = _unite(tapes, self._inputs)
        self._parts = _parts(self._nodes, self._outs, self._inputs)
        self.size = len(self._nodes)

    def __call__(self, arguments: Sequence[jax.Array]) -> list[list[jax.Array]]:
        """The outputs of every tape, leaves (n, ...), of inputs with leading axes (tapes, n): row k is of tape k."""
        everyone = tuple(range(len(self._outs)))
        values: dict[int, tuple[_Owners, Any]] = {i: (everyone, x) for i, x in enumerate(arguments)}
        for part in self._parts:
            if part.owners:
                rows = [values[i] for i in part.reads]
                axes = [0 if owners else None for owners, _ in rows]
                taken = [_rows(x, owners, part.owners) if owners else x for owners, x in rows]
                results = _mapped(part, axes, len(part.owners))(*taken)
            else:
                results = part()
            values.update((i, (part.owners, x)) for i, x in zip(part.gives, results, strict=True))
        n = arguments[0].shape[1]

        def row(i: int, tape: int) -> jax.Array:
            owners, x = values[i]
            return x[owners.index(tape)] if owners else jnp.broadcast_to(x, (n, *x.shape))

        return [[row(i, tape) for i in outs] for tape, outs in enumerate(self._outs)]


def _mapped(part: _Part, axes: list[int | None], rows: int) -> Any:
    """`part` over rows and lanes; one row without an axis of its own is less to trace."""
    lanes = jax.vmap(part, in_axes=tuple(axes))
    if rows > 1:
        return jax.vmap(lanes, in_axes=tuple(axes))
    return lambda *arguments: [
        x[None] for x in lanes(*(x if axis is None else x[0] for x, axis in zip(arguments, axes, strict=True)))
    ]


def _rows(x: Any, owners: _Owners, wanted: _Owners) -> Any:
    """The rows of `x` that belong to `wanted`, of those of `owners`; runs of neighbours are slices."""
    if owners == wanted:
        return x
    places = [owners.index(k) for k in wanted]
    runs = [[i for _, i in run] for _, run in groupby(enumerate(places), key=lambda at: at[1] - at[0])]
    slices = [x[run[0] : run[-1] + 1] for run in runs]
    return slices[0] if len(slices) == 1 else jnp.concatenate(slices)


def _unite(tapes: Sequence[Tape], inputs: int) -> tuple[list[_Node], list[list[int]]]:
    """The different nodes of all tapes, each after those that it reads, and the outputs of every tape. Values are
    numbered: the inputs first, then what nodes give."""
    known, nodes, outs, count = dict[Any, _Node](), list[_Node](), list[list[int]](), inputs
    for number, tape in enumerate(tapes):
        values = list(range(len(tape["ins"])))
        for op, params, operands, outputs in tape["nodes"]:
            reads = [values[i] for i in operands]
            order = sorted(reads) if op in COMMUTATIVE and len(reads) == 2 else reads
            key = (op, dumps(params), *order)
            if key not in known:
                known[key] = _Node(step_of(op, params), reads, range(count, count + outputs))
                nodes.append(known[key])
                count += outputs
            known[key].owners.add(number)
            values += known[key].outputs
        outs.append([values[i] for i in tape["outs"]])
    return nodes, outs


def _parts(nodes: Sequence[_Node], outs: Sequence[Sequence[int]], inputs: int) -> list[_Part]:
    """The nodes by the tapes that they belong to; those that no input reaches come first."""
    of = dict[int, _Owners]()  # of every value that a node gives
    members = dict[_Owners, list[_Node]]()
    for node in nodes:
        reached = any(i < inputs or of[i] for i in node.operands)
        owners = tuple(sorted(node.owners)) if reached else ()
        members.setdefault(owners, []).append(node)
        of.update((i, owners) for i in node.outputs)
    used = {i for own in outs for i in own}
    used |= {i for node in nodes for i in node.operands if i >= inputs and of[i] != of[node.outputs[0]]}
    found = list[_Part]()
    for owners in sorted(members, key=lambda owners: (bool(owners), -len(owners))):
        own = members[owners]
        reads = dict.fromkeys(i for node in own for i in node.operands if i < inputs or of[i] != owners)
        gives = [i for node in own for i in node.outputs if i in used]
        found.append(_Part(owners, own, list(reads), gives))
    return found
