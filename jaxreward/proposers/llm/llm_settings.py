"""How language models are asked: the options of `jaxreward evolve` that concern them."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated
from urllib.parse import urlsplit

from jaxreward.config import Arg, check_bounds
from jaxreward.errors import InvalidSetting, nearest
from jaxreward.sentences import mention

JUDGE_OPTIONS = ("judge_model", "judge_votes", "judge_episodes", "judge_frames")
"""Options of a model that judges."""

JUDGE_FRAMES = 20
"""Frames of an episode that a model is shown (RDA, section 9)."""


@dataclass(frozen=True)
class ModelSettings:
    """Language models: which, how they are asked, and what they may cost."""

    model: Annotated[tuple[str, ...], Arg(adds=True)] = ()
    """Language models, by litellm's names. For example anthropic/claude-sonnet-4-5 or openai/my-model; several, each
    with a weight if wanted (NAME=2), take turns at random."""
    api_base: Annotated[str | None, Arg(unit="URL")] = None
    """Address of the endpoint, such as http://localhost:8000/v1. By default the provider's. Keys are read from the
    environment or a .env file, never from options."""
    temperature: float | None = None
    """Sampling temperature (LIMEN: 0.7). By default the provider's."""
    top_p: float | None = None
    """Nucleus sampling. By default the provider's."""
    max_tokens: Annotated[int, Arg(least=1)] = 8192
    """Longest reply. Thinking counts where the provider counts it."""
    reasoning_effort: str | None = None
    """For models that think: none, minimal, low, medium, high."""
    model_seed: int | None = None
    """Sampling seed, for providers that have one. Every request adds its own number to it."""
    stream: bool = False
    """Receive replies as they are written. For gateways that cut silent connections."""
    concurrency: Annotated[int, Arg(least=1)] = 8
    """Requests in flight at most."""
    timeout_s: Annotated[float, Arg(positive=True)] = 180.0
    """Longest wait for one reply."""
    retries: Annotated[int, Arg(least=0)] = 5
    """Attempts after the first. They are for an endpoint that is busy, broken or silent; then a prompt that fails while
    others are answered is given up."""
    wait_s: float = 900.0
    """Patience with an endpoint that is down, or with people who are asked. Then it ends, to be gone on with later; 0
    ends it at once."""
    prompts: Path | None = None
    """Folder of prompt templates. They take the place of built-in ones of the same name, also for people."""
    max_usd: Annotated[float | None, Arg(positive=True)] = None
    """What language models may cost."""
    max_tokens_total: Annotated[int | None, Arg(least=1)] = None
    """Tokens of language models, prompts and replies together."""
    max_requests: Annotated[int | None, Arg(least=1)] = None
    """Requests to language models. Retries that were answered count."""
    confirm_usd: float = 10.0
    """Ask before a run whose estimate is above this. Where nobody can be asked, refuse."""
    price: Annotated[tuple[str, ...], Arg(unit="MODEL=IN,OUT", adds=True)] = ()
    """Dollars per million tokens, of prompts and of replies. They take the place of litellm's price table."""

    def check(self) -> None:
        """Raise an `InvalidSetting` for the first invalid setting."""
        asked = self.asked()
        for model in self.prices():
            if asked and model not in asked:
                near = nearest(model, asked) or next(iter(asked))
                raise InvalidSetting(
                    f"{mention('price')} names {model}, which no {mention('model')} does; did you mean {near}?",
                    "price",
                    "model",
                )
        check_bounds(self)
        for name in ("wait_s", "confirm_usd"):
            if not getattr(self, name) >= 0:
                raise InvalidSetting(
                    f"{mention(name)} must be a number that is not negative, not {getattr(self, name)}", name
                )
        if self.temperature is not None and not 0 <= self.temperature <= 2:
            raise InvalidSetting(f"{mention('temperature')} must lie in [0, 2], not {self.temperature}", "temperature")
        if self.top_p is not None and not 0 < self.top_p <= 1:
            raise InvalidSetting(f"{mention('top_p')} must lie in (0, 1], not {self.top_p}", "top_p")
        if self.prompts is not None and not self.prompts.is_dir():
            raise InvalidSetting(f"{mention('prompts', self.prompts)} is not a folder of prompt templates", "prompts")
        if self.api_base is not None:
            _check_address(self.api_base)

    def asked(self) -> tuple[str, ...]:
        """All models that are named."""
        return tuple(self.weights())

    def weights(self) -> dict[str, float]:
        """Models and their weights, which sum to 1."""
        found: dict[str, float] = {}
        for item in self.model:
            name, _, weight = item.rpartition("=")
            try:
                value = float(weight) if name else 1.0
            except ValueError:
                message = f"{mention('model', [item])}: the weight after = must be a number, not {weight!r}"
                raise InvalidSetting(message, "model") from None
            name = name or item
            if not name:
                message = (
                    f"{mention('model')} names nothing: give a name of litellm's, e.g. anthropic/claude-sonnet-4-5"
                )
                raise InvalidSetting(message, "model")
            if not 0 < value < math.inf:
                raise InvalidSetting(f"{mention('model', [item])}: the weight must be a positive number", "model")
            if name in found:
                message = f"{mention('model')} names {name} twice; name each model once, with a weight if wanted"
                raise InvalidSetting(message, "model")
            found[name] = value
        total = sum(found.values())
        return {name: value / total for name, value in found.items()}

    def prices(self) -> dict[str, tuple[float, float]]:
        """Overrides: dollars per token of input and of output, by model."""
        found: dict[str, tuple[float, float]] = {}
        for item in self.price:
            model, _, pair = item.rpartition("=")
            try:
                input_usd, output_usd = (float(value) / 1e6 for value in pair.split(","))
            except ValueError:
                raise InvalidSetting(
                    f"{mention('price', [item])} must be MODEL=INPUT,OUTPUT in dollars per million tokens, "
                    "e.g. openai/x=0.5,1.5",
                    "price",
                ) from None
            if not model or not (0 <= input_usd < math.inf and 0 <= output_usd < math.inf):
                raise InvalidSetting(
                    f"{mention('price', [item])} must name a model and two prices that are not negative", "price"
                )
            found[model] = (input_usd, output_usd)
        return found


@dataclass(frozen=True)
class LlmSettings(ModelSettings):
    """Language models of a search: what `ModelSettings` has, repairs of programs, and a model that judges agents."""

    repairs: Annotated[int, Arg(least=0)] = 2
    """How often a rejected program goes back; 0 for never. Its verdict goes with it, to a person too."""
    judge_model: Annotated[str | None, Arg(unit="MODEL")] = None
    """With --strategy rda: the vision model that judges agents. It sees frames of their episodes; by default the task's
    metrics judge."""
    judge_votes: Annotated[int, Arg(least=1)] = 2
    """How often it is asked about an episode. Its score is the mean; reports tell how far the votes agree."""
    judge_episodes: Annotated[int, Arg(least=1)] = 3
    """Episodes of an agent that it sees. They begin alike for all agents."""
    judge_frames: Annotated[int | None, Arg(least=2)] = None
    """Frames of an episode, at most. More of them are where much moves, or the reward's terms change. Default: 20 with
    a model that judges; with the task's metrics none are taken, unless this asks for them."""

    def asked(self) -> tuple[str, ...]:
        """All models that are named: those that propose, and the one that judges."""
        return tuple(dict.fromkeys([*self.weights(), *filter(None, [self.judge_model])]))

    def without_judge(self) -> LlmSettings:
        """The same without a model that judges."""
        plain = LlmSettings()
        return dataclasses.replace(self, **{name: getattr(plain, name) for name in JUDGE_OPTIONS})

    def of_judge(self) -> LlmSettings:
        """The settings by which the judge's model alone is asked."""
        return dataclasses.replace(self, model=(f"{self.judge_model}=1",))


def _check_address(address: str) -> None:
    parts = urlsplit(address)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise InvalidSetting(
            f"{mention('api_base', address)} must be an address such as http://localhost:8000/v1", "api_base"
        )
    if parts.username or parts.password or parts.query or "#" in address:
        raise InvalidSetting(
            f"{mention('api_base')} must not carry a key, a password, a query or a fragment: put keys into the "
            "environment or "
            "a .env file",
            "api_base",
        )
