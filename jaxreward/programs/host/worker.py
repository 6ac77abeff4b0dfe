"""The worker of programs on text: a process without JAX that forks a locked-down child for each program.

Run as `python -m jaxreward.programs.host.worker`; `locked_child` says how it is asked. A request has the `source`,
the `texts` and the `transitions`: triples of their indices, of the state, the action and the next state. The child
sends the guard's verdict, then the rewards or a failure.
"""

from __future__ import annotations

import ast
import builtins
import gc
import importlib
import math
import types
from collections.abc import Callable
from typing import Any

from jaxreward.programs import locked_child
from jaxreward.programs.determinism import CHECKS, add_checks
from jaxreward.programs.entries import FILE, Refused
from jaxreward.programs.host.guard import guard
from jaxreward.programs.host.names import API, BUILTINS
from jaxreward.programs.limits import Limits
from jaxreward.programs.read_only import Module

_TERM = 64
"""Characters of the name of a term."""


_CHECKS = {**CHECKS, "__known": lambda value: value}
"""Every state is a string here and elsewhere, so its type may be asked for."""

MODULES: dict[str, Module] = {}
"""The stand-ins by name, made before the first child."""


def main() -> None:
    locked_child.serve_forever(serve, warm_up)


def warm_up() -> None:
    """Import what programs use: a child can open no file."""
    import unicodedata  # noqa: F401  Python's parser imports it for names that are not ASCII

    for name, names in API.items():
        real = importlib.import_module(name)
        MODULES[name] = Module({n: getattr(real, n) for n in names if hasattr(real, n)})
    MODULES["xml.etree"] = Module({"ElementTree": MODULES["xml.etree.ElementTree"]})
    MODULES["xml.etree.ElementTree"].fromstring("<a b='c'/>")  # type: ignore[attr-defined]
    MODULES["re"].compile("(?i)a*")  # type: ignore[attr-defined]
    gc.collect()
    gc.freeze()


def serve(request: dict[str, Any], send: Callable[[dict[str, Any]], None]) -> None:
    """Check one program, execute it on all transitions, and send what it pays."""
    try:
        checked = guard(request["source"], Limits(**request["limits"]))
        code = compile(add_checks(checked.tree), FILE, "exec", dont_inherit=True)
    except BaseException as error:
        send({"failure": _failure(error)})
        return
    send({"entry": checked.entry, "nodes": checked.nodes})
    try:
        send(_rewards(code, checked.entry, request))
    except BaseException as error:
        send({"failure": _failure(error, _line_of(checked.tree, checked.entry))})


def _rewards(code: types.CodeType, entry: str, request: dict[str, Any]) -> dict[str, Any]:
    """The rewards in the order of the transitions, which are evaluated backwards where that is asked for."""
    function = _executed(code)[entry]
    texts, transitions, most = request["texts"], request["transitions"], request["limits"]["magnitude"]
    rewards, terms = [0.0] * len(transitions), list[str]()
    order = range(len(transitions))
    for k in reversed(order) if request["backwards"] else order:
        state, action, next_state = (texts[i] for i in transitions[k])
        # GRACE's form is `reward(state)`, of the state that an action led to.
        value = function(next_state) if entry == "reward" else function(state, action, next_state)
        total, named = _parts(value, entry)
        if not math.isfinite(total) or abs(total) > most:
            hint = "guard divisions, logarithms and powers"
            raise Refused(f"the reward of a state is {total:g}: not finite, or above {most:g}", None, hint, "numeric")
        rewards[k] = total
        if named and not terms:
            terms = named
    return {"rewards": rewards, "terms": terms}


def _executed(code: types.CodeType) -> dict[str, Any]:
    def importer(name: str, _g: Any = None, _l: Any = None, fromlist: Any = (), level: int = 0) -> Any:
        if name == "__future__":
            return Module({"annotations": None})
        if level or name not in MODULES:
            raise ImportError(f"import of {name!r} is not allowed")
        # `import a.b.c as d` asks for `a`, and takes `b` and `c` from it.
        return MODULES[name] if fromlist or "." not in name else _nested(name)

    allowed = {name: getattr(builtins, name) for name in BUILTINS}
    names = {"__builtins__": {**allowed, "__import__": importer}, "__name__": "candidate", **_CHECKS}
    exec(code, names)
    return names


def _nested(name: str) -> Module:
    """The stand-in of the package around a module, which holds nothing but the way to it."""
    found = MODULES[name]
    for part in reversed(name.split(".")[1:]):
        found = Module({part: found})
    return found


def _parts(value: Any, entry: str) -> tuple[float, list[str]]:
    """A reward, and the names of its terms."""
    names = list[str]()
    if isinstance(value, tuple) and len(value) == 2 and isinstance(value[1], dict):
        value, terms = value
        names = list(terms)
        if not all(isinstance(n, str) and 0 < len(n) <= _TERM and n.isprintable() for n in names):
            raise Refused(f"{entry} names a term by something that is no short text", stage="contract")
    if not isinstance(value, int | float):  # bool is one
        hint = "return a number in every case"
        raise Refused(f"{entry} returns {type(value).__name__} for a state", hint=hint, stage="contract")
    try:
        return float(value), names
    except OverflowError:
        return math.inf, names


def _failure(error: BaseException, line: int | None = None) -> dict[str, Any]:
    where = _line(error) or line
    if isinstance(error, Refused):
        found = error.stage, error.message, error.line or where, error.hint
    elif isinstance(error, TimeoutError):
        found = "killed", "it takes too much processor time", where, "regular expressions that can match in many ways"
    elif isinstance(error, MemoryError):
        found = "limits", "it needs too much memory", where, "build smaller texts and lists"
    elif isinstance(error, RecursionError):
        found = "trace", "the calls are nested too deeply", where, "use a loop"
    else:
        text = str(error).split("\n")[0]
        found = "trace", f"{type(error).__name__}: {text}" if text else type(error).__name__, where, ""
    return dict(zip(("stage", "message", "line", "hint"), found, strict=True))


def _line(error: BaseException) -> int | None:
    """The innermost line of the program on which an exception arose."""
    found, trace = None, error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == FILE:
            found = trace.tb_lineno
        trace = trace.tb_next
    return found


def _line_of(tree: ast.Module, name: str) -> int | None:
    return next((n.lineno for n in tree.body if isinstance(n, ast.FunctionDef) and n.name == name), None)


if __name__ == "__main__":
    main()
