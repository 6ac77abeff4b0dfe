"""`jaxreward tell`: the programs that answer the requests of `jaxreward ask`."""

from __future__ import annotations

from jaxreward.commands.evolve import TOPICS, conclude
from jaxreward.commands.output import console_of
from jaxreward.commands.resolve import Command, Given, Resolved
from jaxreward.commands.search_settings import BY_EVOLVE, for_people
from jaxreward.commands.summary import rejections
from jaxreward.evolution import run_search
from jaxreward.evolution.settings import EvolveSettings
from jaxreward.reports.live import Live
from jaxreward.runs import StopSignal, read_log
from jaxreward.runs.folders import LOG


def resolve(given: Given[EvolveSettings]) -> Resolved[EvolveSettings]:
    return for_people(given, **{"llm.wait_s": 0.0})


def run(resolved: Resolved[EvolveSettings]) -> int:
    """Read, check and train the programs; returns the exit status."""
    settings = resolved.settings
    console = console_of(settings.json)
    with StopSignal() as stop, Live(console, settings.candidates) as live:
        known = len(read_log(settings.out / settings.run_name / LOG))
        outcome = run_search(settings, live, stop=stop, generations=1)
    for line in rejections(read_log(outcome.path / LOG)[known:]):
        console.print(line)
    return conclude("tell", outcome, console)


COMMANDS = (
    Command(
        "tell", EvolveSettings, run=run, resolve=resolve,
        main=("name", "out", "candidates", "json"), topics=TOPICS,
        refused=dict.fromkeys(("--wait-s", "--preset"), BY_EVOLVE), examples=("tell --name mine",),
        summary="Read the programs that answer the requests of `jaxreward ask`, check and train them.",
    ),
)  # fmt: skip
