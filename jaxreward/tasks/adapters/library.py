"""Imports of other libraries, and what they say of their environments."""

from __future__ import annotations

import contextlib
import importlib
import inspect
import io
import re
import warnings
from collections.abc import Collection, Mapping
from typing import Any

from jaxreward.errors import MissingPackage

_LONGEST = 1_200
"""Characters of a docstring that serve as a description; a paragraph is taken whole or not."""


def import_library(module: str, package: str, extra: str) -> Any:
    """A module of an optional library, imported without its messages and warnings.

    Raises:
        MissingPackage: it is not installed, or lacks something itself.
    """
    try:
        with contextlib.redirect_stdout(io.StringIO()), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return importlib.import_module(module)
    except ImportError as error:
        found = "" if (error.name or "").partition(".")[0] == module.partition(".")[0] else f" ({error})"
        message = f"{package} cannot be imported{found}: pip install 'jaxreward[{extra}]'"
        raise MissingPackage(message, package) from error


def name_of(library: str, environment: str, options: Mapping[str, Any]) -> str:
    """The name of the task on an environment made with options: `gymnax/CartPole-v1(gravity=5.0)`."""
    given = f"({', '.join(f'{key}={value}' for key, value in options.items())})" if options else ""
    return f"{library}/{environment}{given}"


def unwrapped(env: Any, wrappers: Collection[str], inner: str) -> Any:
    """An environment without its outer wrappers of these class names, which reset, batch or count steps.

    Args:
        inner: the attribute of a wrapper that holds what it wraps.
    """
    while type(env).__name__ in wrappers:
        env = getattr(env, inner)
    return env


def description_of(env: Any) -> str:
    """The first paragraphs of the docstring of an environment, without code, headings and addresses."""
    text = re.sub(r"```.*?```", "", inspect.getdoc(type(env)) or "", flags=re.DOTALL)
    kept: list[str] = []
    for paragraph in re.split(r"\n\s*\n", text):
        lines = [line.rstrip() for line in paragraph.splitlines() if line.strip()]
        lines = [line for line in lines if not re.match(r"\s*(#|Sources?:|https?://|github\.com)", line)]
        if not lines:
            continue
        if kept and sum(map(len, kept)) + sum(map(len, lines)) > _LONGEST:
            break
        kept.append("\n".join(lines))
    return "\n".join(kept)


def words_of(tree: Any, leaves: Collection[str], prefix: str) -> Mapping[str, str]:
    """What the docstring of a class says of its fields, in lines `field: words`, by the path of each array.

    Args:
        tree: an object of the class.
        leaves: paths of arrays, such as `env.head.row`.
        prefix: the path of `tree`, such as `env`.
    """
    said = dict[str, str]()
    field = ""
    for line in (inspect.getdoc(type(tree)) or "").splitlines():
        match = re.match(r"\s*(?:[-*]\s*)?`?(\w+)`?\s*(?:\([^)]*\))?:\s+(\S.*)$", line)
        if match:
            field = match[1]
            said[field] = match[2].strip()
        elif field and line.startswith("  ") and line.strip():
            said[field] += f" {line.strip()}"
        else:
            field = ""
    own = (leaf for leaf in leaves if leaf.startswith(f"{prefix}."))
    parts = {leaf: leaf.removeprefix(f"{prefix}.").partition(".")[0] for leaf in own}
    return {leaf: said[part].rstrip(".") for leaf, part in parts.items() if part in said}
