"""HTTP below litellm, over loopback: how much of a response is read, and to whom calls go."""

from __future__ import annotations

import gzip
import subprocess
import sys
import tracemalloc
import zlib
from pathlib import Path

import pytest

from jaxreward.errors import InvalidSetting
from jaxreward.proposers.llm import transport
from jaxreward.proposers.llm.call_errors import CallError
from jaxreward.proposers.llm.endpoint import Endpoint
from jaxreward.proposers.llm.event_loop import run_calls
from jaxreward.proposers.llm.llm_proposer import LlmProposer, ping
from jaxreward.proposers.llm.llm_settings import LlmSettings
from tests.proposers.material import XLAND
from tests.proposers.server import Answer, ChatServer, Fault
from tests.proposers.talk import GOOD, Talk

pytestmark = pytest.mark.usefixtures("key")

ASK = [{"role": "user", "content": "hello"}]
CAP = 1 << 20
BOMB = 64 << 20
PIECE = b"\0" * (1 << 20)
REPLY = (
    b'{"id": "1", "object": "chat.completion", "created": 1, "model": "mine", "choices": [{"index": 0, '
    b'"finish_reason": "stop", "message": {"role": "assistant", "content": "hello"}}]}'
)


@pytest.fixture
def small(monkeypatch):
    monkeypatch.setattr(transport, "LARGEST_REPLY", CAP)
    monkeypatch.setattr(transport, "LARGEST_STREAM", CAP)


def bomb(window: int) -> bytes:
    packer = zlib.compressobj(9, wbits=window)
    return b"".join([*(packer.compress(PIECE) for _ in range(BOMB >> 20)), packer.flush()])


def packed(encoding: str) -> Fault:
    body = bomb(31 if encoding == "gzip" else 15)
    assert len(body) < BOMB / 500
    return Fault(200, body=body, headers={"Content-Encoding": encoding})


def asked(step: Fault | Answer, *, stream: bool = False) -> str:
    with ChatServer([step]) as server:
        endpoint = Endpoint(LlmSettings(api_base=server.url, stream=stream))
        return run_calls(endpoint.call("openai/mine", ASK, {})).text


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize("encoding", ["gzip", "deflate"])
@pytest.mark.parametrize("status", [200, 500])
def test_a_compression_bomb_is_cut_off_without_memory(small, encoding, stream, status):
    step = packed(encoding)
    kind = "text/event-stream" if stream else "application/json"
    step = Fault(status, body=step.body, headers=step.headers, content_type=kind)
    with ChatServer([step]) as server:
        endpoint = Endpoint(LlmSettings(api_base=server.url, stream=stream))
        run_calls(endpoint.dry_run("openai/mine"))  # what is imported for a first call is no part of it
        tracemalloc.start()
        try:
            with pytest.raises(CallError) as caught:
                run_calls(endpoint.call("openai/mine", ASK, {}))
            peak = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
    fault = caught.value
    assert fault.sentence == "the response is larger than 1 MiB" and fault.kind == "retry" and fault.charged
    assert peak < BOMB // 2, f"{peak >> 20} MiB for a bomb of {BOMB >> 20} MiB"


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
def test_a_long_response_is_cut_off_without_compression(small, stream):
    with pytest.raises(CallError, match="the response is larger than 1 MiB"):
        asked(Fault(200, body=b"data: " + b"x" * (4 << 20), content_type="text/event-stream"), stream=stream)


@pytest.mark.long
def test_an_event_without_an_end_is_cut_off(monkeypatch):
    monkeypatch.setattr(transport, "LARGEST_EVENT", CAP)
    events = b": ping\n\n" * (CAP // 4) + b"data: x\n" * (CAP // 4)
    with pytest.raises(CallError, match="an event of the stream is larger than 1 MiB"):
        asked(Fault(200, body=events, content_type="text/event-stream"), stream=True)


@pytest.mark.parametrize(
    ("encoding", "body"),
    [
        ("gzip", gzip.compress(REPLY)),
        ("x-gzip", gzip.compress(REPLY)),
        ("deflate", zlib.compress(REPLY)),
        ("deflate", zlib.compress(REPLY, wbits=-15)),
        ("identity", REPLY),
    ],
)
def test_a_server_may_compress(encoding, body):
    assert asked(Fault(200, body=body, headers={"Content-Encoding": encoding})) == "hello"


@pytest.mark.parametrize("encoding", ["br", "zstd", "gzip, gzip"])
def test_what_was_not_asked_for_is_refused(encoding):
    with pytest.raises(CallError, match="compressed by .* which was not asked for"):
        asked(Fault(200, body=REPLY, headers={"Content-Encoding": encoding}))


def test_no_compression_is_asked_for():
    with ChatServer([Answer(GOOD)]) as server:
        run_calls(Endpoint(LlmSettings(api_base=server.url)).call("openai/mine", ASK, {}))
        assert server.seen[0].headers["accept-encoding"] == "identity"


def test_a_compression_bomb_is_a_transient_error(small):
    with ChatServer([packed("gzip"), Answer(GOOD)]) as server:
        proposal = Talk(server.url).one()
    assert proposal.failure is None and proposal.calls == 2


def test_doctor_survives_a_compression_bomb(small):
    with ChatServer([packed("gzip")]) as server:
        (answer,) = ping(LlmSettings(model=("openai/mine",), api_base=server.url))
    assert answer.error == "the response is larger than 1 MiB"


def test_other_http_clients_have_no_limit():
    """In the same process, litellm and httpx of a user's own code have no limit, and are not reported."""
    import httpx

    reported: list[str] = []
    with ChatServer([Fault(200, body=gzip.compress(REPLY), headers={"Content-Encoding": "gzip"})]) as server:
        Endpoint(LlmSettings(api_base=server.url), on_endpoint=reported.append).origin("openai/mine")
        with httpx.Client() as client:
            answer = client.post(server.url, json={})
        assert answer.content == REPLY and "gzip" in server.seen[0].headers["accept-encoding"] and reported == []


# ---- to whom


def test_the_endpoint_is_reported_before_the_first_call_without_credentials(monkeypatch):
    reported: list[str] = []
    with ChatServer([Answer(GOOD)]) as server:
        place = server.url.removesuffix("/v1")
        monkeypatch.setenv("OPENAI_BASE_URL", server.url + "/sk-in-path")
        endpoint = Endpoint(
            LlmSettings(), on_endpoint=lambda text: reported.append(f"{text}, {server.calls} calls before")
        )
        for _ in range(2):
            run_calls(endpoint.call("openai/mine", ASK, {}))
        assert server.calls == 2 and reported == [f"openai/mine is asked at {place}, 0 calls before"]


def test_a_password_in_an_endpoint_is_not_reported():
    import httpx

    request = httpx.Request("GET", "http://me:pa55word@127.0.0.1:8000/sk-in-path?key=x")
    assert transport.address_of(request) == "http://127.0.0.1:8000"


def test_a_dry_run_reports_the_endpoint_and_sends_nothing():
    reported: list[str] = []
    with ChatServer([Answer(GOOD)]) as server:
        settings = LlmSettings(model=("openai/mine", "openai/other"), api_base=server.url)
        LlmProposer(XLAND, settings).prepare(reported.append)
        assert server.calls == 0
        place = server.url.removesuffix("/v1")
    assert reported == [f"openai/mine is asked at {place}", f"openai/other is asked at {place}"]


@pytest.mark.parametrize(
    ("model", "key"),
    [("openai/x", "OPENAI_API_KEY"), ("anthropic/claude-sonnet-4-5", "ANTHROPIC_API_KEY"), ("groq/x", "GROQ_API_KEY")],
)
def test_a_dry_run_reports_a_missing_key(monkeypatch, model, key):
    monkeypatch.delenv(key, raising=False)
    proposer = LlmProposer(XLAND, LlmSettings(model=(model,)))
    with pytest.raises(InvalidSetting, match=f"{model}: set {key}", check=lambda e: e.settings == ("model",)):
        proposer.prepare(lambda _: None)
    monkeypatch.setenv(key, "sk-0123456789")
    reported: list[str] = []
    proposer.prepare(reported.append)
    assert len(reported) == 1 and reported[0].startswith(f"{model} is asked at https://")


def test_a_model_without_a_key_is_no_mistake():
    reported: list[str] = []
    settings = LlmSettings(model=("hosted_vllm/x", "ollama_chat/x"), api_base="http://127.0.0.1:1")
    LlmProposer(XLAND, settings).prepare(reported.append)
    assert [text.split()[0] for text in reported] == ["hosted_vllm/x", "ollama_chat/x"]


@pytest.mark.long
def test_the_settings_alone_import_no_http():
    code = (
        "import sys, jaxreward.evolution.settings, jaxreward.proposers.llm.llm_proposer\n"
        "assert 'httpx' not in sys.modules"
    )
    root = Path(__file__).resolve().parents[2]
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, cwd=root)
    assert done.returncode == 0, done.stderr
