"""The notebooks in examples/ run, with small budgets, and what is stored in them tells nothing of a machine."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("nbclient", reason="the extra dev has it")
pytest.importorskip("ipykernel", reason="the extra dev has it")

import nbformat

from examples.execute import execute, private_paths

ROOT = Path(__file__).resolve().parents[2]
NOTEBOOKS = sorted((ROOT / "examples").glob("*.ipynb"))
UNOPTIMISED = """
import jax
from jaxreward.devices import supported
from jaxreward.training import compiled
from tests.compilation import UNOPTIMISED

jax.config.update("jax_disable_most_optimizations", True)
compiled.xla_options = lambda platform, *_: supported(UNOPTIMISED, platform) or None
"""
"""The fixture of this name, as a first cell: it saves a part of what a notebook costs."""


@pytest.mark.slow
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda p: p.stem)
def test_it_runs(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Every cell of a copy, in a kernel of its own; what it writes is one run in its folder."""
    monkeypatch.setenv("JAXREWARD_EXAMPLES", "small")
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))
    copy = nbformat.read(path, as_version=4)
    copy.cells.insert(0, nbformat.v4.new_code_cell(UNOPTIMISED))
    nbformat.write(copy, tmp_path / path.name)
    notebook = execute(tmp_path / path.name, tmp_path)
    cells = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert [cell.execution_count for cell in cells] == list(range(1, len(cells) + 1))
    assert not private_paths(notebook) and len(list((tmp_path / "runs").iterdir())) == 1


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda p: p.stem)
def test_its_outputs_are_stored(path: Path):
    """Of all cells in order, with every picture and printed line; of any machine, at any time."""
    notebook = nbformat.read(path, as_version=4)
    nbformat.validate(notebook)
    cells = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert path.stat().st_size < 200_000
    assert [cell.execution_count for cell in cells] == list(range(1, len(cells) + 1))
    assert not any("execution" in cell.metadata for cell in cells) and not private_paths(notebook)
    for cell in cells:
        kinds = {kind for output in cell.outputs for kind in output.get("data", {"text/plain": ""})}
        assert not any(output.output_type == "error" for output in cell.outputs)
        assert ("plt.show()" in cell.source) <= ("image/png" in kinds), cell.source
        assert ("print(" in cell.source) <= bool(kinds), cell.source


def test_paths_of_a_machine_are_found():
    made = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell("x")])
    for output, found in (
        (nbformat.v4.new_output("stream", text="wrote /root/runs/a\n"), ["/root"]),
        (nbformat.v4.new_output("display_data", data={"text/html": "<pre>/home/me</pre>"}), ["/home"]),
        (nbformat.v4.new_output("display_data", data={"image/png": "aa/tmp/aa"}), []),
        (nbformat.v4.new_output("stream", text="runs/a/tmpfile and rootless\n"), []),
    ):
        made.cells[0].outputs = [output]
        assert private_paths(made) == found
