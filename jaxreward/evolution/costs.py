"""Roughly what searches and trainings cost on two CPU cores."""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

from jaxreward.evolution.settings import EvolveSettings
from jaxreward.search import make_strategy
from jaxreward.search.confirmation import AT_ONCE, MOST
from jaxreward.tasks import Task, has_real_actions
from jaxreward.training import SAC, Learner
from jaxreward.training.algorithms import gradient_flops
from jaxreward.training.plan import EVAL_EPISODES, curve_points, held_out_steps


class Rate(NamedTuple):
    """What a task costs on two CPU cores: steps a second, seconds of compiling the task and a program more."""

    steps_per_s: float
    task_s: float
    program_s: float


# Rounded from candidate_throughput.py's generations and task_speed.py, on two idle cores as one device. GPUs are not
# estimated.
_GRID, _PHYSICS = Rate(350_000, 6.0, 0.6), Rate(10_000, 20.0, 0.3)
_STEPS_PER_S = {
    "ant": 15_000, "ant-lie-down": 16_000, "ant-patrol-return": 17_000, "ball-roll": 50_000,
    "cube-place": 14_000, "cube-stack": 9_000, "door-open": 40_000,
    "flappy-bird": 280_000, "go1-push-recovery": 8_000, "hopper": 45_000, "humanoid": 10_000,
    "inverted-pendulum": 70_000, "package-push": 35_000, "panda-cabinet": 5_500, "panda-push": 7_000,
    "panda-tracking": 9_000, "peg-insert": 20_000, "quadcopter-hover": 40_000,
    "quadruped-velocity": 7_000, "reacher": 45_000, "snake": 120_000, "tetris": 90_000, "walker2d": 25_000,
}  # fmt: skip


def rate(task: str) -> Rate:
    """Roughly what the task of this name costs."""
    usual = _PHYSICS if has_real_actions(task) else _GRID
    return usual._replace(steps_per_s=_STEPS_PER_S.get(task, usual.steps_per_s))


_FLOPS_PER_S = 3e10
"""Of gradient steps of SAC, by benchmarks/learner_speed.py with 16 candidates; with one it is 5.5e10."""
_FEATURES = 32
"""Of an observation, about."""
_SCORED_S = 0.5
"""Of a candidate on demonstrations: checking it, and its part in compiling a generation."""


def cost_s(
    task: Task,
    ppo: Learner,
    programs: int,
    seeds: int,
    steps: int,
    *,
    batches: int = 1,
    points: int | None = None,
    episodes: int = EVAL_EPISODES,
) -> float:
    """Seconds of compiling and training on two CPU cores, roughly, held-out episodes included.

    Args:
        task: what is solved.
        ppo: the learner.
        programs: all of them.
        seeds: training seeds of each.
        steps: environment steps of each seed.
        batches: in how many parts the programs are trained.
        points: of the learning curves; those of a search if omitted.
        episodes: held-out episodes of each seed at the end.
    """
    each = rate(task.name)
    points = curve_points(task, ppo, steps, episodes) if points is None else points
    of_agent = steps + held_out_steps(task, ppo, points, episodes)
    learning = 0.0
    if isinstance(ppo, SAC):  # of the others it is in the steps a second
        learning = steps / ppo.batch * gradient_flops(ppo, _FEATURES) / _FLOPS_PER_S
    of_seed = of_agent / each.steps_per_s + learning
    return programs * seeds * of_seed + batches * each.task_s + programs * each.program_s


def search_s(s: EvolveSettings, task: Task) -> float:
    """The same of a search, its final training left out. Without training of candidates, each round of more data trains
    one policy."""
    if s.objective == "demonstrations":
        return expansions(s) * cost_s(task, s.hyper, 1, 1, s.steps, episodes=s.eval_episodes) + s.candidates * _SCORED_S
    batches = -(-s.candidates // s.generation)
    limit = _training_steps(s) / _steps_of(s, s.candidates)
    part = partial(cost_s, task, s.hyper, batches=batches, episodes=s.eval_episodes)
    whole = part(s.candidates, max(s.seeds, s.contender_seeds), s.steps)
    if s.restart:
        whole += part(s.candidates, 1, s.filter_steps)
    if s.tune:  # settings of one structure are compiled as one
        settings, each = s.candidates * s.tune, rate(task.name)
        whole += part(settings, s.seeds, s.tuning_steps, points=1)
        whole -= (settings - s.candidates) * each.program_s
    whole *= limit
    if s.confirm_seeds and limit == 1.0:
        whole += cost_s(task, s.hyper, AT_ONCE, s.confirm_seeds, s.steps, episodes=s.eval_episodes)
    return whole


def search_steps(s: EvolveSettings) -> int:
    """Environment steps of a search at most, without its final training. A limit of them ends a search after the
    generation that reaches it."""
    if s.objective == "demonstrations":
        return expansions(s) * s.steps
    spent = bool(s.max_env_steps) and _steps_of(s, s.candidates) >= s.max_env_steps  # then nothing is confirmed
    return _training_steps(s) + (0 if spent else MOST * s.confirm_seeds * s.steps)


def _training_steps(s: EvolveSettings) -> int:
    """Those of them by which candidates are tuned and trained."""
    whole = _steps_of(s, s.candidates)
    return min(whole, s.max_env_steps + _steps_of(s, s.generation)) if s.max_env_steps else whole


def _steps_of(s: EvolveSettings, candidates: int) -> int:
    """Environment steps by which so many candidates are tuned and trained, at most."""
    each = max(s.seeds, s.contender_seeds) * s.steps + (s.filter_steps if s.restart else 0)
    return candidates * (each + s.tune * s.seeds * s.tuning_steps)


def expansions(s: EvolveSettings) -> int:
    """How often the strategy has policies trained for more data, at most; 0 for one that does not."""
    strategy = make_strategy(s.strategy, **s.strategy_options())
    rounds = int(getattr(strategy, "expansions", 0))
    return rounds + int(getattr(strategy, "confirmations", 0)) if rounds else 0
