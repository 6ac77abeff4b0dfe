"""The options of a search for rewards that tell an expert from others."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from jaxreward.config import Arg, check_bounds
from jaxreward.errors import FileProblem, InvalidSetting, UnusableFile
from jaxreward.sentences import mention

Positives = Literal["auto", "all", "last", "marked"]


@dataclass(frozen=True)
class DemonstrationOptions:
    """Demonstrations: episodes of an expert, and of others."""

    data: Annotated[tuple[Path, ...], Arg(adds=True)] = ()
    """With --objective demonstrations: files of an expert's episodes. `jaxreward record` writes them."""
    negative: Annotated[tuple[Path, ...], Arg(adds=True)] = ()
    """Files of episodes that an expert would not play. By default random actions are played."""
    positives: Positives = "auto"
    """The expert's states to tell from others. all; the last of each episode; or those marked as solving the task, by
    `jaxreward clean`. auto: the marked, where there are any, else the last, where every episode that succeeds
    ends there. Of last, episodes that fail are left out."""
    expert_episodes: Annotated[int, Arg(least=1)] = 8
    """Episodes of the expert to search with; others of --data are held out."""
    negative_episodes: Annotated[int, Arg(least=1)] = 8
    """Negative episodes to search with. As many are held out as of the expert, where there are so many."""

    tell_task: bool = False
    """Tell language models what the task is: its description, and what each array of the state means."""

    def check(self, objective: str) -> None:
        """Raise a `UserError` for the first invalid option of a search with this objective."""
        check_bounds(self)
        wanted = mention("objective", "demonstrations")
        if objective == "demonstrations" and not self.data:
            raise InvalidSetting(
                f"{wanted} needs {mention('data')}: a file of an expert's episodes, as `jaxreward record` writes",
                *("data", "objective"),
            )
        if objective != "demonstrations" and self != DemonstrationOptions():
            given = next(name for name, value in vars(self).items() if value != getattr(DemonstrationOptions(), name))
            raise InvalidSetting(f"{mention(given)} is for {wanted}", given, "objective")
        for name in ("data", "negative"):
            for path in getattr(self, name):
                if not path.is_file():
                    raise UnusableFile(f"{mention(name)}: there is no file {path}", path, FileProblem.MISSING)
