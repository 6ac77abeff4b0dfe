"""Votes as people write them, and the remarks that follow."""

from __future__ import annotations

import pytest

from jaxreward.proposers.human.vote import read_vote
from jaxreward.records import Failure
from tests.proposers.test_words import HOSTILE


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
        ("no 2", "second"),
        ("The left agent is better: it does not wait", "first\nit does not wait"),
    ],
)
def test_a_vote_is_read_from_any_usual_form(text: str, vote: str):
    assert read_vote(text) == vote
    assert read_vote(vote) == vote
    assert len(str(read_vote(f"{text} {'x ' * 9_000}"))) <= 1_010


@pytest.mark.parametrize(
    "text",
    ["better", "123", "abc", "?", "the agent", "the left one is worse, right", "A bit better: right",
     "A robot in the right picture is better", "one agent turns, second better", "both fail; but left a bit better",
     "left one is worse", "left is worse, take right", "left is no better", "the left agent is no better",
     "right does no better", "no", "no. 1"],
)  # fmt: skip
def test_a_reply_that_does_not_begin_with_a_vote_is_a_failure(text: str):
    vote = read_vote(text)
    assert isinstance(vote, Failure) and vote.stage == "reply" and vote.hint and "does not begin" in vote.message


def test_an_empty_vote_is_a_failure():
    vote = read_vote(" \n")
    assert isinstance(vote, Failure) and vote.stage == "reply" and vote.message == "the reply is empty"


def test_nothing_raises_and_nothing_hangs():
    for piece in HOSTILE:
        for text in (piece * (200_000 // len(piece)), f"- {piece * (100_000 // len(piece))}: [0.5"):
            read_vote(text)
