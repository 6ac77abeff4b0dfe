"""What a command is about to do and roughly what it will cost, before it does it."""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

from jaxreward.config import label_of
from jaxreward.evolution.settings import EvolveSettings
from jaxreward.formatting import seeds_text
from jaxreward.reports.tables import task_title
from jaxreward.search import make_strategy
from jaxreward.search.confirmation import AT_ONCE, MOST
from jaxreward.tasks import Task, has_real_actions
from jaxreward.training import PPO
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
    "ant": 15_000, "ant-lie-down": 16_000, "ant-patrol-return": 17_000, "go1-push-recovery": 8_000, "hopper": 45_000,
    "humanoid": 10_000, "inverted-pendulum": 70_000, "panda-cabinet": 5_500, "panda-tracking": 9_000,
    "quadcopter-hover": 40_000, "quadruped-velocity": 7_000, "reacher": 45_000, "walker2d": 25_000,
}  # fmt: skip


def rate(task: str) -> Rate:
    """Roughly what the task of this name costs."""
    usual = _PHYSICS if has_real_actions(task) else _GRID
    return usual._replace(steps_per_s=_STEPS_PER_S.get(task, usual.steps_per_s))


_SCORED_S = 0.5
"""Of a candidate on demonstrations: checking it, and its part in compiling a generation."""


def duration(seconds: float) -> str:
    """Seconds or minutes, rounded."""
    return f"{seconds:.0f} s" if seconds < 120 else f"{seconds / 60:.0f} min"


def shape_text(ppo: PPO) -> str:
    """The shapes of an agent's updates, which depend on the device where nothing is said of them."""
    steps = " x ".join(str(n) for n in (ppo.unroll, ppo.unrolls) if n > 1) or "1"
    return (
        f"learner: {ppo.envs} environments x {steps} steps an update, in {ppo.epochs} x {ppo.minibatches} minibatches"
    )


def cost_s(
    task: Task,
    ppo: PPO,
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
    return programs * seeds * of_agent / each.steps_per_s + batches * each.task_s + programs * each.program_s


def search_s(s: EvolveSettings, task: Task) -> float:
    """The same of a search, its final training left out. Without training of candidates, each round of more data trains
    one policy."""
    if s.objective == "demonstrations":
        return expansions(s) * cost_s(task, s.ppo, 1, 1, s.steps, episodes=s.eval_episodes) + s.candidates * _SCORED_S
    batches = -(-s.candidates // s.generation)
    part = partial(cost_s, task, s.ppo, batches=batches, episodes=s.eval_episodes)
    whole = part(s.candidates, max(s.seeds, s.contender_seeds), s.steps)
    if s.confirm_seeds:
        whole += cost_s(task, s.ppo, AT_ONCE, s.confirm_seeds, s.steps, episodes=s.eval_episodes)
    if s.restart:
        whole += part(s.candidates, 1, s.filter_steps)
    if s.tune:  # settings of one structure are compiled as one
        settings, each = s.candidates * s.tune, rate(task.name)
        whole += part(settings, s.seeds, s.tuning_steps, points=1)
        whole -= (settings - s.candidates) * each.program_s
    return whole


def expansions(s: EvolveSettings) -> int:
    """How often the strategy has policies trained for more data, at most; 0 for one that does not."""
    strategy = make_strategy(s.strategy, **s.strategy_options())
    rounds = int(getattr(strategy, "expansions", 0))
    return rounds + int(getattr(strategy, "confirmations", 0)) if rounds else 0


def describe(s: EvolveSettings, spending: str = "") -> list[str]:
    """The plan of a search in lines; `spending` is what it will cost, if that is not nothing."""
    task = s.make_task()
    only_scored = s.objective == "demonstrations"
    steps = s.candidates * (max(s.seeds, s.contender_seeds) * s.steps + (s.filter_steps if s.restart else 0))
    if only_scored:
        steps = expansions(s) * s.steps
    each = f"{seeds_text(s.seeds)} x {s.steps:,} steps each"
    runs = 2 if "best-of-n" in s.baselines else 1
    lines = [
        f"{label_of(s.strategy)} with the {label_of(s.proposer)} proposer on {task_title(s.task, s.task_arg)}: "
        f"{s.candidates} candidates, {s.generation} at a time, {'scored on demonstrations' if only_scored else each}"
        + (f", evolving the {s.evolves}" if s.evolves != "both" else "")
    ]
    lines.append(shape_text(s.ppo))
    if s.filter_steps:
        how = "trained apart with one seed" if s.restart else "as the first part of the same training"
        lines.append(f"short rung of {s.filter_steps:,} steps, threshold {s.threshold}, {how}")
    if s.halving:
        lines.append(f"the better half of a generation goes on {'once' if s.halving == 1 else f'{s.halving} times'}")
    if s.prune:
        lines.append("candidates stop that cannot win any more")
    if s.contender_seeds:
        lines.append(f"candidates that may be the best: {seeds_text(s.contender_seeds)}")
    if s.confirm_seeds:
        lines.append(f"at the end candidates that may be the best: {seeds_text(s.confirm_seeds, 'fresh ')}")
        steps += MOST * s.confirm_seeds * s.steps
    if s.tune:
        judged = f"{seeds_text(s.seeds)} x {s.tuning_steps:,} steps"
        lines.append(f"{s.tune} weight settings of every reward before it is trained, each judged by {judged}")
        steps += s.candidates * s.tune * s.seeds * s.tuning_steps
    seconds = runs * search_s(s, task)
    if s.baselines:
        lines.append(f"baselines at the same budget: {', '.join(s.baselines)}")
    if s.final_seeds:
        final = s.final_steps or s.steps
        names = 1 + len(s.baselines)
        lines.append(
            f"final training of the best and the baselines: {seeds_text(s.final_seeds, 'fresh ')} x {final:,} steps"
        )
        seconds += cost_s(task, s.ppo, names, s.final_seeds, final, episodes=s.eval_episodes)
    most = f"at most {runs * steps:,}" if steps else "no"
    lines.append(
        f"{most} environment steps in the search, in all about {duration(seconds)} on two CPU "
        f"cores; {'' if spending else 'cost 0 USD; '}run directory {s.out / s.run_name}"
    )
    return [*lines, spending] if spending else lines
