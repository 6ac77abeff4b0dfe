"""Cells, elites and migration."""

from __future__ import annotations

import random

import pytest

from jaxreward.records import Feedback
from jaxreward.search.archive import Archive, Behaviour, Grid
from tests.search.conftest import RETURN


def ids(results):
    return [result.candidate.id for result in results]


@pytest.mark.parametrize(
    ("size", "nodes", "cell"),
    [(1, 0, (0, 0)), (32, 99, (0, 0)), (33, 100, (1, 1)), (512, 1999, (15, 19)), (512, 2000, (15, 20))],
)
def test_bins_are_uniform_with_their_edges(result, size, nodes, cell):
    assert Grid().cell(result("a", 0.5, size, nodes)) == cell


def test_every_bin_but_the_overflow_has_the_same_width(result):
    grid = Grid()
    rows = [grid.cell(result("a", 0.5, size))[0] for size in range(1, 513)]
    columns = [grid.cell(result("a", 0.5, 1, nodes))[1] for nodes in range(2000)]
    assert {rows.count(row) for row in rows} == {grid.observation_width}
    assert {columns.count(column) for column in columns} == {grid.reward_width}
    assert (max(rows) + 1, max(columns) + 2) == grid.shape
    assert grid.cell(result("a", 0.5, 1, 10**9)) == (0, 20), "one bin holds all that is larger"


def test_a_cell_keeps_its_best_and_islands_are_apart(result):
    archive = Archive.empty(2).insert(result("a", 0.5), 0).insert(result("b", 0.4), 0).insert(result("c", 0.1), 1)
    assert ids(archive.local(0)) == ["a"]
    assert ids(archive.local(1)) == ["c"]
    assert ids(archive.insert(result("d", 0.6), 0).local(0)) == ["d"]


def test_an_archive_is_never_changed(result):
    empty = Archive.empty(1)
    filled = empty.insert(result("a", 0.5), 0)
    assert empty.elites() == () and len(filled.elites()) == 1
    with pytest.raises(TypeError):
        filled.islands[0][(0, 0)] = result("b", 0.9)  # pyright: ignore[reportIndexIssue]


def test_order_of_arrival_does_not_matter(result):
    rng = random.Random(0)
    results = [result(str(k), rng.random(), rng.randint(1, 512), rng.randint(0, 2500)) for k in range(200)]
    archives = []
    for _ in range(3):
        rng.shuffle(results)
        archive = Archive.empty(1)
        for r in results:
            archive = archive.insert(r, 0)
        archives.append(archive)
    assert archives[0] == archives[1] == archives[2]
    assert archives[0].elites() == archives[1].elites()


def test_migration_sends_each_best_one_island_on_at_once(result):
    archive = Archive.empty(3)
    archive = archive.insert(result("a", 0.9, size=1), 0).insert(result("low", 0.1, size=100), 0)
    archive = archive.insert(result("b", 0.5, size=200), 1).insert(result("c", 0.2, size=300), 2)
    moved = archive.migrate()
    assert ids(moved.local(0)) == ["a", "low", "c"]
    assert ids(moved.local(1)) == ["a", "b"], "island 1's newcomer did not move on in the same migration"
    assert ids(moved.local(2)) == ["b", "c"]
    assert ids(moved.elites()) == ["a", "low", "c", "b"], "an elite on two islands counts once"
    assert ids(moved.migrate().local(2)) == ["a", "b", "c"]


def test_a_migrant_must_beat_the_elite_of_its_cell(result):
    archive = Archive.empty(2).insert(result("a", 0.9), 0).insert(result("b", 0.5), 1).migrate()
    assert ids(archive.local(0)) == ids(archive.local(1)) == ["a"]


def test_empty_islands_send_no_migrants(result):
    assert Archive.empty(3).migrate() == Archive.empty(3)
    alone = Archive.empty(1).insert(result("a", 0.5), 0)
    assert alone.migrate() == alone


def test_statistics_count_cells_once_over_the_islands(result):
    archive = Archive.empty(2).insert(result("a", 0.5), 0).insert(result("b", 0.25), 1).insert(result("c", 0.1, 99), 1)
    stats = archive.stats()
    assert (stats.occupied, stats.cells, stats.elites) == (2, 16 * 21, (1, 2))
    assert stats.coverage == pytest.approx(2 / 336)
    assert stats.qd_score == pytest.approx(0.6)


def test_a_score_without_a_summary_is_refused(result):
    bare = result("a", 0.5)
    bare = bare.model_copy(update={"candidate": bare.candidate.model_copy(update={"summary": None})})
    with pytest.raises(ValueError, match="candidate a has a score but no summary"):
        Archive.empty(1).insert(bare, 0)


@pytest.mark.parametrize(
    ("progress", "success", "length", "cell"),
    [
        ({"held": (0.9, 0.7), "joined": (0.04, 0.05)}, (0.0, 0.0), (200.0, 31.9), (1, 4)),
        ({"held": (0.9, 0.7), "joined": (0.04, 0.06)}, (0.0, 0.0), (32.0,), (2, 5)),
        ({"held": (1.0,), "joined": (1.0,)}, (0.5,), (1.0,), (3, 0)),
        ({}, (0.04,), (), (0, 0)),
        ({}, (0.5,), (float("nan"),), (1, 0)),
    ],
)
def test_cells_of_behaviour_are_stages_and_doublings_of_the_length(result, progress, success, length, cell):
    feedback = Feedback(progress=progress, seed_success=success, length=length)
    assert Behaviour().cell(result("a", sum(success) / len(success), feedback=feedback)) == cell


def test_of_what_is_no_rate_the_level_is_a_stage(result):
    measure = RETURN.model_copy(update={"sparse": 0.0, "human": 100.0})
    assert [Behaviour().cell(result("a", mean, measure=measure))[0] for mean in (0.0, 50.0)] == [0, 1]
    assert Behaviour().cell(result("a", 50.0, measure=RETURN)) == (0, 0), "nothing to compare with"
