# ruff: noqa: E501, SIM905
"""Mutated sources: a verdict for each, whatever it says."""

from __future__ import annotations

import ast
import string

import suite_good
import suite_hostile
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from jaxreward.programs.entries import Guarded, Refused
from jaxreward.programs.guard import guard

SOURCES = [source for source, _ in suite_good.CASES.values()]
HOSTILE = [source for _, source in suite_hostile.CASES.values()]
TOKENS = (
    "( ) [ ] : , = * ** @ -> ' \" \\ { } jnp. jax. state. __class__ eval getattr ... _ None True 1e999 -1 0 10**9 jnp jax state "
    "action f'{x}' is ; % // << ~ \x00 \ud800 \u202e \uff3f"
).split(" ") + [
    "\n", "\n    ", "\t", "lambda x: ", "for i in ", "if ", "else ", "return ", "import ", "from ", "del ", "yield ", "await ",
    "not ", "in ", "and ", "async ", "global x", "class A:", "while True:\n    ", "try:\n    ", "with x:\n    ", "(y := 1)",
]  # fmt: skip


@st.composite
def mutated(draw: st.DrawFn, sources: list[str]) -> str:
    text = draw(st.sampled_from(sources))
    for _ in range(draw(st.integers(1, 4))):
        at = draw(st.integers(0, len(text)))
        to = min(len(text), at + draw(st.integers(0, 12)))
        kind = draw(st.sampled_from(["insert", "delete", "replace", "splice", "repeat"]))
        token = draw(st.sampled_from(TOKENS) | st.text(string.printable, max_size=4))
        if kind == "insert":
            text = text[:at] + token + text[at:]
        elif kind == "delete":
            text = text[:at] + text[to:]
        elif kind == "replace":
            text = text[:at] + token + text[to:]
        elif kind == "repeat":
            text = text[:to] + text[at:to] * 3 + text[to:]
        else:
            other = draw(st.sampled_from(sources))
            start = draw(st.integers(0, len(other)))
            text = text[:at] + other[start : start + 40] + text[to:]
    return text


@settings(
    max_examples=600,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
@given(mutated(SOURCES + HOSTILE))
def test_the_guard_accepts_or_refuses_any_source(source):
    try:
        checked = guard(source, frozenset({"pos", "vel", "goal"}))
    except Refused as refused:
        assert refused.message and refused.stage in ("guard", "contract", "limits")
    else:
        assert isinstance(checked, Guarded)
        assert not _forbidden(checked)


def _forbidden(checked: Guarded) -> list[str]:
    """Names that no accepted program may hold, found without the guard's own rules."""
    found = []
    for node in ast.walk(checked.tree):
        names = [getattr(node, field, "") for field in ("id", "attr", "arg", "name", "module")]
        found += [n for n in names if isinstance(n, str) and (n.startswith("__") and n != "__future__")]
        if isinstance(node, ast.Attribute) and node.attr.startswith("_"):
            found.append(node.attr)
    loaded = {n.id for n in ast.walk(checked.tree) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)}
    return found + sorted(loaded & {"eval", "exec", "getattr", "globals", "open"} - _bound(checked.tree))


def _bound(tree: ast.Module) -> set[str]:
    return {n.arg for n in ast.walk(tree) if isinstance(n, ast.arg)} | {
        n.id for n in ast.walk(tree) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)
    }


@settings(
    max_examples=120,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
@given(source=mutated(SOURCES))
def test_mutated_sources_get_a_verdict(checker, task, source):
    verdict, program = checker.check(source, task)
    if program is None:
        assert verdict.failure is not None and verdict.failure.message
        assert all(c.isprintable() for c in verdict.failure.message + verdict.failure.hint)
    else:
        assert verdict.ok and verdict.summary == program.summary
