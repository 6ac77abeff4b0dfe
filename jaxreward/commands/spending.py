"""What a search will spend on language models, and whether that is wanted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from jaxreward.commands.confirm import confirmed
from jaxreward.errors import UserError
from jaxreward.evolution.settings import EvolveSettings
from jaxreward.evolution.setup import given_observation, task_card
from jaxreward.proposers.llm.cost import EXPECTED_REPLY, Estimate, dollars, estimate_cost, too_small
from jaxreward.proposers.llm.endpoint import IMAGE_TOKENS
from jaxreward.proposers.llm.llm_settings import ModelSettings
from jaxreward.proposers.prompts.prompt_builder import PromptBook, estimate_tokens
from jaxreward.proposers.prompts.sections import TOTAL
from jaxreward.records import Request, Watched
from jaxreward.reports.timeline import Timeline
from jaxreward.runs import Proposed, read_log
from jaxreward.search.registry import make_strategy
from jaxreward.search.seeding import derive_rng

# A prompt that shows parents and feedback is longer than the first one by about this many tokens.
_CONTEXT_TOKENS = 4_000
# Of a question to a model that judges, besides its pictures.
_JUDGE_TOKENS = 2_000
# Calls for a candidate that trains, where some programs are rejected and repaired.
_CALLS_PER_CANDIDATE = 1.3


@dataclass(frozen=True)
class Spending:
    """An estimate for `calls` calls with prompts of about `prompt_tokens` tokens; `judging` are as many of a model that
    judges, about pictures, with prompts of about `judging_tokens`. `estimate` is of all together."""

    calls: int
    prompt_tokens: int
    estimate: Estimate
    judging: int = 0
    judging_tokens: int = 0

    def text(self) -> str:
        """One line of the plan."""
        e = self.estimate
        kinds = []
        if self.calls:
            kinds.append(
                f"about {self.calls} calls of language models, prompts of about {self.prompt_tokens:,} and replies of "
                f"about {EXPECTED_REPLY:,} tokens"
            )
        if self.judging:
            kinds.append(
                f"about {self.judging} calls of the model that judges, with pictures, of about "
                f"{self.judging_tokens:,} tokens"
            )
        line = "; ".join(kinds) or "no more calls of language models"
        unknown = ", ".join(e.unknown_models)
        if unknown and not e.most_usd:
            return f"{line}; the price of {unknown} is not known (--price)"
        line += f": about {dollars(e.expected_usd)}, at most {dollars(e.most_usd)} without retries"
        return line + (f", and what {unknown} costs, whose price is not known (--price)" if unknown else "")


def spending_of(settings: EvolveSettings) -> Spending | None:
    """What the search, or the rest of a resumed one, will spend; None where no model is asked.

    Raises:
        UserError: a budget does not reach for a single call.
    """
    each = [_proposing(settings)] if settings.proposer == "llm" else []
    each += [_judging(settings)] if settings.judged_by == "model" and settings.proposer != "replay" else []
    total = total_of(each)
    if total is None or settings.llm.max_usd is None:
        return total
    e, cap = total.estimate, settings.llm.max_usd  # one for both
    within = Estimate(min(e.expected_usd, cap), min(e.most_usd, cap), e.unknown_models)
    return replace(total, estimate=within)


def _proposing(settings: EvolveSettings) -> Spending:
    """Of the models that propose."""
    task = settings.make_task()
    request = Request(id="g0000-00", generation=0, operator="scratch", evolve=settings.evolves)
    words = task_card(task, given_observation(settings), settings.hyper)
    messages = PromptBook(words, settings.llm.prompts).messages(request, derive_rng(0))
    tokens = sum(estimate_tokens(message["content"]) for message in messages) + _CONTEXT_TOKENS
    if not settings.resume and (lacking := too_small(settings.llm, tokens - _CONTEXT_TOKENS)):
        raise UserError(lacking)
    searches = 2 if "best-of-n" in settings.baselines else 1
    candidates = max(0, settings.candidates * searches - _trained(settings))
    strategy = make_strategy(settings.strategy, **settings.strategy_options())
    # A best-of-n search, the baseline, asks for programs alone.
    spoken = strategy.words_expected(min(candidates, settings.candidates))
    calls = round(candidates * _CALLS_PER_CANDIDATE) + spoken
    expected = estimate_cost(settings.llm, tokens, calls)
    most = estimate_cost(settings.llm, TOTAL, settings.attempts * searches + strategy.words_expected(settings.attempts))
    return Spending(calls, tokens, Estimate(expected.expected_usd, most.most_usd, expected.unknown_models))


def _judging(settings: EvolveSettings) -> Spending:
    """Of the model that judges what is trained."""
    llm = settings.llm.of_judge()
    tokens = settings.frames * IMAGE_TOKENS + _JUDGE_TOKENS
    if not settings.resume and (lacking := too_small(llm, tokens)):
        raise UserError(lacking)
    candidates = max(0, settings.candidates - _watched(settings))
    calls = candidates * llm.judge_episodes * llm.judge_votes
    return Spending(0, 0, estimate_cost(llm, tokens, calls), calls, tokens)


def total_of(each: Sequence[Spending]) -> Spending | None:
    """What several searches, each within caps of its own, or parts of one, will spend together; None where there are
    none."""
    if not each:
        return None
    estimates = [s.estimate for s in each]
    total = Estimate(
        sum(e.expected_usd for e in estimates),
        sum(e.most_usd for e in estimates),
        tuple(dict.fromkeys(model for e in estimates for model in e.unknown_models)),
    )
    return Spending(
        sum(s.calls for s in each), max(s.prompt_tokens for s in each), total,
        sum(s.judging for s in each), max(s.judging_tokens for s in each),
    )  # fmt: skip


def confirm(spending: Spending | None, llm: ModelSettings) -> None:
    """Ask where the estimate is above `--confirm-usd`; UserError where the answer is no, or nobody can be asked."""
    if spending is None:
        return
    e, limit = spending.estimate, llm.confirm_usd
    if e.expected_usd <= limit and (limit > 0 or not e.unknown_models):
        return
    about = dollars(e.expected_usd) + (" and an unknown amount" if e.unknown_models else "")
    answer = confirmed(f"This will cost about {about}. Go on?")
    if answer is None:
        raise UserError(
            f"the run will cost about {about}, which is above --confirm-usd {limit:g}, and nobody "
            "can be asked: raise --confirm-usd, or set a cap with --max-usd"
        )
    if not answer:
        raise UserError("not started: the cost was not confirmed")


def _watched(settings: EvolveSettings) -> int:
    """Agents that were judged in a run that is resumed."""
    if not settings.resume:
        return 0
    log = read_log(settings.out / settings.run_name / "events.jsonl")
    return sum(isinstance(e.event, Proposed) and Watched.read(e.event.proposal.words) is not None for e in log)


def _trained(settings: EvolveSettings) -> int:
    """Candidates that a resumed run has trained already."""
    if not settings.resume:
        return 0
    path = settings.out / settings.run_name
    logs = (path / "events.jsonl", path / "best-of-n" / "events.jsonl")
    return sum(len(Timeline(read_log(log)).candidates) for log in logs)
