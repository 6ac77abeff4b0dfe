"""Learning from demonstrations in the same trainer: GAIL, AIRL and behaviour cloning."""

from __future__ import annotations

from jaxreward.training.imitation.experts import Experts, Imitation, ImitationRows
from jaxreward.training.imitation.methods import AIRL, GAIL, METHODS, Adversarial, Cloning, Method, method_of

__all__ = [
    "AIRL", "GAIL", "METHODS", "Adversarial", "Cloning", "Experts", "Imitation", "ImitationRows", "Method", "method_of",
]  # fmt: skip
