"""Results of levels.py, scoring.py and recovered.py as tables of docs/appendix/benchmarks.md.

python benchmarks/demonstration_tables.py     # rewrites them from benchmarks/results/
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.command import ROOT, status_of
from benchmarks.markdown import between, grid, results
from benchmarks.recovered import LEARNERS
from benchmarks.table import PAGE

RESULTS = ROOT / "benchmarks" / "results"
LEVELS = (
    "level", "steps beside MiniGrid", "differ", "expert's success", "steps of an episode, mean", "longest",
    "planning, ms an episode",
)  # fmt: skip
SCORING = (
    "task", "states", "programs", "nodes", "building s", "compiling s", "running ms", "programs x states a second",
    "all one by one s",
)  # fmt: skip


RECOVERED = (
    "task", "reward", "fitness", "s of the search", "success, quick learner", "success, early ends as ends",
    "success, learner of recovered rewards",
)  # fmt: skip


def levels(report: dict[str, Any]) -> str:
    """A line for each level, and what they were made on."""
    envs = [speed["envs"] for speed in report["rows"][0]["speed"]]
    lines = []
    for row in report["rows"]:
        beside, expert = row.get("beside_minigrid"), row["expert"]
        compared = [f"{beside['steps']:,}", f"{beside['mismatches']}"] if beside else ["not in MiniGrid", ""]
        lines.append([
            row["level"], *compared, f"{expert['success']:.2f}", f"{expert['mean_length']:.1f}",
            f"{expert['longest']}", f"{expert['ms_an_episode']:.1f}",
            *(f"{speed['steps_per_s'] / 1e6:.2f}" for speed in row["speed"]),
        ])  # fmt: skip
    columns = (*LEVELS, *(f"million steps/s, {n:,} environments" for n in envs))
    total = f"{report['steps']:,} steps beside MiniGrid, {report['mismatches']} of them differ."
    episodes = report["rows"][0]["expert"]["episodes"]
    return "\n".join([*grid(columns, lines), "", f"{total} Experts: {episodes} episodes each. {_made(report)}", ""])


def scoring(report: dict[str, Any]) -> str:
    """A line for each number of programs."""
    lines = []
    for part in report["tasks"]:
        alone = part["alone"]["compile_s"] + part["alone"]["run_s"]
        for row in part["rows"]:
            about = "" if row["programs"] <= part["alone"]["programs"] else "~"
            lines.append([
                part["task"], f"{row['states']:,}", f"{row['programs']:,}", f"{row['nodes']:,}",
                f"{row['build_s']:.2f}", f"{row['compile_s']:.2f}",
                f"{1e3 * row['run_s']:.2f}", f"{row['programs_states_per_s']:,.0f}",
                f"{about}{row['programs'] * alone:.1f}",
            ])  # fmt: skip
    return "\n".join([*grid(SCORING, lines), "", _made(report), ""])


def recovered(report: dict[str, Any]) -> str:
    """A line for each reward: what success its agents have by learner, the least of them in brackets."""
    lines = []
    for row in report["rows"]:
        found = row["reward"] == "found"
        told = [f"{row['fitness']:.3f}", f"{row['search_s']:.0f}"] if found else ["", ""]
        what = f"found, {row['expansions']} expansions, seed {row['seed']}" if found else _KNOWN[row["reward"]]
        learned = [f"{sum(v) / len(v):.3f} ({min(v):.2f})" for v in (row[name] for name in LEARNERS)]
        lines.append([row["task"], what, *told, *learned])
    seeds = len(report["rows"][0]["quick"])
    budget = f"{seeds} agents of {report['steps']:,} steps each, the least in brackets."
    return "\n".join([*grid(RECOVERED, lines), "", f"{budget} {_made(report)}", ""])


_KNOWN = {"sparse": "its own, sparse", "constant": "-1 in all states"}


def _made(report: dict[str, Any]) -> str:
    versions = report["versions"]
    return (
        f"{report['cores']} cores {report['cpu']}, jax {versions['jax']}, Python {versions['python']}, commit "
        f"{report['commit']}, load average at the start {report['load_average']}."
    )


_TABLES: dict[str, Callable[[dict[str, Any]], str]] = {"levels": levels, "scoring": scoring, "recovered": recovered}


def fill(page: str, reports: dict[str, dict[str, Any]]) -> str:
    """`page` with the table of each report between its markers."""
    for name, report in reports.items():
        page = between(page, f"<!-- {name} -->", f"<!-- /{name} -->", _TABLES[name](report))
    return page


def main() -> int:
    def work() -> None:
        found = {name: results(RESULTS / f"{name}.json", name) for name in _TABLES}
        PAGE.write_text(fill(PAGE.read_text(), found))

    return status_of("demonstration_tables", work)


if __name__ == "__main__":
    sys.exit(main())
