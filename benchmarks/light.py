"""What an installation weighs and what importing it takes, without extras and with `all`.

    python benchmarks/light.py --out benchmarks/results/light.json

Makes a virtual environment for each with `pip install --constraint constraints.txt`, which needs the package index, and
measures in it.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.command import save, status_of
from benchmarks.machine import machine
from jaxreward.commands.resolve import parse
from jaxreward.config import Arg, check_bounds
from jaxreward.errors import UserError

ROOT = Path(__file__).resolve().parents[1]
EXTRAS = ("", "all")

IMPORTS = {
    "import jax": "import jax",
    "import jaxreward": "import jaxreward",
    "jaxreward.train": "import jaxreward; jaxreward.train",
    "jaxreward.evolve": "import jaxreward; jaxreward.evolve",
}
"""What is imported in a fresh interpreter, by what it is called in the results."""

_TIMED = "import time\nbegin = time.process_time()\n{}\nprint(time.process_time() - begin)"

# Bytes of the files of every distribution, by its name.
_SIZES = """
import json
from importlib.metadata import distributions

def size(distribution):
    files = [distribution.locate_file(f) for f in distribution.files or ()]
    return sum(f.stat().st_size for f in files if f.is_file())

print(json.dumps({d.name: size(d) for d in distributions() if d.name not in ("pip", "setuptools")}))
"""


@dataclass(frozen=True)
class LightSettings:
    """What an installation weighs and what importing it takes, without extras and with all."""

    venvs: Path | None = None
    """Folder of the environments, `light` and `all`. Those that are there are measured as they are; by default they are
    made in a folder that is removed."""
    rounds: Annotated[int, Arg(least=1)] = 5
    """Fresh interpreters for each import."""
    out: Path | None = None
    """File of results."""


def measured(python: Path, rounds: int) -> dict[str, Any]:
    """Of an environment by its interpreter: distributions, megabytes, and processor seconds of imports, the least of
    all rounds."""
    sizes: dict[str, int] = json.loads(_run(python, "-c", _SIZES))
    times = {name: [float(_run(python, "-c", _TIMED.format(code))) for _ in range(rounds)]
             for name, code in IMPORTS.items()}  # fmt: skip
    return {
        "distributions": len(sizes),
        "megabytes": round(sum(sizes.values()) / 1e6, 1),
        "largest": {name: round(sizes[name] / 1e6, 1) for name in sorted(sizes, key=lambda name: -sizes[name])[:10]},
        "import_s": {name: round(min(seconds), 3) for name, seconds in times.items()},
    }


def environment(folder: Path, extra: str) -> Path:
    """The interpreter of an environment with jaxreward and an extra in it, made if there is none."""
    venv = folder.absolute() / (extra or "light")
    python = venv / "bin" / "python"
    if not python.exists():
        print(f"installing into {venv} ...", flush=True)
        _run(Path(sys.executable), "-m", "venv", str(venv))
        what = f"{ROOT}[{extra}]" if extra else str(ROOT)
        _run(python, "-m", "pip", "--quiet", "install", "--constraint", str(ROOT / "constraints.txt"), what)
    return python


def _run(python: Path, *words: str) -> str:
    done = subprocess.run([str(python), *words], cwd="/", capture_output=True, text=True)  # away from the checkout
    if done.returncode:
        last = (done.stderr.strip().splitlines() or ["it gave no reason"])[-1]
        raise UserError(f"{python} {' '.join(words[:2])} failed: {last}")
    return done.stdout


def measure(args: list[str]) -> None:
    settings = parse(LightSettings, LightSettings(), args, "light.py")
    check_bounds(settings)
    with tempfile.TemporaryDirectory(prefix="jaxreward-") as scratch:
        folder = settings.venvs or Path(scratch)
        rows = [{"extra": extra, **measured(environment(folder, extra), settings.rounds)} for extra in EXTRAS]
    for row in rows:
        print(*(f"{key} {value}" for key, value in row.items()), sep=", ")
    save({"machine": machine(), "rows": rows}, settings.out)


def main(argv: list[str] | None = None) -> int:
    return status_of("light.py", lambda: measure(sys.argv[1:] if argv is None else argv))


if __name__ == "__main__":
    sys.exit(main())
