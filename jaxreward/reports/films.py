"""Videos of episodes, as GIF or MP4, and strips of frames as PNG."""

from __future__ import annotations

import io
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from jaxreward.errors import FileProblem, UnusableFile, UserError
from jaxreward.extras import require
from jaxreward.runs.disk import check_target, write_atomic

Frames = Sequence[np.ndarray]
"""The frames of one episode, uint8 (H, W, 3), all of one size."""

_GAP = 4
_FRAME_MS, _LAST_MS = 120, 1500
_MOMENTS = 8


def write_film(
    path: Path,
    episodes: Sequence[Frames],
    step_ms: int = _FRAME_MS,
    colours: Sequence[tuple[int, int, int]] = (),
    *,
    below: Path | None = None,
) -> None:
    """Write a video of episodes side by side; one that has ended shows its last frame until all have.

    Args:
        path: its suffix is the format, `.gif` or `.mp4`.
        episodes: of frames of one height.
        step_ms: how long a frame is shown; the last one stays longer.
        colours: to be kept in the palette of a GIF.
        below: the trusted folder that `path` lies in, as in `files`; by default its own.

    Raises:
        UserError: another format, packages that are not installed, or a full disk.
    """
    check_format(path)
    longest = max(map(len, episodes))
    rows = [_side_by_side([e[min(t, len(e) - 1)] for e in episodes]) for t in range(longest)]
    write_atomic(path, _mp4(rows, step_ms) if path.suffix == ".mp4" else _gif(rows, step_ms, colours), below=below)


def check_format(path: Path) -> None:
    """Raise `UserError` if a film cannot be written to `path`: its suffix, its folder, or a package that is missing."""
    require("reports", "a film")
    if path.suffix not in (".gif", ".mp4"):
        message = f"a film is written as .gif or .mp4, not as {path.name}"
        raise UnusableFile(message, path, FileProblem.WRONG_KIND)
    check_target(path)


def _gif(rows: Sequence[np.ndarray], step_ms: int, colours: Sequence[tuple[int, int, int]]) -> bytes:
    from PIL import Image

    # Colours that all frames share: with their own they flicker, and the file is larger by a third.
    free = 64 - len(colours)
    found = Image.fromarray(np.concatenate([row[::3, ::3] for row in rows])).quantize(free).getpalette() or []
    palette = Image.new("P", (1, 1))
    palette.putpalette([*found[: 3 * free], *(level for colour in colours for level in colour)])
    images = [Image.fromarray(row).quantize(palette=palette, dither=Image.Dither.NONE) for row in rows]
    durations = [step_ms] * (len(rows) - 1) + [_LAST_MS]
    film = io.BytesIO()
    images[0].save(film, "GIF", save_all=True, append_images=images[1:], duration=durations, loop=0)
    return film.getvalue()


def _mp4(rows: Sequence[np.ndarray], step_ms: int) -> bytes:
    """H.264 with the pixel format that every browser plays, which wants even sizes."""
    import imageio_ffmpeg

    height, width = (n + n % 2 for n in rows[0].shape[:2])
    padding = ((0, height - rows[0].shape[0]), (0, width - rows[0].shape[1]), (0, 0))
    shown = [*rows, *[rows[-1]] * (_LAST_MS // step_ms)]
    pictures = b"".join(np.pad(row, padding, constant_values=255).tobytes() for row in shown)
    # Not by the package's own writer: it forks, which JAX's threads do not survive, and hides the messages of ffmpeg.
    with tempfile.TemporaryDirectory(prefix="jaxreward-") as folder:
        film = Path(folder) / "film.mp4"
        command = [
            imageio_ffmpeg.get_ffmpeg_exe(), "-y", "-loglevel", "error",
            *("-f", "rawvideo", "-pix_fmt", "rgb24", "-s", f"{width}x{height}", "-r", f"{1000 / step_ms:g}", "-i", "-"),
            *("-an", "-vcodec", "libx264", "-pix_fmt", "yuv420p", "-crf", "20", str(film)),
        ]  # fmt: skip
        done = subprocess.run(command, input=pictures, capture_output=True)
        if done.returncode:
            lines = done.stderr.decode(errors="replace").strip().splitlines() or ["it gave no reason"]
            raise UserError(f"ffmpeg could not write the film: {lines[-1]}")
        return film.read_bytes()


def write_strip(path: Path, episodes: Sequence[Frames], *, below: Path | None = None) -> None:
    """A picture with a row for each episode: moments spread evenly from its first frame to its last.

    `below` as in `write_film`.
    """
    from PIL import Image

    rows = []
    for frames in episodes:
        moments = np.linspace(0, len(frames) - 1, _MOMENTS).round().astype(int)
        rows.append(_side_by_side([frames[t] for t in moments]))
    gap = np.full((_GAP, rows[0].shape[1], 3), 255, np.uint8)
    stacked = [piece for row in rows for piece in (row, gap)][:-1]
    strip = io.BytesIO()
    Image.fromarray(np.concatenate(stacked)).save(strip, "PNG")
    write_atomic(path, strip.getvalue(), below=below)


def _side_by_side(frames: Frames) -> np.ndarray:
    gap = np.full((frames[0].shape[0], _GAP, 3), 255, np.uint8)
    return np.concatenate([piece for frame in frames for piece in (frame, gap)][:-1], axis=1)
