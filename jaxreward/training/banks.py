"""Banks of parts that are kept over a search, so that new programs of known parts compile nothing.

They belong to the process, like the compiled functions that use them: no result depends on which programs a bank has
seen, up to rounding, and a resumed search makes its own.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from jaxreward.programs import Program
from jaxreward.programs.bank import Bank, flops_of, nodes_of
from jaxreward.programs.parts import Parts, parts_of

_AGE = 16
"""A structure that so many populations did not have leaves when a bank is made anew."""

_NODES = 2_000
"""Nodes that those of earlier populations may add at least; they may add as many as those of the present one."""

_EXPECTED_NODES = 6_000
"""Nodes of what is expected, at most: they are computed on all rows, so that later generations compile nothing."""

_LAUNCH_S, _FLOPS_PER_S = 3e-6, 1e13
"""What a kernel costs that does nothing, and what an accelerator computes of small kernels: both assumed, not measured.
"""

_OPERATIONS_PER_KERNEL = 4

_FLOPS = 20_000
"""Of a program that belongs into a bank whatever the number of rows: most of such a one is shared with others."""

_BYTES = 1 << 30
"""Memory that one array of a program may take on all rows."""


@dataclass
class _Kept:
    """The bank of a task, the programs whose parts are expected, the number of populations so far, and the last of them
    that had each structure."""

    bank: Bank | None = None
    expected: tuple[Program, ...] = ()
    populations: int = 0
    used: dict[tuple[str, str], tuple[int, Parts]] = field(default_factory=dict[tuple[str, str], tuple[int, Parts]])


class Banks:
    """A bank for the programs of each task; safe to use from several threads."""

    def __init__(self) -> None:
        self._kept, self._lock = dict[Any, _Kept](), threading.Lock()

    def expect(self, programs: Sequence[Program]) -> int:
        """Have the parts of these programs, the first ones if they are too many, in every bank of their task until
        `clear`: a search that builds its programs of them compiles once. They take the place of those expected before.
        Returns how many programs they are of.
        """
        nodes, fits = set[Any](), list[Program]()
        for program in programs:
            nodes |= nodes_of(parts_of(program))
            if len(nodes) > _EXPECTED_NODES:
                break
            fits.append(program)
        if not fits:
            return 0
        with self._lock:
            kept = self._kept.setdefault(_task_of(fits[0]), _Kept())
            if [p.digest for p in kept.expected] != [p.digest for p in fits]:
                kept.expected, kept.bank = tuple(fits), None
        return len(fits)

    def of(self, programs: Sequence[Program], rows: int) -> Bank | None:
        """A bank with the parts of `programs`, of which each would be applied to `rows` rows, but for those that are
        cheaper on their own; None where all are."""
        parts = {p.structure: parts_of(p) for p in programs if pays(p, rows)}
        if not parts:
            return None
        with self._lock:
            kept = self._kept.setdefault(_task_of(programs[0]), _Kept())
            kept.populations += 1
            kept.used |= {structure: (kept.populations, own) for structure, own in parts.items()}
            if kept.bank is None or not all(map(kept.bank.covers, parts.values())):
                kept.bank = self._made(kept, programs, list(parts.values()), rows)
            return kept.bank

    def _made(self, kept: _Kept, programs: Sequence[Program], parts: list[Parts], rows: int) -> Bank:
        """Of `parts` and of earlier ones, the latest first, as long as there is room, and of those expected."""
        kept.used = {s: (at, own) for s, (at, own) in kept.used.items() if kept.populations - at < _AGE}
        nodes = set[Any]().union(*map(nodes_of, parts))
        most = len(nodes) + max(len(nodes), _NODES)
        for _, own in sorted(kept.used.values(), key=lambda used: -used[0]):
            more = nodes | nodes_of(own)
            if len(more) > most:
                break
            nodes = more
            parts.append(own)
        expected = [parts_of(program) for program in kept.expected if pays(program, rows)]
        return Bank([*parts, *expected], programs[0].spec)

    def clear(self) -> None:
        with self._lock:
            self._kept.clear()


def _task_of(program: Program) -> Any:
    return program.spec.leaves, program.spec.action


def pays(program: Program, rows: int) -> bool:
    """Whether kernels saved are worth the arithmetic on `rows` rows, those of all programs. On its own a program takes
    a kernel for a few operations."""
    summary, parts = program.summary, parts_of(program)
    flops = flops_of(parts, program.spec) if parts.reward.repeats else summary.flops
    saved = _LAUNCH_S * summary.operations / _OPERATIONS_PER_KERNEL
    return flops <= max(_FLOPS, saved * _FLOPS_PER_S / rows) and 4 * summary.elements * rows <= _BYTES


BANKS = Banks()
