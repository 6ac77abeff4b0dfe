"""The allow-list: what the source of a program may say, decided on its syntax alone.

It runs in the locked-down worker before the source does. What it lets through is also safe to
import: a program ends up in someone's project, where no sandbox stands around it.
"""

from __future__ import annotations

import ast
import builtins
import re
import symtable
import sys
import warnings
from itertools import pairwise
from typing import NoReturn

from jaxreward.function_source.fields import NEVER_FIELDS
from jaxreward.function_source.outside import UNUSABLE
from jaxreward.programs.entries import ENTRIES, FILE, Guarded, Refused, entries
from jaxreward.programs.limits import Limits
from jaxreward.programs.names import API, ATTRIBUTES, BUILTINS, KEYWORDS, MODULES, NOT_NUMERIC, name_set

NODES = name_set(
    """
Module FunctionDef Lambda Return Assign AugAssign AnnAssign For If IfExp Pass Expr BoolOp BinOp UnaryOp Compare Call
Attribute Subscript Slice Name Constant Tuple List Dict Set ListComp SetComp DictComp GeneratorExp comprehension Starred
keyword arguments arg Import ImportFrom alias JoinedStr FormattedValue Break Continue Assert Load Store And Or Add Sub
Mult Div FloorDiv Mod Pow MatMult BitAnd BitOr BitXor LShift RShift Invert Not UAdd USub Eq NotEq Lt LtE Gt GtE Is IsNot
In NotIn
"""
)
_REMEDY = {
    "While": "use a for loop over range, or jax.lax.while_loop",
    "ClassDef": "use functions and dictionaries",
    "Try": "nothing raises at run time: use jnp.where",
    "TryStar": "nothing raises at run time: use jnp.where",
    "Raise": "nothing raises at run time: use jnp.where",
    "With": "remove it",
    "Global": "pass the value as an argument",
    "Nonlocal": "pass the value as an argument, or return it",
    "Delete": "remove it",
    "Match": "use jnp.where or jax.lax.select",
    "NamedExpr": "assign on a line of its own",
    "Yield": "build a list",
    "YieldFrom": "build a list",
    "Await": "remove it",
    "AsyncFunctionDef": "use a plain def",
}
_OF_NAMED_TUPLES = {"_asdict", "_fields", "_replace"}
_NEVER_TRACED = name_set("block_until_ready delete device devices is_ready to_device tobytes tofile dump dumps ctypes")
_ASYNCHRONOUS = {"Await", "AsyncFunctionDef", "AsyncFor", "AsyncWith"}
_NO_BUILTIN = {
    "print": "remove it: programs have no side effects",
    "open": "files are out of reach",
    "hasattr": "a state's fields are fixed",
    "getattr": "write the attribute out",
    "iter": "loop over the list itself",
    "next": "index the list",
    "type": "compare dtypes or shapes",
}
_ANOTHER = "choose another name"
_FORMAT = re.compile(r"[<>^=]?[+-]?0?[0-9]{0,2}(\.[0-9]{1,2})?[a-zA-Z%]?")
_TYPE_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_.]*")


def guard(
    source: str, fields: frozenset[str] = frozenset(), limits: Limits | None = None, *, debug: bool = False
) -> Guarded:
    """Check `source` against the allow-list.

    Args:
        fields: names that are attributes of a state.
        debug: whether `debug` is an entry point.

    Raises:
        Refused: with the line and a remedy.
    """
    limits = limits or Limits()
    try:
        size = len(source.encode())
    except UnicodeEncodeError as error:
        raise Refused("the source is not valid Unicode text") from error
    if size > limits.source_bytes:
        hint = "write loops instead of long lists"
        raise Refused(f"the source has {size} bytes; the limit is {limits.source_bytes}", hint=hint, stage="limits")
    tree = _parse(source)
    nodes = list(ast.walk(tree))
    if len(nodes) > limits.syntax_nodes:
        message = f"the source has {len(nodes)} syntax nodes; the limit is {limits.syntax_nodes}"
        raise Refused(message, hint="write loops instead of long expressions", stage="limits")
    _Guard(tree, nodes, fields).check()
    _check_scopes(source, nodes)
    return entries(tree, debug)


def _parse(source: str) -> ast.Module:
    if "\0" in source:
        raise Refused("the source contains a NUL character")
    try:
        return ast.parse(source, FILE)
    except SyntaxError as error:
        raise Refused(f"not valid Python: {error.msg}", error.lineno, (error.text or "").strip()[:80]) from error
    except (ValueError, RecursionError, MemoryError) as error:
        raise Refused(f"cannot be parsed: {type(error).__name__}", hint="nest less deeply") from error


class _Guard:
    def __init__(self, tree: ast.Module, nodes: list[ast.AST], fields: frozenset[str]) -> None:
        self.tree, self.nodes = tree, nodes
        self.fields = {f for f in fields if not f.startswith("_") and f not in NEVER_FIELDS}
        self.parent = {child: node for node in nodes for child in ast.iter_child_nodes(node)}
        self.modules: dict[str, str] = {}
        self.transformations: dict[str, str] = {}
        self.annotations = {id(part) for note in _annotations(nodes) for part in ast.walk(note)}
        self.line = 1

    def refuse(self, message: str, hint: str = "", stage: str = "guard", always: bool = False) -> NoReturn:
        raise Refused(message, self.line, hint, stage, always)

    def check(self) -> None:
        for node in self.tree.body:
            self.line = getattr(node, "lineno", self.line)
            if isinstance(node, ast.Import | ast.ImportFrom):
                self._import(node)
        for node in self.nodes:
            self.line = getattr(node, "lineno", self.line)
            kind = type(node).__name__
            if kind not in NODES:
                self.refuse(f"{kind} is not allowed", _REMEDY.get(kind, ""), always=kind in _ASYNCHRONOUS)
            rule = getattr(self, f"_{kind.lower()}", None)
            if rule is not None:
                rule(node)

    # ---- modules

    def _bind(self, name: str, module: str) -> None:
        if self.modules.setdefault(name, module) != module:
            self.refuse(f"the name '{name}' stands for two modules", "import each under its own name")

    def _import(self, node: ast.Import | ast.ImportFrom) -> None:
        only = f"programs may import {', '.join(MODULES)}"
        if isinstance(node, ast.Import):
            for a in node.names:
                if a.name not in MODULES:
                    self.refuse(f"import of '{a.name}' is not allowed", only)
                self._bind(a.asname or "jax", a.name if a.asname else "jax")
            return
        if node.module == "__future__" and not node.level and [a.name for a in node.names] == ["annotations"]:
            return
        if node.level or node.module not in MODULES:
            self.refuse(f"import from '{'.' * node.level}{node.module or ''}' is not allowed", only)
        for a in node.names:
            full = f"{node.module}.{a.name}"
            if full in MODULES:
                self._bind(a.asname or a.name, full)
            elif a.name not in API[node.module]:
                self.refuse(f"'{full}' is not available to programs", NOT_NUMERIC.get(a.name, ""))
            elif node.module == "jax" and a.name in KEYWORDS:
                self.transformations[a.asname or a.name] = a.name

    def _alias(self, node: ast.alias) -> None:
        statement = self.parent[node]
        if self.parent[statement] is not self.tree:
            self.refuse("an import inside a function or a condition", "imports stand at the top level of a program")
        if isinstance(statement, ast.ImportFrom) and statement.module == "__future__":
            return
        bound = node.asname or node.name.split(".")[0]
        if isinstance(statement, ast.ImportFrom):
            meant = f"{statement.module}.{node.name}"
        else:
            meant = node.name if node.asname else "jax"
        if bound.startswith("_") or (hasattr(builtins, bound) and bound not in BUILTINS):
            self.refuse(f"the name '{bound}' may not be imported", "import it under another name")
        if self.modules.get(bound, meant) != meant:
            self.refuse(f"the name '{bound}' stands for two things", "import each under its own name")

    def _chain(self, node: ast.Attribute) -> tuple[str | None, list[str]]:
        """`a.b.c` as ("a", ["b", "c"]); (None, ...) if it does not start with a name."""
        names: list[str] = []
        value: ast.expr = node
        while isinstance(value, ast.Attribute):
            names.append(value.attr)
            value = value.value
        return (value.id if isinstance(value, ast.Name) else None), names[::-1]

    def _attribute(self, node: ast.Attribute) -> None:
        if not isinstance(node.ctx, ast.Load):
            self.refuse(f"assignment to the attribute '{node.attr}'", "states and modules are read-only", always=True)
        root, names = self._chain(node)
        if root in self.modules:
            module, rest = self.modules[root], list(names)
            while rest and f"{module}.{rest[0]}" in MODULES:
                module = f"{module}.{rest.pop(0)}"
            if not rest:
                if not isinstance(self.parent.get(node), ast.Attribute):
                    self.refuse(f"the module {module} is used as a value", f"write {module}.name in full")
                return
            if rest[0] not in API[module]:
                message = f"'{module}.{rest[0]}' is not available to programs"
                self.refuse(message, _elsewhere(rest[0]), always=not _works(module, rest))
            if module == "jax" and rest[0] in KEYWORDS:
                self._transformation(node, rest[0])
            if len(rest) == 1:
                return
        if node.attr.startswith("_") or node.attr in NEVER_FIELDS:
            self.refuse(f"the attribute '{node.attr}' is not allowed", always=not _is_attribute(node.attr))
        if node.attr not in ATTRIBUTES and node.attr not in self.fields:
            fields = ", ".join(sorted(self.fields))
            self.refuse(
                f"'{node.attr}' is neither an array method nor a field of the state",
                f"the fields are {fields}" if fields else "the state has no named fields",
                always=not _is_attribute(node.attr),
            )

    # ---- names

    def _name(self, node: ast.Name) -> None:
        if node.id.startswith("__"):
            self.refuse(f"the name '{node.id}' is not allowed")
        if node.id in self.modules:
            if not isinstance(node.ctx, ast.Load):
                self.refuse(f"the module name '{node.id}' is assigned to", _ANOTHER)
            if not isinstance(self.parent.get(node), ast.Attribute):
                self.refuse(f"the module '{node.id}' is used as a value", f"write {node.id}.name in full")

        if node.id in self.transformations:
            if not isinstance(node.ctx, ast.Load):
                self.refuse(f"the name '{node.id}' of jax.{self.transformations[node.id]} is assigned to", _ANOTHER)
            self._transformation(node, self.transformations[node.id])
        if node.id == "str" and isinstance(node.ctx, ast.Load) and not self._is_text(node):
            self.refuse("str is used as a value", "call it, or use an f-string")

    def _is_text(self, node: ast.Name) -> bool:
        """Whether `str` is called with one value, stands for a type in `isinstance`, or in an annotation."""
        call = self.parent[node]
        if isinstance(call, ast.Tuple):
            call = self.parent[call]
        if not isinstance(call, ast.Call) or id(node) in self.annotations:
            return id(node) in self.annotations
        if call.func is node:
            return len(call.args) == 1 and not call.keywords and not isinstance(call.args[0], ast.Starred)
        return isinstance(call.func, ast.Name) and call.func.id == "isinstance"

    def _transformation(self, node: ast.expr, name: str) -> None:
        """`jax.jit` and its like may only be applied, and with keywords that do nothing outside of the computation."""
        call = self.parent[node]
        if isinstance(call, ast.FunctionDef) and node in call.decorator_list:
            return
        if not isinstance(call, ast.Call) or call.func is not node:
            self.refuse(f"jax.{name} is used as a value", f"write jax.{name}(function)")
        if any(isinstance(a, ast.Starred) for a in call.args) or any(k.arg is None for k in call.keywords):
            self.refuse(f"the arguments of jax.{name} are spread out of a list or a dictionary", "write them out")
        if len(call.args) > (1 if name == "jit" else 3):
            self.refuse(f"jax.{name} with {len(call.args)} positional arguments", "name those after the function")
        for keyword in call.keywords:
            if keyword.arg not in KEYWORDS[name]:
                allowed = ", ".join(sorted(KEYWORDS[name]))
                self.refuse(f"the keyword '{keyword.arg}' of jax.{name} is not allowed", f"these are: {allowed}")

    def _arg(self, node: ast.arg) -> None:
        if node.arg.startswith("__") or node.arg in self.modules or node.arg in self.transformations:
            self.refuse(f"an argument may not be called '{node.arg}'", _ANOTHER)
        self._annotation(node.annotation)

    def _annotation(self, node: ast.expr | None) -> None:
        for part in ast.walk(node) if node else ():
            if isinstance(part, ast.Constant) and isinstance(part.value, str) and not _TYPE_NAME.fullmatch(part.value):
                self.refuse("this annotation is not the name of a type", "remove it")

    def _annassign(self, node: ast.AnnAssign) -> None:
        self._annotation(node.annotation)

    def _keyword(self, node: ast.keyword) -> None:
        if node.arg and node.arg.startswith("_"):
            self.refuse(f"the keyword '{node.arg}' is not allowed")

    def _functiondef(self, node: ast.FunctionDef) -> None:
        if node.name.startswith("__") or node.name in self.modules or node.name in self.transformations:
            self.refuse(f"a function may not be called '{node.name}'", _ANOTHER)
        if node.name in ENTRIES and node.name != "reward" and self.parent.get(node) is not self.tree:
            self.refuse(f"{node.name} must be defined at the top level", stage="contract")
        self._annotation(node.returns)
        for decorator in node.decorator_list:
            root, names = self._chain(decorator) if isinstance(decorator, ast.Attribute) else (None, [])
            full = ".".join([self.modules.get(root or "", ""), *names])
            if isinstance(decorator, ast.Name) and decorator.id in self.transformations:
                full = f"jax.{self.transformations[decorator.id]}"
            if full not in ("jax.jit", "jax.vmap"):
                self.refuse("only @jax.jit and @jax.vmap may decorate a function", "call the function instead")

    def _compare(self, node: ast.Compare) -> None:
        sides = [node.left, *node.comparators]
        for op, pair in zip(node.ops, pairwise(sides), strict=True):
            if isinstance(op, ast.Is | ast.IsNot) and not any(_is_singleton(side) for side in pair):
                self.refuse("'is' compares two objects, which another run may share or not", "use ==, or 'is None'")

    def _augassign(self, node: ast.AugAssign) -> None:
        if isinstance(node.op, ast.Mod):
            self.refuse("%= is not allowed", "write x = x % y")

    # ---- literals

    def _constant(self, node: ast.Constant) -> None:
        value = node.value
        if isinstance(value, bytes | complex):
            self.refuse(f"{type(value).__name__} literals are not allowed", always=isinstance(value, complex))
        if value is Ellipsis and not isinstance(self.parent.get(node), ast.Subscript | ast.Tuple):
            self.refuse("'...' may only stand in an index", "write the body of the function", always=True)
        if isinstance(value, int) and abs(value) > 2**32:
            self.refuse("an integer larger than 2**32", "use a float", always=True)
        if isinstance(value, str) and len(value) > 8000:
            self.refuse("a string of more than 8000 characters")

    def _formattedvalue(self, node: ast.FormattedValue) -> None:
        spec = node.format_spec
        if spec is None:
            return
        parts = spec.values if isinstance(spec, ast.JoinedStr) else [spec]
        text = "".join(str(p.value) if isinstance(p, ast.Constant) else "{" for p in parts)
        if not _FORMAT.fullmatch(text):
            self.refuse("a format of more than a width and a precision of two digits", "name terms plainly")


def _annotations(nodes: list[ast.AST]) -> list[ast.expr]:
    found = [n.annotation for n in nodes if isinstance(n, ast.arg | ast.AnnAssign)]
    found += [n.returns for n in nodes if isinstance(n, ast.FunctionDef)]
    return [note for note in found if note is not None]


def _is_singleton(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and (node.value is None or isinstance(node.value, bool))


def _elsewhere(name: str) -> str:
    """Where an unavailable name is to be had, or why it is not."""
    homes = [f"{module}.{name}" for module, names in API.items() if name in names]
    return f"there is {' and '.join(homes)}" if homes else NOT_NUMERIC.get(name, "")


def _works(module: str, names: list[str]) -> bool:
    """Whether JAX has this, and it is of a kind that can be traced and kept."""
    known = sys.modules.get(module)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a deprecated name warns when it is looked up
        return hasattr(known, names[0]) and not UNUSABLE.intersection(names)


def _is_attribute(name: str) -> bool:
    """Whether arrays that are traced, or Python's own values, have this attribute."""
    jax = sys.modules.get("jax")
    kinds = [str, list, dict, set, tuple, int, float, *([jax.Array, jax.numpy.dtype] if jax is not None else [])]
    return name not in _NEVER_TRACED and (name in _OF_NAMED_TUPLES or any(hasattr(kind, name) for kind in kinds))


def _check_scopes(source: str, nodes: list[ast.AST]) -> None:
    """Every name must be the program's own or an allowed builtin, in the scope where it is read."""
    try:
        top = symtable.symtable(source, FILE, "exec")
    except SyntaxError as error:  # what the parser lets pass, such as two arguments of one name
        raise Refused(f"not valid Python: {error.msg}", error.lineno) from error
    own = {s.get_name() for s in top.get_symbols() if s.is_assigned() or s.is_imported() or s.is_namespace()}
    for name in sorted(own):
        if hasattr(builtins, name) and name not in BUILTINS:
            _refuse_name(nodes, name, f"the builtin '{name}' is assigned to", _ANOTHER)
    tables = [top]
    for table in tables:
        tables.extend(table.get_children())
        for symbol in table.get_symbols():
            name = symbol.get_name()
            if not symbol.is_referenced() or not (table is top or symbol.is_global()):
                continue
            if name not in own and name not in BUILTINS and not name.startswith((".", "__")):
                known = hasattr(builtins, name)
                message = f"the builtin '{name}' is not available" if known else f"the name '{name}' is not defined"
                hint = _NO_BUILTIN.get(name, "" if known else "define or import it")
                _refuse_name(nodes, name, message, hint, always=not known or name == "complex")


def _refuse_name(nodes: list[ast.AST], name: str, message: str, hint: str, always: bool = False) -> NoReturn:
    lines = [n.lineno for n in nodes if isinstance(n, ast.Name) and n.id == name]
    raise Refused(message, min(lines, default=None), hint, always=always)
