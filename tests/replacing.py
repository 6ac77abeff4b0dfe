"""Names in modules of jaxreward replaced for a while."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from typing import Any

import pytest


@contextmanager
def replacing(values: Mapping[str, Any]) -> Iterator[None]:
    """Replace what `jaxreward.MODULE.NAME` stands for. Modules that are first imported meanwhile, and take one of the
    names from there, have the original in the end, as all others have."""
    before = list[tuple[str, Any, Any]]()
    with pytest.MonkeyPatch.context() as patch:
        for path, value in values.items():
            module, _, name = path.rpartition(".")
            before.append((name, value, getattr(import_module(module), name)))
            patch.setattr(path, value)
        yield
    for module in [module for key, module in sys.modules.items() if key.partition(".")[0] == "jaxreward"]:
        for name, value, original in before:
            if vars(module).get(name) is value:
                setattr(module, name, original)
