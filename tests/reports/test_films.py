"""Films and strips of episodes."""

from __future__ import annotations

import numpy as np
from PIL import Image

from jaxreward.reports.films import write_film, write_strip


def frames(length: int, shade: int, step: int = 1) -> list[np.ndarray]:
    return [np.full((6, 10, 3), shade + step * t, np.uint8) for t in range(length)]


def test_a_film_is_as_long_as_its_longest_episode(tmp_path):
    write_film(tmp_path / "a.gif", [frames(3, 10, 20), frames(5, 100, 20)])  # of shades that a GIF tells apart
    with Image.open(tmp_path / "a.gif") as film:
        assert getattr(film, "n_frames", 1) == 5 and film.size == (10 + 4 + 10, 6)


def test_a_strip_has_a_row_for_each_episode_from_its_first_frame_to_its_last(tmp_path):
    write_strip(tmp_path / "a.png", [frames(20, 0), frames(2, 100)])
    with Image.open(tmp_path / "a.png") as picture:
        strip = np.asarray(picture)
    assert strip.shape == (6 + 4 + 6, 8 * 10 + 7 * 4, 3)
    assert strip[0, 0, 0] == 0 and strip[0, -1, 0] == 19 and strip[-1, 0, 0] == 100 and strip[-1, -1, 0] == 101
