"""The interface of a population: the one place of the trainer that knows of programs.

Program k is applied to slice k of the state batch. (A switch under vmap would evaluate every
program on every lane.) Observations are zero-padded to a common width and terms to a common
number, so that everything after this file sees plain arrays.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp

from jaxreward.programs import Program

# Common widths are rounded up, so that the learner, which depends on shapes alone, is compiled
# once for many populations.
_WIDTH_STEP, _TERMS_STEP = 32, 8


def _round_up(n: int, step: int) -> int:
    return -(-n // step) * step


def padded_sizes(programs: Sequence[Program]) -> tuple[int, int]:
    """The common observation size and number of terms, rounded up to multiples of 32 and 8."""
    return (
        _round_up(max(p.observation_size for p in programs), _WIDTH_STEP),
        _round_up(max(len(p.terms) for p in programs), _TERMS_STEP),
    )


class Population:
    """Programs that train side by side.

    Attributes:
        widths: observation size of each program.
        width, terms: the padded observation size and number of reward terms.
    """

    def __init__(self, programs: Sequence[Program], width: int = 0, terms: int = 0) -> None:
        self.programs = tuple(programs)
        self.widths = tuple(p.observation_size for p in self.programs)
        own_width, own_terms = padded_sizes(self.programs)
        self.width, self.terms = max(own_width, width), max(own_terms, terms)

    def __len__(self) -> int:
        return len(self.programs)

    def observe(self, views: Any) -> jax.Array:
        """views with leading axes (C, n) to observations float32 (C, n, width)."""
        rows = []
        for k, program in enumerate(self.programs):
            obs = jax.vmap(program.observe)(_slice(views, k))
            rows.append(jnp.pad(obs, ((0, 0), (0, self.width - obs.shape[-1]))))
        return jnp.stack(rows)

    def reward(self, views: Any, actions: jax.Array, next_views: Any) -> tuple[jax.Array, jax.Array]:
        """Views and actions with leading axes (C, n) to rewards (C, n) and terms (C, n, terms)."""
        rewards, terms = [], []
        for k, program in enumerate(self.programs):
            reward, parts = jax.vmap(program.reward)(_slice(views, k), actions[k], _slice(next_views, k))
            rewards.append(reward)
            terms.append(jnp.pad(parts, ((0, 0), (0, self.terms - parts.shape[-1]))))
        return jnp.stack(rewards), jnp.stack(terms)


def _slice(tree: Any, k: int) -> Any:
    return jax.tree.map(lambda x: x[k], tree)
