"""How the candidates of a search are trained, and which of them go on."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated

from jaxreward.config import Arg
from jaxreward.errors import InvalidSetting
from jaxreward.evolution.search_options import SearchOptions
from jaxreward.sentences import mention
from jaxreward.training.plan import make_schedule
from jaxreward.training.rungs import Rung


@dataclass(frozen=True)
class CandidateTraining(SearchOptions):
    """The training of candidates."""

    steps: Annotated[int, Arg(least=1)] = 200_000
    """Environment steps of each seed."""
    restart: bool = False
    """Train the short rung apart, what passes from scratch. It has one seed then: the paper's protocol."""
    halving: Annotated[int, Arg(least=0)] = 0
    """How often half of a generation stops; 0 for never. Successive halving: at half of --steps, at half of that and
    so on, the better half goes on."""
    prune: bool = False
    """Stop candidates that cannot win any more. Their learning curves decide, at 1/2, 3/4 and 7/8 of --steps."""
    contender_seeds: Annotated[int, Arg(least=0)] = 0
    """Seeds of candidates that may be the best; 0: as others. 95 % intervals decide; the best so far is among them."""

    @property
    def threshold(self) -> float:
        """What the short rung asks for."""
        return 0.05 if self.filter_threshold is None else self.filter_threshold

    def rungs(self, incumbent: float | None = None, untrained: float | None = None) -> list[Rung]:
        """The cuts of every training of the search; `incumbent` is the merit that `prune` has to beat, `untrained` the
        success above which it tells the better half."""
        rungs = [Rung(self.filter_steps, self.threshold)] if self.filter_steps and not self.restart else []
        rungs += [Rung(self.steps >> k, keep=0.5, untrained=untrained) for k in range(self.halving, 0, -1)]
        if self.prune:
            rungs += [Rung(self.steps * k // 8, prune=True, incumbent=incumbent) for k in (4, 6, 7)]
        return rungs

    @property
    def tuning_steps(self) -> int:
        """Environment steps of each seed by which a weight setting is judged."""
        return self.tune_steps or -(-self.steps // 4)


def check_training(settings: CandidateTraining) -> None:
    """Raise an `InvalidSetting` for rungs, contenders or tuning that cannot be."""
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
    if settings.tune_steps and not settings.tune:
        raise InvalidSetting(f"{mention('tune_steps')} is for {mention('tune')}", "tune_steps", "tune")
    if settings.tune_steps > settings.steps:
        raise InvalidSetting(
            f"{mention('tune_steps', settings.tune_steps)} must not be larger than {mention('steps', settings.steps)}",
            "tune_steps",
            "steps",
        )


def check_cuts(settings: CandidateTraining) -> None:
    """Raise an `InvalidSetting` where candidates would stop at no whole number of updates."""
    if settings.halving and settings.generation < 2:
        raise InvalidSetting(
            f"{mention('halving')} stops the worse half of a generation: give it {mention('generation', 2)} or more",
            "generation",
            "halving",
        )
    if settings.halving and settings.steps >> settings.halving < settings.hyper.batch:
        raise InvalidSetting(
            f"{mention('halving', settings.halving)} would first cut after {settings.steps >> settings.halving} of "
            f"{settings.steps} steps, "
            f"which is less than an update of {settings.hyper.batch}",
            "halving",
            "steps",
        )
    if settings.prune and settings.steps < 8 * settings.hyper.batch:
        raise InvalidSetting(
            f"{mention('prune', True)} cuts at eighths of {mention('steps')}, and {settings.steps} are less "
            "than eight updates "
            f"of {settings.hyper.batch}",
            "prune",
            "steps",
        )
    make_schedule(settings.hyper, settings.steps, 1, settings.rungs())
