"""What lies where in a grid: which cells of an array hold a value, and the places of what lies in one or in few."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from jaxreward.tasks.automatic.fields import Field
from jaxreward.tasks.automatic.play import Array
from jaxreward.tasks.automatic.quantities import Place
from jaxreward.tasks.automatic.texts import STATE

SMALLEST, LARGEST = 3, 64
"""Rows and columns of a grid."""
MOST_VALUES = 16
"""Different values of a grid whose cells are told apart by value."""
FEW = 0.3
"""Share of the cells that may hold a value for it to be a thing; what more hold is the ground."""

HELPERS = '''
def first_cell(mask):
    """Row and column of the first marked cell (2,); (0, 0) where none is."""
    index = jnp.argmax(mask.reshape(-1))
    return jnp.stack([index // mask.shape[1], index % mask.shape[1]]).astype(jnp.float32)


def nearest_cell(mask, place):
    """Row and column (2,) of the marked cell that is nearest to a place; the place itself where none is."""
    rows = jnp.abs(jnp.arange(mask.shape[0]) - place[0])
    columns = jnp.abs(jnp.arange(mask.shape[1]) - place[1])
    steps = jnp.where(mask, rows[:, None] + columns[None, :], 1e6)
    return jnp.where(jnp.any(mask), first_cell(steps == jnp.min(steps)), place)


def window(grid, place, radius):
    """The square of cells around a place; cells beyond the edge are -1."""
    padded = jnp.pad(grid.astype(jnp.float32), radius, constant_values=-1.0)
    row, column = place.astype(jnp.int32)
    return jax.lax.dynamic_slice(padded, (row, column), (2 * radius + 1, 2 * radius + 1))
'''


@dataclass(frozen=True)
class Layer:
    """A grid of numbers, and the cells that hold what it is about.

    Attributes:
        grid: the text of the array (H, W) that it is part of.
        mask: the text of the marked cells, bool (H, W).
        scale: the largest value of the grid.
        before, after: marked cells in play (N, H, W).
    """

    name: str
    grid: str
    mask: str
    words: str
    scale: float
    reads: frozenset[int]
    before: Array
    after: Array

    @property
    def shape(self) -> tuple[int, int]:
        return self.before.shape[1:]

    @property
    def counts(self) -> tuple[Array, Array]:
        """How many cells are marked, before and after (N,)."""
        return self.before.sum((1, 2)), self.after.sum((1, 2))

    @property
    def is_single(self) -> bool:
        """Whether at most one cell is marked, nearly always."""
        both = np.concatenate(self.counts)
        return bool((both <= 1).mean() > 0.98 and both.max() > 0)


@dataclass(frozen=True)
class Grid:
    """An array (H, W) of the view by its text."""

    name: str
    text: str
    scale: float
    reads: frozenset[int]
    before: Array

    @property
    def shape(self) -> tuple[int, int]:
        return self.before.shape[1:]


def grids_of(fields: Sequence[Field]) -> tuple[Grid, ...]:
    """The grids of the view: arrays (H, W), and the layers of arrays (H, W, C)."""
    return tuple(grid for grid, _ in _slices(fields))


def layers_of(fields: Sequence[Field]) -> tuple[Layer, ...]:
    """For every grid of few values, the cells of each value that few cells hold."""
    found = []
    for grid, after in _slices(fields):
        values, counts = np.unique(grid.before, return_counts=True)
        if len(values) > MOST_VALUES:
            continue
        for value, count in zip(values, counts, strict=True):
            if value == 0 or count > FEW * counts.sum():
                continue
            two = grid.before.dtype == bool
            mask = grid.text if two else f"({grid.text} == {value.item():g})"
            name = grid.name if two or len(values) == 2 else f"{grid.name}_{value.item():g}".replace("-", "minus_")
            words = grid.name.replace("_", " ") + ("" if two else f" is {value.item():g}")
            found.append(Layer(name.replace(".", "_"), grid.text, mask, words, grid.scale, grid.reads,
                               grid.before == value, after == value))  # fmt: skip
    return tuple(found)


def _slices(fields: Sequence[Field]) -> Iterator[tuple[Grid, Array]]:
    for field in fields:
        shape = field.shape
        if len(shape) not in (2, 3) or not all(SMALLEST <= n <= LARGEST for n in shape[:2]) or field.is_constant:
            continue
        scale = float(np.abs(field.both).max()) or 1.0
        reads = frozenset([field.index])
        if len(shape) == 2:
            if field.is_integer:
                yield Grid(field.name, field.of(STATE), scale, reads, field.before), field.after
            continue
        for channel in range(shape[2] if shape[2] <= MOST_VALUES else 0):
            before, after = field.before[..., channel], field.after[..., channel]
            if field.is_integer or len(np.unique(before)) <= MOST_VALUES:
                scale = float(max(np.abs(before.astype(np.float32)).max(), 1.0))
                text = f"{field.of(STATE)}[:, :, {channel}]"
                yield Grid(f"{field.name}_{channel}", text, scale, reads, before), after


def single_places(layers: Sequence[Layer]) -> list[Place]:
    """The places of what lies in one cell."""
    return [
        Place(layer.name, f"first_cell({layer.mask})", True, layer.reads, _first(layer.before), _first(layer.after))
        for layer in layers
        if layer.is_single
    ]


def seen_from(agent: Place, layers: Sequence[Layer], places: Sequence[Place]) -> list[Place]:
    """The places with those of grids taken from the agent: of several cells the nearest, its own place where there is
    none. What lies in several cells is added."""
    known = {p.name: p for p in places}
    found = [p for p in places if p.name == agent.name or p.name not in {layer.name for layer in layers}]
    for layer in layers:
        if layer.name == agent.name:
            continue
        before, after = _nearest(layer.before, agent.before), _nearest(layer.after, agent.after)
        text = f"nearest_cell({layer.mask}, {agent.name}_place({STATE}))"
        of = known.get(layer.name)
        new = Place(layer.name, text, True, layer.reads | agent.reads, before, after)
        found.append(replace(new, agency=of.agency if of else 0.0))
    return found


def _first(masks: Array) -> Array:
    index = masks.reshape(len(masks), -1).argmax(1)
    return np.stack(np.divmod(index, masks.shape[2]), 1).astype(np.float32)


def _nearest(masks: Array, places: Array) -> Array:
    rows = np.abs(np.arange(masks.shape[1])[None] - places[:, :1])
    columns = np.abs(np.arange(masks.shape[2])[None] - places[:, 1:])
    steps = np.where(masks, rows[:, :, None] + columns[:, None, :], 1e6)
    there = masks.any((1, 2)).reshape(-1, 1)
    return np.where(there, _first(steps == steps.min((1, 2), keepdims=True)), places).astype(np.float32)
