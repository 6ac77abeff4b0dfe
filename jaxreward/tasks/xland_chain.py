"""What leads to the goal of an XLand ruleset: the goal, and the rules whose products it needs, chained backward.

Goals and rules are in the encoding of xminigrid: kind, then (tile, colour) pairs, then numbers.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple

import numpy as np

Thing = tuple[int, int]
"""(tile, colour)."""

Verb = Literal["hold", "reach", "join", "place", "go"]

_GOALS: dict[int, Verb] = {1: "hold", 2: "reach", 3: "reach", 4: "join", 5: "place", 6: "go"}
_GOALS |= {7: "join", 8: "join", 9: "join", 10: "join", 11: "reach", 12: "reach", 13: "reach", 14: "reach"}
_RULES: dict[int, Verb] = {1: "hold", 2: "reach", 3: "join", 4: "join", 5: "join", 6: "join", 7: "join"}
_RULES |= {8: "reach", 9: "reach", 10: "reach", 11: "reach"}
_THINGS: dict[Verb, int] = {"hold": 1, "reach": 1, "join": 2, "place": 1, "go": 0}


class Link(NamedTuple):
    """One thing to be done on the way to a goal.

    `hold` is to pick a thing up, `reach` to walk to it, `join` to put one beside another, `place` to put it on a cell,
    `go` to walk to a cell; `about` are those things in this order, the one that is carried first. `makes` is what a
    rule then makes of them, None of the goal and of a link that is there to carry something.
    """

    verb: Verb
    about: tuple[Thing, ...]
    makes: Thing | None = None


def chain(goal: np.ndarray, rules: np.ndarray, init_tiles: np.ndarray) -> tuple[Link, ...]:
    """The links from the initial tiles to the goal, each after those that it needs, the goal last.

    A thing that is carried is held before, which is a link of its own where no rule puts it into the agent's hands. Of
    several rules with one product the first counts. A thing that is neither there at the start nor made by a rule is
    taken as given: the chain then says what would be left to do.
    """
    there = {_pair(tile) for tile in np.asarray(init_tiles) if int(tile[0])}
    made = dict[Thing, tuple[Verb, tuple[Thing, ...]]]()
    for rule in np.atleast_2d(np.asarray(rules)):
        if verb := _RULES.get(int(rule[0])):
            n = _THINGS[verb]
            made.setdefault(_pair(rule[1 + 2 * n : 3 + 2 * n]), (verb, _pairs(rule, n)))
    links, done = list[Link](), set[Thing]()
    held: list[Thing | None] = [None]

    def have(thing: Thing, on_the_way: frozenset[Thing]) -> None:
        """Links until `thing` exists."""
        if thing in there or thing in done or thing in on_the_way or thing not in made:
            return
        verb, about = made[thing]
        do(verb, about, thing, on_the_way | {thing})
        done.add(thing)
        held[0] = thing if verb == "hold" else None

    def do(verb: Verb, about: tuple[Thing, ...], makes: Thing | None, on_the_way: frozenset[Thing]) -> None:
        if verb == "join" and made.get(about[1], ("", ()))[0] == "hold" and about[1] not in there:
            about = about[::-1]  # what a rule puts into the hands is carried to the other
        for thing in about[::-1]:  # what is carried comes last, and is in hand then
            have(thing, on_the_way)
        if verb in ("join", "place") and held[0] != about[0]:
            links.append(Link("hold", about[:1]))
        links.append(Link(verb, about, makes))
        held[0] = None

    kind = int(np.asarray(goal)[0])
    if kind in _GOALS:
        do(_GOALS[kind], _pairs(np.asarray(goal), _THINGS[_GOALS[kind]]), None, frozenset())
    return tuple(links)


def depth(links: Sequence[Link]) -> int:
    """How many rules must fire before the goal."""
    return sum(link.makes is not None for link in links)


def _pair(pair: Sequence[int] | np.ndarray) -> Thing:
    return int(pair[0]), int(pair[1])


def _pairs(encoding: np.ndarray, n: int) -> tuple[Thing, ...]:
    return tuple(_pair(encoding[1 + 2 * k : 3 + 2 * k]) for k in range(n))
