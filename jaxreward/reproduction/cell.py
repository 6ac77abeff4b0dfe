"""A cell of a published table: what is run and resumed as a whole, and the file that it leaves when it is finished."""

from __future__ import annotations

import dataclasses
import json
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Literal

from pydantic import ValidationError

from jaxreward import files
from jaxreward.comparison.cells import Tools, Unfinished
from jaxreward.config import Malformed, parse_json
from jaxreward.errors import ChangedSetting, FileProblem, UnusableFile
from jaxreward.evolution.settings import EvolveSettings
from jaxreward.proposers.llm.llm_settings import LlmSettings
from jaxreward.records import Record
from jaxreward.runs.disk import make_folder, write_atomic
from jaxreward.runs.events import json_ready
from jaxreward.runs.provenance import VERSIONED, commit, device, versions
from jaxreward.sentences import mention

FORMAT = 1

Status = Literal["done", "begun", "to do"]

_DONE, _BEGUN = "cell.json", "begun.json"


@dataclass(frozen=True)
class Budget:
    """How much of everything is run. None is for what an entry does not have.

    Attributes:
        seeds: how often everything is repeated.
        steps: environment steps of each policy; 0 for those in which a task shows what it can on two CPU cores.
        candidates: rewards that each search proposes and scores.
    """

    seeds: int = 3
    steps: int | None = None
    candidates: int | None = None


@dataclass(frozen=True)
class Plan:
    """What is run, and with what.

    Attributes:
        out: the folder of all cells.
        parts: what of the entry, such as the names of tasks, in the entry's order.
        budget: of each cell.
        proposer: who proposes programs in searches.
        llm: how language models are asked, if that is the proposer.
        command: what the user typed.
    """

    out: Path
    parts: tuple[str, ...]
    budget: Budget
    proposer: str = "genetic"
    llm: LlmSettings = field(default_factory=LlmSettings)
    unsafe_no_sandbox: bool = False
    command: str = ""

    @property
    def steps(self) -> int:
        assert self.budget.steps is not None
        return self.budget.steps

    @property
    def candidates(self) -> int:
        assert self.budget.candidates is not None
        return self.budget.candidates


class FinishedCell(Record):
    """What a finished cell leaves in `cell.json`.

    Attributes:
        coordinates: of the cell, by name.
        settings: what its numbers depend on besides.
        numbers: what it measured, by name.
        seconds: of the process that finished it.
        device, versions, commit: of that process.
    """

    format: int = FORMAT
    coordinates: dict[str, str | int]
    settings: dict[str, Any]
    numbers: dict[str, Any]
    seconds: float
    device: str
    versions: dict[str, str]
    commit: str


@dataclass(frozen=True)
class Cell(ABC):
    """One cell. A kind of cells is a subclass, whose fields are the coordinates; those that several entries share have
    one folder there.

    Attributes:
        part: the first coordinate, such as the name of a task.
    """

    kind: ClassVar[str]
    shown: ClassVar[tuple[str, ...]] = ()
    """The numbers that are shown when it is finished."""

    part: str

    @property
    def coordinates(self) -> dict[str, str | int]:
        return {"kind": self.kind, **dataclasses.asdict(self)}

    @property
    def label(self) -> str:
        """In words, for people."""
        more = [f"{name} {value}" for name, value in self._further.items()]
        return ", ".join([self.part, self.kind, *more])

    def folder(self, out: Path) -> Path:
        """Where it is run."""
        return out / "cells" / self.part / "-".join([self.kind, *map(str, self._further.values())])

    @property
    def _further(self) -> dict[str, str | int]:
        """Coordinates besides the kind and the part, but for those that are empty."""
        return {k: v for k, v in self.coordinates.items() if k not in ("kind", "part") and v != ""}

    def needs(self, plan: Plan) -> Sequence[Cell]:
        """The cells whose results it reads."""
        return ()

    def lacking(self) -> str:
        """Why it cannot be run at all, "" where it can."""
        return ""

    def settings(self, plan: Plan) -> dict[str, Any]:
        """What its numbers depend on besides the coordinates, by the names of options."""
        return {}

    def env_steps(self, plan: Plan) -> int:
        """Environment steps, about."""
        return 0

    def seconds(self, plan: Plan) -> float:
        """Seconds on two CPU cores, about."""
        return 0.0

    def search(self, plan: Plan) -> EvolveSettings | None:
        """The search that it is, if it is one."""
        return None

    @abstractmethod
    def run(self, plan: Plan, tools: Tools) -> Mapping[str, Any] | Unfinished:
        """Run it, or go on with it, in its folder; returns its numbers by name.

        Raises:
            UserError: it cannot be finished, and why.
        """

    # ---- its files

    def status(self, plan: Plan) -> Status:
        folder = self.folder(plan.out)
        if files.is_there(folder / _DONE):
            return "done"
        return "begun" if files.is_there(folder / _BEGUN) else "to do"

    def read(self, plan: Plan) -> FinishedCell | None:
        """What it left when it was finished; None before.

        Raises:
            UnusableFile: the file is damaged, or of another version.
        """
        path = self.folder(plan.out) / _DONE
        if not files.is_there(path):
            return None
        again = "delete it, and the cell is run again"
        try:
            found = FinishedCell.model_validate(parse_json(files.read_text(path)))
        except (ValidationError, Malformed, UnicodeDecodeError) as error:
            raise UnusableFile(f"{path} is damaged: {again}", path, FileProblem.DAMAGED) from error
        if found.format != FORMAT:
            message = f"{path} is in format {found.format}, and this version reads {FORMAT}: {again}"
            raise UnusableFile(message, path, FileProblem.OTHER_VERSION)
        return found

    def require_same(self, plan: Plan) -> None:
        """Raise `ChangedSetting` where it was begun with other settings than it is asked for now."""
        path = self.folder(plan.out) / _BEGUN
        if not files.is_there(path):
            return
        try:
            before = parse_json(files.read_text(path))
        except (Malformed, UnicodeDecodeError) as error:
            message = f"{path} is damaged: delete its folder, and the cell is run again"
            raise UnusableFile(message, path, FileProblem.DAMAGED) from error
        self.require_settings(plan, before, f"{path.parent} was begun", f"another folder with {mention('out')}")

    def require_settings(self, plan: Plan, before: Mapping[str, Any], what: str, otherwise: str) -> None:
        """Raise `ChangedSetting` where `before` differs from the settings now: `what`, such as `FOLDER was begun`, with
        the first of them, and what may be done `otherwise`."""
        now = json_ready(self.settings(plan))
        for name in sorted({*before, *now}):
            if before.get(name) != now.get(name):
                raise ChangedSetting(
                    f"{what} with {name} {before.get(name)} and is now asked for with {now.get(name)}: give the same, "
                    f"or {otherwise}",
                    name,
                )

    def begin(self, plan: Plan) -> None:
        """Note what it is begun with."""
        folder = self.folder(plan.out)
        make_folder(folder)
        if not files.is_there(folder / _BEGUN):
            write_atomic(folder / _BEGUN, _json(self.settings(plan)))

    def finish(self, plan: Plan, numbers: Mapping[str, Any], seconds: float) -> FinishedCell:
        """Keep the numbers."""
        found = FinishedCell(
            coordinates=self.coordinates, settings=json_ready(self.settings(plan)), numbers=json_ready(dict(numbers)),
            seconds=round(seconds, 2), device=device(), versions=versions(*VERSIONED), commit=commit(),
        )  # fmt: skip
        self.keep(plan, found)
        return found

    def keep(self, plan: Plan, found: FinishedCell) -> None:
        """Write what it left when it was finished."""
        write_atomic(self.folder(plan.out) / _DONE, found.model_dump_json(indent=1) + "\n")


def _json(value: Any) -> str:
    return json.dumps(json_ready(value), indent=1, allow_nan=False) + "\n"
