"""Frames of a video with title, step and reward terms below the simulation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from jaxreward.reports.films import Frames

_LINE, _TEXT, _MARGIN = 15, 12, 4
_MOST_TERMS = 6
_NARROW = 240
"""Pictures of less than half of it are shown larger."""
_GROUND, _INK, _SOFT = (255, 255, 255), (28, 36, 48), (200, 206, 214)
_GAIN, _LOSS = (47, 134, 201), (210, 82, 95)
COLOURS = (_GROUND, _INK, _GAIN, _LOSS)
"""Of text and bars: keep them in a palette of few colours."""


@dataclass(frozen=True)
class Scene:
    """One episode to show.

    Attributes:
        title: what it is, e.g. `best: success 1.00`.
        frames: T + 1 pictures, uint8 (H, W, 3).
        terms: what each reward term paid on each step, float (T, K).
        names: of the terms.
        about: what the episode is about, e.g. its mission.
    """

    title: str
    frames: Frames
    terms: np.ndarray
    names: tuple[str, ...]
    about: str = ""


def frame_times(lengths: Sequence[int], most: int) -> np.ndarray:
    """Steps at which episodes of these lengths are shown side by side: at most `most`, which is more than there are
    episodes, from 0 to the end of the longest.

    Every interval between the ends of two episodes has an equal share of the frames, evenly spread, so that a short
    episode can be watched next to a long one.
    """
    ends = [0, *sorted(set(lengths))]
    steps = np.diff(ends)
    shares = np.minimum(steps, (most - 1) // len(steps))
    for k in np.argsort(steps - shares):  # what short intervals leave goes to longer ones
        shares[k] += min(steps[k] - shares[k], most - 1 - shares.sum())
    parts = [np.linspace(a, b, n + 1)[1:] for a, b, n in zip(ends, ends[1:], shares, strict=False)]
    return np.unique(np.concatenate([[0], *parts]).round().astype(int))


def with_panels(scenes: Sequence[Scene], at: Sequence[Sequence[int]]) -> list[Frames]:
    """The frames of each scene at its moments `at`, with title, step and terms below.

    All scenes show the same terms, those that paid most in all of them, on one scale.
    """
    size = sum(np.abs(s.terms).sum(0) for s in scenes)
    shown = [int(k) for k in np.argsort(-size, kind="stable")[:_MOST_TERMS]] if len(scenes[0].names) else []
    largest = max((float(np.abs(s.terms[:, shown]).max(initial=0.0)) for s in scenes), default=0.0)
    room = max((len(_wrapped(scene.about, _width(scene))) for scene in scenes), default=0)
    return [
        [_with_panel(scene, t, i, shown, largest, room) for i, t in enumerate(moments)]
        for scene, moments in zip(scenes, at, strict=True)
    ]


def _times(scene: Scene) -> int:
    """How much larger the pictures of a scene are shown: small ones have no room for text."""
    return max(1, _NARROW // scene.frames[0].shape[1])


def _width(scene: Scene) -> int:
    return _times(scene) * scene.frames[0].shape[1]


def _with_panel(scene: Scene, t: int, i: int, shown: Sequence[int], largest: float, room: int) -> np.ndarray:
    """Frame `i`, the state after `t` steps, and what the step that led to it paid; `room` lines are for what the
    episode is about."""
    from PIL import Image, ImageDraw, ImageFont

    picture = scene.frames[i].repeat(_times(scene), axis=0).repeat(_times(scene), axis=1)
    width = picture.shape[1]
    panel = Image.new("RGB", (width, 2 * _MARGIN + _LINE * (1 + room + len(shown))), _GROUND)
    draw, font = ImageDraw.Draw(panel), ImageFont.load_default(_TEXT)
    draw.text((_MARGIN, _MARGIN), _fitted(f"{scene.title}, step {t}", draw, font, width - 2 * _MARGIN), _INK, font)
    for row, line in enumerate(_wrapped(scene.about, width), start=1):
        draw.text((_MARGIN, _MARGIN + _LINE * row), line, _INK, font)
    middle, half = int(width * 0.8), int(width * 0.2) - _MARGIN
    for row, k in enumerate(shown, start=1 + room):
        top = _MARGIN + _LINE * row
        draw.text((_MARGIN, top), _fitted(scene.names[k], draw, font, middle - half - 2 * _MARGIN), _INK, font)
        draw.line((middle, top, middle, top + _LINE - 2), _SOFT)
        paid = float(scene.terms[t - 1, k]) if t else 0.0
        end = middle + round(half * paid / largest) if largest > 0 and np.isfinite(paid) else middle
        if end != middle:
            box = (min(middle, end), top + 3, max(middle, end), top + _LINE - 4)
            draw.rectangle(box, _GAIN if paid > 0 else _LOSS)
    return np.concatenate([picture, np.asarray(panel)])


def _wrapped(text: str, width: int) -> list[str]:
    """The text in lines of a panel of this width, two at most."""
    from PIL import Image, ImageDraw, ImageFont

    draw, font, room = ImageDraw.Draw(Image.new("RGB", (1, 1))), ImageFont.load_default(_TEXT), width - 2 * _MARGIN
    words, first = text.split(), ""
    while words and draw.textlength(f"{first} {words[0]}".strip(), font) <= room:
        first = f"{first} {words.pop(0)}".strip()
    return [line for line in (first, _fitted(" ".join(words), draw, font, room)) if line]


def _fitted(text: str, draw, font, width: int) -> str:
    """The text, cut so that it is not wider."""
    while len(text) > 1 and draw.textlength(text, font) > width:
        text = text[:-2].rstrip() + "…"
    return text
