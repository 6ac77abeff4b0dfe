"""What turns programs into scores: so far how well rewards tell the states of an expert from others."""

from __future__ import annotations

from jaxreward.objectives.fitness import accuracy, airl_fitness
from jaxreward.objectives.scoring import DemonstrationData, Separation, separate

__all__ = ["DemonstrationData", "Separation", "accuracy", "airl_fitness", "separate"]
