"""Episodes whose states are texts, such as the view hierarchy of a screen, in files of JSON lines."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jaxreward import files
from jaxreward.errors import FileProblem, UnusableFile, UserError, problem_of, why_unreadable

SUFFIX = ".jsonl"

_KEYS = ("states", "actions", "log_probabilities")


@dataclass(frozen=True)
class TextEpisode:
    """An episode of T steps.

    Attributes:
        states: T + 1 texts.
        actions: T texts; empty ones where they are not known.
        log_probabilities: of the actions under the policy that acted, T numbers, or none where they are not known.

    Raises:
        UserError: other numbers of them.
    """

    states: tuple[str, ...]
    actions: tuple[str, ...] = ()
    log_probabilities: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        steps = len(self.states) - 1
        if steps < 1:
            raise UserError(f"an episode has {len(self.states)} states: it needs 2 or more")
        if not self.actions:
            object.__setattr__(self, "actions", ("",) * steps)
        for name in ("actions", "log_probabilities"):
            found = len(getattr(self, name))
            if found != steps and (found or name == "actions"):
                raise UserError(f"an episode of {steps + 1} states has {found} {name}: give {steps}, or leave them out")

    def __len__(self) -> int:
        return len(self.actions)

    @property
    def steps(self) -> list[tuple[str, str, str]]:
        """Every step as (state, action, next state)."""
        return list(zip(self.states[:-1], self.actions, self.states[1:], strict=True))


def save_texts(path: Path | str, episodes: Iterable[TextEpisode]) -> None:
    """Write episodes, a line of JSON for each, with the keys `states`, `actions` and `log_probabilities`."""
    lines = []
    for episode in episodes:
        values = {name: getattr(episode, name) for name in _KEYS}
        lines.append(json.dumps({name: value for name, value in values.items() if value}, ensure_ascii=False))
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    files.replace(path, "".join(f"{line}\n" for line in lines).encode())


def load_texts(path: Path | str) -> tuple[TextEpisode, ...]:
    """The episodes of a file that `save_texts`, or anything else that writes JSON lines, has written.

    Raises:
        UnusableFile: it cannot be read, or a line of it is no episode.
    """
    path = Path(path)
    try:
        lines = files.read_text(path, links=True).split("\n")  # what else ends a line may stand in a text
    except (OSError, UnicodeDecodeError) as error:
        raise UnusableFile(
            f"cannot read the episodes in {path}: {why_unreadable(error)}", path, problem_of(error)
        ) from error
    found = list[TextEpisode]()
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            found.append(_episode(json.loads(line)))
        except (ValueError, RecursionError, UserError) as error:
            message = f"{path}, line {number}, is no episode of texts: {error}"
            raise UnusableFile(message, path, FileProblem.DAMAGED, number) from error
    if not found:
        raise UnusableFile(f"{path} holds no episodes", path, FileProblem.DAMAGED)
    return tuple(found)


def _episode(values: Any) -> TextEpisode:
    if not isinstance(values, dict) or "states" not in values:
        raise ValueError('it needs to be an object with "states", a list of texts')
    if unknown := [key for key in values if key not in _KEYS]:
        raise ValueError(f'"{unknown[0]}" is none of {", ".join(_KEYS)}')
    for name in ("states", "actions"):
        if not _is_list(values.get(name, []), str):
            raise ValueError(f'"{name}" is no list of texts')
    logp = values.get("log_probabilities", [])
    if not _is_list(logp, int, float) or not all(math.isfinite(x) and x <= 0.0 for x in logp):
        raise ValueError('"log_probabilities" is no list of numbers of at most 0')
    return TextEpisode(tuple(values["states"]), tuple(values.get("actions", ())), tuple(map(float, logp)))


def _is_list(value: Any, *kinds: type) -> bool:
    return isinstance(value, list) and all(isinstance(x, kinds) and not isinstance(x, bool) for x in value)
