"""The objective `demonstrations`: a reward is worth how well it tells an expert's states from others (GRACE)."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from pydantic import TypeAdapter

from jaxreward import files
from jaxreward.config import parse_json
from jaxreward.demonstrations import (
    Trajectories,
    WrongTrajectories,
    joined,
    load_trajectories,
    record,
    save_trajectories,
)
from jaxreward.errors import FileProblem, UnusableFile
from jaxreward.objectives.demonstrations.along_episodes import EpisodeGroup, best_rewards
from jaxreward.objectives.demonstrations.demonstration_sets import DemonstrationSets, is_there
from jaxreward.objectives.demonstrations.illustrations import illustrations
from jaxreward.objectives.demonstrations.results import FITNESS, result_of
from jaxreward.objectives.demonstrations.scoring import Array, DemonstrationData, Separation, separate
from jaxreward.objectives.objective import Bench, Expansion, Scored
from jaxreward.objectives.training.candidate_trainer import CandidateTrainer
from jaxreward.objectives.training.training_settings import TrainingSettings
from jaxreward.programs import Program
from jaxreward.programs.debug_values import debug_values
from jaxreward.records import Candidate, ExampleChoice, Measure, Request, Score
from jaxreward.runs.episode_rewards import FOLDER, write_best_rewards
from jaxreward.search.seeding import derive_rng
from jaxreward.tasks import Task

_ACCOUNT = TypeAdapter(Expansion)
_LEAST_EPISODES = 8
"""Of a policy that expands the data: as many as there are of the expert, but no fewer."""


class DemonstrationObjective:
    """Scores programs on episodes; nothing is trained but to expand the data."""

    name: ClassVar[str] = "demonstrations"
    shows_debug: ClassVar[bool] = True

    def __init__(self, task: Task, settings: TrainingSettings, sets: DemonstrationSets) -> None:
        self._task, self._settings, self._sets = task, settings, sets
        self._bench: Bench | None = None
        self._made: dict[tuple[str, ...], DemonstrationData] = {}
        self._steps: dict[str, int] = {}
        self._beside: dict[str, DemonstrationData] = {}
        self._held_out: DemonstrationData | None = None

    @property
    def data(self) -> DemonstrationData:
        """The transitions to search with, those of all expansions that the run has logged among them."""
        return self._with(self._bench.expansions() if self._bench is not None else ())

    def _with(self, expansions: tuple[str, ...]) -> DemonstrationData:
        """The data with these expansions."""
        if expansions not in self._made:
            more = [load_trajectories(self._file_of(id)) for id in expansions]
            self._steps = {id: episodes.steps for id, episodes in zip(expansions, more, strict=True)}
            negative = joined([self._sets.negative, *more])
            self._made = {
                expansions: DemonstrationData.of(self._task, self._sets.expert, negative, self._sets.positives)
            }
        return self._made[expansions]

    @property
    def expansions(self) -> tuple[DemonstrationData, ...]:
        """The expert's transitions beside those of each policy that expanded the data, in their order."""
        for id in self._bench.expansions() if self._bench is not None else ():
            if id not in self._beside:
                own = load_trajectories(self._file_of(id))
                with suppress(WrongTrajectories):  # no step of it is negative
                    self._beside[id] = DemonstrationData.of(self._task, self._sets.expert, own, self._sets.positives)
        return tuple(self._beside.values())

    def _file_of(self, expansion: str) -> Path:
        assert self._bench is not None
        return self._bench.folder / FOLDER / f"expansion-{expansion}.npz"

    @property
    def measure(self) -> Measure:
        return FITNESS

    @property
    def slots(self) -> int:
        return 1

    @property
    def notes(self) -> tuple[str, ...]:
        return *self._sets.notes, self._sets.summary

    def open(self, bench: Bench) -> None:
        self._bench, sets = bench, self._sets
        if not is_there(bench.folder):
            sets.write(bench.folder)
        if sets.held_out is not None:
            self._held_out = DemonstrationData.of(self._task, *sets.held_out, sets.positives)

    def prepare(self, place: int, of: int) -> Callable[[Program], None] | None:
        return None

    def illustrated(self, request: Request, program: Callable[[], Program | None]) -> Request:
        choice, parent = request.examples or ExampleChoice(trajectory=not request.parents), program()
        found = separate([parent], self.data)[0] if parent is not None else None
        rng = derive_rng(self._settings.seed, "illustrations", request.id)
        debug = partial(debug_values, parent) if parent is not None and parent.debug is not None else None
        lines = illustrations(choice, found, self.data, self._sets.expert, rng, debug)
        shared = self._bench.shared_functions(request) if self._bench is not None else ()
        return request.model_copy(update={"illustrations": lines, "shared_functions": shared})

    def score(
        self, tag: str, label: str, candidates: Sequence[Candidate], programs: Sequence[Program], best: Score | None,
        slot: int | None = None,
    ) -> Scored:  # fmt: skip
        found, *rest = separate(programs, self.data, *([self._held_out] if self._held_out is not None else []))
        held_out = rest[0] if rest else None
        episodes = len(self._sets.expert) + len(self._sets.negative)
        apart = self._told_apart(found)
        results = [result_of(c, k, found, held_out, episodes, apart) for k, c in enumerate(candidates)]
        return Scored(tuple(programs), tuple(results))

    def _told_apart(self, found: Separation) -> dict[str, Array]:
        """The fitness of all rewards (C,) on the expert's episodes and on those of each expansion alone, where all of
        the expert's states are positive: the least of what they reach is how far a policy is from the expert."""
        if self._sets.positives != "all":
            return {}
        data, told = self.data, dict[str, Array]()
        own = found.logs[:, : data.experts] @ data.weights[: data.experts] / data.weights[: data.experts].sum()
        begin = data.of_expert + self._sets.negative.steps
        for id, steps in self._steps.items():
            rows = slice(begin, begin + steps)
            told[id] = own + found.logs[:, rows] @ data.weights[rows] / data.weights[rows].sum()
            begin = rows.stop
        return told

    def expand(self, tag: str, label: str, request: Request, program: Program) -> Expansion | None:
        assert self._bench is not None
        path, folder = self._file_of(request.id), self._bench.folder
        account = path.with_suffix(".json")
        if account.exists():  # of a run that ended before it was logged
            return _read(account, folder)
        earlier = self._bench.expansions()
        more, took = self._played(tag, label, program, len(earlier))
        save_trajectories(path, more)
        before, after = separate([program], self._with(earlier), self._with((*earlier, request.id)))
        words = (
            f"{len(more)} episodes of a policy trained with {request.parents[0].candidate.id}, success "
            f"{float(np.mean(more.success)):.3g}: its fitness was {float(before.fitness[0]):.4g} and is "
            f"{float(after.fitness[0]):.4g} with them, its accuracy {float(after.accuracy[0]):.4g}"
        )
        found = Expansion(words, **took)
        files.replace(account, json.dumps(asdict(found)).encode(), below=folder)
        return found

    def _played(self, tag: str, label: str, program: Program, seed: int) -> tuple[Trajectories, dict[str, Any]]:
        """Episodes of a policy that is trained with a program, and what that took, as fields of an `Expansion`. Every
        expansion has another training seed: a reward that is the best again shows what else agents make of it."""
        assert self._bench is not None
        bench, s = self._bench, self._settings
        trainer = CandidateTrainer(
            s, self._task, bench.store, bench.room(), tag, label, bench.progress, bench.should_stop
        )
        trained = trainer.train([program], steps=s.steps, seeds=[seed], points=1)
        policy, episodes = trained.policy(0), max(_LEAST_EPISODES, len(self._sets.expert))
        number = int(derive_rng(s.seed, "expansion", tag).integers(1 << 31))
        took = {"env_steps": trained.env_steps, "compile_s": trained.compile_s, "run_s": trained.run_s}
        return record(self._task, policy, episodes, seed=number), took

    def conclude(self, best: Callable[[], Program]) -> None:
        assert self._bench is not None
        sets, folder = self._sets, self._bench.folder
        groups = [EpisodeGroup("expert", sets.expert), EpisodeGroup("others", sets.negative)]
        if sets.held_out is not None:
            groups.insert(1, EpisodeGroup("expert", sets.held_out[0], held_out=True))
            groups.append(EpisodeGroup("others", sets.held_out[1], held_out=True))
        for id in self._bench.expansions():
            groups.append(EpisodeGroup("policy", load_trajectories(self._file_of(id)), expansion=id))
        write_best_rewards(folder, best_rewards(best(), groups, sets.positives, self._task.horizon))


def _read(account: Path, folder: Path) -> Expansion:
    """The account of an expansion that was written before it was logged.

    Raises:
        UserError: it is damaged.
    """
    try:
        return _ACCOUNT.validate_python(parse_json(files.read_text(account, below=folder)))
    except ValueError as error:  # no JSON, or other fields
        raise UnusableFile(
            f"{account} is damaged: delete it and {account.with_suffix('.npz').name} beside it, and the policy is "
            "trained again",
            account,
            FileProblem.DAMAGED,
        ) from error
