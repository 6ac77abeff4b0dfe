"""What an installation weighs, and what importing it takes: without extras, and with `all`.

    python benchmarks/light.py --out benchmarks/results/light.json

Makes a virtual environment for each with `pip install --constraint constraints.txt` and measures in it; needs the
package index. `--venvs FOLDER` keeps them, and measures those that are there already.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from benchmarks.command import save, status_of
from benchmarks.machine import machine
from jaxreward.errors import UserError

EXTRAS = ("", "all")

IMPORTS = {
    "import jax": "import jax",
    "import jaxreward": "import jaxreward",
    "jaxreward.train": "import jaxreward; jaxreward.train",
    "jaxreward.evolution.evolve": "from jaxreward.evolution import evolve",
}
"""What is imported in a fresh interpreter, by what it is called in the results."""

_TIMED = "import time\nbegin = time.process_time()\n{}\nprint(time.process_time() - begin)"

_SIZES = """
import json
from importlib.metadata import distributions

def size(distribution):
    files = [distribution.locate_file(f) for f in distribution.files or ()]
    return sum(f.stat().st_size for f in files if f.is_file())

print(json.dumps({d.name: size(d) for d in distributions() if d.name not in ("pip", "setuptools")}))
"""
"""Bytes of the files of every distribution, by its name."""


def measured(python: Path, times: int) -> dict[str, Any]:
    """Of an environment by its interpreter: distributions, megabytes, and CPU seconds of imports, the least of
    `times` fresh interpreters."""
    sizes: dict[str, int] = json.loads(_run(python, "-c", _SIZES))
    largest = sorted(sizes, key=lambda name: -sizes[name])[:10]
    return {
        "distributions": len(sizes),
        "megabytes": round(sum(sizes.values()) / 1e6, 1),
        "largest": {name: round(sizes[name] / 1e6, 1) for name in largest},
        "import_cpu_s": {
            name: round(min(float(_run(python, "-c", _TIMED.format(code))) for _ in range(times)), 3)
            for name, code in IMPORTS.items()
        },
    }


def _run(python: Path, *words: str) -> str:
    done = subprocess.run([str(python), *words], cwd="/", capture_output=True, text=True)  # not the checkout's package
    if done.returncode:
        last = (done.stderr.strip().splitlines() or ["it gave no reason"])[-1]
        raise UserError(f"{python} {words[0]} failed: {last}")
    return done.stdout


def environment(folder: Path, extra: str) -> Path:
    """The interpreter of an environment with jaxreward and an extra in it, made if there is none."""
    venv = folder / (extra or "light")
    python = venv / "bin" / "python"
    if not python.exists():
        print(f"installing into {venv} ...", flush=True)
        subprocess.run([sys.executable, "-m", "venv", str(venv)], check=True)
        what = f"{ROOT}[{extra}]" if extra else str(ROOT)
        _run(python, "-m", "pip", "--quiet", "install", "--constraint", str(ROOT / "constraints.txt"), what)
    return python


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--out", type=Path, help="file of the results")
    parser.add_argument("--venvs", type=Path, help="folder of the environments; by default one that is removed")
    parser.add_argument("--times", type=int, default=5, help="fresh interpreters for each import")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        rows = []
        for extra in EXTRAS:
            row = {"extra": extra, **measured(environment(args.venvs or Path(scratch), extra), args.times)}
            print(json.dumps(row, indent=1), flush=True)
            rows.append(row)
    save({"machine": machine(), "rows": rows}, args.out)
    return 0


if __name__ == "__main__":
    sys.exit(status_of("light.py", main))
