"""The figures that LIMEN's paper prints in words (arXiv 2605.03408, sections 5.5 to 5.7): its plots have no numbers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple


class Ablation(NamedTuple):
    """Success after ten seeds of final training (section 5.5); None where the text does not say it."""

    sparse: float | None = None
    observation: float | None = None
    reward: float | None = None
    both: float | None = None


FIGURE_4: Mapping[str, Ablation] = {
    "xland-easy": Ablation(observation=1.00, both=0.99),
    "xland-medium": Ablation(reward=0.19, both=0.99),
    "xland-hard": Ablation(reward=0.01, both=0.85),
    "panda-tracking": Ablation(observation=0.00, reward=0.70, both=0.45),
    "go1-push-recovery": Ablation(both=0.48),
}


class Sampling(NamedTuple):
    """Success of 30 independent samples, their mean, and of the best interface by the score of the search (5.6)."""

    samples: float | None
    evolved: float | None


FIGURE_5: Mapping[str, Sampling] = {
    "xland-easy": Sampling(None, None),
    "xland-medium": Sampling(0.021, 0.97),
    "xland-hard": Sampling(0.008, 0.76),
    "panda-tracking": Sampling(0.109, 0.67),
    "go1-push-recovery": Sampling(0.215, 0.55),
}


class Shift(NamedTuple):
    """A variant of a task (section 5.7): the option here, what it is, and the paper's success."""

    argument: str
    words: str
    success: float


FIGURE_6: Mapping[str, tuple[Shift, ...]] = {
    "go1-push-recovery": (
        Shift("", "as it is", 0.503),
        Shift("push_force_scale=2", "pushes twice as hard", 0.178),
        Shift("push_interval=40", "pushes more often", 0.103),
    ),
    "panda-tracking": (
        Shift("", "as it is", 0.539),
        Shift("speed_scale=2", "a faster target", 0.451),
        Shift("radius_scale=1.5", "a larger path", 0.299),
    ),
}
"""How much faster, larger and more often the paper's are is not said."""
