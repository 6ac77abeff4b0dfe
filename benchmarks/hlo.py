"""The text of an XLA module as computations of instructions, as far as counting needs it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import NamedTuple

_HEAD = re.compile(r"^(ENTRY )?%?([\w.\-]+) \(.*\) -> .*\{$")
_LINE = re.compile(r"^\s+(ROOT )?%?([\w.\-]+) = (.*)$")
_ARRAY = re.compile(r"(\w+)\[([\d,]*)\](\{[^}]*\})?")
_NAME = re.compile(r"%([\w.\-]+)")
_OPCODE = re.compile(r"\s*([\w\-]+)\(")
_VIEWS = frozenset({"bitcast", "reshape", "copy", "copy-start", "copy-done", "convert"})


class Instruction(NamedTuple):
    """One line of a computation: `inside` is the text between the parentheses, `rest` what follows them."""

    name: str
    shape: str
    opcode: str
    operands: tuple[str, ...]
    inside: str
    rest: str

    def called(self, *keys: str) -> list[str]:
        """Names of the computations that stand behind the attributes `keys`."""
        found = list[str]()
        for key in keys:
            for one, many in re.findall(rf"\b{key}=(?:%?([\w.\-]+)|\{{([^}}]*)\}})", self.rest):
                found += [one] if one else _NAME.findall(many)
        return found

    @property
    def target(self) -> str:
        """What a custom call calls."""
        found = re.search(r'custom_call_target="([^"]*)"', self.rest)
        return found[1] if found else ""


@dataclass(frozen=True)
class Computation:
    """Instructions in the order of their schedule, and which of them is the result."""

    instructions: tuple[Instruction, ...]
    root: Instruction

    @cached_property
    def by_name(self) -> dict[str, Instruction]:
        return {i.name: i for i in self.instructions}

    @cached_property
    def users(self) -> dict[str, list[Instruction]]:
        found: dict[str, list[Instruction]] = {}
        for instruction in self.instructions:
            for name in dict.fromkeys(instruction.operands):
                found.setdefault(name, []).append(instruction)
        return found

    def source(self, name: str) -> Instruction | None:
        """The instruction that a value comes from, seen through bitcasts and copies."""
        found = self.by_name.get(name)
        while found is not None and found.opcode in _VIEWS and found.operands:
            found = self.by_name.get(found.operands[0])
        return found


def parse(text: str) -> tuple[dict[str, Computation], str]:
    """The computations of a module by name, and the name of its entry."""
    found: dict[str, Computation] = {}
    entry, name, lines, root = "", "", list[Instruction](), 0
    for line in text.splitlines():
        if head := _HEAD.match(line):
            name, lines, root = head[2], [], -1
            entry = name if head[1] else entry
        elif line.startswith("}") and name:
            found[name], name = Computation(tuple(lines), lines[root]), ""
        elif name and (body := _LINE.match(line)):
            root = len(lines) if body[1] else root
            lines.append(_instruction(body[2], body[3]))
    return found, entry


def _instruction(name: str, text: str) -> Instruction:
    """`SHAPE opcode(operands), attributes`; the shape of several values is in parentheses."""
    shape_end = _closing(text, 0) if text.startswith("(") else text.index(" ")
    opcode = _OPCODE.match(text, shape_end)
    assert opcode is not None, f"no instruction of HLO: {name} = {text}"
    end = _closing(text, opcode.end() - 1)
    inside = text[opcode.end() : end - 1]
    kind = "fusion" if opcode[1] == "fusion-start" else opcode[1]
    return Instruction(name, text[:shape_end], kind, tuple(_NAME.findall(inside)), inside, text[end:])


def _closing(text: str, at: int) -> int:
    """The position after the parenthesis that closes the one at `at`."""
    depth = 0
    for position in range(at, len(text)):
        depth += (text[position] == "(") - (text[position] == ")")
        if depth == 0:
            return position + 1
    raise ValueError(f"no closing parenthesis: {text[at:]}")


# ---- shapes


def dims(shape: str) -> list[int]:
    """Of the first array of a shape."""
    found = _ARRAY.search(shape)
    return _sizes(found[2]) if found else []


def elements(shape: str) -> int:
    """Of all its arrays."""
    return sum(prod(_sizes(size)) for _, size, _ in _ARRAY.findall(shape))


def size_of(shape: str) -> float:
    """Bytes of all its arrays in the device's main memory: `S(1)` in a layout is the memory of a TPU's core."""
    return sum(prod(_sizes(size)) * _width(kind) for kind, size, layout in _ARRAY.findall(shape) if "S(" not in layout)


def _sizes(text: str) -> list[int]:
    return [int(size) for size in text.split(",") if size]


def _width(kind: str) -> float:
    """Bytes of a number: `f32` has 4, `bf16` 2, `pred` 1."""
    bits = re.match(r"[a-z]+(\d+)", kind)
    return int(bits[1]) / 8 if bits else float(kind == "pred")


def arguments(computation: Computation) -> Iterator[Instruction]:
    return (i for i in computation.instructions if i.opcode == "parameter")
