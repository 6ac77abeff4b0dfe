"""Results of asynchronous.py as tables and a picture, in docs/appendix/asynchronous.md.

python benchmarks/asynchronous_page.py [FILE.json]           # rewrites the tables and the picture of the page
python benchmarks/asynchronous_page.py --print [FILE.json]   # prints the tables instead
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.command import status_of
from benchmarks.markdown import between, grid, results
from jaxreward.formatting import counted, span

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "benchmarks" / "results" / "asynchronous.json"
PAGE = ROOT / "docs" / "appendix" / "asynchronous.md"
PICTURE = ROOT / "docs" / "pictures" / "asynchronous.png"
START, END = "<!-- results -->", "<!-- /results -->"

Row = dict[str, Any]


def markdown(report: Row) -> str:
    """All tables of a report."""
    v, blocks = report["versions"], list[str]()
    blocks.append(
        f"{report['cpu']}, {counted(report['cores'], 'core')}; Python {v['python']}, jax {v['jax']}; "
        f"commit {report['commit']}, {report['date']}."
    )
    if "times" in report:
        t = report["times"]
        blocks.append(
            f"Of {len(t['seconds'])} generations of {t['batch']} candidates x {t['steps']:,} steps of xland-easy, one "
            f"after another on one core, the median took {t['median_s']:.1f} s, compilation included; half the "
            f"distance of the 16th and the 84th percentile is {t['spread']:.2f} in the logarithm, the slowest took "
            f"{t['slowest']:.1f} times the median (load average {t['load']:g}). That spread is used here."
        )
    if report.get("staleness"):
        blocks += ["## What is won and lost", _settings(report), _staleness(report["staleness"])]
    if report.get("scale"):
        blocks += ["## One loop and a thousand devices", _scale_words(report), _scale(report["scale"])]
    return "\n\n".join(blocks) + "\n"


def _settings(report: Row) -> str:
    s = report["searches"]
    return (
        f"{s['candidates']} candidates in batches of {s['batch']}, {s['devices']} devices, {s['seeds']} seeds. *Found* "
        "is the true value of the program that the search says is best, with the half width of its 95 % interval; "
        "*against waiting* the paired difference to the search that waits, after as many candidates and by the time at "
        "which the asynchronous search with one more in work than devices ends. *Not told* is how many "
        "results came between asking for a generation and being told it. Bold: the interval is on one side of 0."
    )


def _staleness(rows: Sequence[Row]) -> str:
    cells = [
        [
            r["landscape"], r["strategy"], r["way"], f"{r['truth']:.3f} ± {r['half']:.3f}",
            _difference(r["difference"], r["difference_half"]), _difference(r["in_time_difference"], r["in_time_half"]),
            span(r["seconds"]), f"{r['idle']:.0%}", f"{r['staleness']:.0f}",
        ]
        for r in rows
    ]  # fmt: skip
    columns = ("landscape", "strategy", "way", "found", "against waiting", "in equal time", "time", "idle", "not told")
    return "\n".join(grid(columns, cells, left=3))


def _difference(mean: float, half: float) -> str:
    text = f"{mean:+.3f} ± {half:.3f}"
    return f"**{text}**" if abs(mean) > half else text


def _scale_words(report: Row) -> str:
    return (
        f"{report['searches']['scale_candidates']:,} candidates of limen on `smooth`, one at a time on each device; "
        "asynchronous with twice as many in work as there are devices. *Possible* are the events that this process "
        "logs a second, each forced onto the disk, with all that a search does between them; *needed* those of the "
        "search at its devices' pace. The memory is what the process grew by, row after row: it keeps what earlier "
        "searches have freed."
    )


def _scale(rows: Sequence[Row]) -> str:
    cells = [
        [
            f"{r['devices']:,}", "asynchronous" if r["asynchronous"] else "waits", span(r["seconds"]),
            f"{r['idle']:.0%}", f"{r['staleness']:.0f}", f"{r['truth']:.3f}", f"{r['events_per_s']:.0f}",
            f"{r['needed_per_s']:.2g}", f"{r['grown_mb']:.0f} MB", f"{r['log_mb']:.0f} MB",
        ]
        for r in rows
    ]  # fmt: skip
    columns = (
        "devices", "way", "time", "idle", "not told", "found", "events/s possible", "needed", "memory", "log",
    )  # fmt: skip
    return "\n".join(grid(columns, cells, left=3))


def picture(report: Row, path: Path) -> None:
    """The truth of the best over time, a panel for each landscape and strategy."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    rows = report["staleness"]
    names = {key: list(dict.fromkeys(r[key] for r in rows)) for key in ("landscape", "strategy", "way")}
    shape = len(names["strategy"]), len(names["landscape"])
    figure, axes = pyplot.subplots(*shape, figsize=(13, 2.6 * shape[0] + 0.6), sharex=True, sharey=True, squeeze=False)
    for r in rows:
        axis = axes[names["strategy"].index(r["strategy"])][names["landscape"].index(r["landscape"])]
        k = names["way"].index(r["way"])
        color = "black" if r["way"] == "waits" else f"C{k}"
        hours, values = zip(*((at / 3600, value) for at, value in r["curve"]), strict=True)
        axis.plot(hours, values, label=r["way"], color=color, linewidth=1.4, linestyle="--" if k < 2 else "-")
        axis.set_title(f"{r['strategy']}, {r['landscape']}", fontsize=9)
        axis.grid(alpha=0.3)
    for axis in axes[-1]:
        axis.set_xlabel("hours")
    for axis in axes[:, 0]:
        axis.set_ylabel("true value of the best")
    figure.legend(*axes.flat[0].get_legend_handles_labels(), loc="upper center", ncol=len(names["way"]), frameon=False)
    figure.tight_layout(rect=(0, 0, 1, 0.95))
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=80)
    pyplot.close(figure)


def tabulate(args: Sequence[str]) -> None:
    """Write the page and its picture, or print the tables."""
    report = results(Path(next((arg for arg in args if not arg.startswith("--")), RESULTS)), "asynchronous")
    if "--print" in args:
        print(markdown(report))
        return
    text = markdown(report)
    if report.get("staleness"):
        picture(report, PICTURE)
        text = f"![True value of the best program over time](../pictures/{PICTURE.name})\n\n{text}"
    PAGE.write_text(between(PAGE.read_text(), START, END, text))


def main(argv: list[str] | None = None) -> int:
    return status_of("asynchronous_page", lambda: tabulate(sys.argv[1:] if argv is None else argv))


if __name__ == "__main__":
    sys.exit(main())
