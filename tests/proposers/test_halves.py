"""Halves of an interface: the one that was not asked for goes, the one that is missing is named."""

from __future__ import annotations

import ast

import pytest

from jaxreward.proposers.replies.answer import fit
from jaxreward.proposers.replies.program_reply import Reply
from jaxreward.records import Failure

HELPER = "import jax\nimport jax.numpy as jnp\n\nSIZE = 9  # cells\n\n\ndef place(state):\n    return state.x / SIZE\n"
OBSERVE = "# What the agent sees.\n# All of it.\n@jax.jit\ndef get_observation(state):\n    return place(state)[None]\n"
REWARD = "def compute_reward(state, action, next_state):\n    # nearer\n    return place(next_state)\n"
GRACE = "def reward(state):\n    return place(state)\n"


def program(*parts: str) -> Reply:
    return Reply("\n\n".join(f"{part}" for part in (HELPER, *parts)), "a thought")


def test_what_was_not_asked_for_is_cut():
    for parts in ((OBSERVE, REWARD), (REWARD, OBSERVE)):
        assert fit(program(*parts), "reward") == program(REWARD)
        assert fit(program(*parts), "observation") == program(OBSERVE)
        assert fit(program(*parts), "both") == program(*parts)
    assert fit(program(GRACE, OBSERVE), "observation") == program(OBSERVE)
    assert fit(program(OBSERVE, GRACE), "reward") == program(GRACE)
    assert fit(program(OBSERVE, REWARD, GRACE), "observation") == program(OBSERVE)


def test_what_is_as_asked_stays_as_it_is():
    helper = "def reward(state, scale):\n    return scale\n"
    for reply in (program(OBSERVE, helper), program(OBSERVE + "\n\n\n\nX = 1")):
        assert fit(reply, "observation") is reply
    between = program("A = 1\n", REWARD, "B = 2\n", OBSERVE, "C = 3\n")
    cut = fit(between, "observation")
    assert isinstance(cut, Reply) and "compute_reward" not in cut.source and cut.thought == "a thought"
    assert [node.targets[0].id for node in ast.parse(cut.source).body if isinstance(node, ast.Assign)] == (  # type: ignore[attr-defined]
        ["SIZE", "A", "B", "C"]
    )


@pytest.mark.parametrize("parts", [(GRACE, OBSERVE), (OBSERVE, REWARD)])
def test_where_both_may_change_nothing_is_cut(parts: tuple[str, ...]):
    reply = program(*parts)
    assert fit(reply, "both") is reply


def test_what_is_missing_is_named():
    def message(reply: Reply, evolve) -> str:
        found = fit(reply, evolve)
        assert isinstance(found, Failure) and found.stage == "reply" and found.hint
        return found.message

    assert message(program(REWARD), "both") == message(program(GRACE), "both")
    assert message(program(GRACE), "both") == "get_observation is missing: send both functions"
    assert message(program(OBSERVE), "both") == "compute_reward is missing: send both functions"
    assert message(program(), "both") == "get_observation and compute_reward are missing: send both functions"
    assert message(program(OBSERVE), "reward") == "compute_reward is missing: send the function asked for"
    assert message(program(REWARD), "observation") == "get_observation is missing: send the function asked for"


def test_what_does_not_parse_is_left_to_the_checks():
    reply = Reply("def get_observation(state):\n    return (\n")
    assert fit(reply, "both") is fit(reply, "reward") is reply
