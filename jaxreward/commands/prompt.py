"""`jaxreward prompt show`: exactly what a language model would be sent."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

from jaxreward.commands.confirm import require_own
from jaxreward.commands.file_tasks import named_again
from jaxreward.commands.output import print_json
from jaxreward.commands.resolve import Command, Resolved
from jaxreward.config import Arg, is_file
from jaxreward.errors import UnknownName, UserError
from jaxreward.evolution.budget import next_requests
from jaxreward.evolution.presets import quick_learner
from jaxreward.evolution.settings import EvolveSettings
from jaxreward.evolution.setup import given_observation, task_card
from jaxreward.evolution.started import started_settings
from jaxreward.formatting import printable
from jaxreward.operators import OPERATORS
from jaxreward.proposers.llm.llm_proposer import LlmProposer
from jaxreward.proposers.llm.llm_settings import LlmSettings
from jaxreward.proposers.prompts.prompt_builder import PromptBook
from jaxreward.records import Evolve, Request, Result, TaskCard
from jaxreward.runs import Asked, Event, Progress, Repair, fold, read_log
from jaxreward.runs.folders import find_run
from jaxreward.runs.malformed import explain_malformed
from jaxreward.search.registry import load_strategy, make_strategy
from jaxreward.search.seeding import derive_rng
from jaxreward.search.selection import top, without
from jaxreward.tasks import make_task_of


@dataclass(frozen=True)
class PromptSettings:
    """Print what a language model would be sent, word for word: by a new search on --task, or by --run next."""

    run: Path | None = None
    """A run, its folder or its name in runs/."""
    request: str = ""
    """Of the run: what this request asked, such as g0002-01. As in its events.jsonl."""
    parent: str = ""
    """Of the run: a candidate to improve on. Shown with the run's best and its last failures."""
    operator: str = ""
    """What is asked for. By default scratch, or improve with --parent."""
    task: str = "xland-easy"
    """The task, where there is no run. Of a run too, where it is a Python file, which is executed."""
    task_arg: Annotated[tuple[str, ...], Arg(adds=True)] = ()
    """Options of the task. Each is KEY=VALUE."""
    strategy: str = ""
    """Of a run: its strategy, where that is a Python file."""
    evolve: Evolve = "both"
    """What may change, where there is no run."""
    prompts: Path | None = None
    """Folder of prompt templates. By default the run's own."""
    seed: int = 0
    """Seed of the choice and order of sections, without a run."""
    json: bool = False
    """End standard output with one JSON object."""


@dataclass(frozen=True)
class Shown:
    """A request as it would be sent; `model` is empty where no model was given."""

    request: Request
    model: str
    messages: tuple[dict[str, Any], ...]


def run(resolved: Resolved[PromptSettings]) -> int:
    """Print the messages of the request."""
    settings = resolved.settings
    shown = show(settings)
    lines = [f"request {shown.request.id}, operator {shown.request.operator}, model {shown.model or 'not given'}"]
    lines += [f"\n---- {message['role']} ----\n{message['content'].rstrip()}" for message in shown.messages]
    print(printable("\n".join(lines)), file=sys.stderr if settings.json else sys.stdout)
    if settings.json:
        print_json({"request": shown.request.id, "model": shown.model, "messages": list(shown.messages)})
    return 0


def show(settings: PromptSettings) -> Shown:
    """The request that `settings` names, composed.

    Raises:
        UserError: no such run, request, candidate or task; options that exclude each other.
    """
    if settings.operator:
        _check_operator(settings.operator, settings.prompts)
    if settings.run is not None:
        settings = replace(settings, run=find_run(str(settings.run)))
    if settings.run is None:
        if settings.request or settings.parent:
            raise UserError("--request and --parent name something of a run: give it with --run")
        operator = settings.operator or "scratch"
        known = OPERATORS.get(operator)
        if known is not None and (known.parents or operator in ("implement", "repair")):
            raise UserError(
                f"--operator {operator} is about programs of a run: give it with --run and --request or --parent"
            )
        request = Request(id="g0000-00", generation=0, operator=operator, evolve=settings.evolve)
        learner = quick_learner(settings.task, "cpu")  # of what the words say nothing depends on the device
        words = task_card(make_task_of(settings.task, settings.task_arg), None, learner)
        return _composed(request, words, LlmSettings(prompts=settings.prompts), settings.seed)
    if settings.request and settings.parent:
        raise UserError("give --request or --parent, not both")
    started = started_settings(settings.run)
    if settings.prompts is None:
        only = LlmSettings(prompts=started.llm.prompts)
        require_own(settings.run, "manual", ["prompts"] if only.prompts else [], only, only)
    if is_file(started.strategy):
        name = named_again(started.strategy, settings.strategy, f"the run {settings.run}", settings.run, "strategy")
        load_strategy(name)
        started = replace(started, strategy=name)
    strategy = make_strategy(started.strategy, **started.strategy_options())
    events = [entry.event for entry in read_log(settings.run / "events.jsonl")]
    with explain_malformed(settings.run):
        request = _request_of(settings, started, strategy, events)
    llm = started.llm if settings.prompts is None else LlmSettings(model=started.llm.model, prompts=settings.prompts)
    # Its folder may lie elsewhere now: what it kept of the observation lies in it.
    started = replace(started, out=settings.run.parent, name=settings.run.name)
    typed = settings.task if is_file(settings.task) else ""
    started = replace(started, task=named_again(started.task, typed, f"the run {settings.run}", settings.run))
    words = task_card(started.make_task(), given_observation(started), started.hyper)
    return _composed(request, words, llm, started.seed)


def _request_of(settings: PromptSettings, started: EvolveSettings, strategy: Any, events: Sequence[Event]) -> Request:
    """The request of a run that the settings name, or the next one."""
    if settings.request:
        until = next(
            (i for i, e in enumerate(events)
             if isinstance(e, Asked | Repair) and any(asked.id == settings.request for asked in e.requests)), None,
        )  # fmt: skip
        if until is None:
            raise UserError(f"{settings.run} has no request '{settings.request}'; see the events of type asked")
        working = fold(events[: until + 1], strategy.init(), strategy.tell).in_work.values()
        return next(r for generation in working for r in generation.requests if r.id == settings.request)
    progress = fold(events, strategy.init(), strategy.tell)
    request = _about(settings, started, progress) if settings.parent else _next(started, strategy, progress)
    return request.model_copy(update={"operator": settings.operator}) if settings.operator else request


def _check_operator(name: str, prompts: Path | None) -> None:
    """Raise UserError for an operator that there is not, neither ours nor one that a folder of templates serves."""
    if name in OPERATORS or (prompts is not None and (prompts / f"operator_{name}.j2").is_file()):
        return
    raise UnknownName("operator", name, OPERATORS, otherwise="choose from")


def _composed(request: Request, words: TaskCard, llm: LlmSettings, seed: int) -> Shown:
    rng = derive_rng(seed, "propose", request.id)
    if not llm.model:
        return Shown(request, "", tuple(PromptBook(words, llm.prompts).messages(request, rng)))
    question = LlmProposer(words, replace(llm, max_usd=None)).call_for(request, rng)
    return Shown(request, question.model, tuple(dict(message) for message in question.messages))


def _next(settings: EvolveSettings, strategy: Any, progress: Progress[Any]) -> Request:
    requests = next_requests(settings, strategy, progress)
    if not requests:
        why = "its requests are answered and wait to be trained" if progress.open else "its budget is spent"
        raise UserError(f"the run asks for nothing now: {why}; name a --request or a --parent")
    return requests[0]


def _about(settings: PromptSettings, started: EvolveSettings, progress: Progress[Any]) -> Request:
    """A request to improve on one candidate, shown with the run's best and its failures."""
    parent = progress.results.get(settings.parent)
    if parent is None or parent.score is None:
        known = [id for id, r in progress.results.items() if r.score is not None]
        raise UserError(
            f"'{settings.parent}' is no candidate with a score; this run has {', '.join(known[:8]) or 'none'}"
            + (" ..." if len(known) > 8 else "")
        )
    scored: list[Result] = [r for r in progress.results.values() if r.score is not None]
    generation = progress.state.generation
    return Request(
        id=f"g{generation:04d}-00", generation=generation, operator="improve", evolve=started.evolves,
        parents=(parent,), best=top(without(scored, (parent,)), 3), failures=tuple(progress.state.failures[:2]),
    )  # fmt: skip


COMMANDS = (Command("prompt show", PromptSettings, run=run, config=False, examples=("prompt show --run runs/first",)),)
