"""The allow-list: what the source of a program may say, decided on its syntax alone.

It runs in the locked-down worker before the source does. What it lets through is also safe to
import: a program ends up in someone's project, where no sandbox stands around it.
"""

from __future__ import annotations

import ast
import builtins
import re
import symtable
from dataclasses import dataclass
from typing import NoReturn

from jaxreward.programs.limits import Limits
from jaxreward.programs.names import API, ATTRIBUTES, BUILTINS, MODULES, NEVER_FIELDS, NOT_NUMERIC, words

FILE = "<candidate>"
ENTRIES = {"get_observation": 1, "compute_reward": 3, "reward": 1}

_NODES = words(
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
_NO_BUILTIN = {
    "print": "remove it: programs have no side effects",
    "open": "files are out of reach",
    "hasattr": "a state's fields are fixed",
    "getattr": "write the attribute out",
    "iter": "loop over the list itself",
    "next": "index the list",
    "type": "compare dtypes or shapes",
}
_FORMAT = re.compile(r"[<>^=]?[+-]?0?[0-9]{0,2}(\.[0-9]{1,2})?[a-zA-Z%]?")
_TYPE_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_.]*")


class Refused(Exception):
    """A program that its source alone condemns, or that broke its contract when traced."""

    def __init__(self, message: str, line: int | None = None, hint: str = "", stage: str = "guard") -> None:
        super().__init__(message)
        self.message, self.line, self.hint, self.stage = message, line, hint, stage
        self.half: str | None = None


@dataclass(frozen=True)
class Guarded:
    """Source that passed: its tree, its entry points, and the size of the reward's part."""

    tree: ast.Module
    observation: str | None
    reward: str | None
    reward_nodes: int


def guard(source: str, fields: frozenset[str] = frozenset(), limits: Limits | None = None) -> Guarded:
    """Check `source` against the allow-list.

    Args:
        fields: names that are attributes of a state.

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
    return _entries(tree)


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
        self.line = 1

    def refuse(self, message: str, hint: str = "", stage: str = "guard") -> NoReturn:
        raise Refused(message, self.line, hint, stage)

    def check(self) -> None:
        for node in self.tree.body:
            self.line = getattr(node, "lineno", self.line)
            if isinstance(node, ast.Import | ast.ImportFrom):
                self._import(node)
        for node in self.nodes:
            self.line = getattr(node, "lineno", self.line)
            kind = type(node).__name__
            if kind not in _NODES:
                self.refuse(f"{kind} is not allowed", _REMEDY.get(kind, ""))
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
            self.refuse(f"assignment to the attribute '{node.attr}'", "states and modules are read-only")
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
                self.refuse(f"'{module}.{rest[0]}' is not available to programs", _elsewhere(rest[0]))
            if len(rest) == 1:
                return
        if node.attr.startswith("_") or node.attr in NEVER_FIELDS:
            self.refuse(f"the attribute '{node.attr}' is not allowed")
        if node.attr not in ATTRIBUTES and node.attr not in self.fields:
            fields = ", ".join(sorted(self.fields))
            self.refuse(
                f"'{node.attr}' is neither an array method nor a field of the state",
                f"the fields are {fields}" if fields else "the state has no named fields",
            )

    # ---- names

    def _name(self, node: ast.Name) -> None:
        if node.id.startswith("__"):
            self.refuse(f"the name '{node.id}' is not allowed")
        if node.id in self.modules:
            if not isinstance(node.ctx, ast.Load):
                self.refuse(f"the module name '{node.id}' is assigned to", "choose another name")
            if not isinstance(self.parent.get(node), ast.Attribute):
                self.refuse(f"the module '{node.id}' is used as a value", f"write {node.id}.name in full")

    def _arg(self, node: ast.arg) -> None:
        if node.arg.startswith("__") or node.arg in self.modules:
            self.refuse(f"an argument may not be called '{node.arg}'", "choose another name")
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
        if node.name.startswith("__") or node.name in self.modules:
            self.refuse(f"a function may not be called '{node.name}'", "choose another name")
        if node.name in ENTRIES and node.name != "reward" and self.parent.get(node) is not self.tree:
            self.refuse(f"{node.name} must be defined at the top level", stage="contract")
        self._annotation(node.returns)
        for decorator in node.decorator_list:
            root, names = self._chain(decorator) if isinstance(decorator, ast.Attribute) else (None, [])
            if ".".join([self.modules.get(root or "", ""), *names]) not in ("jax.jit", "jax.vmap"):
                self.refuse("only @jax.jit and @jax.vmap may decorate a function", "call the function instead")

    # ---- literals

    def _constant(self, node: ast.Constant) -> None:
        value = node.value
        if isinstance(value, bytes | complex):
            self.refuse(f"{type(value).__name__} literals are not allowed")
        if value is Ellipsis and not isinstance(self.parent.get(node), ast.Subscript | ast.Tuple):
            self.refuse("'...' may only stand in an index", "write the body of the function")
        if isinstance(value, int) and abs(value) > 2**32:
            self.refuse("an integer larger than 2**32", "use a float")
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


def _elsewhere(name: str) -> str:
    """Where an unavailable name is to be had, or why it is not."""
    homes = [f"{module}.{name}" for module, names in API.items() if name in names]
    return f"there is {' and '.join(homes)}" if homes else NOT_NUMERIC.get(name, "")


def _check_scopes(source: str, nodes: list[ast.AST]) -> None:
    """Every name must be the program's own or an allowed builtin, in the scope where it is read."""
    try:
        top = symtable.symtable(source, FILE, "exec")
    except SyntaxError as error:  # what the parser lets pass, such as two arguments of one name
        raise Refused(f"not valid Python: {error.msg}", error.lineno) from error
    own = {s.get_name() for s in top.get_symbols() if s.is_assigned() or s.is_imported() or s.is_namespace()}
    for name in sorted(own):
        if hasattr(builtins, name) and name not in BUILTINS:
            _refuse_name(nodes, name, f"the builtin '{name}' is assigned to", "choose another name")
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
                _refuse_name(nodes, name, message, _NO_BUILTIN.get(name, "" if known else "define or import it"))


def _refuse_name(nodes: list[ast.AST], name: str, message: str, hint: str) -> NoReturn:
    lines = [n.lineno for n in nodes if isinstance(n, ast.Name) and n.id == name]
    raise Refused(message, min(lines, default=None), hint)


def _entries(tree: ast.Module) -> Guarded:
    functions: dict[str, ast.FunctionDef] = {}
    for node in tree.body:
        if isinstance(node, ast.FunctionDef):
            if node.name in functions and node.name in ENTRIES:
                raise Refused(f"{node.name} is defined twice", node.lineno, "keep one of them", "contract")
            functions[node.name] = node
    for node in ast.walk(tree):
        if not isinstance(node, ast.Name) or isinstance(node.ctx, ast.Load):
            continue
        if node.id in ("get_observation", "compute_reward"):
            raise Refused(f"{node.id} is assigned to", node.lineno, f"define it by 'def {node.id}'", "contract")
    observation = "get_observation" if "get_observation" in functions else None
    reward = "compute_reward" if "compute_reward" in functions else None
    if reward is None and "reward" in functions and _arity(functions["reward"]) == 1:
        reward = "reward"
    for name in (observation, reward):
        if name is not None and _arity(functions[name]) != ENTRIES[name]:
            wanted = {1: "(state)", 3: "(state, action, next_state)"}[ENTRIES[name]]
            raise Refused(
                f"{name} must take {ENTRIES[name]} positional argument(s) without defaults",
                functions[name].lineno, f"write def {name}{wanted}:", "contract",
            )  # fmt: skip
    if observation is None and reward is None:
        hint = "write def get_observation(state): and def compute_reward(state, action, next_state):"
        raise Refused("the program defines neither get_observation nor compute_reward", hint=hint, stage="contract")
    return Guarded(tree, observation, reward, _size(functions, reward))


def _arity(function: ast.FunctionDef) -> int:
    a = function.args
    return -1 if a.vararg or a.kwarg or a.kwonlyargs or a.defaults else len(a.posonlyargs) + len(a.args)


def _size(functions: dict[str, ast.FunctionDef], entry: str | None) -> int:
    """Syntax nodes of a function and of the helpers that it reaches."""
    reached: set[str] = set()
    todo, total = [entry] if entry else [], 0
    while todo:
        name = todo.pop()
        if name in reached:
            continue
        reached.add(name)
        for node in ast.walk(functions[name]):
            total += 1
            if isinstance(node, ast.Name) and node.id in functions:
                todo.append(node.id)
    return total
