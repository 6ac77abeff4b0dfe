"""What a program may cost."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True)
class Limits:
    """Limits of a program and of the processes that check it.

    Attributes:
        source_bytes, syntax_nodes: size of the source.
        operations: nodes of both tapes, loop bodies included.
        equations: equations visited while a tape is built; caps helpers that call helpers that call ...
        features: observation size.
        terms: named reward terms; as many arrays may `debug` return.
        debug_numbers: numbers that `debug` returns, all its arrays together.
        flops, elements: per environment step, and of the largest intermediate array.
        constant_bytes: of one constant.
        iterations: of one `scan` or `fori_loop`; a `while_loop` is stopped after `while_iterations`, which no
            validation sample may reach.
        magnitude: of rewards and observations on sample states.
        wall_s, cpu_s, memory_mb: to execute and trace the source.
        verify_s: to compile and evaluate the tape.
        reply_bytes: what the worker may answer.
    """

    source_bytes: int = 32 * 1024
    syntax_nodes: int = 12_000
    operations: int = 4_096
    equations: int = 40_000
    features: int = 512
    terms: int = 32
    debug_numbers: int = 1_024
    flops: int = 2_000_000
    elements: int = 65_536
    constant_bytes: int = 1 << 20
    iterations: int = 100_000
    while_iterations: int = 256
    magnitude: float = 1e6
    wall_s: float = 20.0
    cpu_s: int = 8
    memory_mb: int = 768
    verify_s: float = 30.0
    reply_bytes: int = 8 << 20

    def as_json(self) -> dict[str, Any]:
        return asdict(self)
