"""Filmed episodes of an agent as a vision model is shown them."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from jaxreward import files
from jaxreward.errors import why_unreadable
from jaxreward.records import Evidence, Failure, FilmedEpisode
from jaxreward.records.evidence import frame_path, index_path

Messages = tuple[dict[str, Any], ...]


@dataclass(frozen=True)
class Film:
    """The evidence of agent `id` in the folder of a run, and the frames of each episode as addresses of data."""

    run: Path
    id: str
    evidence: Evidence
    frames: tuple[tuple[str, ...], ...]

    @classmethod
    def read(cls, run: Path, id: str) -> Film | Failure:
        """The film of an agent, or why there is none."""
        path = index_path(run, id)
        try:
            evidence, frames = Evidence.model_validate_json(files.read_bytes(path, below=run)), list[tuple[str, ...]]()
            for number, episode in enumerate(evidence.episodes):
                paths = [frame_path(run, id, number, k) for k in range(len(episode.steps))]
                frames.append(tuple(_jpeg(files.read_bytes(path := of_frame, below=run)) for of_frame in paths))
        except (OSError, ValueError) as error:
            why = why_unreadable(error) if isinstance(error, OSError) else "it is damaged"
            return Failure(stage="reply", message=f"the frames of {id} cannot be read from {path}: {why}")
        return cls(run, id, evidence, tuple(frames))

    @cached_property
    def digest(self) -> str:
        """Of all that it shows."""
        shown = [self.evidence.model_dump_json(), *(frame for of_episode in self.frames for frame in of_episode)]
        return hashlib.sha256("\n".join(shown).encode()).hexdigest()

    def messages(
        self, number: int, system: str, heading: Callable[[FilmedEpisode, int, int], str], question: str
    ) -> tuple[Messages, Messages]:
        """The messages about an episode, and the same with paths in place of pictures.

        Args:
            number: of the episode.
            system: the system message.
            heading: what stands before a frame, from the episode, the number of the frame and its step.
            question: what follows the frames.
        """
        episode = self.evidence.episodes[number]
        shown, recorded = list[dict[str, Any]](), list[dict[str, Any]]()
        for k, step in enumerate(episode.steps):
            text = {"type": "text", "text": heading(episode, k, step)}
            path = frame_path(self.run, self.id, number, k)
            shown += [text, {"type": "image_url", "image_url": {"url": self.frames[number][k]}}]
            recorded += [text, {"type": "image", "path": str(path.relative_to(self.run))}]
        end, first = {"type": "text", "text": question}, {"role": "system", "content": system}
        return (
            (first, {"role": "user", "content": [*shown, end]}),
            (first, {"role": "user", "content": [*recorded, end]}),
        )


def _jpeg(data: bytes) -> str:
    """A picture as the address that a message has for it."""
    if not data.startswith(b"\xff\xd8"):
        raise ValueError("it is no JPEG")
    return f"data:image/jpeg;base64,{base64.b64encode(data).decode()}"
