"""Several tapes as one computation that shares their common nodes.

Programs of one search share code: they come from the same vocabulary, or from the same parents. A node of the
merged computation belongs to all tapes that have it, and is applied to their rows together, so that a compiler meets
it once. Nodes that belong to the same tapes form a block. A block reads inputs and blocks of more tapes, so blocks are
evaluated in descending order of their number of tapes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any

import jax
import jax.numpy as jnp

from jaxreward.programs.interpret import Step, step_of
from jaxreward.programs.tape import COMMUTATIVE, Tape, TapeError, dumps

_Owners = tuple[int, ...]


@dataclass
class _Node:
    step: Step
    operands: list[int]
    outputs: range
    owners: set[int] = field(default_factory=set[int])


@dataclass(frozen=True)
class _Block:
    """Nodes of the same tapes as a function of values that other blocks compute. `owners` is empty where no input
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

    def __init__(self, tapes: Sequence[Tape], batched: int) -> None:
        """`batched`: the number of leading inputs that have a batch axis; those after them have one value per tape.

        Raises:
            TapeError: inputs that are not alike, or parameters that mean nothing.
        """
        longest = max((tape["ins"] for tape in tapes), key=len)
        if any(tape["ins"] != longest[: len(tape["ins"])] for tape in tapes):
            raise TapeError("merged tapes have other inputs")
        nodes, outs = _unite(tapes, len(longest))
        self._tapes = tuple(range(len(tapes)))
        self._blocks = _blocks(nodes, outs, len(longest))
        self._batched = set(range(min(batched, len(longest))))
        for node in nodes:
            if not self._batched.isdisjoint(node.operands):
                self._batched.update(node.outputs)
        self._groups = dict[tuple[int, ...], list[int]]()
        for tape, values in enumerate(outs):
            self._groups.setdefault(tuple(values), []).append(tape)
        self.size = len(nodes)

    def __call__(self, arguments: Sequence[Any]) -> list[tuple[_Owners, list[jax.Array]]]:
        """What tapes of the same outputs compute: which these are, and their outputs with leading axes (tapes, n).

        Inputs have leading axes (tapes, n), those after `batched` (tapes,): row k is of tape k.
        """
        values: dict[int, tuple[_Owners, Any]] = {i: (self._tapes, x) for i, x in enumerate(arguments)}
        for block in self._blocks:
            taken = [_rows(x, owners, block.owners) for owners, x in map(values.__getitem__, block.reads)]
            results = self._mapped(block, [bool(values[i][0]) for i in block.reads])(*taken)
            values.update((i, (block.owners, x)) for i, x in zip(block.gives, results, strict=True))
        n = arguments[0].shape[1]

        def of(tapes: _Owners, i: int) -> jax.Array:
            owners, x = values[i]
            x = _rows(x, owners, tapes) if owners else jnp.broadcast_to(x, (len(tapes), *x.shape))
            return x if i in self._batched else jnp.broadcast_to(x[:, None], (len(tapes), n, *x.shape[1:]))

        groups = [(tuple(tapes), outs) for outs, tapes in self._groups.items()]
        return [(tapes, [of(tapes, i) for i in outs]) for tapes, outs in groups]

    def _mapped(self, block: _Block, rows: Sequence[bool]) -> Any:
        """`block` over batch and rows, where what it reads has them."""
        batch, more = [0 if i in self._batched else None for i in block.reads], [0 if row else None for row in rows]
        function: Any = block
        if 0 in batch:
            gives = [0 if i in self._batched else None for i in block.gives]
            function = jax.vmap(function, in_axes=tuple(batch), out_axes=gives)
        if len(block.owners) > 1:
            return jax.vmap(function, in_axes=tuple(more))
        if not block.owners:
            return function
        one = function  # a row without an axis of its own is less to trace

        def alone(*arguments: Any) -> list[Any]:
            own = [x if axis is None else x[0] for x, axis in zip(arguments, more, strict=True)]
            return [x[None] for x in one(*own)]

        return alone


def _rows(x: Any, owners: _Owners, wanted: _Owners) -> Any:
    """The rows of `x` that belong to `wanted`, of those of `owners`; runs of neighbours are slices. What belongs to
    no tape is the same for all."""
    if owners in (wanted, ()):
        return x
    place = {owner: k for k, owner in enumerate(owners)}
    places = [place[k] for k in wanted]
    runs = [[i for _, i in run] for _, run in groupby(enumerate(places), key=lambda at: at[1] - at[0])]
    slices = [x[run[0] : run[-1] + 1] for run in runs]
    return slices[0] if len(slices) == 1 else jnp.concatenate(slices)


def _unite(tapes: Sequence[Tape], inputs: int) -> tuple[list[_Node], list[list[int]]]:
    """The different nodes of all tapes, each after those that it reads, and the outputs of every tape. Values are
    numbered: the inputs first, then what nodes give."""
    known, nodes, outs, count = dict[Any, _Node](), list[_Node](), dict[int, list[int]](), inputs
    owners = dict[int, list[int]]()  # of one tape under several numbers
    for number, tape in enumerate(tapes):
        owners.setdefault(id(tape), []).append(number)
    for numbers in owners.values():
        tape = tapes[numbers[0]]
        values = list(range(len(tape["ins"])))
        for op, params, operands, outputs in tape["nodes"]:
            reads = [values[i] for i in operands]
            order = sorted(reads) if op in COMMUTATIVE and len(reads) == 2 else reads
            key = (op, dumps(params), outputs, *order)
            if key not in known:
                known[key] = _Node(step_of(op, params), reads, range(count, count + outputs))
                nodes.append(known[key])
                count += outputs
            known[key].owners.update(numbers)
            values += known[key].outputs
        outs.update((number, [values[i] for i in tape["outs"]]) for number in numbers)
    return nodes, [outs[number] for number in range(len(tapes))]


def _blocks(nodes: Sequence[_Node], outs: Sequence[Sequence[int]], inputs: int) -> list[_Block]:
    """The nodes by the tapes that they belong to; those that no input reaches come first."""
    of = dict[int, _Owners]()  # of every value that a node gives
    members = dict[_Owners, list[_Node]]()
    for node in nodes:
        reached = any(i < inputs or of[i] for i in node.operands)
        owners = tuple(sorted(node.owners)) if reached else ()
        members.setdefault(owners, []).append(node)
        of.update((i, owners) for i in node.outputs)
    used = {i for own in outs for i in own}
    for owners, own in members.items():
        used |= {i for node in own for i in node.operands if i >= inputs and of[i] != owners}
    found = list[_Block]()
    for owners in sorted(members, key=lambda owners: (bool(owners), -len(owners))):
        own = members[owners]
        reads = dict.fromkeys(i for node in own for i in node.operands if i < inputs or of[i] != owners)
        gives = [i for node in own for i in node.outputs if i in used]
        found.append(_Block(owners, own, list(reads), gives))
    return found
