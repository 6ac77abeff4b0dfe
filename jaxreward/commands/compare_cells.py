"""The cells of a comparison: one search each, and for every task the training of its own interface."""

from __future__ import annotations

import dataclasses
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Protocol

from jaxreward.errors import USAGE_EXIT_CODE, ProposerStopped, UserError
from jaxreward.evolution import Watcher
from jaxreward.evolve import evolve
from jaxreward.finals import FIRST_SEED
from jaxreward.options import apply
from jaxreward.programs import Checker, Program
from jaxreward.reports.comparison import Sparse, read_search, read_sparse
from jaxreward.runs import REQUEUE_EXIT_CODE, StopSignal
from jaxreward.runs.checkpoint import Checkpoints
from jaxreward.runs.disk import write_atomic
from jaxreward.runs.events import json_ready
from jaxreward.runs.run import read_config
from jaxreward.settings import EvolveSettings
from jaxreward.tasks import Task
from jaxreward.training import Interrupted, train

Status = Literal["done", "begun", "to do"]

# What may differ when a cell is resumed, because its result does not depend on it.
HARMLESS = frozenset({
    *("memory_gb", "unsafe_no_sandbox", "command", "llm.api_base", "llm.stream", "llm.concurrency", "llm.timeout_s"),
    *("llm.retries", "llm.wait_s", "llm.confirm_usd"),
})  # fmt: skip


@dataclass(frozen=True)
class Tools:
    """What the cells of one process share."""

    checker: Checker
    watcher: Watcher
    stop: StopSignal


@dataclass(frozen=True)
class Trouble:
    """Why a cell could not be finished; `later` is whether the same command may finish it later."""

    cell: str
    reason: str
    later: bool


class Cell(Protocol):
    """A part of a comparison that is run, resumed and skipped as a whole."""

    @property
    def label(self) -> str: ...
    @property
    def path(self) -> Path: ...
    @property
    def settings(self) -> EvolveSettings: ...
    def status(self) -> Status: ...
    def require_same(self, task: Task) -> None:
        """Raise a UserError if it was started with other settings."""
        ...

    def run(self, task: Task, tools: Tools) -> Trouble | None: ...


@dataclass(frozen=True)
class SearchCell:
    """One search: an ordinary run, named after strategy, proposer and search seed."""

    settings: EvolveSettings

    @property
    def label(self) -> str:
        s = self.settings
        return f"{s.task}, {s.strategy}, {s.proposer}, search seed {s.seed}"

    @property
    def path(self) -> Path:
        return self.settings.out / self.settings.run_name

    @property
    def begun(self) -> bool:
        return (self.path / "config.toml").exists()

    def status(self) -> Status:
        with suppress(UserError):  # a damaged log: running it says what to do
            search = read_search(self.path)
            if search is not None and search.finished:
                return "done"
        return "begun" if self.begun else "to do"

    def require_same(self, task: Task) -> None:
        if self.begun:
            started = apply(EvolveSettings(), read_config(self.path), str(self.path / "config.toml"))
            _require_same(self.path, started.as_config(), self.settings.as_config())

    def run(self, task: Task, tools: Tools) -> Trouble | None:
        settings = dataclasses.replace(self.settings, resume=self.begun)
        try:
            outcome = evolve(settings, tools.watcher, task=task, stop=tools.stop, checker=tools.checker)
        except UserError as error:
            return Trouble(self.label, str(error), isinstance(error, ProposerStopped) and error.later)
        if not outcome.exit_code:
            return None
        return Trouble(self.label, outcome.reason, outcome.exit_code != USAGE_EXIT_CODE)


@dataclass(frozen=True)
class SparseCell:
    """The task's own observation and reward, trained on the fresh seeds of the searches; no search."""

    settings: EvolveSettings

    @property
    def label(self) -> str:
        return f"{self.settings.task}, sparse"

    @property
    def path(self) -> Path:
        return self.settings.out / "sparse.json"

    def status(self) -> Status:
        return "done" if read_sparse(self.path) else "to do"

    def require_same(self, task: Task) -> None:
        known = read_sparse(self.path)
        if known is None:
            return
        s, digest = self.settings, Program.default(task).digest
        if known.digest != digest:
            raise UserError(f"{self.path} is of another version of {s.task}: compare in another folder with --out")
        started = {"final_seeds": known.seeds, "final_steps": known.steps, "ppo": known.ppo}
        asked = {"final_seeds": s.final_seeds, "final_steps": s.final_steps or s.steps, "ppo": s.as_config()["ppo"]}
        _require_same(self.path, started, json_ready(asked))

    def run(self, task: Task, tools: Tools) -> Trouble | None:
        s, steps = self.settings, self.settings.final_steps or self.settings.steps
        program, half_done = Program.default(task), s.out / "sparse-checkpoints"
        try:
            trained = train(
                task, [program], s.ppo, seeds=range(FIRST_SEED, FIRST_SEED + s.final_seeds), steps=steps,
                checkpoints=10, memory_gb=s.memory_gb, chunk=s.chunk, store=Checkpoints(half_done), tag="sparse",
                progress=lambda p: tools.watcher.training("sparse", p), should_stop=lambda: tools.stop.requested,
            )  # fmt: skip
        except Interrupted as interrupted:
            return Trouble(self.label, str(interrupted), later=True)
        except UserError as error:
            return Trouble(self.label, str(error), later=False)
        found = Sparse(
            task=s.task, digest=program.digest, seeds=s.final_seeds, steps=steps, ppo=s.as_config()["ppo"],
            score=trained.score(0), env_steps=trained.env_steps, compile_s=trained.compile_s, run_s=trained.run_s,
        )  # fmt: skip
        self.path.parent.mkdir(parents=True, exist_ok=True)
        write_atomic(self.path, found.model_dump_json(indent=1) + "\n")
        shutil.rmtree(half_done, ignore_errors=True)
        return None


def exit_code(troubles: Sequence[Trouble]) -> int:
    """0 without troubles, the code that asks to be queued again if the same command may do, else that of a mistake."""
    if not troubles:
        return 0
    return REQUEUE_EXIT_CODE if all(t.later for t in troubles) else USAGE_EXIT_CODE


def flat(config: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Settings by name, those in tables after a dot."""
    for key, value in config.items():
        if isinstance(value, Mapping):
            yield from flat(value, f"{prefix}{key}.")
        else:
            yield prefix + key, value


def _require_same(path: Path, started: Mapping[str, Any], asked: Mapping[str, Any]) -> None:
    before, now = dict(flat(started)), dict(flat(asked))
    for name in sorted((before.keys() | now.keys()) - HARMLESS):
        if before.get(name) != now.get(name):
            raise UserError(
                f"{path} was started with {name} {_said(before.get(name))} and is now asked for with "
                f"{_said(now.get(name))}: give what it was started with, or another folder with --out"
            )


def _said(value: Any) -> str:
    return "none" if value is None or value == [] or value == () else str(value)
