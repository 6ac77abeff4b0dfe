"""Language models as proposers: order, models, budgets, resuming, stopping."""

from __future__ import annotations

import asyncio
import threading
import time

import numpy as np
import pytest

from jaxreward.errors import EndCause, InvalidSetting
from jaxreward.proposers.llm.endpoint import Endpoint
from jaxreward.proposers.llm.llm_proposer import LlmProposer, ping
from jaxreward.proposers.llm.llm_settings import LlmSettings
from jaxreward.records import Exchange, Proposal
from tests.ends import cause_of
from tests.proposers.material import XLAND
from tests.proposers.server import Answer, ChatServer, Fault, closed_port
from tests.proposers.talk import GOOD, PRICE, PROGRAM, MemoryTranscript, Talk, ids, rng_of, wanted

pytestmark = pytest.mark.usefixtures("key")


def numbered(body, n):
    """The good program, with the prompt in a comment; the first requests are answered last."""
    said = body["messages"][-1]["content"]
    return Answer(GOOD.replace("```python\n", f"```python\n# {said}\n"), delay_s=max(0.0, 0.2 - 0.05 * n))


@pytest.mark.parametrize("stream", [False, True])
def test_answers_come_in_the_order_of_their_requests(stream):
    with ChatServer(numbered) as server:
        talk = Talk(server.url, stream=stream, concurrency=3)
        answers = talk.ask(*ids(7))
    assert [p.request_id for p in answers.proposals] == ids(7) and not answers.spent
    for p in answers.proposals:
        assert p.source.startswith(f"# program for {p.request_id}") and p.source.rstrip().endswith(PROGRAM)
        assert p.model == "openai/mine" and p.proposer == "llm" and p.failure is None
        assert (p.calls, p.tokens, p.cost_usd) == (1, 150, pytest.approx(100e-6 + 2 * 50e-6))
    assert 1 < server.most_in_flight <= 3 and server.calls == 7
    assert all(r.path == "/v1/chat/completions" and r.body["model"] == "mine" for r in server.seen)
    assert talk.statuses[-1] == "7/7 replies, $0.0014"
    for e in talk.kept:
        assert e.messages[0]["content"].startswith(f"program for {e.request_id}") and not e.estimated
        assert e.reply.startswith("Here it is.") and e.finish == "stop" and e.latency_s > 0 and e.turn == 0


def test_programs_are_at_hand_as_soon_as_they_come():
    """Before the slowest is answered; replies without a program are not reported."""
    slow, left = threading.Event(), list[int]()

    def script(body, n):
        if "g0000-00," in body["messages"][0]["content"]:
            slow.wait(10)
        return Answer("No." if "g0000-02," in body["messages"][0]["content"] else GOOD)

    with ChatServer(script) as server:
        talk = Talk(server.url, concurrency=4)

        def status(_: str) -> None:
            if len(talk.prefetched) == 2:
                left.append(len(talk.kept))
                slow.set()

        talk.stop = lambda: status("") is not None
        answers = talk.ask(*ids(4))
    assert left and left[0] < 4
    assert sorted(p.request_id for p in talk.prefetched) == ["g0000-00", "g0000-01", "g0000-03"]
    assert {p.request_id: p for p in talk.prefetched}.items() <= {p.request_id: p for p in answers.proposals}.items()


def test_options_that_are_none_are_not_sent():
    with ChatServer([Answer(GOOD)]) as server:
        Talk(server.url, temperature=None, max_tokens=77).one()
        Talk(server.url, temperature=0.25, top_p=0.5, reasoning_effort="low", model_seed=7).one("g0000-01")
        Talk(server.url, model_seed=7).one("g0000-02")
    plain, full, other = (seen.body for seen in server.seen)
    assert set(plain) == {"model", "messages", "max_tokens"} and plain["max_tokens"] == 77
    assert (full["temperature"], full["top_p"], full["reasoning_effort"]) == (0.25, 0.5, "low")
    assert full["seed"] != other["seed"] and 0 <= full["seed"] < 2**31


def test_an_option_that_a_model_does_not_have_is_left_out_and_said_once():
    notes: list[str] = []
    endpoint = Endpoint(LlmSettings(temperature=0.7, top_p=0.9, model_seed=1), notes.append)
    for _ in range(2):
        assert set(endpoint.parameters("openai/o3", "a")) == {"max_tokens", "seed"}
        assert "seed" not in endpoint.parameters("anthropic/claude-sonnet-4-5", "a")
    assert notes == [
        "openai/o3 does not take --temperature 0.7: left out",
        "openai/o3 does not take --top-p 0.9: left out",
        "anthropic/claude-sonnet-4-5 does not take --model-seed: left out",
    ]


def test_an_ensemble_is_drawn_by_weight_and_the_same_again():
    with ChatServer([Answer(GOOD)]) as server:
        settings = {"model": ("openai/mine=3", "openai/other"), "price": (PRICE, "openai/other=1,1"), "concurrency": 16}
        first = Talk(server.url, **settings).ask(*ids(60)).proposals
        again = Talk(server.url, **settings).ask(*reversed(ids(60))).proposals
    models = [p.model for p in first]
    assert 30 < models.count("openai/mine") < 58
    assert {p.request_id: p.model for p in again} == {p.request_id: p.model for p in first}
    sent = sorted((s.body["messages"][0]["content"], s.body["model"]) for s in server.seen)
    assert sent[::2] == sent[1::2]


# ---- resuming


def test_a_reply_in_the_transcript_is_not_asked_for_again():
    with ChatServer(numbered) as server:
        talk = Talk(server.url)
        before = talk.ask(*ids(4))
        resumed = Talk(server.url, talk.transcript)
        assert resumed.ask(*ids(4)) == before and server.calls == 4
        assert resumed.proposer.cost.spent == talk.proposer.cost.spent
        # Between reply and log: half of them are there, and only the others are asked.
        half = MemoryTranscript()
        half.kept = [e for e in talk.kept if e.request_id in ids(2)]
        assert [p.tokens for p in Talk(server.url, half).ask(*ids(4)).proposals] == [150] * 4
        assert server.calls == 6 and len(half.kept) == 4
    assert Talk(f"http://127.0.0.1:{closed_port()}/v1", half).ask(*ids(4)).proposals[0].tokens == 150


def test_failed_calls_before_a_reply_are_part_of_its_sums():
    def broken(turn: int, prompt: int, cost: float | None) -> Exchange:
        return Exchange(
            request_id="g0000-00", turn=turn, model="openai/mine", error="it broke", prompt_tokens=prompt,
            cost_usd=cost, estimated=prompt > 0,
        )  # fmt: skip

    earlier = MemoryTranscript()
    for turn, (prompt, cost) in enumerate([(30, 0.5), (0, 0.0), (7, None)]):
        earlier.add(broken(turn, prompt, cost))
    with ChatServer([Answer(GOOD)]) as server:
        proposal = Talk(server.url, earlier).one()
    assert server.calls == 1 and earlier.kept[-1].turn == 3
    assert (proposal.calls, proposal.tokens, proposal.unpriced_tokens) == (3, 187, 7)
    assert proposal.cost_usd == pytest.approx(0.5002)


def test_a_run_that_is_asked_to_stop_keeps_what_is_complete():
    with ChatServer(lambda _, n: Answer(GOOD) if n < 2 else Fault(hang=True)) as server:
        talk = Talk(server.url, concurrency=4)
        talk.stop = lambda: server.calls == 6 and len(talk.kept) == 2
        began = time.monotonic()
        answers = talk.ask(*ids(6))
        assert time.monotonic() - began < 3.0
    assert len(answers.proposals) == 2 and not answers.spent
    cut = [e for e in talk.kept if e.error]
    assert len(cut) == 4 and all(e.prompt_tokens and e.estimated and not e.finish for e in cut)
    assert talk.proposer.cost.reserved.requests == 0 and talk.proposer.cost.spent.requests == 6
    with ChatServer([Answer(GOOD)]) as server:
        assert len(Talk(server.url, talk.transcript).ask(*ids(6)).proposals) == 6
        assert server.calls == 4


def test_stopping_before_the_first_call_asks_nobody():
    with ChatServer([Answer(GOOD)]) as server:
        talk = Talk(server.url)
        talk.stop = lambda: True
        assert talk.ask(*ids(2)).proposals == () and server.calls == 0 and not talk.kept


def test_a_stop_keeps_the_replies_that_were_paid_for():
    with ChatServer(lambda _, n: Answer(GOOD) if n < 2 else Fault(401, "no more")) as server:
        talk = Talk(server.url, concurrency=1)
        answers = talk.ask(*ids(4))
    assert [p.request_id for p in answers.proposals] == ids(2) and answers.proposals[0].tokens == 150
    assert answers.stopped is not None and answers.stopped.cause is EndCause.ENDPOINT and not answers.stopped.later


def test_an_idea_is_kept_where_it_was_asked_for():
    asking = wanted("g0000-00").model_copy(update={"thought": True})
    with ChatServer([Answer(f"<thought>Look ahead.</thought>\n{GOOD}")]) as server:
        talk = Talk(server.url)
        (proposal,) = talk.proposer.propose_all([asking], rng_of).proposals
        assert proposal.thought == "Look ahead." and proposal.source.rstrip() == PROGRAM
        assert talk.one("g0000-01").thought == ""
        assert Talk(server.url, talk.transcript).proposer.propose_all([asking], rng_of).proposals == (proposal,)


def test_batches_follow_each_other_in_loops_of_their_own():
    """Clients are cached by the address of their loop, which the next loop likes to have, too."""
    with ChatServer([Answer(GOOD)]) as server:
        talk = Talk(server.url)
        for i in range(6):
            assert talk.one(f"g{i:04d}-00").source

        async def in_a_notebook() -> Proposal:
            return talk.one("g9999-00")

        assert asyncio.run(in_a_notebook()).source


# ---- money


def test_spending_of_other_searches_counts_towards_the_budget():
    elsewhere = Exchange(
        request_id="x", turn=0, model="openai/mine", prompt_tokens=600, completion_tokens=50, cost_usd=0.25
    )
    with ChatServer([Answer(GOOD)]) as server:
        talk = Talk(server.url, elsewhere=(elsewhere,), max_tokens=200, max_tokens_total=700)
        assert cause_of(talk.ask("g0000-00").spent) is EndCause.TOKENS and server.calls == 0
        talk = Talk(server.url, elsewhere=(elsewhere,))
        talk.one()
    assert (talk.proposer.cost.spent.tokens, talk.proposer.cost.spent.requests) == (800, 2)
    assert talk.statuses[-1] == "1/1 replies, $0.25"


@pytest.mark.parametrize(
    ("cap", "cause"),
    [
        ({"max_requests": 3}, EndCause.REQUESTS),
        ({"max_tokens_total": 700}, EndCause.TOKENS),
        ({"max_usd": 0.0011}, EndCause.USD),
    ],
)
def test_a_budget_ends_the_asking(cap, cause):
    """Each call costs 150 tokens, $0.0002; before it is sent, some 200 prompt tokens and 200 of a reply are held."""
    with ChatServer([Answer(GOOD, delay_s=0.02)]) as server:
        talk = Talk(server.url, max_tokens=200, concurrency=4, **cap)
        answers = talk.ask(*ids(12))
        assert cause_of(answers.spent) is cause
        assert 3 <= len(answers.proposals) < 12 and server.calls == len(answers.proposals)
        spent = talk.proposer.cost.spent
        assert spent.requests <= cap.get("max_requests", 99)
        assert spent.tokens <= cap.get("max_tokens_total", 1e9) and spent.usd <= cap.get("max_usd", 1e9)
        calls = server.calls
        resumed = Talk(server.url, talk.transcript, max_tokens=200, **cap)
        assert resumed.ask("g0001-00").spent == answers.spent and server.calls == calls


def test_a_request_that_does_not_fit_waits_for_those_in_flight():
    """Two calls cannot be held at once, but both fit one after the other."""
    with ChatServer([Answer(GOOD, usage=(20, 20), delay_s=0.1)]) as server:
        talk = Talk(server.url, max_tokens=300, max_tokens_total=500, concurrency=4)
        assert len(talk.ask(*ids(2)).proposals) == 2
        assert server.most_in_flight == 1


def test_a_cap_in_dollars_needs_a_price():
    with pytest.raises(InvalidSetting, check=lambda e: e.settings == ("max_usd", "price")):
        LlmProposer(XLAND, LlmSettings(model=("openai/nobody-knows",), max_usd=1.0))
    with ChatServer([Answer(GOOD)]) as server:
        talk = Talk(server.url, model=("openai/nobody-knows",), price=())
        proposal = talk.one()
    assert (proposal.cost_usd, proposal.unpriced_tokens) == (0.0, 150)
    assert talk.kept[0].cost_usd is None
    assert talk.statuses[-1] == "1/1 replies, 150 tokens of unknown price"


# ---- settings


def test_mistakes_are_said_before_the_first_call(monkeypatch):
    with pytest.raises(InvalidSetting, check=lambda e: e.settings == ("model",)):
        LlmProposer(XLAND, LlmSettings())
    with pytest.raises(InvalidSetting, match="mean openai/mine", check=lambda e: e.settings == ("price", "model")):
        Talk(None, price=("openai/mind=1,2",))
    with pytest.raises(InvalidSetting, match="openai/my-model", check=lambda e: e.settings == ("model",)):
        Talk("http://127.0.0.1:1/v1", model=("my-model",), price=())
    monkeypatch.delenv("OPENAI_API_KEY")
    with ChatServer([Answer(GOOD)]) as server:
        stopped = Talk(server.url).stopped("g0000-00")
    assert server.calls == 0 and not stopped.later and "set OPENAI_API_KEY in the" in str(stopped)


def test_images_pass_through():
    picture = {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw0KGgo="}}
    content = [{"type": "text", "text": "what do you see?"}, picture]
    with ChatServer([Answer(GOOD, usage=None)]) as server:
        talk = Talk(server.url)
        talk.proposer.book.messages = lambda request, rng: [{"role": "user", "content": content}]  # type: ignore
        talk.one()
    assert server.seen[0].body["messages"] == [{"role": "user", "content": content}]
    (exchange,) = talk.kept
    assert list(exchange.messages) == [{"role": "user", "content": content}]
    assert 1_500 < exchange.prompt_tokens < 1_600 and exchange.estimated


def test_real_prompts_are_sent():
    with ChatServer([Answer(GOOD)]) as server:
        talk = Talk(server.url)
        talk.proposer.book = LlmProposer(XLAND, talk.proposer.settings).book
        talk.one()
    assert [m["role"] for m in server.seen[0].body["messages"]] == ["system", "user"]


def test_a_ping_reports_each_model_apart():
    with ChatServer(
        lambda body, n: Answer("ready") if body["model"] == "mine" else Fault(404, "no such model")
    ) as server:
        settings = LlmSettings(
            model=("openai/mine", "openai/other", "nobody"), api_base=server.url, price=(PRICE,), max_usd=1.0
        )
        mine, other, nobody = ping(settings)
    assert (mine.text, mine.tokens, mine.error) == ("ready", 150, "") and mine.latency_s > 0
    assert mine.cost_usd == pytest.approx(2e-4)
    assert other.cost_usd is None and "openai/other" in other.error and "no such model" in other.error
    assert "litellm does not know whose model 'nobody' is" in nobody.error
    assert server.calls == 2


def test_requests_of_other_batches_do_not_count():
    with ChatServer([Answer(GOOD)]) as server:
        talk = Talk(server.url)
        talk.one("g0000-00")
        assert talk.proposer.call_for(wanted("g0000-01"), np.random.default_rng(0)).model == "openai/mine"
        assert [p.request_id for p in talk.ask("g0000-01").proposals] == ["g0000-01"]
