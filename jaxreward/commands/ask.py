"""`jaxreward ask`: the next requests of a search as files, for people and programs."""

from __future__ import annotations

from jaxreward.commands.evolve import TOPICS
from jaxreward.commands.output import console_of, print_json
from jaxreward.commands.resolve import Command, Resolved
from jaxreward.commands.search_settings import BY_EVOLVE, for_people
from jaxreward.evolution import ask
from jaxreward.evolution.settings import EvolveSettings
from jaxreward.reports.live import Live


def run(resolved: Resolved[EvolveSettings]) -> int:
    """Write the requests and print where they are; returns the exit status."""
    settings = resolved.settings
    console = console_of(settings.json)
    with Live(console) as live:
        asked, why = ask(settings, live)
    path = settings.out / settings.run_name
    if not asked:
        console.print(f"nothing to ask: {why}; jaxreward tell --name {path.name} goes on, --candidates N asks for more")
    for page, _ in asked:
        console.print(str(page))
    if settings.json:
        rows = [{"id": page.stem, "request": str(page), "reply": str(reply)} for page, reply in asked]
        print_json({"run": str(path), "requests": rows})
    return 0


COMMANDS = (
    Command(
        "ask", EvolveSettings, run=run, resolve=for_people,
        main=("task", "strategy", "candidates", "generation", "steps", "seeds", "name", "json"),
        topics=TOPICS, presets=True, refused=dict.fromkeys(("--track", "--profile"), BY_EVOLVE),
        examples=("ask --task xland-easy --name mine",),
        summary="Write the next requests of a search as files, for people and other programs to answer; "
        "`jaxreward tell` goes on with their programs.",
    ),
)  # fmt: skip
