"""What programs have in place of modules; without JAX, for the worker of programs on text too."""

from __future__ import annotations

from typing import Any


class Module:
    """A read-only stand-in for a module that holds its allowed names and nothing else."""

    __slots__ = ("__dict__",)

    def __init__(self, names: dict[str, Any]) -> None:
        self.__dict__.update(names)

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError("modules are read-only")
