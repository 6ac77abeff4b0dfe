"""Beginning or joining a Ray cluster, and what its nodes must have in common."""

from __future__ import annotations

import importlib.machinery
import logging
import os
import signal
import socket
import sys
import sysconfig
import threading
import warnings
from pathlib import Path

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


_ANSWERS_S = 10.0
"""Seconds in which the head of a cluster takes a connection."""


def cluster_at(address: str | None) -> str:
    """Where `ray.init` is to look for a cluster; `local` for a new one, where none is named.

    Ray itself would join the cluster that was begun last on this machine where none is named, and asks one that is gone
    for many minutes.

    Raises:
        InvalidSetting: nothing listens there.
    """
    address = address or os.environ.get("RAY_ADDRESS") or "local"
    if address == "auto":
        address = os.environ.get("RAY_ADDRESS") or _begun_last() or address
    host, _, port = address.rpartition(":")
    if host and port.isdecimal() and "/" not in host:
        try:
            socket.create_connection((host.strip("[]"), int(port)), timeout=_ANSWERS_S).close()
        except OSError as error:
            message = f"there is no Ray cluster at {address} ({error.strerror or error}): ray start --head begins one"
            raise InvalidSetting(message, "ray_address") from error
    return address


def _begun_last() -> str:
    """The address of the cluster that was begun last on this machine, which may be gone; empty if Ray knows none."""
    try:
        return Path(os.environ.get("RAY_TMPDIR", "/tmp"), "ray", "ray_current_cluster").read_text().strip()
    except (OSError, UnicodeError):
        return ""


def begin_ray(address: str | None) -> None:
    """Begin a cluster, or join one; signals stay with those who handle them, of which Ray takes SIGTERM."""
    import ray

    address = cluster_at(address)
    of_main = threading.current_thread() is threading.main_thread()
    handler = signal.getsignal(signal.SIGTERM)
    try:
        with warnings.catch_warnings():  # JAX warns of any fork; what Ray forks here executes a program at once
            warnings.filterwarnings("ignore", "os.fork", RuntimeWarning)
            ray.init(address=address, log_to_driver=False, logging_level=logging.ERROR, include_dashboard=False)
    except Exception as error:
        where = "on this machine" if address == "local" else f"at {address}"
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
