"""Unused computation of a program: it is on no tape, but would be computed where the source is used directly."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax

from jaxreward.programs.flops import measure
from jaxreward.programs.interpret import replay
from jaxreward.programs.limits import Limits
from jaxreward.programs.tape import Tape, TapeError

_TIMES = 16
"""How far beyond its limits a program may be as written, where much is left out or computed once."""


def refuse_unused(traces: Sequence[tuple[Any, Tape, Sequence[Any]]], limits: Limits) -> None:
    """Require that a program is not far beyond its limits by computation that it does not use.

    Args:
        traces: the jaxpr of each entry point, its tape and its inputs. One may use what another does not.

    Raises:
        TapeError: it is. What is too large on a tape is left to `validate`, whose message is more precise.
    """
    if not any(_over(closed, limits, _TIMES) for closed, _, _ in traces):
        return
    if not any(_over(jax.make_jaxpr(replay(tape, limits))(*inputs), limits) for _, tape, inputs in traces):
        hint = "remove what is not used, and compute with smaller arrays"
        raise TapeError("it computes too much that is not used", None, hint, "limits")


def _over(closed: Any, limits: Limits, times: int = 1) -> bool:
    cost = measure(closed, limits)
    return cost.elements > times * limits.elements or cost.flops > times * limits.flops
