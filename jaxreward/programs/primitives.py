"""The primitives that a tape may hold, by name, found in the public modules of the installed JAX."""

from __future__ import annotations

from functools import cache
from typing import Any

import jax
from jax.extend.core import primitives as extend

from jaxreward.kernels.linalg import compile_without_lapack
from jaxreward.programs.names import name_set

ELEMENTWISE = name_set(
    """
abs acos acosh asin asinh atan atanh cbrt ceil cos cosh erf erf_inv erfc exp exp2 expm1 floor is_finite lgamma digamma
log log1p log2 logistic neg not round rsqrt sign sin sinh sqrt square tan tanh population_count clz integer_pow add and
atan2 div eq ge gt le lt max min mul ne nextafter or pow rem shift_left shift_right_arithmetic shift_right_logical sub
xor le_to lt_to eq_to add_any one_minus_square polynomial clamp select_n convert_element_type bitcast_convert_type
reduce_precision
"""
)
REDUCTIONS = name_set(
    """
reduce_and reduce_max reduce_min reduce_or reduce_prod reduce_sum reduce_xor argmax argmin cumsum cumprod cummax cummin
cumlogsumexp
"""
)
MOVES = name_set(
    """
broadcast_in_dim concatenate dynamic_slice dynamic_update_slice gather iota pad reshape rev slice split squeeze stack
tile transpose unstack
"""
)
SCATTERS = {
    "scatter": "scatter", "scatter-add": "scatter_add", "scatter-mul": "scatter_mul", "scatter-min": "scatter_min",
    "scatter-max": "scatter_max", "scatter-sub": "scatter_sub",
}  # fmt: skip
"""Replayed through these functions of `jax.lax`: their primitives carry a function as a parameter."""
HEAVY = name_set("sort top_k dot_general lu triangular_solve cholesky conv_general_dilated")
PLAIN = ELEMENTWISE | REDUCTIONS | MOVES | HEAVY


@cache
def primitives() -> dict[str, Any]:
    """The objects of the allowed primitives by name; those that this JAX lacks are absent."""
    compile_without_lapack()  # the caller is about to trace or compile a program, which may solve and factor
    found: dict[str, Any] = {}
    for module in (extend, jax.lax):
        for name in dir(module):
            if name.endswith("_p"):
                primitive = getattr(module, name)
                known = getattr(primitive, "name", None)
                if known in PLAIN:
                    found.setdefault(known, primitive)
    return found


@cache
def replayable() -> frozenset[str]:
    """Names that may stand in a tape on this machine, control flow apart."""
    scatters = {name for name, function in SCATTERS.items() if hasattr(jax.lax, function)}
    return frozenset(primitives()) | scatters
