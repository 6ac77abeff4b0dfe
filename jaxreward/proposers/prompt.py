"""Prompts: what a language model or a person is asked, from templates that users can replace."""

from __future__ import annotations

import difflib
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from jinja2 import (
    ChoiceLoader,
    FileSystemLoader,
    PrefixLoader,
    StrictUndefined,
    TemplateError,
    TemplateSyntaxError,
)
from jinja2.sandbox import SandboxedEnvironment

from jaxreward.errors import UserError
from jaxreward.programs.limits import Limits
from jaxreward.programs.names import BUILTINS, MODULES
from jaxreward.proposers import prompt_sections as sections
from jaxreward.proposers.prompt_rehearsal import rehearsals
from jaxreward.proposers.prompt_sections import BUDGET, LEAST, OPTIONAL, TOTAL, estimate_tokens, plain
from jaxreward.records import Request, Result, TaskCard

__all__ = ["PromptBook", "estimate_tokens"]

_BUILT_IN = Path(__file__).parent / "prompts"
_FRAME, _HEADING, _NOTE = 400, 60, 450
"""Tokens of a page outside its sections, of an optional section besides what it shows, and of the note
that a reply was unusable, at most."""

_PROGRAM = 1_000
"""Tokens that the documentation of the state leaves to each program that a page is about, however long it is."""


class PromptBook:
    """The templates of a task's prompts.

    Args:
        card: the task's words.
        folder: templates that take the place of the built-in ones of the same name; `operator_x.j2`
            there serves requests of operator `x`, and files whose name starts with an underscore are
            for the others to include.

    Raises:
        UserError: if the folder has a template of an unknown name, one that cannot be read, or one
            that does not render for some kind of request.
    """

    def __init__(self, card: TaskCard, folder: Path | None = None) -> None:
        self.card, self.folder = card, folder
        built_in = FileSystemLoader(_BUILT_IN)
        own = [FileSystemLoader(folder)] if folder is not None else []
        self._environment = SandboxedEnvironment(
            loader=ChoiceLoader([*own, built_in, PrefixLoader({"builtin": built_in})]),
            undefined=StrictUndefined,
            autoescape=False,
            trim_blocks=True,
            lstrip_blocks=True,
            auto_reload=False,
        )
        self._environment.filters["fenced"] = sections.fenced
        self._names = {path.name for path in _BUILT_IN.glob("*.j2")}
        if folder is not None:
            self._names |= self._own_names(folder)
            operators = [name[len("operator_") : -len(".j2")] for name in self._names if name.startswith("operator_")]
            for request in rehearsals(operators):
                self.messages(request, np.random.default_rng(0), every_section=True)

    def messages(
        self, request: Request, rng: np.random.Generator, *, every_section: bool = False
    ) -> list[dict[str, str]]:
        """The system and the user message for a request, in the form of chat APIs.

        Optional sections are drawn and shuffled by `rng` (none is left out with `every_section`).
        A request to mend a failed candidate shows that candidate and its verdict; one whose reply
        was unusable repeats the original question and says what was wrong.

        Raises:
            UserError: if a user's template does not render.
        """
        context = self._context(request)
        system = plain(self._render("system", context))
        left = TOTAL - estimate_tokens(system) - _FRAME
        failed = request.failed
        if failed is None or failed.failure is None:
            user = self._question(request, context, left, rng, every_section)
        elif failed.failure.stage == "reply":
            prompt = self._question(request, context, left - _NOTE, rng, every_section)
            user = self._render("retry", {**context, "prompt": prompt})
        else:
            user = self._mending(failed, context, left)
        return [{"role": "system", "content": system}, {"role": "user", "content": plain(user)}]

    def _context(self, request: Request) -> dict[str, Any]:
        """What every template can use, programs uncut; pages make them fit."""
        related = {r.candidate.id: r for r in (*request.parents, *request.best, *request.diverse)}
        failed = request.failed
        equal = related.get(failed.failure.same_as) if failed and failed.failure else None
        parents = [sections.shown(parent) for parent in self._parents(request)]
        return {
            "task": self._task(len(self.card.state_doc.encode("utf-8", "replace"))),
            "documented": False,
            "operator": request.operator,
            "evolve": request.evolve,
            "thought": request.thought,
            "asks_observation": request.evolve != "reward",
            "asks_reward": request.evolve != "observation",
            "modules": MODULES,
            "builtins": sorted(BUILTINS),
            "limits": Limits(),
            "parents": parents,
            "band": sections.band(parents),
            "failed": sections.shown(failed) if failed else None,
            "equal": sections.shown(equal) if equal else None,
            **{name: [] for name in OPTIONAL},
        }

    def _parents(self, request: Request) -> tuple[Result, ...]:
        return () if request.operator == "scratch" else request.parents

    def _task(self, doc_budget: int) -> TaskCard:
        """The words about the task; those about its state have at most `doc_budget` tokens."""
        return TaskCard(
            name=self.card.name,
            description=plain(sections.cut(self.card.description.strip(), BUDGET["task"], "")),
            state_doc=plain(sections.cut(self.card.state_doc.strip(), doc_budget, "")),
        )

    def _remaining(self, context: dict[str, Any], left: int, others: Sequence[str], programs: int) -> int:
        """Tokens that the task's section and `others` leave; sets `task` and `documented`."""
        left -= sum(self._tokens(name, context) for name in others)
        words = {**context, "task": self._task(0).model_copy(update={"state_doc": ""})}
        task = self._task(left - self._tokens("task", words) - programs * _PROGRAM)
        context.update(task=task, documented=task.state_doc == plain(self.card.state_doc.strip()))
        return left - self._tokens("task", context)

    def _fill(self, name: str, context: dict[str, Any], budget: int, make: Callable[[int], Any]) -> int:
        """Set a variable to what `make` makes of a number of tokens, so that its section has at most `budget`;
        the section's tokens."""
        tokens, size = budget, 0
        for _ in range(3):
            context[name] = make(tokens)
            size = self._tokens(name, context) if context[name] else 0
            if size <= budget:
                break
            tokens -= size - budget
        return size

    def _tokens(self, section: str, context: dict[str, Any]) -> int:
        return estimate_tokens(self._render(f"section_{section}", context))

    def _mending(self, failed: Result, context: dict[str, Any], left: int) -> str:
        """The page for a program that was rejected, or failed in training."""
        left = self._remaining(context, left, ["constraints"], 1)
        self._fill("failed", context, left, lambda tokens: sections.failed(failed, tokens))
        page = "duplicate" if context["failed"].stage == "duplicate" else "repair"
        return self._page(page, context, ["task", "failed", "constraints"])

    def _question(
        self, request: Request, context: dict[str, Any], left: int, rng: np.random.Generator, every_section: bool
    ) -> str:
        """The page for a request's operator; fills the optional lists of `context`."""
        drawn = {name: rng.random() < chance or every_section for name, chance in OPTIONAL.items()}
        order = [list(OPTIONAL)[i] for i in rng.permutation(len(OPTIONAL))]
        parents = self._parents(request)
        fixed = ["task", *(["parents"] if parents else []), "guidance", "constraints"]
        left = self._remaining(context, left, fixed[-2:], len(parents))
        left -= self._fill(
            "parents", context, min(BUDGET["parents"], left), lambda tokens: sections.parents(parents, tokens)
        )
        make: dict[str, Callable[[int], Any]] = {
            "feedback": lambda tokens: sections.feedback(context["parents"], tokens - _HEADING),
            "failures": lambda tokens: sections.failures(request.failures, tokens - _HEADING),
            "best": lambda tokens: sections.whole(request.best, tokens - _HEADING),
            "diverse": lambda tokens: sections.whole(request.diverse, tokens - _HEADING),
        }
        for name in OPTIONAL:
            budget = min(BUDGET[name], left)
            if not drawn[name] or budget < LEAST + _HEADING:
                continue
            size = self._fill(name, context, budget, make[name])
            if size > budget:
                context[name] = []
            else:
                left -= size
        optional = [name for name in order if context[name]]
        names = [*fixed[:-2], *optional, *fixed[-2:]]
        return self._page(self._page_of(request, context), context, names)

    def _page_of(self, request: Request, context: dict[str, Any]) -> str:
        if f"operator_{request.operator}.j2" in self._names:
            return f"operator_{request.operator}"
        if not context["parents"]:
            return "scratch"
        return "crossover" if request.operator == "crossover" and len(context["parents"]) > 1 else "evolve"

    def _page(self, name: str, context: dict[str, Any], names: list[str]) -> str:
        rendered = [self._render(f"section_{section}", context) for section in names]
        return self._render(name, {**context, "sections": rendered})

    def _render(self, name: str, context: dict[str, Any]) -> str:
        try:
            return self._environment.get_template(f"{name}.j2").render(context).strip("\n")
        except Exception as error:
            where = self._place(error)
            if where is None:  # no template of the user's is involved
                raise
            raise UserError(f"the prompt template {where}: {_what(error)}") from error

    def _place(self, error: Exception) -> str | None:
        """File and line in the user's folder where an error arose."""
        if self.folder is None:
            return None
        if (
            isinstance(error, TemplateSyntaxError)
            and error.filename
            and Path(error.filename).is_relative_to(self.folder)
        ):
            return f"{error.filename}, line {error.lineno}"
        frames = traceback.extract_tb(error.__traceback__)
        own = [frame for frame in frames if Path(frame.filename).is_relative_to(self.folder)]
        return f"{own[-1].filename}, line {own[-1].lineno}" if own else None

    def _own_names(self, folder: Path) -> set[str]:
        """The templates in a user's folder, known by name and readable."""
        if not folder.is_dir():
            raise UserError(f"{folder} is not a folder of prompt templates")
        names = set()
        stems = {name.removesuffix(".j2") for name in self._names}
        for path in sorted(p for p in folder.iterdir() if p.is_file()):
            name = path.name
            if path.suffix != ".j2":
                if path.stem in stems:
                    raise UserError(f"the prompt template {path} must be called {path.stem}.j2")
                continue
            if not (name in self._names or name.startswith(("_", "operator_"))):
                close = difflib.get_close_matches(name, sorted(self._names), n=1)
                hint = f"did you mean {close[0]}?" if close else f"there are {', '.join(sorted(self._names))}"
                raise UserError(f"there is no prompt template called {name}, which {folder} has; {hint}")
            try:
                text = path.read_text(encoding="utf-8")
                self._environment.parse(text)
                self._environment.get_template(name)
            except TemplateSyntaxError as error:
                raise UserError(f"the prompt template {path}, line {error.lineno}: {error.message}") from error
            except (OSError, UnicodeDecodeError, TemplateError) as error:
                raise UserError(f"the prompt template {path} cannot be read: {error}") from error
            names.add(name)
        return names


def _what(error: Exception) -> str:
    return f"{error}" if isinstance(error, TemplateError) else f"{type(error).__name__}: {error}"
