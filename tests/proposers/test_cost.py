"""Prices, the estimate before a run, and a cost that stays under its caps."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jaxreward.errors import EndCause, InvalidSetting
from jaxreward.proposers.llm.cost import Amount, Cost, Estimate, dollars, estimate_cost, price_of, too_small
from jaxreward.proposers.llm.llm_settings import LlmSettings
from jaxreward.records import Exchange
from tests.ends import cause_of

MINE = LlmSettings(model=("openai/mine",), price=("openai/mine=1,2",), max_tokens=1_000)


def exchange(prompt: int, completion: int, cost: float | None, error: str = "") -> Exchange:
    return Exchange(
        request_id="a", turn=0, model="openai/mine", prompt_tokens=prompt, completion_tokens=completion,
        cost_usd=cost, error=error,
    )  # fmt: skip


def test_a_given_price_wins_over_the_list_and_an_unknown_one_is_none():
    prices = LlmSettings(price=("openai/gpt-4o-mini=7,8", "mine=0,0"))
    given = price_of(prices, "openai/gpt-4o-mini")
    assert given is not None and (given.input, given.output) == (7e-6, 8e-6)
    free = price_of(prices, "mine")
    assert free is not None and free.of(1000, 1000) == 0.0
    listed = price_of(LlmSettings(), "openai/gpt-4o-mini")
    assert listed == price_of(LlmSettings(), "gpt-4o-mini") and listed is not None
    assert 0 < listed.input < listed.output < 1e-4
    for model in ("openai/nobody-knows", "huggingface/some/model", "no provider at all", "ollama/nobody-knows"):
        assert price_of(LlmSettings(), model) is None, model


def test_a_model_listed_without_a_price_is_not_free(monkeypatch):
    import litellm

    monkeypatch.setitem(litellm.model_cost, "groq/listed", {"litellm_provider": "groq", "mode": "chat"})
    assert price_of(LlmSettings(), "groq/listed") is None


def test_exchanges_that_were_not_charged_count_for_nothing():
    total = Amount.of(
        [
            exchange(10, 5, 0.5),
            exchange(0, 0, 0.0, error="refused"),
            exchange(7, 0, 0.1, error="broke"),
            exchange(3, 1, None),
            exchange(0, 0, 0.0),  # answered by a provider that counts nothing
        ]
    )
    assert total == Amount(requests=4, tokens=26, usd=0.6, unpriced=4)


def test_the_cost_is_described():
    tally = Cost(MINE)
    assert tally.text() == "$0.00, 0 tokens, 0 requests" and tally.money() == "$0.00"
    tally.spent = Amount(31, 12_345, 0.42)
    assert tally.text() == "$0.42, 12,345 tokens, 31 requests"
    tally.spent = Amount(1, 12_345, 0.0123, 4_000)
    assert tally.text() == "$0.0123 and 4,000 tokens of unknown price, 12,345 tokens, 1 request"
    tally.spent = Amount(2, 4_000, 0.0, 4_000)
    assert tally.text() == "4,000 tokens of unknown price, 2 requests"
    assert dollars(1234.5) == "$1,234.50"


def test_reservations_are_part_of_what_is_spent():
    tally = Cost(MINE.__class__(**{**MINE.__dict__, "max_requests": 2, "max_tokens_total": 2_500}))
    call = tally.at_most("openai/mine", 100)
    assert call == Amount(1, 1_100, 100e-6 + 1_000 * 2e-6)
    assert tally.reserve(call) and tally.reserve(call)
    assert not tally.reserve(call) and cause_of(tally.lacking(call)) is EndCause.TOKENS
    tally.settle(call, exchange(90, 10, 0.1))
    tally.settle(call, exchange(0, 0, 0.0, error="refused"))
    assert tally.reserved == Amount() and tally.spent == Amount(1, 100, 0.1)
    assert tally.reserve(call) and cause_of(tally.lacking(call)) is EndCause.REQUESTS


def test_a_cap_in_dollars_needs_prices():
    with pytest.raises(InvalidSetting, match="openai/nobody-knows", check=lambda e: e.settings == ("max_usd", "price")):
        Cost(LlmSettings(model=("openai/mine", "openai/nobody-knows"), price=MINE.price, max_usd=1.0))


def test_the_estimate_weighs_models_by_their_share():
    two = LlmSettings(model=("openai/mine=3", "openai/dear"), price=("openai/mine=1,2", "openai/dear=10,20"))
    found = estimate_cost(two, prompt_tokens=5_000, calls=100)
    assert found.expected_usd == pytest.approx(100 * (0.75 * (0.005 + 0.004) + 0.25 * (0.05 + 0.04)))
    assert found.most_usd == pytest.approx(100 * (0.05 + 8192 * 20e-6)) and found.unknown_models == ()
    unknown = LlmSettings(model=("openai/nobody-knows",), max_tokens=10)
    assert estimate_cost(unknown, 100, 10) == Estimate(0.0, 0.0, ("openai/nobody-knows",))
    capped = LlmSettings(model=("openai/mine",), price=MINE.price, max_usd=0.001)
    assert estimate_cost(capped, 5_000, 100) == Estimate(0.001, 0.001, ())


def test_a_cap_that_does_not_reach_for_one_call():
    def said(**caps):
        two = ("openai/mine", "openai/dear")
        return too_small(LlmSettings(model=two, price=("openai/mine=1,2", "openai/dear=2,8"), **caps), 10_000)

    assert said() == said(max_usd=0.0856) == said(max_tokens_total=18_192) == said(max_requests=1) == ""
    assert said(max_usd=0.05) == (
        "--max-usd 0.05 does not reach for one call, which may cost up to $0.0855: raise it, or lower --max-tokens"
    )
    assert said(max_tokens_total=18_191) == (
        "--max-tokens-total 18191 does not reach for one call, which may take up to 18,192 tokens: raise it, or lower "
        "--max-tokens"
    )
    assert "take up to" in said(max_usd=1.0, max_tokens_total=5)
    assert too_small(LlmSettings(model=("openai/nobody-knows",)), 10_000) == ""


CALLS = st.lists(
    st.tuples(
        st.integers(0, 3_000),  # estimated prompt
        st.floats(0.0, 1.0),  # true prompt, as a part of it
        st.integers(0, 1_000),  # true reply
        st.integers(0, 3),  # how many others are sent before it is settled
        st.booleans(),  # whether it is answered
    ),
    max_size=60,
)


@settings(deadline=None)
@given(CALLS, st.integers(1, 20_000), st.integers(1, 30), st.floats(1e-5, 0.05), st.integers(0, 500))
def test_no_cap_is_exceeded(calls, most_tokens, most_requests, most_usd, lie):
    """With `lie` the provider counts more tokens than were held: the excess is that of calls in flight, no more."""
    caps = {"max_tokens_total": most_tokens, "max_requests": most_requests, "max_usd": most_usd}
    tally = Cost(LlmSettings(model=MINE.model, price=MINE.price, max_tokens=1_000, **caps))
    in_flight, excess = [], 0
    for estimated, part, reply, others, answered in calls:
        while len(in_flight) > others:
            held, done = in_flight.pop(0)
            excess += done.prompt_tokens + done.completion_tokens > held.tokens and lie
            tally.settle(held, done)
        held = tally.at_most("openai/mine", estimated)
        if tally.lacking(held):
            assert not tally.reserve(held)
            continue
        assert tally.reserve(held)
        prompt = int(estimated * part) if not lie else estimated
        taken = reply if not lie else 1_000 + lie
        cost = tally.usd("openai/mine", prompt, taken)
        in_flight.append((held, exchange(prompt, taken, cost) if answered else exchange(0, 0, 0.0, "broke")))
    for held, done in in_flight:
        excess += done.prompt_tokens + done.completion_tokens > held.tokens and lie
        tally.settle(held, done)
    assert tally.reserved.requests == tally.reserved.tokens == 0 and tally.reserved.usd == pytest.approx(0.0, abs=1e-12)
    assert tally.spent.requests <= most_requests
    assert tally.spent.tokens <= most_tokens + excess
    assert tally.spent.usd <= most_usd * (1 + 1e-6) + excess * 2e-6
