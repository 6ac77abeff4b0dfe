"""The interface of a population: the one place of the trainer that knows of programs.

Program k is applied to slice k of the state batch. (A switch under vmap would evaluate every
program on every lane.) Programs that compute the same thing with other constants are applied
together, mapped over their constants, and compiled once. Observations are zero-padded to a common
width and terms to a common number, so that everything after this file sees plain arrays.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxreward.programs import Program

# Common widths are rounded up, so that the learner, which depends on shapes alone, is compiled
# once for many populations.
_WIDTH_STEP, _TERMS_STEP = 32, 8


def _round_up(n: int, step: int) -> int:
    return -(-n // step) * step


def padded_sizes(programs: Sequence[Program], room: tuple[int, int] = (0, 0)) -> tuple[int, int]:
    """The common observation size and number of terms, not less than `room`, rounded up to multiples of 32 and 8."""
    return (
        _round_up(max(room[0], *(p.observation_size for p in programs)), _WIDTH_STEP),
        _round_up(max(room[1], *(len(p.terms) for p in programs)), _TERMS_STEP),
    )


Constants = tuple[Any, ...]
"""float32 (G, k) for each group of rewards with one skeleton."""


class Population:
    """Programs that train side by side.

    Attributes:
        widths: observation size of each program.
        width, terms: the padded observation size and number of reward terms.
        structure: what of the programs is compiled: all but the constants of their rewards.
        constants: of the rewards, as `reward` takes them.
    """

    def __init__(self, programs: Sequence[Program], width: int = 0, terms: int = 0) -> None:
        self.programs = tuple(programs)
        self.widths = tuple(p.observation_size for p in self.programs)
        own_width, own_terms = padded_sizes(self.programs)
        self.width, self.terms = max(own_width, width), max(own_terms, terms)
        self.structure = tuple(p.structure for p in self.programs)
        self._observers = _groups([seen for seen, _ in self.structure])
        self._rewarders = _groups([paid for _, paid in self.structure])
        self.constants: Constants = tuple(
            np.stack([self.programs[k].constants for k in members]) for members in self._rewarders
        )

    def __len__(self) -> int:
        return len(self.programs)

    def observe(self, views: Any) -> jax.Array:
        """views with leading axes (C, n) to observations float32 (C, n, width)."""
        rows = dict[int, jax.Array]()
        for members in self._observers:
            observe = jax.vmap(jax.vmap(self.programs[members[0]].observe))
            obs = observe(_pick(views, members))
            obs = jnp.pad(obs, ((0, 0), (0, 0), (0, self.width - obs.shape[-1])))
            rows |= dict(zip(members, obs, strict=True))
        return jnp.stack([rows[k] for k in range(len(self))])

    def reward(
        self, constants: Constants, views: Any, actions: jax.Array, next_views: Any
    ) -> tuple[jax.Array, jax.Array]:
        """Views and actions with leading axes (C, n) to rewards (C, n) and terms (C, n, terms)."""
        rows = dict[int, tuple[jax.Array, jax.Array]]()
        for members, values in zip(self._rewarders, constants, strict=True):
            reward = jax.vmap(jax.vmap(self.programs[members[0]].reward_with, in_axes=(None, 0, 0, 0)))
            paid, parts = reward(values, *(_pick(x, members) for x in (views, actions, next_views)))
            parts = jnp.pad(parts, ((0, 0), (0, 0), (0, self.terms - parts.shape[-1])))
            rows |= dict(zip(members, zip(paid, parts, strict=True), strict=True))
        rewards, terms = zip(*(rows[k] for k in range(len(self))), strict=True)
        return jnp.stack(rewards), jnp.stack(terms)


def _groups(digests: Sequence[str]) -> list[list[int]]:
    """Where each digest occurs, in the order of the first."""
    places = dict[str, list[int]]()
    for k, digest in enumerate(digests):
        places.setdefault(digest, []).append(k)
    return list(places.values())


def _pick(tree: Any, members: Sequence[int]) -> Any:
    """Rows of a population's arrays: a slice where they are neighbours."""
    first, last = members[0], members[-1] + 1
    if last - first == len(members):
        return jax.tree.map(lambda x: x[first:last], tree)
    return jax.tree.map(lambda x: x[np.asarray(members)], tree)
