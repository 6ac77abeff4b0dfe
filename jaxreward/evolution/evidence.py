"""Episodes of an agent as evidence for a judge: frames where much happens, and what the reward paid between them."""

from __future__ import annotations

import io
from itertools import pairwise
from pathlib import Path
from typing import Any

import jax
import numpy as np

from jaxreward.evolution.filming import draw_of
from jaxreward.programs import Program
from jaxreward.records import Evidence, FilmedEpisode
from jaxreward.records.evidence import frame_path, index_path
from jaxreward.runs.disk import make_folder, write_atomic
from jaxreward.tasks import Task
from jaxreward.training import Learner
from jaxreward.training.episodes import Episode, play
from jaxreward.training.networks import Variables

_MOST = 1e30
"""In place of what is infinite, which JSON does not have."""

LARGEST, QUALITY = 512, 80
"""Pixels of the longer side of a frame, at most, and the quality of its JPEG."""


def save_evidence(
    run: Path,
    id: str,
    task: Task,
    program: Program,
    variables: Variables,
    ppo: Learner,
    *,
    episodes: int,
    frames: int,
    with_rewards: bool = True,
) -> None:
    """Let an agent play, and write frames of its episodes and their rewards into the folder of a run, under `id`.

    Without rewards, which frames are taken does not depend on them, and they are not kept. All agents of a run begin
    alike. A task that draws nothing is shown as the numbers of its view.
    """
    played = play(task, program, variables, ppo, episodes)
    draw = draw_of(task, played)
    folder = index_path(run, id).parent
    make_folder(folder.parent, below=run)
    make_folder(folder, below=run)
    filmed = []
    for number, episode in enumerate(played):
        terms = episode.terms if with_rewards else np.zeros((episode.length, 0))
        steps = telling_steps(_figures(task, episode), terms, frames)
        for k, step in enumerate(steps):
            write_atomic(frame_path(run, id, number, k), _jpeg(draw(episode.state(step))), below=run)
        filmed.append(filmed_episode(episode, steps, terms, program.terms if with_rewards else ()))
    text = Evidence(episodes=tuple(filmed)).model_dump_json()
    write_atomic(index_path(run, id), text.encode(), below=run)


def telling_steps(figures: np.ndarray, terms: np.ndarray, most: int) -> tuple[int, ...]:
    """The states of an episode to show: the first, the last, and between them more where more happens.

    A third of the frames is spread evenly, a third by how much the state moves, and a third by how much the terms of
    the reward change.

    Args:
        figures: the numbers of the states, (T + 1, D).
        terms: what each term paid on each step, (T, K).
        most: frames at most, two or more.

    Returns:
        Steps in [0, T] in ascending order, T + 1 of them where that is not more than `most`.
    """
    length = len(figures) - 1
    if length < most:
        return tuple(range(length + 1))
    rate = np.full(length, 1.0 / length)
    for moved in (_changes(figures), _changes(np.concatenate([terms[:1], terms]))):
        rate = rate + (moved / moved.sum() if moved.sum() > 0 else 1.0 / length)
    position = np.concatenate([[0.0], np.cumsum(rate)]) / rate.sum()
    chosen = {0, length, *np.searchsorted(position, np.linspace(0.0, 1.0, most), side="left").clip(0, length).tolist()}
    while len(chosen) < most:  # several fell on one step
        order = sorted(chosen)
        start, end = max(pairwise(order), key=lambda gap: gap[1] - gap[0])
        chosen.add((start + end) // 2)
    return tuple(sorted(chosen))


def _changes(values: np.ndarray) -> np.ndarray:
    """How much each row differs from the one before, each column on the scale of its spread."""
    steps = np.abs(np.diff(np.nan_to_num(values.astype(np.float64), posinf=0.0, neginf=0.0), axis=0))
    spread = steps.max(0, initial=0.0)
    return (steps / np.where(spread > 0, spread, 1.0)).sum(1)


def _figures(task: Task, episode: Episode) -> np.ndarray:
    """The numbers of the view of an episode's states, (T + 1, D)."""
    leaves = jax.tree.leaves(jax.device_get(jax.vmap(task.view)(episode.states)))
    return np.concatenate([np.asarray(leaf, np.float64).reshape(episode.length + 1, -1) for leaf in leaves], axis=1)


def filmed_episode(
    episode: Episode, steps: tuple[int, ...], terms: np.ndarray, names: tuple[str, ...]
) -> FilmedEpisode:
    """What a judge is told of an episode whose frames are those before and after `steps`; `terms` (T, K) are what the
    reward paid in each step."""
    finite = np.nan_to_num(terms.astype(np.float64), posinf=_MOST, neginf=-_MOST).clip(-_MOST, _MOST)
    paid = np.stack([finite[a:b].sum(0) for a, b in pairwise((0, *steps))]).clip(-_MOST, _MOST)
    by_name = {name: tuple(np.round(paid[:, k], 4).tolist()) for k, name in enumerate(names)}
    success = float(np.nan_to_num(episode.success, posinf=_MOST, neginf=-_MOST))
    return FilmedEpisode(length=episode.length, success=success, steps=steps, paid=by_name)


def _jpeg(picture: Any) -> bytes:
    from PIL import Image

    image, found = Image.fromarray(np.asarray(picture)), io.BytesIO()
    image.thumbnail((LARGEST, LARGEST))
    image.save(found, "JPEG", quality=QUALITY, optimize=True)
    return found.getvalue()
