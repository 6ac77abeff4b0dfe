"""The interface of a population: the one place of the trainer that knows of programs.

Program k is applied to slice k of the state batch. (A switch under vmap would evaluate every
program on every lane.) What several programs compute alike is applied to their slices together and
compiled once, as is a program with other constants, which are inputs. Observations are zero-padded
to a common width and terms to a common number, so that everything after this file sees plain arrays.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxreward.errors import InvalidSetting
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
            raise InvalidSetting("programs that train side by side must be of one task", "programs")
        self.constants = np.zeros((len(self), max(len(p.constants) for p in self.programs)), np.float32)
        for row, program in zip(self.constants, self.programs, strict=True):
            row[: len(program.constants)] = program.constants

    @cached_property
    def _observations(self) -> Merged:
        return Merged([p.observation_tape for p in self.programs], len(self._spec.leaves))

    @cached_property
    def _rewards(self) -> Merged:
        tapes = [p.skeleton.tape if p.skeleton else p.reward_tape for p in self.programs]
        return Merged(tapes, 2 * len(self._spec.leaves) + 1)

    @property
    def _spec(self) -> Spec:
        return self.programs[0].spec

    def __len__(self) -> int:
        return len(self.programs)

    def observe(self, views: Any) -> jax.Array:
        """views with leading axes (C, n) to observations float32 (C, n, width)."""
        arrays = jax.vmap(jax.vmap(self._spec.flatten))(views)
        groups = [(members, _padded(obs, self.width)) for members, (obs,) in self._observations(arrays)]
        return _in_order(groups)

    def reward(
        self, constants: jax.Array, views: Any, actions: jax.Array, next_views: Any
    ) -> tuple[jax.Array, jax.Array]:
        """Views and actions with leading axes (C, n) to rewards (C, n) and terms (C, n, terms)."""

        def flatten(view: Any, action: jax.Array, next_view: Any) -> list[jax.Array]:
            return [*self._spec.flatten(view), self._spec.act(action), *self._spec.flatten(next_view)]

        arrays = jax.vmap(jax.vmap(flatten))(views, actions, next_views)
        numbers = [constants[:, i] for i in range(constants.shape[1])]
        groups = self._rewards([*arrays, *numbers])
        rewards = [(members, total) for members, (total, *_) in groups]
        terms = [(members, _padded(jnp.stack(parts, -1), self.terms)) for members, (_, *parts) in groups]
        return _in_order(rewards), _in_order(terms)


def _padded(x: jax.Array, width: int) -> jax.Array:
    """Zeros appended along the last axis."""
    return jnp.pad(x, (*[(0, 0)] * (x.ndim - 1), (0, width - x.shape[-1])))


def _in_order(groups: Sequence[tuple[tuple[int, ...], jax.Array]]) -> jax.Array:
    """Rows of groups of programs as one array, program by program."""
    order = [k for members, _ in groups for k in members]
    rows = jnp.concatenate([x for _, x in groups])
    return rows if order == sorted(order) else rows[np.argsort(order)]
