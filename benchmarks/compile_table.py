"""Results of gpu_compile.py as the table of docs/appendix/benchmarks.md.

python benchmarks/compile_table.py [benchmarks/results/gpu_compile.json]     # rewrites the table
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.command import status_of
from benchmarks.described import DEVICES
from benchmarks.markdown import between, grid, results
from benchmarks.table import PAGE
from jaxreward.errors import UserError

RESULTS = Path(__file__).resolve().parent / "results" / "gpu_compile.json"
START, END = "<!-- gpu compile -->", "<!-- /gpu compile -->"
COLUMNS = (
    "task", "C", "code", "StableHLO ops", "instructions", "trace s", "compile s", "learn s", "CPU s",
    "launches a step", "of unknown loops", "launches of learn", "MB a step", "GFLOP a step", "memory MB",
    "steps/s at most", "bound by",
)  # fmt: skip


def latest(report: dict[str, Any]) -> list[dict[str, Any]]:
    """The last row of every case, device, number of candidates and label."""
    found = {}
    for row in report["rows"]:
        found[tuple(row[key] for key in ("device", "case", "candidates", "seeds", "envs", "label"))] = row
    return list(found.values())


def cells(row: dict[str, Any]) -> list[str]:
    about = [row["case"], f"{row['candidates']:,}", row["label"]]
    if "error" in row:
        return [*about, row["error"], *[""] * (len(COLUMNS) - 4)]
    estimated, learn = row["estimate"], row["functions"]["learn"]
    collect = [f for name, f in row["functions"].items() if name != "learn"]
    steps = (row["length"] + 1) * row["repeat"]

    def total(key: str) -> float:
        return sum(f[key] for f in collect)

    def a_step(key: str, unit: float, digits: int) -> str:  # early rows have no bytes and arithmetic
        return f"{total(key) / steps / unit:,.{digits}f}" if all(f[key] is not None for f in collect) else ""

    memory = max(sum(f["memory"].values()) - 2 * f["memory"]["alias"] for f in row["functions"].values())
    return [
        *about, f"{total('stablehlo_ops'):,}", f"{total('instructions'):,}", f"{total('trace_s'):.1f}",
        f"{total('compile_s'):.1f}", f"{learn['compile_s']:.1f}", f"{row['cpu_s']:.0f}",
        f"{estimated['launches_per_step']:,.0f}",
        f"{estimated['unknown_per_step']:,.0f}" if estimated["unknown_per_step"] else "", f"{learn['launches']:,}",
        a_step("bytes", 1e6, 1), a_step("flops", 1e9, 2), f"{memory / 1e6:,.0f}",
        f"{estimated['steps_per_s'] / 1e6:.2f} M", estimated["bound_by"],
    ]  # fmt: skip


def markdown(report: dict[str, Any]) -> str:
    """A table for each device, with what its rows were made on."""
    rows, lines = latest(report), list[str]()
    for name, device in DEVICES.items():
        own = sorted((r for r in rows if r["device"] == name), key=lambda r: (r["case"], r["candidates"], r["label"]))
        if not own:
            continue
        made = dict.fromkeys(f"{r['commit']} ({r['label']})" if r["label"] else r["commit"] for r in own)
        versions = dict.fromkeys(f"jax {r['versions']['jax']}, Python {r['versions']['python']}" for r in own)
        assumed = dict.fromkeys(f"{r['estimate']['launch_us']:g}" for r in own if "estimate" in r)
        loads, processors = [r["load_average"] for r in own], sorted({r["cpu"] for r in own})
        lines += [
            f"{device.title}, {device.bandwidth / 1e12:g} TB/s, {device.flops / 1e12:.0f} TFLOP/s, "
            f"{' and '.join(assumed)} us a launch; {own[0]['seeds']} seeds, E = {own[0]['envs']}; compiled on "
            f"{' and '.join(processors)}, {own[0]['cores']} cores, load average {min(loads):.1f} to {max(loads):.1f}; "
            f"{' and '.join(versions)}; commit {', '.join(made)}",
            "", *grid(COLUMNS, [cells(r) for r in own]), "",
        ]  # fmt: skip
    return "\n".join([*lines, f"Assumed: {report['assumed']}.", ""])


def fill(page: str, report: dict[str, Any]) -> str:
    return between(page, START, END, markdown(report))


def tabulate(args: Sequence[str]) -> None:
    if len(args) > 1 or any(a.startswith("-") for a in args):
        raise UserError("give one results file at most: compile_table.py [FILE.json]")
    PAGE.write_text(fill(PAGE.read_text(), results(Path(args[0]) if args else RESULTS, "gpu_compile")))


def main(argv: list[str] | None = None) -> int:
    return status_of("compile_table", lambda: tabulate(sys.argv[1:] if argv is None else argv))


if __name__ == "__main__":
    sys.exit(main())
