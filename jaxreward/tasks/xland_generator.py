"""Generated rulesets of XLand-MiniGrid: a goal, a chain of rules that leads to it, and what leads nowhere.

A ruleset is a function of four numbers, so that its name says all of it; `LADDER` is a fixed list of them.
"""

from __future__ import annotations

import itertools
import re
from typing import NamedTuple

import numpy as np

from jaxreward.tasks.option_checks import invalid_option
from jaxreward.tasks.xland_chain import Thing

DEEPEST, MOST_DISTRACTORS = 3, 6
_TILES, _COLOURS = (3, 4, 5, 11, 12), (1, 2, 3, 4, 5, 6, 8, 9, 10, 11)
"""Balls, squares, pyramids, hexes and stars, in every colour that no floor or wall has."""
_RULES = {"hold": (1, 1, 0.4), "reach": (2, 1, 0.2), "join": (3, 2, 0.4)}
_GOALS = {"hold": (1, 1, 0.3), "reach": (3, 1, 0.2), "join": (4, 2, 0.5)}
"""The kinds that are drawn: xminigrid's number, how many things they are about, and their chance."""


class Generated(NamedTuple):
    """A ruleset as xminigrid encodes it, uint8: the goal (5,), rules (n, 7) and initial tiles (m, 2)."""

    goal: np.ndarray
    rules: np.ndarray
    init_tiles: np.ndarray


def generated(depth: int, distractors: int, decoys: int, seed: int) -> Generated:
    """A ruleset.

    Args:
        depth: rules that must fire before the goal, each making what the next one needs, 0 to 3.
        distractors: objects besides that lie around, 0 to 6.
        decoys: rules about distractors alone, no more than there are distractors; what they make is of no use.
        seed: of the things and the kinds of goal and rules.

    Raises:
        InvalidSetting: a number out of range.
    """
    _require(depth, distractors, decoys)
    rng = np.random.default_rng([depth, distractors, decoys, seed])
    things = list(itertools.product(_TILES, _COLOURS))
    fresh = iter([things[i] for i in rng.permutation(len(things))])
    verb, kind, n = _draw(rng, _GOALS)
    needed = [next(fresh) for _ in range(n)]
    goal, rules = _encoding(kind, needed, 5), list[np.ndarray]()
    for _ in range(depth):
        made = needed.pop(int(rng.integers(len(needed))) if not rules else -1)
        # A thing made by being held, or reached, and then to be held, or reached, is so at once.
        verb, kind, n = _draw(rng, {v: k for v, k in _RULES.items() if v == "join" or v != verb})
        about = [next(fresh) for _ in range(n)]
        rules.append(_encoding(kind, [*about, made], 7))
        needed += about
    others = [next(fresh) for _ in range(distractors)]
    for k in range(decoys):
        _, kind, n = _draw(rng, _RULES)
        about = [others[(k + i) % distractors] for i in range(n)]
        if len(set(about)) < n:
            kind, about = _RULES["hold"][0], about[:1]
        rules.append(_encoding(kind, [*about, next(fresh)], 7))
    tiles = [*needed, *others]
    order, rule_order = rng.permutation(len(tiles)), rng.permutation(len(rules))
    shuffled = [rules[i] for i in rule_order] or [np.zeros(7, np.uint8)]
    return Generated(goal, np.stack(shuffled), np.asarray([tiles[i] for i in order], np.uint8))


def named(text: str) -> Generated:
    """The ruleset of `<depth>-<distractors>-<decoys>-<seed>`, such as `1-2-1-7`.

    Raises:
        InvalidSetting: text of another form, or a number out of range.
    """
    found = re.fullmatch(r"(\d{1,9})-(\d{1,9})-(\d{1,9})-(\d{1,9})", text)
    if found is None:
        message = f"'{text}' is not <depth>-<distractors>-<decoys>-<seed>; write generated:1-2-1-7, say"
        raise invalid_option("ruleset", message)
    depth, distractors, decoys, seed = map(int, found.groups())
    return generated(depth, distractors, decoys, seed)


def _require(depth: int, distractors: int, decoys: int) -> None:
    for what, number, most in (
        ("rules before the goal", depth, DEEPEST), ("distractors", distractors, MOST_DISTRACTORS),
        ("decoys", decoys, distractors),
    ):  # fmt: skip
        if not 0 <= number <= most:
            limit = "one for each distractor" if what == "decoys" else str(most)
            raise invalid_option("ruleset", f"a generated ruleset cannot have {number} {what}: at most {limit}")


def _draw(rng: np.random.Generator, kinds: dict[str, tuple[int, int, float]]) -> tuple[str, int, int]:
    """One of the kinds: what is done, xminigrid's number, and how many things it is about."""
    names, chances = list(kinds), np.asarray([chance for _, _, chance in kinds.values()])
    verb = names[int(rng.choice(len(names), p=chances / chances.sum()))]
    return verb, *kinds[verb][:2]


def _encoding(kind: int, things: list[Thing], length: int) -> np.ndarray:
    flat = [kind, *(value for thing in things for value in thing)]
    return np.asarray(flat + [0] * (length - len(flat)), np.uint8)


_LAYOUTS = ("R1-9x9", "R1-13x13", "R2-9x9", "R4-9x9", "R4-13x13")

LADDER = tuple(
    f"xland/XLand-MiniGrid-{layout}/generated:{depth}-{distractors}-{min(decoys, distractors)}-{seed}"
    for seed, (depth, (place, layout)) in enumerate(itertools.product(range(DEEPEST + 1), enumerate(_LAYOUTS)), 100)
    for distractors, decoys in [((2 * place + depth) % 5, (place + depth) % 3)]
)
"""Twenty tasks by name, chains of 0 to 3 rules in one, two and four rooms, to try a search on; nothing was tuned to
them."""
