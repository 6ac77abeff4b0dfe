"""What a command is about to do and roughly what it will cost, before it does it."""

from __future__ import annotations

from jaxreward.commands.retrain import TrainSettings
from jaxreward.settings import EvolveSettings

# Rounded from docs/benchmarks.md, two CPU cores; a GPU is not estimated.
_STEPS_PER_S, _COMPILE_BASE_S, _COMPILE_PROGRAM_S = 200_000, 6.0, 1.0


def duration(seconds: float) -> str:
    """Seconds or minutes, rounded."""
    return f"{seconds:.0f} s" if seconds < 120 else f"{seconds / 60:.0f} min"


def cost_s(programs: int, batches: int, steps: int) -> float:
    """Seconds of compiling and training on two CPU cores, roughly."""
    return steps / _STEPS_PER_S + batches * _COMPILE_BASE_S + programs * _COMPILE_PROGRAM_S


def describe(s: EvolveSettings, spending: str = "") -> list[str]:
    """The plan of a search in lines; `spending` is what it will cost, if that is not nothing."""
    batches = -(-s.candidates // s.generation)
    steps = s.candidates * s.seeds * s.steps
    runs = 2 if "best-of-n" in s.baselines else 1
    lines = [
        f"{s.strategy} with the {s.proposer} proposer on {s.task}: {s.candidates} candidates, {s.generation} at a "
        f"time, {s.seeds} seeds x {s.steps:,} steps each"
        + (f", evolving the {s.evolves}" if s.evolves != "both" else "")
    ]
    if s.filter_steps:
        how = "trained apart with one seed" if s.restart else "as the first part of the same training"
        lines.append(f"short rung of {s.filter_steps:,} steps, threshold {s.filter_threshold}, {how}")
    seconds = runs * cost_s(s.candidates, batches, steps)
    if s.baselines:
        lines.append(f"baselines at the same budget: {', '.join(s.baselines)}")
    if s.final_seeds:
        final = s.final_steps or s.steps
        names = 1 + len(s.baselines)
        lines.append(f"final training of the best and the baselines: {s.final_seeds} fresh seeds x {final:,} steps")
        seconds += cost_s(names, 1, names * s.final_seeds * final)
    lines.append(
        f"at most {runs * steps:,} environment steps in the search, in all about {duration(seconds)} on two CPU "
        f"cores; {'' if spending else 'cost 0 USD; '}run directory {s.out / s.run_name}"
    )
    return [*lines, spending] if spending else lines


def describe_training(s: TrainSettings) -> list[str]:
    """The plan of a training in lines."""
    n = max(1, len(s.interfaces))
    steps = n * s.seeds * s.steps
    return [
        f"{n} interface{'s' if n > 1 else ''} of {s.task}, {s.seeds} seeds x {s.steps:,} steps: {steps:,} environment "
        f"steps, about {duration(cost_s(n, 1, steps))} on two CPU cores"
    ]
