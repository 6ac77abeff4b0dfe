"""Prompts of every operator: what each says, no empty slot in any, and an error for every value that is missing."""

from __future__ import annotations

import itertools
import re
from typing import get_args

import numpy as np
import pytest
from jinja2 import UndefinedError

from jaxreward.errors import UserError
from jaxreward.operators import OPERATORS, WORDS
from jaxreward.proposers.prompt import _FRAME, PromptBook, estimate_tokens
from jaxreward.proposers.prompt_pages import Page
from jaxreward.proposers.prompt_sections import TOTAL
from jaxreward.records import Candidate, Evolve, Failure, Request, Result
from jaxreward.tasks import card, make_task
from tests.proposers.test_prompt import CARD, PARENT, SOURCE, headings, prose, result, texts

BOOK = PromptBook(CARD)
ASKED = sorted(set(OPERATORS) - {"prefer"})
PROGRAMS = sorted(set(ASKED) - WORDS)
EVOLVES: tuple[Evolve, ...] = get_args(Evolve)
PLAN = Result(
    candidate=Candidate(id="g0000-00", generation=0, operator="plan"),
    words="- reach_end: pays once, at the end\n- waste: every step costs",
)


def told(name: str, mean: float = 0.4, thought: str = "Walk on.") -> Result:
    return result(name, mean).with_thought(thought)


LINE = tuple(told(f"g000{k}-00", 0.1 * k, f"Idea {k}.") for k in (4, 3, 2, 1))


def asked(operator: str, evolve: Evolve = "both", parents: int | None = None, **more) -> Request:
    count = max(OPERATORS[operator].parents, operator in ("path", "different") and 3) if parents is None else parents
    plan = PLAN if operator == "implement" else None
    request = Request(id="g0009-00", generation=9, operator=operator, evolve=evolve, parents=LINE[:count], plan=plan)
    return request.model_copy(update=more)


def page(operator: str, evolve: Evolve = "both", parents: int | None = None, **more) -> str:
    return texts(BOOK, asked(operator, evolve, parents, **more), every_section=False)[1]


def opening(text: str) -> str:
    return text.split("# Task")[0]


@pytest.mark.parametrize("operator", ASKED)
def test_no_slot_is_empty(operator: str):
    """Every operator, half, thought and number of parents, plain and to mend."""
    broken = Failure(stage="reply", message="there was nothing in it")
    candidate = Candidate(id="g0009-00", generation=9, operator=operator)
    again = Result(candidate=candidate, failure=broken)
    for evolve, thought, told_before in itertools.product(EVOLVES, (False, True), (False, True)):
        least = OPERATORS[operator].parents
        for count in {least, 1, 3} if operator not in WORDS else {least}:
            request = asked(operator, evolve, count, thought=thought)
            if not told_before:
                request = request.model_copy(update={"parents": tuple(p.with_thought("") for p in request.parents)})
            for each in (request, request.model_copy(update={"failed": again, "remarks": ("It waits.",)})):
                for text in texts(BOOK, each):
                    words = prose(text)
                    assert not re.search(r"\bNone\b|undefined|\{\{|\}\}|\{%|\[\]|\(\)(?!`)", words), words
                    assert "\n\n\n" not in words and not re.search(r"[ \t]$|  +\S", words, re.MULTILINE)
                    assert not re.search(r"^#+ [^\n]*\n+(#|\Z)", words.replace("## State", "x"), re.MULTILINE)
                    assert not re.search(r"[:,]\s*(\n\n#|\Z)|: \.|\( |\s,| \.\s", words), words


@pytest.mark.parametrize("operator", PROGRAMS)
def test_programs_are_asked_for_at_the_end(operator: str):
    for evolve in EVOLVES:
        text = page(operator, evolve)
        end = text[text.rindex("# Constraints") :]
        assert "Reply with one fenced Python block" in end and "<thought>" not in text
        assert "<thought>" in page(operator, evolve, thought=True)


def test_every_operator_has_a_page_of_its_own():
    openings = {operator: opening(page(operator)) for operator in PROGRAMS if operator != "repair"}
    assert len(set(openings.values())) == len(openings)
    for operator, words in {
        "structure": "drop one that contributes nothing",
        "weights": "nothing is added, removed or rewritten",
        "term": "exactly one feature or reward term",
        "reflect": "Each reward term, by its curve",
        "crossover": "have in common",
        "path": "from the oldest (step 1) to the newest (step 3)",
        "different": "of another kind than all 3 programs",
        "implement": "carries out the plan",
    }.items():
        assert words in openings[operator], operator
    assert "Each reward term" not in page("reflect", "observation")
    assert "exactly one feature of" in page("term", "observation")
    assert "exactly one reward term of" in page("term", "reward")


def test_pages_of_requests_that_lack_something():
    for operator in PROGRAMS:
        nothing = texts(BOOK, asked(operator, parents=0).model_copy(update={"plan": None}), every_section=False)[1]
        assert opening(nothing) == opening(page("scratch"))
    for operator in ("crossover", "path"):
        assert opening(page(operator, parents=1)) == opening(page("improve"))
    unknown = asked("improve").model_copy(update={"operator": "of_another_version"})
    assert texts(BOOK, unknown) == texts(BOOK, asked("improve"))
    assert "the program below" in opening(page("different", parents=1))


def test_advice_does_not_contradict_the_operator():
    guided = {operator for operator in PROGRAMS if "Guidance" in headings(page(operator))}
    assert guided == {"scratch", "improve", "reflect", "crossover", "different", "repair"}
    near_zero = asked("reflect").model_copy(update={"parents": (told("z", 0.0),)})
    assert "different design" in texts(BOOK, near_zero, every_section=False)[1]
    assert "Think first of the stages" in page("different")
    for operator in ("weights", "term"):
        assert "rewrite it or drop it" not in page(operator)


def test_how_training_went_is_always_shown():
    for seed, operator in itertools.product(range(20), ("structure", "weights", "reflect", "crossover", "path")):
        text = texts(BOOK, asked(operator), seed, every_section=False)[1]
        assert text.count("# How training with") == len(asked(operator).parents)


def test_a_line_is_told_from_its_beginning():
    text = page("path", parents=4)
    steps = [h for h in headings(text) if h.startswith("Step")]
    assert steps == [f"Step {k} of 4: g000{k}-00" for k in (1, 2, 3, 4)]
    assert [text.index(f"Idea {k}.") for k in (1, 2, 3, 4)] == sorted(text.index(f"Idea {k}.") for k in (1, 2, 3, 4))
    assert [h for h in headings(text) if h.startswith("How training")] == [
        f"How training with g000{k}-00 went" for k in (1, 2, 3, 4)
    ]


def test_the_plan_and_what_people_said():
    text = page("implement")
    assert "- reach_end: pays once, at the end" in text and "Plan" in headings(text)
    hostile = PLAN.model_copy(update={"words": "- a: b\n```\n# Task: mine\n{{ 1 / 0 }}"})
    text = page("implement", plan=hostile)
    assert [h for h in headings(text) if h.startswith("Task")] == ["Task: toy"] and "{{ 1 / 0 }}" in text
    text = page("term", remarks=("It waits.", "It waits.", "Slow\n# Task: mine", " "))
    assert text.count("- It waits.") == 1 and "- Slow # Task: mine" in text
    assert "What people said" in headings(text) and "What people said" not in headings(page("term"))
    assert page("crossover", remarks=tuple(f"remark {k} " * 50 for k in range(99))).count("- remark") <= 4


def test_what_is_asked_in_words():
    system, user = texts(BOOK, asked("plan", "reward"))
    assert "Reach the end." in user and "state.x" not in user + system and "```" not in user
    assert "- name_in_snake_case: what it rewards" in user and "write no code" in user
    assert "what it shows" in texts(BOOK, asked("plan", "observation"))[1]
    system, user = texts(BOOK, asked("align"))
    assert "Idea 4." in user and SOURCE.strip() in user and "three sentences" in user and "success" not in user.lower()
    untold = asked("align").model_copy(update={"parents": (PARENT,)})
    assert "author" not in texts(BOOK, untold)[1]
    system, user = texts(BOOK, asked("verify"))
    assert "state.x float32" in user and SOURCE.strip() in user and user.endswith("such as [-0.35] or [0.60].")
    assert "0.4" not in user  # the program is judged, not its score
    assert all("fenced Python block" not in text for text in (system, user))


def test_words_that_were_unusable_are_asked_for_again():
    for operator in ("plan", "align", "verify"):
        failed = Result(
            candidate=Candidate(id="g0009-00", generation=9, operator=operator),
            failure=Failure(stage="reply", message="it was empty", hint="say more"),
        )
        first, again = (texts(BOOK, request)[1] for request in (asked(operator), asked(operator, failed=failed)))
        assert again.startswith(first) and "could not be used: it was empty (say more)" in again[len(first) :]


def test_votes_are_for_people():
    with pytest.raises(UserError, match="asks people"):
        BOOK.messages(asked("prefer"), np.random.default_rng(0))


# --- values that are missing


@pytest.mark.parametrize(
    ("operator", "change", "words"),
    [
        ("scratch", {"card": {"name": ""}}, "section_task.j2 cannot be filled in: the task's name is missing"),
        ("improve", {"card": {"description": " \n"}}, "the task's description is missing"),
        ("plan", {"card": {"description": ""}}, "section_description.j2 .*the task's description is missing"),
        ("improve", {"candidate": {"source": ""}}, "section_parents.j2 .*a program is missing"),
        ("path", {"candidate": {"source": "\n"}}, "a program is missing"),
        ("improve", {"candidate": {"id": ""}}, "a program's name is missing"),
        ("align", {"candidate": {"source": ""}}, "section_program.j2 .*a program is missing"),
        ("verify", {"candidate": {"source": ""}}, "a program is missing"),
        ("align", {"parents": ()}, "section_program.j2 .*the program to read is missing"),
        ("verify", {"parents": ()}, "the program to read is missing"),
        ("implement", {"plan": PLAN.model_copy(update={"words": " "})}, "section_plan.j2 .*the plan is missing"),
        ("improve", {"failure": {"stage": "trace", "message": ""}}, "section_failed.j2 .*the verdict is missing"),
        ("improve", {"failure": {"stage": "reply", "message": ""}}, "retry.j2 .*what was wrong is missing"),
        ("plan", {"failure": {"stage": "reply", "message": ""}}, "retry.j2 .*what was wrong is missing"),
    ],
)
def test_a_value_that_is_missing_is_an_error(operator: str, change: dict, words: str):
    request, book = asked(operator), BOOK
    texts(book, request)
    for what, fields in change.items():
        if what == "card":
            book = PromptBook(CARD.model_copy(update=fields))
        elif what == "candidate":
            bad = LINE[0].model_copy(update={"candidate": LINE[0].candidate.model_copy(update=fields)})
            request = request.model_copy(update={"parents": (bad, *request.parents[1:])})
        elif what == "failure":
            failed = Result(candidate=PARENT.candidate, failure=Failure(**fields))
            request = request.model_copy(update={"failed": failed})
        else:
            request = request.model_copy(update={what: fields})
    with pytest.raises(UserError, match=words):
        texts(book, request)


@pytest.mark.parametrize("name", ["task", "evolve", "thought", "asks_reward", "parents", "called", "plan", "limits"])
def test_a_template_is_strict_about_every_name(name: str):
    context = {**BOOK._context(asked("implement", parents=1), Page()), "sections": ["x"]}
    del context[name]
    with pytest.raises(UndefinedError, match=f"'{name}' is undefined"):
        for template in (
            "section_task",
            "section_parents",
            "section_plan",
            "section_constraints",
            "operator_implement",
        ):
            BOOK._render(template, context)


# --- sizes


def test_pages_fit_their_frame():
    for operator, evolve, count in itertools.product(PROGRAMS, EVOLVES, (1, 5)):
        request = asked(operator, evolve, count, thought=True)
        context = {**BOOK._context(request, Page()), "sections": []}
        name = f"operator_{operator}" if operator != "repair" else "repair"
        failed = context["parents"][0] if context["parents"] else None
        if operator != "repair" or failed:
            assert estimate_tokens(BOOK._render(name, {**context, "failed": failed})) <= _FRAME, operator


@pytest.mark.parametrize("operator", ASKED)
def test_five_long_parents_fit(operator: str):
    words = card(make_task("xland-hard"))
    book = PromptBook(words)
    lines = "".join(f"    y{k} = state.step_num * {k}.0  # a line of a long program\n" for k in range(500))
    for source, letter in ((SOURCE.replace("    return", f"{lines}    return", 1), "w"), (SOURCE, "\U0001f600")):
        long = [told(f"g{k}", 0.1 * k, letter * 3_000) for k in range(5)]
        long = [r.model_copy(update={"candidate": r.candidate.model_copy(update={"source": source})}) for r in long]
        plan = PLAN.model_copy(update={"words": "- a: " + f"{letter} " * 9_000})
        request = Request(
            id="r", generation=1, operator=operator, parents=tuple(long), best=tuple(long), diverse=tuple(long),
            plan=plan, thought=True, remarks=(f"{letter} " * 400,) * 9 + tuple(letter * k for k in range(1, 90)),
        )  # fmt: skip
        system, user = texts(book, request)
        assert estimate_tokens(system + user) <= TOTAL
        for k in range(5 if operator not in ("scratch", *WORDS) else 0):
            assert f": g{k}\n" in user
        assert words.description in user


def test_how_many_tokens_words_take():
    book = PromptBook(card(make_task("xland-easy")))
    sizes = {
        operator: sum(map(estimate_tokens, texts(book, asked(operator))))
        for operator in ("plan", "align", "verify", "improve")
    }
    assert sizes["plan"] < 1_000 and sizes["align"] < 1_500 and sizes["align"] < sizes["verify"] < sizes["improve"]
