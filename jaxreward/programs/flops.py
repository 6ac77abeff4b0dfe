"""What a tape costs, from the shapes of its re-traced equations."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from jax.extend import core

from jaxreward.programs.limits import Limits
from jaxreward.programs.names import name_set
from jaxreward.programs.primitives import ELEMENTWISE, HEAVY, MOVES, REDUCTIONS


@dataclass(frozen=True)
class Cost:
    """Per environment step.

    Attributes:
        flops: arithmetic, and one for each element moved.
        elements: of the largest intermediate array.
        equations: as compiled, loop bodies once.
        depth: longest chain of operations that move elements between two that end a fusion.
    """

    flops: int = 0
    elements: int = 0
    equations: int = 0
    depth: int = 0

    def __add__(self, other: Cost) -> Cost:
        return Cost(
            self.flops + other.flops,
            max(self.elements, other.elements),
            self.equations + other.equations,
            max(self.depth, other.depth),
        )


_FREE = name_set("reshape squeeze transpose broadcast_in_dim iota")


def measure(jaxpr: Any, limits: Limits) -> Cost:
    """The cost of a jaxpr, without running or compiling it."""
    jaxpr = getattr(jaxpr, "jaxpr", jaxpr)
    flops = elements = equations = deepest = 0
    depth: dict[Any, int] = {}
    for equation in jaxpr.eqns:
        name = equation.primitive.name
        inner = [] if name.startswith("scatter") else list(_bodies(equation))
        below = max((depth.get(v, 0) for v in equation.invars if not isinstance(v, core.Literal)), default=0)
        out = sum(math.prod(v.aval.shape) for v in equation.outvars)
        elements = max([elements, *(math.prod(v.aval.shape) for v in equation.outvars)])
        if inner:
            turns = {"scan": equation.params.get("length", 1), "while": limits.while_iterations}.get(name, 1)
            for cost in (measure(body, limits) for body in inner):
                flops += turns * max(cost.flops, 1)
                elements, equations = max(elements, cost.elements), equations + cost.equations + 1
                deepest = max(deepest, cost.depth)
            flops += out
            below = 0
        else:
            equations += 1
            flops += _flops(name, equation, out)
            if name in MOVES and name not in _FREE:
                below += 1
            elif name in REDUCTIONS or name in HEAVY or name.startswith("scatter"):
                below = 0
        deepest = max(deepest, below)
        depth.update(dict.fromkeys(equation.outvars, below))
    return Cost(flops, elements, equations, deepest)


def _flops(name: str, equation: Any, out: int) -> int:
    shapes = [v.aval.shape for v in equation.invars]
    read = sum(math.prod(s) for s in shapes)
    if name == "dot_general":
        (contracted, _), _ = equation.params["dimension_numbers"]
        return 2 * out * math.prod(shapes[0][d] for d in contracted)
    if name == "conv_general_dilated":
        channels = equation.params["dimension_numbers"].rhs_spec[0]
        return 2 * out * math.prod(shapes[1]) // max(shapes[1][channels], 1)
    if name in ("sort", "top_k"):
        return int(read * max(1.0, math.log2(max(2, read))))
    if name in ("lu", "triangular_solve", "cholesky"):
        return read * max(shapes[0][-1], 1)
    return out if name in ELEMENTWISE or name in MOVES else max(out, read)


def _bodies(equation: Any) -> Any:
    for value in equation.params.values():
        for item in value if isinstance(value, tuple | list) else (value,):
            if isinstance(item, core.ClosedJaxpr | core.Jaxpr):
                yield item
