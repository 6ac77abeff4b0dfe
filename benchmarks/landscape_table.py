"""Results of search_landscapes.py as tables and a picture, in docs/appendix/landscapes.md.

python benchmarks/landscape_table.py [FILE.json]           # rewrites the tables and the picture of the page
python benchmarks/landscape_table.py --print [FILE.json]   # prints the tables instead
"""

from __future__ import annotations

import statistics
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.command import status_of
from benchmarks.landscape_entries import BASELINE
from benchmarks.markdown import between, grid, results
from benchmarks.search_landscapes import RESULTS
from jaxreward.errors import UserError

PAGE = Path(__file__).resolve().parents[1] / "docs" / "appendix" / "landscapes.md"
PICTURE = PAGE.parents[1] / "pictures" / "landscapes.png"
START, END = "<!-- results -->", "<!-- /results -->"

Row = dict[str, Any]


def markdown(report: Row) -> str:
    """All tables of a report."""
    blocks = [_heading(report)]
    if "strategies" in report:
        blocks += ["### Against best-of-N", _overview(report["strategies"])]
        blocks += [_landscape(report["strategies"], name) for name in _names(report["strategies"], "landscape")]
    if "without_insight" in report:
        blocks += ["### The same without insight", _insight(report["without_insight"])]
    if "long" in report:
        blocks += ["### One long search", _long(report["long"])]
    if "ablations" in report:
        blocks.append("### What is taken from RF-Agent")
        blocks += [_ablations(report["ablations"], budget) for budget in _names(report["ablations"], "budget")]
    return "\n\n".join(blocks) + "\n"


def _heading(report: Row) -> str:
    s, v = report["settings"], report["versions"]
    return (
        f"{s['seeds']} seeds, generations of {s['generation']}, insight {s['insight']}; {report['device']}, "
        f"{report['cpu']}, {report['cores']} cores; Python {v['python']}, numpy {v['numpy']}; "
        f"commit {report['commit']}, {report['date']}"
    )


def _overview(rows: Sequence[Row]) -> str:
    """Verdicts of all landscapes and budgets, one letter a budget."""
    landscapes, budgets = _names(rows, "landscape"), _names(rows, "budget")
    letter = {"better": "+", "worse": "−", "no difference": "0"}
    cells = []
    for entry in _names(rows, "entry"):
        if entry == BASELINE.label:
            continue
        line = [entry]
        for landscape in landscapes:
            found = [_one(rows, entry=entry, landscape=landscape, budget=budget) for budget in budgets]
            signs = "".join(letter[row["verdict"]] for row in found)
            line.append(f"**{signs}**" if found[0]["expected"] else signs)
        cells.append(line)
    text = (
        f"Verdicts at {_list(budgets)} candidates: `+` better than best-of-N, `−` worse, `0` no difference by the "
        "95 % interval of the paired difference. Bold: expected to be better."
    )
    table = _lines(["strategy", *(f"`{name}`" for name in landscapes)], cells)
    return "\n\n".join([text, table, *_surprises(rows)])


def _surprises(rows: Sequence[Row]) -> list[str]:
    """Where it came out other than expected, from 80 candidates on, and who left the trap."""
    rows = [row for row in rows if row["entry"] != BASELINE.label]
    late = [row for row in rows if row["budget"] >= 80]
    failed = [row for row in late if row["expected"] and row["verdict"] != "better"]
    more = [row for row in late if not row["expected"] and row["verdict"] != "no difference"]
    lines = [f"Expected to be better, without a significant difference: {_places(failed)}."]
    lines.append(f"Not expected, and significantly different: {_places(more, verdict=True)}.")
    largest = max(_names(rows, "budget"))
    trapped = [row for row in rows if row["landscape"] == "deceptive" and row["budget"] == largest]
    if trapped:
        seeds = len(trapped[0]["truth"])
        left = [f"{row['entry']} {n}" for row in trapped if (n := sum(value > 0.605 for value in row["truth"]))]
        lines.append(
            f"Searches of {largest} candidates that left the trap of `deceptive`, of {seeds}: {_list(left) or 'none'}."
        )
    return lines


def _places(rows: Sequence[Row], verdict: bool = False) -> str:
    groups: dict[tuple[str, str, str], list[int]] = {}
    for row in rows:
        key = (row["entry"], row["landscape"], row["verdict"] if verdict else "")
        groups.setdefault(key, []).append(row["budget"])
    texts = [
        f"{entry} on `{landscape}` ({f'{verdict} ' if verdict else ''}at {' and '.join(map(str, budgets))})"
        for (entry, landscape, verdict), budgets in groups.items()
    ]
    return "; ".join(texts) or "nothing"


def _landscape(rows: Sequence[Row], landscape: str) -> str:
    """The truth of what each strategy says is best, and its difference to best-of-N."""
    budgets = _names(rows, "budget")
    columns = ["strategy", *(c for b in budgets for c in (f"{b}: truth", "difference"))]
    cells = []
    for entry in _names(rows, "entry"):
        line = [entry]
        for budget in budgets:
            row = _one(rows, entry=entry, landscape=landscape, budget=budget)
            short = f" ({row['trained']:.0f} trained)" if row["trained"] < budget - 0.5 else ""
            line.append(f"{row['mean']:.2f}±{row['half']:.2f}{short}")
            line.append("" if entry == BASELINE.label else _marked(row, "difference", "difference_half", 2))
        cells.append(line)
    return f"**`{landscape}`**\n\n{_lines(columns, cells)}"


def _insight(rows: Sequence[Row]) -> str:
    landscapes, (budget,) = _names(rows, "landscape"), _names(rows, "budget")
    cells = []
    for entry in _names(rows, "entry"):
        found = [_one(rows, entry=entry, landscape=landscape) for landscape in landscapes]
        if entry == BASELINE.label:
            cells.append([entry, *(f"{row['mean']:.2f}" for row in found)])
        else:
            cells.append([entry, *(_marked(row, "difference", "difference_half", 2) for row in found)])
    text = (
        f"Insight 0, {budget} candidates: the truth of best-of-N, and the differences to it. Bold: better or worse by "
        "the interval."
    )
    return f"{text}\n\n{_lines(['strategy', *(f'`{name}`' for name in landscapes)], cells)}"


def _long(rows: Sequence[Row]) -> str:
    landscapes = _names(rows, "landscape")
    entries = _names(rows, "entry")
    seconds = {e: _mean(rows, e, "seconds") for e in entries}
    cells = []
    for entry in entries:
        found = [_one(rows, entry=entry, landscape=landscape) for landscape in landscapes]
        marks = [f"{row['truth']:.2f}" + (f" ({row['candidates']:,})" if row["ended"] else "") for row in found]
        ratio = seconds[entry] / seconds[BASELINE.label] if BASELINE.label in seconds else 0.0
        inside = _mean(rows, entry, "strategy_seconds")
        cells.append([entry, *marks, f"{seconds[entry]:.1f}", f"{ratio:.1f}", f"{inside:.1f}"])
    most = max(row["candidates"] for row in rows)
    text = (
        f"{most:,} candidates, one seed: the truth of what the strategy says is best (in brackets the candidates of "
        "searches that ended early), the processor seconds of a search, mean over the landscapes, their ratio to "
        "best-of-N, and the seconds inside the strategy."
    )
    columns = ["strategy", *(f"`{name}`" for name in landscapes), "seconds", "ratio", "strategy s"]
    return f"{text}\n\n{_lines(columns, cells)}"


def _ablations(rows: Sequence[Row], budget: int) -> str:
    rows = [row for row in rows if row["budget"] == budget]
    landscapes = _names(rows, "landscape")
    full = [_one(rows, entry="full", landscape=landscape) for landscape in landscapes]
    cells = [["full: truth", *(f"{row['mean']:.2f}" for row in full)]]
    for group in _names(rows, "group"):
        if not group:
            continue
        cells.append([f"*{group}*", *("" for _ in landscapes)])
        for entry in _names([row for row in rows if row["group"] == group], "entry"):
            found = [_one(rows, entry=entry, landscape=landscape) for landscape in landscapes]
            cells.append([entry, *(_marked(row, "percent", "percent_half", 0) for row in found)])
    text = (
        f"{budget} candidates: percent of the full strategy's truth, paired by seed. `all` is the mean over the "
        "landscapes but `needle`. Bold: better or worse by the interval."
    )
    return f"{text}\n\n{_lines(['', *(f'`{name}`' for name in landscapes)], cells)}"


def _names(rows: Sequence[Row], key: str) -> list[Any]:
    """The different values of a key, in the order of the rows."""
    return list(dict.fromkeys(row[key] for row in rows))


def _one(rows: Sequence[Row], **where: Any) -> Row:
    return next(row for row in rows if all(row[key] == value for key, value in where.items()))


def _mean(rows: Sequence[Row], entry: str, key: str) -> float:
    return statistics.fmean(row[key] for row in rows if row["entry"] == entry)


def _signed(mean: float, half: float, digits: int = 2) -> str:
    return f"{mean:+.{digits}f}±{half:.{digits}f}".replace("-", "−")


def _marked(row: Row, mean: str, half: str, digits: int) -> str:
    text = _signed(row[mean], row[half], digits)
    return text if row["verdict"] == "no difference" else f"**{text}**"


def _list(values: Sequence[Any]) -> str:
    return ", ".join(map(str, values))


def _lines(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    return "\n".join(grid(columns, rows, left=1))


def picture(report: Row, path: Path) -> None:
    """The truth of the best so far over trained candidates, at the largest budget, a panel a landscape."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    rows = report["strategies"]
    budget, landscapes = max(_names(rows, "budget")), _names(rows, "landscape")
    figure, axes = pyplot.subplots(2, -(-len(landscapes) // 2), figsize=(13, 6), sharex=True, squeeze=False)
    for axis, landscape in zip(axes.flat, landscapes):
        for k, entry in enumerate(_names(rows, "entry")):
            curve = _one(rows, entry=entry, landscape=landscape, budget=budget)["curve"]
            style = {"color": "black", "linestyle": "--"} if entry == BASELINE.label else {"color": f"C{k}"}
            axis.plot(*zip(*curve), label=entry, linewidth=1.3, **style)
        axis.set_title(landscape, fontsize=10)
        axis.set_ylim(0, 1.02)
        axis.grid(alpha=0.3)
    for axis in axes.flat[len(landscapes) :]:
        axis.axis("off")
    axes.flat[-1].legend(*axes.flat[0].get_legend_handles_labels(), loc="center", frameon=False)
    for axis in axes[-1]:
        axis.set_xlabel("trained candidates")
    for axis in axes[:, 0]:
        axis.set_ylabel("true value of the best so far")
    figure.tight_layout()
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=80)
    pyplot.close(figure)


def fill(page: str, report: Row) -> str:
    """`page` with the tables of `report` between its markers."""
    image = "![True value of the best so far over trained candidates](../pictures/landscapes.png)"
    return between(page, START, END, f"{image}\n\n{markdown(report)}")


def tabulate(args: Sequence[str]) -> None:
    """Print the table, or fill the page and draw the picture."""
    paths = [Path(arg) for arg in args if arg != "--print"] or [RESULTS]
    if len(paths) > 1 or str(paths[0]).startswith("-"):
        raise UserError("give at most one results file: landscape_table.py [--print] [FILE.json]")
    report = results(paths[0], "search_landscapes")
    if "--print" in args:
        print(markdown(report))
    else:
        PAGE.write_text(fill(PAGE.read_text(), report))
        picture(report, PICTURE)


def main(argv: list[str] | None = None) -> int:
    return status_of("landscape_table", lambda: tabulate(sys.argv[1:] if argv is None else argv))


if __name__ == "__main__":
    sys.exit(main())
