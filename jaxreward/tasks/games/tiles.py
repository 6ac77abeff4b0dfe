"""Pictures of boards, drawn with NumPy."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

Colour = tuple[int, int, int]


def draw_board(board: np.ndarray, colours: Mapping[int, Colour], tile: int) -> np.ndarray:
    """A picture of a board of whole numbers (rows, columns), each a tile of its colour: uint8 (rows tile, columns tile,
    3). Tiles of 0 are flat, others have a darker border."""
    palette = np.zeros((max(colours) + 1, 3), np.uint8)
    for number, colour in colours.items():
        palette[number] = colour
    picture = np.repeat(np.repeat(palette[board], tile, 0), tile, 1)
    edge = np.zeros(tile, bool)
    edge[[0, -1]] = True
    rows, columns = (np.tile(edge, n) for n in board.shape)
    filled = np.repeat(np.repeat(board != 0, tile, 0), tile, 1)
    border = (rows[:, None] | columns[None, :]) & filled
    picture[border] = picture[border] // 2
    return picture
