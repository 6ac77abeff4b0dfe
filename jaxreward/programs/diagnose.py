"""Failures of a trace as messages with hints that a program's author can act on."""

from __future__ import annotations

import re

import jax

from jaxreward.errors import causes
from jaxreward.programs.entries import FILE, Refused
from jaxreward.programs.spec import Spec
from jaxreward.programs.tape import TapeError
from jaxreward.programs.worker_reply import LOOPS

_WHERE = "use jnp.where(condition, a, b) or jax.lax.select, and & | ~ in place of and, or, not"
_HINTS: tuple[tuple[type[BaseException], str, str], ...] = (
    (jax.errors.TracerBoolConversionError, "the truth value of an array is not known when the program is traced",
     _WHERE),
    (jax.errors.TracerIntegerConversionError, "an array is used where Python needs an integer",
     "index an array, not a list: jnp.array(table)[i]; loops and shapes need plain integers"),
    (jax.errors.TracerArrayConversionError, "an array is turned into a NumPy array or a list",
     "keep to jax.numpy; use jnp.stack for a list of arrays"),
    (jax.errors.NonConcreteBooleanIndexError, "a boolean mask selects a number of elements that is not known",
     "use jnp.where(mask, x, 0.0) and sum, or jnp.argmax of the mask"),
    (jax.errors.ConcretizationTypeError, "a plain Python value is needed, and an array is not known yet",
     "do not call int(), float() or bool() on an array, use .astype; sizes must be constants: give size=... or use "
     "jnp.where; module tables that Python code reads should be tuples, not jnp.array"),
    (jax.errors.UnexpectedTracerError, "an array was kept from another call",
     "do not store arrays in module-level lists or dictionaries"),
    (RecursionError, "the calls are nested too deeply", "recursion is not available: use a loop"),
    (MemoryError, "it needs too much memory while it is traced", "build smaller arrays and lists"),
)  # fmt: skip


def diagnose(error: BaseException, source: str, spec: Spec) -> dict[str, object]:
    """A failure as JSON: stage, message, line, hint."""
    line = line_of(error)
    if isinstance(error, Refused):
        return _failure(error.stage, error.message, error.line or line, error.hint)
    if isinstance(error, TapeError):
        return _failure(error.stage, error.message, error.line or line, error.hint)
    if isinstance(error, SyntaxError):  # from the compiler: a return outside a function, a break outside a loop
        return _failure("guard", f"not valid Python: {error.msg}", error.lineno, "")
    chain = list(causes(error))
    if any(isinstance(e, TimeoutError) for e in chain):  # what comes of it on the way up may be another exception
        return _failure("killed", "it takes too much processor time to trace", line, LOOPS)
    error = next((e for e in chain if isinstance(e, MemoryError)), error)
    for kind, message, hint in _HINTS:
        if isinstance(error, kind):
            return _failure("limits" if kind is MemoryError else "trace", message, line, hint)
    text = _first_lines(str(error.args[0]) if isinstance(error, KeyError) and error.args else str(error))
    message = f"{type(error).__name__}: {text}" if text else type(error).__name__
    return _failure("trace", message, line, _hint(error, text, line, source, spec))


def _failure(stage: str, message: str, line: int | None, hint: str) -> dict[str, object]:
    return {"stage": stage, "message": message[:600], "line": line, "hint": hint[:600]}


def line_of(error: BaseException) -> int | None:
    """The innermost line of the program on the way to the error."""
    for current in causes(error):
        found, step = None, current.__traceback__
        while step is not None:
            if step.tb_frame.f_code.co_filename == FILE:
                found = step.tb_lineno
            step = step.tb_next
        if found is not None:
            return found
    return None


def _first_lines(text: str) -> str:
    """The message without JAX's advice and links, which do not apply here."""
    text = re.split(r"\nSee https?:|The error occurred while tracing|This Tracer|Revise |: https?:", text.strip())[0]
    text = re.sub(r"\b\w+Tracer\b", "array", text)
    return re.sub(r"\s+", " ", text)[:400].strip()


def _hint(error: BaseException, text: str, line: int | None, source: str, spec: Spec) -> str:
    if "none_such" in text or "backend" in text:
        return "this function needs values that are not known when the program is traced: use another one"
    if isinstance(error, AttributeError | KeyError) and "the state has no" in text:
        return "the state's arrays are " + ", ".join(map(str, spec.leaves))[:400]
    if isinstance(error, AssertionError):
        return "the assertion fails for the shapes of this task" + _shapes(line, source, spec)
    if "does not support item assignment" in text or "immutable" in text:
        return "arrays are immutable: write x = x.at[i].set(value)"
    if re.search(r"shape|broadcast|dimension|axis|size", text, re.IGNORECASE):
        return ("check the shapes" + _shapes(line, source, spec)).strip()
    if isinstance(error, TypeError) and "dtype" in text:
        return "check the dtypes" + _shapes(line, source, spec)
    return _shapes(line, source, spec).lstrip("; ")


def _shapes(line: int | None, source: str, spec: Spec) -> str:
    """Shapes of the state's arrays that the line mentions."""
    lines = source.splitlines()
    words = set(re.findall(r"\w+", lines[line - 1])) if line and line <= len(lines) else set()
    named = [str(leaf) for leaf in (*spec.leaves, spec.action) if leaf.name.split(".")[-1] in words]
    return f"; {', '.join(named)}" if named else ""
