"""Which settings of a search exclude each other, or need each other."""

from __future__ import annotations

import dataclasses
import math
import typing
from typing import TYPE_CHECKING

from jaxreward.config import check_bounds
from jaxreward.errors import FileProblem, InvalidSetting, UnknownName, UnusableFile
from jaxreward.evolution.search_options import Switch
from jaxreward.proposers.llm.llm_settings import LlmSettings
from jaxreward.runs.run import check_name
from jaxreward.search.registry import strategy_class
from jaxreward.sentences import mention
from jaxreward.tracking import require
from jaxreward.training.plan import make_schedule

if TYPE_CHECKING:
    from jaxreward.evolution.settings import EvolveSettings

BASELINES = ("sparse", "dense", "best-of-n")
_FOR_TRAINING = ("stages", "filter_steps", "restart", "halving", "prune", "contender_seeds",
                 "confirm_seeds", "tune", "tune_steps")  # fmt: skip
"""Settings of the training of candidates, which other objectives do not have."""


def check_settings(settings: EvolveSettings) -> None:
    """Raise a `UserError` for the first invalid setting of a search."""
    check_bounds(settings)
    _check_training(settings)
    check_name(settings.run_name, "run")
    require(settings.track)
    _check_baselines(settings)
    _check_parts(settings)
    _check_proposer(settings)
    _check_objective(settings)
    settings.llm.check()
    settings.ppo.check()
    settings.execution().check(settings.ppo)
    _check_cuts(settings)


def _check_training(settings: EvolveSettings) -> None:
    """The short rung, contenders and tuning."""
    if settings.filter_steps >= settings.steps:
        raise InvalidSetting(
            f"{mention('filter_steps', settings.filter_steps)} must be smaller than {mention('steps', settings.steps)}",
            "filter_steps",
            "steps",
        )
    if settings.restart and not settings.filter_steps:
        raise InvalidSetting(
            f"{mention('restart', True)} trains the short rung apart: give it {mention('filter_steps')}",
            "filter_steps",
            "restart",
        )
    if not math.isfinite(settings.threshold):
        raise InvalidSetting(
            f"{mention('filter_threshold')} is a value of the task's metric, not {settings.filter_threshold}",
            "filter_threshold",
        )
    if 0 < settings.contender_seeds <= settings.seeds:
        raise InvalidSetting(
            f"{mention('contender_seeds')} are more than {mention('seeds', settings.seeds)}, or 0, not "
            f"{settings.contender_seeds}",
            "contender_seeds",
            "seeds",
        )
    if settings.tune == 1:
        raise InvalidSetting(
            f"{mention('tune')} counts the reward's own setting: give it at least 2, or 0 for none", "tune"
        )
    if settings.tune and settings.evolves == "observation":
        raise InvalidSetting(
            f"{mention('tune')} searches the numbers of rewards, and this search evolves observations alone",
            "tune",
            "evolve",
        )
    if settings.tune_steps and not settings.tune:
        raise InvalidSetting(f"{mention('tune_steps')} is for {mention('tune')}", "tune_steps", "tune")
    if settings.tune_steps > settings.steps:
        raise InvalidSetting(
            f"{mention('tune_steps', settings.tune_steps)} must not be larger than {mention('steps', settings.steps)}",
            "tune_steps",
            "steps",
        )


def _check_baselines(settings: EvolveSettings) -> None:
    """What the best is compared with."""
    if len(set(settings.baselines)) < len(settings.baselines):
        raise InvalidSetting(f"{mention('baselines')} names one of them twice; name each once", "baselines")
    if "best-of-n" in settings.baselines and settings.strategy == "best-of-n":
        raise InvalidSetting(
            f"{mention('strategy', 'best-of-n')} cannot be compared with itself; leave it out of "
            f"{mention('baselines')}",
            "baselines",
            "strategy",
        )
    unknown = [b for b in settings.baselines if b not in BASELINES]
    if unknown:
        raise UnknownName("baseline", unknown[0], BASELINES, otherwise="choose from", settings=("baselines",))


def _check_parts(settings: EvolveSettings) -> None:
    """The judge, and the observation that is given."""
    if settings.judge != "files" and not settings.asks_people:
        raise InvalidSetting(
            f"{mention('judge')} is for strategies that ask people, and {settings.strategy} with these options "
            "does not",
            "judge",
            "strategy",
        )
    if settings.observation is not None and settings.evolves != "reward":
        raise InvalidSetting(
            f"{mention('observation')} is for {mention('evolve', 'reward')}; this search evolves {settings.evolves}",
            "observation",
            "evolve",
        )
    given = settings.observation is None or settings.resume or settings.proposer == "replay"
    if settings.observation is not None and not (given or settings.observation.is_file()):
        raise UnusableFile(
            f"{mention('observation')}: there is no file {settings.observation}",
            settings.observation,
            FileProblem.MISSING,
        )


def _check_proposer(settings: EvolveSettings) -> None:
    """The proposer, and what is for another one."""
    if settings.proposer == "replay" and settings.recording is None:
        raise InvalidSetting(
            f"{mention('proposer', 'replay')} needs {mention('recording')}: the folder of a run or its events.jsonl",
            "recording",
            "proposer",
        )
    if settings.blocks not in typing.get_args(Switch):
        raise UnknownName("value of blocks", str(settings.blocks), typing.get_args(Switch), settings=("blocks",))
    if settings.blocks == "on" and (settings.proposer != "genetic" or settings.objective != "training"):
        raise InvalidSetting(
            f"{mention('blocks', 'on')} is for {mention('proposer', 'genetic')} and {mention('objective', 'training')}",
            "blocks",
            "proposer",
            "objective",
        )
    if settings.surrogate and settings.proposer != "genetic":
        raise InvalidSetting(f"{mention('surrogate')} is for {mention('proposer', 'genetic')}", "surrogate", "proposer")
    if settings.surrogate and not strategy_class(settings.strategy).learns:
        message = f"samples of {settings.strategy} are independent of each other: leave {mention('surrogate')} out"
        raise InvalidSetting(message, "surrogate", "strategy")
    if settings.proposer != "replay" and settings.recording is not None:
        raise InvalidSetting(
            f"{mention('recording')} is for {mention('proposer', 'replay')}; the {settings.proposer} proposer "
            "has no use for it",
            "recording",
            "proposer",
        )
    if settings.proposer == "llm" and not settings.llm.model:
        raise InvalidSetting(
            f"{mention('proposer', 'llm')} needs {mention('model')}: a name of litellm's, e.g. "
            "anthropic/claude-sonnet-4-5",
            "llm.model",
            "proposer",
        )
    unused = [
        name for name in _idle_llm_options(settings) if getattr(settings.llm, name) != getattr(LlmSettings(), name)
    ]
    if unused:
        raise InvalidSetting(
            f"{mention(unused[0])} is for {mention('proposer', 'llm')}; the {settings.proposer} proposer has "
            "no use for it",
            f"llm.{unused[0]}",
            "proposer",
        )


def _check_objective(settings: EvolveSettings) -> None:
    """The objective, and what is for another one."""
    if settings.resume:  # a run has copies of its data
        return
    settings.demonstrations.check(settings.objective)
    if settings.objective == "training":
        return
    objective = mention("objective", settings.objective)
    if settings.evolves != "reward":
        raise InvalidSetting(
            f"{objective} scores rewards alone: say {mention('evolve', 'reward')}, or {mention('strategy', 'grace')}",
            *("evolve", "objective"),
        )
    given = [name for name in _FOR_TRAINING if getattr(settings, name)]
    if given:
        raise InvalidSetting(
            f"{mention(given[0])} is for {mention('objective', 'training')}; {objective} trains no candidates",
            *(given[0], "objective"),
        )


def _idle_llm_options(settings: EvolveSettings) -> list[str]:
    """Options of language models that the proposer has no use for; a replay takes those of its recording."""
    if settings.proposer in ("llm", "replay"):
        return []
    used = ("wait_s", "repairs", "prompts") if settings.proposer == "manual" else ()
    if settings.asks_people:
        used += ("wait_s",)
    return [f.name for f in dataclasses.fields(LlmSettings) if f.name not in used]


def _check_cuts(settings: EvolveSettings) -> None:
    """Where candidates stop, by the number of updates."""
    if settings.halving and settings.generation < 2:
        raise InvalidSetting(
            f"{mention('halving')} stops the worse half of a generation: give it {mention('generation', 2)} or more",
            "generation",
            "halving",
        )
    if settings.halving and settings.steps >> settings.halving < settings.ppo.batch:
        raise InvalidSetting(
            f"{mention('halving', settings.halving)} would first cut after {settings.steps >> settings.halving} of "
            f"{settings.steps} steps, "
            f"which is less than an update of {settings.ppo.batch}",
            "halving",
            "steps",
        )
    if settings.prune and settings.steps < 8 * settings.ppo.batch:
        raise InvalidSetting(
            f"{mention('prune', True)} cuts at eighths of {mention('steps')}, and {settings.steps} are less "
            "than eight updates "
            f"of {settings.ppo.batch}",
            "prune",
            "steps",
        )
    make_schedule(settings.ppo, settings.steps, 1, settings.rungs())
