"""The fault campaign: what a server may do, what the user sees, what is charged, and that nothing is lost."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest

from jaxreward.errors import CallProblem, EndCause
from jaxreward.proposers.llm.call_errors import Origin, explain
from jaxreward.proposers.replies.program_reply import REPLY_LIMIT
from tests.proposers.server import Answer, ChatServer, Fault, closed_port
from tests.proposers.talk import GOOD, LONG, PROGRAM, Talk, ids

pytestmark = pytest.mark.usefixtures("key")


@dataclass(frozen=True)
class Case:
    """A fault that passes: it is said in `sentence`, and the call after it is answered.

    `booked` is whether the most that it can have cost is, `streamed` and `whole` in which modes it is met.
    """

    step: Answer | Fault
    sentence: str
    booked: bool = False
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
    "drip": Case(Answer(LONG, drip_s=0.1), "no complete reply within 0.5 s", True, whole=False, timeout_s=0.5),
    "dropped": Case(Fault(drop=True), "the connection broke before the reply was complete", booked=True),
    "broken body": Case(
        Answer(LONG, cut_after=300), "the connection broke before the reply was complete", booked=True, streamed=False
    ),
    "broken stream": Case(
        Answer(LONG, cut_after=8),
        "the connection broke before the reply was complete",
        True,
        whole=False,
    ),
    "stream without an end": Case(
        Answer(GOOD, finish="", usage=None), "the stream ended before the reply did", True, whole=False
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
def test_transient_faults_are_retried(name, stream):
    case = PASSING[name]
    with ChatServer([case.step, Answer(GOOD)]) as server:
        talk = Talk(server.url, stream=stream, timeout_s=case.timeout_s)
        proposal = talk.one()
    assert server.calls == 2 and proposal.source.startswith(PROGRAM) and proposal.failure is None
    failed, replied = talk.kept
    assert failed.error.startswith(case.sentence), failed.error
    assert failed.messages == () and failed.reply == "" and failed.finish == "" and replied.turn == 1
    tokens = failed.prompt_tokens + failed.completion_tokens
    assert bool(tokens) == case.booked == failed.estimated
    assert failed.completion_tokens == (talk.proposer.settings.max_tokens if case.booked else 0)
    assert (proposal.calls, proposal.tokens) == (1 + case.booked, 150 + tokens)
    assert proposal.cost_usd == pytest.approx(2e-4 + (failed.cost_usd or 0.0)) and bool(failed.cost_usd) == case.booked
    assert talk.proposer.cost.spent.tokens == proposal.tokens and talk.notes == []


def test_an_endpoint_that_cannot_be_reached_ends_the_run_resumably():
    talk = Talk(f"http://127.0.0.1:{closed_port()}/v1", wait_s=300.0)
    stopped = talk.stopped(*ids(3))
    assert stopped.later and "gave no reply for 300 s" in str(stopped)
    assert stopped.problem is CallProblem.UNREACHABLE
    assert "the endpoint cannot be reached (Connection refused)" in str(stopped)
    assert str(stopped).endswith("nothing is lost, go on with --resume")
    assert talk.proposer.cost.spent.requests == 0 and all(not e.prompt_tokens for e in talk.kept)
    (note,) = talk.notes
    assert note.startswith("waiting until ") and " for openai/mine at http://127.0.0.1:" in note
    resumes(talk, 3)


def test_a_prompt_that_is_always_too_slow_is_given_up_once_the_run_was_resumed():
    """Its model has answered others: alone, it would stop the run again and again."""
    with ChatServer([Answer(GOOD), Answer(GOOD, delay_s=5.0)]) as server:
        first = Talk(server.url, timeout_s=0.3, wait_s=20.0, concurrency=1)
        stopped = first.stopped(*ids(2))
        assert stopped.later and stopped.problem is CallProblem.TIMEOUT
        again = Talk(server.url, first.transcript, timeout_s=0.3, wait_s=20.0, concurrency=1)
        done, late = again.ask(*ids(2)).proposals
    assert done.source.startswith(PROGRAM) and late.failure is not None and not late.source
    assert again.kept[-1].finish == "unanswered" and "as before the run was resumed" in again.kept[-1].error


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
    "policy": (
        Fault(400, "rejected by our safety system", code="content_policy_violation"),
        "refuses this prompt by its content policy (rejected by our safety system): use another --model",
    ),
}
PROBLEMS = {
    "401": CallProblem.KEY, "403": CallProblem.ACCESS, "404 model": CallProblem.NOT_FOUND,
    "400": CallProblem.REJECTED, "422": CallProblem.REJECTED, "402": CallProblem.CREDIT, "quota": CallProblem.CREDIT,
    "context": CallProblem.TOO_LONG, "413": CallProblem.TOO_LONG, "policy": CallProblem.REFUSED,
}  # fmt: skip


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize("name", ENDING)
def test_permanent_faults_end_the_run(name, stream):
    step, sentence = ENDING[name]
    with ChatServer([step]) as server:
        talk = Talk(server.url, stream=stream, concurrency=2)
        stopped = talk.stopped(*ids(6))
        assert server.calls <= 2
    assert not stopped.later and sentence in str(stopped) and server.url in str(stopped)
    assert stopped.problem is PROBLEMS[name]
    assert talk.proposer.cost.spent.tokens == 0 and all(e.error and not e.finish for e in talk.kept)
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
        assert refused.failure is not None and refused.failure.stage == "refused" and words in refused.failure.message
        assert not refused.failure.hint and "127.0.0.1" not in refused.failure.message
        assert (refused.calls, refused.tokens, refused.cost_usd) == (0, 0, 0.0)
        assert Talk(server.url, talk.transcript).ask(*ids(3)).proposals[2] == refused and server.calls == 3


def test_what_was_answered_while_another_model_ends_the_run_is_kept():
    def script(body, n):
        return Answer(GOOD, delay_s=0.3) if body["model"] == "mine" else Fault(404, "no such model")

    with ChatServer(script) as server:
        talk = Talk(server.url, model=("openai/mine", "openai/gone"), price=(), concurrency=20)
        answers = talk.ask(*ids(20))
    assert answers.stopped is not None and answers.stopped.cause is EndCause.ENDPOINT
    assert "openai/gone" in str(answers.stopped) and len(answers.proposals) >= 3
    assert len(answers.proposals) == sum(1 for e in talk.kept if not e.error)


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
    (exchange,) = talk.kept
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
def test_unusual_unicode_does_not_lose_the_program(step, stream):
    with ChatServer([step]) as server:
        proposal = Talk(server.url, stream=stream).one()
    assert proposal.source.startswith(PROGRAM) and server.calls == 1


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
def test_tokens_that_the_provider_does_not_count_are_estimated(stream):
    with ChatServer([Answer(GOOD, usage=None)]) as server:
        talk = Talk(server.url, stream=stream)
        proposal = talk.one()
    (exchange,) = talk.kept
    assert exchange.estimated and 20 < exchange.completion_tokens < 60 and exchange.prompt_tokens
    assert proposal.tokens == exchange.prompt_tokens + exchange.completion_tokens and proposal.calls == 1


def usage(value: object) -> Fault:
    """A complete reply with whatever stands where the counts of tokens belong."""
    message = {"role": "assistant", "content": GOOD}
    body = {"id": "1", "object": "chat.completion", "created": 1, "model": "mine", "usage": value}
    return Fault(200, body=json.dumps({**body, "choices": [{"message": message, "finish_reason": "stop"}]}).encode())


@pytest.mark.parametrize("value", [{"prompt_tokens": 1.5}, {"prompt_tokens": "many"}, "many", [1]], ids=str)
def test_a_reply_that_litellm_cannot_read_is_charged(value):
    """litellm calls it an error 500 of the server's; it is a reply that may cost as much as any."""
    with ChatServer([usage(value), Answer(GOOD)]) as server:
        talk = Talk(server.url)
        assert talk.one().calls == 2
    failed = talk.kept[0]
    assert failed.error.startswith("what came back is no reply of a chat API") and "HTTP 500" not in failed.error
    assert failed.estimated and failed.completion_tokens == 8192 and failed.prompt_tokens


@pytest.mark.parametrize(
    ("value", "prompt", "completion"),
    [
        ({"prompt_tokens": 7}, 7, None),
        ({"prompt_tokens": None, "completion_tokens": 5}, None, 5),
        ({"prompt_tokens": 0, "completion_tokens": 5}, None, 5),
        ({"prompt_tokens": -3, "completion_tokens": 5}, None, 5),
        ({"prompt_tokens": 10**30, "completion_tokens": 5}, None, 5),
        ({"prompt_tokens": 7, "completion_tokens": 10**30}, 7, None),
        ({"prompt_tokens": 7, "completion_tokens": 5}, 7, 5),
        ({}, None, None),
    ],
    ids=str,
)
@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
def test_counts_that_cannot_be_are_estimated(value, prompt, completion, stream):
    counts = (prompt or 0, completion or 0)
    step = Answer(GOOD, usage=counts) if stream else usage(value)
    with ChatServer([step]) as server:
        talk = Talk(server.url, stream=stream)
        assert talk.one().source
    (exchange,) = talk.kept
    assert exchange.estimated == (prompt is None or completion is None)
    assert exchange.prompt_tokens == prompt or (prompt is None and 40 < exchange.prompt_tokens < 80)
    assert exchange.completion_tokens == completion or (completion is None and 20 < exchange.completion_tokens < 60)


def test_unknown_errors_are_explained_and_retried():
    fault = explain(KeyError("surprise"), Origin("openai/mine"))
    assert fault.kind == "retry" and fault.charged and "KeyError" in str(fault) and "surprise" in str(fault)


@pytest.mark.parametrize(
    ("status", "problem"),
    [
        (429, CallProblem.RATE_LIMIT),
        (500, CallProblem.OVERLOADED),
        (503, CallProblem.OVERLOADED),
        (504, CallProblem.TIMEOUT),
    ],
)
def test_what_passes_has_a_problem_too(status, problem):
    response = httpx.Response(status, request=httpx.Request("POST", "http://x"))
    fault = explain(httpx.HTTPStatusError("no", request=response.request, response=response), Origin("openai/mine"))
    assert fault.kind == "retry" and fault.problem is problem


def test_the_documentation_has_the_sentences_of_faults():
    page = (Path(__file__).resolve().parents[2] / "docs" / "llm.md").read_text()
    for sentence in [case.sentence for case in PASSING.values()] + [sentence for _, sentence in ENDING.values()]:
        start = re.sub(r"[\d.]+ s$", "180 s", sentence.partition(" (")[0].partition(" for openai/")[0])
        assert start in page, start
