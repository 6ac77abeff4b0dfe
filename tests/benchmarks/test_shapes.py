"""What shapes.py estimates of a GPU, and the table of its results."""

from __future__ import annotations

from typing import Any

import pytest

from benchmarks import shapes, shapes_table
from benchmarks.described import DEVICES
from benchmarks.markdown import results
from jaxreward.tasks import make_task
from jaxreward.training import PPO, quick, quick_real
from jaxreward.training.plan import curve_points

H200 = DEVICES["h200"]


def row(collect: int, learn: int, bytes: float = 0.0) -> dict[str, Any]:
    """A row of gpu_compile: launches of the two functions."""
    of = lambda launches: {"launches": launches, "unknown_turn": 0, "bytes": bytes, "flops": 0.0}  # noqa: E731
    return {"functions": {"collect": of(collect), "learn": of(learn)}}


def test_the_seconds_are_those_of_launches_in_sequence():
    """Updates, then held-out episodes: one round of whole unrolls a point of the curves, four at the end."""
    task, ppo, steps = make_task("xland-easy"), PPO(), 200_000
    updates, unrolls = 196, 80 // 16 * (curve_points(task, ppo, steps) - 1 + 4)
    expected = (updates * (1430 + 483) + unrolls * 1430) * H200.launch_us * 1e-6
    assert shapes.training_s(row(1430, 483), task, ppo, steps, H200) == pytest.approx(expected)


def test_held_out_episodes_of_more_environments_than_episodes_move_fewer_bytes():
    task, ppo = make_task("xland-easy"), PPO(envs=512)
    most = [shapes.training_s(row(0, 0, bytes), task, ppo, ppo.batch, H200) for bytes in (1e12, 2e12)]
    unrolls = 5 * curve_points(task, ppo, ppo.batch)
    assert most[0] == pytest.approx(1e12 / H200.bandwidth * (2 + unrolls / 2)) and most[1] == pytest.approx(2 * most[0])


def test_a_shape_is_a_row_of_the_table_or_settings_in_place_of_the_cpus():
    easy, hopper = make_task("xland-easy"), make_task("hopper")
    assert shapes.learner("gpu", "hopper") == quick(hopper, "gpu") and shapes.learner("cpu", "xland-easy") == PPO()
    assert shapes.learner("gpu", "xland-easy") == quick(easy, "gpu")
    assert shapes.learner("envs=256,learning_rate=4e-3", "xland-easy") == PPO(envs=256, learning_rate=4e-3)
    assert shapes.learner("envs=256", "hopper") == quick_real(envs=256)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--groups", "harder"], "easy, medium, hard, hopper"),
        (["--shapes", "gamma=1"], "NAME=VALUE"),
        (["--shapes", "envs=many"], "has no number"),
        (["--shapes", "minibatches=3"], "does not divide"),
        (["--budget", "0"], "positive"),
    ],
)
def test_bad_input_ends_in_one_sentence(words: list[str], said: str, capsys: pytest.CaptureFixture[str]):
    assert shapes.main(words) == 2
    error = capsys.readouterr().err
    assert error.startswith("shapes: ") and said in error and error.count("\n") == 1


def test_the_page_has_the_table_of_the_results():
    page = shapes_table.PAGE.read_text()
    assert shapes_table.fill(page, results(shapes_table.RESULTS, "shapes")) == page, "run benchmarks/shapes_table.py"
