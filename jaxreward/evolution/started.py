"""The settings that a run was started with."""

from __future__ import annotations

from pathlib import Path

from jaxreward.config import apply
from jaxreward.evolution.settings import EvolveSettings
from jaxreward.runs.run import read_config

AS_BEFORE = {"blocks": False, "surrogate": 0}
"""Settings that runs from before they existed go on with, where those are not the defaults."""


def started_settings(path: Path) -> EvolveSettings:
    """The settings in the folder of a run.

    Raises:
        UserError: there is no run, or its settings cannot be read.
    """
    return apply(EvolveSettings(), AS_BEFORE | read_config(path), str(path / "config.toml"))
