"""Answers in words: JSON objects that are validated, or the plain form, brought into the form that is logged."""

from __future__ import annotations

import json

import pytest

from jaxreward.proposers.genetic.planning import named
from jaxreward.proposers.replies.program_reply import THOUGHT_LIMIT
from jaxreward.proposers.replies.schemas import SENTENCES
from jaxreward.proposers.replies.seen import read_scores
from jaxreward.proposers.replies.words import read_words
from jaxreward.records import Failure, read_subtasks


def failure(operator: str, text: str, finish: str = "") -> Failure:
    found = read_words(operator, text, finish)
    assert isinstance(found, Failure) and found.message and (found.hint or found.stage == "refused")
    return found


def plan(*components: tuple[str, str], **more) -> str:
    return json.dumps({"components": [{"name": name, "purpose": purpose} for name, purpose in components], **more})


NEAR_FAR = "- near: closer pays\n- far_away: distance costs"
PLAN = plan(("near", "closer pays"), ("farAway", "distance costs"))


@pytest.mark.parametrize(
    "text",
    [
        PLAN,
        json.dumps(json.loads(PLAN), indent=2),
        f"```json\n{PLAN}\n```",
        f"```\n{PLAN}\n```",
        f"Here is the plan, as JSON.\n\n```json\n{PLAN}\n```\n\nThese work together: good luck.",
        f"A plan {{of two}}: {PLAN} Note: it is short {{as asked}}.",
        plan(("near", "closer pays"), ("Far Away", "distance costs"), ("near", "again")),
        plan(("**Near** (potential)", "`closer`\npays"), ("Far-away", "distance  costs"), task="toy", weight=-1),
        f"First:\n```json\n{plan(('waste', 'costs'))}\n```\nBetter:\n```json\n{PLAN}\n```",
        f'```json\n{PLAN}\n```\nSettings:\n```json\n{{"gamma": 0.99}}\n```',
        f"<think>\n{plan(('wrong', 'thought'))}\n</think>\n{PLAN}",
        f"{plan(('wrong', 'thought'))}\n</think>\n{PLAN}",
        "\ufeff" + PLAN.replace(" ", "\u00a0"),
        PLAN.replace("closer pays", "closer\npays"),
        NEAR_FAR,
        f"Here is a plan:\n\n{NEAR_FAR}\n\nThese work together: good luck.",
        "* **Near**: closer pays\n* **Far Away**: distance costs",
        "1. `near`: closer pays\n2. `farAway`: distance costs",
        "1. **Near** (potential): closer pays\n\n2. **Far-away**: distance costs",
        f"```\n{NEAR_FAR}\n```",
        f"## Progress\n{NEAR_FAR}\n- near: again",
        f"<think>\n- wrong: thought\n</think>\n{NEAR_FAR}",
        f"- wrong: thought\n</think>\n{NEAR_FAR}",
        "\ufeff- near: closer pays\r\n- far_away:\u00a0distance costs\r\n",
    ],
)
def test_a_plan_is_read_from_any_usual_form(text: str):
    assert read_words("plan", text) == NEAR_FAR
    assert read_words("plan", NEAR_FAR) == NEAR_FAR and named(NEAR_FAR) == ("near", "far_away")


def test_a_subtask_whose_name_begins_with_a_digit_is_kept():
    said = read_words("divide", json.dumps({"subtasks": [{"name": "2 hands", "purpose": "both hands on it"}]}))
    assert isinstance(said, str) and [s.name for s in read_subtasks(said)] == ["_2_hands"]
    reply = json.dumps({"subtasks": [{"subtask": "_2_hands", "why": "both", "score": 1.0}]})
    seen = read_scores(reply, "", ["_2_hands"])
    assert isinstance(seen, dict) and seen["_2_hands"].score == 1.0


@pytest.mark.parametrize("write", [plan, lambda *found: "\n".join(f"- {name}: {text}" for name, text in found)])
def test_plans_are_bounded(write):
    many = read_words("plan", write(*((f"c{k}", "x" * 3_000) for k in range(60))))
    assert isinstance(many, str) and len(many.split("\n")) == 30 and len(many) < 15_000
    assert named(many)[-1] == "c29"


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("I cannot help with that.", "no JSON object"),
        ("Sorry: no.", "no JSON object"),
        ("- Go near it\n- Hold it", "no JSON object"),
        ("- : x", "no JSON object"),
        ("[1, 2]", "no JSON object"),
        ("| near | far |", "no JSON object"),
        ("{}", "no JSON object"),
        ('I cannot.\n```json\n{"error": "no plan"}\n```', "components: Field required"),
        ('The weights:\n{"near": 1.0, "far_away": -0.1}', "components: Field required"),
        ('{"components": []}', "components: List should have at least 1 item"),
        ('{"components": {"near": "closer pays"}}', "components: Input should be a valid list"),
        ('{"components": [{"name": "near"}]}', "components.0.purpose: Field required"),
        (plan(("near", "closer pays"), ("?", "distance costs")), "components.1.name: Value error, a name needs"),
        (plan(("near", " \u200b")), "components.0.purpose: Value error, it is empty"),
        (PLAN[:-9], "cannot be read: Unterminated string"),
        (PLAN.replace("closer", 'the "time"'), "cannot be read: Expecting ',' delimiter"),
    ],
)
def test_a_reply_without_a_plan_is_a_failure_that_names_the_mistake(text: str, problem: str):
    """The message names the mistake, so that the request can be answered when it comes back."""
    assert problem in failure("plan", text).message


def test_json_says_nothing_illegible():
    text = r"""{"components": [{"name": "near", "purpose": "a \ud800 b \u001b[31m red \u0007\u200b\u0085."},
    {"name": "far", "purpose": "\ud83d\ude00"}]}"""
    words = read_words("plan", text)
    assert words == "- near: a \N{REPLACEMENT CHARACTER} b [31m red .\n- far: \N{GRINNING FACE}"
    assert read_words("plan", "- near: \x1b[31mred\x1b[0m\n- far: \x9bb") == "- near: [31mred[0m\n- far: b"


def described(text: str) -> str:
    return json.dumps({"description": text})


@pytest.mark.parametrize("write", [described, str])
@pytest.mark.parametrize(
    ("text", "thought"),
    [
        ("It pays for getting near. It costs time.", "It pays for getting near. It costs time."),
        ("It **pays**\n for `near`.", "It pays for near."),
        ("One. Two! Three? Four. Five.", "One. Two! Three? Four."),
        ("Paid 0.5 a cell, i.e. little. So.", "Paid 0.5 a cell, i.e. little. So."),
    ],
)
def test_a_thought_is_read_as_one_paragraph(text: str, thought: str, write):
    assert read_words("align", write(text)) == thought
    assert read_words("align", f"I think so.\n</think>\n{write(text)}") == thought


def test_a_thought_has_no_code():
    assert read_words("align", "It pays.\n```python\nx = 1\n```\nIt costs.") == "It pays. It costs."
    assert "no JSON object" in failure("align", "```python\nx = 1\n```").message


def test_thoughts_are_bounded():
    for write in (described, str):
        found = read_words("align", write("word " * 9_000))
        assert isinstance(found, str) and THOUGHT_LIMIT - 10 < len(found) <= THOUGHT_LIMIT
        assert str(read_words("align", write("A b. " * 50))).count("A b.") == SENTENCES


def judged(score: object) -> str:
    return json.dumps({"reasoning": "In [-1, 1] it is near.", "score": score})


@pytest.mark.parametrize(
    ("text", "number"),
    [
        *(
            (judged(0.5), "0.5"),
            (judged(-0.0), "0"),
            (judged(1), "1"),
            (f"So:\n```json\n{judged(-0.35)}\n```", "-0.35"),
        ),
        (f"<think>{judged(0.1)}</think>{judged(0.2)}", "0.2"),
        ("The expert walks. [0.5]", "0.5"),
        ("In [-1, 1] I say [0.25], no: [-0.75].", "-0.75"),
        ("state.pocket[0] is read.\n0.7", "0.7"),
        ("0.7", "0.7"),
        ("[-.5]", "-0.5"),
        ("[-0]", "0"),
        ("<think>[0.1]</think>[0.2]", "0.2"),
        ("[3] is a reference\n[0.2]", "0.2"),
        ("Stage pays [1]. So it goes.\n-0.35", "-0.35"),
    ],
)
def test_a_judgement_is_the_number_at_the_end(text: str, number: str):
    assert read_words("verify", text) == number


@pytest.mark.parametrize("score", [1.01, -3, 1e999, float("nan"), None, "much", [0.5], "9" * 9_000])
def test_a_score_off_the_scale_is_none(score: object):
    assert "score: " in failure("verify", judged(score)).message


@pytest.mark.parametrize("text", ["[3]", "[1e999]", "[0.60] out of [1]", "0.5\nstate.grid [0] is empty, no number"])
def test_a_number_off_the_scale_or_not_at_the_end_is_no_judgement(text: str):
    assert failure("verify", text).stage == "reply"


@pytest.mark.parametrize("text", ["Step 3 is missing.", "between [-1, 1]", "[nan]", "[0.5 or so]", "none", "x[0]"])
def test_a_reply_without_a_number_is_a_failure(text: str):
    assert "no JSON object" in failure("verify", text).message


@pytest.mark.parametrize("operator", ["plan", "align", "verify"])
def test_an_empty_reply_is_a_failure_that_says_why(operator: str):
    assert failure(operator, " \n").message == "the reply is empty"
    assert "token limit" in failure(operator, "", "length").message
    assert "cut off" in failure(operator, '{"', "length").message
    assert failure(operator, "", "content_filter").stage == "refused"
    assert failure(operator, "").stage == "reply"


HOSTILE = [
    *("a ", "- a", "[", "[ ", "[1", "[+", "- *", "a:", "1. ", "- a\n", "- a: b\n", ".", "(a", "e.g. ", "\n", "{"),
    *('{"a":', " ", "#", "0", "a'-", "<think>", "</think>", "```\n", "A. ", "**", "- **a** ", "\ud800", "\0", "-"),
    *(
        "\t",
        "a\N{EM DASH}",
        "  - a:\n",
        "[\n",
        "[1]\n",
        '{"a":"b","c":"d"}\n',
        "[\n" * 900 + "]" * 900,
        "|",
        "|-|\n",
        "a|b\n-|-\n",
    ),
    *("|-", "\\|", "<br>", '{"name":"a","b":"c"}\n', "[\n" * 900 + "[1],\n" * 40_000),
]


@pytest.mark.parametrize("operator", ["plan", "align", "verify"])
def test_nothing_raises_and_nothing_hangs(operator: str):
    """Quadratic time would take minutes here and run into the limit of the suite."""
    for piece in HOSTILE:
        for text in (piece * (200_000 // len(piece)), f"- {piece * (100_000 // len(piece))}: [0.5"):
            read_words(operator, text)


@pytest.mark.parametrize(
    ("operator", "text", "words"),
    [
        ("plan", 'I use {"a"} as a set.\n- goal: reach it', "- goal: reach it"),
        ("align", 'It uses {"x": 1} of the state. Fine.', 'It uses {"x": 1} of the state. Fine.'),
        ("verify", 'The program returns {"near": 1} only\n[0.7]', "0.7"),
    ],
)
def test_braces_in_prose_are_no_answer(operator: str, text: str, words: str):
    assert read_words(operator, text) == words


def test_the_last_valid_object_counts():
    goal, other = ({"components": [{"name": name, "purpose": "reach it"}]} for name in ("goal", "other"))
    assert read_words("plan", f'An example is {{"name": "a"}}. So: {json.dumps(goal)}') == "- goal: reach it"
    assert read_words("plan", f"{json.dumps(goal)}\nNo: {json.dumps(other)}") == "- other: reach it"
    assert read_words("plan", f"```json\n{json.dumps(goal)}\n```\nNo: {json.dumps(other)}") == "- other: reach it"
    assert read_words("plan", f'{json.dumps(goal)} and {{"components": []}}') == "- goal: reach it"


def test_a_score_needs_no_reasoning_and_is_a_number():
    assert read_words("verify", '{"score": 0.5}') == "0.5"
    assert isinstance(read_words("verify", '{"score": true}'), Failure)
