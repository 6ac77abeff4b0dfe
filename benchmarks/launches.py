"""What one run of a compiled program launches, moves and computes, read from XLA's optimised HLO.

A scheduled module is a list of kernels: every instruction of its entry computation that is not free is one, and a loop
runs those of its body once a turn. XLA's own `cost_analysis` counts the body of a loop once, and a GPU compiler
without its device has none; so this counts.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field
from math import prod

from benchmarks.hlo import Computation, Instruction, arguments, dims, elements, parse, size_of

_FREE = frozenset({
    "parameter", "constant", "get-tuple-element", "tuple", "bitcast", "after-all", "partition-id", "replica-id",
    "opt-barrier", "optimization-barrier", "add-dependency", "domain",
})  # fmt: skip
_CUBLAS = "__cublas$"
_FREE_CALLS = frozenset({"AllocateBuffer", "AssumeGatherIndicesInBound", "Sharding"})
_MOVES = _FREE | {
    "broadcast", "reshape", "transpose", "slice", "dynamic-slice", "dynamic-update-slice", "concatenate", "pad",
    "gather", "iota", "copy", "copy-start", "convert", "bitcast-convert", "reverse", "custom-call",
}  # fmt: skip
"""Opcodes without arithmetic, or whose arithmetic is counted apart."""
_TRIPS = re.compile(r'known_trip_count":\s*\{"n":"(\d+)"')


@dataclass
class Cost:
    """Of one run.

    Attributes:
        kinds: launches by kind: opcodes, and `fusion kLoop` and the like. Loops of unknown length add none.
        unknown: launches of a turn of such a loop, and how often loops of so many are entered.
        bytes: that kernels read and write. Of operands that a kernel takes slices of, the slices count.
        flops: of products, and one for each element of other arithmetic.

    Bytes and flops count one turn of a loop of unknown length.
    """

    kinds: Counter[str] = field(default_factory=Counter)
    unknown: Counter[int] = field(default_factory=Counter)
    bytes: float = 0.0
    flops: float = 0.0

    @property
    def launches(self) -> int:
        return sum(self.kinds.values())

    @property
    def unknown_turn(self) -> int:
        """Launches if every loop of unknown length took one turn whenever it is entered."""
        return sum(launches * times for launches, times in self.unknown.items())

    def add(self, other: Cost, times: int = 1) -> None:
        for kind, count in other.kinds.items():
            self.kinds[kind] += count * times
        for launches, count in other.unknown.items():
            self.unknown[launches] += count * times
        self.bytes += other.bytes * times
        self.flops += other.flops * times


class Module:
    """An optimised HLO module.

    Attributes:
        instructions: of all its computations.
    """

    def __init__(self, text: str, scalars: bool = True) -> None:
        """`scalars`: whether an instruction that yields a single number is a launch. On a TPU it is none: the core has
        a unit for these."""
        self._computations, self._entry = parse(text)
        self._scalars, self._costs = scalars, dict[str, Cost]()
        self.instructions = sum(len(c.instructions) for c in self._computations.values())

    def cost(self) -> Cost:
        """Of one run."""
        return self._cost(self._entry)

    def _cost(self, name: str) -> Cost:
        if name not in self._costs:
            cost, computation = Cost(), self._computations[name]
            for instruction in computation.instructions:
                self._count(cost, instruction, computation)
            self._costs[name] = cost
        return self._costs[name]

    def _count(self, cost: Cost, i: Instruction, of: Computation) -> None:
        """Add what an instruction costs."""
        if i.opcode in _FREE or i.opcode.endswith(("-done", "-update")) or i.target in _FREE_CALLS:
            return
        if i.opcode == "while":
            self._count_loop(cost, i, of)
        elif i.opcode in ("call", "async-start"):
            for name in i.called("to_apply", "calls"):
                cost.add(self._cost(name))
        elif i.opcode == "conditional":
            names = i.called("branch_computations", "true_computation", "false_computation")
            cost.add(max((self._cost(name) for name in names), key=lambda c: c.launches))
            cost.kinds["conditional"] += 1
        elif self._scalars or elements(i.shape) > 1:
            cost.kinds[_kind(i)] += 1
            cost.bytes += self._bytes(i, of)
            cost.flops += self._flops(i, of)

    def _count_loop(self, cost: Cost, i: Instruction, of: Computation) -> None:
        turn, trips = self._cost(i.called("body")[0]), self._trips(i, of)
        if trips is not None:
            cost.add(turn, trips)
            return
        test = self._cost(i.called("condition")[0])
        entered = Cost(unknown=Counter(turn.unknown), bytes=turn.bytes, flops=turn.flops)
        entered.unknown[turn.launches + test.launches] += 1
        cost.add(entered)

    # ---- loops

    def _trips(self, loop: Instruction, of: Computation) -> int | None:
        """Turns of a loop: as XLA wrote them down, or where it counts by ones between constants; else None."""
        if known := _TRIPS.search(loop.rest):
            return int(known[1])
        condition = self._computations[loop.called("condition")[0]]
        test, operands = self._operation(condition.root, condition)
        if test.opcode != "compare" or "direction=LT" not in test.rest or None in operands:
            return None
        counter, limit = operands
        assert counter is not None and limit is not None
        place = re.search(r"index=(\d+)", counter.rest)
        if place is None or counter.opcode != "get-tuple-element" or limit.opcode != "constant":
            return None
        start = self._element(loop.operands[0], int(place[1]), of)
        body = self._computations[loop.called("body")[0]]
        following = self._element(body.root.name, int(place[1]), body)
        if start is None or start.opcode != "constant" or following is None:
            return None
        step, added = self._operation(following, body)
        if step.opcode != "add" or "1" not in [x.inside for x in added if x is not None and x.opcode == "constant"]:
            return None
        return max(0, int(limit.inside) - int(start.inside))

    def _element(self, name: str, index: int, of: Computation) -> Instruction | None:
        """What an element of a tuple comes from."""
        whole = of.source(name)
        if whole is None or whole.opcode != "tuple":
            return None
        return of.source(whole.operands[index])

    def _operation(self, i: Instruction, of: Computation) -> tuple[Instruction, list[Instruction | None]]:
        """An operation and what its operands come from; that of a fusion is its root."""
        found = of.source(i.name) or i
        if found.opcode != "fusion":
            return found, [of.source(name) for name in found.operands]
        inner = self._computations[found.called("calls")[0]]
        operands = [inner.source(name) for name in inner.root.operands]
        return inner.root, [
            of.source(found.operands[int(x.inside)]) if x is not None and x.opcode == "parameter" else x
            for x in operands
        ]

    # ---- bytes and arithmetic of a kernel

    def _bytes(self, i: Instruction, of: Computation) -> float:
        inner = self._computations[i.called("calls")[0]] if i.opcode == "fusion" else None
        if inner is not None:
            results = inner.root.operands if inner.root.opcode == "tuple" else (inner.root.name,)
            return sum(_read(p, inner) for p in arguments(inner)) + sum(_written(x, inner) for x in results)
        if i.opcode == "copy-start":
            return size_of(i.shape)  # a tuple that names its target and its source
        read = sum(size_of(of.by_name[x].shape) for x in i.operands if x in of.by_name)
        if i.target.startswith(_CUBLAS):
            return 4.0 * prod(dims(i.shape)) + read  # its second result is memory to work in
        if i.opcode in ("dynamic-slice", "slice", "gather"):
            return 2.0 * size_of(i.shape)
        if i.opcode == "dynamic-update-slice":
            return 2.0 * size_of(of.by_name[i.operands[1]].shape)
        return size_of(i.shape) + read

    def _flops(self, i: Instruction, of: Computation) -> float:
        if i.opcode == "fusion":
            inner = self._computations[i.called("calls")[0]]
            return sum(self._flops(x, inner) for x in inner.instructions)
        if i.opcode == "dot" or i.target.startswith(_CUBLAS):
            return 2.0 * prod(dims(i.shape)) * _contracted(i, of)
        if i.opcode == "convolution":  # a product on a TPU
            kernel, layout = dims(of.by_name[i.operands[1]].shape), re.search(r"dim_labels=\w+?_(\w+)->", i.rest)
            return 2.0 * elements(i.shape) * (kernel[layout[1].index("i")] if layout else 1)
        if i.opcode in ("reduce", "reduce-window"):
            return float(elements(of.by_name[i.operands[0]].shape))
        return 0.0 if i.opcode in _MOVES else float(elements(i.shape))


def _read(parameter: Instruction, of: Computation) -> float:
    """Bytes that a fusion reads of a parameter."""
    total, names = 0.0, [parameter.name]
    while names:
        name = names.pop()
        for user in of.users.get(name, ()):
            if user.opcode in ("bitcast", "reshape"):
                names.append(user.name)
            elif user.opcode in ("dynamic-slice", "slice", "gather") and user.operands[0] == name:
                total += size_of(user.shape)
            elif not (user.opcode == "dynamic-update-slice" and user.operands[0] == name):
                return size_of(parameter.shape)
    return min(total, size_of(parameter.shape))


def _written(name: str, of: Computation) -> float:
    """Bytes of a result of a fusion; one that updates a slice in place writes the slice."""
    found = of.by_name[name]
    while found.opcode in ("bitcast", "reshape"):
        found = of.by_name[found.operands[0]]
    if found.opcode == "dynamic-update-slice":
        return size_of(of.by_name[found.operands[1]].shape)
    return 0.0 if found.opcode == "parameter" else size_of(found.shape)


def _contracted(i: Instruction, of: Computation) -> int:
    """How many products an element of a matrix product sums."""
    said = re.search(r'lhs_contracting_dim(?:s=\{|ensions":\[)([^\]}]*)', i.rest)
    left = dims(of.by_name[i.operands[0]].shape)
    return prod(left[int(k)] for k in re.findall(r"\d+", said[1])) if said else 1


def _kind(i: Instruction) -> str:
    if i.opcode == "fusion":
        kind = re.search(r"kind=(\w+)", i.rest)
        return f"fusion {kind[1]}" if kind else i.opcode
    return f"custom-call {i.target}" if i.opcode == "custom-call" else i.opcode
