"""Results of a benchmark as tables: on the terminal, and in docs/appendix/benchmarks.md.

python benchmarks/table.py benchmarks/results/*.json     # rewrites the tables of docs/appendix/benchmarks.md
python benchmarks/table.py --print FILE.json             # prints Markdown instead
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from rich.box import SIMPLE
from rich.console import Console
from rich.table import Table

from benchmarks.command import status_of
from benchmarks.markdown import between, grid, results
from jaxreward.errors import UserError

PAGE = Path(__file__).resolve().parents[1] / "docs" / "appendix" / "benchmarks.md"
START, END = "<!-- table -->", "<!-- /table -->"

_THROUGHPUT = (
    "C", "collector", "chunks", "compile s", "run s", "wall s", "steps/s", "steps/s per candidate", "of ceiling",
    "one by one s", "wall ratio", "run ratio", "separate ratio", "naive ratio", "Brax ratio", "peak MB",
)  # fmt: skip
_GENERATIONS = (
    "collector", "generation", "structures", "chunks", "devices", "compile s", "run s", "wall s", "compiling",
)  # fmt: skip
_TUNING = ("", "candidates", "compile s", "run s", "wall s", "compile ratio")
_CHUNKING = ("C", "limit MB", "chunks", "peak MB", "wall s", "max difference of success")


_OLD_NAMES = {"hasty": "fused, fast", "linked": "stepwise"}
"""Collectors in results of before, by their names of today."""


def collector(name: str) -> str:
    return _OLD_NAMES.get(name, name)


def throughput_cells(row: dict[str, Any]) -> list[str]:
    """One row of the table; an extrapolated figure is marked with `~`."""
    about = "~" if row.get("one_by_one_extrapolated") else ""
    separate = "~" if row.get("separate_extrapolated") else ""
    alone, wall, run = row.get("one_by_one_wall_s"), row["wall_ratio"], row["run_ratio"]
    return [
        str(row["candidates"]), collector(row.get("collector", "")), sizes(row["chunks"]), f"{row['compile_s']:.1f}",
        f"{row['run_s']:.1f}", f"{row['wall_s']:.1f}", f"{row['steps_per_s']:,.0f}",
        f"{row['steps_per_s_per_candidate']:,.0f}", f"{row['steps_per_s'] / row['ceiling_steps_per_s']:.1%}",
        "" if alone is None else f"{about}{alone:.1f}", "" if wall is None else f"{about}{wall:.2f}",
        "" if run is None else f"{about}{run:.2f}",
        _ratio(row["separate_wall_ratio"], separate), _ratio(row.get("naive_wall_ratio"), "~"),
        _ratio(row.get("brax_wall_ratio"), "~"),
        f"{row['peak_bytes'] / 1e6:,.0f}",
    ]  # fmt: skip


def _ratio(value: float | None, about: str) -> str:
    return "" if value is None else f"{about}{value:.2f}"


def generation_cells(row: dict[str, Any]) -> list[str]:
    return [
        collector(row["collector"]), str(row["generation"]), "known" if row["same_structures"] else "new",
        sizes(row["chunks"]), str(row["devices"]), f"{row['compile_s']:.1f}", f"{row['run_s']:.1f}",
        f"{row['wall_s']:.1f}", f"{row['compile_share']:.0%}",
    ]  # fmt: skip


def tuning_rows(found: dict[str, Any]) -> list[list[str]]:
    """Two rows: structures alone, and with many settings of each."""
    rows = []
    for name, ratio in (("alone", ""), ("tuned", f"{found['compile_ratio']:.2f}")):
        part = found[name]
        what = "structures" if name == "alone" else f"x {found['settings']} settings"
        seconds = [f"{part[key]:.1f}" for key in ("compile_s", "run_s", "wall_s")]
        rows.append([what, str(part["candidates"]), *seconds, ratio])
    return rows


def tables(report: dict[str, Any]) -> list[tuple[tuple[str, ...], list[list[str]]]]:
    """Columns and rows of every table of a report that has any."""
    found: list[tuple[tuple[str, ...], list[list[str]]]] = [
        (_THROUGHPUT, [throughput_cells(row) for row in report["rows"]])
    ]
    if report.get("generations"):
        found.append((_GENERATIONS, [generation_cells(row) for row in report["generations"]]))
    if report.get("tune"):
        found.append((_TUNING, tuning_rows(report["tune"])))
    return [*found, *((_CHUNKING, chunking_rows(x)) for x in report["chunking"])]


def chunking_rows(found: dict[str, Any]) -> list[list[str]]:
    """Two rows: whole, and cut."""
    n = str(found["candidates"])
    return [
        [n, "none", sizes(found["whole_chunks"]), f"{found['whole_peak_bytes'] / 1e6:,.0f}",
         f"{found['whole_wall_s']:.1f}", ""],
        [n, f"{found['memory_gb'] * 1e3:,.0f}", sizes(found["chunks"]), f"{found['peak_bytes'] / 1e6:,.0f}",
         f"{found['wall_s']:.1f}", f"{found['max_success_difference']:.4f}"],
    ]  # fmt: skip


def sizes(chunks: list[int]) -> str:
    """`4 x 16` for four equal chunks, else the sizes."""
    if len(set(chunks)) == 1:
        return f"{len(chunks)} x {chunks[0]}" if len(chunks) > 1 else str(chunks[0])
    return " + ".join(map(str, chunks))


def heading(report: dict[str, Any]) -> str:
    s, v = report["settings"], report["versions"]
    return (
        f"{s['task']}, {s['seeds']} seeds x {s['steps']:,} steps; {report['device']}, {report['cpu']}, "
        f"{report['cores']} cores; jax {v['jax']}, Python {v['python']}; commit {report['commit']}, {report['date']}; "
        f"load average at the start {report['load_average']}"
    )


def remarks(report: dict[str, Any]) -> list[str]:
    lines = []
    if report["ceiling"]:
        top = report["ceiling"]
        lines.append(f"Environment steps alone: {top['steps_per_s']:,.0f} steps/s in {top['lanes']:,} lanes.")
    if found := report.get("agreement"):
        for how, by in found["collectors"].items():
            lines.append(
                f"{found['programs']} programs x {found['seeds']} seeds x {found['steps']:,} steps, "
                f"{collector(how)} and fused: parameters of the agents differ by at most "
                f"{by['max_parameter_difference']:.2g}, success by {by['max_success_difference']:.2g}."
            )
    if any(row.get("one_by_one_extrapolated") or row.get("separate_extrapolated") for row in report["rows"]):
        lines.append("`~`: extrapolated from the programs that were measured one by one.")
    lines += [f"{x['candidates']} candidates were left out: {x['reason']}." for x in report["left_out"]]
    return lines


def show(report: dict[str, Any], console: Console) -> None:
    """The tables of a report on the terminal, or in lines as long as they need to be."""
    console = Console(file=console.file, width=max(console.width, 210))
    for columns, rows in tables(report):
        table = Table(box=SIMPLE)
        for column in columns:
            table.add_column(column, justify="right", no_wrap=True)
        for cells in rows:
            table.add_row(*cells)
        console.print(table)
    for line in remarks(report):
        console.print(line, highlight=False)


def markdown(report: dict[str, Any]) -> str:
    """The same as Markdown."""
    lines = [heading(report)]
    for columns, rows in tables(report):
        lines += ["", *grid(columns, rows)]
    return "\n".join([*lines, "", *remarks(report)]).rstrip() + "\n"


def fill(page: str, reports: list[dict[str, Any]]) -> str:
    """`page` with the tables of `reports` between its markers."""
    return between(page, START, END, "\n".join(markdown(r) for r in reports))


def tabulate(args: Sequence[str]) -> None:
    """Print the tables, or fill the page."""
    paths = [Path(a) for a in args if a != "--print"]
    if not paths or any(str(p).startswith("-") for p in paths):
        raise UserError("give at least one results file: table.py [--print] FILE.json ...")
    reports = [results(p, "candidate_throughput") for p in paths]
    if "--print" in args:
        print("\n".join(markdown(r) for r in reports))
    else:
        PAGE.write_text(fill(PAGE.read_text(), reports))


def main(argv: list[str] | None = None) -> int:
    return status_of("table", lambda: tabulate(sys.argv[1:] if argv is None else argv))


if __name__ == "__main__":
    sys.exit(main())
