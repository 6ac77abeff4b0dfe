"""A vision model that rates how far agents do what their instruction asks for (RDA, section 10.1)."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from jaxreward.errors import End, InvalidSetting, ProposerStopped
from jaxreward.extras import require
from jaxreward.proposers.llm.film import Film, Messages
from jaxreward.proposers.llm.llm_settings import ModelSettings
from jaxreward.proposers.llm.model_caller import ModelCaller
from jaxreward.proposers.llm.model_queue import Call
from jaxreward.proposers.prompts.templates import Templates
from jaxreward.proposers.replies.seen import RATED_SCHEMA, read_rating
from jaxreward.records import Failure, FilmedEpisode, Rating, TaskCard
from jaxreward.sentences import mention


@dataclass(frozen=True)
class Votes:
    """The votes that could be read on every episode, by the ids of films that nothing more is asked about; `failures`
    say why others could not. `spent` is the budget that ran out, `stopped` why it makes no sense to go on."""

    of: dict[str, tuple[tuple[Rating, ...], ...]]
    failures: tuple[Failure, ...]
    spent: End | None
    stopped: ProposerStopped | None


class AlignmentRater(ModelCaller):
    """Shows a vision model frames of an episode with the instruction, and asks for a rating from 1 to 5, several times.

    It is told nothing of subtasks, rewards and scores. Answers are in the transcript, with the paths of the pictures in
    place of them, by what was shown and the model: the same rating, begun again, asks only for what is missing.

    Args:
        card: the task's words, with its instruction.
        settings: which model rates, how it is asked, and what it may cost.
        votes: how often it is asked about an episode.

    Raises:
        UserError: not one model, settings as of `ModelCaller`, or packages that are not installed.
    """

    def __init__(self, card: TaskCard, settings: ModelSettings, votes: int) -> None:
        require("llm", "a model that rates", "model")
        settings.check()
        models = list(settings.weights())
        if len(models) != 1:
            said = ", ".join(models) or "none"
            raise InvalidSetting(f"one vision model rates: name it with {mention('model')}, not {said}", "model")
        super().__init__(settings)
        assert card.instruction is not None
        self.model, self.votes, self.instruction = models[0], votes, card.instruction
        self._templates = Templates(settings.prompts, card.objective, card.states)
        self._system = self._templates.render("judge_rating_system", {})
        self._question(FilmedEpisode(length=1, success=0.0, steps=(0,)))  # templates that do not render are found here

    def waiting(self, films: Iterable[Film]) -> int:
        """Calls that are missing."""
        return len(self._calls(films))

    def rate(self, films: Sequence[Film]) -> Votes:
        """Ask for what is missing, until all is there or a budget is spent."""
        spent, stopped = self.call_while_missing(lambda: self._calls(films), "model")
        found, failures = dict[str, tuple[tuple[Rating, ...], ...]](), list[Failure]()
        for film in films:
            each = self._votes(film)
            if not any(part for votes in each for _, part in votes):
                found[film.id] = tuple(tuple(v for v, _ in votes if isinstance(v, Rating)) for votes in each)
            failures += [v for votes in each for v, _ in votes if isinstance(v, Failure)]
        return Votes(found, tuple(failures), spent, stopped)

    def _calls(self, films: Iterable[Film]) -> list[Call]:
        calls = list[Call]()
        for film in films:
            id = self._request(film)
            for number, votes in enumerate(self._votes(film)):
                shown, recorded = self._messages(film, number)
                calls += [Call(id, self.model, shown, part, recorded) for _, part in votes if part]
        return calls

    def _votes(self, film: Film) -> list[list[tuple[Rating | Failure | None, str]]]:
        """The votes on every episode as far as they are known, and the parts to ask for them by."""
        id, episodes = self._request(film), range(len(film.evidence.episodes))
        return [
            [self.vote(id, f"episode {number + 1} vote {k + 1}", read_rating) for k in range(self.votes)]
            for number in episodes
        ]

    def _request(self, film: Film) -> str:
        """The id of a film's request: another where anything that is shown, or the model, is another."""
        said = "\n".join([self.model, self._system, film.digest, *map(self._question, film.evidence.episodes)])
        return f"{film.id}-{hashlib.sha256(said.encode()).hexdigest()[:12]}"

    def _messages(self, film: Film, number: int) -> tuple[Messages, Messages]:
        return film.messages(number, self._system, _heading, self._question(film.evidence.episodes[number]))

    def _question(self, episode: FilmedEpisode) -> str:
        return self._templates.render("judge_rating", {
            "instruction": self.instruction.words, "frames": len(episode.steps), "length": episode.length,
            "schema": RATED_SCHEMA,
        })  # fmt: skip


def _heading(episode: FilmedEpisode, k: int, step: int) -> str:
    """What stands before a frame."""
    return (
        f"Frame {k + 1}, after step {step} of {episode.length}."
        if k
        else f"Frame 1, at the start of {episode.length} steps."
    )
