"""Words in their canonical forms, from whatever was answered."""

from __future__ import annotations

import pytest

from jaxreward.proposers.genetic.planning import named
from jaxreward.proposers.replies import plans
from jaxreward.proposers.replies.program_reply import THOUGHT_LIMIT
from jaxreward.proposers.replies.words import SENTENCES, read_words
from jaxreward.records import Failure


def failure(operator: str, text: str, finish: str = "") -> Failure:
    found = read_words(operator, text, finish)
    assert isinstance(found, Failure) and found.message and (found.hint or found.stage == "refused")
    return found


NEAR_FAR = "- near: closer pays\n- far_away: distance costs"
JSON = """[
  {"name": "near", "description": "closer pays"},
  {"name": "farAway", "rewards": "distance costs", "weight": -1, "tags": ["far"]}
]"""
TABLE = "| Name | What it rewards |\n|:---|:---|\n| `near` | closer pays |\n| farAway | distance costs |"


@pytest.mark.parametrize(
    "text",
    [
        NEAR_FAR,
        "Here is a plan:\n\n- near: closer pays\n- far_away: distance costs\n\nThese work together: good luck.",
        "* **Near**: closer pays\n* **Far Away**: distance costs",
        "1. `near` - closer pays\n2. `farAway` — distance costs",
        "1. **Near** (potential): closer pays\n\n2. **Far-away**: distance costs",
        "```\n- near: closer pays\n- far_away: distance costs\n```",
        "1. Near: closer\n   pays\n2. Far away: distance\n   costs",
        "## Progress\n- near: closer pays\n## Costs\n- far_away: distance costs",
        "- Progress:\n  - near: closer pays\n- Costs:\n  - far_away: distance costs",
        "**near**: closer pays\n\n**far_away**: distance costs",
        "near: closer pays\nfar_away: distance costs",
        "- near: closer pays\n- far_away: distance costs\n- near: again",
        '[{"name": "near", "description": "closer pays"}, {"name": "farAway", "why": "distance costs"}]',
        '```json\n{"near": "closer pays", "far_away": "distance costs"}\n```',
        '{"components": {"near": "closer pays", "far_away": "distance costs"}}',
        f"Here is the specification, as JSON.\n\n```json\n{JSON}\n```\n\nThese work together: good luck.",
        f"Here it is:\n\n{JSON}\n\nNote: it is short.",
        f'As asked:\n```json\n{{"task": "toy", "name": "Reach", "reward_components": {JSON}}}\n```',
        f"A comma too many:\n```json\n{JSON[:-2]},\n]\n```",
        f'Cut off:\n```json\n{JSON[:-2]},\n  {{"name": "lost", "rew',
        'One object each:\n{"name": "near", "why": "closer pays"}\n{"name": "far_away", "why": "distance costs"}',
        'So:\n```json\n{"near": {"rewards": "closer pays"}, "far_away": {"Why": "distance costs", "weight": 1}}\n```',
        'By parts:\n```json\n{"plan": [{"name": "Gains", "terms": {"near": "closer pays"}}, '
        '{"name": "Costs", "terms": [{"id": 2, "term": "farAway", "punishes": "distance costs"}]}]}\n```',
        'In two:\n```json\n[{"name": "near", "why": "closer pays"}]\n```\nand\n```json\n[{"name": "far away", '
        '"why": "distance costs"}]\n```',
        f"Twice:\n```json\n{JSON}\n```\nagain\n```json\n{JSON}\n```",
        'So:\n{"components": ["near: closer pays", "**Far away** - distance costs"]}',
        f"Here is the specification, as a table.\n\n{TABLE}\n\nThese work together: good luck.",
        f"```markdown\n{TABLE}\n```",
        "# | Component | Weight | What for\n--|:--|--:|:--\n"
        "1 | **Near** | 0.5 | closer pays\n2 | Far away | -1 | distance costs",
        "| Stage | Idea |\n|---|---|\n| near | closer pays |\n| far away | distance costs |",
        f"| Stage | What happens |\n|---|---|\n| one | walking |\n| two | turning |\n| three | waiting |\n\n{TABLE}",
        "| Name | Gain |\n|--|--|\n| near | closer pays |\n\n| Name | Cost |\n|--|--|\n| far away | distance costs |",
        f'{NEAR_FAR}\n\nFor example:\n```json\n{{"name": "near", "description": "pays 0.1"}}\n```',
        f"{NEAR_FAR}\n\n| Stage | What happens |\n|---|---|\n| one | walking |\n| two | turning |\n| three | waiting |",
        f'{NEAR_FAR}\n\n```json\n{{"gamma": "about 0.99", "clip": "none at all", "seeds": "three"}}\n```',
        f'{NEAR_FAR}\n\nNot so:\n```json\n{{"name": "waste", "why": "the "time" costs"}}\n```',
        f'{{"name": "Reach", "description": "Go there.", "rewards": {JSON}}}',
        f'[{{"name": "Reach", "description": "Go there.", "anything": {JSON}}}]',
        '{"name": "Reach", "why": "so", "x": {"near": {"when": "closer pays"}, "farAway": {"why": "distance costs"}}}',
        '{"name": "Reach", "why": "so", "stages": {"near": "closer pays", "far_away": "distance costs"}}',
        f'{{"components": {JSON}, "training": {{"name": "PPO", "description": "clipped"}}}}',
        '[{"name": "near", "why": "closer pays", "params": [{"name": "s", "why": "so"}], "tags": ["kind: dense"]},\n'
        '{"name": "far_away", "why": "distance costs", "when": {"start": "at once", "end": "never"}}]',
        '{"terms": [{"name": "near", "why": "closer pays", "when": {"start": "at once", "end": "never"}},\n'
        '{"name": "far_away", "why": "distance costs"}]}',
        '[{"name": "near", "why": "closer pays"},\n{"name": "far_away", "why": "distance costs", "tags": ["a", ],},]',
        '{\n"components": {\n"near": {"why": "closer pays"},\n"far_away": {"why": "distance costs"},\n"lost": {"wh',
        f'Cut off:\n{JSON[:-2]},\n  {{"name": "lost", "kind": "dense", "tags": ["x"], "why": "more',
        f'Cut off:\n{JSON[:-2]},\n  {{"name": "lost", "kind": "dense", "tags": ["x"], "dense": tru',
        '{"name": "Reach", "kind": "sum", "x": [{"name": "near", "why": "closer pays"}, '
        '{"name": "far_away", "why": "distance costs"}',
        f"{TABLE}\n\n| Component | Phase |\n|---|---|\n| near | early on |",
        f"| Component | Phase |\n|---|---|\n| near | early on |\n\n{TABLE}",
        f"| Component | Phase |\n|---|---|\n| near | early |\n| far away | late |\n\n{TABLE}",
        "| Name | Why |\n|--|--|\n| near | closer pays |\n| Name | Why |\n|--|--|\n| far away | distance costs |",
        f"{TABLE}\n| Stage | What happens |\n|---|---|\n| one | walking |",
        "| Name | Why |\n|--|--|\n| near | closer pays |\n|--|--|\n| far away | distance costs |\n|--|--|",
        "<think>\n- wrong: thought\n</think>\n" + NEAR_FAR,
        "- wrong: thought\n</think>\n" + NEAR_FAR,
        "\ufeff- near: closer pays\r\n- far_away:\u00a0distance costs\r\n",
    ],
)
def test_plans(text: str):
    assert read_words("plan", text) == NEAR_FAR
    assert read_words("plan", NEAR_FAR) == NEAR_FAR and named(NEAR_FAR) == ("near", "far_away")


def test_what_stands_below_a_component_belongs_to_it():
    labelled = "### 1. Near\n- Pays: closer\n- Why: it leads there\n### 2. Far\n- Pays: less\n- Why: it does not\n"
    assert (
        read_words("plan", labelled) == "- near: Pays: closer Why: it leads there\n- far: Pays: less Why: it does not"
    )
    nested = "1. **Near**\n   Closer pays.\n2. **Far**\n   Distance costs."
    assert read_words("plan", nested) == "- near: Closer pays.\n- far: Distance costs."


def test_plans_are_bounded():
    many = read_words("plan", "\n".join(f"- c{k}: {'x' * 3_000}" for k in range(200)))
    assert isinstance(many, str) and len(many.split("\n")) == 30 and len(many) < 15_000
    assert named(many)[-1] == "c29"


@pytest.mark.parametrize(
    "text",
    [
        *("I cannot help with that.", "Sorry: no.", "- Go near it\n- Hold it", "- : x", "{}", "[1, 2]"),
        'I cannot.\n```json\n{"error": "no plan"}\n```',
        'The weights:\n```json\n{"near": 1.0, "far_away": -0.1}\n```',
        "As asked:\n```json\n[[1, 2], [3, 4]]\n```",
        'Broken:\n```json\n{"name": "near", "description": \n```',
        'The weights:\n```json\n{\n"near": 1.0,\n"far_away": -0.1\n}\n```',
        '{"components": {\n"near": {"why": "closer pays"},\n"far": {"why": "the 5" disk"},\n"waste": {"why": "so"}}}',
        '[{"name": "near", "why": "closer pays"},\n{"name": "far", "why": "the 5" disk"},\n{"name": "x", "why": "so"}',
        '[{"name": "near", "why": "closer pays"},\n{"name": "far", "why": "so"\n]\n{"name": "x", "why": "so"}',
        '{"x": [{"name": "near", "why": "so"],\n"near": "closer pays",\n"far": "distance costs"}',
        '{"name": "near", "why": "closer pays"}\n{"name": "far" "why": "distance costs"}',
        '{\n"near": "closer pays",\n"far": "distance co',
        "| Name | Weight |\n|---|---|\n| near | 0.5 |",
        "| Name | What it rewards |\n|---|---|\n| near | |",
        "| near | far |",
        "As in [1]:\n[1] a paper on a|b",
    ],
)
def test_no_plan(text: str):
    assert failure("plan", text).message == "the reply names no components"


@pytest.mark.parametrize("other", [JSON.replace("farAway", "waste"), f"[{JSON.split(chr(10))[1].strip(' ,')}]"])
def test_two_plans_are_none(other: str):
    """Which one is meant, nobody can know; bullets and tables of the same names leave no doubt."""
    for text in (f"One:\n{JSON}\nOr:\n{other}", f"{TABLE}\n\n{TABLE.replace('farAway', 'waste')}"):
        assert failure("plan", text).message == "the reply holds several plans that differ"


def test_json_says_nothing_illegible():
    text = r'{"near": "a \ud800 b \u001b[31m red \u0007\u200b\u0085.", "far": "\ud83d\ude00"}'
    words = read_words("plan", text)
    assert words == "- near: a \N{REPLACEMENT CHARACTER} b [31m red .\n- far: \N{GRINNING FACE}"
    assert read_words("plan", "- near: \x1b[31mred\x1b[0m\n- far: \x9bb") == "- near: [31mred[0m\n- far: b"


@pytest.mark.parametrize(
    "piece",
    ['{"a":"b","c":"d"}\n', "[\n[\n", '{"a":\n', '{"a"\n```\n', '["\n```\n', "[[1],\n", "[x\n", '{"a" 1}\n', '["b"]\n'],
)
@pytest.mark.parametrize("before", ["", "[[[\n" * 300, '{"x": [\n', '["'])
def test_json_is_looked_at_a_few_times(monkeypatch: pytest.MonkeyPatch, piece: str, before: str):
    """However much of it is broken: characters are counted here, for time says little on a busy machine."""
    loads, looked_at = plans.json.loads, 0

    def counted(text: str, **options):
        nonlocal looked_at
        looked_at += len(text)
        return loads(text, **options)

    monkeypatch.setattr(plans.json, "loads", counted)
    for text in (before + piece * 2_000, f"{before}```\n{piece * 2_000}"):
        looked_at = 0
        read_words("plan", text)
        assert looked_at <= 3 * len(text)


def test_what_a_structured_plan_says():
    text = 'Plan:\n[{"id": "x7", "name": "near", "type": "dense", "rewards": "closer.", "when": "now", "why": "so"}]'
    assert read_words("plan", text) == "- near: closer. now; so"
    assert read_words("plan", 'Plan:\n[{"name": "near", "kind": "a potential"}]') == "- near: a potential"
    table = (
        "| No | Name | When | Why |\n|-|-|-|-|\n"
        "| 1 | near | each step<br>once | one \\| two |\n| 2 | far | never | | cut |"
    )
    assert read_words("plan", table) == "- near: each step once; one | two\n- far: never; cut"


@pytest.mark.parametrize(
    ("text", "thought"),
    [
        ("It pays for getting near. It costs time.", "It pays for getting near. It costs time."),
        ("Here is the description:\n\n**Idea:** it *pays*.", "it *pays*."),
        ("<thought>It pays.</thought>", "It pays."),
        ("It pays.\n```python\nx = 1\n```\nIt costs.", "It pays. It costs."),
        ("# Design\n- Terms, e.g. `near`, pay.\n- Others cost.", "Design Terms, e.g. near, pay. Others cost."),
        ("One. Two! Three? Four. Five.", "One. Two! Three? Four."),
        ("Paid 0.5 a cell, i.e. little. So.", "Paid 0.5 a cell, i.e. little. So."),
        ("I think so.\n</think>\nIt pays.", "It pays."),
    ],
)
def test_thoughts(text: str, thought: str):
    assert read_words("align", text) == thought


def test_thoughts_are_bounded():
    found = read_words("align", "word " * 9_000)
    assert isinstance(found, str) and THOUGHT_LIMIT - 10 < len(found) <= THOUGHT_LIMIT
    assert str(read_words("align", "A b. " * 50)).count("A b.") == SENTENCES
    assert failure("align", "```python\nx = 1\n```").message == "the reply holds no description"


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("The expert walks. [0.5]", "0.5"),
        ("In [-1, 1] I say [0.25], no: **[-0.75]**.", "-0.75"),
        ("state.pocket[0] is read.\nScore: 0.7", "0.7"),
        ("0.7", "0.7"),
        ("The value is -.5.", "-0.5"),
        ("[\N{MINUS SIGN}0.3]", "-0.3"),
        ("\\[ [$0.4$] \\]", "0.4"),
        ("[-0]", "0"),
        ("<think>[0.1]</think>[0.2]", "0.2"),
    ],
)
def test_judgements(text: str, number: str):
    assert read_words("verify", text) == number


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("Stage pays [1]. So it goes.\nFinal number: -0.35", "-0.35"),
        ("[3] is a reference\n[0.2]", "0.2"),
        ("state.grid [0]\nfinal: 0.2", "0.2"),
    ],
)
def test_what_stands_in_brackets_before_the_last_line_is_no_judgement(text: str, number: str):
    assert read_words("verify", text) == number


@pytest.mark.parametrize(
    "text", ["[0.60] out of [1]", "[1e999]", "[-1e999]", "[3]", "0.5\nstate.grid [0] is empty, no number"]
)
def test_a_number_off_the_scale_or_not_at_the_end_is_no_judgement(text: str):
    assert "no number" in failure("verify", text).message


@pytest.mark.parametrize("text", ["Step 3 is missing.", "between [-1, 1]", "[nan]", "[0.5 or so]", "none", "x[0]"])
def test_no_judgement(text: str):
    assert "no number" in failure("verify", text).message


@pytest.mark.parametrize(
    ("text", "vote"),
    [
        ("first", "first"),
        ("1", "first"),
        ("A", "first"),
        ("left: it reaches the goal", "first\nit reaches the goal"),
        ("Second\nthe other turns\n\nin circles", "second\nthe other turns in circles"),
        ("2 - quicker", "second\nquicker"),
        ("Program B", "second"),
        ("I prefer the right", "second"),
        ("'right'", "second"),
        ("equal", "equal"),
        ("It's a tie, both wait", "equal\nboth wait"),
        ("a draw", "equal"),
        ("same", "equal"),
        ("=", "equal"),
        ("I think the left one", "first"),
        ("I'd say right.", "second"),
        ("The left agent is better: it does not wait", "first\nit does not wait"),
    ],
)
def test_votes(text: str, vote: str):
    assert read_words("prefer", text) == vote
    assert read_words("prefer", vote) == vote
    assert len(str(read_words("prefer", f"{text} {'x ' * 9_000}"))) <= 1_010


@pytest.mark.parametrize(
    "text",
    ["better", "123", "abc", "?", "the agent", "the left one is worse, right", "A bit better: right",
     "A robot in the right picture is better", "one agent turns, second better", "both fail; but left a bit better",
     "left one is worse", "left is worse, take right"],
)  # fmt: skip
def test_no_vote(text: str):
    assert "does not begin" in failure("prefer", text).message


@pytest.mark.parametrize("operator", ["plan", "align", "verify", "prefer"])
def test_empty_replies(operator: str):
    assert failure(operator, " \n").message == "the reply is empty"
    assert "token limit" in failure(operator, "", "length").message
    if operator != "align":
        assert "cut off" in failure(operator, "?", "length").message
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


@pytest.mark.parametrize("operator", ["plan", "align", "verify", "prefer"])
def test_nothing_raises_and_nothing_hangs(operator: str):
    """Quadratic time would take minutes here and run into the limit of the suite."""
    for piece in HOSTILE:
        for text in (piece * (200_000 // len(piece)), f"- {piece * (100_000 // len(piece))}: [0.5"):
            read_words(operator, text)
