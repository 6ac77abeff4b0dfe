"""What a function refers to outside of itself: modules, functions and stored values."""

from __future__ import annotations

import functools
import inspect
import sys
import sysconfig
from types import BuiltinFunctionType, FunctionType, MethodType, ModuleType
from typing import Any

from jaxreward.function_source.reader import is_jitted

MODULES = {
    "jax": "jax", "jax.numpy": "jnp", "jax.numpy.linalg": "jnp.linalg", "jax.nn": "jax.nn", "jax.lax": "jax.lax",
}  # fmt: skip
"""The modules that programs may import, and how they are written."""

NOTHING = object()

_WORDS = """
random prng debug debugging callback pure_callback io_callback experimental ffi device_put fft complex complex64
complex128 eig eigvals psum pmean pmax pmin ppermute all_gather all_to_all axis_index pmap shard_map
"""
UNUSABLE = frozenset(_WORDS.split())
"""What JAX has that no tape holds, by the names of its modules and functions."""
_LIBRARIES = """
numpy math cmath scipy torch tensorflow sklearn pandas random secrets time datetime os sys subprocess io
"""
_FOREIGN = frozenset(_LIBRARIES.split())
"""Libraries that compute with other arrays, or that give another result in every process."""


def core_of(function: Any) -> Any:
    """A function without the `jax.jit` around it."""
    while is_jitted(function):
        function = function.__wrapped__
    return function


def is_function(value: Any) -> bool:
    """Whether a value is a function that a program could call if its text were known."""
    kinds = (FunctionType, MethodType, BuiltinFunctionType, functools.partial)
    return isinstance(value, kinds) or is_jitted(value) or type(value).__name__ == "ufunc"


def path_of(value: Any, written: str, said: str) -> str | None:
    """How a program writes something of JAX, a dtype of NumPy, or a constant that JAX has too."""
    if isinstance(value, type) and value.__module__ == "numpy":
        return f"jnp.{value.__name__}"
    names = {str(getattr(value, "__name__", written)), written}
    for module, path in MODULES.items():
        known = sys.modules.get(module)
        for name in sorted(names) if known is not None and not isinstance(value, bool | int | str | None) else ():
            try:
                found = getattr(known, name)
            except (AttributeError, DeprecationWarning):
                continue
            if found is value or ("." in said and type(value) is float and found == value):
                return f"{path}.{name}"
    return None


def is_usable(value: Any) -> bool:
    """Whether a function that is called as it is, on arrays of JAX that are traced, can use this object or function: it
    neither computes with arrays of another library nor draws random numbers nor has effects outside."""
    if isinstance(value, complex):
        return False
    kind = core_of(value)
    kind = kind if isinstance(kind, type | ModuleType) or is_function(kind) else type(kind)
    module = kind.__name__ if isinstance(kind, ModuleType) else str(getattr(kind, "__module__", "") or "numpy")
    words = {*module.split("."), str(getattr(kind, "__name__", ""))}
    if top(module) in ("jax", "jaxlib"):
        return not any(word.strip("_") in UNUSABLE for word in words)
    return top(module) not in _FOREIGN


def attribute(value: Any, name: str) -> Any:
    """An attribute that is stored and not computed; `NOTHING` if there is none."""
    if isinstance(value, ModuleType):
        return getattr(value, name, NOTHING) if value.__name__ != "numpy" else _of_numpy(value, name)
    if isinstance(value, tuple) and name in getattr(value, "_fields", ()):
        return value[value._fields.index(name)]  # type: ignore[attr-defined]
    found = inspect.getattr_static(value, name, NOTHING)
    if isinstance(found, staticmethod):
        return found.__func__
    if isinstance(found, FunctionType) and isinstance(value, type):
        return found
    if inspect.ismemberdescriptor(found) and not isinstance(value, type):  # a field among __slots__
        return getattr(value, name, NOTHING)
    return NOTHING if hasattr(type(found), "__get__") else found


def has(value: Any, name: str) -> bool:
    """Whether there is an attribute, or may be one that is computed."""
    if isinstance(value, ModuleType):
        return name in vars(value) or "__getattr__" in vars(value)
    return inspect.getattr_static(value, name, NOTHING) is not NOTHING or hasattr(type(value), "__getattr__")


def _of_numpy(module: ModuleType, name: str) -> Any:
    """Of NumPy the numbers and dtypes: it computes with other precision than programs."""
    found = getattr(module, name, NOTHING)
    return found if isinstance(found, float) or found is None or isinstance(found, type) else NOTHING


def package_of(value: Any) -> str | None:
    """The package of a function that is not the user's own; None if it is."""
    core = core_of(value)
    core = core.func if isinstance(core, functools.partial) else core
    core = inspect.unwrap(core) if callable(core) else core
    if not isinstance(core, FunctionType):
        return None if inspect.ismethod(core) else top(getattr(core, "__module__", "") or "numpy")
    return top(core.__module__ or "") if is_installed(core.__code__.co_filename) else None


def is_installed(file: str) -> bool:
    """Whether a file belongs to Python or to an installed package, and not to the user."""
    paths = sysconfig.get_paths()
    places = [paths[key] for key in ("purelib", "platlib", "stdlib", "platstdlib")]
    return "site-packages" in file or file.startswith(("<frozen ", *places))


def top(module: str) -> str:
    return module.split(".")[0]
