"""`jaxreward rate`: how far the agents of runs do what their instruction asks for, by a vision model."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

from jaxreward import programs
from jaxreward.commands.file_tasks import named_again
from jaxreward.commands.output import console_of, print_json
from jaxreward.commands.resolve import Command, Resolved
from jaxreward.commands.spending import Spending, confirm
from jaxreward.config import Arg, check_bounds, is_file
from jaxreward.errors import InvalidSetting, UserError
from jaxreward.evolution.filming import check_drawable
from jaxreward.evolution.rating import EXCHANGES, Agents, agents_of, film_agents, rated
from jaxreward.evolution.settings import require_task
from jaxreward.evolution.setup import task_card
from jaxreward.evolution.started import started_settings
from jaxreward.extras import require
from jaxreward.formatting import counted
from jaxreward.proposers.llm.alignment_rater import AlignmentRater
from jaxreward.proposers.llm.cost import Amount, dollars, estimate_cost, too_small
from jaxreward.proposers.llm.endpoint import IMAGE_TOKENS
from jaxreward.proposers.llm.film import Film
from jaxreward.proposers.llm.llm_settings import JUDGE_FRAMES, ModelSettings
from jaxreward.proposers.proposer import Context
from jaxreward.records import Ratings
from jaxreward.reports.ratings import rating_rows
from jaxreward.reports.run_view import RunView
from jaxreward.reports.tables import score_json
from jaxreward.runs import Run, StopSignal, TranscriptLog
from jaxreward.runs.folders import find_run
from jaxreward.runs.malformed import explain_malformed
from jaxreward.runs.ratings import save_ratings
from jaxreward.tasks import make_task_of

_QUESTION = 1_000
"""Tokens of a call, about, besides those of its pictures."""


@dataclass(frozen=True)
class RateSettings:
    """Have a vision model rate how far the trained agents of runs do what the task's instruction asks for: the
    alignment rate (RDA, section 10.1). It sees frames of episodes and the instruction, and neither rewards nor scores.
    Choose another model than the one that proposed or judged."""

    runs: Annotated[tuple[str, ...], Arg(positional="RUN")] = ()
    """Folders of runs, or their names in runs/. Those of searches on tasks with an instruction."""
    votes: Annotated[int, Arg(least=1)] = 4
    """How often the model is asked about an episode."""
    episodes: Annotated[int, Arg(least=1)] = 5
    """Episodes of each agent. They begin alike for all agents."""
    frames: Annotated[int, Arg(least=2)] = JUDGE_FRAMES
    """Frames of an episode, at most. More of them are where much moves."""
    task: str = ""
    """A task that is a Python file is executed. So it must be given here."""
    llm: Annotated[ModelSettings, Arg(flat=True)] = field(default_factory=ModelSettings)
    """The model that rates, and what that may cost; of earlier calls of the same runs too."""
    unsafe_no_sandbox: bool = False
    """Check programs without the sandbox. For systems that have none, and programs you trust."""
    json: bool = False
    """End standard output with one JSON object."""


def run(resolved: Resolved[RateSettings]) -> int:
    """Rate the agents of every run; returns the exit status."""
    s = resolved.settings
    check_bounds(s)
    if not s.runs:
        raise UserError("say which runs: `jaxreward rate RUN --model MODEL`, their folders or names in runs/")
    require("reports", "a model that rates", "model")
    console = console_of(s.json)
    paths = list({path.resolve(): path for path in (find_run(name) for name in s.runs)}.values())
    found = dict[str, Ratings]()
    with ExitStack() as locks:
        stop = locks.enter_context(StopSignal())
        checker = locks.enter_context(programs.Checker(unsafe_no_sandbox=s.unsafe_no_sandbox))
        runs = [_prepared(path, s, checker, console, lambda: stop.requested, locks) for path in paths]
        _confirmed(runs, s, console)
        for run in runs:
            console.print(f"{run.path}:")
            with explain_malformed(run.path):
                run.rater.open(run.context([other for other in runs if other is not run]))
                found[str(run.path)] = run.rated(s.frames)
            save_ratings(run.path, found[str(run.path)])
            for line in rating_rows(found[str(run.path)]):
                console.print(f"  {line}")
    spent = Amount.of(exchange for run in runs for exchange in run.transcript.exchanges())
    unpriced = f" and {spent.unpriced:,} tokens of unknown price" if spent.unpriced else ""
    console.print(f"calls for these runs so far: {spent.requests}, {dollars(spent.usd)}{unpriced}")
    if s.json:
        print_json({
            "runs": {path: _as_json(ratings) for path, ratings in found.items()}, "calls": spent.requests,
            "cost_usd": round(spent.usd, 6), "unpriced_tokens": spent.unpriced,
        })  # fmt: skip
    return 0


@dataclass(frozen=True)
class _Run:
    """A run whose agents are filmed, with its calls so far; it is locked."""

    path: Path
    agents: list[Agents]
    films: dict[tuple[str, int], Film]
    rater: AlignmentRater
    transcript: TranscriptLog
    should_stop: Callable[[], bool]
    console: Any

    def context(self, others: Sequence[_Run]) -> Context:
        """What its calls are made in; those of others count for the same caps."""
        shared = [exchange for other in others for exchange in other.transcript.exchanges()]
        return Context(self.path, self.transcript, self.should_stop, self.console.print, shared_exchanges=shared,
                       on_endpoint=self.console.print)  # fmt: skip

    def calls(self) -> int:
        """Those that are missing."""
        self.rater.open(self.context([]))
        return self.rater.waiting(self.films.values())

    def rated(self, frames: int) -> Ratings:
        with self.console.status("asking"):
            return rated(self.agents, self.films, self.rater, frames, lambda text: self.console.print(f"  {text}"))


def _prepared(
    path: Path, s: RateSettings, checker: programs.Checker, console: Any, should_stop: Callable[[], bool],
    locks: ExitStack,
) -> _Run:  # fmt: skip
    """A run with films of its agents."""
    own = started_settings(path)
    require_task(own.task)
    name = named_again(own.task, s.task, f"the run {path}", path)
    if s.task and not is_file(own.task):
        raise InvalidSetting("a run has its own task: --task is for one that is a Python file", "task")
    task = make_task_of(name, own.task_arg)
    card = task_card(task, None, own.hyper)
    if card.instruction is None:
        raise UserError(f"{task.name}, the task of {path}, has no instruction that its agents could be rated by")
    rater = AlignmentRater(card, s.llm, s.votes)
    if rater.model in own.llm.asked():
        console.print(f"{path}: {rater.model} proposed or judged in this search, and may prefer what it made")
    with explain_malformed(path):
        view = RunView.read(path)
        locks.enter_context(Run.resume(path))
        agents = agents_of(view, own, task, checker)
    check_drawable(task)
    with console.status("filming") as status:
        films = film_agents(
            path, task, own, agents, episodes=s.episodes, frames=s.frames,
            progress=lambda done, total: status.update(f"filming, {done} of {total} agents"), should_stop=should_stop,
        )  # fmt: skip
    return _Run(path, agents, films, rater, TranscriptLog(path / "transcripts" / EXCHANGES), should_stop, console)


def _confirmed(runs: Sequence[_Run], s: RateSettings, console: Any) -> None:
    """Say what all calls will cost, ask if that is much, and show where they go."""
    calls = sum(run.calls() for run in runs)
    if not calls:
        return
    tokens = s.frames * IMAGE_TOKENS + _QUESTION
    if lacking := too_small(s.llm, tokens):
        raise UserError(lacking)
    spending = Spending(calls, tokens, estimate_cost(s.llm, tokens, calls))
    console.print(f"{counted(sum(len(run.films) for run in runs), 'agent')}; {spending.text()}")
    confirm(spending, s.llm)
    for run in runs[:1]:  # all ask the same model
        run.rater.prepare(console.print)


def _as_json(ratings: Ratings) -> dict[str, Any]:
    programs = {
        name: {"rate": score_json(rated.score), "spread": rated.spread, "digest": rated.digest}
        for name, rated in ratings.programs.items()
    }
    return {**ratings.model_dump(exclude={"programs"}), "programs": programs}


COMMANDS = (
    Command(
        "rate", RateSettings, run=run, config=False,
        main=("runs", "votes", "episodes", "frames", "llm.model", "llm.max_usd"),
        topics={
            "rating": ("runs", "votes", "episodes", "frames", "task", "unsafe_no_sandbox"), "llm": ("llm",),
            "output": ("json",),
        },
        examples=("rate runs/first --model openai/gpt-4.1",),
    ),
)  # fmt: skip
