"""The episodes of a search on text: the expert's and others, to search with and held out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np

from jaxreward import files
from jaxreward.demonstrations.texts import TextEpisode, load_texts, save_texts
from jaxreward.demonstrations.trajectories import Positives
from jaxreward.errors import UserError
from jaxreward.objectives.demonstrations.demonstration_sets import FOLDER
from jaxreward.objectives.demonstrations.scoring import Array
from jaxreward.programs.host.checker import Transitions
from jaxreward.search.seeding import derive_rng

_FILES = ("expert", "negative", "expert-held-out", "negative-held-out")


@dataclass(frozen=True, eq=False)
class TextData:
    """The transitions of two sets of episodes, the expert's first.

    Attributes:
        steps: (state, action, next state) of each: those that are to be told from the others, the rest of the expert's,
            those of others.
        experts: how many are to be told from the others.
        of_expert: how many are the expert's.
        episodes: of each transition its episode, the others' after the expert's, int (n,).
        log_probability: of every action: 0, so that the discriminator is the logistic function of the reward.
    """

    steps: tuple[tuple[str, str, str], ...]
    experts: int
    of_expert: int
    episodes: Array
    log_probability: float = 0.0

    @property
    def weights(self) -> Array:
        """Every step counts as one."""
        return np.ones(len(self.steps), np.float32)

    @staticmethod
    def of(expert: Sequence[TextEpisode], negative: Sequence[TextEpisode], positives: Positives) -> TextData:
        """The transitions of episodes."""
        every = [(k, step) for k, episode in enumerate(expert) for step in episode.steps]
        own, rest = every, list[tuple[int, tuple[str, str, str]]]()
        if positives == "last":
            parts = (slice(-1, None), slice(-1))
            own, rest = ([(k, x) for k, e in enumerate(expert) for x in e.steps[part]] for part in parts)
        others = [(k, step) for k, episode in enumerate(negative, start=len(expert)) for step in episode.steps]
        whole = (*own, *rest, *others)
        return TextData(
            tuple(step for _, step in whole), len(own), len(every), np.array([k for k, _ in whole], np.int64)
        )


@dataclass(frozen=True, eq=False)
class TextSets:
    """Episodes to search with, and held-out ones, which may be none."""

    expert: tuple[TextEpisode, ...]
    negative: tuple[TextEpisode, ...]
    expert_held_out: tuple[TextEpisode, ...]
    negative_held_out: tuple[TextEpisode, ...]
    positives: Positives

    @staticmethod
    def of(
        expert: Sequence[TextEpisode], negative: Sequence[TextEpisode], *,
        experts: int, negatives: int, positives: Positives, seed: int,
    ) -> TextSets:  # fmt: skip
        """`experts` and `negatives` episodes to search with, which `seed` chooses; all others are held out.

        Raises:
            UserError: there are none of the expert, or no others.
        """
        for what, episodes in (("of the expert", expert), ("that an expert would not play", negative)):
            if not episodes:
                raise UserError(f"there are no episodes {what}: a reward is found by what tells both sets apart")
        sets = list[tuple[TextEpisode, ...]]()
        for what, episodes, count in (("expert", expert, experts), ("negative", negative, negatives)):
            order = derive_rng(seed, f"{what} episodes").permutation(len(episodes))
            sets += [tuple(episodes[i] for i in np.sort(part)) for part in (order[:count], order[count:])]
        return TextSets(sets[0], sets[2], sets[1], sets[3], positives)

    @cached_property
    def data(self) -> TextData:
        """The transitions to search with."""
        return TextData.of(self.expert, self.negative, self.positives)

    @cached_property
    def held_out(self) -> TextData | None:
        """Those of held-out episodes; None where one of the sets has none."""
        if not self.expert_held_out or not self.negative_held_out:
            return None
        return TextData.of(self.expert_held_out, self.negative_held_out, self.positives)

    @cached_property
    def transitions(self) -> Transitions:
        """All of them, the held-out ones last: what a program is executed on."""
        return Transitions.of([*self.data.steps, *(self.held_out.steps if self.held_out else ())])

    def write(self, folder: Path) -> None:
        """Write the sets into the folder of a run, or require those that are there.

        Raises:
            UserError: the run began with others.
        """
        sets = (self.expert, self.negative, self.expert_held_out, self.negative_held_out)
        for name, episodes in zip(_FILES, sets, strict=True):
            path = folder / FOLDER / f"{name}.jsonl"
            if not files.is_there(path):
                if episodes:
                    save_texts(path, episodes)
            elif load_texts(path) != episodes:
                raise UserError(f"{folder} began with other episodes than are given now: see {path}")
