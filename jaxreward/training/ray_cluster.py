"""Beginning or joining a Ray cluster, and what its nodes must have in common."""

from __future__ import annotations

import importlib.machinery
import logging
import os
import signal
import sys
import sysconfig
import threading
import warnings

from jaxreward.errors import InvalidSetting


def by_value(module: str) -> None:
    """Have what a module defines sent as text, unless it is of an installed package, which workers have too: a file of
    the user's, a notebook."""
    from ray import cloudpickle

    top = module.partition(".")[0]
    spec = importlib.machinery.PathFinder.find_spec(top)
    places = {sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")}
    installed = spec is not None and any((spec.origin or "").startswith(place + os.sep) for place in places)
    known = installed or top == __name__.partition(".")[0] or top in sys.builtin_module_names
    if not known and module in sys.modules:
        cloudpickle.register_pickle_by_value(sys.modules[module])


def begin_ray(address: str | None) -> None:
    """Begin a cluster, or join one; signals stay with those who handle them, of which Ray takes SIGTERM."""
    import ray

    of_main = threading.current_thread() is threading.main_thread()
    handler = signal.getsignal(signal.SIGTERM)
    try:
        with warnings.catch_warnings():  # JAX warns of any fork; what Ray forks here executes a program at once
            warnings.filterwarnings("ignore", "os.fork", RuntimeWarning)
            ray.init(address=address, log_to_driver=False, logging_level=logging.ERROR, include_dashboard=False)
    except Exception as error:
        where = f"at {address}" if address else "on this machine"
        message = f"there is no Ray cluster {where}, or it cannot be begun: {_causes(error)}"
        raise InvalidSetting(message, "ray_address") from error
    finally:
        if of_main:
            signal.signal(signal.SIGTERM, handler)


def difference(mine: dict[str, str], theirs: dict[str, str]) -> str:
    """What of the versions that results depend on is another one there, in words; empty where nothing is."""
    found = [name for name in mine if mine[name] != theirs.get(name)]
    return f"{found[0]} {theirs.get(found[0], 'missing')}, not {mine.get(found[0])}" if found else ""


def _causes(error: BaseException) -> str:
    """An error and what it came from, each by its first line."""
    found = [first_line(error)]
    while (error := error.__cause__ or error.__context__) is not None and len(found) < 3:  # type: ignore[assignment]
        if (line := first_line(error)) not in found:
            found.append(line)
    return "; ".join(found)


def first_line(error: BaseException) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0]
