"""Rewards of many programs on the same transitions, as one compiled function.

In training every program has states of its own (`merged`, `bank`); demonstrations are the same states for all. So what
programs have in common is computed once, and not once for each of them: a part of rewards (`parts`) that no constant
reaches is a row of values, one that constants reach is as many rows as programs have it, and the reward of a program is
a sum of rows. Which rows these are, and the constants, are arguments of the compiled function: programs of the same
parts with other weights compile nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache, partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxreward.devices import FAST_COMPILE, exact
from jaxreward.errors import InvalidSetting
from jaxreward.programs.bank import apply_node
from jaxreward.programs.interpret import Step, step_of
from jaxreward.programs.parts import Node, Part, Value, input_names, parts_of
from jaxreward.programs.program import Program
from jaxreward.programs.samples import Samples

_NONE = -1
_BYTES = 128 << 20
"""Memory that the rows of transitions that are evaluated together may take."""

_SMALL = 1 << 23
"""Values of nodes of which so many or more are worth the time of compiling well, on a CPU."""

Array = np.ndarray[Any, Any]


class BatchedRewards:
    """Rewards of programs of one task.

    Attributes:
        selected: the rows of which each reward is the sum, int32 (programs, summands), -1 where it has no more.
        constants: of the rows of each part, float32 (rows, constants).
        layout: what is compiled.
    """

    def __init__(self, programs: Sequence[Program]) -> None:
        spec = programs[0].spec
        if any((p.spec.leaves, p.spec.action) != (spec.leaves, spec.action) for p in programs):
            raise InvalidSetting("programs that are scored side by side must be of one task", "programs")
        every = [parts_of(p) for p in programs]
        nodes, parts, owners = dict[str, Node](), dict[str, Part](), dict[str, list[Array]]()
        for own, program in zip(every, programs, strict=True):
            nodes |= {digest: node for digest, node in own.reward.nodes.items() if digest not in nodes}
            for part, numbers in zip(own.reward.parts, own.reward.constants, strict=True):
                parts[part.key] = part
                owners.setdefault(part.key, []).append(program.constants[list(numbers)])
        # Powers of two, so that one program more that has a part seldom means another shape.
        counts = {key: _power(len(owners[key])) if part.constants else 1 for key, part in parts.items()}
        self.layout = Layout(input_names(spec)[1], nodes, list(parts.values()), list(counts.values()))
        first, taken = (
            dict(zip(parts, np.cumsum([0, *counts.values()]).tolist(), strict=False)),
            dict.fromkeys(parts, 0),
        )
        self.selected = np.full((len(every), _power(max(len(p.value) for p in every))), _NONE, np.int32)
        for row, own in zip(self.selected, every, strict=True):
            places = list[int]()
            for part in own.reward.parts:
                places.append(first[part.key] + taken[part.key])
                taken[part.key] += part.constants > 0
            row[: len(own.value)] = [places[k] for k in own.value]
        self.constants = [np.zeros((counts[key], part.constants), np.float32) for key, part in parts.items()]
        for values, (key, part) in zip(self.constants, parts.items(), strict=True):
            if part.constants:
                values[: len(owners[key])] = owners[key]

    def __call__(self, samples: Samples) -> jax.Array:
        """The rewards of `samples`, float32 (programs, n)."""
        size = self.slice_of(len(samples))
        fast = self.layout.size * len(samples) < _SMALL and jax.default_backend() == "cpu"
        return _compiled(self.layout, size, fast)(self.selected, self.constants, samples.transition())

    def slice_of(self, n: int) -> int:
        """How many of `n` transitions are evaluated together."""
        most = max(1, _BYTES // (4 * (self.layout.rows + self.selected.size)))
        return -(-n // -(-n // most))


class Layout:
    """The parts of rewards as a function of transitions; equal for what is compiled to the same.

    Attributes:
        size: number of nodes that are evaluated on every transition.
        rows: number of rows of values.
    """

    def __init__(
        self, inputs: Sequence[Value], nodes: dict[str, Node], parts: Sequence[Part], counts: Sequence[int]
    ) -> None:
        self._inputs, self._parts = tuple(inputs), tuple(parts)
        self._steps = [(digest, node, step_of(node.op, node.params)) for digest, node in nodes.items()]
        self._own: list[list[Step]] = [[step_of(node.op, node.params) for node in part.nodes] for part in parts]
        self.size, self.rows = len(nodes) + sum(len(part.nodes) for part in parts), sum(counts)
        self._key = (self._inputs, tuple(part.key for part in parts), tuple(counts))

    def __hash__(self) -> int:
        return hash(self._key)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Layout) and self._key == other._key

    def rewards(self, size: int, selected: Any, constants: Sequence[Any], transition: Sequence[Any]) -> jax.Array:
        """The rewards (programs, n) of transitions (n, ...), `size` of them at a time; pure, for `jit`."""
        n = len(transition[0])
        count = -(-n // size)
        padded = [jnp.pad(x, [(0, count * size - n)] + [(0, 0)] * (x.ndim - 1)) for x in map(jnp.asarray, transition)]
        cut = [x.reshape(count, size, *x.shape[1:]) for x in padded]
        found = jax.lax.map(partial(self._summed, selected, constants), cut)
        return jnp.moveaxis(found, 0, 1).reshape(len(selected), -1)[:, :n]

    def _summed(self, selected: Any, constants: Sequence[Any], transition: Sequence[Any]) -> jax.Array:
        rows = jax.vmap(partial(self._rows, constants), out_axes=1)(*transition)
        total = jnp.zeros((len(selected), rows.shape[1]))
        for k in range(selected.shape[1]):
            own = selected[:, k, None]
            found = jnp.where(own >= 0, rows[jnp.maximum(own[:, 0], 0)], 0.0)
            total = total + found if k else found
        return total

    def _rows(self, constants: Sequence[Any], *arrays: Any) -> jax.Array:
        """Every row for one transition, float32 (rows,)."""
        values: dict[Value, Any] = dict(zip(self._inputs, arrays, strict=True))
        for digest, node, step in self._steps:
            apply_node(values, digest, node, step)
        found = list[Any]()
        for part, steps, numbers in zip(self._parts, self._own, constants, strict=True):
            if part.constants:
                found.append(jax.vmap(partial(_with_constants, part, steps, values))(numbers))
            else:
                found.append(jnp.asarray(values[part.out])[None])
        return jnp.concatenate(found)


def _with_constants(part: Part, steps: Sequence[Step], values: dict[Value, Any], numbers: Any) -> Any:
    own = values | {f"#{i}": numbers[i] for i in range(part.constants)}
    for k, (node, step) in enumerate(zip(part.nodes, steps, strict=True)):
        apply_node(own, f"@{k}", node, step)
    return own[part.out]


@lru_cache(maxsize=16)
def _compiled(layout: Layout, size: int, fast: bool) -> Any:
    return jax.jit(exact(partial(layout.rewards, size)), compiler_options=dict(FAST_COMPILE) if fast else None)


def _power(n: int) -> int:
    """The smallest power of two that is not less than `n`."""
    return 1 << (n - 1).bit_length()
