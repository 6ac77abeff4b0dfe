"""Digests of an object's code and of its values, the same in every process."""

from __future__ import annotations

import dataclasses
import dis
import functools
import hashlib
import linecache
import sys
import textwrap
from collections import deque
from collections.abc import Iterator, Mapping, Set
from enum import Enum
from pathlib import PurePath
from types import BuiltinFunctionType, CodeType, FunctionType, MethodType, ModuleType
from typing import Any

import jax
import numpy as np

from jaxreward.errors import FILE_OF_USER
from jaxreward.function_source.edited import codes_of, is_edited
from jaxreward.function_source.outside import is_installed, top
from jaxreward.identity.parts import BYTECODE, ITEMS, LONGEST, Parts

MOST_PARTS = 20_000
"""Values, functions and classes that are looked at; what comes later is not compared."""
DEEPEST = 40
"""Objects inside of each other that are looked at."""

OWN = ""
"""The package of what is the user's."""
_HERE = "jaxreward"


class Fingerprint:
    """What stands for the parts of one object.

    The user's own functions count by their source, or by their bytecode where that is not known, and by what they
    refer to: defaults, closures, and the globals that they read. The user's own classes count by their functions and
    by what else is stored in them. Functions and classes of installed packages count by their names.

    Objects count by what they store, without what `functools.cached_property` keeps. Of installed packages that is so
    for dataclasses, and for what an object of the user's, of this package or of their own package holds; other objects
    are left out, as None is, and so are those of Python's own library and of extensions in C.

    Attributes:
        texts: all source, with its position.
        shown: the parts in words, as far as they are told apart.
    """

    def __init__(self) -> None:
        self.shown = Parts()
        self.texts: dict[str, int] = {}
        self._known: dict[int, str | None] = {}
        self._kept: list[Any] = []  # so that ids stay unique
        self._depth = 0
        self._left = MOST_PARTS

    @property
    def source(self) -> str:
        """A digest of all source, empty where there is none."""
        return digest_of(*self.texts) if self.texts else ""

    def of(self, value: Any, holder: str = OWN) -> str | None:
        """What stands for a value that something of the package `holder` has; None for what is left out. Source is
        replaced by its position among `texts`."""
        if value is None or id(value) in self._known:
            return self._known.get(id(value))
        try:
            if (text := plain(value)) is not None:
                self.shown.value(value, digest_of(text), "" if type(value) in _WRITTEN else text)
                return text
        except Exception:  # whatever an object raises when it is looked at
            return None
        if self._left <= 0 or self._depth >= DEEPEST:
            return "beyond the limits"
        self._left -= 1
        self._kept.append(value)
        self._known[id(value)] = "itself"  # where it is found inside of itself
        self._depth += 1
        try:
            found = self._of(value, holder)
        except Exception:
            found = None
        finally:
            self._depth -= 1
        self._known[id(value)] = found
        return found

    def parts(self, stored: Mapping[str, Any], holder: str = OWN) -> list[str]:
        """What stands for the attributes of an object of the package `holder`, by name."""
        found = ((name, self._at(f".{name}", item, holder)) for name, item in sorted(stored.items()))
        return [f"{name}={text}" for name, text in found if text is not None]

    def _at(self, step: str | None, value: Any, holder: str = OWN) -> str | None:
        """As `of`, for what `step` leads to from what is looked at now."""
        with self.shown.at(step):
            return self.of(value, holder)

    def _of(self, value: Any, holder: str) -> str | None:
        if isinstance(value, np.ndarray | np.generic | jax.Array):
            return self._array(value)
        if isinstance(value, list | tuple | deque):
            fields = [f".{name}" for name in getattr(value, "_fields", ())]
            steps = fields or [f"[{place}]" if len(value) <= ITEMS else None for place in range(len(value))]
            items = [str(self._at(step, item, holder)) for step, item in zip(steps, value, strict=True)]
            return self._whole(digest_of(type(value).__name__, *items), None in steps)
        if isinstance(value, set | frozenset):
            items = sorted(str(self._at(None, item, holder)) for item in value)
            return self._whole(digest_of("set", *items))
        if isinstance(value, type):
            return self._class(value)
        if isinstance(value, ModuleType):
            self.shown.note(text := f"module {module_name(value.__name__)}")
            return text
        if isinstance(value, Mapping) or all(hasattr(type(value), name) for name in ("keys", "__getitem__")):
            return self._mapping(value, holder)
        return self._function(value, holder) or self._object(value, holder)

    def _mapping(self, value: Any, holder: str) -> str:
        keys = tuple(value.keys())
        is_long = len(keys) > ITEMS or not all(type(k) is int or (type(k) is str and len(k) <= LONGEST) for k in keys)
        steps = [None if is_long else f"[{key!r}]" for key in keys]
        pairs = [
            f"{self._at(None, key, holder)}: {self._at(step, value[key], holder)}"
            for key, step in zip(keys, steps, strict=True)
        ]
        return self._whole(digest_of("mapping", *sorted(pairs)), is_long)

    def _whole(self, digest: str, is_long: bool = True) -> str:
        """The digest of a container, recorded where its items are not."""
        if is_long:
            self.shown.note(f"values #{digest}")
        return digest

    def _array(self, value: Any) -> str:
        if isinstance(value, jax.Array) and jax.dtypes.issubdtype(value.dtype, jax.dtypes.prng_key):
            return digest_of(f"key {jax.random.key_impl(value)}", self._array(jax.random.key_data(value)))
        array = np.asarray(value)
        items = array.tolist() if array.dtype.hasobject else None
        data = np.ascontiguousarray(array).tobytes() if items is None else str(self._at(None, items)).encode()
        digest = digest_of(f"array {array.dtype} {array.shape}", hashlib.sha256(data).hexdigest())
        self.shown.array(array, digest)
        return digest

    # ---- functions

    def _function(self, value: Any, holder: str) -> str | None:
        """What stands for a function, or for what holds one and is called in its place; None for another object."""
        if isinstance(value, FunctionType):
            return self._plain_function(value)
        if isinstance(value, BuiltinFunctionType | np.ufunc):
            holder_of_it = getattr(value, "__self__", None)  # of a method; of a function its module
            self.shown.note(f"function {value.__name__}")
            return digest_of(f"function {value.__name__}", str(self._at(None, holder_of_it, holder)))
        for kinds, names in _HOLDERS:
            if isinstance(value, kinds):
                held = [str(self._at(f".{name}", getattr(value, name), holder)) for name in names]
                return digest_of(type(value).__name__, *held)
        if callable(inner := getattr(value, "__wrapped__", None)):  # of jax.jit, functools.cache and the like
            return digest_of("wrapped", str(self.of(inner, holder)))
        return None

    def _plain_function(self, function: FunctionType) -> str:
        code, module = function.__code__, function.__globals__.get("__name__") or ""
        package = package_of(module, code.co_filename)
        label = label_of(module, function.__qualname__)
        self.shown.note(f"function {label}")
        label = label if package else self.shown.named(label)
        named = f"function {package}.{function.__qualname__}" if package else self._text(function, label)
        cells = zip(code.co_freevars, function.__closure__ or (), strict=True)
        found = list[str]()
        for name, cell in cells:
            with self.shown.at(f"({name})") if package else self.shown.under(label, f"({name})"):
                found.append(f"{name}={self.of(_content(cell), package)}")
        for name, written, value in [] if package else _globals_of(function):
            head, dot, last = written.rpartition(".")
            with self.shown.under(head + dot, last):
                found.append(f"{name}={self.of(value, package)}")
        for name, value in (("defaults", function.__defaults__), ("keyword defaults", function.__kwdefaults__)):
            found.append(f"{name}={self._at(None, value, package)}")
        if not package:
            self._defaults(function, label)
        return digest_of(named, *found)

    def _defaults(self, function: FunctionType, label: str) -> None:
        """Record those default values that are numbers, words or the like, by the name of the parameter."""
        code, values = function.__code__, function.__defaults__ or ()
        names = code.co_varnames[: code.co_argcount][-len(values) :] if values else ()
        for name, value in (*zip(names, values, strict=False), *(function.__kwdefaults__ or {}).items()):
            if plain(value) is not None:
                with self.shown.under(label, f"({name})"):
                    self.of(value)

    def _text(self, function: FunctionType, label: str) -> str:
        source = _source_of(function)
        text = source or self._bytecode(function.__code__)
        self.shown.source(label, "source" if source else BYTECODE, digest_of(text))
        return f"text {self.texts.setdefault(text, len(self.texts))}"

    def _bytecode(self, code: CodeType) -> str:
        constants = [self._bytecode(c) if isinstance(c, CodeType) else str(self._at(None, c)) for c in code.co_consts]
        return digest_of(code.co_code.hex(), *constants, *code.co_names, *code.co_varnames)

    # ---- classes and objects

    def _class(self, kind: type) -> str:
        parts = list[str]()
        self.shown.note(f"class {label_of(kind.__module__, kind.__qualname__)}")
        for base in kind.__mro__ if not package_of(kind.__module__) else (kind,):
            package = package_of(base.__module__)
            parts.append(f"class {base.__module__ if package else OWN}.{base.__qualname__}")
            if not package:
                with self.shown.under(self.shown.named(label_of(base.__module__, base.__qualname__))):
                    parts += self.parts({name: v for name, v in vars(base).items() if _is_written(base, name, v)})
        return digest_of(*parts)

    def _object(self, value: Any, holder: str) -> str | None:
        package = package_of(type(value).__module__)
        if not dataclasses.is_dataclass(value):
            seen = package in (OWN, _HERE) or holder in (OWN, _HERE, package)
            if not seen or package in sys.stdlib_module_names or (package and not hasattr(value, "__dict__")):
                return None
        self.shown.note(f"object {label_of(type(value).__module__, type(value).__qualname__)}")
        return digest_of(str(self._at(None, type(value))), *self.parts(attributes(value), package))


_HOLDERS: tuple[tuple[Any, tuple[str, ...]], ...] = (
    (functools.partial, ("func", "args", "keywords")),
    (MethodType, ("__func__", "__self__")),
    ((staticmethod, classmethod), ("__func__",)),
    (property, ("fget", "fset")),
    (functools.cached_property, ("func",)),
)
"""What holds functions, and the attributes that say which."""


_WRITTEN = (bool, int, float, complex, str, bytes, range, slice, list, tuple)
"""Kinds of values that are shown as Python writes them."""


def plain(value: Any) -> str | None:
    """The text of a number, a word, a path, a member of an enumeration, or of a list or tuple of these; else None."""
    if type(value) in (bool, int, float, complex, str, bytes, range, slice, type(...)):
        return repr(value)
    if isinstance(value, Enum):
        return f"{module_name(type(value).__module__)}.{type(value).__qualname__}.{value.name}"
    if isinstance(value, PurePath):
        return f"path {value.as_posix()!r}"
    if isinstance(value, np.dtype):
        return f"dtype {value.str}"
    if type(value) in (list, tuple):
        texts = ["None" if item is None else plain(item) for item in value]
        return f"{type(value).__name__} {', '.join(filter(None, texts))}" if None not in texts else None
    return None


def attributes(value: Any) -> dict[str, Any]:
    """What an object stores: of a dataclass the fields and, if it is the user's, other public attributes."""
    kind = type(value)
    computed = {n for base in kind.__mro__ for n, v in vars(base).items() if isinstance(v, functools.cached_property)}
    stored = dict(getattr(value, "__dict__", {}))
    for base in kind.__mro__:
        names = vars(base).get("__slots__", ())
        stored |= {name: getattr(value, name, None) for name in ([names] if isinstance(names, str) else names)}
    if dataclasses.is_dataclass(value):
        fields = {f.name: getattr(value, f.name, None) for f in dataclasses.fields(value)}
        own = not package_of(kind.__module__)
        stored = {name: v for name, v in stored.items() if own and not name.startswith("_")} | fields
    return {name: v for name, v in stored.items() if name not in computed and not name.startswith("__")}


def digest_of(*parts: str) -> str:
    """A digest of texts in their order."""
    return hashlib.sha256("\0".join(parts).encode("utf-8", "surrogatepass")).hexdigest()[:12]


def package_of(module: str, file: str | None = None) -> str:
    """The installed package of a module, `OWN` for one of the user's; `file` is that of code in it."""
    if top(module) == _HERE:
        return _HERE
    if file is None or file.startswith("<"):
        known = sys.modules.get(module)
        file = getattr(known, "__file__", None)
        if file is None:  # an interpreter or a notebook, or a module in C
            return OWN if module == "__main__" or known is None else top(module)
    return top(module) or "unknown" if is_installed(file) else OWN


def module_name(module: str) -> str:
    """The name of a module; empty for a file that this package imported, whose module has another one in every
    process."""
    return "" if FILE_OF_USER in vars(sys.modules.get(module, object)) else module


def label_of(module: str, name: str) -> str:
    """What a function, a class or a global is called in a message."""
    found = module_name(module)
    return name if found in ("", "__main__") else f"{found}.{name}"


def _content(cell: Any) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # nothing yet
        return None


def _is_written(kind: type, name: str, value: Any) -> bool:
    """Whether the user wrote an attribute of a class, and not Python or a decorator such as `dataclass`."""
    if not (name.startswith("__") and name.endswith("__")):
        return True
    if isinstance(value, FunctionType):
        return not value.__code__.co_filename.startswith("<") or bool(_source_of(value))
    return name == "__doc__" and not str(value).startswith(f"{kind.__name__}(")


def _source_of(function: FunctionType) -> str:
    """The text of a function, empty where it is not known, as after an edit of the file that was imported."""
    code = function.__code__
    if is_edited(function):
        return ""
    linecache.checkcache(code.co_filename)
    lines = linecache.getlines(code.co_filename, function.__globals__)
    if not lines:
        return ""
    spans = [span for inner in codes_of(code) for span in inner.co_positions()]
    last = max(end for _, end, *_ in spans if end)
    text = "".join(lines[code.co_firstlineno - 1 : last])
    places = [((line, start), (end, stop)) for line, end, start, stop in spans if line and end and stop]
    if code.co_name != "<lambda>" or not places:
        return textwrap.dedent(text).strip()
    (first, start), (last, stop) = min(p for p, _ in places), max(p for _, p in places)
    raw = "".join(lines[first - 1 : last]).encode()  # columns count bytes
    cut = len(lines[last - 1].encode()) - stop
    parameters = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    return f"lambda {', '.join(parameters)}: {raw[start : len(raw) - cut].decode()}"


def _globals_of(function: FunctionType) -> list[tuple[str, str, Any]]:
    """The globals that a function reads and does not assign, by their names in it and in messages; of the user's own
    modules, the attributes that it may read."""
    read, stored, dotted = set[str](), set[str](), set[str]()
    for code in codes_of(function.__code__):
        for step in dis.get_instructions(code):
            if step.opname in ("LOAD_GLOBAL", "LOAD_NAME"):
                read.add(str(step.argval))
            elif step.opname == "STORE_GLOBAL":
                stored.add(str(step.argval))
            elif step.opname in ("LOAD_ATTR", "LOAD_METHOD"):
                dotted.add(str(step.argval))
    known = function.__globals__
    names, home = sorted((read - stored) & known.keys()), known.get("__name__") or ""
    return [found for name in names for found in _read(name, label_of(home, name), known[name], dotted, ())]


def _read(
    name: str, label: str, value: Any, dotted: Set[str], inside: tuple[ModuleType, ...]
) -> Iterator[tuple[str, str, Any]]:
    """A global, or in place of a module those of its attributes that are among `dotted`, also of the modules in it; of
    installed packages none."""
    if inside or not isinstance(value, ModuleType):
        yield name, label, value
    if isinstance(value, ModuleType) and not package_of(value.__name__) and value not in inside:
        for inner in sorted(dotted & vars(value).keys()):
            label = label_of(value.__name__, inner)
            yield from _read(f"{name}.{inner}", label, vars(value)[inner], dotted, (*inside, value))
