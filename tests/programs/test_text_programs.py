"""Programs on text: what they may say, what happens to those that attack, and that a reward is of its state alone."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator

import numpy as np
import pytest

from jaxreward.programs.host.checker import LIMITS, TextChecker, Transitions
from jaxreward.programs.host.guard import guard
from jaxreward.programs.host.program import digest_of
from jaxreward.programs.limits import Limits

SCREEN = '<hierarchy><node text="Pause" selected="false" /><node text="06h 00m" selected="true" /></hierarchy>'
STEPS = [("home", "tap Clock", SCREEN), (SCREEN, "tap Pause", "no XML at all"), ("home", "wait", "home")]


@pytest.fixture(scope="module")
def checker() -> Iterator[TextChecker]:
    """Short clocks, so that what must be killed is killed soon."""
    limits = Limits(wall_s=12.0, cpu_s=1, memory_mb=64, reply_bytes=1 << 20)
    with TextChecker(Transitions.of(STEPS), limits, workers=1) as shared:
        yield shared


GOOD = {
    "regular expression": (
        "import re\n\ndef reward(state: str) -> float:\n    return 2.0 if re.search('text=.Pause', state) else -1.0",
        [2.0, -1.0, -1.0],
    ),
    "parsed tree": (
        "import xml.etree.ElementTree as ET\n\n\ndef reward(state):\n    try:\n        root = ET.fromstring(state)\n"
        "    except ET.ParseError:\n        return -1\n"
        "    return sum(node.get('selected') == 'true' for node in root.iter('node'))",
        [1.0, -1.0, -1.0],
    ),
    "transitions with terms": (
        "def compute_reward(state, action, next_state):\n"
        "    terms = {'tapped': float(action.startswith('tap')), 'new': 3.0 * (state != next_state)}\n"
        "    return sum(terms.values()), terms",
        [4.0, 4.0, 0.0],
    ),
    "what a language model writes": (
        "from __future__ import annotations\nfrom typing import Optional\nimport json\n"
        "from collections import Counter\n"
        "WANTED = ('06h', '00m')\n\n\ndef _first(text: str, word: str) -> Optional[int]:\n"
        "    at = text.find(word)\n    return None if at < 0 else at\n\n\ndef reward(state: str) -> float:\n"
        "    counts = Counter(state.lower().split())\n    total = 0.0\n    while total < 0.5:\n        total += 0.25\n"
        "    if (at := _first(state, WANTED[0])) is not None and at > 0:\n        total += 1\n"
        "    try:\n        json.loads(state)\n    except json.JSONDecodeError:\n        total -= 0.25\n"
        "    return total + 0.0 * len(counts)",
        [1.25, 0.25, 0.25],
    ),
}


@pytest.mark.parametrize("name", GOOD)
def test_a_program_is_known_by_its_rewards(name: str, checker: TextChecker) -> None:
    source, rewards = GOOD[name]
    verdict, program = checker.check(source)
    assert verdict.failure is None and program is not None, str(verdict.failure)
    np.testing.assert_array_equal(program.rewards, np.asarray(rewards, np.float32))
    assert verdict.summary is not None and verdict.summary.digest == program.digest
    assert program.terms == (("tapped", "new") if "terms" in name else ())


def attack(body: str, head: str = "") -> str:
    lines = "\n".join(f"    {line}" for line in body.split("\n"))
    return f"{head}\n\n\ndef reward(state):\n{lines}"


REFUSED = {
    "file": (attack("return len([*open('/etc/passwd')])"), "guard", "the builtin 'open' is not available"),
    "socket": (attack("return socket.socket().fileno()", "import socket"), "guard", "import of 'socket'"),
    "process": (attack("return os.system('true')", "import os"), "guard", "import of 'os' is not allowed"),
    "import by name": (attack("return 1.0 if __import__('os') else 0.0"), "guard", "'__import__' is not available"),
    "a module inside another": (attack("return 1.0 if re.sys else 0.0", "import re"), "guard", "'re.sys' is not"),
    "a module as a value": (attack("return len(f'{re}')", "import re"), "guard", "is used as a value"),
    "classes of classes": (attack("return len(().__class__.__mro__)"), "guard", "attribute '__mro__' is not allowed"),
    "format": (attack("return len('{0.__class__}'.format(state))"), "guard", "attribute 'format' is not allowed"),
    "frames": (attack("return (0 for x in 'a').gi_frame.f_lineno"), "guard", "attribute 'f_lineno' is not allowed"),
    "eval": (attack("return eval(state)"), "guard", "the builtin 'eval' is not available"),
    "a builtin of its own": (attack("open = len\nreturn open(state)"), "guard", "nothing may be called 'open'"),
    "a file by the parser": (
        attack("return 1.0 if ET.parse('/etc/passwd') else 0.0", "import xml.etree.ElementTree as ET"),
        "guard", "'xml.etree.ElementTree.parse' is not available",
    ),
    "random": (attack("return random.random()", "import random"), "guard", "import of 'random' is not allowed"),
    "hash": (attack("return hash(state) % 7"), "guard", "the builtin 'hash' is not available"),
    "global": (attack("global n\nn = 1\nreturn 1"), "guard", "Global is not allowed"),
    "decorator": ("from typing import Any\n\n\n@len\ndef reward(state):\n    return 1.0", "guard", "decorators"),
    "bare except": (attack("try:\n    return 1 / 0\nexcept:\n    return 0.0"), "guard", "except without an"),
    "no reward": ("def helper(state):\n    return 1.0", "contract", "defines no reward"),
    "another signature": ("def reward(state, action):\n    return 1.0", "contract", "must take 1 positional argument"),
    "no Python": ("def reward(state)\n    return 1.0", "guard", "not valid Python"),
    "no Unicode": ("def reward(state):\n    return len('\ud800')", "guard", "not valid Unicode"),
    "too long": ("def reward(state):\n    return 1.0\n" + "#" * LIMITS.source_bytes, "limits", "characters"),
    "text": (attack("return state"), "contract", "returns str for a state"),
    "nothing": (attack("if 'Pause' in state:\n    return 1.0"), "contract", "returns NoneType for a state"),
    "NaN": (attack("return float('nan')"), "numeric", "the reward of a state is nan"),
    "infinite": (attack("return 1e308 * len(state)"), "numeric", "the reward of a state is inf"),
    "too large for a float": (attack("return 10 ** (400 + len(state))"), "numeric", "is inf"),
    "an exception": (attack("\nreturn 1.0 / (len(state) - 4)"), "trace", "line 6: ZeroDivisionError"),
    "endless loop": (attack("while True:\n    pass"), "killed", "too much processor time"),
    "endless loop that catches": (
        attack("while True:\n    try:\n        while True:\n            pass\n    except Exception:\n        pass"),
        "killed", "more than 1 s of processor time",
    ),
    "regular expression of exponential time": (
        attack("return 1.0 if re.search(r'(a+)+$', 'a' * 64 + '!') else 0.0", "import re"), "killed", "processor time",
    ),
    "memory": (attack("return len('a' * (1 << 30))"), "limits", "too much memory"),
    "memory, little by little": (
        attack("kept = [state]\nwhile True:\n    kept = kept + kept\nreturn len(kept)"), "limits", "too much memory",
    ),
    "recursion": (attack("return reward(state + 'a')"), "trace", "nested too deeply"),
    "counter of calls": (attack("SEEN[0] += 1\nreturn SEEN[0]", "SEEN = [0]"), "contract", "get another reward"),
    "first state only": (
        attack("SEEN.append(state)\nreturn float(SEEN[0] == state)", "SEEN = []"), "contract", "get another reward",
    ),
    "default that is kept": (
        "def paid(state, seen=[]):\n    seen.append(state)\n    return len(seen)\n\n\ndef reward(state):\n"
        "    return paid(state)", "contract", "get another reward",
    ),
    "a long sum": (attack("return " + " + ".join(["1"] * 400)), "limits", "nested more than 150 deep"),
    "a long chain": (
        attack("\n".join(f"{'el' * (k > 0)}if state == '{k}':\n    return {k}" for k in range(300)) + "\nreturn 1"),
        "limits", "line 297: it is nested more than 150 deep",
    ),
    "order of a set": (
        attack("return float(len(list({'Pause', 'Start', 'Reset', state})[0]))"), "trace", "the order of a set is used",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_a_hostile_or_faulty_program_is_refused_with_its_reason(name: str, checker: TextChecker) -> None:
    source, stage, message = REFUSED[name]
    verdict, program = checker.check(source)
    assert program is None and verdict.failure is not None
    assert verdict.failure.stage == stage and message in str(verdict.failure), str(verdict.failure)


def bomb(levels: int) -> str:
    """XML whose entities stand for ten times each other: 10 ** levels characters."""
    entities = [f'<!ENTITY e{k} "{f"&e{k - 1};" * 10}">' for k in range(1, levels + 1)]
    return f'<!DOCTYPE r [<!ENTITY e0 "a">{"".join(entities)}]><r>&e{levels};</r>'


def test_an_entity_bomb_ends_the_program_alone(checker: TextChecker) -> None:
    """In the data or in the program; and the checker goes on."""
    parse = "import xml.etree.ElementTree as ET\n\n\ndef reward(state):\n    return len(ET.fromstring({}).text or '')"
    own = f"BOMB = {bomb(9)!r}\n" + parse.format("BOMB")
    failure = checker.check(own)[0].failure
    assert failure is not None and failure.stage in ("trace", "limits", "killed")
    limits = Limits(wall_s=12.0, cpu_s=1, memory_mb=64, reply_bytes=1 << 20)
    with TextChecker(Transitions.of([("", "", bomb(9))]), limits, workers=1) as other:
        failure = other.check(parse.format("state"))[0].failure
        assert failure is not None and failure.stage in ("trace", "limits", "killed")
        assert other.check(attack("return len(state)"))[1] is not None
    assert checker.check(GOOD["parsed tree"][0])[1] is not None


def test_an_external_entity_is_not_fetched(checker: TextChecker) -> None:
    text = '<!DOCTYPE r [<!ENTITY e SYSTEM "file:///etc/passwd">]><r>&e;</r>'
    source = f"import xml.etree.ElementTree as ET\n\n\ndef reward(state):\n    return len(ET.fromstring({text!r}).text)"
    failure = checker.check(source)[0].failure
    assert failure is not None and "ParseError" in failure.message


def test_programs_are_checked_in_their_order_whatever_becomes_of_them(checker: TextChecker) -> None:
    sources = [GOOD["regular expression"][0], REFUSED["endless loop"][0], REFUSED["text"][0], GOOD["parsed tree"][0]]
    with TextChecker(checker.data, checker.limits, workers=2) as two:
        outcomes = two.check_many(sources)
    assert [program is not None for _, program in outcomes] == [True, False, False, True]


def test_the_digest_is_of_the_syntax() -> None:
    one = 'def reward(state):\n    """What it is."""\n    return 1.0  # always'
    assert digest_of(one) == digest_of("def reward(state):\n\n    return (1.0)\n")
    assert digest_of(one) != digest_of("def reward(state):\n    return 2.0")
    assert digest_of("def reward(state):\n    return f(1, [2])") != digest_of(
        "def reward(state):\n    return f([1], 2)"
    )
    assert digest_of('def reward(state):\n    "only a text"') != digest_of("def reward(state):\n    pass")


def test_the_worker_never_imports_jax_or_numpy() -> None:
    code = (
        "import sys\nfrom jaxreward.programs.host import worker\nworker.warm_up()\n"
        "sent = []\n"
        "limits = __import__('jaxreward.programs.limits', fromlist=['Limits']).Limits().as_json()\n"
        "worker.serve({'source': 'def reward(s):\\n    return isinstance(s, str)', 'limits': limits,"
        " 'backwards': False, 'texts': ['a'], 'transitions': [[0, 0, 0]]}, sent.append)\n"
        "assert sent[1]['rewards'] == [1.0], sent\n"
        "print(sorted({'jax', 'numpy', 'pydantic'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.stdout == "[]\n", done.stderr


def test_what_the_guard_lets_through_needs_no_sandbox_to_import() -> None:
    """Its names are its own, allowed builtins, or allowed names of modules."""
    for source, _ in GOOD.values():
        guarded = guard(source, Limits())
        exec(compile(guarded.tree, "own", "exec"), {"__name__": "own"})


def test_more_text_than_is_sent_is_refused() -> None:
    from jaxreward.errors import UserError

    with pytest.raises(UserError, match="give fewer episodes"):
        Transitions.of([("", "", "a" * 9_000_000), ("", "", "é" * 5_000_000)])
