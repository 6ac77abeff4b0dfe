"""The interface of a population: the one place of the trainer that knows of programs.

Program k is applied to slice k of the state batch. (A switch under vmap would evaluate every
program on every lane.) Programs that compute the same thing with other constants are applied
together, mapped over their constants, and compiled once. Observations are zero-padded to a common
width and terms to a common number, so that everything after this file sees plain arrays.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxreward.errors import UserError
from jaxreward.programs import Program, Spec
from jaxreward.programs.merged import Merged

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
        if any((p.spec.leaves, p.spec.action) != (self._spec.leaves, self._spec.action) for p in self.programs):
            raise UserError("programs that train side by side must be of one task")
        self.constants = np.zeros((len(self), max(len(p.constants) for p in self.programs)), np.float32)
        for row, program in zip(self.constants, self.programs, strict=True):
            row[: len(program.constants)] = program.constants

    @cached_property
    def _observations(self) -> Merged:
        return Merged([p.observation_tape for p in self.programs])

    @cached_property
    def _rewards(self) -> Merged:
        return Merged([p.skeleton.tape if p.skeleton else p.reward_tape for p in self.programs])

    @property
    def _spec(self) -> Spec:
        return self.programs[0].spec

    def __len__(self) -> int:
        return len(self.programs)

    def observe(self, views: Any) -> jax.Array:
        """views with leading axes (C, n) to observations float32 (C, n, width)."""
        arrays = jax.vmap(jax.vmap(self._spec.flatten))(views)
        found = [obs for (obs,) in self._observations(arrays)]
        return jnp.stack([jnp.pad(obs, ((0, 0), (0, self.width - obs.shape[-1]))) for obs in found])

    def reward(
        self, constants: jax.Array, views: Any, actions: jax.Array, next_views: Any
    ) -> tuple[jax.Array, jax.Array]:
        """Views and actions with leading axes (C, n) to rewards (C, n) and terms (C, n, terms)."""

        def flatten(view: Any, action: jax.Array, next_view: Any) -> list[jax.Array]:
            return [*self._spec.flatten(view), self._spec.act(action), *self._spec.flatten(next_view)]

        arrays = jax.vmap(jax.vmap(flatten))(views, actions, next_views)
        shape = actions.shape[:2]
        spread = [jnp.broadcast_to(constants[:, i, None], shape) for i in range(constants.shape[1])]
        rewards, terms = list[jax.Array](), list[jax.Array]()
        for total, *parts in self._rewards([*arrays, *spread]):
            rewards.append(total)
            terms.append(jnp.pad(jnp.stack(parts, -1), ((0, 0), (0, self.terms - len(parts)))))
        return jnp.stack(rewards), jnp.stack(terms)
