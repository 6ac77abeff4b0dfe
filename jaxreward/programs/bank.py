"""Programs as data: one computation of every part that they have, and tables that say which parts are whose.

`merged.Merged` compiles what is in common once, but every program remains code. Here the parts of all programs
(`parts`) are evaluated on all rows, by few large kernels, and a program is rows of tables: which column each of its
features is and what scales it, which parts its reward sums and reports, and the constants of each part. Tables are
inputs of the compiled function, so that any program whose parts the bank has needs no compilation, whichever programs
the bank was made of.

On all rows a part costs arithmetic for programs that do not have it, which a GPU has to spare where it pays for every
kernel that it launches. A compiler that fuses the selection with what is selected from spares much of it too: rows of a
program share their table, so that neighbouring threads take one branch. Rows of a program that does not select a part
may make anything of it, NaN included: parts are selected, never weighted.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxreward.programs.flops import measure
from jaxreward.programs.interpret import Step, step_of
from jaxreward.programs.limits import Limits
from jaxreward.programs.parts import Half, Node, Part, Parts, Value, input_names
from jaxreward.programs.program import Program
from jaxreward.programs.spec import Spec
from jaxreward.programs.tape import TapeError

_NONE, _WHOLE = -1, -2
_Slot = tuple[str, int]  # a part's key, and which of a program's occurrences of it with different constants


class Tables(NamedTuple):
    """C programs as data.

    Attributes:
        features: columns of the bank's features, int32 (C, width), -1 where a program has no more.
        scales: what the features are multiplied by, float32 (C, width), 1 where a program has no more.
        value: slots of the summands of the reward, int32 (C, summands), -1 likewise.
        terms: slots of the terms, int32 (C, terms), -1 likewise, and -2 for the value itself.
        constants: of the parts of rewards, float32 (C, columns); 0 for those that a program does not have.
    """

    features: Any
    scales: Any
    value: Any
    terms: Any
    constants: Any


class _Union:
    """The nodes and parts of several halves as one function of a row."""

    def __init__(self, halves: Iterable[Half], inputs: Sequence[Value]) -> None:
        self.inputs = list(inputs)
        nodes = dict[str, Node]()
        self.slots = dict[_Slot, tuple[Part, int]]()  # with its first column of constants
        self.columns = 0
        for half in halves:
            nodes |= {digest: node for digest, node in half.nodes.items() if digest not in nodes}
            for slot, part in zip(slots_of(half), half.parts, strict=True):
                if slot not in self.slots:
                    self.slots[slot] = part, self.columns
                    self.columns += part.constants
        self.size = len(nodes) + sum(len(part.nodes) for part, _ in self.slots.values())
        self._steps = [(digest, node, step_of(node.op, node.params)) for digest, node in nodes.items()]
        self._own: list[tuple[Part, int, list[Step]]] = [
            (part, first, [step_of(node.op, node.params) for node in part.nodes]) for part, first in self.slots.values()
        ]

    def __call__(self, constants: Sequence[Any], arrays: Sequence[Any]) -> list[Any]:
        """Every part of one row of inputs."""
        values: dict[Value, Any] = dict(zip(self.inputs, arrays, strict=True))
        for digest, node, step in self._steps:
            apply_node(values, digest, node, step)
        found = list[Any]()
        for part, first, steps in self._own:
            own: dict[Value, Any] = {f"#{i}": constants[first + i] for i in range(part.constants)}
            for k, (node, step) in enumerate(zip(part.nodes, steps, strict=True)):
                given = {i: own[i] if i in own else values[i] for i in node.operands}
                apply_node(given, f"@{k}", node, step)
                own |= {name: x for name, x in given.items() if name.startswith("@")}
            found.append(own[part.out] if part.out in own else values[part.out])
        return found


def apply_node(values: dict[Value, Any], name: str, node: Node, step: Step) -> None:
    """Add what a node computes from `values` to them, output k as `name:k`; `step` is the node as a function."""
    results = step([values[i] for i in node.operands])
    if len(results) != node.outputs:
        raise TapeError(f"malformed tape: {node.op} has {len(results)} outputs, not {node.outputs}")
    values.update((f"{name}:{k}", x) for k, x in enumerate(results))


def slots_of(half: Half) -> list[_Slot]:
    """The slots of its parts. What no constant reaches is one, however often a program has it."""
    found, times = list[_Slot](), Counter[str]()
    for part in half.parts:
        found.append((part.key, times[part.key]))
        times[part.key] += part.constants > 0
    return found


def nodes_of(parts: Parts) -> set[Any]:
    """Names of all nodes that a bank needs for a program."""
    of_parts = {(part.key, k) for part in parts.reward.parts for k in range(len(part.nodes))}
    return {*parts.observation.nodes, *parts.reward.nodes, *of_parts}


def flops_of(parts: Parts, spec: Spec) -> int:
    """Arithmetic of a program in a bank, a row: more than its own where nodes stand in several of its parts."""
    found = 0
    for half, names, structs in zip((parts.observation, parts.reward), input_names(spec), spec.structs(), strict=True):
        union = _Union([half], names)
        numbers = [jax.ShapeDtypeStruct((), jnp.float32)] * union.columns
        found += measure(jax.make_jaxpr(union)(numbers, structs), Limits()).flops
    return found


class Bank:
    """The parts of programs of one task.

    Attributes:
        key: equal for banks that are compiled to the same.
        size: number of nodes.
        features: number of columns that features are selected from.
        constants: number of columns of constants.
    """

    def __init__(self, parts: Sequence[Parts], spec: Spec) -> None:
        names = input_names(spec)
        self._spec = spec
        self._seen = _Union((p.observation for p in parts), names[0])
        self._paid = _Union((p.reward for p in parts), names[1])
        shapes = jax.eval_shape(lambda *x: self._seen((), x), *spec.structs()[0])
        ends = np.cumsum([x.shape[0] for x in shapes])
        columns = np.split(np.arange(ends[-1]), ends[:-1])
        self._columns = dict(zip(self._seen.slots, columns, strict=True))
        self.features, self.constants = int(ends[-1]), self._paid.columns
        self._places = {slot: k for k, slot in enumerate(self._paid.slots)}
        self.size = self._seen.size + self._paid.size
        text = repr((list(self._seen.slots), list(self._paid.slots)))
        self.key = hashlib.sha256(text.encode()).hexdigest()

    def covers(self, parts: Parts) -> bool:
        """Whether it has every part."""
        return self._columns.keys() >= set(slots_of(parts.observation)) and (
            self._places.keys() >= set(slots_of(parts.reward))
        )

    def tables(
        self, parts: Sequence[Parts], programs: Sequence[Program], width: int, terms: int, summands: int
    ) -> Tables:
        """`programs` with these parts as data, in tables of these widths; nothing in the rows of those that it does not
        cover."""
        count = len(programs)
        tables = Tables(
            np.full((count, width), _NONE, np.int32), np.ones((count, width), np.float32),
            np.full((count, summands), _NONE, np.int32), np.full((count, terms), _NONE, np.int32),
            np.zeros((count, self.constants), np.float32),
        )  # fmt: skip
        for row, (own, program) in enumerate(zip(parts, programs, strict=True)):
            if not self.covers(own):
                continue
            columns = [self._columns[slot] for slot in slots_of(own.observation)]
            tables.features[row, : sum(map(len, columns))] = np.concatenate(columns)
            scales = np.repeat(np.asarray(own.scales, np.float32), [len(c) for c in columns])
            tables.scales[row, : len(scales)] = scales
            slots = slots_of(own.reward)
            places = [self._places[slot] for slot in slots]
            tables.value[row, : len(own.value)] = [places[k] for k in own.value]
            tables.terms[row, : len(own.terms)] = [places[k] if k >= 0 else _WHOLE for k in own.terms]
            for slot, which in zip(slots, own.reward.constants, strict=True):
                first = self._paid.slots[slot][1]
                tables.constants[row, first : first + len(which)] = program.constants[list(which)]
        return tables

    def observe(self, tables: Tables, arrays: Sequence[jax.Array]) -> jax.Array:
        """Inputs with leading axes (C, n) to observations float32 (C, n, width)."""
        shape = arrays[0].shape[:2]
        rows = jax.vmap(lambda *x: _stacked(self._seen((), x)), out_axes=1)(*map(_flat, arrays))
        found = _selected(rows.reshape(-1, *shape), tables.features) * tables.scales[:, :, None]
        return jnp.moveaxis(found, 1, -1)

    def reward(self, tables: Tables, arrays: Sequence[jax.Array]) -> tuple[jax.Array, jax.Array]:
        """Inputs with leading axes (C, n) to rewards (C, n) and terms (C, n, terms)."""
        C, n = arrays[0].shape[:2]
        constants = jnp.repeat(tables.constants.T, n, axis=1)
        rows = jax.vmap(lambda c, *x: _stacked(self._paid(c, x)), in_axes=(1, *[0] * len(arrays)), out_axes=1)(
            constants, *map(_flat, arrays)
        )
        n_value = tables.value.shape[1]
        found = _selected(rows.reshape(-1, C, n), jnp.concatenate([tables.value, tables.terms], 1))
        found = jax.lax.optimization_barrier(found)  # or every use of it would select again
        total = found[:, 0]
        for k in range(1, n_value):
            total = total + found[:, k]
        terms = jnp.where((tables.terms == _WHOLE)[:, :, None], total[:, None], found[:, n_value:])
        return total, jnp.moveaxis(terms, 1, -1)


def _flat(x: jax.Array) -> jax.Array:
    return x.reshape(-1, *x.shape[2:])


def _stacked(parts: Sequence[Any]) -> jax.Array:
    return jnp.concatenate([jnp.atleast_1d(x) for x in parts])


def _selected(rows: jax.Array, table: jax.Array) -> jax.Array:
    """Rows (F, C, n) by a table (C, k), (C, k, n); 0 where the table is negative."""
    programs = jnp.arange(table.shape[0])[:, None]
    found = rows.at[jnp.maximum(table, 0), programs].get(mode="promise_in_bounds")
    return jnp.where((table >= 0)[:, :, None], found, 0.0)
