"""Generated rulesets lead to their goal, by a chain as long as asked for."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from jaxreward.errors import UserError
from jaxreward.tasks import make_task
from jaxreward.tasks.xland_chain import Link, chain, depth
from jaxreward.tasks.xland_generator import LADDER, generated, named

ALL = [(d, k, min(r, k), seed) for d in range(4) for k, r in ((0, 0), (3, 2)) for seed in range(12)]


def carried_out(links, tiles):
    """What lies on the grid and what is in the hands after the links, one after the other; each must be possible."""
    grid, hands = {tuple(map(int, tile)) for tile in tiles}, None
    for link in links:
        first = link.about[0]
        if link.verb == "hold":
            if hands is not None:
                grid.add(hands)
            assert first in grid
            grid, hands = grid - {first}, link.makes or first
            continue
        if link.verb == "join":
            assert hands == first and link.about[1] in grid
            grid, hands = grid | {first}, None
        elif first == hands:  # put down, to stand beside it
            grid, hands = grid | {first}, None
        assert set(link.about) <= grid
        if link.makes:
            grid = (grid - set(link.about)) | {link.makes}
    return grid, hands


@pytest.mark.parametrize("numbers", ALL)
def test_the_chain_of_a_generated_ruleset_can_be_carried_out(numbers):
    ruleset = generated(*numbers)
    links = chain(*ruleset)
    assert depth(links) == numbers[0] and links[-1].makes is None
    carried_out(links, ruleset.init_tiles)
    used = {thing for link in links for thing in link.about}
    tiles = {tuple(map(int, tile)) for tile in ruleset.init_tiles}
    assert len(tiles) == len(ruleset.init_tiles) and len(tiles - used) == numbers[1]
    decoys = [rule for rule in ruleset.rules if rule[0] and not {tuple(map(int, rule[1:3]))} & used]
    assert len(decoys) == numbers[2]


def test_a_thing_is_not_made_by_what_is_then_done_with_it():
    for numbers in ALL:
        made = {link.makes: link.verb for link in chain(*generated(*numbers)) if link.makes}
        for link in chain(*generated(*numbers)):
            assert link.verb == "join" or link.verb != made.get(link.about[0])


def test_a_name_says_all_of_a_ruleset():
    one, other = named("2-3-1-7"), named("2-3-1-8")
    assert all(np.array_equal(a, b) for a, b in zip(one, named("2-3-1-7"), strict=True))
    assert not all(np.array_equal(a, b) for a, b in zip(one, other, strict=True))
    task: Any = make_task("xland/XLand-MiniGrid-R1-9x9/generated:2-3-1-7")
    assert np.array_equal(np.asarray(task.ruleset.init_tiles), one.init_tiles) and task.horizon == 243


@pytest.mark.parametrize(
    ("text", "word"),
    [("1-2", "<depth>"), ("4-0-0-0", "at most 3"), ("1-7-0-0", "at most 6"), ("1-1-2-0", "one for each distractor")],
)
def test_numbers_out_of_range_are_refused(text, word):
    with pytest.raises(UserError, match=word):
        make_task(f"xland/XLand-MiniGrid-R1-9x9/generated:{text}")


def test_the_ladder_is_twenty_tasks_of_every_depth():
    assert len(set(LADDER)) == 20
    depths = [depth(chain(*named(name.partition("generated:")[2]))) for name in LADDER]
    assert [depths.count(d) for d in range(4)] == [5] * 4


def test_the_chains_of_the_papers_tasks():
    pyramid, ball, hexagon = (5, 3), (3, 2), (11, 5)
    task: Any = make_task("xland-hard")
    hard = task.ruleset
    links = chain(*map(np.asarray, (hard.goal, hard.rules, hard.init_tiles)))
    assert links == (Link("hold", (pyramid,), ball), Link("join", (ball, hexagon)))
