"""Episodes as pictures: a film that moves, and a strip that can be printed."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from jaxreward.runs.disk import explain_full_disk

Frames = Sequence[np.ndarray]
"""The frames of one episode, uint8 (H, W, 3), all of one size."""

_GAP = 4
_FRAME_MS, _LAST_MS = 120, 1500
_MOMENTS = 8


def write_film(path: Path, episodes: Sequence[Frames]) -> None:
    """A GIF of episodes side by side; one that is over shows its last frame until all are."""
    from PIL import Image

    longest = max(map(len, episodes))
    rows = [_beside([e[min(t, len(e) - 1)] for e in episodes]) for t in range(longest)]
    images = [Image.fromarray(row).quantize(64) for row in rows]
    durations = [_FRAME_MS] * (longest - 1) + [_LAST_MS]
    with explain_full_disk(path):
        images[0].save(path, save_all=True, append_images=images[1:], duration=durations, loop=0)


def write_strip(path: Path, episodes: Sequence[Frames]) -> None:
    """A picture with a row for each episode: moments spread evenly from its first frame to its last."""
    from PIL import Image

    rows = []
    for frames in episodes:
        moments = np.linspace(0, len(frames) - 1, _MOMENTS).round().astype(int)
        rows.append(_beside([frames[t] for t in moments]))
    gap = np.full((_GAP, rows[0].shape[1], 3), 255, np.uint8)
    stacked = [piece for row in rows for piece in (row, gap)][:-1]
    with explain_full_disk(path):
        Image.fromarray(np.concatenate(stacked)).save(path)


def _beside(frames: Frames) -> np.ndarray:
    gap = np.full((frames[0].shape[0], _GAP, 3), 255, np.uint8)
    return np.concatenate([piece for frame in frames for piece in (frame, gap)][:-1], axis=1)
