"""What random play of a task shows: its numbers, places, grids and orientations, and what its reward is about."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from jaxreward.tasks.automatic.cells import Grid, Layer, grids_of, layers_of, seen_from, single_places
from jaxreward.tasks.automatic.fields import Field, fields_of
from jaxreward.tasks.automatic.information import Signal
from jaxreward.tasks.automatic.play import Array, Play
from jaxreward.tasks.automatic.quantities import (
    Number,
    Place,
    Turned,
    comparable,
    joints_of,
    numbers_of,
    places_of,
    with_agency,
)
from jaxreward.tasks.automatic.texts import STATE, of

MOST_TARGETS = 12
"""Places to which offsets are taken from the one that actions move."""
MOST_NUMBERS, MOST_PLACES, MOST_GRIDS = 60, 40, 12
"""Numbers, places and grids of which fragments are made: those that tell most of reward and progress."""


@dataclass(frozen=True)
class Hints:
    """What a task's functions say of the arrays of its view, by the indices of its leaves.

    Attributes:
        reads: what the reward, the metric or the end of an episode depends on.
        subtracted: pairs that are subtracted from one another or compared.
        turned: the elements whose sine or cosine is taken.
    """

    reads: frozenset[int] = frozenset()
    subtracted: Collection[frozenset[int]] = frozenset()
    turned: Turned = field(default_factory=dict)


@dataclass(frozen=True)
class Turn:
    """A unit quaternion (4,) by its text."""

    name: str
    text: str
    reads: frozenset[int]

    @property
    def words(self) -> str:
        return self.name.replace("_", " ")


@dataclass(frozen=True)
class Scene:
    """The quantities of a view.

    Attributes:
        agent: the place that actions decide most of; None where they decide of none.
        subtracted: see `Hints`.
        helpers: texts of the functions by which places of grids are found.
    """

    played: Play
    fields: tuple[Field, ...]
    numbers: tuple[Number, ...]
    places: tuple[Place, ...]
    agent: Place | None
    grids: tuple[Grid, ...]
    layers: tuple[Layer, ...]
    turns: tuple[Turn, ...]
    vectors: tuple[Field, ...]
    horizon: int
    subtracted: Collection[frozenset[int]] = frozenset()
    helpers: dict[str, str] = field(default_factory=dict)

    @cached_property
    def targets(self) -> tuple[Place, ...]:
        """Places to which an offset from the agent means something."""
        agent = self.agent
        if agent is None:
            return ()
        others = (p for p in self.places if p.name != agent.name)
        return tuple(p for p in others if comparable(agent, p, self.subtracted))[:MOST_TARGETS]

    def way(self, target: Place) -> str:
        """The text of the way from the agent to a target (n,)."""
        return f"way_to_{target.name}({STATE})"

    def distance(self, target: Place) -> str:
        """The text of the distance of agent and target: of whole numbers the steps along rows and columns."""
        return f"distance_to_{target.name}({STATE})"

    @cached_property
    def measures(self) -> dict[str, str]:
        """The functions that ways and distances call, by name."""
        found = dict(self.helpers)
        for p in self.targets:
            assert self.agent is not None
            ends = f"the {self.agent.words} to the {p.words}"
            found[f"way_to_{p.name}"] = helper(f"way_to_{p.name}", f"From {ends}.", f"{p.text} - {self.agent.text}")
            way = self.way(p)
            line = f"jnp.sum(jnp.abs({way}))" if p.is_integer else f"length({way})"
            words = "Steps along rows and columns" if p.is_integer else "Distance"
            found[f"distance_to_{p.name}"] = helper(f"distance_to_{p.name}", f"{words} from {ends}.", line)
        return found

    @cached_property
    def flags(self) -> tuple[Number, ...]:
        """Those by which states differ from which an episode goes on."""
        return tuple(n for n in self.numbers if n.kind == "flag" and np.ptp(n.before) > 0)


def scene_of(played: Play, horizon: int, hints: Hints | None = None) -> Scene:
    """What the transitions of `played` show."""
    hints = hints or Hints()
    fields = tuple(f for f in fields_of(played) if not _is_reward(f, played))
    turns = _turns(fields)
    turning = {f.name for f in fields if f.shape[-1:] == (4,) and _is_unit(f)}
    others = [f for f in fields if f.name not in turning]
    grids, layers = grids_of(others)[:MOST_GRIDS], layers_of(others)[: 2 * MOST_GRIDS]
    places = places_of(others, hints.turned)
    of_vectors = {p.field for p in places if not p.is_pair}
    places = with_agency([*places, *single_places(layers)], played.actions, joints_of(others, hints.turned))
    places = sorted(places, key=lambda p: (-p.agency, not p.reads & hints.reads))[:MOST_PLACES]
    agent = places[0] if places and places[0].agency > 0 else None
    helpers: dict[str, str] = {}
    if agent is not None:
        if agent.name in {layer.name for layer in layers}:
            agent, text = replace(agent, text=f"{agent.name}_place({STATE})"), agent.text
            helpers[f"{agent.name}_place"] = helper(f"{agent.name}_place", f"Row and column of {agent.words}.", text)
        flat = agent.is_integer and agent.size == 2
        fits = [n for n in layers if flat and _lies_in(agent, n.shape)]
        if fits and agent.field:
            helpers[f"{agent.name}_place"] = helper(f"{agent.name}_place", f"Row and column of the {agent.words}.",
                                                     agent.text)  # fmt: skip
        places = [agent if p.name == agent.name else p for p in seen_from(agent, fits, places)]
    places = [_named(p, helpers) for p in places]
    of_pairs = {k for p in places if p.is_pair for k in p.reads}
    numbers = numbers_of(others, frozenset(of_vectors), hints.turned)
    numbers = [replace(n, is_part=True) if n.reads <= of_pairs and not n.is_part else n for n in numbers]
    numbers += [_count(layer) for layer in layers if np.ptp(np.concatenate(layer.counts)) > 0 and not layer.is_single]
    numbers += [c for p in places if p.field in of_vectors and not p.is_integer for c in _components(p)]
    bits = [f for f in others if f.is_bool and 1 <= len(f.shape) <= 1 and not f.is_constant]
    numbers += [_sum(f) for f in bits]
    vectors = tuple(f for f in others if len(f.shape) == 1 and f.size > 3 and not f.is_constant)
    numbers = _most_telling(numbers, played, hints.reads)
    return Scene(played, fields, tuple(numbers), tuple(places), agent, grids, layers, turns, vectors, horizon,
                 hints.subtracted, helpers)  # fmt: skip


def _most_telling(numbers: Sequence[Number], played: Play, reads: frozenset[int]) -> list[Number]:
    """At most `MOST_NUMBERS` of them, in their order: those that tell most of what follows, those that the reward reads
    counting as if they told all."""
    if len(numbers) <= MOST_NUMBERS:
        return list(numbers)
    signals = [Signal(later) for _, later in played.signals()]
    told = [float(bool(n.reads & reads)) + max((s.told_by(n.after) for s in signals), default=0.0) for n in numbers]
    order = sorted(range(len(numbers)), key=lambda k: (-told[k], numbers[k].is_part))
    return [numbers[k] for k in sorted(order[:MOST_NUMBERS])]


def helper(name: str, words: str, text: str) -> str:
    """The text of a function of a state."""
    return f'def {name}(state):\n    """{words}"""\n    return {of(text, "state")}'


def _named(place: Place, helpers: dict[str, str]) -> Place:
    """The place, found by a function of its own where its text is long."""
    name = f"{place.name}_place"
    if name in helpers and place.text.startswith(name):
        return place
    if place.text.startswith(("nearest_cell", "first_cell")):
        words = f"Row and column of the nearest cell where {place.words} holds, or of the agent where none is."
        helpers[name] = helper(name, words, place.text)
        return replace(place, text=f"{name}({STATE})")
    return place


def _lies_in(place: Place, shape: tuple[int, int]) -> bool:
    low, high = place.bounds
    return bool(np.all(low >= -1) and np.all(high <= np.array(shape)) and np.all(high >= np.array(shape) // 3))


def _count(layer: Layer) -> Number:
    before, after = (x.astype(np.float32) for x in layer.counts)
    return Number(f"count_of_{layer.name}", f"jnp.sum({layer.mask})", "count", layer.reads, before, after)


def _sum(one: Field) -> Number:
    before, after = (x.sum(1).astype(np.float32) for x in (one.before, one.after))
    return Number(f"count_of_{one.name}", f"jnp.sum({one.of(STATE)})", "count", frozenset([one.index]), before, after)


def _components(place: Place) -> list[Number]:
    found = []
    for k in range(place.size):
        x, y = place.before[:, k], place.after[:, k]
        if np.ptp(np.concatenate([x, y])) > 1e-6:
            found.append(Number(f"{place.name}_{'xyz'[k]}", place.elements[k], "real", place.reads, x, y,
                                is_rate=place.is_rate, is_part=True))  # fmt: skip
    return found


def _is_reward(one: Field, played: Play) -> bool:
    """Whether the field holds the reward of the step before, and no state."""
    return not one.shape and one.after.dtype.kind == "f" and bool(np.allclose(one.after, played.reward, atol=1e-6))


def _turns(fields: Sequence[Field]) -> tuple[Turn, ...]:
    """Unit quaternions: arrays (4,), and the first row of arrays (k, 4)."""
    found = []
    for one in fields:
        if one.shape[-1:] == (4,) and len(one.shape) <= 2 and _is_unit(one) and not one.is_constant:
            row = (0,) if len(one.shape) == 2 else ()
            found.append(Turn(one.name, one.of(STATE, row), frozenset([one.index])))
    return tuple(found)


def _is_unit(one: Field) -> bool:
    """Whether all rows of four have length 1 and are no one-hot vectors."""
    values: Array = one.both.reshape(-1, 4)
    is_plain = np.all((np.abs(values) < 1e-6) | (np.abs(values) > 1 - 1e-6))
    return not one.is_integer and bool(np.allclose((values**2).sum(1), 1.0, atol=1e-3)) and not is_plain
