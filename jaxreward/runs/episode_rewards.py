"""`demonstrations/rewards.json` of a run: what its best reward pays along the episodes, for its report."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from jaxreward import files
from jaxreward.records.base import Record

FOLDER = "demonstrations"
"""Of a run: the episodes that it searches with, and what its best reward pays along them."""

_FILE = Path(FOLDER, "rewards.json")

Who = Literal["expert", "others", "policy"]
"""The expert, the negative episodes that the search began with, or a policy that was trained to expand the data."""


class EpisodeRewards(Record):
    """One episode.

    Attributes:
        length: steps.
        success: by the task's metric; None where that is not known.
        steps: those that are kept, ascending, from 1: a reward is of the state after its step. All of a short episode.
        rewards: of each, None where it is not finite.
        positive: of each, whether it is a state that the search told from others as one of the expert.
    """

    length: int
    success: float | None
    steps: tuple[int, ...]
    rewards: tuple[float | None, ...]
    positive: tuple[bool, ...]


class GroupRewards(Record):
    """Episodes of one kind.

    Attributes:
        expansion: of a policy, the id of the request that its episodes answered.
        count: episodes, of which `shown` are the first.
        mean: the reward of a step, the state that ended an episode early being paid for until the horizon; None where
            it is not finite, or not known.
        states: how many states that the search tells apart have a reward in each bin of `BestRewards.edges`; of the
            expert those that count as positive, of others all.
    """

    who: Who
    held_out: bool = False
    expansion: str = ""
    count: int
    shown: tuple[EpisodeRewards, ...]
    mean: float | None = None
    states: tuple[int, ...]


class BestRewards(Record):
    """The rewards that one program pays.

    Attributes:
        digest: of the program.
        edges: of the bins, ascending, one more than there are bins.
    """

    digest: str
    edges: tuple[float, ...]
    groups: tuple[GroupRewards, ...]


def write_best_rewards(folder: Path, rewards: BestRewards) -> None:
    """Write the file of the run in `folder`, in which there is a folder of demonstrations."""
    files.replace(folder / _FILE, rewards.model_dump_json().encode(), below=folder)


def read_best_rewards(folder: Path) -> BestRewards | None:
    """The file of the run in `folder`; None where there is none, or it is damaged."""
    try:
        return BestRewards.model_validate_json(files.read_text(folder / _FILE, below=folder))
    except (OSError, ValueError):
        return None
