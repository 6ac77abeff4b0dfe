"""How far a model says that agents do what their instruction asks for: the alignment rate (RDA, section 10.1)."""

from __future__ import annotations

import math
from statistics import fmean, stdev

from pydantic import Field

from jaxreward.records.base import Record
from jaxreward.records.measure import Measure, Score

SCALE = 5
"""The best of the scale that a model rates on, from 1."""

ALIGNMENT_RATE = Measure(name="alignment rate")
"""The mean rating divided by the best."""


class Rating(Record):
    """A vote on one episode: from 1, nothing of the instruction is done, to 5, and why."""

    score: int = Field(ge=1, le=SCALE)
    why: str = ""


class RatedProgram(Record):
    """The votes on the agents of a program: for every training seed, for every episode, those that could be read. A
    seed that diverged has no episodes, one of which no answer could be used has episodes without votes. `digest` is of
    the program."""

    digest: str
    seeds: tuple[tuple[tuple[Rating, ...], ...], ...] = Field(min_length=1)

    @property
    def score(self) -> Score:
        """The alignment rate: the mean over votes, episodes and seeds, divided by the best rating. A seed that diverged
        has the worst, one without votes is left out. The standard error is that of the mean over seeds, of one seed
        that over its episodes."""
        counted = [seed for seed in self.seeds if not seed or any(seed)]
        by_seed = [[fmean(vote.score for vote in votes) / SCALE for votes in seed if votes] for seed in counted]
        means = [fmean(episodes) if episodes else 1 / SCALE for episodes in by_seed]
        spread = means if len(means) > 1 else by_seed[0]
        se = stdev(spread) / math.sqrt(len(spread)) if len(spread) > 1 else 0.0
        episodes = sum(map(len, by_seed))
        return Score(mean=fmean(means), se=se, n=len(means), episodes=episodes, measure=ALIGNMENT_RATE)

    @property
    def spread(self) -> float:
        """How far the votes on one episode are apart, at most."""
        return max((max(v.score for v in votes) - min(v.score for v in votes)
                    for seed in self.seeds for votes in seed if votes), default=0)  # fmt: skip

    @property
    def lowest(self) -> Rating | None:
        """The vote with the lowest rating, the first of them."""
        return min((v for seed in self.seeds for votes in seed for v in votes), key=lambda v: v.score, default=None)


class Ratings(Record):
    """What `model` rated of a run, asked `votes` times about each of `episodes` of an agent with `frames` at most:
    `programs` by name, `best` and those of baselines."""

    model: str
    votes: int
    episodes: int
    frames: int
    programs: dict[str, RatedProgram]

    @property
    def by(self) -> str:
        """Who rated, and how."""
        return f"{self.model}, {self.votes} votes on {self.episodes} episodes of {self.frames} frames"
