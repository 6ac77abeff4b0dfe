"""Execute the notebooks in this folder and store their outputs.

    python examples/execute.py                              # all of them, two to three minutes each
    python examples/execute.py examples/own_grid.ipynb

Runs are written to a temporary folder. What is stored says neither when nor where a notebook was executed.
"""

from __future__ import annotations

import os
import re
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import nbformat
from nbclient import NotebookClient

HERE = Path(__file__).resolve().parent
_WITHOUT_WIDGETS = 'ignore:IProgress not found,ignore:install "ipywidgets" for Jupyter support'
"""Warnings of tqdm and Rich where ipywidgets is not installed."""
_PRIVATE = re.compile(r"(?<![\w.])/(?:work|home|root|tmp|Users)(?=/)")
"""Beginnings of paths that tell about a machine."""


def execute(path: Path, folder: Path) -> Any:
    """The notebook in `path` with its outputs, executed in `folder` by the interpreter that runs this.

    Raises:
        CellExecutionError: a cell failed.
    """
    notebook = nbformat.read(path, as_version=4)
    client = NotebookClient(
        notebook,
        timeout=None,
        record_timing=False,
        coalesce_streams=True,
        resources={"metadata": {"path": str(folder)}},
    )
    return tidied(client.execute(env={**os.environ, "PYTHONWARNINGS": _WITHOUT_WIDGETS}))


def tidied(notebook: Any) -> Any:
    """A notebook without what depends on the machine, and without outputs that show nothing any more."""
    notebook.metadata = nbformat.from_dict({
        "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
        "language_info": {"name": "python"},
    })  # fmt: skip
    for cell in notebook.cells:
        cell.metadata.pop("execution", None)
        if cell.cell_type == "code":
            cell.outputs = [output for output in cell.outputs if not _is_empty(output)]
    return notebook


def private_paths(notebook: Any) -> list[str]:
    """Beginnings of paths of a machine in what a notebook shows."""
    shown = [_shown(output) for cell in notebook.cells for output in cell.get("outputs", ())]
    texts = [text for output in shown for kind, text in output if not kind.startswith("image/")]
    return sorted({found for text in texts for found in _PRIVATE.findall(text)})


def _is_empty(output: Any) -> bool:
    """Whether an output shows nothing: the progress of a search takes itself away at its end."""
    return not any(re.sub(r"<[^>]*>", "", text).strip() for _, text in _shown(output))


def _shown(output: Any) -> list[tuple[str, str]]:
    """Kind and text of everything that an output shows."""
    return [
        *((kind, str(data)) for kind, data in output.get("data", {}).items()),
        ("text/plain", output.get("text", "")),
        *(("text/plain", line) for line in output.get("traceback", ())),
    ]  # fmt: skip


def main(words: list[str]) -> int:
    """Execute these notebooks, or all; the exit status."""
    for path in [Path(word) for word in words] or sorted(HERE.glob("*.ipynb")):
        began = time.perf_counter()
        with tempfile.TemporaryDirectory() as folder:
            notebook = execute(path, Path(folder))
        if found := private_paths(notebook):
            print(f"{path.name} is not stored: an output has a path below {', '.join(found)}", file=sys.stderr)
            return 1
        nbformat.write(notebook, path)
        print(f"{path.name}: {time.perf_counter() - began:.0f} s, {path.stat().st_size / 1000:.0f} kB")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
