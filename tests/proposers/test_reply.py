"""Replies of language models: the program is found wherever it stands, and nothing else is taken for one."""

from __future__ import annotations

import ast
import json
import textwrap
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jaxreward.proposers.replies.program_reply import REPLY_LIMIT, THOUGHT_LIMIT, Reply, read_reply
from jaxreward.records import Failure

HEAD = "import jax\nimport jax.numpy as jnp\n\nSIZE = 9\n"
OBSERVE = "def get_observation(state):\n    x = state.agent.position / SIZE\n\n    return x.astype(jnp.float32)\n"
REWARD = '''def compute_reward(state, action, next_state):
    """Held: `1`."""
    held = (next_state.agent.pocket[0] == 5) * 1.0  # a pyramid
    return held, {"held": held}
'''
PROGRAM = f"{HEAD}\n\n{OBSERVE}\n\n{REWARD}"
OTHER = PROGRAM.replace("SIZE = 9", "SIZE = 13")


OUTLINE = "def get_observation(state):\n    ...\n\n\ndef compute_reward(state, action, next_state):\n    ...\n"
DIFF = """--- a.py
+++ b.py
@@ -1,2 +1,2 @@
 def get_observation(state):
-    return state.x
+    return state.x * 2
"""


def source(text: str, finish: str = "stop") -> str:
    reply = read_reply(text, finish)
    assert isinstance(reply, Reply), reply
    return reply.source


def failure(text: str, finish: str = "stop") -> Failure:
    reply = read_reply(text, finish)
    assert isinstance(reply, Failure) and reply.stage == "reply" and reply.hint
    return reply


def fenced(text: str, tag: str = "python", mark: str = "```") -> str:
    return f"{mark}{tag}\n{text}{mark}\n"


ONE_PROGRAM = {
    "fenced": fenced(PROGRAM),
    "untagged": fenced(PROGRAM, ""),
    "tildes": fenced(PROGRAM, "py", "~~~"),
    "long fence": fenced(PROGRAM, "python", "``````"),
    "fence in a fence": fenced(fenced(PROGRAM), "markdown", "````"),
    "unclosed outer fence": "```markdown\n" + fenced(PROGRAM) + "```\n",
    "title": fenced(PROGRAM, 'python title="interface.py"'),
    "pandoc tag": fenced(PROGRAM, "{.python}"),
    "prose": f"I thought about `state.grid`.\n\n{fenced(PROGRAM)}\nThis ```should``` learn.",
    "fence after words": f"Here it is: {fenced(PROGRAM)}",
    "code on the fence's line": fenced(PROGRAM, "python ").replace("python \n", "python "),
    "closed on the last line": f"```python\n{PROGRAM.rstrip()}```",
    "never closed": f"Here:\n```python\n{PROGRAM}",
    "never closed, then prose": f"```python\n{PROGRAM}\nThis should learn quickly.\n",
    "other languages": fenced("(get_observation ...)\n", "text") + fenced("pip install x\n", "sh") + fenced(PROGRAM),
    "draft, then final": fenced(OTHER) + "A better version:\n" + fenced(PROGRAM),
    "complete, then a part": fenced(PROGRAM) + "The heart of it:\n" + fenced("def get_observation(state):\n    ...\n"),
    "indented fence": textwrap.indent(fenced(PROGRAM), "    "),
    "in a list": "1. The program\n" + textwrap.indent(fenced(PROGRAM), "   "),
    "indented in its fence": fenced(textwrap.indent(PROGRAM, "\t")),
    "carriage returns": fenced(PROGRAM).replace("\n", "\r\n"),
    "old carriage returns": fenced(PROGRAM).replace("\n", "\r"),
    "byte order mark": "\ufeff" + fenced(PROGRAM),
    "zero width": fenced(PROGRAM).replace("return", "\u200breturn"),
    "hard spaces": fenced(PROGRAM).replace("    ", "\u00a0\u00a0 \u202f"),
    "bare": PROGRAM,
    "bare after prose": f"Sure! Here is the interface:\n\n{PROGRAM}",
    "bare between prose": f"I use the pocket\nand the place.\n\n{PROGRAM}\nIt should work, since\nit is dense.\n",
    "bare with an example": f"{PROGRAM}\nobs = get_observation(state)\n",
    "bare and indented": "The interface:\n\n" + textwrap.indent(PROGRAM, "    ") + "\nDone.",
    "code tags": f"<thought>x</thought>\n<code>\n{PROGRAM}</code>",
    "code tags and a fence": f"<code>\n{fenced(PROGRAM)}</code>",
    "unclosed tag": f"<code>\n{PROGRAM}",
    "json": json.dumps({"thought": "two lines", "code": PROGRAM}),
    "json of another key": json.dumps({"answer": {"text": PROGRAM}}),
    "json of two fields": json.dumps({"get_observation": f"{HEAD}\n\n{OBSERVE}".rstrip(), "compute_reward": REWARD}),
    "json in a fence": fenced(json.dumps({"program": PROGRAM}, indent=2) + "\n", "json"),
    "json in an untagged fence": fenced(json.dumps({"program": PROGRAM}) + "\n", ""),
    "json with a fence inside": json.dumps({"code": fenced(PROGRAM)}),
    "json after prose": "Here: " + json.dumps({"code": PROGRAM}) + "\nRegards",
    "json with real line ends": '{"code": "' + PROGRAM.replace('"', '\\"') + '"}',
    "json escaped twice": json.dumps({"code": PROGRAM.replace("\n", "\\n")}),
    "broken json": '{"thought": "x",, "code": ' + json.dumps(PROGRAM) + ",}",
    "thinking": f"<think>\n{fenced(OTHER)}hm\n</think>\n{fenced(PROGRAM)}",
    "thinking without its start": f"{fenced(OTHER)}</think>\n{fenced(PROGRAM)}",
    "split": fenced(f"{HEAD}\n\n{OBSERVE}") + "and\n" + fenced(REWARD),
    "split in three": fenced(HEAD) + "First:\n" + fenced(OBSERVE) + "Second:\n" + fenced(REWARD),
    "helpers apart": fenced(HEAD) + fenced(f"{OBSERVE}\n\n{REWARD}") + fenced("x = get_observation(state)\n"),
    "then an outline": fenced(PROGRAM) + "Structure:\n" + fenced(OUTLINE),
    "then a described outline": fenced(PROGRAM) + fenced(OUTLINE.replace("...", '"""Sees."""\n    pass')),
    "outlines, then halves": fenced(OUTLINE) + fenced(f"{HEAD}\n\n{OBSERVE}") + fenced(REWARD) + fenced(OUTLINE),
    "thinking without end": f"<think>\nI try:\n{fenced(OTHER)}better:\n{fenced(PROGRAM)}",
    "a tag in prose": f"<think> blocks are not used.\n{fenced(PROGRAM)}",
    "thinking twice": f"<think>{fenced(OTHER)}</think>\n<thinking>hm</thinking> {fenced(PROGRAM)}",
    "thinking, a fence left open": f"<think>\n```python\n{OTHER}</think>\n{fenced(PROGRAM)}",
    "json with lines": json.dumps({"code": PROGRAM.split("\n")}),
    "json with long lines": json.dumps({"code": PROGRAM.splitlines(keepends=True)}),
    "channels": f"<|channel|>analysis<|message|>try {fenced(OTHER).rstrip()}<|end|><|start|>assistant<|channel|>final"
    f"<|message|>{fenced(PROGRAM).rstrip()}<|return|>",
    "a constrained channel": f"<|channel|>final <|constrain|>python<|message|>{fenced(PROGRAM).rstrip()}<|return|>",
    "block quote": textwrap.indent(fenced(PROGRAM), "> ", lambda line: True),
    "block quote without a fence": textwrap.indent(PROGRAM, "> ", lambda line: True),
    "a diff of it": fenced(PROGRAM) + "The change:\n" + fenced(DIFF, "diff"),
}  # fmt: skip


@pytest.mark.parametrize("kind", ONE_PROGRAM)
def test_the_program_is_found(kind: str):
    found = source(ONE_PROGRAM[kind])
    assert ast.dump(ast.parse(found)) == ast.dump(ast.parse(PROGRAM))
    if (
        "halves" not in kind
        and "split" not in kind
        and "helpers" not in kind
        and "two fields" not in kind
        and "zero" not in kind
    ):
        assert found == PROGRAM


DOCUMENTED = PROGRAM.replace(
    '"""Held: `1`."""',
    '''"""Held.

    ```python
    def get_observation(state):
        return held
    ```
    """''',
)
ODD = PROGRAM.replace("SIZE = 9\n", "(SIZE, SPAN) = 9, 4\n[A, B] = 1, 2\nassert SIZE > SPAN\nWIDE: float = 9.0\n")


@pytest.mark.parametrize("program", [DOCUMENTED, ODD, ODD + "\nassert SIZE < 10\n"])
def test_a_reply_that_is_a_program_is_taken_as_it_is(program: str):
    assert "```" in program or "assert" in program
    assert source(program) == program
    assert source(program.replace("\n", "\r\n")) == program


def test_unfenced_statements_are_kept_among_prose():
    program = ODD + "\nassert SIZE < 10\n"
    assert source(f"Sure, here it is.\n\n{program}\nIt should do well, (I think).\n") == program


def test_a_program_may_have_one_function():
    for half in (OBSERVE, REWARD, "def reward(state):\n    return state.x\n"):
        assert source(fenced(half)) == half
        assert source(half) == half


DOCSTRING = """    \"\"\"Features.

    ```
    [x]
    ```
    \"\"\"
"""


@pytest.mark.parametrize("indent", ["", "    "])
@pytest.mark.parametrize(
    "inside",
    [
        DOCSTRING,
        DOCSTRING.replace("```\n    [", "```python\n    ["),
        DOCSTRING.replace("[x]\n    ```", "[x]\n    ```\n\n    ```\n    [y]\n    ```"),
        textwrap.dedent(DOCSTRING).replace('"""F', '    """F'),
        DOCSTRING.replace("    [x]", "x = 1  # </think>"),
        "    x = 0  # </think>\n",
    ],
)
def test_fences_and_tags_inside_a_program_stay_in_it(inside: str, indent: str):
    program = PROGRAM.replace("state):\n", f"state):\n{inside}")
    for text in (program, f'"""Design.\n\n```text\nlayout\n```\n"""\n{program}'):
        for end in ("", "\nIt sees:\n```\n[x]\n```\n", "\nUse:\n" + fenced("x = get_observation(state)\n")):
            assert source(f"Here:\n\n{textwrap.indent(fenced(text), indent)}{end}") == text


def test_what_a_fence_holds_is_never_torn():
    text = '    [x]\n    """\n    return f(\n\n\ndef compute_reward(state, action, next_state):\n    return 1\n'
    found = source(f"```\n{text}```\n")
    assert "def compute_reward(state, action, next_state):\n    return 1" in found


def test_small_constants_in_a_block_of_their_own_join_the_program():
    program = OBSERVE.replace("SIZE", "size") + REWARD
    constant = "import jax.numpy as jnp\nsize = 9\nother: int = 3\n"
    example = "x = get_observation(state)\nsize = 3\n"
    found = source(fenced(constant) + fenced(program) + fenced(example))
    assert found.startswith(constant) and "size = 3" not in found and ast.parse(found)


def test_a_quoted_program_is_not_the_answer():
    def read(text: str, *shown: str) -> str:
        reply = read_reply(text, shown=shown)
        assert isinstance(reply, Reply)
        return reply.source

    text = fenced(PROGRAM) + "The parent was:\n" + fenced(OTHER)
    assert read(text) == read(text, PROGRAM) == read(text, "x = 1\n") == OTHER
    assert read(text, OTHER) == read(text, "x = 1\n", OTHER.replace("\n\n", "\n") + "\n") == PROGRAM
    assert read(fenced(OTHER), OTHER) == OTHER
    assert read(fenced(OTHER) + "becomes\n" + fenced(REWARD), OTHER) == REWARD
    assert read(fenced(PROGRAM) + fenced(OUTLINE) + fenced(OTHER), OTHER) == PROGRAM


def test_what_is_sent_in_place_of_a_program_is_named():
    for text in (fenced(DIFF, "diff"), fenced(DIFF), DIFF, fenced(DIFF.split("@@\n")[1]), f"Change:\n\n{DIFF}"):
        assert "diff: send the complete program" in failure(text).message
    methods = "class I:\n" + textwrap.indent(OBSERVE + REWARD, "    ")
    for text in (fenced(methods), fenced(HEAD + methods)):
        assert "at the top level" in failure(text).message
    assert source(fenced(methods + "\n\n" + OBSERVE)).endswith(OBSERVE)
    assert "nothing but thinking" in failure("<|channel|>analysis<|message|>hm").message
    assert "..." in source(fenced(OUTLINE))


def test_a_program_that_is_not_python_is_left_to_its_checks():
    broken = PROGRAM.replace("held, {", "held, {{")
    for text in (fenced(broken), broken, f"Sure.\n\n{broken}\nThat is all."):
        assert "{{" in source(text)
    quotes = PROGRAM.replace('"held"', "“held”")
    assert source(fenced(quotes)) == quotes


def test_versions_of_halves_are_not_mixed_twice():
    first = OBSERVE.replace("SIZE", "3.0")
    found = source(fenced(HEAD + first) + fenced(HEAD + OBSERVE) + fenced(REWARD))
    assert found.count("def get_observation") == 1 and "3.0" not in found


def test_a_reply_that_is_cut_off_is_a_failure_that_says_so():
    complete = fenced(PROGRAM)
    for at in (complete.index("held, {") + 7, complete.index("action, next"), complete.index("SIZE = 9")):
        assert "cut off at the token limit" in failure(complete[:at], "length").message
    assert "cut off" in failure(json.dumps({"code": PROGRAM})[:-60], "length").message
    assert "cut off" in failure(PROGRAM[:-10], "length").message
    assert source(f"```python\n{PROGRAM}", "length") == PROGRAM
    assert source(complete + "\nUsage:\n```python\nx = get_obs(", "length") == PROGRAM
    assert source(complete + "\nOr else:\n```python\ndef get_observation(state):\n    return (", "length") == PROGRAM
    assert "write less" in failure("Let me think", "length").hint


def test_a_reply_without_a_program_is_a_failure_that_says_why():
    assert failure("").message == failure(" \n\u200b").message == "the reply is empty"
    refused = read_reply("", "content_filter")
    assert isinstance(refused, Failure) and (refused.stage, refused.hint) == ("refused", "")
    assert "content filter" in refused.message
    assert "token limit" in failure("", "length").message
    assert (
        failure("<think>hm").message == failure("<think>hm</think> ").message == "the reply holds nothing but thinking"
    )
    assert "but thinking" in failure("<think>hm", "length").message
    assert "no program in the reply" in failure("I cannot help with get_observation.").message
    assert "neither get_observation nor compute_reward" in failure(fenced("x = 1\n")).message

    assert "first 200,000 characters" in failure("a b\n" * REPLY_LIMIT).message


def test_the_thought_is_read_with_the_program():
    thought = "Reward the pocket, not the distance."

    def of(text: str) -> str:
        reply = read_reply(text, thought=True)
        assert isinstance(reply, Reply) and reply.source == PROGRAM
        return reply.thought

    assert of(f"{thought}\n\n{fenced(PROGRAM)}\nBye") == thought
    assert of(f"<thought>{thought}</thought>\nSo:\n{fenced(PROGRAM)}") == thought
    assert of(f"Well. {{{thought}}}\n{fenced(PROGRAM)}") == thought
    assert of(f"{thought}\n{PROGRAM}") == thought
    assert of(json.dumps({"thought": thought, "code": PROGRAM})) == thought
    assert of(f"<think>secret</think>{fenced(PROGRAM)}") == ""
    assert len(of(f"{'why ' * 2000}\n{fenced(PROGRAM)}")) <= THOUGHT_LIMIT
    assert read_reply(f"{thought}\n{fenced(PROGRAM)}") == Reply(PROGRAM)


HOSTILE = {
    "backticks": "`" * 2_000_000,
    "backticks and a letter": "`" * 199_000 + "x\n",
    "fences": "```\n" * 500_000,
    "tagged fences": "```python\n" * 200_000,
    "growing fences": "\n".join("`" * n + "python" for n in range(3, 700)),
    "inline fences": "a ``` b " * 250_000,
    "fence and spaces": "```python\n" + "``` " * 50_000 + "x",
    "deep json": "[" * 1_000_000,
    "deep json objects": '{"code":' * 20_000,
    "json strings": '{"code": "def get_observation(", ' * 6_000,
    "backslashes": '"code": "' + "\\" * 199_000,
    "json spaces": '"code"' + " " * 199_000,
    "a long number": '{"code": ' + "9" * 150_000 + "}",
    "think": "<think>\n" * 200_000,
    "tags": "<code>" * 300_000,
    "thoughts": "<thought>" * 200_000,
    "braces": "{" * 190_000 + "\ndef get_observation(state):\n    pass",
    "statements": "x = 1\n" * 400_000 + "def get_observation(state): pass",
    "broken statements": "def get_observation(state): (\nif (\n" * 6_000,
    "definitions": "def get_observation(state): pass\n" * 7_000,
    "spaces": " " * 2_000_000 + "def",
    "indented": "\n".join(" " * n + "def get_observation(state):" for n in range(600)),
    "deep code": "def get_observation(state):\n    return " + "-" * 60_000 + "1\n",
    "deep sums": "def get_observation(state):\n    return 1" + "+1" * 30_000 + "\n",
    "quotes": "def get_observation(state): pass\n" + '"""\nx\n' * 30_000,
    "equals": "def get_observation(state): pass\n" + "a " * 90_000 + "=",
    "thinking on one line": "<think></think>" * 13_000,
    "ends of thinking": "</think>" * 200_000,
    "thinking in fences": "```\n<think>\n```\n</think>\n" * 10_000,
    "channels": "<|channel|>" * 100_000 + "<|message|>",
    "final channels": "<|channel|>final<|message|>" * 8_000,
    "quotes of blocks": "> " * 90_000 + "\n> def get_observation(state):",
    "broken blocks": "```python\ndef get_observation(state): (\n```\n" * 5_000,
    "broken long blocks": ("```python\ndef get_observation(state):\n" + "    x = 1\n" * 400 + "    (\n```\n") * 50,
    "outlines": "```python\ndef get_observation(state): ...\n```\n" * 5_000,
    "outlines in a block": "```python\n" + "# x\ndef get_observation(state): ...\n" * 1_700 + "```\n",
    "diffs": "```diff\n+def get_observation(state):\n```\n" * 5_000,
    "lines of json": '{"code": [' + '"def get_observation(state):", ' * 6_000 + '""]}',
    "surrogates": "\ud800" * 100_000 + "```\ndef get_observation(state):\n    return '\udfff'\n```",
}


@pytest.mark.parametrize("kind", HOSTILE)
@pytest.mark.parametrize("finish", ["stop", "length"])
def test_hostile_replies_take_no_time(kind: str, finish: str):
    start = time.perf_counter()
    reply = read_reply(HOSTILE[kind], finish, thought=True)
    assert time.perf_counter() - start < 5
    text = reply.source + reply.thought if isinstance(reply, Reply) else str(reply)
    text.encode()


PIECES = st.sampled_from(
    ["```", "```python\n", "~~~", "\n", "    ", "def get_observation(state):", " return 1\n", '{"code": "', '"}', "\\n"]
    + [
        "<think>",
        "</think>",
        "<code>",
        "</code>",
        "(",
        '"""',
        "x = 1\n",
        "import jax\n",
        "\ud800",
        "#",
        "\r\n",
        "{",
        "}",
    ]
)


@pytest.mark.long
@settings(max_examples=300, deadline=None)
@given(st.one_of(st.text(), st.lists(PIECES, max_size=30).map("".join)), st.sampled_from(["", "stop", "length"]))
def test_any_text_is_a_reply_or_a_failure(text: str, finish: str):
    reply = read_reply(text, finish, thought=True)
    assert isinstance(reply, Reply | Failure)
    if isinstance(reply, Reply):
        assert "def " in reply.source
        (reply.source + reply.thought).encode()


PROSE = st.text(st.characters(codec="utf-8", exclude_characters="`~<>{}[]\r\ufeff"), max_size=200).filter(
    lambda text: "def" not in text
)


@settings(max_examples=200, deadline=None)
@given(
    before=PROSE,
    after=PROSE,
    mark=st.sampled_from(["```", "~~~", "````", "~~~~~~"]),
    tag=st.sampled_from(["", "python", "py", "Python", "python3", " python"]),
    end=st.sampled_from(["\n", "\r\n", "\r"]),
    indent=st.sampled_from(["", "  ", "    ", "\t"]),
)
def test_a_wrapped_program_comes_back(before: str, after: str, mark: str, tag: str, end: str, indent: str):
    block = textwrap.indent(fenced(PROGRAM, tag, mark), indent)
    assert source(f"{before}\n{block}{after}".replace("\n", end)) == PROGRAM
