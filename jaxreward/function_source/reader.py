"""The text of one function, and the names that it reads from outside."""

from __future__ import annotations

import ast
import builtins
import inspect
import re
import sys
import textwrap
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from types import FunctionType
from typing import Any, cast

from jaxreward.errors import UserError
from jaxreward.function_source.edited import is_edited
from jaxreward.function_source.scopes import GlobalNames, bound_in, parameters

_JIT = {"jax.jit", "jit"}
"""How a decorator is written whose name is not known after the function was made."""


class UnreadableFunction(UserError):
    """A function that cannot be written out as text.

    Attributes:
        function: its name.
        usable: whether `trusted=True`, which calls it as it is, may make a program of it.
    """

    def __init__(self, message: str, function: str, *, usable: bool = False) -> None:
        super().__init__(message)
        self.function, self.usable = function, usable


class EditedFunction(UnreadableFunction):
    """A function whose file was edited after it was imported, so that its text is not what runs."""


def name_of(function: Any) -> str:
    """What a callable is called, for messages and as a name in a program."""
    inner = getattr(function, "func", function)  # of functools.partial
    return str(getattr(inner, "__name__", type(inner).__name__))


def is_jitted(value: Any) -> bool:
    """Whether this is what `jax.jit` returns."""
    stages = sys.modules.get("jax.stages")
    return stages is not None and hasattr(value, "__wrapped__") and isinstance(value, stages.Wrapped)


@dataclass(frozen=True)
class Reference:
    """A name that is read from outside of a function, and the attributes that are read of it, innermost first."""

    name: ast.Name
    attributes: tuple[ast.Attribute, ...]


@dataclass(frozen=True)
class FunctionText:
    """A function as the text of a `def`, without its decorators; `vmapped` is how often `@jax.vmap` decorates it."""

    function: Any
    text: str
    vmapped: int = 0

    @property
    def name(self) -> str:
        return self.function.__name__

    @cached_property
    def node(self) -> ast.FunctionDef:
        return cast(ast.FunctionDef, ast.parse(self.text).body[0])

    @cached_property
    def parents(self) -> dict[ast.AST, ast.AST]:
        """The node around each node."""
        return {child: node for node in ast.walk(self.node) for child in ast.iter_child_nodes(node)}

    @cached_property
    def bound(self) -> set[str]:
        """Every name that is bound anywhere in the function."""
        nodes = list(ast.walk(self.node))
        found = {n.id for n in nodes if isinstance(n, ast.Name) and not isinstance(n.ctx, ast.Load)}
        inner = [n for n in nodes if isinstance(n, ast.FunctionDef) and n is not self.node]
        held = [parameters(n.args) for n in nodes if isinstance(n, ast.FunctionDef | ast.Lambda)]
        return found.union({n.name for n in inner}, *held)

    @cached_property
    def references(self) -> tuple[Reference, ...]:
        imports = [node for node in ast.walk(self.node) if isinstance(node, ast.Import | ast.ImportFrom)]
        if imports:
            message = f"{self.name} has `{ast.unparse(imports[0])}` inside: import it at the top of the file"
            raise UnreadableFunction(message, self.name, usable=True)
        reader = _Reader()
        reader.local = [parameters(self.node.args) | {n for part in self.node.body for n in bound_in(part)}]
        for statement in self.node.body:  # not the defaults, which are replaced by their values
            reader.visit(statement)
        found: list[Reference] = []
        for name in reader.nodes:
            chain: list[ast.Attribute] = []
            above = self.parents.get(name)
            while isinstance(above, ast.Attribute):
                chain.append(above)
                above = self.parents.get(above)
            found.append(Reference(name, tuple(chain)))
        return tuple(found)

    def value(self, name: str) -> Any:
        """What a name stands for outside of the function.

        Raises:
            UnreadableFunction: nothing.
        """
        cells = dict(zip(self.function.__code__.co_freevars, self.function.__closure__ or (), strict=True))
        if name in cells:
            try:
                return cells[name].cell_contents
            except ValueError:
                raise UnreadableFunction(f"{self.name} uses {name}, which has no value yet", self.name) from None
        if name in self.function.__globals__:
            return self.function.__globals__[name]
        if hasattr(builtins, name):
            return getattr(builtins, name)
        message = f"{self.name} uses the name {name}, which is not defined: define or import it"
        raise UnreadableFunction(message, self.name)


class _Reader(GlobalNames):
    """Collects the nodes of names that are read from outside."""

    def __init__(self) -> None:
        super().__init__()
        self.nodes: list[ast.Name] = []

    def visit_Name(self, node: ast.Name) -> ast.AST:
        if self.is_global(node.id) and isinstance(node.ctx, ast.Load):
            self.nodes.append(node)
        return node

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST:
        """The annotation is left out of what is written."""
        self.visit(node.target)
        if node.value is not None:
            self.visit(node.value)
        return node


def read(function: Any) -> FunctionText:
    """The text of a function; of one that `jax.jit` compiled, that of what it compiled.

    Raises:
        UnreadableFunction: it is no plain function, or has no text of its own.
    """
    name, layers = name_of(function), 0
    while hasattr(function, "__wrapped__"):
        layers += not is_jitted(function)
        function = function.__wrapped__
    if inspect.ismethod(function):
        message = f"{name} is a method of {type(function.__self__).__name__}: make it a function, and what it reads of "
        raise UnreadableFunction(f"{message}its object variables around it", name, usable=True)
    if not isinstance(function, FunctionType):
        what = "a class" if isinstance(function, type) else f"a {type(function).__name__}"
        message = f"{name} is {what}, not a function of Python: define one with def"
        raise UnreadableFunction(message, name, usable=not isinstance(function, type))
    try:
        source = own_text(function)
    except (OSError, TypeError):
        message = f"the source of {name} is not available: define it in a file or a cell of a notebook, or write the"
        raise UnreadableFunction(f"{message} program as text", name, usable=True) from None
    return _lambda_text(function, source) if function.__name__ == "<lambda>" else _def_text(function, source, layers)


def own_text(function: Any) -> str:
    """The text of a function as it stands in its file or cell, with what decorates it.

    Raises:
        EditedFunction: the file was edited since.
        OSError, TypeError: there is none.
    """
    source = inspect.getsource(function)
    if isinstance(function, FunctionType) and is_edited(function):
        message = f"the file {function.__code__.co_filename} was edited after it was imported: the text of "
        message += f"{name_of(function)} is not the code that runs"
        raise EditedFunction(f"{message}; import it again (importlib.reload) or restart", name_of(function))
    return source


def _def_text(function: FunctionType, source: str, layers: int) -> FunctionText:
    name, text = function.__name__, textwrap.dedent(source)
    try:
        node = ast.parse(text).body[0]
    except (SyntaxError, ValueError):  # a comment or a string that is indented less than the function
        try:
            inside = cast(ast.If, ast.parse(f"if 1:\n{source}").body[0])
            text = ast.unparse(inside.body[0])
            node = ast.parse(text).body[0]
        except (SyntaxError, ValueError):
            raise _changed(name) from None
    if not isinstance(node, ast.FunctionDef) or node.name != function.__code__.co_name:
        raise _changed(name)
    code = function.__code__
    named = [a.arg for a in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)]
    if tuple(named) != code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]:
        raise _changed(name)
    lines = re.split(r"\r\n|\r|\n", text)
    cut = "\n".join([lines[node.lineno - 1], *lines[node.lineno : node.end_lineno]])
    found = FunctionText(function, cut)
    vmapped = sum(_is_vmap(found, decorator) for decorator in node.decorator_list)
    if layers != vmapped:
        message = f"{name} is wrapped by another function that its text does not show: define it with def"
        raise UnreadableFunction(message, name, usable=True)
    return FunctionText(function, cut, vmapped)


def _changed(name: str) -> EditedFunction:
    message = f"the source of {name} is not what its file says now: import the file again, after its last change"
    return EditedFunction(message, name)


def _is_vmap(text: FunctionText, decorator: ast.expr) -> bool:
    """Whether a decorator is `jax.vmap`; False for those that change nothing: `jax.jit`, with options or without, and
    `staticmethod`.

    Raises:
        UnreadableFunction: another one.
    """
    called = decorator.func if isinstance(decorator, ast.Call) else decorator
    try:
        value = looked_up(text, called)
    except UnreadableFunction:
        if ast.unparse(called) in _JIT:
            return False
        value = None
    if isinstance(decorator, ast.Call) and getattr(value, "__name__", "") == "partial" and decorator.args:
        value = looked_up(text, decorator.args[0])  # functools.partial(jax.jit, static_argnums=...)
    jax = sys.modules.get("jax")
    if value is staticmethod or (jax is not None and value is jax.jit):
        return False
    if jax is not None and value is jax.vmap and not isinstance(decorator, ast.Call):
        return True
    message = f"{text.name} is decorated by {ast.unparse(decorator)}: only @jax.jit, @jax.vmap and @staticmethod may"
    raise UnreadableFunction(f"{message} decorate it, so call the function that you mean", text.name, usable=True)


def looked_up(text: FunctionText, expression: ast.expr) -> Any:
    """The value of a name or of a chain of attributes; None for another expression."""
    names: list[str] = []
    while isinstance(expression, ast.Attribute):
        names.append(expression.attr)
        expression = expression.value
    if not isinstance(expression, ast.Name):
        return None
    value = text.value(expression.id)
    for name in reversed(names):
        value = getattr(value, name, None)
    return value


def _lambda_text(function: FunctionType, source: str) -> FunctionText:
    """A lambda that stands alone in a statement, as a `def`."""
    try:
        tree = ast.parse(textwrap.dedent(source))
    except (SyntaxError, ValueError):
        tree = ast.Module([], [])
    found = [node for node in ast.walk(tree) if isinstance(node, ast.Lambda)]
    if len(found) != 1:
        message = "a lambda can be read only in a statement of its own without another: define the function with def"
        raise UnreadableFunction(message, "<lambda>", usable=True)
    text = f"def function({ast.unparse(found[0].args)}):\n    return {ast.unparse(found[0].body)}"
    return FunctionText(function, text)


def required_parameters(function: Callable[..., Any]) -> Sequence[str]:
    """The names of the positional parameters without defaults.

    Raises:
        UnreadableFunction: it takes others, `*args`, or keywords that it needs; or has no signature.
    """
    name = name_of(function)
    try:
        known = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        raise UnreadableFunction(f"the parameters of {name} are not known: wrap it in a def", name) from None
    positional = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    for p in known:
        if p.kind is p.VAR_POSITIONAL or (p.kind is p.KEYWORD_ONLY and p.default is p.empty):
            message = f"{name} takes {'*' if p.kind is p.VAR_POSITIONAL else ''}{p.name}: give it the parameters"
            raise UnreadableFunction(f"{message} (state) or (state, action, next_state)", name)
    return [p.name for p in known if p.kind in positional and p.default is p.empty]
