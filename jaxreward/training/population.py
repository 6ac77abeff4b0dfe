"""The interface of a population: the one place of the trainer that knows of programs.

Program k has slice k of the state batch, in one of two ways. By rows, a program is code and is applied to its slice.
(A switch under vmap would evaluate every program on every lane.) What several programs compute alike is applied to
their slices together and compiled once, as is a program with other constants, which are inputs. With a bank, a program
is data: what the bank holds is applied to all slices, and tables select what is a program's own (`programs.bank`).
Programs that the bank does not have are applied to their slices beside it.

Observations are zero-padded to a common width and terms to a common number, so that everything after this file sees
plain arrays.
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
from jaxreward.programs.bank import Bank
from jaxreward.programs.merged import Merged
from jaxreward.programs.parts import parts_of

# Common widths are rounded up, so that the learner, which depends on shapes alone, is compiled
# once for many populations.
_WIDTH_STEP, _TERMS_STEP, _TERMS_IN_BANK = 32, 8, 16
_SUMMANDS_STEP = 16  # searches add terms: of eight, a second generation had more


def _round_up(n: int, step: int) -> int:
    return -(-n // step) * step


def padded_sizes(programs: Sequence[Program], room: tuple[int, int] = (0, 0), *, bank: bool = False) -> tuple[int, int]:
    """The common observation size and number of terms, not less than `room`, rounded up to multiples of 32 and 8. In a
    bank there is room for sixteen terms: all else of children may be known."""
    return (
        _round_up(max(room[0], *(p.observation_size for p in programs)), _WIDTH_STEP),
        _round_up(max(room[1], *(len(p.terms) for p in programs), _TERMS_IN_BANK if bank else 0), _TERMS_STEP),
    )


def size_in_bank(n: int) -> int:
    """Programs of a bank to make so many up to, so that most populations of a search find their size compiled."""
    step = 2 if n < 8 else 4
    return n if n <= 2 else -(-n // step) * step


class Population:
    """Programs that train side by side.

    Attributes:
        bank: what the programs select from, if they are data.
        widths: observation size of each program.
        width, terms: the padded observation size and number of reward terms.
        structure: what each program computes, but for the constants of its reward.
        constants: of the rewards, float32 (C, k).
        data: what of the programs are arguments of compiled functions: the constants, with a bank its tables too.
        key: what of them is compiled, but for the shapes of `data`.
    """

    def __init__(self, programs: Sequence[Program], width: int = 0, terms: int = 0, bank: Bank | None = None) -> None:
        self.programs, self.bank = tuple(programs), bank
        self.widths = tuple(p.observation_size for p in self.programs)
        own_width, own_terms = padded_sizes(self.programs)
        self.width, self.terms = max(own_width, width), max(own_terms, terms)
        self.structure = tuple(p.structure for p in self.programs)
        if any((p.spec.leaves, p.spec.action) != (self._spec.leaves, self._spec.action) for p in self.programs):
            raise InvalidSetting("programs that train side by side must be of one task", "programs")
        self.constants = np.zeros((len(self), max(len(p.constants) for p in self.programs)), np.float32)
        for row, program in zip(self.constants, self.programs, strict=True):
            row[: len(program.constants)] = program.constants
        self._parts = [parts_of(p) for p in self.programs] if bank else []
        known = [bool(bank and bank.covers(parts)) for parts in self._parts]
        self._alone = [k for k, yes in enumerate(known) if not yes] if bank else list(range(len(self)))

    @cached_property
    def data(self) -> Any:
        if self.bank is None:
            return self.constants
        summands = _round_up(max(len(parts.value) for parts in self._parts), _SUMMANDS_STEP)
        tables = self.bank.tables(self._parts, self.programs, self.width, self.terms, summands)
        numbers = max((len(self.programs[k].constants) for k in self._alone), default=0)
        return tables, self.constants[self._alone, :numbers]

    @property
    def key(self) -> tuple[Any, ...]:
        alone = tuple((k, self.structure[k]) for k in self._alone) if self.bank else self.structure
        return self.bank and self.bank.key, alone

    @cached_property
    def _observations(self) -> Merged:
        return Merged([self.programs[k].observation_tape for k in self._alone], len(self._spec.leaves))

    @cached_property
    def _rewards(self) -> Merged:
        alone = [self.programs[k] for k in self._alone]
        tapes = [p.skeleton.tape if p.skeleton else p.reward_tape for p in alone]
        return Merged(tapes, 2 * len(self._spec.leaves) + 1)

    @property
    def _spec(self) -> Spec:
        return self.programs[0].spec

    def __len__(self) -> int:
        return len(self.programs)

    def observe(self, data: Any, views: Any) -> jax.Array:
        """Views with leading axes (C, n) to observations float32 (C, n, width)."""
        arrays = jax.vmap(jax.vmap(self._spec.flatten))(views)
        if self.bank is None:
            return self._observe_alone(arrays)
        obs = self.bank.observe(data[0], arrays)
        return self._placed(obs, self._observe_alone(self._rows(arrays))) if self._alone else obs

    def reward(self, data: Any, views: Any, actions: jax.Array, next_views: Any) -> tuple[jax.Array, jax.Array]:
        """Views and actions with leading axes (C, n) to rewards (C, n) and terms (C, n, terms)."""

        def flatten(view: Any, action: jax.Array, next_view: Any) -> list[jax.Array]:
            return [*self._spec.flatten(view), self._spec.act(action), *self._spec.flatten(next_view)]

        arrays = jax.vmap(jax.vmap(flatten))(views, actions, next_views)
        if self.bank is None:
            return self._reward_alone(data, arrays)
        tables, constants = data
        rewards, terms = self.bank.reward(tables, arrays)
        if self._alone:
            own, own_terms = self._reward_alone(constants, self._rows(arrays))
            rewards, terms = self._placed(rewards, own), self._placed(terms, own_terms)
        return rewards, terms

    def _rows(self, arrays: Sequence[jax.Array]) -> list[jax.Array]:
        """Those of programs that the bank does not have."""
        return [x[np.asarray(self._alone)] for x in arrays]

    def _placed(self, whole: jax.Array, rows: jax.Array) -> jax.Array:
        return whole.at[np.asarray(self._alone)].set(rows)

    def _observe_alone(self, arrays: Sequence[jax.Array]) -> jax.Array:
        groups = [(members, _padded(obs, self.width)) for members, (obs,) in self._observations(arrays)]
        return _in_order(groups)

    def _reward_alone(self, constants: jax.Array, arrays: Sequence[jax.Array]) -> tuple[jax.Array, jax.Array]:
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
