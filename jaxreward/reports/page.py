"""`report.html`: the report of a run as one page for a browser, without a network."""

from __future__ import annotations

import ast
import base64
import gzip
import json
import math
import shlex
import time
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any

from jaxreward import files
from jaxreward.config import label_of, parse_json
from jaxreward.extras import require
from jaxreward.formatting import count, dollars, mapped, printable, span
from jaxreward.reports import charts
from jaxreward.reports.candidates import details
from jaxreward.reports.chart_data import cells
from jaxreward.reports.report_content import FUNCTIONS, Report, make_report
from jaxreward.reports.run_view import RunView
from jaxreward.runs.disk import check_target, write_atomic
from jaxreward.runs.malformed import explain_malformed
from jaxreward.runs.provenance import versions
from jaxreward.runs.toml import to_toml

PAGE = "report.html"
FILM = "film"
"""Stem of the video of the winner in a run's folder."""

ABOUT_FILM = "film.json"
"""File of a run that names the program and the agent in its video."""

_LARGEST_FILM = 1_500_000
"""Largest video in bytes that the page embeds."""

_SECTIONS = {
    "headline": "Result", "warnings": "Warnings", "film": "Video", "program": "Program", "terms": "Reward",
    "demonstrations": "Demonstrations", "curves": "Curves", "search": "Search", "judged": "Judge", "lineage": "Lineage",
    "functions": "Functions", "candidates": "Candidates", "failures": "Failures", "cost": "Time and cost",
    "reproduce": "Reproduce",
}  # fmt: skip

_ENTRIES = ("get_observation", "compute_reward", "reward")
QUESTIONS = (
    ("Which candidate won, and by how much?", "headline", "the headline and the sentences below it"),
    ("Is it noise?", "headline", "the intervals of the winner and the baselines"),
    ("Should I trust it?", "warnings", "the warnings, each with what it means"),
    ("What does the winner see and reward?", "program", "its source"),
    ("Which term drives the reward?", "terms", "the shares at the end, the curves through training"),
    ("Where did its idea come from?", "lineage", "each ancestor with its changes; an id opens prompt and reply"),
    ("Did the search still find better programs at the end?", "search", "the best so far over trained candidates"),
    ("Which other candidate is worth a look?", "candidates", "sort by any column, filter, open one"),
    ("What failed most, and why?", "failures", "by stage; open one for its examples"),
    (
        "What did it cost, and how do I do it again?",
        "cost",
        "time by generation, the cost of each model; commands under Reproduce",
    ),
)
"""Questions of a reader, the section that answers each, and where in it."""

_STAGES = {
    "declined": "The proposer does not know the operator.",
    "refused": "The model or its endpoint would not answer.",
    "reply": "There was no program, or none of the words asked for, in the answer.",
    "guard": "The source uses something that is not allowed.",
    "trace": "JAX could not trace it.",
    "contract": "The outputs have the wrong form.",
    "limits": "It is too large or too slow.",
    "numeric": "It computes something that is not finite on states of the task.",
    "killed": "The process that checked it died or hung.",
    "duplicate": "It computes what an earlier candidate computes.",
    "filtered": "Its score after a short training was below the threshold.",
    "diverged": "Training diverged with every seed.",
}

_COLUMNS = (
    ("id", "candidate", "words", None), ("state", "state", "words", None), ("score", "score", "number", "merit"),
    ("operator", "operator", "words", None), ("generation", "generation", "number", None),
    ("features", "features", "number", None), ("reward_nodes", "reward nodes", "number", None),
    ("terms", "terms", "number", None), ("steps", "steps", "number", None), ("model", "model", "words", None),
    ("tokens", "tokens", "number", None), ("cost", "dollars", "number", None), ("warnings", "warnings", "words", None),
)  # fmt: skip


def embed_film(path: Path, film: str, digest: str, agent: str) -> None:
    """Record that `film`, a file in the folder of a run, shows the program with a digest, and write the report with it.

    Args:
        agent: whose film it is, in words.
    """
    write_atomic(path / ABOUT_FILM, json.dumps({"digest": digest, "file": film, "agent": agent}))
    write_report(path)


def write_report(path: Path, target: Path | None = None) -> Path:
    """Write the report of the run in `path`, also of one that is running; returns its path, by default in the run.

    Raises:
        UserError: there is no run, its log is damaged, a package is not installed, or the disk is full.
    """
    require("reports", "a report")
    target = target or path / PAGE
    with explain_malformed(path):
        text = render(RunView.read(path))
    check_target(target)
    write_atomic(target, text)
    return target


def render(view: RunView) -> str:
    """The page of a run as HTML."""
    from jinja2 import Environment, PackageLoader, StrictUndefined
    from markupsafe import Markup

    report = make_report(view)
    environment = Environment(
        loader=PackageLoader("jaxreward.reports", "web"), autoescape=True, undefined=StrictUndefined,
        trim_blocks=True, lstrip_blocks=True, finalize=_shown,
    )  # fmt: skip
    best = view.best
    summary = best.candidate.summary if best else None
    shown = dict.fromkeys(("film", "program", "terms"), best is not None) | {
        "curves": "curves" in report.charts,
        "demonstrations": report.demonstrated is not None and bool(report.demonstrated.charts),
        "judged": bool(report.judged.agents),
        "lineage": bool(report.lineage),
        "functions": bool(report.library.shared),
    }
    sections = [(id, name) for id, name in _SECTIONS.items() if shown.get(id, True)]
    return environment.get_template("report.html.j2").render(
        report=report,
        view=view,
        css=Markup(_asset("report.css")),
        script=Markup(_asset("report.js")),
        library=Markup(_library()),
        data=Markup(_json(_data(report)).replace("<", "\\u003c")),
        packed=_packed(report),
        film=_film(view),
        film_command=shlex.join(["jaxreward", "film", str(view.path)]),
        highlighted=Markup(_highlighted(printable(report.source))),
        functions=Markup(_highlighted(entry_functions(printable(report.source)))),
        shared=[(f, Markup(_highlighted(printable(f.source)))) for f in report.library.shared[:FUNCTIONS]],
        sections=sections,
        questions=[q for q in QUESTIONS if shown.get(q[1], True)],
        figures=_figures(report),
        reads=sorted({*summary.observation_reads, *summary.reward_reads}) if summary else [],
        cells=bool(cells(view)),
        stages=_STAGES,
        labels=_labels(view),
        settings=to_toml({**view.progress.config, **_labels(view)}),
        version=versions()["jaxreward"],
        written=time.strftime("%Y-%m-%d %H:%M"),
    )


def _packed(report: Report) -> str:
    """What the page unpacks when a candidate is first opened: details by id, and frames by their paths in the run."""
    view, judged = report.view, report.judged
    content = {"candidates": details(view.results, view.exchanges, judged), "frames": judged.frames()}
    return base64.b64encode(gzip.compress(_json(content).encode(), mtime=0)).decode()


def _labels(view: RunView) -> dict[str, str]:
    """The task, strategy and proposer for people: files without their folders."""
    started = view.started
    named = {"task": started.task, "strategy": started.strategy, "proposer": started.proposer}
    return {option: label_of(name) for option, name in named.items()}


def _film(view: RunView) -> dict[str, str] | None:
    """The video of the winner, if it is of this program: its file, its agent, and its data if small enough to embed."""
    summary, file = view.best.candidate.summary if view.best else None, view.path / f"{FILM}.gif"
    try:
        about = parse_json(files.read_text(view.path / ABOUT_FILM))
        if summary is None or about["digest"] != summary.digest:
            return None
        with files.open_binary(file) as opened:
            data = opened.read(_LARGEST_FILM + 1)
        data = data if len(data) <= _LARGEST_FILM else b""
    except (OSError, ValueError, KeyError, TypeError):
        return None
    if data and not data.startswith(b"GIF8"):
        return None
    shown = f"data:image/gif;base64,{base64.b64encode(data).decode()}" if data else ""
    return {"file": file.name, "agent": str(about.get("agent", "")), "data": shown}


def _figures(report: Report) -> list[tuple[str, str]]:
    """Totals of the run, formatted."""
    view, spent = report.view, report.view.progress.spent
    device_s = spent.compile_s + spent.run_s
    found = {
        f"candidates {view.treated}": f"{spent.trained:,}",
        "without a score": ", ".join(f"{n} {stage}" for stage, n in view.failures.items()) or "none",
        "environment steps": f"{spent.env_steps + spent.baseline_env_steps:,}",
        "wall time": span(view.wall_s),
        "device time": f"{span(device_s)}, {spent.compile_s / device_s:.0%} compiling" if device_s else "",
        "steps a second": f"{(spent.env_steps + spent.baseline_env_steps) / spent.run_s:,.0f}" if spent.run_s else "",
        "language models": f"{dollars(view.cost_usd)}, {count(view.tokens)} tokens" if view.tokens else "none",
    }
    return [(name, value) for name, value in found.items() if value]


def _data(report: Report) -> dict[str, Any]:
    """The data that the page's script reads at once."""
    best = report.view.best
    used = {key for row in report.table for key, value in row.items() if value not in (None, "", 0, 0.0)}
    columns = [
        {"key": key, "title": title, "kind": kind, **({"by": by} if by else {})}
        for key, title, kind, by in _COLUMNS
        if key in used or key in ("id", "state", "score")
    ]
    return {
        "best": best.candidate.id if best else None,
        "metric": report.measure.label,
        "charts": report.charts,
        "templates": {"curves": charts.curves(report.measure), "terms": charts.terms()},
        "table": report.table,
        "columns": columns,
    }


def _json(value: Any) -> str:
    """JSON with NaN and infinities as null and invisible characters escaped."""
    finite = mapped(value, lambda x: None if isinstance(x, float) and not math.isfinite(x) else _shown(x))
    return json.dumps(finite, separators=(",", ":"), allow_nan=False)


def _shown(value: Any) -> Any:
    """What the template prints: text of the run with invisible characters escaped, our own markup as it is."""
    return printable(value) if type(value) is str else value


def entry_functions(source: str) -> str:
    """The functions of a program that the trainer calls, without constants and helpers; all of it if it has none."""
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return source
    lines, found = source.split("\n"), list[str]()
    for node in tree.body:
        if isinstance(node, ast.FunctionDef) and node.name in _ENTRIES:
            first = min([node.lineno, *(d.lineno for d in node.decorator_list)])
            found.append("\n".join(lines[first - 1 : node.end_lineno]))
    return "\n\n\n".join(found) or source


def _highlighted(source: str) -> str:
    from pygments import highlight
    from pygments.formatters import HtmlFormatter
    from pygments.lexers import PythonLexer

    return highlight(source, PythonLexer(), HtmlFormatter(nowrap=True))


def _asset(name: str) -> str:
    return (resources.files("jaxreward.reports") / "web" / name).read_text(encoding="utf-8")


@cache
def _library() -> str:
    """Vega, Vega-Lite and Vega-Embed as one script, which sets `vegaEmbed`."""
    import vl_convert

    return vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;", _VEGA_LITE).replace("</script", "<\\/script")


_VEGA_LITE = "6.4"
