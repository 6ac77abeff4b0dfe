"""Numbers of NumPy in a function: where Python needs one of its own, and the arithmetic of constants alone.

JAX takes a number of NumPy for an array of its dtype, and one of Python for whatever the other operand is. A program
has no NumPy, so the text has arrays of JAX in its place, except where only a plain number can stand: in `range`, in a
shape, a slice, the test of an `if`.
"""

from __future__ import annotations

import ast
import builtins
import operator
from collections.abc import Callable, Mapping
from types import FunctionType
from typing import Any, Literal

from jaxreward.function_source.outside import NOTHING, attribute, core_of, package_of, top
from jaxreward.function_source.reader import FunctionText, Reference, UnreadableFunction, looked_up, read

Need = Literal["", "index", "range", "python"]
"""Where a number stands: elsewhere; as an index, or as the bound of an array, whose dtype is that of the number, for
which one of Python may be the same; or where only one of Python can, together with what it is combined with."""
_ORDER: tuple[Need, ...] = ("", "index", "range", "python")

_TRANSPARENT = (ast.UnaryOp, ast.Tuple, ast.List, ast.Starred)
_ARITHMETIC = (ast.BinOp, ast.Compare, ast.BoolOp)
_BUILTINS = {"range", "int", "float", "bool"}
_KEYWORDS = {
    "axis", "axes", "axis1", "axis2", "shape", "newshape", "keepdims", "num", "num_classes", "length", "size", "ndim",
    "k", "dimension", "reverse", "unroll", "total_repeat_length", "descending", "stable", "ddof",
}  # fmt: skip
"""Keywords of JAX's functions whose values must be known before anything is computed."""
_SIZES = {
    "reshape": range(4), "zeros": range(1), "ones": range(1), "full": range(1), "eye": range(2), "identity": range(1),
    "tri": range(3), "broadcast_to": range(1, 2), "one_hot": range(1, 2), "tile": range(1, 2), "linspace": range(2, 3),
    "expand_dims": range(1, 2), "moveaxis": range(1, 3), "swapaxes": range(1, 3), "top_k": range(1, 2),
    "fori_loop": range(2), "dynamic_slice": range(2, 3), "iota": range(1, 2),
}  # fmt: skip
"""Functions of JAX, and their positional arguments of this kind."""

_COMPUTE: dict[type, Callable[..., Any]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv, ast.Mod: operator.mod, ast.Pow: operator.pow, ast.MatMult: operator.matmul,
    ast.BitAnd: operator.and_, ast.BitOr: operator.or_, ast.BitXor: operator.xor,
    ast.UAdd: operator.pos, ast.USub: operator.neg, ast.Invert: operator.invert,
}  # fmt: skip
"""Operators of which constants are computed."""


class Places:
    """Where the numbers of one function stand."""

    def __init__(self, text: FunctionText, outer: frozenset[Any] = frozenset()) -> None:
        self.text = text
        self.seen = outer | {text.function.__code__}
        self.asked: set[str] = set()

    def is_plain(self, node: ast.expr, value: Any) -> bool:
        """Whether numbers of Python may stand for those of NumPy in `value` here: they must, or are no difference."""
        return _allows(self._need(node), value)

    def takes_plain(self, variable: str, value: Any) -> bool:
        """Whether this holds wherever a variable, or a parameter, of the function is read."""
        return _allows(self._of_variable(variable), value)

    def _of_variable(self, variable: str) -> Need:
        if variable in self.asked:
            return ""
        self.asked.add(variable)
        nodes = (n for n in ast.walk(self.text.node) if isinstance(n, ast.Name) and n.id == variable)
        needs: set[Need] = {self._need(node) for node in nodes if isinstance(node.ctx, ast.Load)}
        self.asked.discard(variable)
        return min(needs, key=_ORDER.index) if needs and not {"index", "range"} <= needs else ""

    def _need(self, node: ast.AST) -> Need:
        combined = False
        while True:
            above = self.text.parents.get(node)
            inner = isinstance(above, ast.Subscript) and node is above.value  # an entry of a tuple or a list
            arithmetic = isinstance(above, _ARITHMETIC) or self._is_choice(above, node)
            if above is None or not (inner or arithmetic or isinstance(above, _TRANSPARENT)):
                break
            combined, node = combined or arithmetic, above
        need = self._of_place(above, node)
        return "" if combined and need == "index" else need

    def _is_choice(self, above: ast.AST | None, node: ast.AST) -> bool:
        """Whether this is an argument of Python's own `min`, `max` or `abs`."""
        return isinstance(above, ast.Call) and node in above.args and self._builtin(above.func) in ("min", "max", "abs")

    def _of_place(self, above: ast.AST | None, node: ast.AST) -> Need:
        if isinstance(above, ast.Slice | ast.FormattedValue):
            return "python"
        if isinstance(above, ast.Subscript):
            return "index"
        if isinstance(above, ast.If | ast.IfExp | ast.Assert):
            return "python" if node is above.test else ""
        if isinstance(above, ast.comprehension):
            return "python" if node in above.ifs else self._of_target(above.target)
        if isinstance(above, ast.For):
            return self._of_target(above.target)
        if isinstance(above, ast.Assign) and len(above.targets) == 1:
            return self._of_target(above.targets[0])
        if isinstance(above, ast.keyword):
            return self._of_keyword(above)
        if isinstance(above, ast.Call) and node in above.args:
            return self._of_argument(above, above.args.index(node))  # type: ignore[arg-type]
        return ""

    def _of_target(self, target: ast.expr) -> Need:
        return self._of_variable(target.id) if isinstance(target, ast.Name) else ""

    # ---- calls

    def _of_argument(self, call: ast.Call, index: int) -> Need:
        if self._builtin(call.func) in _BUILTINS:
            return "python"
        callee = self._own(call.func)
        if callee is not None:
            arguments = [*callee.text.node.args.posonlyargs, *callee.text.node.args.args]
            starred = any(isinstance(a, ast.Starred) for a in call.args)
            return callee._of_variable(arguments[index].arg) if index < len(arguments) and not starred else ""
        name, method = self._of_jax(call.func)
        if name == "arange" and not method:
            return "range"
        return "python" if index + method in _SIZES.get(name, ()) else ""

    def _of_keyword(self, keyword: ast.keyword) -> Need:
        call = self.text.parents[keyword]
        if not isinstance(call, ast.Call) or keyword.arg is None:
            return ""
        callee = self._own(call.func)
        if callee is not None:
            return callee._of_variable(keyword.arg)
        return "python" if keyword.arg in _KEYWORDS and self._of_jax(call.func)[0] else ""

    def _is_outside(self, function: ast.expr) -> bool:
        while isinstance(function, ast.Attribute):
            function = function.value
        return isinstance(function, ast.Name) and function.id not in self.text.bound

    def _value(self, function: ast.expr) -> Any:
        try:
            return looked_up(self.text, function) if self._is_outside(function) else None
        except UnreadableFunction:
            return None

    def _builtin(self, function: ast.expr) -> str:
        name = function.id if isinstance(function, ast.Name) else ""
        return name if name and self._value(function) is getattr(builtins, name, self) else ""

    def _own(self, function: ast.expr) -> Places | None:
        """Those of a function of the user's that is called."""
        value = core_of(self._value(function))
        if not isinstance(value, FunctionType) or package_of(value) is not None or value.__code__ in self.seen:
            return None
        try:
            return Places(read(value), frozenset(self.seen))
        except UnreadableFunction:
            return None

    def _of_jax(self, function: ast.expr) -> tuple[str, bool]:
        """The name of a function of JAX, or of a method of a variable, and whether it is a method."""
        if isinstance(function, ast.Attribute) and not self._is_outside(function):
            return function.attr, True
        value = self._value(function)
        return (str(value.__name__), False) if top(getattr(value, "__module__", "") or "") == "jax" else ("", False)


def _allows(need: Need, value: Any) -> bool:
    import numpy as np

    if need == "range" and isinstance(value, np.generic):
        return value.dtype.name in ("int32", "int64", "float32", "float64")
    return need in ("index", "python")


def alone(text: FunctionText) -> dict[ast.expr, Any]:
    """The largest expressions of constants alone that NumPy computes with, and what it gives for them."""
    values = dict(filter(None, (_constant(text, reference) for reference in text.references)))
    found = dict[ast.expr, Any]()
    for node, value in values.items():
        while _is_of_numpy(value) and isinstance(above := text.parents.get(node), ast.BinOp | ast.UnaryOp):
            value = _computed(above, values)
            node = node if value is None else above
        if isinstance(node, ast.BinOp | ast.UnaryOp) and node not in found:
            found[node] = _computed(node, values)
    return found


def _constant(text: FunctionText, reference: Reference) -> tuple[ast.expr, Any] | None:
    """Where a number, or an array of NumPy, is read, and its value."""
    node, value = reference.name, text.value(reference.name.id)
    for above in reference.attributes:
        if type(value) in (int, float, bool) or _is_of_numpy(value) or value is NOTHING:
            break
        node, value = above, attribute(value, above.attr)
    return (node, value) if type(value) in (int, float, bool) or _is_of_numpy(value) else None


def _is_of_numpy(value: Any) -> bool:
    """Whether NumPy computes with this value: a number or an array of numbers of its own."""
    import numpy as np

    if not isinstance(value, np.generic) and type(value) is not np.ndarray:
        return False
    return value.dtype.kind in "biuf" or value.dtype.name == "bfloat16"


def _computed(node: ast.expr, values: Mapping[ast.expr, Any]) -> Any:
    """What arithmetic of constants gives; None where something else is in it, or it fails."""
    import numpy as np

    if node in values:
        return values[node]
    if isinstance(node, ast.Constant):
        return node.value if type(node.value) in (int, float, bool) else None
    parts = [node.operand] if isinstance(node, ast.UnaryOp) else []
    parts = [node.left, node.right] if isinstance(node, ast.BinOp) else parts
    compute = _COMPUTE.get(type(getattr(node, "op", None)))
    given = [_computed(part, values) for part in parts]
    if compute is None or any(value is None for value in given):
        return None
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Pow) and not any(map(_is_of_numpy, given)):
        return None  # maybe a huge integer
    try:
        with np.errstate(all="ignore"):
            return compute(*given)
    except (ArithmeticError, TypeError, ValueError):
        return None
