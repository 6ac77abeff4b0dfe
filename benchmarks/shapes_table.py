"""Results of shapes.py as the table of docs/appendix/quick_learner.md.

python benchmarks/shapes_table.py [benchmarks/results/shapes.json]     # rewrites the table
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.command import status_of
from benchmarks.markdown import between, grid, results
from jaxreward.errors import UserError

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "benchmarks" / "results" / "shapes.json"
PAGE = ROOT / "docs" / "appendix" / "quick_learner.md"
START, END = "<!-- shapes -->", "<!-- /shapes -->"
COLUMNS = ("task", "E", "unroll", "minibatches", "epochs", "steps", "seeds", "case", "mean", "worst seed",
           "H200 s, 16 candidates", "256")  # fmt: skip


def rows_of(row: dict[str, Any]) -> list[list[str]]:
    """A line for every case of a group; the seconds are those of the shape."""
    shape, seeds = row["shape"], row["seeds"]
    length = f"{shape['unroll']}" + (f" x {shape['unrolls']}" if shape["unrolls"] > 1 else "")
    about = [row["task"], f"{shape['envs']}", length, f"{shape['minibatches']}", f"{shape['epochs']}",
             f"{row['steps']:,}", f"{seeds[0]} to {seeds[-1]}"]  # fmt: skip
    seconds = [f"{row['h200_s'][n]:.2f}" if n in row["h200_s"] else "" for n in ("16", "256")]
    lines = []
    for place, (case, values) in enumerate(row["success"].items()):
        digits = 3 if max(values) <= 1 else 1
        figures = [f"{sum(values) / len(values):.{digits}f}", f"{min(values):.{digits}f}"]
        lines.append(
            [*(about if not place else [""] * len(about)), case, *figures, *(seconds if not place else ["", ""])]
        )
    return lines


def markdown(report: dict[str, Any]) -> str:
    """The table, with what its rows were made on."""
    rows = report["rows"]
    made = dict.fromkeys(
        f"{r['devices']} cores {r['cpu']}, jax {r['versions']['jax']}, Python {r['versions']['python']}, commit "
        f"{r['commit']}" for r in rows
    )  # fmt: skip
    lines = [line for row in rows for line in rows_of(row)]
    return "\n".join([*grid(COLUMNS, lines), "", f"{'; '.join(made)}. H200 s: {report['assumed']}.", ""])


def fill(page: str, report: dict[str, Any]) -> str:
    return between(page, START, END, markdown(report))


def tabulate(args: Sequence[str]) -> None:
    if len(args) > 1 or any(a.startswith("-") for a in args):
        raise UserError("give one results file at most: shapes_table.py [FILE.json]")
    PAGE.write_text(fill(PAGE.read_text(), results(Path(args[0]) if args else RESULTS, "shapes")))


def main(argv: list[str] | None = None) -> int:
    return status_of("shapes_table", lambda: tabulate(sys.argv[1:] if argv is None else argv))


if __name__ == "__main__":
    sys.exit(main())
