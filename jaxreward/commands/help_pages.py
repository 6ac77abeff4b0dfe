"""`--help`: a first page that fits a terminal of 80 x 24, and pages by topic behind it."""

from __future__ import annotations

import pydoc
import sys
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from importlib import import_module
from shutil import get_terminal_size
from typing import Any

from jaxreward.commands.fields import Option, options_of
from jaxreward.errors import UserError

WIDEST = 110
"""Characters of a line; longer ones are hard to read, however wide the terminal."""
_JOINT = "\N{NO-BREAK SPACE}"
_INDENT = 27
"""Where the text of an option begins; a longer flag has a line of its own."""


@dataclass(frozen=True)
class Page:
    """What `--help` tells of a command.

    Attributes:
        settings: its settings, a class, or `module:class`, which is imported when the page is asked for.
        main: options of the first page, by path; none means all.
        topics: the other pages, by name: their options by path, a group of nested settings by its name.
        examples: command lines without `jaxreward`.
        config: whether it takes `--config`.
        presets: whether it takes `--preset`.
        summary: what it does, where the settings are those of another command and say something else.
    """

    settings: str | type
    main: tuple[str, ...] = ()
    topics: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    examples: tuple[str, ...] = ()
    config: bool = True
    presets: bool = False
    summary: str = ""

    @property
    def kind(self) -> type[Any]:
        if isinstance(self.settings, type):
            return self.settings
        module, _, name = self.settings.partition(":")
        return getattr(import_module(module), name)

    def options(self, topic: str = "") -> list[Option]:
        """The options of a topic, or of all of them; every option that no topic names is in `all` alone."""
        known = options_of(self.kind)
        if topic == "all":
            return list(known)
        wanted = self.topics[topic] if topic else self.main
        if not wanted:
            return list(known)
        return [o for name in wanted for o in known if o.path == name or o.path.partition(".")[0] == name]


_LEARNER = ("ppo",)
_LLM = (
    *("llm.model", "llm.api_base", "llm.temperature", "llm.top_p", "llm.max_tokens", "llm.reasoning_effort"),
    *("llm.model_seed", "llm.stream", "llm.concurrency", "llm.timeout_s", "llm.retries", "llm.wait_s", "llm.repairs"),
    *("llm.prompts", "llm.price"),
)
_SPENDING = ("llm.max_usd", "llm.max_tokens_total", "llm.max_requests", "llm.confirm_usd")
_MACHINE = ("memory_gb", "chunk", "collector", "compile", "unsafe_no_sandbox")
_EVOLVE: dict[str, tuple[str, ...]] = {
    "search": ("task", "task_arg", "strategy", "option", "bandit", "proposer", "recording", "evolve", "observation",
               "judge", "generation", "seed"),
    "training": ("seeds", "steps", "filter_steps", "filter_threshold", "restart", "halving", "prune",
                 "contender_seeds", "tune", "tune_steps", "baselines", "final_seeds", "final_steps", *_MACHINE[:4]),
    "budget": ("candidates", "max_attempts", "max_env_steps", "max_device_s", *_SPENDING),
    "llm": _LLM,
    "ppo": _LEARNER,
    "run": ("out", "name", "resume", "profile", "track", "unsafe_no_sandbox", "dry_run", "json"),
}  # fmt: skip
_COMPARE: dict[str, tuple[str, ...]] = {
    "search": ("tasks", "task_arg", "strategies", "proposers", "search_seeds", "option", "bandit", "evolve",
               "observation", "generation"),
    "training": ("seeds", "steps", "filter_steps", "filter_threshold", "tune", "tune_steps", "final_seeds",
                 "final_steps", *_MACHINE[:4]),
    "budget": ("candidates", "max_attempts", *_SPENDING),
    "llm": _LLM,
    "ppo": _LEARNER,
    "run": ("shard", "merge", "out", "unsafe_no_sandbox", "dry_run", "json"),
}  # fmt: skip

PAGES: dict[str, Page] = {
    "evolve": Page(
        "jaxreward.evolve.settings:EvolveSettings",
        ("task", "strategy", "proposer", "llm.model", "candidates", "steps", "seeds", "baselines", "llm.max_usd",
         "name", "resume", "dry_run"),
        _EVOLVE,
        ("evolve --task xland-easy --baselines sparse best-of-n",),
        presets=True,
    ),
    "ask": Page(
        "jaxreward.evolve.settings:EvolveSettings",
        ("task", "strategy", "candidates", "generation", "steps", "seeds", "name", "json"),
        _EVOLVE,
        ("ask --task xland-easy --name mine",),
        presets=True,
        summary="Write the next requests of a search as files, for people and other programs to answer; "
        "`jaxreward tell` goes on with their programs.",
    ),
    "tell": Page(
        "jaxreward.evolve.settings:EvolveSettings", ("name", "out", "candidates", "json"), _EVOLVE,
        ("tell --name mine",),
        summary="Read the programs that answer the requests of `jaxreward ask`, check and train them.",
    ),
    "compare": Page(
        "jaxreward.comparison.compare_settings:Typed",
        ("tasks", "strategies", "proposers", "search_seeds", "candidates", "steps", "seeds", "shard", "merge", "out",
         "dry_run"),
        _COMPARE,
        ("compare --tasks xland-easy --strategies limen best-of-n",),
    ),
    "train": Page(
        "jaxreward.commands.retrain:TrainSettings",
        ("task", "task_arg", "interfaces", "seeds", "steps", "eval_episodes", "diagnose", "plot", "dry_run", "json"),
        {"training": ("task", "task_arg", "interfaces", "seeds", "first_seed", "steps", "checkpoints",
                      "eval_episodes", *_MACHINE[:4]),
         "ppo": _LEARNER,
         "output": ("diagnose", "plot", "unsafe_no_sandbox", "dry_run", "json")},
        ("train --task xland-easy --interfaces interfaces/xland_easy/*.py",),
        presets=True,
    ),
    "report": Page("jaxreward.commands.report:ReportSettings", examples=("report runs/first --out page.html",)),
    "film": Page(
        "jaxreward.commands.film:FilmSettings",
        ("subject", "candidate", "out", "episodes", "frames", "seed", "steps", "task", "task_arg", "json"),
        {"film": ("subject", "candidate", "out", "episodes", "frames", "seed", "unsafe_no_sandbox", "json"),
         "training": ("steps", "task", "task_arg"),
         "ppo": _LEARNER},
        ("film runs/first", "film interfaces/hopper/expert.py --out hopper.mp4"),
    ),
    "doctor": Page("jaxreward.commands.doctor:DoctorSettings", examples=("doctor --model openai/my-model",)),
    "check": Page("jaxreward.commands.check:CheckSettings",
                  examples=("check swing_up.py", "check --task hopper --interfaces mine.py")),
    "export": Page("jaxreward.commands.export:ExportSettings", examples=("export runs/first --to gymnasium",)),
    "tasks": Page(
        "jaxreward.commands.tasks:TasksSettings", examples=("tasks", "tasks panda-tracking --task-arg speed_scale=2")
    ),
    "strategies": Page(
        "jaxreward.commands.strategies:StrategiesSettings", examples=("strategies rf-agent",), config=False
    ),
    "prompt show": Page("jaxreward.commands.prompt:PromptSettings", examples=("prompt show --run runs/first",),
                        config=False),
    "runs list": Page("jaxreward.commands.runs:ListSettings", config=False),
    "runs show": Page("jaxreward.commands.runs:ShowSettings", config=False),
    "runs tail": Page("jaxreward.commands.runs:TailSettings", examples=("runs tail first --follow",), config=False),
    "runs compare": Page("jaxreward.commands.runs:CompareSettings", config=False),
    "runs track": Page(
        "jaxreward.commands.runs:TrackSettings", examples=("runs track first --to tensorboard wandb",), config=False
    ),
    "completion": Page("jaxreward.commands.completion:CompletionSettings", config=False,
                       examples=("completion bash >> ~/.bashrc",)),
}  # fmt: skip


def program(command: str) -> str:
    """A command as people type it: `jaxreward` before it, unless it is a script of its own."""
    return command if command.endswith(".py") else f"jaxreward {command}"


def print_page(command: str, topic: str, kind: type, base: Any) -> None:
    """Print the help of a command, or one topic of it; one that has no page in `PAGES` lists its settings.

    Raises:
        UserError: there is no such topic.
    """
    width = max(30, min(get_terminal_size((80, 24)).columns, WIDEST))
    lines = page_lines(command, PAGES.get(command) or Page(kind, config=False), topic, base, width)
    if sys.stdout.isatty() and len(lines) >= get_terminal_size().lines:
        pydoc.pager("\n".join(lines))
    else:
        print("\n".join(lines))


def page_lines(command: str, page: Page, topic: str, base: Any, width: int) -> list[str]:
    """The lines of a page of help, none longer than `width` but for words that are.

    Args:
        command: what the page is of.
        topic: empty for the first page, `all` for every option, or a topic of the command.
        base: settings that have the defaults; None for the class's own.
    """
    if base is None:  # what has no default is not asked for it
        base = page.kind if any(o.required for o in options_of(page.kind)) else page.kind()
    if topic not in ("", "all", *page.topics):
        if near := get_close_matches(topic, page.topics, 1):
            raise UserError(f"there is no help on '{topic}'; did you mean '{near[0]}'?")
        topic = ""  # the word is the command's
    options = page.options(topic)
    positional = " ".join(
        (o.placeholder if o.required else f"[{o.placeholder}]") + " ..." * o.several
        for o in options_of(page.kind) if not o.flag
    )  # fmt: skip
    summary = page.summary or " ".join((page.kind.__doc__ or "").split("\n\n")[0].split())
    lines = [f"usage: {' '.join(filter(None, [program(command), positional]))} [options]", ""]
    lines += [*textwrap.wrap(summary, width), ""]
    whole = bool(topic) or not page.main
    for option in options:
        lines += option_lines(option, base, width, whole=whole)
    if not topic:
        lines += _shared(page, width)
        lines += ["", *(f"  jaxreward {example}" for example in page.examples)] if page.examples else []
        if page.topics:
            lines += ["", *textwrap.wrap(f"--help TOPIC tells more: {', '.join([*page.topics, 'all'])}", width)]
    return lines


def option_lines(option: Option, base: Any, width: int, *, whole: bool) -> list[str]:
    """An option with what it means and its default; not `whole`: the first sentence of it."""
    name = ", ".join(filter(None, [option.arg.short, option.flag or option.placeholder]))
    values = f"{option.placeholder} ..." if option.several else option.placeholder
    head = f"{name} {values}".rstrip() if option.flag else name
    text = option.text if whole else f"{option.brief}."
    if any(choice not in text + head for choice in option.choices):
        text += f" One of {', '.join(option.choices)}."
    default = "" if option.required else option.shown(option.of(base))
    if option.is_switch and option.of(base) is True:
        default = f"on; {option.negation} turns it off"
    text += f" [{default}]".replace(" ", _JOINT).replace(_JOINT, " ", 1) if default else ""
    return _row(head, text, width)


def _row(head: str, text: str, width: int) -> list[str]:
    first = f"  {head}"
    if width < 60:  # too narrow for two columns
        return [first, *textwrap.wrap(text.replace(_JOINT, " "), width, initial_indent=" " * 6,
                                      subsequent_indent=" " * 6, break_on_hyphens=False)]  # fmt: skip
    lines = textwrap.wrap(text, width - _INDENT, break_on_hyphens=False) or [""]
    lines = [line.replace(_JOINT, " ") for line in lines]
    rows = [f"{first:{_INDENT}}{lines[0]}"] if len(first) < _INDENT else [first, " " * _INDENT + lines[0]]
    return rows + [" " * _INDENT + line for line in lines[1:]]


def _shared(page: Page, width: int) -> Iterator[str]:
    """Options that are read before settings are."""
    if page.presets:
        from jaxreward.evolve.presets import PRESETS

        yield from _row("--preset NAME", f"Defaults: {', '.join(PRESETS)}. [quick]", width)
    if page.config:
        yield from _row("--config FILE", "Any of these, from a TOML file.", width)


def overview(commands: Mapping[str, Any], title: str, last: str) -> str:
    """Commands with the first line of what each does."""
    widest = max(map(len, commands))
    rows = [f"  {name:{widest}}  {(command.__doc__ or '').splitlines()[0]}" for name, command in commands.items()]
    return "\n".join([f"usage: {title} COMMAND [options]", "", *rows, "", last])


def shared_flags(command: str) -> list[str]:
    """Flags of a command that are read before its settings are."""
    page = PAGES.get(command) or Page(object, config=False)
    return [*["--config"] * page.config, *["--preset"] * page.presets]


def topics_of(command: str) -> Sequence[str]:
    """Words that may follow `--help`."""
    topics = PAGES[command].topics
    return [*topics, "all"] if topics else []
