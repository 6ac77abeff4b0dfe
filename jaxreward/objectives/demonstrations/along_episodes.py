"""The reward of a program at every step of episodes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce

import numpy as np

from jaxreward.demonstrations import Positives, Trajectories
from jaxreward.objectives.demonstrations.scoring import Array, stays
from jaxreward.programs import Program
from jaxreward.programs.batched_rewards import BatchedRewards
from jaxreward.programs.samples import Samples
from jaxreward.runs.episode_rewards import BestRewards, EpisodeRewards, GroupRewards, Who

SHOWN = 4
"""Episodes of a kind whose steps are kept."""

STEPS = 200
"""Steps of an episode that are kept at most."""

BINS = 40


@dataclass(frozen=True)
class EpisodeGroup:
    """Episodes of one kind, as `GroupRewards` has them."""

    who: Who
    episodes: Trajectories
    held_out: bool = False
    expansion: str = ""

    def positive(self, positives: Positives) -> Array:
        """Which steps lead to a state that should be told from others, bool (T,)."""
        found = np.zeros(self.episodes.steps, bool)
        if self.who == "expert":
            found[self.episodes.positive_steps(positives)] = True
        return found


def best_rewards(program: Program, groups: Sequence[EpisodeGroup], positives: Positives, horizon: int) -> BestRewards:
    """What `program` pays along the episodes of `groups`, with one launch for all; `horizon` is that of the task."""
    whole = reduce(Samples.joined, (group.episodes.transitions() for group in groups))
    ends = np.cumsum([group.episodes.steps for group in groups])
    parts = np.split(np.asarray(BatchedRewards([program])(whole))[0], ends[:-1])
    masks = [group.positive(positives) for group in groups]
    told = [r[m] if g.who == "expert" else r for g, r, m in zip(groups, parts, masks, strict=True)]
    finite = np.concatenate(told)
    finite = finite[np.isfinite(finite)].astype(np.float64)
    edges = np.histogram_bin_edges(finite, BINS)
    return BestRewards(
        digest=program.digest,
        edges=tuple(edges.tolist()),
        groups=tuple(
            GroupRewards(
                who=g.who, held_out=g.held_out, expansion=g.expansion, count=len(g.episodes),
                shown=tuple(_episode(g.episodes, r, m, k) for k in range(min(SHOWN, len(g.episodes)))),
                mean=_finite(np.average(r, weights=stays(g.episodes, horizon))),
                states=tuple(np.histogram(t[np.isfinite(t)].astype(np.float64), edges)[0].tolist()),
            )
            for g, r, m, t in zip(groups, parts, masks, told, strict=True)
        ),
    )  # fmt: skip


def _episode(episodes: Trajectories, rewards: Array, positive: Array, k: int) -> EpisodeRewards:
    length, success = int(episodes.lengths[k]), float(episodes.success[k])
    first = int(episodes.last_steps[k]) + 1 - length
    kept = np.unique(np.linspace(0, length - 1, min(length, STEPS)).round().astype(int))
    return EpisodeRewards(
        length=length, success=_finite(success), steps=tuple((kept + 1).tolist()),
        rewards=tuple(map(_finite, rewards[first + kept])),
        positive=tuple(positive[first + kept].tolist()),
    )  # fmt: skip


def _finite(x: float) -> float | None:
    return float(x) if np.isfinite(x) else None
