"""`jaxreward evolve`: search for an interface of a task."""

from __future__ import annotations

from rich.console import Console

from jaxreward.commands.estimate import describe
from jaxreward.commands.output import console_of, print_json, refuse
from jaxreward.commands.resolve import Command, Resolved, Source
from jaxreward.commands.search_settings import resolve_search
from jaxreward.commands.spending import confirm, spending_of
from jaxreward.commands.summary import evolve_json, show_outcome
from jaxreward.evolution import Outcome, run_search
from jaxreward.evolution.search_options import OF_EXECUTOR
from jaxreward.evolution.settings import EvolveSettings
from jaxreward.evolution.setup import Setup
from jaxreward.extras import install, missing
from jaxreward.reports.live import Live
from jaxreward.reports.page import write_report
from jaxreward.runs import StopSignal
from jaxreward.runs.run import require_new

MACHINE = (*OF_EXECUTOR, "memory_gb", "chunk", "collector", "compile", "population")
TOPICS: dict[str, tuple[str, ...]] = {
    "search": ("task", "task_arg", "strategy", "option", "bandit", "ablations", "proposer", "recording", "vocabulary",
               "blocks", "surrogate", "stages", "evolve", "observation", "judge", "generation",
               "asynchronous", "in_flight", "seed"),
    "training": ("learner", "seeds", "steps", "filter_steps", "filter_threshold", "restart", "halving", "prune",
                 "contender_seeds", "confirm_seeds", "tune", "tune_steps", "baselines", "final_seeds", "final_steps",
                 "eval_episodes", *MACHINE),
    "demonstrations": ("objective", "demonstrations"),
    "budget": ("candidates", "max_attempts", "max_env_steps", "max_device_s", "llm.max_usd",
               "llm.max_tokens_total", "llm.max_requests", "llm.confirm_usd"),
    "llm": ("llm",),
    "ppo": ("ppo",),
    "sac": ("sac",),
    "run": ("out", "name", "store", "resume", "profile", "track", "unsafe_no_sandbox", "dry_run", "json"),
}  # fmt: skip


def run(resolved: Resolved[EvolveSettings]) -> int:
    """Search; returns the exit status."""
    settings = resolved.settings
    settings.check()
    if not (settings.resume or settings.dry_run):
        require_new(settings.out / settings.run_name)
    setup, console = Setup.of(settings), console_of(settings.json)
    spending = spending_of(settings)
    for line in describe(settings, spending.text() if spending else ""):
        console.print(line)
    if settings.dry_run:
        if settings.json:
            print_json({"dry_run": True, "settings": settings.as_config()})
        return 0
    confirm(spending, settings.llm)
    if resolved.source("resume") is Source.COMMAND_LINE and not settings.resume:
        console.print(f"there is no run {settings.run_name} in {settings.out} to go on with: it begins now")
    with StopSignal() as stop, Live(console, settings.candidates) as live:
        outcome = run_search(settings, live, setup=setup, stop=stop)
    return conclude("evolve", outcome, console)


def conclude(command: str, outcome: Outcome, console: Console) -> int:
    """Show the outcome of a search and write its report; returns the exit status."""
    show_outcome(outcome, console)
    console.print(_reported(outcome))
    if outcome.exit_code:
        refuse(command, outcome.reason)
    if outcome.settings.json:
        print_json(evolve_json(outcome))
    return outcome.exit_code


def _reported(outcome: Outcome) -> str:
    """Write the report of a search; returns where it is, or why it is not there."""
    again = f"jaxreward report {outcome.path}"
    if missing("reports"):
        return f"no report and no picture of the search: {install('reports')}, then {again}"
    try:
        return f"all of it, on one page: {write_report(outcome.path)}"
    except Exception as error:  # whatever it is, the search is on the disk
        return f"the report was not written ({error}); try again with {again}"


COMMANDS = (
    Command(
        "evolve", EvolveSettings, run=run, resolve=resolve_search,
        main=("task", "strategy", "proposer", "llm.model", "candidates", "steps", "seeds", "baselines", "llm.max_usd",
              "name", "resume", "dry_run"),
        topics=TOPICS, presets=True, examples=("evolve --task xland-easy --baselines sparse best-of-n",),
    ),
)  # fmt: skip
