"""A film of a trained agent: its best, median and worst episode, with what every reward term pays under the frames."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import jax
import numpy as np

from jaxreward.formatting import printable
from jaxreward.programs import Program
from jaxreward.reports.films import write_film
from jaxreward.reports.gauges import Gauges
from jaxreward.reports.tables import figure
from jaxreward.reports.video import COLOURS, Scene, frame_times, with_panels
from jaxreward.runs.checkpoint import Checkpoints
from jaxreward.tasks import Drawable, Task, compiler_options, measure_of, mission_of
from jaxreward.tasks.documentation import state_leaves
from jaxreward.training import Learner
from jaxreward.training.episodes import Episode, play, telling
from jaxreward.training.networks import Variables
from jaxreward.training.warm_start import policy_shapes

EPISODES = 33
"""Episodes that are played; an odd number has a median."""
MOST_FRAMES = 120
LEAST_EPISODES, LEAST_FRAMES = 3, 4
OF_THE_SEARCH = "the agent that the search trained, the best of its seeds"
"""Whose film it is."""


def policy_of(store: Checkpoints, tags: Sequence[str], task: Task, program: Program, ppo: Learner) -> Variables | None:
    """The policy under the first of `tags` that a run has saved; None if there is none for this program."""
    kept = [tag for tag in tags if tag in store.tags()]
    return store.restore(kept[0], policy_shapes(task, program, ppo)) if kept else None


def check_drawable(task: Task) -> None:
    """Raise `UserError` for a machine that cannot draw a task."""
    if isinstance(task, Drawable):
        options = compiler_options(task, jax.default_backend())
        task.draw(jax.device_get(jax.jit(task.reset, compiler_options=options or None)(jax.random.key(0))))


def draw_of(task: Task, episodes: Iterable[Episode]) -> Callable[[Any], Any]:
    """What makes a picture of a state: the task's own, or the numbers of its view as gauges, on the scale of all that
    these episodes have."""
    if isinstance(task, Drawable):
        return task.draw
    names = list(state_leaves(task))

    def numbers(view: Any) -> dict[str, Any]:
        return dict(zip(names, jax.tree.leaves(jax.device_get(view)), strict=True))

    seen = [numbers(jax.vmap(task.view)(e.states)) for e in episodes]
    gauges = Gauges({name: np.concatenate([values[name] for values in seen]) for name in names})
    return lambda state: gauges.draw(numbers(task.view(state)))


def film(
    path: Path,
    task: Task,
    program: Program,
    variables: Variables,
    ppo: Learner,
    *,
    episodes: int = EPISODES,
    frames: int = MOST_FRAMES,
    seed: int = 0,
    progress: Callable[[int, int], Any] = lambda done, total: None,
) -> dict[str, Episode]:
    """Write a film of an agent: its simulation, or where the task has no pictures the numbers of its state as gauges.

    Args:
        path: where it goes; the suffix says the format, `.gif` or `.mp4`.
        variables: of the agent's network, as `TrainResult.variables` returns them.
        ppo: the settings that it was trained with.
        episodes: how many to play; the best, the median and the worst of them by the task's metric are shown.
        frames: at most so many; of longer episodes some steps are left out.
        seed: of the episodes.
        progress: called with the number of pictures drawn and their total.

    Returns:
        The episodes that are shown, by name.

    Raises:
        UserError: a machine that cannot render, a format that cannot be written.
    """
    measure = measure_of(task)
    shown = telling(play(task, program, variables, ppo, episodes, seed), measure)
    draw = draw_of(task, shown.values())
    # One clock for all panels.
    ticks = frame_times([e.length for e in shown.values()], frames)
    moments = [sorted({min(int(t), e.length) for t in ticks}) for e in shown.values()]
    scenes, total, done = [], sum(map(len, moments)), 0
    for (name, episode), at in zip(shown.items(), moments, strict=True):
        pictures = []
        for t in at:
            pictures.append(draw(episode.state(t)))
            done += 1
            progress(done, total)
        value = figure(episode.success, rate=measure.rate)
        about = printable(mission_of(task, episode.state(0)))
        scenes.append(Scene(f"{name}: {measure.name} {value}", pictures, episode.terms, program.terms, about))
    step_ms = 160 if len(ticks) <= 40 else 100 if len(ticks) <= 90 else 60  # short episodes more slowly
    write_film(path, with_panels(scenes, moments), step_ms=step_ms, colours=COLOURS)
    return shown
