"""Elo ratings from pairwise preferences (Elo, 1978; REvolve's human mode: K = 32 from 1500)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

START = 1500.0
K = 32.0

Verdict = Literal["first", "second", "equal"]
"""Which of two agents did better; the first word of an answer to `prefer`."""

SHARE: dict[Verdict, float] = {"first": 1.0, "equal": 0.5, "second": 0.0}


def expected(first: float, second: float) -> float:
    """The share of wins that ratings `first` and `second` predict for the first."""
    return 1.0 / (1.0 + 10.0 ** ((second - first) / 400.0))


def rated(ratings: Mapping[str, float], first: str, second: str, verdict: Verdict) -> dict[str, float]:
    """`ratings` after one comparison; new ones start at `START`."""
    a, b = ratings.get(first, START), ratings.get(second, START)
    step = K * (SHARE[verdict] - expected(a, b))
    return {**ratings, first: a + step, second: b - step}


def read_preference(words: str) -> tuple[Verdict | None, str]:
    """The verdict and the remark of an answer to `prefer`; no verdict where the first line has none."""
    head, _, remark = words.strip().partition("\n")
    word = head.strip().lower()
    verdict: Verdict | None = word if word in SHARE else None
    return verdict, " ".join(remark.split())
