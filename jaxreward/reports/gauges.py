"""Frames for a task without a renderer: the numbers of its state as gauges."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

_WIDTH, _LINE, _TEXT, _MARGIN = 320, 15, 11, 6
_MOST = 24
_GROUND, _INK, _SOFT, _MARK = (246, 248, 250), (28, 36, 48), (210, 216, 224), (47, 134, 201)


class Gauges:
    """A gauge for each number, from the least to the greatest value that it has in `values`.

    Args:
        values: arrays (T, ...) by name, of any numeric type; every number of one has a gauge, up to 24 in all. Values
            that are not finite are ignored for the ends.
    """

    def __init__(self, values: Mapping[str, np.ndarray]) -> None:
        flat = {name: np.asarray(value, np.float64).reshape(len(value), -1) for name, value in values.items()}
        self._rows = [(name, k) for name, value in flat.items() for k in range(value.shape[1])]
        self._several = {name for name, value in flat.items() if value.shape[1] > 1}
        columns = [np.where(np.isfinite(flat[name][:, k]), flat[name][:, k], np.nan) for name, k in self._rows[:_MOST]]
        self._ends = [(np.nanmin(c), np.nanmax(c)) if np.isfinite(c).any() else (0.0, 0.0) for c in columns]

    def draw(self, values: Mapping[str, np.ndarray]) -> np.ndarray:
        """The gauges of one moment, uint8 (height, 320, 3): `values` are arrays (...) by the same names."""
        from PIL import Image, ImageDraw, ImageFont

        shown, left = self._rows[:_MOST], len(self._rows) - _MOST
        picture = Image.new("RGB", (_WIDTH, 2 * _MARGIN + _LINE * (len(shown) + (left > 0))), _GROUND)
        draw, font = ImageDraw.Draw(picture), ImageFont.load_default(_TEXT)
        begin, end = _WIDTH // 2, _WIDTH - 62
        for row, ((name, k), (least, most)) in enumerate(zip(shown, self._ends, strict=True)):
            top = _MARGIN + _LINE * row
            value = float(np.asarray(values[name], np.float64).reshape(-1)[k])
            label = f"{name}[{k}]" if name in self._several else name
            while draw.textlength(label, font) > begin - 2 * _MARGIN:
                label = "…" + label[2:]
            draw.text((_MARGIN, top), label, _INK, font)
            draw.line((begin, top + _LINE // 2, end, top + _LINE // 2), _SOFT)
            if np.isfinite(value):
                share = (value - least) / (most - least) if most > least else 0.5
                at = begin + round(float(np.clip(share, 0, 1)) * (end - begin))
                draw.rectangle((at - 2, top + 2, at + 2, top + _LINE - 3), _MARK)
            draw.text((end + _MARGIN, top), f"{value:.4g}", _INK, font)
        if left > 0:
            draw.text((_MARGIN, _MARGIN + _LINE * len(shown)), f"and {left} more", _INK, font)
        return np.asarray(picture)
