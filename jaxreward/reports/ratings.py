"""Alignment rates as lines and texts."""

from __future__ import annotations

from jaxreward.formatting import counted
from jaxreward.records import RatedProgram, Ratings
from jaxreward.records.ratings import SCALE
from jaxreward.reports.baselines import WINNER
from jaxreward.reports.run_view import FINAL_BEST
from jaxreward.reports.tables import alignment_text


def rated_programs(ratings: Ratings | None) -> dict[str, RatedProgram]:
    """What was rated by the names that tables have."""
    found = ratings.programs if ratings is not None else {}
    return {WINNER if name == FINAL_BEST else name: rated for name, rated in found.items()}


def rating_rows(ratings: Ratings) -> list[str]:
    """A line for every program: its alignment rate, over how many seeds, and how far votes on one episode are apart."""
    programs = rated_programs(ratings)
    width = max(map(len, programs))
    return [
        f"{name:<{width}}  alignment rate {alignment_text(rated.score)}, {counted(rated.score.n, 'seed')}, "
        f"{counted(rated.score.episodes, 'episode')}"
        + (f"; votes on one episode up to {rated.spread} of {SCALE} apart" if rated.spread > 1 else "")
        for name, rated in programs.items()
    ]


def rating_text(ratings: Ratings | None) -> str:
    """The alignment rates of a run in a sentence, with who rated; empty where nobody did."""
    if ratings is None:
        return ""
    each = "; ".join(f"{name} {alignment_text(rated.score)}" for name, rated in rated_programs(ratings).items())
    return f"{each}, rated by {ratings.model}"
