"""Whether the text of a function is that of the code that runs, or was edited after it was imported."""

from __future__ import annotations

import linecache
import os
import warnings
from collections.abc import Hashable, Iterator
from functools import lru_cache
from importlib.machinery import SourceFileLoader
from types import CodeType, FunctionType
from typing import Any


def is_edited(function: FunctionType) -> bool:
    """Whether the file of a function says now, at the lines where the function was, something else than what runs.

    The file is compiled, not executed. Comments, layout and decorators may differ. False where this cannot be known:
    the function is of no file, such as one of a notebook's cell, which stays as it ran; the file does not compile;
    or something else than Python's own import made the code of it, as tools do that check types or measure.
    """
    code, loader = function.__code__, function.__globals__.get("__loader__")
    if not os.path.isfile(code.co_filename) or not (loader is None or type(loader) is SourceFileLoader):
        return False
    linecache.checkcache(code.co_filename)
    lines = linecache.getlines(code.co_filename, function.__globals__)
    known = _compiled("".join(lines))
    return known is not None and _essence(code) not in known.get((code.co_name, code.co_firstlineno), ())


@lru_cache(64)
def _compiled(text: str) -> dict[tuple[str, int], list[Hashable]] | None:
    """What the functions of a file do, by name and line; None where it does not compile."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            module = compile(text, "<text>", "exec", dont_inherit=True)
    except (SyntaxError, ValueError, RecursionError, MemoryError, OverflowError):
        return None
    found: dict[tuple[str, int], list[Hashable]] = {}
    for code in (inner for part in module.co_consts if isinstance(part, CodeType) for inner in codes_of(part)):
        found.setdefault((code.co_name, code.co_firstlineno), []).append(_essence(code))
    return found


def codes_of(code: CodeType) -> Iterator[CodeType]:
    """A function's code and that of the functions inside of it."""
    yield code
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            yield from codes_of(inner)


def _essence(code: CodeType) -> Hashable:
    """What a function does, without the places of its text."""
    counts = code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount
    names = code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars
    return code.co_name, code.co_code, counts, names, _constant(code.co_consts)


def _constant(value: Any) -> Hashable:
    """A constant, so that 1, 1.0 and True differ, as 0.0 and -0.0 do."""
    if isinstance(value, CodeType):
        return _essence(value)
    if isinstance(value, tuple | frozenset):
        return type(value), type(value)(map(_constant, value))
    return type(value), repr(value)
