"""What a command is about to do and roughly what it will cost, before it does it."""

from __future__ import annotations

from jaxreward.config import label_of
from jaxreward.evolution.costs import cost_s, search_s, search_steps
from jaxreward.evolution.settings import EvolveSettings
from jaxreward.formatting import seeds_text
from jaxreward.reports.tables import task_title
from jaxreward.search.confirmation import MOST
from jaxreward.training import SAC, Learner


def duration(seconds: float) -> str:
    """Seconds or minutes, rounded."""
    return f"{seconds:.0f} s" if seconds < 120 else f"{seconds / 60:.0f} min"


def shape_text(ppo: Learner) -> str:
    """The shapes of an agent's updates, which depend on the device where nothing is said of them."""
    if isinstance(ppo, SAC):
        return (
            f"learner: {ppo.envs} environments x {ppo.unroll} steps, then {ppo.updates} gradient steps on "
            f"{ppo.batch_size} transitions"
        )
    steps = " x ".join(str(n) for n in (ppo.unroll, ppo.unrolls) if n > 1) or "1"
    return (
        f"learner: {ppo.envs} environments x {steps} steps an update, in {ppo.epochs} x {ppo.minibatches} minibatches"
    )


def describe(s: EvolveSettings, spending: str = "") -> list[str]:
    """The plan of a search in lines; `spending` is what it will cost, if that is not nothing."""
    task = s.make_task()
    only_scored = s.objective == "demonstrations"
    steps = search_steps(s)
    each = f"{seeds_text(s.seeds)} x {s.steps:,} steps each"
    runs = 2 if "best-of-n" in s.baselines else 1
    lines = [
        f"{label_of(s.strategy)} with the {label_of(s.proposer)} proposer on {task_title(s.task, s.task_arg)}: "
        f"{s.candidates} candidates, {s.generation} at a time, {'scored on demonstrations' if only_scored else each}"
        + (f", evolving the {s.evolves}" if s.evolves != "both" else "")
    ]
    lines.append(shape_text(s.hyper))
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
        lines.append(
            f"at the end candidates that may be the best, up to {MOST}: {seeds_text(s.confirm_seeds, 'fresh ')}"
        )
    if s.tune:
        judged = f"{seeds_text(s.seeds)} x {s.tuning_steps:,} steps"
        lines.append(f"{s.tune} weight settings of every reward before it is trained, each judged by {judged}")
    seconds = runs * search_s(s, task)
    if s.baselines:
        lines.append(f"baselines at the same budget: {', '.join(s.baselines)}")
    if s.final_seeds:
        final = s.final_steps or s.steps
        names = 1 + len(s.baselines)
        lines.append(
            f"final training of the best and the baselines: {seeds_text(s.final_seeds, 'fresh ')} x {final:,} steps"
        )
        seconds += cost_s(task, s.hyper, names, s.final_seeds, final, episodes=s.eval_episodes)
    most = f"at most {runs * steps:,}" if steps else "no"
    lines.append(
        f"{most} environment steps in the search, in all about {duration(seconds)} on two CPU "
        f"cores; {'' if spending else 'cost 0 USD; '}run directory {s.out / s.run_name}"
    )
    return [*lines, spending] if spending else lines
