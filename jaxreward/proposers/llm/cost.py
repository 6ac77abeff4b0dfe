"""What language models cost: prices, an estimate before a run, and the cost of one, with its caps."""

from __future__ import annotations

import operator
from collections.abc import Iterable
from dataclasses import astuple, dataclass
from functools import cache

from jaxreward.errors import End, EndCause, InvalidSetting
from jaxreward.formatting import dollars
from jaxreward.proposers.llm.llm_settings import ModelSettings
from jaxreward.proposers.llm.quiet_litellm import import_litellm
from jaxreward.records import Exchange
from jaxreward.sentences import Sentence, mention

EXPECTED_REPLY = 2_000
"""Tokens of a usual reply: a program of LIMEN's size with a few sentences around it."""

# Dollars are sums of floats: a cap is not missed by the last bit.
_ROUNDING = 1e-9

# Their lookup in litellm asks a server, or invents a price of zero.
_ASKED_OVER_THE_NETWORK = ("huggingface", "ollama", "ollama_chat", "lemonade")


@dataclass(frozen=True)
class Price:
    """Dollars per token of input and of output."""

    input: float
    output: float

    def of(self, prompt: int, completion: int) -> float:
        """Dollars for so many tokens."""
        return prompt * self.input + completion * self.output


def price_of(settings: ModelSettings, model: str) -> Price | None:
    """The price of a model by the name that `--model` gives it: that of `--price`, else litellm's; None where neither
    knows one.

    Discounts for cached input are not applied and prices of very long prompts (above 128,000 tokens)
    are not known; where reasoning costs more than other output, all output is taken to.
    """
    given = settings.prices().get(model)
    return Price(*given) if given else _listed(model)


def known_prices(settings: ModelSettings) -> dict[str, Price]:
    """Of the models of some settings, those that are known."""
    return {model: price for model in settings.weights() if (price := price_of(settings, model)) is not None}


@cache
def _listed(model: str) -> Price | None:
    litellm = import_litellm()
    try:
        name, provider, _, _ = litellm.get_llm_provider(model=model)
        entry = litellm.model_cost.get(model) or litellm.model_cost.get(f"{provider}/{name}")
        if entry is None and provider not in _ASKED_OVER_THE_NETWORK:
            # Regional and dated names; a key of its table, since it fills in zeros for prices it lacks.
            entry = litellm.model_cost.get(litellm.get_model_info(model)["key"])
    except Exception:  # an unknown name raises what it likes
        return None
    entry = entry or {}
    input_usd, output_usd = entry.get("input_cost_per_token"), entry.get("output_cost_per_token")
    if input_usd is None or output_usd is None:
        return None
    return Price(float(input_usd), max(float(output_usd), float(entry.get("output_cost_per_reasoning_token") or 0.0)))


@dataclass(frozen=True)
class Amount:
    """Calls that were answered or may have been charged, their tokens and dollars.

    `unpriced` counts those of the tokens whose price is unknown.
    """

    requests: int = 0
    tokens: int = 0
    usd: float = 0.0
    unpriced: int = 0

    def __add__(self, other: Amount) -> Amount:
        return Amount(*map(operator.add, astuple(self), astuple(other)))

    def __sub__(self, other: Amount) -> Amount:
        return Amount(*map(operator.sub, astuple(self), astuple(other)))

    @classmethod
    def of(cls, exchanges: Iterable[Exchange]) -> Amount:
        """The sum of exchanges; those that cannot have been charged count for nothing."""
        total = cls()
        for e in exchanges:
            tokens = e.prompt_tokens + e.completion_tokens
            if not e.error or tokens:
                total += cls(1, tokens, e.cost_usd or 0.0, tokens if e.cost_usd is None else 0)
        return total


class Cost:
    """What was spent, what calls in flight may still cost, and the caps on both together.

    A call reserves the most that it can cost before it is sent: its estimated prompt and the longest
    reply. With estimates that are not below what the provider counts, no cap is ever exceeded.

    Raises:
        InvalidSetting: there is a cap in dollars and a model whose price is unknown.
    """

    def __init__(self, settings: ModelSettings) -> None:
        self.settings = settings
        self.spent = self.reserved = Amount()
        for model in settings.weights() if settings.max_usd is not None else ():
            if price_of(settings, model) is None:
                raise InvalidSetting(
                    f"the price of {model} is not known, so {mention('max_usd')} cannot hold: say {mention('price')} "
                    f"{model}=INPUT,OUTPUT (dollars per million tokens), or use {mention('max_tokens_total')}",
                    "max_usd",
                    "price",
                )

    def at_most(self, model: str, prompt_tokens: int) -> Amount:
        """The most that one call can cost."""
        longest = self.settings.max_tokens
        return Amount(1, prompt_tokens + longest, self.usd(model, prompt_tokens, longest) or 0.0)

    def usd(self, model: str, prompt_tokens: int, completion_tokens: int) -> float | None:
        """Dollars, or None where the price is unknown."""
        price = price_of(self.settings, model)
        return None if price is None else price.of(prompt_tokens, completion_tokens)

    def reserve(self, amount: Amount) -> bool:
        """Reserve an amount for a call; False where it does not fit with what is spent and reserved."""
        if self.lacking(amount):
            return False
        self.reserved += amount
        return True

    def settle(self, reserved: Amount, exchange: Exchange) -> None:
        """Replace a reservation by what the call came to."""
        self.reserved -= reserved
        self.spent += Amount.of([exchange])

    def lacking(self, amount: Amount) -> End | None:
        """Why an amount does not fit now, e.g. `the budget of dollars is spent`; None if it does."""
        s, total = self.settings, self.spent + self.reserved + amount
        for cap, value, name, cause in (
            (s.max_usd, total.usd, "dollars", EndCause.USD),
            (s.max_tokens_total, total.tokens, "tokens", EndCause.TOKENS),
            (s.max_requests, total.requests, "requests", EndCause.REQUESTS),
        ):
            if cap is not None and value > cap * (1 + _ROUNDING):
                return End(f"the budget of {name} is spent", cause)
        return None

    def money(self) -> str:
        """`$0.0123`, and how many tokens have no known price."""
        unpriced = f"{self.spent.unpriced:,} tokens of unknown price" if self.spent.unpriced else ""
        return " and ".join(filter(None, (dollars(self.spent.usd) if self.spent.usd or not unpriced else "", unpriced)))

    def text(self) -> str:
        """`$0.42, 12,345 tokens, 31 requests`; tokens without a known price are said with the dollars."""
        s = self.spent
        tokens = [f"{s.tokens:,} tokens"] if s.tokens != s.unpriced or not s.tokens else []
        return ", ".join([self.money(), *tokens, f"{s.requests:,} request{'' if s.requests == 1 else 's'}"])


@dataclass(frozen=True)
class Estimate:
    """What a number of calls may cost, in dollars, models of unknown price left out.

    Attributes:
        expected_usd: with replies of `EXPECTED_REPLY` tokens (or `max_tokens`, if fewer).
        most_usd: with the dearest model and the longest reply each time, or the cap if that is less.
        unknown_models: models whose price is not known.
    """

    expected_usd: float
    most_usd: float
    unknown_models: tuple[str, ...]


def estimate_cost(settings: ModelSettings, prompt_tokens: int, calls: int) -> Estimate:
    """Estimate the cost of `calls` calls with prompts of `prompt_tokens` tokens."""
    reply, weights, known = min(EXPECTED_REPLY, settings.max_tokens), settings.weights(), known_prices(settings)
    expected = calls * sum(weights[model] * price.of(prompt_tokens, reply) for model, price in known.items())
    most = calls * max((price.of(prompt_tokens, settings.max_tokens) for price in known.values()), default=0.0)
    cap = float("inf") if settings.max_usd is None else settings.max_usd
    return Estimate(min(expected, cap), min(most, cap), tuple(m for m in weights if m not in known))


def too_small(settings: ModelSettings, prompt_tokens: int) -> Sentence:
    """Why a cap does not reach for a single call with a prompt of `prompt_tokens` tokens; empty if all do."""
    most = prompt_tokens + settings.max_tokens
    usd = max((price.of(prompt_tokens, settings.max_tokens) for price in known_prices(settings).values()), default=0.0)
    if settings.max_usd is not None and usd > settings.max_usd * (1 + _ROUNDING):
        cap, need = mention("max_usd", settings.max_usd), f"cost up to {dollars(usd)}"
    elif settings.max_tokens_total is not None and most > settings.max_tokens_total:
        cap, need = mention("max_tokens_total", settings.max_tokens_total), f"take up to {most:,} tokens"
    else:
        return Sentence("")
    return Sentence(f"{cap} does not reach for one call, which may {need}: raise it, or lower {mention('max_tokens')}")
