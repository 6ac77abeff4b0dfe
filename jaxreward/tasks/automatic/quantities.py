"""What the arrays of a view hold: numbers, places and cells, recognised by shapes, dtypes and values in play.

A quantity is written by a program as `text` with the name of a state for `{s}`. Names of fields give hints; no
recognition needs them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Literal

import numpy as np

from jaxreward.tasks.automatic.fields import Field, usable
from jaxreward.tasks.automatic.information import information
from jaxreward.tasks.automatic.play import Array

MOST_COMPONENTS = 24
"""Elements of a vector that are numbers of their own, at most."""
MOST_ROWS = 6
"""Rows of an array of places, at most."""

LEAP = 0.3
"""Standard deviation of a step by that of the values, from which on a vector is no place."""

_PAIRS = (("row", "col"), ("row", "column"), ("x", "y"), ("r", "c"), ("i", "j"))
_ENDS = ("_position", "_pos", "_location", "_loc", "_place", "_coordinates", "_coords", "_coord", "_xy", "_cell")
_AGENTS = ("agent", "player", "head", "robot", "paddle", "hand", "gripper", "torso", "body")
_ANGLES = ("theta", "angle", "phi", "yaw", "pitch", "roll", "heading")

Kind = Literal["flag", "count", "real", "clock"]


@dataclass(frozen=True)
class Number:
    """A scalar. `kind`: 0 or 1; a whole number; a real number; steps, or what only counts them.

    `low` and `high` are its bounds in play, `is_rate` marks the velocity of another number, `is_angle` an angle.
    """

    name: str
    text: str
    kind: Kind
    reads: frozenset[int]
    before: Array
    after: Array
    is_rate: bool = False
    is_angle: bool = False
    is_part: bool = False
    is_bool: bool = False

    def switched(self, state: str, on: bool) -> str:
        """The text of whether it is on, or off, in the state of this name."""
        text = self.text.format(s=state)
        if self.is_bool:
            return text if on else f"~{text}"
        return f"({text} != 0)" if on else f"({text} == 0)"

    @property
    def low(self) -> float:
        return float(min(self.before.min(), self.after.min()))

    @property
    def high(self) -> float:
        return float(max(self.before.max(), self.after.max()))

    @property
    def span(self) -> float:
        """How far it moves in play, extremes apart; never 0."""
        low, high = np.quantile(np.concatenate([self.before, self.after]), (0.02, 0.98))
        return float(high - low) or self.high - self.low or 1.0

    @property
    def words(self) -> str:
        return self.name.replace("_", " ")

    @property
    def value(self) -> str:
        """Its text as a real number."""
        return self.text if self.kind == "real" else f"{self.text}.astype(jnp.float32)"


@dataclass(frozen=True)
class Place:
    """A point in two or three dimensions, float32 (n,) by `text`; `agency` is how far actions decide how it moves."""

    name: str
    text: str
    is_integer: bool
    reads: frozenset[int]
    before: Array
    after: Array
    agency: float = 0.0
    is_rate: bool = False
    field: str = ""
    """Its name as a field, where it is one."""

    @property
    def size(self) -> int:
        return self.before.shape[1]

    @property
    def moved(self) -> Array:
        return self.after - self.before

    @property
    def bounds(self) -> tuple[Array, Array]:
        both = np.concatenate([self.before, self.after])
        return both.min(0), both.max(0)

    @property
    def words(self) -> str:
        return self.name.replace("_", " ")


def numbers_of(fields: Sequence[Field], used: frozenset[str] = frozenset()) -> list[Number]:
    """Scalars, and elements of short vectors; none that is constant, none of the fields of `used` names."""
    found: list[Number] = []
    for field in fields:
        if field.is_constant or field.name in used or len(field.shape) > 1 or field.size > MOST_COMPONENTS:
            continue
        for element in np.ndindex(*field.shape):
            x, y = (v[(slice(None), *element)].astype(np.float32) for v in (field.before, field.after))
            if np.ptp(np.concatenate([x, y])) == 0:
                continue
            name = "_".join([field.name, *map(str, element)])
            text = field.of("{s}", element)
            reads = frozenset([field.index])
            found.append(
                Number(name, text, _kind(field, x, y), reads, x, y, is_part=bool(element), is_bool=field.is_bool)
            )
    return _with_rates(found)


def _kind(field: Field, x: Array, y: Array) -> Kind:
    step = y - x
    if np.all(step == step[0]) and step[0] != 0:
        return "clock"
    if field.is_bool or (field.is_integer and np.all((x == 0) | (x == 1)) and np.all((y == 0) | (y == 1))):
        return "flag"
    return "count" if field.is_integer else "real"


def _with_rates(numbers: list[Number]) -> list[Number]:
    """The same, with velocities and angles marked."""
    reals = [n for n in numbers if n.kind == "real"]
    integrals, rates = set(), set()
    for one in reals:
        step = one.after - one.before
        for other in reals:
            if other is not one and max(_like(step, other.after), _like(step, other.before)) > 0.99:
                integrals.add(one.name)
                rates.add(other.name)
    found = []
    for n in numbers:
        reach, hint = max(abs(n.low), abs(n.high)), any(word in n.name for word in _ANGLES)
        rate = n.name in rates and n.name not in integrals
        angle = n.kind == "real" and not rate and reach > 2.8 and (hint or (n.name in integrals and reach < 3.2))
        found.append(replace(n, is_rate=rate, is_angle=bool(angle)))
    return found


def _like(x: Array, y: Array) -> float:
    """How well `y` is a multiple of `x`."""
    if np.std(x) < 1e-9 or np.std(y) < 1e-9:
        return 0.0
    return float(np.corrcoef(x, y)[0, 1])


def places_of(fields: Sequence[Field]) -> list[Place]:
    """Points: vectors of two or three numbers, rows of short arrays of them, and pairs of scalars."""
    found: list[Place] = []
    for field in fields:
        if field.is_bool or field.size == 0:
            continue
        if field.shape in ((2,), (3,)):
            found.append(_place(field.name, field.of("{s}") + ".astype(jnp.float32)", (field,)))
        if len(field.shape) == 2 and field.shape[1] in (2, 3) and field.shape[0] <= MOST_ROWS:
            for row in range(field.shape[0]):
                text = f"{field.of('{s}', (row,))}.astype(jnp.float32)"
                place = _place(f"{field.name}_{row}", text, (field,), row)
                found.append(place)
    pairs, parts = [], set[str]()
    scalars = [f for f in fields if not f.shape and not f.is_bool]
    for one, other in pairwise(scalars):
        if one.name in parts or not (name := _pair(one, other, fields)):
            continue
        text = f"jnp.stack([{one.of('{s}')}, {other.of('{s}')}]).astype(jnp.float32)"
        pairs.append(_place(name, text, (one, other)))
        parts |= {one.name, other.name}
    return [*found, *pairs]


def _place(name: str, text: str, fields: Sequence[Field], row: int | None = None) -> Place:
    stem = next((name.removesuffix(end) for end in _ENDS if name.endswith(end)), name)

    def values(side: str) -> Array:
        arrays = [getattr(f, side).astype(np.float32) for f in fields]
        return np.stack(arrays, 1) if len(arrays) > 1 else arrays[0] if row is None else arrays[0][:, row]

    reads = frozenset(f.index for f in fields)
    is_integer = all(f.is_integer for f in fields)
    return Place(usable(stem or name), text, is_integer, reads, values("before"), values("after"), field=name)


def _pair(one: Field, other: Field, fields: Sequence[Field]) -> str:
    """The name of the point that two scalars are the coordinates of; empty where they are none."""
    if one.is_integer != other.is_integer or one.parent != other.parent or other.index != one.index + 1:
        return ""
    if any(_counts(f) for f in (one, other)):
        return ""
    ends = [f.path.strip("[].'\"").rpartition(".")[2].rpartition("'")[2].lower() for f in (one, other)]
    for first, second in _PAIRS:
        if ends[0].endswith(first) and ends[1] == ends[0].removesuffix(first) + second:
            stem = ends[0].removesuffix(first).rstrip("_")
            return stem or one.name.removesuffix(first).rstrip("_") or "agent"
    alone = sum(f.parent == one.parent for f in fields) == 2 and one.parent != ""
    spans = [(float(f.both.min()), float(f.both.max())) for f in (one, other)]
    same = one.is_integer and spans[0] == spans[1] and spans[0][1] - spans[0][0] >= 2
    return f"{one.name}_{other.name}" if same or (alone and one.is_integer) else ""


def _counts(field: Field) -> bool:
    step = field.after.astype(np.float32) - field.before.astype(np.float32)
    return bool(np.all(step == step[0])) and float(step[0]) != 0.0


def with_agency(places: Sequence[Place], actions: Array) -> list[Place]:
    """The places, with what actions decide of their movements; first those that they decide most, by which a place that
    is called an agent wins where several do."""
    taken = actions.reshape(len(actions), -1)
    found = []
    for place in places:
        moves = place.moved
        if (np.abs(moves).sum(1) > 0).mean() < 0.03:
            found.append(place)
            continue
        told = max(information(moves[:, k], taken[:, j]) for k in range(place.size) for j in range(taken.shape[1]))
        bonus = 1.5 if any(word in place.name for word in _AGENTS) else 1.0
        found.append(replace(place, agency=told * bonus if told > 0.01 else 0.0))
    rate = {p.name for p in found if not p.is_integer and _leaps(p)}
    rate |= {p.name for p in found for q in found if p is not q and q.name not in rate and _is_rate(p, q)}
    found = [replace(p, agency=0.0) if p.name in rate else p for p in found]
    return [replace(p, is_rate=p.name in rate) for p in sorted(found, key=lambda p: -p.agency)]


def _leaps(place: Place) -> bool:
    """Whether it changes in a step by much of what it varies by, as velocities and actions do and no place does."""
    spread, step = place.before.std(0), place.moved.std(0)
    varies = spread > 1e-6
    return bool(varies.any() and np.median(step[varies] / spread[varies]) > LEAP)


def _is_rate(rate: Place, place: Place) -> bool:
    """Whether `rate` is the velocity of `place`."""
    if rate.size != place.size or rate.is_integer:
        return False
    step = place.moved
    return all(max(_like(step[:, k], rate.after[:, k]), _like(step[:, k], rate.before[:, k])) > 0.9
               for k in range(place.size) if np.std(step[:, k]) > 1e-9) and bool(np.std(step) > 1e-9)  # fmt: skip


def comparable(one: Place, other: Place) -> bool:
    """Whether an offset from one to the other means anything: equal sizes, whole numbers or not, ranges that meet."""
    if one.size != other.size or one.is_integer != other.is_integer or one.is_rate or other.is_rate:
        return False
    (low, high), (least, most) = one.bounds, other.bounds
    room = 0.5 * np.maximum(high - low, most - least) + 1e-6
    return bool(np.all(least <= high + room) and np.all(low <= most + room))
