"""The vocabulary of levels."""

from __future__ import annotations

from jaxreward.records import Vocabulary
from jaxreward.tasks.levels.catalogue import Level


def level_vocabulary(level: Level) -> Vocabulary:
    return Vocabulary()
