"""The worker: a process that has imported JAX, owns no backend, and forks once per program.

Run as `python -m jaxreward.programs.worker`; `locked_child` says how it is asked. The child writes the verdict of the
guard before anything of the program has run. Only what follows can be forged by a program, and it is a tape, which is
checked as untrusted data.
"""

from __future__ import annotations

import gc
from collections.abc import Callable
from typing import Any

from jaxreward.programs import locked_child


def main() -> None:
    locked_child.serve_forever(_serve, warm_up)


def run(request: dict[str, Any]) -> tuple[dict[str, Any], bytes]:
    """Fork a child for one program, see `locked_child.run`."""
    return locked_child.run(request, _serve)


def _serve(request: dict[str, Any], send: Callable[[dict[str, Any]], None]) -> None:
    from jaxreward.programs import trace

    trace.serve(request, send)


def warm_up() -> None:
    """Import and trace what programs use, so that a child finds it in memory; no array is computed."""
    import unicodedata  # noqa: F401  Python's parser imports it for names that are not ASCII

    import jax
    import jax.numpy as jnp
    import numpy as np

    from jaxreward.programs import namespace, primitives, trace

    namespace.modules()
    primitives.replayable()
    trace.warm(jax, jnp, np)
    gc.collect()
    gc.freeze()


if __name__ == "__main__":
    main()
