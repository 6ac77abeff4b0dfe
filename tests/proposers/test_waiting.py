"""Waiting for endpoints that are busy or down, prompts that are given up, and several models."""

from __future__ import annotations

import random
import threading
import time
from email.utils import formatdate
from typing import Any

import pytest

from jaxreward.errors import EndCause
from jaxreward.proposers.llm.circuit_breaker import Clock
from tests.proposers.server import Answer, ChatServer, Fault
from tests.proposers.talk import GOOD, LONG, PRICE, PROGRAM, Talk, ids, rng_of, wanted

pytestmark = pytest.mark.usefixtures("key")


@pytest.mark.parametrize("header", ["2", "date"])
def test_retry_after_is_honoured(header):
    value = formatdate(time.time() + 2.2, usegmt=True) if header == "date" else header
    arrived: list[float] = []

    def script(_, n):
        arrived.append(time.monotonic())
        return Fault(429, "slow", headers={"Retry-After": value}) if n == 0 else Answer(GOOD)

    with ChatServer(script) as server:
        Talk(server.url, scale=0.2).one()
    waited = (arrived[1] - arrived[0]) / 0.2
    # Without the header it would have been less than 1 s; a date has whole seconds.
    assert waited > (1.0 if header == "date" else 2.0)


def test_retry_after_is_capped_by_the_longest_wait():
    with ChatServer([Fault(429, headers={"Retry-After": "86400"}), Answer(GOOD)]) as server:
        began = time.monotonic()
        assert Talk(server.url, wait_s=300.0).one().source
        assert 0.3 < time.monotonic() - began < 5.0


def test_an_endpoint_that_is_down_is_probed_by_one_call_at_a_time():
    """Eight fail, then nobody but the probe is sent; once it is answered the others follow."""

    def script(_, n):
        return Fault(503, "down") if n < 12 else Answer(GOOD)

    with ChatServer(script) as server:
        talk = Talk(server.url, scale=0.01, concurrency=8, retries=50)
        assert len(talk.ask(*ids(16)).proposals) == 16
        assert server.calls == 12 + 16
    waiting, back = talk.notes
    assert (
        waiting.startswith("waiting until ") and ": the endpoint is broken or overloaded (HTTP 503: down);" in waiting
    )
    assert "answers again after" in back
    assert any("; waiting for openai/mine until " in status for status in talk.statuses)
    assert talk.proposer.cost.spent.requests == 16


def test_a_run_does_not_wait_where_it_should_not():
    with ChatServer([Fault(503)]) as server:
        talk = Talk(server.url, wait_s=0.0, retries=2)
        stopped = talk.stopped("g0000-00")
        assert stopped.later and "gave no reply" in str(stopped) and server.calls == 3


def test_a_prompt_that_alone_is_never_answered_is_given_up_at_last():
    """Others are answered meanwhile: the endpoint is not down, and a run must not hang on one prompt."""

    def script(body, n):
        return Fault(500) if "g0000-01," in body["messages"][0]["content"] else Answer(GOOD)

    with ChatServer(script) as server:
        talk = Talk(server.url, wait_s=60.0, retries=1, concurrency=2)
        proposals = talk.ask(*ids(40)).proposals
        assert len(proposals) == 40 and 2 <= server.calls - 39 <= 4
        failed = proposals[1]
        assert failed.failure is not None and failed.failure.stage == "refused" and not failed.failure.hint
        assert failed.failure.message.startswith("this prompt alone got no reply in ")
        assert (failed.calls, failed.tokens) == (0, 0) and all(p.source for p in proposals if p is not failed)
        calls = server.calls
        assert Talk(server.url, talk.transcript).ask(*ids(40)).proposals == proposals and server.calls == calls


def test_the_last_prompt_is_given_up_too_if_others_were_answered_after_it_failed():
    def script(body, n):
        return Fault(500) if "g0000-00," in body["messages"][0]["content"] else Answer(GOOD, delay_s=1.0)

    with ChatServer(script) as server:
        talk = Talk(server.url, retries=1, concurrency=2)
        bad, good = talk.ask(*ids(2)).proposals
    assert good.source and bad.failure is not None and "this prompt alone got no reply" in bad.failure.message
    assert "answers again" in talk.notes[-1]


@pytest.mark.slow
@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
def test_hundreds_of_requests_with_faults_finish(stream):
    """30 % of the calls fail, each in a random way; no request is lost, doubled or unbooked."""
    rng = random.Random(0)
    faults: list[Answer | Fault] = [
        Fault(429, headers={"Retry-After": "1"}),
        Fault(500),
        Fault(503),
        Fault(drop=True),
        Fault(200, body=b"<html>", content_type="text/html"),
        Answer(LONG, cut_after=7),
    ]

    def script(_, n):
        return rng.choice(faults) if rng.random() < 0.3 else Answer(GOOD)

    n = 150 if stream else 400
    with ChatServer(script) as server:
        talk = Talk(server.url, stream=stream, concurrency=32, retries=30, wait_s=1e5)  # 100 s of the wall clock
        answers = talk.ask(*ids(n))
    assert [p.request_id for p in answers.proposals] == ids(n) and not answers.spent
    assert all(p.source.startswith(PROGRAM) for p in answers.proposals)
    assert len(talk.kept) == server.calls and len(talk.errors) > 0.2 * n
    spent = talk.proposer.cost.spent
    assert sum(p.tokens for p in answers.proposals) == spent.tokens
    assert sum(p.calls for p in answers.proposals) == spent.requests
    assert sum(p.cost_usd for p in answers.proposals) == pytest.approx(spent.usd)


def test_a_prompt_that_costs_money_each_time_is_not_asked_for_ever():
    """A gateway that gives up may have been charged for the call: without retries there is one."""

    def script(body, n):
        return Fault(504) if "g0000-01," in body["messages"][0]["content"] else Answer(GOOD, delay_s=0.02)

    with ChatServer(script) as server:
        talk = Talk(server.url, retries=0, concurrency=2)
        proposals = talk.ask(*ids(20)).proposals
    assert len(proposals) == 20 and sum(1 for p in proposals if p.failure) == 1
    assert sum(1 for e in talk.kept if e.error) <= 3


def test_an_endpoint_is_not_probed_with_the_prompt_that_fails():
    """One at a time, so that none was answered since: the next prompt tells that the endpoint is up."""

    def script(body, n):
        return Fault(504) if "g0000-00," in body["messages"][0]["content"] else Answer(GOOD)

    with ChatServer(script) as server:
        talk = Talk(server.url, retries=0, concurrency=1)
        answers = talk.ask(*ids(5))
    assert answers.stopped is None and [bool(p.failure) for p in answers.proposals] == [True, *[False] * 4]
    assert sum(1 for e in talk.kept if e.error) == 2


@pytest.mark.long
def test_an_outage_gives_no_prompt_up():
    """Those that were in flight when it began have seen others answered, and fail before it counts as down."""
    answered = threading.Event()

    def script(_, n):
        if n < 6 or n > 30:
            return Answer(GOOD)
        while not answered.wait(0.002):  # the six answers come before the first fault
            if sum(not e.error for e in talk.kept) >= 6:
                answered.set()
        if 6 < n < 10:  # one fails thrice before the others fail at all
            time.sleep(0.2)
        return Fault(503)

    with ChatServer(script) as server:
        talk = Talk(server.url, retries=2, concurrency=4, wait_s=1e5)
        proposals = talk.ask(*ids(20)).proposals
    assert len(proposals) == 20 and all(p.source for p in proposals)


def test_a_stop_counts_what_a_stream_brought():
    text = GOOD + "and so on, at length. " * 3000
    with ChatServer([Answer(text, drip_s=0.001)]) as server:
        talk = Talk(server.url, stream=True, max_tokens=5)
        began = time.monotonic()
        talk.stop = lambda: time.monotonic() > began + 1.0
        assert talk.ask("g0000-00").proposals == ()
    (cut,) = talk.kept
    assert cut.error.startswith("cut off") and cut.estimated and cut.completion_tokens > 100


def test_a_cap_holds_where_calls_break_after_they_were_sent():
    """The worst case: the model wrote all that it may each time, and nobody said so."""
    with ChatServer([Fault(drop=True)]) as server:
        talk = Talk(server.url, max_usd=0.005, max_tokens=500, retries=100)
        answers = talk.ask(*ids(3))
    assert answers.spent and server.calls <= 0.005 / (500 * 2e-6)
    assert talk.proposer.cost.spent.usd <= 0.005


# ---- several models


TWO: dict[str, Any] = {"model": ("openai/mine", "openai/gone"), "price": (PRICE, "openai/gone=1,1")}


@pytest.mark.long
def test_a_model_that_is_down_does_not_hold_those_that_are_up():
    def script(body, n):
        return Fault(503, "down") if body["model"] == "gone" else Answer(GOOD)

    with ChatServer(script) as server:
        talk = Talk(server.url, scale=0.01, concurrency=2, wait_s=300.0, **TWO)
        answers = talk.ask(*ids(30))
        served = [seen.body["model"] for seen in server.seen]
    models = [talk.proposer.call_for(request, rng).model for request, rng in _drawn(30)]
    up = models.count("openai/mine")
    assert 5 < up < 25 and len(answers.proposals) == up == served.count("mine")
    assert all(p.source and p.model == "openai/mine" for p in answers.proposals)
    assert answers.stopped is not None and answers.stopped.later and answers.stopped.cause is EndCause.ENDPOINT
    assert str(answers.stopped).startswith("openai/gone at ") and "gave no reply for 300 s" in str(answers.stopped)
    last = max(i for i, model in enumerate(served) if model == "mine")
    assert served[last:].count("gone") > 1, "the others were served while it was waited for"


def _drawn(n):
    requests = [wanted(id) for id in ids(n)]
    return [(request, rng_of(request)) for request in requests]


def test_a_model_that_comes_back_is_asked_on():
    def script(body, n):
        down = body["model"] == "gone" and n < 25
        return Fault(503, "down") if down else Answer(GOOD)

    with ChatServer(script) as server:
        talk = Talk(server.url, concurrency=2, wait_s=1e5, retries=1, **TWO)
        answers = talk.ask(*ids(40))
    assert answers.stopped is None and len(answers.proposals) == 40


# ---- how long


@pytest.mark.parametrize("wait_s", [float("inf"), 1e18])
def test_an_endpoint_may_be_waited_for_for_ever(wait_s):
    with ChatServer(lambda _, n: Fault(503, "down") if n < 8 else Answer(GOOD)) as server:
        talk = Talk(server.url, wait_s=wait_s)
        assert talk.one().source
    assert talk.notes[0].startswith("waiting until it answers for openai/mine") and "the run ends" not in talk.notes[0]
    assert any("waiting for openai/mine until it answers" in status for status in talk.statuses)


def test_a_time_beyond_today_has_a_date():
    assert len(Clock().of_day(60.0)) == 8 and len(Clock().of_day(1e6)) == 19 and Clock().of_day(1e300) == ""


def test_an_endpoint_that_asks_to_wait_is_asked_by_nobody():
    arrived: list[float] = []

    def script(_, n):
        arrived.append(time.monotonic())
        return Fault(429, "slow", headers={"Retry-After": "5"}) if n == 0 else Answer(GOOD, delay_s=0.01)

    with ChatServer(script) as server:
        assert len(Talk(server.url, scale=0.1, concurrency=1).ask(*ids(5)).proposals) == 5
    assert arrived[1] - arrived[0] > 0.5


@pytest.mark.parametrize("value", ["inf", "nan", "-5", "soon", "Fri, 31 Dec 99999 23:59:59 GMT", ""])
def test_a_retry_after_that_makes_no_sense_is_left_alone(value):
    with ChatServer([Fault(429, "slow", headers={"Retry-After": value}), Answer(GOOD)]) as server:
        began = time.monotonic()
        assert Talk(server.url, wait_s=float("inf")).one().source
        assert time.monotonic() - began < 5.0


def test_stopping_does_not_wait_for_the_look_up_of_a_name(monkeypatch):
    import socket

    asked = threading.Event()
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: asked.set() or time.sleep(6.0) or [])
    talk = Talk("http://endpoint.invalid/v1")
    talk.stop = asked.is_set
    began = time.monotonic()
    assert talk.ask("g0000-00").proposals == () and asked.is_set()
    assert time.monotonic() - began < 4.0
