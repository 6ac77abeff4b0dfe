"""Pictures of states, drawn with NumPy."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from jaxreward.tasks.levels.codes import AGENT, BALL, BOX, CLOSED, DOOR, KEY, LOCKED, OPENED, WALL
from jaxreward.tasks.levels.state import LevelState

TILE = 24
"""Pixels along the side of a cell."""

_RGB = ((230, 60, 60), (60, 190, 80), (70, 110, 240), (150, 70, 210), (235, 210, 60), (150, 150, 150))
_FLOOR, _LINE, _WALL = (18, 18, 22), (44, 44, 50), (96, 96, 104)


def draw(state: LevelState) -> np.ndarray:
    """The grid by row and column with the agent on it, and a row under it with what it carries: uint8
    (24 (height + 1), 24 width, 3)."""
    height, width, _ = state.grid.shape
    picture = np.full((TILE * (height + 1), TILE * width, 3), 255, np.uint8)
    for row in range(height):
        for column in range(width):
            _place(picture, row, column, _tile(*map(int, state.grid[row, column])))
    row, column = map(int, state.position)
    under = _tile(*map(int, state.grid[row, column]))
    arrow = _tile(AGENT, 0, int(state.direction))
    seen = (arrow != _tile(1, 0, 0)).any(axis=2, keepdims=True)
    _place(picture, row, column, np.where(seen, arrow, under))
    if state.carried[0]:
        _place(picture, height, 0, _tile(*map(int, state.carried[:3])))
    return picture


def _place(picture: np.ndarray, row: int, column: int, tile: np.ndarray) -> None:
    picture[row * TILE : (row + 1) * TILE, column * TILE : (column + 1) * TILE] = tile


@lru_cache(maxsize=256)
def _tile(kind: int, colour: int, state: int) -> np.ndarray:
    """A cell, uint8 (24, 24, 3)."""
    if kind == WALL:
        return np.full((TILE, TILE, 3), _WALL, np.uint8)
    tile = np.full((TILE, TILE, 3), _FLOOR, np.uint8)
    tile[0], tile[:, 0] = _LINE, _LINE
    y, x = (np.mgrid[:TILE, :TILE] + 0.5) / TILE
    paint = _RGB[min(colour, len(_RGB) - 1)]
    if kind == DOOR:
        _draw_door(tile, x, y, paint, state)
    elif kind == BALL:
        tile[(x - 0.5) ** 2 + (y - 0.5) ** 2 < 0.1] = paint
    elif kind == BOX:
        tile[_rectangle(x, y, 0.14, 0.86, 0.14, 0.86)] = paint
        tile[_rectangle(x, y, 0.24, 0.76, 0.24, 0.76)] = _FLOOR
        tile[_rectangle(x, y, 0.14, 0.86, 0.45, 0.55)] = paint
    elif kind == KEY:
        tile[_rectangle(x, y, 0.46, 0.58, 0.3, 0.88)] = paint
        tile[_rectangle(x, y, 0.32, 0.5, 0.58, 0.67) | _rectangle(x, y, 0.32, 0.5, 0.78, 0.87)] = paint
        radius = (x - 0.52) ** 2 + (y - 0.27) ** 2
        tile[(radius < 0.035) & (radius > 0.006)] = paint
    elif kind == AGENT:
        along, across = ((x, y), (y, x), (1 - x, y), (1 - y, x))[state]
        tile[(along > 0.14) & (np.abs(across - 0.5) < 0.36 * (0.88 - along) / 0.74)] = (255, 255, 255)
    return tile


def _draw_door(tile: np.ndarray, x: np.ndarray, y: np.ndarray, paint: tuple[int, int, int], state: int) -> None:
    if state == OPENED:
        tile[_rectangle(x, y, 0.0, 0.12, 0.0, 1.0) | _rectangle(x, y, 0.88, 1.0, 0.0, 1.0)] = paint
        return
    tile[...] = paint
    if state == LOCKED:
        tile[_rectangle(x, y, 0.1, 0.9, 0.1, 0.9)] = tuple(int(0.45 * c) for c in paint)
        tile[_rectangle(x, y, 0.42, 0.6, 0.4, 0.7)] = paint
    if state == CLOSED:
        tile[_rectangle(x, y, 0.12, 0.88, 0.12, 0.88)] = _FLOOR
        tile[(x - 0.72) ** 2 + (y - 0.5) ** 2 < 0.008] = paint


def _rectangle(x: np.ndarray, y: np.ndarray, left: float, right: float, top: float, bottom: float) -> np.ndarray:
    return (x >= left) & (x < right) & (y >= top) & (y < bottom)
