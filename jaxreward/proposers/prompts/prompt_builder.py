"""Prompts: what a language model or a person is asked, from templates that users can replace."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from jaxreward.errors import UserError
from jaxreward.operators import OF_JUDGES, PLANNED, WORDS
from jaxreward.programs.host import names as text_names
from jaxreward.programs.limits import Limits
from jaxreward.programs.names import BUILTINS, MODULES
from jaxreward.programs.unrolling import OPERATIONS
from jaxreward.proposers.prompts import sections
from jaxreward.proposers.prompts.pages import OTHER, PAGES, Page, page_name
from jaxreward.proposers.prompts.sample_requests import sample_requests
from jaxreward.proposers.prompts.sections import BUDGET, LEAST, MANY, OPTIONAL, PROGRAM, TOTAL, estimate_tokens, plain
from jaxreward.proposers.prompts.templates import Templates
from jaxreward.proposers.replies.schemas import schema_text
from jaxreward.records import Request, Result, TaskCard

__all__ = ["PromptBook", "estimate_tokens"]

_FRAME, _HEADING, _NOTE = 700, 60, 450
"""Tokens of a page outside its sections, of an optional section besides what it shows, and of the note
that a reply was unusable, at most."""

_CURVES = 800
"""Tokens that the feedback of each program may take where there are many."""


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
        self.card, self._templates = card, Templates(folder, card.objective, card.states)
        self._render = self._templates.render
        if folder is not None:
            for request in sample_requests(self._templates.operators):
                self.messages(request, np.random.default_rng(0), every_section=True)

    def messages(
        self, request: Request, rng: np.random.Generator, *, every_section: bool = False
    ) -> list[dict[str, str]]:
        """The system and the user message for a request, in the form of chat APIs.

        Optional sections are drawn and shuffled by `rng` (none is left out with `every_section`).
        A request to repair a failed candidate shows that candidate and its verdict; one whose reply
        was unusable repeats the original question and says what was wrong.

        Raises:
            UserError: if a user's template does not render, a value that must be shown is empty, or the
                request is one for people.
        """
        if request.operator in OF_JUDGES:
            raise UserError(f"'{request.operator}' asks a judge who has seen agents: there is no prompt for it")
        words = request.operator in WORDS
        page = page_name(request, self._templates.operators)
        context = self._context(request, PAGES.get(page, OTHER))
        system = plain(self._render("system_words" if words else "system", context))
        left = TOTAL - estimate_tokens(system) - _FRAME

        def question(left: int) -> str:
            if words:
                return self._words(request, context, left)
            return self._question(request, page, context, left, rng, every_section)

        failed = request.failed
        if failed is None or failed.failure is None:
            user = question(left)
        elif words or failed.failure.stage == "reply":
            user = self._render("retry", {**context, "prompt": question(left - _NOTE)})
        else:
            user = self._repair_page(failed, context, left)
        return [{"role": "system", "content": system}, {"role": "user", "content": plain(user)}]

    def _context(self, request: Request, page: Page) -> dict[str, Any]:
        """What every template can use, programs uncut; pages make them fit."""
        related = {r.candidate.id: r for r in (*request.parents, *request.best, *request.diverse)}
        failed = request.failed
        equal = related.get(failed.failure.same_as) if failed and failed.failure else None
        parents = [sections.shown(parent) for parent in _parents(request, page)]
        return {
            "task": self._task(len(self.card.state_doc.encode("utf-8", "replace"))),
            "documented": False,
            "operator": request.operator,
            "evolve": request.evolve,
            "thought": request.thought,
            **sections.gain(self.card),
            "asks_observation": request.evolve != "reward",
            "asks_reward": request.evolve != "observation",
            "schema": schema_text(request.operator),
            "modules": MODULES if self.card.states == "arrays" else sorted(text_names.API),
            "builtins": sorted(BUILTINS if self.card.states == "arrays" else text_names.BUILTINS),
            "limits": Limits(),
            "turns_at_once": OPERATIONS,
            "parents": parents,
            "left_out": 0,
            "called": page.called,
            "band": _band(page, parents),
            "plan": sections.plan(request),
            "remarks": sections.remarks(request),
            "seen": sections.seen(request),
            "group": request.group,
            "ablated": sections.one_line(request.parents[0].candidate.id, 40) if request.parents else "",
            "ablations": [],
            "illustrations": [],
            "functions": [],
            "failed": sections.shown(failed) if failed else None,
            "equal": sections.shown(equal) if equal else None,
            **{name: [] for name in OPTIONAL},
        }

    def _task(self, doc_budget: int) -> TaskCard:
        """The words about the task; those about its state have at most `doc_budget` tokens."""
        cut = {
            "description": sections.cut(self.card.description.strip(), BUDGET["task"], ""),
            "state_doc": sections.cut(self.card.state_doc.strip(), doc_budget, ""),
            "observation": sections.cut(self.card.observation.strip(), BUDGET["observation"]),
        }
        return self.card.model_copy(update={name: plain(text) for name, text in cut.items()})

    def _remaining(self, context: dict[str, Any], left: int, others: Sequence[str], programs: int) -> int:
        """Tokens that the task's section and `others` leave; sets `task` and `documented`."""
        left -= sum(self._tokens(name, context) for name in others)
        words = {**context, "task": self._task(0).model_copy(update={"state_doc": ""})}
        task = self._task(left - self._tokens("task", words) - min(programs, MANY) * PROGRAM)
        context.update(task=task, documented=task.state_doc == plain(self.card.state_doc.strip()))
        return left - self._tokens("task", context)

    def _fill(
        self, name: str, context: dict[str, Any], budget: int, make: Callable[[int], Any], section: str = ""
    ) -> int:
        """Set a variable to what `make` makes of a number of tokens, so that its section has at most `budget`;
        the section's tokens."""
        tokens, size = budget, 0
        for _ in range(3):
            context[name] = make(tokens)
            size = self._tokens(section or name, context) if context[name] else 0
            if size <= budget:
                break
            tokens -= size - budget
        return size

    def _tokens(self, section: str, context: dict[str, Any]) -> int:
        return estimate_tokens(self._render(f"section_{section}", context))

    def _repair_page(self, failed: Result, context: dict[str, Any], left: int) -> str:
        """The page for a program that was rejected, or failed in training."""
        planned = ["plan"] if context["plan"] and context["failed"].stage == "contract" else []
        left = self._remaining(context, left, [*planned, "constraints"], 1)
        self._fill("failed", context, left, lambda tokens: sections.failed(failed, tokens))
        page = "duplicate" if context["failed"].stage == "duplicate" else "repair"
        return self._page(page, context, ["task", *planned, "failed", "constraints"])

    def _words(self, request: Request, context: dict[str, Any], left: int) -> str:
        """The page of a request for words. Who plans, or tells what a program does, needs no fields of the state."""
        page = f"words_{request.operator}"
        if request.operator == "plan":
            return self._page(page, context, ["description"])
        if request.operator == "divide":
            self._remaining(context, left, [], 0)
            return self._page(page, context, ["task"])
        if request.operator == "revise":
            return self._page(page, context, ["description", *(s for s in ("plan", "seen") if context[s])])
        if request.operator == "identify":
            context["illustrations"] = list(request.illustrations)  # whole: a step that is cut off cannot be named
            self._remaining(context, left, ["illustrations"], 0)
            return self._page(page, context, ["task", "illustrations"])
        if request.operator == "verify":
            task, left = "task", self._remaining(context, left, [], 1)
        else:
            task, left = "description", left - self._tokens("description", context)
        self._fill("parents", context, left, lambda tokens: sections.parents(request.parents[:1], tokens), "program")
        return self._page(page, context, [task, "program"])

    def _question(
        self,
        request: Request,
        name: str,
        context: dict[str, Any],
        left: int,
        rng: np.random.Generator,
        every_section: bool,
    ) -> str:
        """The page for a request's operator; fills the optional lists of `context`."""
        page = PAGES.get(name, OTHER)
        drawn = {section: rng.random() < chance or every_section for section, chance in OPTIONAL.items()}
        drawn["feedback"] = drawn["feedback"] or page.feedback
        order = [list(OPTIONAL)[i] for i in rng.permutation(len(OPTIONAL))]
        parents = _parents(request, page)
        first = ["plan"] if name in PLANNED else []
        first += [section for section in ("seen", "remarks") if context[section]]
        context["ablations"] = sections.ablations(request) if parents else []
        if context["ablations"]:
            first.append("ablations")
        if request.illustrations:
            context["illustrations"] = sections.illustrations(request)
            first.append("illustrations")
        if request.shared_functions:
            context["functions"] = sections.functions(request)
            first += ["functions"] if context["functions"] else []
        last = [*(["guidance"] if page.guidance else []), "constraints"]
        left = self._remaining(context, left, [*first, *last], len(parents))

        def about(tokens: int) -> list[sections.Shown]:
            found = sections.parents(parents, tokens, oldest_first=page.oldest_first)
            context["left_out"] = len(parents) - len(found)
            return found

        left -= self._fill("parents", context, min(BUDGET["parents"], left), about)
        if context["left_out"] and page.guidance:  # advice for the best of those that are shown
            left += self._tokens("guidance", context)
            context["band"] = _band(page, context["parents"])
            left -= self._tokens("guidance", context)
        make: dict[str, Callable[[int], Any]] = {
            "feedback": lambda tokens: sections.feedback(context["parents"], tokens - _HEADING),
            "failures": lambda tokens: sections.failures(request.failures, tokens - _HEADING),
            "best": lambda tokens: sections.whole(request.best, tokens - _HEADING),
            "diverse": lambda tokens: sections.whole(request.diverse, tokens - _HEADING),
        }
        for section in OPTIONAL:
            most = BUDGET[section] if section != "feedback" else max(BUDGET[section], _CURVES * len(context["parents"]))
            budget = min(most, left)
            if not drawn[section] or budget < LEAST + _HEADING:
                continue
            size = self._fill(section, context, budget, make[section])
            if size > budget:
                context[section] = []
            else:
                left -= size
        optional = [section for section in order if context[section]]
        shown = ["task", *(["parents"] if parents else []), *first, *optional, *last]
        return self._page(f"operator_{name}", context, shown)

    def _page(self, name: str, context: dict[str, Any], names: list[str]) -> str:
        rendered = [self._render(f"section_{section}", context) for section in names]
        return self._render(name, {**context, "sections": rendered})


def _band(page: Page, parents: Sequence[sections.Shown]) -> str:
    """The success for which a page gives advice."""
    return sections.band([] if page.guidance == "scratch" else parents)


def _parents(request: Request, page: Page) -> tuple[Result, ...]:
    """The programs that a page is about, in the order in which it shows them."""
    if request.operator == "scratch":
        return ()
    return request.parents[::-1] if page.oldest_first else request.parents
