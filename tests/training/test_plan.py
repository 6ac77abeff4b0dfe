"""How a population is cut into chunks."""

from __future__ import annotations

import itertools
import random
from typing import Any

import pytest

from jaxreward.errors import InvalidSetting, UnknownName
from jaxreward.tasks import Task, make_task
from jaxreward.training import PPO, Execution
from jaxreward.training.plan import chunks_of
from jaxreward.training.stepwise import common_size, structure_size
from tests.training.conftest import FAST, STEPWISE


@pytest.mark.parametrize(("structures", "settings"), [(1, 16), (3, 5), (15, 16), (16, 1), (7, 4), (2, 40)])
def test_settings_of_a_structure_stay_together(structures, settings):
    """In any order: every structure is compiled on one device and in one form, unless it fills several chunks."""
    places = [k for k in range(structures) for _ in range(settings)]
    random.Random(0).shuffle(places)
    for largest, devices in itertools.product((4, 16, 64), (1, 2, 3)):
        chunks = chunks_of(places, largest, devices)
        assert sorted(place for chunk in chunks for place in chunk) == list(range(len(places)))
        assert max(map(len, chunks)) <= largest
        sizes = {structure_size(sorted(places[k] for k in chunk)) for chunk in chunks}
        if settings <= largest and structures >= devices:
            assert sizes == {settings}
            of = [{places[k] for k in chunk} for chunk in chunks]
            assert sum(map(len, of)) == structures
        else:
            assert all(len({places[k] for k in chunk}) == 1 for chunk in chunks)
            assert len(chunks) >= min(devices, len(places))


def test_chunks_are_balanced_over_devices():
    assert chunks_of("abcde", 16, 2) == [[0, 1, 2], [3, 4]]
    assert chunks_of("abcde", 2, 2) == [[0, 1], [2, 3], [4]]
    assert [len(chunk) for chunk in chunks_of(range(20), 16, 2)] == [10, 10]
    assert [len(chunk) for chunk in chunks_of(range(40), 16, 2)] == [10] * 4
    assert [len(chunk) for chunk in chunks_of(range(64), 16, 2)] == [16] * 4
    assert chunks_of("aab", 16, 1) == [[0, 1, 2]]
    assert chunks_of("aab", 16, 1, 2) == [[0, 1, 2]]


def test_a_chunk_has_so_many_structures_and_as_many_settings_of_them_as_fit():
    alike = [k for k in range(16) for _ in range(16)]
    assert [len(chunk) for chunk in chunks_of(alike, 1000, 2, 16)] == [128, 128]
    assert [len(chunk) for chunk in chunks_of(alike, 1000, 1, 4)] == [64] * 4
    assert [len(chunk) for chunk in chunks_of(alike, 50, 2, 16)] == [48, 48, 32, 48, 48, 32]
    assert [len(chunk) for chunk in chunks_of(alike, 8, 2, 16)] == [8] * 32
    assert [len(chunk) for chunk in chunks_of(range(40), 1000, 2, 16)] == [10] * 4
    uneven = [*alike, *alike[:16], 99]  # the first structure twice as often, and one once
    assert [len(chunk) for chunk in chunks_of(uneven, 1000, 1, 20)] == [273]
    assert chunks_of("abacbd", 4, 1, 2) == [[0, 2, 1], [4, 3], [5]]


def test_the_collector_follows_the_steps_of_all_seeds_in_whole_updates():
    grid, real, ppo = make_task("probe-choice"), make_task("probe-aim"), PPO(envs=100, unroll=100, minibatches=1)
    full, fast, stepwise = ("fused", "full"), ("fused", "fast"), ("stepwise", "full")

    def auto(task: Task, ppo: PPO, seeds: int, steps: int, platform: str = "cpu") -> tuple[str, str]:
        return Execution().resolve(task, ppo, seeds, steps, platform)

    assert auto(grid, ppo, 2, 10_000) == stepwise and auto(grid, ppo, 2, 10_001) == fast
    assert auto(grid, ppo, 2, 500_000) == fast and auto(grid, ppo, 2, 500_001) == full
    assert auto(grid, ppo, 2, 500_000, "gpu") == full
    usual = PPO()  # the limits in updates of 1,024 steps
    assert auto(grid, usual, 2, 10_000) == auto(grid, usual, 1, 20_000) == stepwise
    assert auto(grid, usual, 2, 500_000) == auto(grid, usual, 1, 1_000_000) == fast
    assert auto(grid, usual, 2, 10_240) == stepwise and auto(grid, usual, 2, 10_241) == fast
    assert auto(grid, usual, 2, 501_000) == full
    assert Execution().resolve(grid, usual, 2, 200_000, "cpu", shared=16) == full
    assert Execution().resolve(grid, usual, 2, 25_000, "cpu", shared=16) == fast
    assert auto(real, ppo, 2, 10**9) == stepwise and auto(real, ppo, 1, 1, "gpu") == full


def test_a_chosen_collector_is_used():
    grid, real, ppo = make_task("probe-choice"), make_task("probe-aim"), PPO()
    assert STEPWISE.resolve(grid, ppo, 3, 10**9, "gpu") == ("stepwise", "full")
    assert FAST.resolve(grid, ppo, 3, 10**9, "cpu") == ("fused", "fast")
    assert FAST.resolve(grid, ppo, 3, 10**9, "gpu") == ("fused", "full"), "the options are of CPUs"
    assert Execution(collector="fused").resolve(real, ppo, 1, 1, "cpu") == ("fused", "fast")
    assert Execution(collector="fused").resolve(real, ppo, 1, 10**9, "cpu") == ("fused", "full")
    assert Execution(collector="fused", compile="full").resolve(real, ppo, 1, 1, "cpu") == ("fused", "full")
    assert Execution(compile="fast").resolve(real, ppo, 1, 1, "cpu") == ("fused", "fast")


@pytest.mark.parametrize(
    ("given", "settings"),
    [({"collector": "stepwise", "compile": "fast"}, ("compile", "collector")), ({"chunk": 0}, ("chunk",))],
)
def test_invalid_settings_of_an_execution_are_named(given: Any, settings: tuple[str, ...]):
    with pytest.raises(InvalidSetting) as error:
        Execution(**given).check(PPO())
    assert error.value.settings == settings


@pytest.mark.parametrize(
    ("given", "kind", "name", "nearest"),
    [({"collector": "Fused"}, "collector", "Fused", "fused"), ({"compile": "slow"}, "compile option", "slow", None)],
)
def test_an_unknown_collector_or_compile_option_is_named(given: Any, kind: str, name: str, nearest: str | None):
    with pytest.raises(UnknownName) as error:
        Execution(**given).check(PPO())
    assert (error.value.kind, error.value.name, error.value.nearest) == (kind, name, nearest)


def test_stepwise_chunks_are_made_up_to_common_sizes():
    sizes = range(1, 18)
    assert all(common_size(range(n)) >= n for n in sizes)
    assert [common_size(range(n)) for n in (5, 7, 9, 13, 17)] == [6, 8, 12, 16, 24]
    assert common_size("aabbccddee") == 10
