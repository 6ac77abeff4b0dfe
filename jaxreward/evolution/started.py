"""The settings that a run was started with."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from jaxreward.config import apply
from jaxreward.evolution.settings import EvolveSettings
from jaxreward.runs.run import read_config
from jaxreward.search.option_text import own_options, written
from jaxreward.search.registry import STRATEGIES

AS_BEFORE = {"blocks": False, "surrogate": 0}
"""Settings that runs from before they existed go on with, where those are not the defaults."""


def started_settings(path: Path) -> EvolveSettings:
    """The settings in the folder of a run.

    Raises:
        UserError: there is no run, or its settings cannot be read.
    """
    config = as_now(_with_options(read_config(path)))
    return apply(EvolveSettings(), AS_BEFORE | config, str(path / "config.toml"))


def as_now(config: Mapping[str, Any]) -> dict[str, Any]:
    """The settings of a run with the default of `judge` as it is called now: before models judged, people were all."""
    of_before = "judge_votes" not in (config.get("llm") or {})
    return {**config, "judge": "auto"} if of_before and config.get("judge") == "files" else dict(config)


def _with_options(config: dict[str, Any]) -> dict[str, Any]:
    """The settings of a run with the options of its strategy that its version did not have, as they were before."""
    known, given = STRATEGIES.get(config.get("strategy", EvolveSettings.strategy)), config.get("option", ())
    if known is None:
        return config
    named = {text.partition("=")[0].strip().replace("-", "_") for text in given}
    defaults = own_options(known.name)
    more = [f"{name}={written(defaults[name])}" for name in known.with_model if name not in named]
    return {**config, "option": [*given, *more]}
