"""`jaxreward serve`: runs as pages for a browser, as they grow."""

from __future__ import annotations

import secrets
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from jaxreward.commands.output import console_of, print_json
from jaxreward.commands.resolve import Command, Resolved
from jaxreward.config import Arg, check_bounds
from jaxreward.errors import InvalidSetting
from jaxreward.formatting import printable
from jaxreward.runs.folders import RUNS, find_run
from jaxreward.serving import Catalogue, Server
from jaxreward.serving.server import is_local


@dataclass(frozen=True)
class ServeSettings:
    """Show runs in a browser as they grow: side by side, with their reports, films and programs. Ctrl-C ends it."""

    runs: Annotated[tuple[Path, ...], Arg(positional="RUNS")] = (RUNS,)
    """Folders of runs, or single runs."""
    host: Annotated[str, Arg(unit="ADDRESS")] = "127.0.0.1"
    """Address to listen at. Any but the default can be reached from other machines and asks for a token; 0.0.0.0 is
    all addresses of this machine."""
    port: Annotated[int, Arg(least=0)] = 8411
    """Port to listen at; 0 for any free one."""
    token: bool = False
    """Ask for a token on this machine too. Without one its other users can read the pages."""
    open: bool = False
    """Open a browser."""
    json: bool = False
    """Print one JSON object with the address, then serve."""


def run(resolved: Resolved[ServeSettings]) -> int:
    """Serve until Ctrl-C; returns the exit status."""
    settings = resolved.settings
    check_bounds(settings)
    if settings.port > 65535:
        raise InvalidSetting(f"--port must be at most 65535, not {settings.port}", "port")
    folders = [path if path.is_dir() or path == RUNS else find_run(str(path)) for path in settings.runs]
    catalogue = Catalogue(folders)
    number = len(catalogue.runs())
    asked = settings.token or not is_local(settings.host)
    with Server(catalogue, settings.host, settings.port, secrets.token_urlsafe(24) if asked else "") as server:
        console = console_of(settings.json)
        where = ", ".join(map(str, folders))
        console.print(printable(f"{number} run{'s' if number != 1 else ''} in {where}; Ctrl-C ends"))
        console.print(server.address)
        if settings.json:
            print_json({"address": server.address, "port": server.port, "token": server.token, "runs": number})
        if settings.open:
            import webbrowser  # in a thread: one in the terminal returns when it is closed

            threading.Thread(target=webbrowser.open, args=(server.address,), daemon=True).start()
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            console.print("ended")
    return 0


COMMANDS = (
    Command(
        "serve", ServeSettings, run=run, config=False,
        examples=("serve", "serve runs/six --port 0", "serve --host 0.0.0.0"),
    ),
)  # fmt: skip
