"""Single calls through litellm, and what they leave behind."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import time
from pathlib import Path

import pytest

from jaxreward.errors import InvalidSetting
from jaxreward.proposers.llm.call_errors import CallError
from jaxreward.proposers.llm.circuit_breaker import FIRST_PAUSE_S, LONGEST_PAUSE_S, TRIPS, Breaker, Clock, backoff_s
from jaxreward.proposers.llm.endpoint import IMAGE_TOKENS, Endpoint, clean, prompt_tokens
from jaxreward.proposers.llm.event_loop import run_calls
from jaxreward.proposers.llm.llm_settings import LlmSettings
from tests.proposers.server import Answer, ChatServer, Fault
from tests.proposers.talk import GOOD

ROOT = Path(__file__).resolve().parents[2]
ASK = [{"role": "user", "content": "hello"}]


pytestmark = pytest.mark.usefixtures("key")


def test_one_call_is_one_request():
    """Neither litellm nor the client below it asks again."""
    with ChatServer([Fault(500)]) as server:
        endpoint = Endpoint(LlmSettings(api_base=server.url))
        with pytest.raises(CallError):
            run_calls(endpoint.call("openai/mine", ASK, {}))
        assert server.calls == 1


def test_the_clients_of_a_loop_are_closed_and_forgotten_with_it():
    import litellm

    def mine() -> int:
        return sum("127.0.0.1" in str(key) for key in litellm.in_memory_llm_clients_cache.cache_dict)

    with ChatServer([Answer(GOOD)]) as server:
        endpoint = Endpoint(LlmSettings(api_base=server.url))

        async def look() -> int:
            await endpoint.call("openai/mine", ASK, {})
            return mine()

        before = mine()
        assert run_calls(look()) == before + 1 and mine() == before


def test_the_same_sentence_a_thousand_times_is_a_reply():
    """litellm takes a stream that repeats itself for a broken server unless configured otherwise."""
    with ChatServer([Answer("x" * 64 * 300)]) as server:
        completion = run_calls(Endpoint(LlmSettings(api_base=server.url, stream=True)).call("openai/mine", ASK, {}))
    assert len(completion.text) == 64 * 300 and completion.usage == (100, 50) and completion.finish == "stop"


def test_the_wall_clock_limits_a_stream_that_drips():
    with ChatServer([Answer(GOOD * 50, drip_s=0.1)]) as server:
        began = time.monotonic()
        endpoint = Endpoint(LlmSettings(api_base=server.url, stream=True, timeout_s=0.7))
        received: list[str] = []
        with pytest.raises(CallError, match="no complete reply within 0.7 s"):
            run_calls(endpoint.call("openai/mine", ASK, {}, received))
    assert time.monotonic() - began < 2.0 and "".join(received).startswith("Here it is.")


def test_the_origin_of_a_model_has_its_provider_and_key(monkeypatch):
    endpoint = Endpoint(LlmSettings())
    monkeypatch.delenv("OPENAI_API_KEY")
    for model, key in {
        "openai/x": "OPENAI_API_KEY",
        "anthropic/claude-sonnet-4-5": "ANTHROPIC_API_KEY",
        "gemini/gemini-2.5-pro": "GEMINI_API_KEY",
        "groq/x": "GROQ_API_KEY",
    }.items():
        monkeypatch.delenv(key, raising=False)
        assert endpoint.origin(model).key == key and str(endpoint.origin(model)) == model
    assert str(Endpoint(LlmSettings(api_base="http://h:1/v1")).origin("openai/x")) == "openai/x at http://h:1/v1"
    with pytest.raises(InvalidSetting, check=lambda e: e.settings == ("model",)):
        endpoint.origin("x")


def test_the_estimate_of_a_prompt_counts_words_and_images():
    text = prompt_tokens([{"role": "user", "content": "word " * 1000}])
    assert 1000 <= text < 2500
    parts = [{"type": "text", "text": "word " * 1000}, {"type": "image_url", "image_url": {"url": "data:..."}}]
    assert prompt_tokens([{"role": "user", "content": parts}]) == text + IMAGE_TOKENS
    assert prompt_tokens([{"role": "assistant", "content": None}]) > 0


def test_clean_text_can_be_stored():
    assert clean("a\ud800b\ud83d\ude00\udc00") == "a\ufffdb\U0001f600\ufffd"
    assert clean("plain\n") == "plain\n"


# ---- the breaker


class Hands(Clock):
    """A clock that stands still."""

    def __init__(self) -> None:
        super().__init__()
        self.time = 100.0

    def now(self) -> float:
        return self.time


def test_a_breaker_opens_probes_and_closes():
    clock = Hands()
    breaker = Breaker(900.0, clock)
    for i in range(TRIPS):
        assert breaker.may_enter() and not breaker.enter()
        assert breaker.failed(probe=False) == (i == TRIPS - 1)
    assert breaker.down and not breaker.may_enter()
    pause = FIRST_PAUSE_S
    while clock.time < 500.0:
        clock.time += pause
        assert breaker.may_enter() and breaker.enter() and not breaker.may_enter(), "one probe and no more"
        assert not breaker.failed(probe=False), "a call from before says nothing new"
        assert not breaker.failed(probe=True) and not breaker.expired
        pause = min(2 * pause, LONGEST_PAUSE_S)
        clock.time += 0.5 * pause
        assert not breaker.may_enter()
        clock.time -= 0.5 * pause
    clock.time += pause
    assert breaker.enter()
    assert breaker.succeeded() == clock.time - 100.0
    assert breaker.may_enter() and not breaker.enter() and breaker.may_enter() and breaker.succeeded() is None


def test_a_breaker_expires_with_the_probe_at_the_end_of_the_wait():
    clock = Hands()
    breaker = Breaker(60.0, clock)
    assert breaker.failed(probe=False, exhausted=True)
    while not breaker.expired:
        assert breaker.next_probe <= 160.0
        clock.time = breaker.next_probe
        assert breaker.may_enter() and breaker.enter()
        breaker.failed(probe=True)
    assert clock.time == 160.0
    at_once = Breaker(0.0, clock)
    assert at_once.failed(probe=False, exhausted=True) and at_once.expired


def test_a_breaker_waits_as_long_as_it_is_asked_to():
    clock = Hands()
    breaker = Breaker(900.0, clock)
    breaker.failed(probe=False, after_s=300.0, exhausted=True)
    assert breaker.next_probe == 400.0
    breaker.failed(probe=True, after_s=1e9)
    assert breaker.next_probe == 1000.0


def test_backoff_grows_and_is_spread():
    pauses = [backoff_s("g0000-00", attempt) for attempt in range(12)]
    assert all(0.5 * 2.0**n <= p <= 2.0**n for n, p in enumerate(pauses[:6])) and max(pauses) <= 60.0
    assert pauses == [backoff_s("g0000-00", attempt) for attempt in range(12)]
    assert len({backoff_s(f"g0000-{i:02d}", 0) for i in range(16)}) == 16


def test_waiting_ends_early_with_the_event():
    async def wait() -> float:
        over = asyncio.Event()
        asyncio.get_running_loop().call_later(0.05, over.set)
        began = time.monotonic()
        await Clock().until(over, 30.0)
        return time.monotonic() - began

    assert asyncio.run(wait()) < 1.0


def python(code: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", code], cwd=ROOT, timeout=120, capture_output=True, text=True)


def test_importing_the_proposers_does_not_import_litellm():
    code = "import jaxreward.proposers.llm.llm_proposer, sys; sys.exit('litellm' in sys.modules)"
    assert python(code).returncode == 0


@pytest.mark.slow
def test_preparing_a_call_asks_no_network_and_prints_nothing():
    """Whatever comes first imports litellm, which would fetch a price list."""

    def started(first: str) -> subprocess.Popen[str]:
        code = (
            "import socket, sys\n"
            "asked = []\n"
            "socket.getaddrinfo = lambda *a, **k: asked.append(a) or sys.exit(3)\n"
            "from jaxreward.proposers.llm.cost import price_of\n"
            "from jaxreward.proposers.llm.endpoint import Endpoint\n"
            "from jaxreward.proposers.llm.llm_settings import LlmSettings\n"
            "s = LlmSettings(temperature=0.5)\n"
            "e = Endpoint(s)\n"
            f"{first}\n"
            "sys.exit(4 if asked else 0)\n"
        )
        pipe = subprocess.PIPE
        return subprocess.Popen([sys.executable, "-c", code], cwd=ROOT, stdout=pipe, stderr=pipe, text=True)

    firsts = ("e.parameters('openai/x', 'a')", "e.origin('openai/x')", "price_of(s, 'openai/x')")
    for first, process in [(first, started(first)) for first in firsts]:  # side by side
        with process:
            said = process.communicate(timeout=120)
        assert (process.returncode, *said) == (0, "", ""), first
