"""Where commands write: lines for people, one JSON object for programs."""

from __future__ import annotations

import json
import math
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from jaxreward.errors import USAGE_EXIT_CODE, JaxrewardWarning
from jaxreward.formatting import mapped, printable

if TYPE_CHECKING:
    from rich.console import Console


def console_of(as_json: bool) -> Console:
    """The console for people: standard error where standard output belongs to programs."""
    from jaxreward.reports.console import PlainConsole

    return PlainConsole(stderr=as_json)


def refuse(command: str, sentence: str) -> int:
    """Print in one line why a command does not go on; returns the exit status."""
    print(printable(f"jaxreward {command}: {' '.join(sentence.split())}"), file=sys.stderr)
    return USAGE_EXIT_CODE


@contextmanager
def warnings_in_a_line(command: str) -> Iterator[None]:
    """Print the warnings of this package as sentences of the command, without the place in the code, and each time:
    the second lost worker too. Filters of the user's come first."""
    shown = warnings.showwarning

    def show(message: Warning | str, category: type[Warning], *where: Any, **more: Any) -> None:
        if issubclass(category, JaxrewardWarning):
            print(printable(f"jaxreward {command}: warning: {' '.join(str(message).split())}"), file=sys.stderr)
        else:
            shown(message, category, *where, **more)

    with warnings.catch_warnings():
        warnings.simplefilter("always", JaxrewardWarning, append=True)
        warnings.showwarning = show
        yield


def print_json(value: dict[str, Any]) -> None:
    """The last line of standard output with --json."""
    # JSON has no infinities: they become strings, as TOML writes them.
    finite = mapped(value, lambda x: str(x) if isinstance(x, float) and not math.isfinite(x) else x)
    print(json.dumps(finite, allow_nan=False), flush=True)
