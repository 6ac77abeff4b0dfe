"""How many turns of a loop of a tape are compiled as one.

On a GPU or TPU every turn runs the kernels of its body anew, and one that advances the loop; turns that are compiled as
one are fused. Integers stay what they are, floats differ by rounding. A CPU launches nothing: a loop stays one there.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from jaxreward.programs.tape import BODIES, Tape, count

OPERATIONS = 1_200
"""The most operations of turns that are compiled as one: XLA's time to fuse them grows with their square
(docs/appendix/benchmarks.md)."""

_PLATFORM = ContextVar("platform", default="cpu")


@contextmanager
def compiling_for(platform: str) -> Iterator[None]:
    """Programs that are traced meanwhile, in this thread, are to run on `platform` (`cpu`, `gpu` or `tpu`)."""
    token = _PLATFORM.set(platform)
    try:
        yield
    finally:
        _PLATFORM.reset(token)


def platform() -> str:
    """What programs that are traced now, in this thread, are to run on."""
    return _PLATFORM.get()


def turns_at_once(length: int, body: Tape) -> int:
    """Turns, of the `length` of a `scan`, that are compiled as one; 1 around another loop, which launches its own."""
    if platform() == "cpu" or length < 2 or any(op in BODIES for op, *_ in body["nodes"]):
        return 1
    most = max(1, OPERATIONS // max(1, count(body)))
    trips = -(-length // most)
    return -(-length // trips)  # as even as can be: what is left over is compiled besides
