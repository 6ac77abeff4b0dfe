"""Demonstrations: episodes of a task, recorded, imported, and kept in files."""

from __future__ import annotations

from jaxreward.demonstrations.experts import record_expert
from jaxreward.demonstrations.importing import from_arrays, from_minari
from jaxreward.demonstrations.recording import (
    Actor,
    RandomActor,
    record,
    record_actions,
    record_random,
    reset_keys,
    uniform_log_probability,
)
from jaxreward.demonstrations.storage import load_trajectories, save_trajectories, task_of_episodes
from jaxreward.demonstrations.trajectories import Positives, Trajectories, WrongTrajectories, joined

__all__ = [
    "Actor",
    "Positives",
    "RandomActor",
    "Trajectories",
    "WrongTrajectories",
    "from_arrays",
    "from_minari",
    "joined",
    "load_trajectories",
    "record",
    "record_actions",
    "record_expert",
    "record_random",
    "reset_keys",
    "save_trajectories",
    "task_of_episodes",
    "uniform_log_probability",
]
