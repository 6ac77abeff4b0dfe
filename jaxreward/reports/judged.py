"""What a judge saw of the agents of a run, for its page: scores, reasons, and the frames that it was shown."""

from __future__ import annotations

import base64
import io
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from jaxreward import files
from jaxreward.extras import missing
from jaxreward.records import Evidence, Result, Score, Watched
from jaxreward.records.evidence import EVIDENCE, frame_path, index_path

WIDTH, QUALITY = 160, 65
"""Pixels of a frame on the page, at most, and the quality of its JPEG."""

LARGEST = 6_000_000
"""Bytes of frames that a page has, at most."""


@dataclass(frozen=True)
class JudgedAgent:
    """An agent that was judged: its candidate, the request to judge it, its score by the metric, what was seen."""

    id: str
    request: str
    score: Score | None
    watched: Watched


@dataclass(frozen=True)
class Judged:
    """The agents of a run that a judge saw, the highest visual score first, and their frames."""

    run: Path
    agents: tuple[JudgedAgent, ...]
    by: str

    @classmethod
    def of(cls, run: Path, results: Mapping[str, Result]) -> Judged:
        found = dict[str, JudgedAgent]()
        by = dict[str, None]()
        for result in results.values():
            watched = Watched.read(result.words) if result.candidate.operator == "watch" else None
            if watched is not None:
                id = result.candidate.parents[0]
                found[id] = JudgedAgent(id, result.candidate.id, results[id].score if id in results else None, watched)
                by[result.candidate.model or result.candidate.proposer] = None
        agents = sorted(found.values(), key=lambda agent: -agent.watched.score)
        return cls(run, tuple(agents), ", ".join(by))

    @property
    def subtasks(self) -> tuple[str, ...]:
        """The names of all subtasks, in their order."""
        return tuple(dict.fromkeys(name for agent in self.agents for name in agent.watched.subtasks))

    def detail(self, id: str) -> dict[str, Any]:
        """What the page shows of a candidate's agent: scores with reasons, and its episodes."""
        watched = next((agent.watched for agent in self.agents if agent.id == id), None)
        evidence = self.evidence.get(id)
        if watched is None and evidence is None:
            return {}
        seen = watched.model_dump()["subtasks"] if watched is not None else {}
        episodes = [episode.model_dump() for episode in evidence.episodes] if evidence is not None else []
        return {"seen": seen, "episodes": episodes}

    @cached_property
    def evidence(self) -> dict[str, Evidence]:
        """The evidence that can be read, by candidate, in the order of the agents."""
        found = dict[str, Evidence]()
        for id in self._filmed():
            try:
                data = files.read_bytes(index_path(self.run, id), below=self.run)
                found[id] = Evidence.model_validate_json(data)
            except (OSError, ValueError):
                continue
        return found

    def frames(self) -> dict[str, str]:
        """Small pictures of the frames by their paths in the run, as data for a page; of the agents with the highest
        scores where all would be too many."""
        if missing("reports"):
            return {}
        found, left = dict[str, str](), LARGEST
        for id, evidence in self.evidence.items():
            for number, episode in enumerate(evidence.episodes):
                for k in range(len(episode.steps)):
                    path = frame_path(self.run, id, number, k)
                    data = _thumbnail(self.run, path)
                    left -= len(data)
                    if left < 0:
                        return found
                    if data:
                        found[str(path.relative_to(self.run))] = data
        return found

    def _filmed(self) -> Iterable[str]:
        known = [agent.id for agent in self.agents]
        try:
            files.require_folder(self.run / EVIDENCE)
            there = sorted(path.name for path in (self.run / EVIDENCE).iterdir() if not path.is_symlink())
        except OSError:
            return known
        return [*known, *(id for id in there if id not in known)]


def _thumbnail(run: Path, path: Path) -> str:
    """A frame in base64; empty for one that cannot be read."""
    from PIL import Image

    try:
        with Image.open(io.BytesIO(files.read_bytes(path, below=run)), formats=["JPEG"]) as image:
            image.thumbnail((WIDTH, WIDTH))
            small = io.BytesIO()
            image.convert("RGB").save(small, "JPEG", quality=QUALITY, optimize=True)
    except (OSError, ValueError, Image.DecompressionBombError):
        return ""
    return base64.b64encode(small.getvalue()).decode()
