"""Functions whose file was edited after it was imported: their text is not what runs."""

from __future__ import annotations

import functools
import importlib
import linecache
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any

import pytest

from jaxreward.function_source import EditedFunction, fragment_text, source_of
from jaxreward.function_source.edited import is_edited
from jaxreward.identity.fingerprint import Fingerprint

TEXT = '''\
"""Of everything that a module may have."""
from __future__ import annotations

import functools

import jax
import jax.numpy as jnp

SCALE, NAMES = 2.0, {"a", "b", "c"}


def look(state: Missing, k: float = 1.0) -> Missing:
    """What is seen."""
    assert k > 0, "positive"
    value: Missing = state.pos
    return value * SCALE * k  # scaled


def inner(state):
    def scaled(x, by=(1, 1.0, True, None, ..., "é", b"e", -0.0, 1j)):
        return [x * y for y in (x, SCALE) if y in {"a", "b", "c"} or look(x)]

    return scaled(state.pos, by=lambda k: k + SCALE)


@functools.partial(jax.jit, static_argnames=("k",))
@jax.vmap
def decorated(state, k=1):
    return state.pos * k


def made(scale):
    @jax.jit
    def nested(state):
        nonlocal scale
        return state.pos * scale

    return nested


first, second = lambda state: state.pos, lambda state: state.vel
lines = (
    lambda state:
        state.pos
)
several = \\
    lambda state: state.pos + 1


class Private:
    __hidden = 1

    def method(self, state):
        __local = super().__class__
        return self.__hidden * state.pos

    @staticmethod
    def still(state):
        return state.pos * Private.__hidden

    @property
    def field(self):
        try:
            yield from (self.__hidden for _ in NAMES)
        finally:
            with open(__file__) as file:
                match file:
                    case [1, *_]:
                        pass


async def waits(state):
    async for x in state:
        await x
'''


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., ModuleType]]:
    """A module of a text, imported as the user's are."""
    monkeypatch.syspath_prepend(tmp_path)

    def made(text: str, name: str = "edited_functions") -> ModuleType:
        (tmp_path / f"{name}.py").write_text(text)
        importlib.invalidate_caches()
        sys.modules.pop(name, None)
        return importlib.import_module(name)

    yield made
    sys.modules.pop("edited_functions", None)


def functions_in(module: ModuleType) -> list[FunctionType]:
    found = [module.look, module.inner, module.decorated, module.made, module.made(2.0), module.waits, *module.lines_]
    found += [module.Private.method, module.Private.still, module.Private.field.fget]
    return [_plain(function) for function in found]


def _plain(function: Any) -> FunctionType:
    while hasattr(function, "__wrapped__"):
        function = function.__wrapped__
    return function


def edit(module: ModuleType, old: str, new: str) -> None:
    path = Path(module.__file__ or "")
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


def test_no_function_of_an_unedited_file_is_taken_for_edited(module):
    known = module(TEXT + "lines_ = first, second, lines, several\n")
    functions = functions_in(known)
    assert len(functions) == 13 and not any(map(is_edited, functions))
    for _ in range(100):  # so that the interpreter specialises it
        with pytest.raises(AttributeError):
            known.several(None)
    again = module(TEXT + "lines_ = first, second, lines, several\n")  # from its compiled file
    assert not any(map(is_edited, functions_in(again))) and not is_edited(_plain(known.several))
    comment = "  # scaled"
    edit(again, comment, "")
    assert not any(map(is_edited, functions_in(again)))  # no comment is code


@pytest.mark.parametrize(
    ("old", "new", "name"),
    [
        ("SCALE * k", "SCALE / k", "look"),
        ("(1, 1.0, True,", "(1, 1.0, 1,", "inner"),
        ("k + SCALE", "k + 1", "inner"),
        ("-0.0", "0.0", "inner"),
        ('"a", "b", "c"} or', '"a", "b", "d"} or', "inner"),
        ("state.pos * k\n", "state.vel * k\n", "decorated"),
        ("state.pos * scale", "state.pos + scale", "made"),
        ("state.vel\n", "state.pos\n", "second"),
        ("SCALE, NAMES", "# a line\nSCALE, NAMES", "look"),
    ],
)
def test_an_edited_function_is(module, old, new, name):
    known = module(TEXT)
    function = _plain(getattr(known, name))
    assert not is_edited(function)
    edit(known, old, new)
    assert is_edited(function)


def test_an_edited_function_is_refused_in_one_sentence(module, checker, task):
    text = "SCALE = 2.0\n\n\ndef helper(x):\n    return x * SCALE\n\n\ndef look(state):\n    return helper(state.pos)\n"
    known = module(text)
    before = Fingerprint()
    before.of(known.look)
    assert len(before.texts) == 2 and all(t.startswith("def ") for t in before.texts)
    edit(known, "x * SCALE", "x + SCALE")
    words = r"^the file .*edited_functions\.py was edited after it was imported: the text of helper is not the code "
    words += r"that runs; import it again \(importlib.reload\) or restart$"
    for call in (source_of, fragment_text, functools.partial(checker.load, task=task)):
        with pytest.raises(EditedFunction, match=words):
            call(known.look)
    with pytest.raises(EditedFunction, match="the text of helper"):
        checker.load(known.helper, task, trusted=True)
    after = Fingerprint()
    after.of(known.look)
    assert sum(t.startswith("def ") for t in after.texts) == 1  # the other by its code
    source = source_of(importlib.reload(known).look)
    assert "x + SCALE" in source


def test_what_cannot_be_compared_is_read_as_it_is(module):
    known = module(TEXT)
    edit(known, "SCALE * k", "SCALE *")  # no Python any more
    assert not is_edited(known.look)
    edit(known, "SCALE *", "SCALE / k")
    known.__loader__ = object()  # as of a tool that changes code on import
    assert not is_edited(known.look)
    names: dict[str, Any] = {}
    cell: str = "def look(state):\n    return state.pos\n"
    linecache.cache["<cell 1>"] = (len(cell), None, [*map(str, cell.splitlines(True))], "<cell 1>")
    exec(compile(cell, "<cell 1>", "exec"), names)
    assert not is_edited(names["look"]) and "return state.pos" in source_of(names["look"])
    del linecache.cache["<cell 1>"]
