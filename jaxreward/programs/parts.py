"""A program as the parts that it selects: pieces of its observation, and the summands and terms of its reward.

An observation is a concatenation of pieces, a reward's value a sum. What stands before these is shared by many
programs, how they are put together is a program's own:

    observation = concatenate(pieces)        piece = scale * part
    value = summand + summand + ...          terms = {name: part}

A node that no lifted constant reaches is named by its digest, so that equal nodes of any programs have one name. A part
that constants reach, a weighted term for example, has these as inputs, numbered in the order in which it reads them:
parts of different weights are one.
"""

from __future__ import annotations

import hashlib
import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, NamedTuple

from jaxreward.programs.program import Program
from jaxreward.programs.spec import Spec
from jaxreward.programs.tape import BODIES, COMMUTATIVE, Tape, constant, dumps, input_digest, node_digest

_MOST_PIECES, _MOST_SUMMANDS = 512, 32

Value = str
"""A value that no constant reaches: the digest of a node and the number of its output, or the digest of an input. In a
part, `#i` is its i-th constant and `@k:j` output j of its k-th node."""


class Node(NamedTuple):
    """An operation of a tape, over values by name."""

    op: str
    params: dict[str, Any]
    operands: tuple[Value, ...]
    outputs: int


@dataclass(frozen=True)
class Part:
    """A value that a program selects: `nodes` are those that its `constants` reach, `out` is the value."""

    key: str
    nodes: tuple[Node, ...] = field(repr=False)
    out: Value
    constants: int


@dataclass(frozen=True)
class Half:
    """One function of a program: nodes without constants by digest, each after those that it reads, the parts, and the
    constants of the program that each of them reads, by position.

    A part occurs twice where a program has it with different constants. What constants reach stands in every part that
    reads it: `repeats` is whether any node does so twice.
    """

    nodes: dict[str, Node] = field(repr=False)
    parts: tuple[Part, ...]
    constants: tuple[tuple[int, ...], ...]
    repeats: bool


@dataclass(frozen=True)
class Parts:
    """A program taken apart.

    Attributes:
        observation: its parts are the pieces without their scales, in order.
        scales: what each piece multiplies its part by, a float32; 1 where it does not. Searches change these often.
        reward: the parts that `value` and `terms` select.
        value: the summands of the reward, in the order of summation.
        terms: a part for each term; -1 is the value itself.
    """

    observation: Half
    scales: tuple[float, ...]
    reward: Half
    value: tuple[int, ...]
    terms: tuple[int, ...]


def parts_of(program: Program) -> Parts:
    """The parts of a program, the same for all of one structure."""
    return _parts(_Key(program))


class _Key:
    """A program that equals those of its structure."""

    def __init__(self, program: Program) -> None:
        self.program, self._key = program, (program.structure, program.spec.leaves, program.spec.action)

    def __hash__(self) -> int:
        return hash(self._key)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Key) and self._key == other._key


@lru_cache(maxsize=2048)
def _parts(key: _Key) -> Parts:
    program = key.program
    state, transition = program.spec.labels()
    seen = _Reader(program.observation_tape, state)
    pieces, scales = zip(*map(seen.scaled, seen.pieces(program.observation_tape["outs"][0])), strict=True)
    observation = seen.half(pieces)
    tape = program.skeleton.tape if program.skeleton else program.reward_tape
    paid = _Reader(tape, transition)
    value, *terms = tape["outs"]
    summands = paid.summands(value, set(terms) - {value})
    selected = list(dict.fromkeys([*summands, *(v for v in terms if v != value)]))
    place = {v: k for k, v in enumerate(selected)} | ({value: -1} if value not in selected else {})
    return Parts(
        observation, scales, paid.half(selected), tuple(place[v] for v in summands), tuple(place[v] for v in terms)
    )


def input_names(spec: Spec) -> tuple[list[Value], list[Value]]:
    """What the inputs of observations and of rewards are called in `Node.operands`."""
    labels, structs = spec.labels(), spec.structs()
    observation, reward = (
        [input_digest(label, s.shape, s.dtype.name) for label, s in zip(own, of, strict=True)]
        for own, of in zip(labels, structs, strict=True)
    )
    return observation, reward


class _Reader:
    """A tape whose inputs after those with `labels` are constants."""

    def __init__(self, tape: Tape, labels: Sequence[str]) -> None:
        ins = tape["ins"]
        self.made = dict[int, tuple[list[Any], int]]()  # the node that gives a value, and which of its outputs it is
        self.constant = {i: i - len(labels) for i in range(len(labels), len(ins))}
        self.reached = set(self.constant)  # by a constant
        self.names = [input_digest(labels[i] if i < len(labels) else "constant", *spec) for i, spec in enumerate(ins)]
        self.firsts = list[tuple[int, list[Any]]]()  # every node, with the first value that it gives
        for node in tape["nodes"]:
            op, params, operands, outputs = node
            digest = node_digest(op, params, [self.names[i] for i in operands])
            first = len(self.names)
            self.firsts.append((first, node))
            for k in range(outputs):
                self.made[first + k] = (node, k)
                self.names.append(sys.intern(f"{digest}:{k}"))
            if not self.reached.isdisjoint(operands):
                self.reached.update(range(first, first + outputs))

    def pieces(self, value: int) -> list[int]:
        """The vectors whose concatenation `value` is; itself where they are too many."""
        found, todo = list[int](), [value]
        while todo:
            if len(found) + len(todo) > _MOST_PIECES:
                return [value]
            at = todo.pop()
            op, params, operands, _ = self.made[at][0] if at in self.made else ("", {}, [], 0)
            if op == "concatenate" and params["dimension"] == 0:
                todo += reversed(operands)
            else:
                found.append(at)
        return found

    def scaled(self, value: int) -> tuple[int, float]:
        """A vector as another one and the float32 that multiplies it: itself and 1 where it is no such product."""
        op, _, operands, _ = self.made[value][0] if value in self.made else ("", {}, [], 0)
        for scale, vector in (operands, operands[::-1]) if op == "mul" else ():
            name, params, *_ = self.made[scale][0] if scale in self.made else ("", {})
            if name == "const" and params["shape"] == [] and params["dtype"] == "float32":
                return vector, float(constant(params))
        return value, 1.0

    def summands(self, value: int, whole: set[int]) -> list[int]:
        """The values whose sum `value` is, but for those of `whole`, which stay as they are.

        Sums keep their order but for a + (b + c), which is summed as (b + c) + a. A sum of too many stays as it is.
        """
        found, todo = list[int](), [value]
        while todo:
            if len(found) + len(todo) > _MOST_SUMMANDS:
                return [value]
            at = todo.pop()
            if not self._adds(at, whole):
                found.append(at)
                continue
            first, second = self.made[at][0][2]
            if self._adds(second, whole) and not self._adds(first, whole):
                first, second = second, first
            todo += [second, first]
        return found

    def _adds(self, value: int, whole: set[int]) -> bool:
        return value in self.made and self.made[value][0][0] == "add" and value not in whole

    def half(self, values: Sequence[int]) -> Half:
        parts, needed, times = list[Part](), set[int](), Counter[int]()
        constants = list[tuple[int, ...]]()
        for value in values:
            part, numbers, reads, own = self._part(value)
            parts.append(part)
            constants.append(numbers)
            needed.update(reads)
            times.update(list(own))
        for first, node in reversed(self.firsts):
            if not needed.isdisjoint(range(first, first + node[3])):
                needed.update(node[2])
        nodes = dict[str, Node]()
        for first, (op, params, operands, outputs) in self.firsts:
            if not needed.isdisjoint(range(first, first + outputs)):
                digest = self.names[first].rpartition(":")[0]
                nodes[digest] = Node(op, params, tuple(self.names[i] for i in operands), outputs)
        return Half(nodes, tuple(parts), tuple(constants), max(times.values(), default=0) > 1)

    def _part(self, value: int) -> tuple[Part, tuple[int, ...], list[int], Iterable[int]]:
        """A value as a part, the constants that it reads, the values without constants that it reads, and those that
        its nodes give."""
        constants, own, reads = dict[int, int](), dict[int, str](), list[int]()
        nodes = list[Node]()

        def name(at: int) -> str | None:
            """None for a value whose node comes first."""
            if at in self.constant:
                return f"#{constants.setdefault(at, len(constants))}"
            if at not in self.reached:
                reads.append(at)
                return self.names[at]
            return own.get(at)

        todo = [value]
        while todo:
            at = todo[-1]
            if at in own or at in self.constant or at not in self.reached:
                todo.pop()
                continue
            (op, params, operands, outputs), k = self.made[at]
            if op in COMMUTATIVE and len(operands) == 2:
                operands = sorted(operands, key=lambda i: self.names[i])
            missing = [i for i in operands if i in self.reached and i not in self.constant and i not in own]
            if missing:
                todo += reversed(missing)
                continue
            todo.pop()
            nodes.append(Node(op, params, tuple(str(name(i)) for i in operands), outputs))
            own.update((at - k + j, f"@{len(nodes) - 1}:{j}") for j in range(outputs))
        out = str(name(value))
        text = dumps([[node_digest(n.op, n.params, n.operands) if n.op in BODIES else [n.op, n.params, n.operands]
                       for n in nodes], out])  # fmt: skip
        key = hashlib.sha256(text.encode()).hexdigest() if nodes else out
        return (
            Part(key, tuple(nodes), out, len(constants)),
            tuple(map(self.constant.__getitem__, constants)),
            reads,
            own,
        )
