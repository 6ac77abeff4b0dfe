"""What the arrays of a view hold: numbers, places and cells, recognised by shapes, dtypes and values in play.

A quantity is written by a program as `text` with a place for the name of a state (see `texts`). Names of fields give
hints; no recognition needs them.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Literal

import numpy as np

from jaxreward.tasks.automatic.fields import Field, usable, words_of
from jaxreward.tasks.automatic.information import information
from jaxreward.tasks.automatic.play import Array
from jaxreward.tasks.automatic.rates import Series, is_called_rate, rate_pairs
from jaxreward.tasks.automatic.texts import STATE, of

MOST_COMPONENTS = 24
"""Elements of a vector that are numbers of their own, at most."""
MOST_ROWS = 6
"""Rows of an array of places, at most."""

LEAP = 0.3
"""Standard deviation of a step by that of the values, from which on a vector is no place."""

_PAIRS = (("row", "col"), ("row", "column"), ("x", "y"), ("r", "c"), ("i", "j"))
_ENDS = ("_position", "_pos", "_location", "_loc", "_place", "_coordinates", "_coords", "_coord", "_xy", "_cell")
_AGENTS = frozenset({"agent", "player", "head", "robot", "paddle", "hand", "gripper", "torso", "body"})
_GOALS = frozenset({"goal", "goals", "target", "targets", "destination", "dest", "home", "exit", "waypoint"})
_POSITIONS = frozenset({"position", "positions", "pos", "xy", "xyz", "location", "loc", "coord", "coords",
                        "coordinates", "place", "cell"})  # fmt: skip
_ANGLES = frozenset({"theta", "thetas", "angle", "angles", "phi", "psi", "yaw", "pitch", "roll", "heading"})
_JOINTS = frozenset({"qpos", "q", "joint", "joints"})
"""Words for what is an angle, and for what mostly is one."""
REACH = 2.8
"""How far a number goes that is said to be an angle, for it to be one that goes round."""

Turned = Mapping[int, Collection[int]]
"""The elements of leaves of the view, counted through, whose sine or cosine the task takes."""

Kind = Literal["flag", "count", "real", "clock"]


@dataclass(frozen=True)
class Number:
    """A scalar. `kind`: 0 or 1; a whole number; a real number; steps, or what only counts them.

    `low` and `high` are its bounds in play, `is_rate` marks the velocity of another number, `is_angle` an angle, and
    `goes_round` an angle that turns far enough for its sine and cosine to say more than it does.
    """

    name: str
    text: str
    kind: Kind
    reads: frozenset[int]
    before: Array
    after: Array
    is_rate: bool = False
    is_angle: bool = False
    goes_round: bool = False
    words_of_path: frozenset[str] = frozenset()
    is_part: bool = False
    is_bool: bool = False

    def switched(self, state: str, on: bool) -> str:
        """The text of whether it is on, or off, in the state of this name."""
        text = of(self.text, state)
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
    """A point in two or three dimensions, float32 (n,) by `text`.

    Attributes:
        agency: how far actions decide how it moves.
        field: its name as a field, where it is one.
        elements: the texts of its coordinates.
        words_of_path: of the names that lead to it in the view.
        is_pair: whether it is made of two scalars.
    """

    name: str
    text: str
    is_integer: bool
    reads: frozenset[int]
    before: Array
    after: Array
    agency: float = 0.0
    is_rate: bool = False
    field: str = ""
    elements: tuple[str, ...] = ()
    words_of_path: frozenset[str] = frozenset()
    is_pair: bool = False

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


def numbers_of(
    fields: Sequence[Field], used: frozenset[str] = frozenset(), turned: Turned | None = None
) -> list[Number]:
    """Scalars, and elements of short vectors; none that is constant, none of the fields of `used` names."""
    found: list[Number] = []
    angles = set[str]()
    for field in fields:
        if field.is_constant or field.name in used or len(field.shape) > 1 or field.size > MOST_COMPONENTS:
            continue
        for k, element in enumerate(np.ndindex(*field.shape)):
            x, y = (v[(slice(None), *element)].astype(np.float32) for v in (field.before, field.after))
            if np.ptp(np.concatenate([x, y])) == 0:
                continue
            name = "_".join([field.name, *map(str, element)])
            if is_angle_of(field, k, turned) and (field.size <= 3 or _reach(x, y) > REACH):
                angles.add(name)
            text = field.of(STATE, element)
            reads = frozenset([field.index])
            found.append(
                Number(
                    name,
                    text,
                    _kind(field, x, y),
                    reads,
                    x,
                    y,
                    words_of_path=field.words,
                    is_part=bool(element),
                    is_bool=field.is_bool,
                )
            )
    return _with_rates(found, angles)


def is_angle_of(field: Field, element: int, turned: Turned | None = None) -> bool:
    """Whether an element of a field is an angle by its name, or by what the task computes of it."""
    words = words_of(field.name)
    if field.is_integer or is_called_rate(field.words):
        return False
    return bool(words & _ANGLES or words & _JOINTS) or element in (turned or {}).get(field.index, ())


def _reach(x: Array, y: Array) -> float:
    return float(max(np.abs(x).max(), np.abs(y).max()))


def _kind(field: Field, x: Array, y: Array) -> Kind:
    step = y - x
    if np.all(step == step[0]) and step[0] != 0:
        return "clock"
    if field.is_bool or (field.is_integer and np.all((x == 0) | (x == 1)) and np.all((y == 0) | (y == 1))):
        return "flag"
    return "count" if field.is_integer else "real"


def _with_rates(numbers: list[Number], angles: Collection[str]) -> list[Number]:
    """The same, with velocities and angles marked; `angles` are the names of what is taken for an angle."""
    reals = [n for n in numbers if n.kind == "real"]
    pairs = rate_pairs([Series(n.words_of_path, n.before, n.after) for n in reals])
    integrals, rates = {reals[i].name for i, _ in pairs}, {reals[j].name for _, j in pairs}
    rates |= {n.name for n in reals if is_called_rate(n.words_of_path)}
    found = []
    for n in numbers:
        reach, rate = _reach(n.before, n.after), n.name in rates
        may = n.kind == "real" and not rate
        round_ = may and reach > REACH and (n.name in angles or (n.name in integrals and reach < 3.2))
        found.append(replace(n, is_rate=rate, is_angle=may and (round_ or n.name in angles), goes_round=round_))
    return found


def places_of(fields: Sequence[Field], turned: Turned | None = None) -> list[Place]:
    """Points: vectors of two or three numbers, rows of short arrays of them, and pairs of scalars; none of angles."""
    found: list[Place] = []
    for field in fields:
        if field.is_bool or field.size == 0 or any(is_angle_of(field, k, turned) for k in range(field.size)):
            continue
        if field.shape in ((2,), (3,)):
            found.append(_place(field.name, field.of(STATE) + ".astype(jnp.float32)", (field,)))
        if len(field.shape) == 2 and field.shape[1] in (2, 3) and field.shape[0] <= MOST_ROWS:
            for row in range(field.shape[0]):
                text = f"{field.of(STATE, (row,))}.astype(jnp.float32)"
                place = _place(f"{field.name}_{row}", text, (field,), row)
                found.append(place)
    pairs, parts = [], set[str]()
    scalars = [f for f in fields if not f.shape and not f.is_bool]
    for one, other in pairwise(scalars):
        if one.name in parts or not (name := _pair(one, other, fields)):
            continue
        if any(is_angle_of(f, 0, turned) for f in (one, other)):
            continue
        text = f"jnp.stack([{one.of(STATE)}, {other.of(STATE)}]).astype(jnp.float32)"
        pairs.append(_place(name, text, (one, other)))
        parts |= {one.name, other.name}
    return [*found, *pairs]


def joints_of(fields: Sequence[Field], turned: Turned | None = None) -> list[Place]:
    """Vectors of two or three angles as points, which velocities are told by and nothing else."""
    short = [f for f in fields if f.shape in ((2,), (3,)) and not f.is_bool]
    angles = [f for f in short if any(is_angle_of(f, k, turned) for k in range(f.size))]
    return [_place(f.name, f.of(STATE), (f,)) for f in angles]


def _place(name: str, text: str, fields: Sequence[Field], row: int | None = None) -> Place:
    stem = next((name.removesuffix(end) for end in _ENDS if name.endswith(end)), name)

    def values(side: str) -> Array:
        arrays = [getattr(f, side).astype(np.float32) for f in fields]
        return np.stack(arrays, 1) if len(arrays) > 1 else arrays[0] if row is None else arrays[0][:, row]

    reads = frozenset(f.index for f in fields)
    is_integer = all(f.is_integer for f in fields)
    before, after = values("before"), values("after")
    if len(fields) > 1:
        elements = tuple(f.of(STATE) for f in fields)
    else:
        elements = tuple(fields[0].of(STATE, (k,) if row is None else (row, k)) for k in range(before.shape[1]))
    return Place(usable(stem or name), text, is_integer, reads, before, after, field=name, elements=elements,
                 words_of_path=frozenset().union(*(f.words for f in fields)), is_pair=len(fields) > 1)  # fmt: skip


def _pair(one: Field, other: Field, fields: Sequence[Field]) -> str:
    """The name of the point that two scalars are the coordinates of; empty where they are none."""
    if one.is_integer != other.is_integer or one.parent != other.parent or other.index != one.index + 1:
        return ""
    if any(_counts(f) for f in (one, other)):
        return ""
    ends = [f.last for f in (one, other)]
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


def with_agency(places: Sequence[Place], actions: Array, vectors: Sequence[Place] = ()) -> list[Place]:
    """The places, with what actions decide of their movements; first those that they decide most, by which a place that
    is called an agent wins where several do.

    Args:
        vectors: what is no place and may have velocities among the places: angles of joints.
    """
    taken = actions.reshape(len(actions), -1)
    found = []
    for place in places:
        moves = place.moved
        if (np.abs(moves).sum(1) > 0).mean() < 0.03:
            found.append(place)
            continue
        told = max(information(moves[:, k], taken[:, j]) for k in range(place.size) for j in range(taken.shape[1]))
        bonus = 1.5 if words_of(place.name) & _AGENTS else 1.0
        found.append(replace(place, agency=told * bonus if told > 0.01 else 0.0))
    rates, integrals = _moving(found, vectors)
    rates |= {p.name for p in found if not p.is_integer and p.name not in integrals and _leaps(p)}
    found = [replace(p, agency=0.0, is_rate=True) if p.name in rates else p for p in found]
    return sorted(found, key=lambda p: -p.agency)


def _moving(places: Sequence[Place], vectors: Sequence[Place]) -> tuple[set[str], set[str]]:
    """The names of the places that are velocities, and of those that have velocities or are called positions."""
    called = {p.name for p in places if is_called_rate(p.words_of_path)}
    positions = {p.name for p in places if p.words_of_path & (_POSITIONS | _GOALS)} - called
    everything = [*places, *vectors]
    series, owner = [], []
    for p in everything:
        for k in range(p.size):
            series.append(Series(p.words_of_path, p.before[:, k], p.after[:, k]))
            owner.append((p, k))
    agree: dict[tuple[int, int], set[int]] = {}
    index = {id(p): i for i, p in enumerate(everything)}
    for i, j in rate_pairs(series):
        (p, k), (q, m) = owner[i], owner[j]
        if k == m and p.size == q.size and not q.is_integer:
            agree.setdefault((index[id(p)], index[id(q)]), set()).add(k)
    rates, integrals = set(called), set(positions)
    for (i, j), same in agree.items():
        p, q = everything[i], everything[j]
        moves = {k for k in range(p.size) if np.std(p.moved[:, k]) > 1e-9}
        if moves and moves <= same and q.name not in positions:
            rates.add(q.name)
            integrals.add(p.name)
    return rates, integrals


def _leaps(place: Place) -> bool:
    """Whether it changes in a step by much of what it varies by, as velocities and actions do and no place does."""
    spread, step = place.before.std(0), place.moved.std(0)
    varies = spread > 1e-6
    return bool(varies.any() and np.median(step[varies] / spread[varies]) > LEAP)


def comparable(one: Place, other: Place, subtracted: Collection[frozenset[int]] = ()) -> bool:
    """Whether an offset from one to the other means anything: of equal sizes, both whole numbers or none, and places
    of the same space. That is told by one of these: the task subtracts or compares them, one is called a goal, they
    are of one array, or their ranges in play meet.

    Args:
        subtracted: the pairs of leaves of the view that the task subtracts from one another or compares.
    """
    if one.size != other.size or one.is_integer != other.is_integer or one.is_rate or other.is_rate:
        return False
    if any(frozenset([i, j]) in subtracted for i in one.reads for j in other.reads if i != j):
        return True
    if (one.words_of_path | other.words_of_path) & _GOALS:
        return True
    if one.reads == other.reads:
        return True
    (low, high), (least, most) = one.bounds, other.bounds
    room = 0.5 * np.maximum(high - low, most - least) + 1e-6
    return bool(np.all(least <= high + room) and np.all(low <= most + room))
