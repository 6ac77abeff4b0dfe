"""The fault campaign: what a server may do, what the user is told, what is booked, and that nothing is lost."""

from __future__ import annotations

import random
import re
import time
from dataclasses import dataclass
from email.utils import formatdate
from pathlib import Path

import pytest

from jaxreward.errors import ProposerStopped
from jaxreward.proposers.faults import Origin, explain
from jaxreward.proposers.reply import REPLY_LIMIT
from tests.proposers.server import Answer, ChatServer, Fault, closed_port
from tests.proposers.talk import GOOD, KEY, PROGRAM, Talk, ids

LONG = GOOD.replace("```python\n", "```python\n" + "# a long explanation of what follows\n" * 40)


@pytest.fixture(autouse=True)
def desk(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("OPENAI_API_KEY", KEY)


@dataclass(frozen=True)
class Case:
    """A fault that passes: it is said in `sentence`, and the call after it is answered.

    `booked` is whether its tokens are (as estimates), `streamed` and `whole` in which modes it is met.
    """

    step: Answer | Fault
    sentence: str
    booked: bool = False
    received: bool = False
    streamed: bool = True
    whole: bool = True
    timeout_s: float = 10.0


PASSING = {
    "429": Case(Fault(429, "slow down"), "too many requests (HTTP 429: slow down)"),
    "500": Case(Fault(500), "the endpoint is broken or overloaded (HTTP 500: something broke)"),
    "502": Case(
        Fault(502, body=b"<html>nginx</html>", content_type="text/html"),
        "the endpoint is broken or overloaded (HTTP 502: a page of HTML)",
    ),
    "503": Case(Fault(503), "the endpoint is broken or overloaded (HTTP 503: something broke)"),
    "529": Case(Fault(529), "the endpoint is broken or overloaded (HTTP 529: something broke)"),
    "504": Case(Fault(504), "a gateway gave up waiting for the model (HTTP 504)", booked=True),
    "hang": Case(Fault(hang=True), "no complete reply within 0.4 s", booked=True, timeout_s=0.4),
    "late": Case(Answer(GOOD, delay_s=5.0), "no complete reply within 0.4 s", booked=True, timeout_s=0.4),
    "drip": Case(
        Answer(LONG, drip_s=0.1), "no complete reply within 0.5 s", True, received=True, whole=False, timeout_s=0.5
    ),
    "dropped": Case(Fault(drop=True), "the connection broke before the reply was complete", booked=True),
    "broken body": Case(
        Answer(LONG, cut_after=300), "the connection broke before the reply was complete", booked=True, streamed=False
    ),
    "broken stream": Case(
        Answer(LONG, cut_after=8),
        "the connection broke before the reply was complete",
        True,
        received=True,
        whole=False,
    ),
    "stream without an end": Case(
        Answer(GOOD, finish="", usage=None), "the stream ended before the reply did", True, received=True, whole=False
    ),
    "malformed": Case(
        Fault(200, body=b'{"choices": [{"mess'), "what came back is no reply of a chat API", booked=True, streamed=False
    ),
    "malformed stream": Case(
        Fault(200, body=b'data: {"choices": [{"mess\n\n', content_type="text/event-stream"),
        "what came back is no reply of a chat API",
        booked=True,
        whole=False,
    ),
    "html": Case(
        Fault(200, body=b"<html>log in</html>", content_type="text/html"),
        "what came back is no reply of a chat API (a page of HTML)",
        booked=True,
        streamed=False,
    ),
    "html stream": Case(
        Fault(200, body=b"<html>log in</html>", content_type="text/html"),
        "the stream held no reply",
        booked=True,
        whole=False,
    ),
    "nothing": Case(Fault(200, body=b""), "what came back is no reply of a chat API", booked=True, streamed=False),
    "a list": Case(Fault(200, body=b"[1, 2]"), "what came back is no reply of a chat API", booked=True, streamed=False),
    "no choices": Case(Answer(choices=False), "the response holds no choices", booked=True, streamed=False),
    "no choices, streamed": Case(Answer(choices=False), "the stream held no reply", booked=True, whole=False),
}


MODES = [(n, s) for n, case in PASSING.items() for s in (False, True) if (case.streamed if s else case.whole)]


@pytest.mark.parametrize(("name", "stream"), MODES, ids=[f"{n}-{'stream' if s else 'whole'}" for n, s in MODES])
def test_a_fault_that_passes(name, stream):
    case = PASSING[name]
    with ChatServer([case.step, Answer(GOOD)]) as server:
        talk = Talk(server.url, stream=stream, timeout_s=case.timeout_s)
        proposal = talk.one()
    assert server.calls == 2 and proposal.source.startswith(PROGRAM) and proposal.failure is None
    failed, replied = talk.transcript.kept
    assert failed.error.startswith(case.sentence), failed.error
    assert failed.messages == () and failed.reply == "" and failed.finish == "" and replied.turn == 1
    tokens = failed.prompt_tokens + failed.completion_tokens
    assert bool(tokens) == case.booked == failed.estimated and bool(failed.completion_tokens) == case.received
    assert (proposal.calls, proposal.tokens) == (1 + case.booked, 150 + tokens)
    assert proposal.cost_usd == pytest.approx(2e-4 + (failed.cost_usd or 0.0)) and bool(failed.cost_usd) == case.booked
    assert talk.proposer.bill.spent.tokens == proposal.tokens and talk.notes == []


def test_an_endpoint_that_cannot_be_reached():
    talk = Talk(f"http://127.0.0.1:{closed_port()}/v1", wait_s=300.0)
    with pytest.raises(ProposerStopped) as stopped:
        talk.ask(*ids(3))
    assert stopped.value.later and "gave no reply for 300 s" in str(stopped.value)
    assert "the endpoint cannot be reached (Connection refused)" in str(stopped.value)
    assert str(stopped.value).endswith("nothing is lost, go on with --resume")
    assert talk.proposer.bill.spent.requests == 0 and all(not e.prompt_tokens for e in talk.transcript.kept)
    (note,) = talk.notes
    assert note.startswith("waiting until ") and " for openai/mine at http://127.0.0.1:" in note
    resumes(talk, 3)


def resumes(talk: Talk, n: int = 1) -> None:
    """The same run on a server that works."""
    with ChatServer([Answer(GOOD)]) as server:
        after = Talk(server.url, talk.transcript)
        assert all(p.source.startswith(PROGRAM) for p in after.ask(*ids(n)).proposals)
        assert server.calls == n


ENDING = {
    "401": (Fault(401, "Incorrect API key"), "does not accept the key (Incorrect API key): set OPENAI_API_KEY in the"),
    "403": (Fault(403, "not for you"), "refuses access (not for you): use a key that may use this model"),
    "404 model": (
        Fault(404, "The model `mine` does not exist"),
        "is not there (The model `mine` does not exist): check",
    ),
    "400": (
        Fault(400, "top_p is no number"),
        "rejects the request (HTTP 400: top_p is no number): change or leave out",
    ),
    "422": (Fault(422, "unknown field"), "rejects the request (HTTP 422: unknown field): change or leave out"),
    "402": (Fault(402, "pay"), "has no credit left (pay): add some, then go on with --resume"),
    "quota": (Fault(429, "You exceeded your current quota", code="insufficient_quota"), "has no credit left"),
    "context": (
        Fault(400, "This model's maximum context length is 4096 tokens", code="context_length_exceeded"),
        "the prompt is too long for openai/mine at http",
    ),
    "413": (Fault(413, "too large"), "the prompt is too long for openai/mine at http"),
}


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize("name", ENDING)
def test_a_fault_that_ends_the_run(name, stream):
    step, sentence = ENDING[name]
    with ChatServer([step]) as server:
        talk = Talk(server.url, stream=stream, concurrency=2)
        with pytest.raises(ProposerStopped) as stopped:
            talk.ask(*ids(6))
        assert server.calls <= 2
    assert not stopped.value.later and sentence in str(stopped.value) and server.url in str(stopped.value)
    assert talk.proposer.bill.spent.tokens == 0 and all(e.error and not e.finish for e in talk.transcript.kept)
    resumes(talk)


POLICY = Fault(400, "Your request was rejected by our safety system", code="content_policy_violation")
TOO_LONG = Fault(400, "This model's maximum context length is 4096 tokens", type="invalid_request_error")


@pytest.mark.parametrize(("step", "words"), [(POLICY, "content policy"), (TOO_LONG, "prompt is too long")])
def test_a_prompt_that_is_refused_fails_alone(step, words):
    """The last of three; nothing is charged, and a resumed run does not ask again."""
    with ChatServer([Answer(GOOD), Answer(GOOD), step]) as server:
        talk = Talk(server.url, concurrency=1)
        *good, refused = talk.ask(*ids(3)).proposals
        assert all(p.source for p in good)
        assert refused.failure is not None and refused.failure.stage == "reply" and words in refused.failure.message
        assert (refused.calls, refused.tokens, refused.cost_usd) == (0, 0, 0.0)
        assert Talk(server.url, talk.transcript).ask(*ids(3)).proposals[2] == refused and server.calls == 3


def test_what_was_answered_while_another_model_ends_the_run_is_kept():
    def script(body, n):
        return Answer(GOOD, delay_s=0.3) if body["model"] == "mine" else Fault(404, "no such model")

    with ChatServer(script) as server:
        talk = Talk(server.url, model=("openai/mine", "openai/gone"), price=(), concurrency=20)
        with pytest.raises(ProposerStopped, match="openai/gone"):
            talk.ask(*ids(20))
    assert sum(1 for e in talk.transcript.kept if not e.error) >= 3


REPLIES = {
    "empty": (Answer(""), "the reply is empty"),
    "null": (Answer(None), "the reply is empty"),
    "truncated": (
        Answer("```python\ndef get_observation(state):\n    return [", finish="length"),
        "cut off at the token",
    ),
    "prose": (Answer("I would reward the agent for coming closer."), "there is no program in the reply"),
    "refusal": (Answer("I cannot help with that.", finish="content_filter"), "there is no program in the reply"),
    "2 MB of prose": (Answer("word " * 400_000), "cut off"),
}


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize("name", REPLIES)
def test_a_reply_without_a_program_is_a_reply(name, stream):
    step, sentence = REPLIES[name]
    with ChatServer([step]) as server:
        talk = Talk(server.url, stream=stream)
        proposal = talk.one()
        assert Talk(server.url, talk.transcript).one() == proposal and server.calls == 1
    assert proposal.failure is not None and proposal.failure.stage == "reply" and sentence in proposal.failure.message
    assert proposal.calls == 1 and proposal.tokens and talk.errors == []
    (exchange,) = talk.transcript.kept
    assert len(exchange.reply) <= REPLY_LIMIT
    cut_stream = stream and name.startswith("2 MB")
    assert exchange.estimated == cut_stream and (proposal.tokens == 150) != cut_stream


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize(
    "step",
    [
        Answer(GOOD.replace("\n", "\\n").replace("Here", "\\ud800 \\udc00x \\ud83d\\ude00 \\u0000"), raw_json=True),
        Answer("\u202e\u2066 שלום \ufeff " + GOOD),
        Answer(GOOD, bom=True),
        Answer(GOOD.replace("\n", "\r\n")),
    ],
    ids=["surrogates", "right to left", "byte order mark", "carriage returns"],
)
def test_oddities_of_unicode(step, stream):
    with ChatServer([step]) as server:
        proposal = Talk(server.url, stream=stream).one()
    assert proposal.source.startswith(PROGRAM) and server.calls == 1


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
def test_tokens_that_the_provider_does_not_count_are_estimated(stream):
    with ChatServer([Answer(GOOD, usage=None)]) as server:
        talk = Talk(server.url, stream=stream)
        proposal = talk.one()
    (exchange,) = talk.transcript.kept
    assert exchange.estimated and 20 < exchange.completion_tokens < 60 and exchange.prompt_tokens
    assert proposal.tokens == exchange.prompt_tokens + exchange.completion_tokens and proposal.calls == 1


# ---- waiting


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
    assert talk.proposer.bill.spent.requests == 16


def test_a_run_does_not_wait_where_it_should_not():
    with ChatServer([Fault(503)]) as server:
        talk = Talk(server.url, wait_s=0.0, retries=2)
        with pytest.raises(ProposerStopped, match="gave no reply") as stopped:
            talk.one()
        assert stopped.value.later and server.calls == 3
    resumes(talk)


def test_a_prompt_that_alone_is_never_answered_is_given_up_at_last():
    """Others are answered meanwhile: the endpoint is not down, and a run must not hang on one prompt."""

    def script(body, n):
        return Fault(500) if "g0000-01," in body["messages"][0]["content"] else Answer(GOOD)

    with ChatServer(script) as server:
        talk = Talk(server.url, wait_s=60.0, retries=1, concurrency=2)
        proposals = talk.ask(*ids(40)).proposals
        assert len(proposals) == 40
        failed = proposals[1]
        assert failed.failure is not None and "this prompt alone got no reply in 60 s" in failed.failure.message
        assert (failed.calls, failed.tokens) == (0, 0) and all(p.source for p in proposals if p is not failed)
        calls = server.calls
        assert Talk(server.url, talk.transcript).ask(*ids(40)).proposals == proposals and server.calls == calls


def test_the_last_prompt_is_given_up_too_if_others_were_answered_after_it_failed():
    def script(body, n):
        return Fault(500) if "g0000-00," in body["messages"][0]["content"] else Answer(GOOD, delay_s=0.2)

    with ChatServer(script) as server:
        talk = Talk(server.url, retries=1, concurrency=2)
        bad, good = talk.ask(*ids(2)).proposals
    assert good.source and bad.failure is not None and "this prompt alone got no reply in 900 s" in bad.failure.message
    assert talk.notes[-1].startswith("waiting until ")  # and nobody claims that it answered


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
def test_a_thousand_requests_with_faults_finish(stream):
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

    n = 300 if stream else 1000
    with ChatServer(script) as server:
        talk = Talk(server.url, stream=stream, concurrency=32, wait_s=1e5)  # 100 s of the wall clock
        answers = talk.ask(*ids(n))
    assert [p.request_id for p in answers.proposals] == ids(n) and not answers.spent
    assert all(p.source.startswith(PROGRAM) for p in answers.proposals)
    assert len(talk.transcript.kept) == server.calls and len(talk.errors) > 0.2 * n
    spent = talk.proposer.bill.spent
    assert sum(p.tokens for p in answers.proposals) == spent.tokens
    assert sum(p.calls for p in answers.proposals) == spent.requests
    assert sum(p.cost_usd for p in answers.proposals) == pytest.approx(spent.usd)


# ---- secrets, and what the campaign does not reach


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
def test_a_key_that_comes_back_is_written_nowhere(stream):
    def script(body, n):
        sent = server.seen[n].headers["authorization"]
        if n < 6:
            return Fault((500, 429)[n % 2], f"you sent {sent}")
        return Answer(GOOD.replace("Here", f"{sent} Here")) if n < 9 else Fault(401, f"wrong: {sent}")

    with ChatServer(script) as server:
        talk = Talk(server.url, stream=stream, concurrency=1)
        talk.ask(*ids(3))
        with pytest.raises(ProposerStopped, match=r"wrong: Bearer \*\*\*") as stopped:
            talk.one("g0001-00")
    written = [e.model_dump_json() for e in talk.transcript.kept]
    written += [*talk.notes, *talk.statuses, str(stopped.value), repr(stopped.value)]
    assert KEY not in "".join(written) and "Bearer ***" in "".join(written) and talk.notes


def test_an_error_that_nobody_knows_is_explained_all_the_same():
    fault = explain(KeyError("surprise"), Origin("openai/mine"))
    assert fault.kind == "again" and fault.charged and "KeyError" in str(fault) and "surprise" in str(fault)


def test_the_page_says_what_is_said():
    page = (Path(__file__).resolve().parents[2] / "docs" / "llm.md").read_text()
    for sentence in [case.sentence for case in PASSING.values()] + [sentence for _, sentence in ENDING.values()]:
        start = re.sub(r"[\d.]+ s$", "180 s", sentence.partition(" (")[0].partition(" for openai/")[0])
        assert start in page, start
