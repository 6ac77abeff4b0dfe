"""The text of a program, or of a fragment, from functions and what they refer to."""

from __future__ import annotations

import ast
import builtins
import functools
import inspect
import re
import textwrap
from collections.abc import Callable, Iterable, Set
from dataclasses import dataclass
from types import ModuleType
from typing import Any, Literal

from jaxreward.function_source.edits import Edits
from jaxreward.function_source.literals import NotLiteral, literal
from jaxreward.function_source.numbers import Places, alone
from jaxreward.function_source.outside import (
    MODULES,
    NOTHING,
    attribute,
    core_of,
    has,
    is_function,
    is_usable,
    package_of,
    path_of,
    top,
)
from jaxreward.function_source.reader import (
    FunctionText,
    Reference,
    UnreadableFunction,
    name_of,
    read,
    required_parameters,
)
from jaxreward.function_source.scopes import fresh_name

Role = Literal["get_observation", "compute_reward", "reward"]

_IMPORTS = {"jax": "import jax", "jnp": "import jax.numpy as jnp"}
_ENTRIES = ("get_observation", "compute_reward", "reward")
_FORMS = "(state) for an observation, or (state, action, next_state) for a reward"
_WIDE = 110
OR_TRUSTED = ", or pass trusted=True"
"""The end of a sentence about a function that can be traced as it is."""
_REMEDY = "use numbers, strings, arrays of at most 1,024 numbers, tuples, lists, dictionaries and functions"


def source_of(*functions: Callable[..., Any]) -> str:
    """The text of a program from one or two functions: an observation, a reward, or both.

    A function of (state) becomes `get_observation`, one of (state, action, next_state) `compute_reward`; one of one
    parameter that is called `reward` stays that. What they refer to is written out: functions of the user's own, also
    from `functools.partial`, lambdas that have a line of their own, and constants, as they are now: numbers, strings,
    small arrays, and tuples, lists and dictionaries of these. Names that would clash are changed, annotations and
    `@jax.jit` left out. No function is called.

    Raises:
        UnreadableFunction: it cannot be written out, or is no observation and no reward.
    """
    roles: dict[str, Any] = {}
    if not functions:
        raise UnreadableFunction("there is no function: give one or two", "")
    for function in functions:
        role = role_of(function)
        same = [r for r in roles if (r == "get_observation") == (role == "get_observation")]
        if same:
            names = f"{name_of(roles[same[0]])} and {name_of(function)}"
            message = f"{names} are two functions of the same kind: a program has one of {_FORMS}"
            raise UnreadableFunction(message, name_of(function))
        roles[role] = function
    writer = _Writer(_ENTRIES)
    try:
        for role, function in roles.items():
            writer.reserve(function, role)
        for role, function in sorted(roles.items(), key=lambda item: _ENTRIES.index(item[0])):
            writer.entry(function, role)
    except UnreadableFunction as error:
        if not error.usable:
            raise
        raise UnreadableFunction(f"{error}{OR_TRUSTED}", error.function, usable=True) from None
    return writer.program()


def role_of(function: Callable[..., Any]) -> Role:
    """What a function is in a program, by the number of its parameters.

    Raises:
        UnreadableFunction: another number of parameters, or no function.
    """
    if not callable(function):
        message = f"{function!r:.60} is a {type(function).__name__}: a program is made of functions"
        raise UnreadableFunction(message, "")
    for kind, is_kind in (("an async function", inspect.iscoroutinefunction), ("a generator", _is_generator)):
        if is_kind(function) or is_kind(type(function).__call__):
            raise UnreadableFunction(f"{name_of(function)} is {kind}: define a plain one with def", name_of(function))
    count = len(required_parameters(function))
    if count == 1:
        return "reward" if name_of(function) == "reward" else "get_observation"
    if count == 3:
        return "compute_reward"
    raise UnreadableFunction(f"{name_of(function)} takes {count} parameters: write it with {_FORMS}", name_of(function))


def _is_generator(function: Any) -> bool:
    return inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function)


@dataclass(frozen=True)
class FragmentText:
    """A function as a fragment of a vocabulary."""

    name: str
    kind: Literal["feature", "term"]
    source: str
    doc: str


def fragment_text(function: Callable[..., Any]) -> FragmentText:
    """A function of (state) as a feature, one of (state, action, next_state) as a term: one function of text, which
    holds the constants and helper functions that it needs.

    Raises:
        UnreadableFunction: it cannot be written out.
    """
    name, role = name_of(function), role_of(function)
    if name == "<lambda>":
        raise UnreadableFunction("a fragment has a name: define the function with def", name)
    core = core_of(function)
    writer = _Writer(() if isinstance(core, functools.partial) else read(core).bound)
    writer.reserve(function, name)
    writer.entry(function, name)
    kind = "feature" if role != "compute_reward" else "term"
    return FragmentText(name, kind, writer.one_function(name), inspect.getdoc(function) or "")


class _Writer:
    """Collects constants and functions under the names that the text has for them."""

    def __init__(self, reserved: Iterable[str]) -> None:
        self.taken = {*reserved, *_IMPORTS}
        self.constants: dict[str, str] = {}
        self.functions: dict[str, str] = {}
        self.names: dict[int, str] = {}
        self.held: list[Any] = []  # so that ids stay unique
        self.modules: set[str] = set()

    # ---- the whole

    def program(self) -> str:
        imports = [_IMPORTS[name] for name in _IMPORTS if name in self.modules]
        constants = [f"{name} = {_wrapped(text)}" for name, text in self.constants.items()]
        blocks = ["\n".join(imports), "\n".join(constants)]
        head = "\n\n".join(block for block in blocks if block)
        return "\n\n\n".join(filter(None, [head, *self.functions.values()])) + "\n"

    def one_function(self, name: str) -> str:
        """The function called `name` with all others and the constants inside."""
        text = self.functions[name]
        inside = [f"{key} = {_wrapped(value)}" for key, value in self.constants.items()]
        helpers = [other for key, other in self.functions.items() if key != name]
        if not inside and not helpers:
            return text + "\n"
        node = ast.parse(text).body[0]
        assert isinstance(node, ast.FunctionDef)
        if node.body[0].lineno == node.lineno:
            text = ast.unparse(node)
            node = ast.parse(text).body[0]
            assert isinstance(node, ast.FunctionDef)
        first, lines = node.body[0], text.split("\n")
        documented = isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant)
        at = (first.end_lineno or first.lineno) if documented else first.lineno - 1
        block = "\n".join(["\n".join(inside), *helpers]) if not inside else "\n\n".join(["\n".join(inside), *helpers])
        indented = textwrap.indent(block.strip("\n"), " " * first.col_offset).split("\n")
        return "\n".join([*lines[:at], *indented, *([""] if helpers else []), *lines[at:]]) + "\n"

    # ---- functions

    def reserve(self, function: Any, name: str) -> None:
        """What refers to this function calls it `name`."""
        self.names[id(core_of(function))] = name
        self.held.append(function)
        self.taken.add(name)

    def entry(self, function: Any, name: str) -> None:
        """Write a function that has a name already; what it has besides its required parameters is bound in it."""
        required = required_parameters(function)
        core = core_of(function)
        if isinstance(core, functools.partial) or len(inspect.signature(core).parameters) > len(required):
            del self.names[id(core)]
            self.functions[name] = self._binding(core, name)
            self.names[id(core)] = name
        else:
            self.functions[name] = self._text(read(core), name)

    def helper(self, function: Any, written: str, bound: Set[str] = frozenset()) -> str:
        """The name of a function that another one calls `written`, which has the names `bound` for something else."""
        core = core_of(function)
        if id(core) not in self.names:
            name = fresh_name(written if written.isidentifier() else "function", self.taken | bound)
            self.reserve(core, name)
            partial = isinstance(core, functools.partial)
            self.functions[name] = self._binding(core, name) if partial else self._text(read(core), name)
        return self.names[id(core)]

    def _binding(self, function: Any, name: str) -> str:
        """A function that calls another with what `functools.partial` or its defaults bind."""
        required = required_parameters(function)
        partial = isinstance(function, functools.partial)
        inner, given, named = (function.func, function.args, function.keywords) if partial else (function, (), {})
        called, owner, core = self.helper(inner, name_of(inner)), name_of(function), core_of(inner)
        places = Places(read(core)) if partial else None
        positions = inspect.signature(core).parameters if given else ()
        texts = [self._inline(value, owner, places, key) for value, key in zip(given, positions, strict=False)]
        texts += required
        texts += [f"{key}={self._inline(value, owner, places, key)}" for key, value in named.items()]
        return f"def {name}({', '.join(required)}):\n    return {called}({', '.join(texts)})"

    def _inline(self, value: Any, owner: str, places: Places | None, parameter: str) -> str:
        """The text of a value that is bound to a parameter of the function that has these places."""
        if is_function(value):
            return self.helper(value, name_of(value))
        try:
            text = literal(value, plain=places is not None and places.takes_plain(parameter, value))
        except NotLiteral as error:
            message = f"a value that is bound to {owner} {error}: {_REMEDY}"
            raise UnreadableFunction(message, owner, usable=error.usable) from None
        return self._mention(text)

    def _text(self, function: FunctionText, name: str) -> str:
        edits, places = Edits(function.text), Places(function)
        edits.rename(function.node, name)
        edits.drop_annotations(function.node)
        arguments, code = function.node.args, function.function
        positional = [*arguments.posonlyargs, *arguments.args][::-1]
        defaults = list(zip(positional, arguments.defaults[::-1], (code.__defaults__ or ())[::-1], strict=False))
        for argument, node in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True):
            if node is not None:
                defaults.append((argument, node, (code.__kwdefaults__ or {})[argument.arg]))
        for argument, node, value in defaults:
            edits.replace(node, self._inline(value, function.name, places, argument.arg))
        done = self._arithmetic(function, places, edits)
        for reference in function.references:
            if reference.name in done:
                continue
            node, text = self._reference(function, reference, places)
            if text is not None:
                root = _root(text)
                if root in function.bound:
                    message = f"{function.name} has a variable called {root}, which the program needs for something"
                    raise UnreadableFunction(f"{message} else: give it another name", function.name, usable=True)
                if not edits.stands(node):
                    message = f"{function.name} uses {ast.unparse(node)} inside of a string: assign it to a variable"
                    raise UnreadableFunction(f"{message} before", function.name, usable=True)
                edits.replace(node, text)
        return self._mention("@jax.vmap\n" * function.vmapped) + edits.applied()

    # ---- what they refer to

    def _arithmetic(self, function: FunctionText, places: Places, edits: Edits) -> set[ast.AST]:
        """Write what NumPy computes of constants alone as its value, for JAX would give other dtypes and digits; the
        nodes that this takes the place of."""
        done = set[ast.AST]()
        for node, value in alone(function).items():
            inside = set(ast.walk(node))
            try:
                text = literal(value, plain=places.is_plain(node, value))
            except NotLiteral:  # its parts may be
                continue
            if "[" in text:
                text = self._constant("constant", text, function.bound)
            if _root(text) not in function.bound and all(
                edits.stands(n) for n in inside if isinstance(n, ast.Name | ast.Attribute)
            ):
                edits.replace(node, self._mention(text))
                done |= inside
        return done

    def _reference(self, function: FunctionText, reference: Reference, places: Places) -> tuple[ast.expr, str | None]:
        """The expression that stands for something outside, and its text; None where it stays as it is."""
        node, value = reference.name, function.value(reference.name.id)
        written, said = reference.name.id, reference.name.id
        attributes = list(reference.attributes)
        while True:
            found = self._named(function, value, written, said, functools.partial(places.is_plain, node, value))
            if found is not None:
                return node, found if found != ast.unparse(node) else None
            if not attributes:
                raise self._refusal(function, value, said)
            above = attributes.pop(0)
            if isinstance(value, ModuleType) and value.__name__ in MODULES:
                inner = getattr(value, above.attr, None)
                if not (isinstance(inner, ModuleType) and inner.__name__ in MODULES):
                    return node, self._mention(MODULES[value.__name__])
            else:
                inner = attribute(value, above.attr)
                if inner is NOTHING:
                    raise self._refusal(function, value, said, above.attr)
            node, value, written, said = above, inner, above.attr, f"{said}.{above.attr}"

    def _named(
        self, function: FunctionText, value: Any, written: str, said: str, is_plain: Callable[[], bool]
    ) -> str | None:
        """The text for a value; None where only an attribute of it may have one."""
        if isinstance(value, ModuleType):
            return None
        if "." not in said and value is getattr(builtins, written, NOTHING):
            return written
        path = path_of(value, written, said)
        if path is not None:
            return self._mention(path)
        if is_function(value):
            package = package_of(value)
            if package not in (None, top(function.function.__module__ or "")):
                message = f"{function.name} calls {said}, a function of {package} that programs do not have:"
                advice = f"use jnp.{written}" if package in ("numpy", "math") else "write it out with jax.numpy"
                raise UnreadableFunction(f"{message} {advice}", function.name, usable=is_usable(value))
            return self.helper(value, written, function.bound)
        try:
            return self._constant(written, literal(value, plain=is_plain()), function.bound)
        except NotLiteral as error:
            if type(value) in (tuple, list, dict) or hasattr(value, "dtype") or isinstance(value, float):
                message = f"{function.name} uses {said}, which {error}: {_REMEDY}"
                raise UnreadableFunction(message, function.name, usable=error.usable) from None
            return None

    def _constant(self, written: str, text: str, bound: Set[str]) -> str:
        self._mention(text)
        same = [name for name, known in self.constants.items() if known == text and _stem(name) == _stem(written)]
        name = next((name for name in same if name not in bound), "")
        if not name:
            name = fresh_name(written, self.taken | bound)
            self.taken.add(name)
            self.constants[name] = text
        return name

    def _mention(self, text: str) -> str:
        self.modules |= {name for name in _IMPORTS if re.search(rf"\b{name}\b", text)}
        return text

    def _refusal(self, function: FunctionText, value: Any, said: str, attribute: str = "") -> UnreadableFunction:
        what = f"the module {value.__name__}" if isinstance(value, ModuleType) else f"a {type(value).__name__}"
        what = f"the class {value.__name__}" if isinstance(value, type) else what
        usable = is_usable(value) and (not attribute or has(value, attribute))
        if top(getattr(value, "__name__", "")) == "numpy" and isinstance(value, ModuleType):
            message = f"{function.name} uses {said}.{attribute}, and programs compute with jax.numpy:"
            return UnreadableFunction(f"{message} write jnp.{attribute}", function.name)
        which = f"the attribute {attribute} of {said}, {what}, which" if attribute else f"{said}, {what}, which"
        message = f"{function.name} uses {which} cannot be written out: {_REMEDY}"
        return UnreadableFunction(message, function.name, usable=usable)


def _root(text: str) -> str:
    """The name that a text begins with."""
    return re.split(r"[.(]", text)[0]


def _stem(name: str) -> str:
    return re.sub(r"_\d+$", "", name)


def _wrapped(text: str) -> str:
    """A long list of numbers on several lines."""
    if len(text) <= _WIDE or "'" in text or '"' in text:
        return text
    return "\n    ".join(textwrap.wrap(text, _WIDE, break_long_words=False, break_on_hyphens=False))
