"""RDA: subtasks, a judge who sees the agents, and reflection on what it saw (papers/rda, section 4)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from jaxreward.errors import InvalidSetting
from jaxreward.records import Evolve, Result, Watched, read_subtasks
from jaxreward.search.draft import Draft
from jaxreward.search.selection import merit, top
from jaxreward.search.strategy import SearchStrategy, State
from jaxreward.search.strategy_options import require_flag, require_integer

ATTEMPTS = 2
"""Answers without subtasks after which the search goes on without any."""


@dataclass(frozen=True)
class Judged:
    """A trained program, the answer of the judge who saw its agent, and what that says."""

    result: Result
    answer: Result
    watched: Watched

    @property
    def rank(self) -> tuple[float, ...]:
        """Sort key, larger is better: the visual score, and success among equals."""
        return (self.watched.score, *merit(self.result))


@dataclass(frozen=True)
class RDAMemory:
    """`subtasks` is the answer whose subtasks are in force; `undivided` counts answers that had none, `pending` are
    trained programs that nobody has watched yet, `trained` counts those that were, `best` leads by the judge, `parent`
    is what the programs of `iteration` are made from with the judge's answer, if there is one, and `revised` says
    whether the subtasks were thought over since the last iteration ended."""

    subtasks: Result | None = None
    undivided: int = 0
    pending: tuple[Result, ...] = ()
    trained: int = 0
    best: Judged | None = None
    iteration: int = 0
    parent: tuple[Result, Result | None] | None = None
    revised: bool = True


@dataclass(frozen=True)
class RDA(SearchStrategy[RDAMemory]):
    """An instruction is cut into subtasks, of which each reward has one term; a judge scores every agent by them.

    An iteration trains `samples` programs, from scratch at first, then made from the best so far by what the judge saw
    of it. The best is the one with the highest visual score (Watched.score), by success among equals. After an
    iteration the subtasks may be reworded, and their number stays. `subtasks`, `watch` and `revise` turn off subtasks,
    the judge (the best is then the one with the best score, and programs reflect on how training went), and the
    rewording; with `warm` the agents of a program begin with the policy of the one that it was made from: the paper's
    ablations (figure 7).
    """

    name: ClassVar[str] = "rda"
    natural: ClassVar[Evolve] = "reward"
    instructed: ClassVar[bool] = True
    ablates: ClassVar[bool] = False
    confirms: ClassVar[bool] = False
    learns: ClassVar[bool] = False  # the model of the scores would choose by success
    samples: int = 4
    subtasks: bool = True
    watch: bool = True
    revise: bool = True
    warm: bool = False

    def _validate(self) -> None:
        if self.evolve == "observation":
            raise InvalidSetting("Strategy rda designs rewards: evolve is reward or both.", "evolve", "strategy")
        if self.bandit:
            raise InvalidSetting("Strategy rda goes by its judge: leave bandit out.", "strategy.bandit", "strategy")
        require_integer(self.name, "samples", self.samples, 1)
        for name in ("subtasks", "watch", "revise", "warm"):
            require_flag(self.name, name, getattr(self, name))
        if self.warm and self.evolve != "reward":
            raise InvalidSetting(
                "agents go on from a policy only with the same observation: say evolve=reward, or warm=false", "evolve",
                "strategy.warm",
            )  # fmt: skip

    @property
    def watches(self) -> bool:
        return self.watch

    @property
    def starts_warm(self) -> bool:
        return self.warm

    def _init(self) -> RDAMemory:
        return RDAMemory()

    # ---- requests

    def _ask(self, state: State[RDAMemory], n: int, rng: np.random.Generator) -> Sequence[Draft]:
        memory = state.memory
        if self.subtasks and memory.subtasks is None and "divide" not in state.declined and memory.undivided < ATTEMPTS:
            return [Draft("divide")]
        if memory.pending:
            return [Draft("watch", parents=(result,), plan=memory.subtasks) for result in memory.pending]
        if self._to_revise(state):
            assert memory.best is not None
            return [Draft("revise", parents=(memory.best.result,), plan=memory.subtasks, watched=memory.best.answer)]
        wanted = min(n, self.samples - memory.trained % self.samples)
        return [self._program(state)] * wanted

    def _to_revise(self, state: State[RDAMemory]) -> bool:
        memory = state.memory
        possible = self.revise and memory.subtasks is not None and memory.best is not None
        return possible and not memory.revised and "revise" not in state.declined

    def _program(self, state: State[RDAMemory]) -> Draft:
        memory = state.memory
        if memory.parent is None:
            return Draft("compose" if memory.subtasks else "scratch", plan=memory.subtasks)
        best, seen = memory.parent
        if memory.subtasks is None:
            return Draft("reflect", parents=(best,), watched=seen)
        return Draft("amend", parents=(best,), plan=memory.subtasks, watched=seen)

    # ---- results

    def _tell(self, state: State[RDAMemory], results: tuple[Result, ...]) -> RDAMemory:
        memory = state.memory
        scored = tuple(result for result in results if result.score is not None)
        trained = memory.trained + len(scored)
        over = trained // self.samples > memory.trained // self.samples
        pending = (*memory.pending, *scored) if self.watch and "watch" not in state.declined else ()
        memory = replace(memory, pending=pending, trained=trained, revised=memory.revised and not over)
        return self._with_parent(memory, top(tuple(filter(None, (state.best, *scored))), 1))

    def _with_parent(self, memory: RDAMemory, leaders: tuple[Result, ...]) -> RDAMemory:
        """With the best so far as the parent of the next iteration, once this one is over and watched; without a judge
        it is the first of `leaders`."""
        iteration = memory.trained // self.samples
        if memory.pending or iteration == memory.iteration:
            return memory
        if memory.best is not None:
            parent = (memory.best.result, memory.best.answer)
        else:
            parent = (leaders[0], None) if leaders else None
        return replace(memory, iteration=iteration, parent=parent)

    def _tell_words(self, state: State[RDAMemory], results: tuple[Result, ...]) -> RDAMemory:
        memory = state.memory
        for result in results:
            operator = result.candidate.operator
            if operator == "divide":
                found = bool(read_subtasks(result.words))
                memory = replace(memory, subtasks=result if found else None, undivided=memory.undivided + (not found))
            elif operator == "revise":
                memory = replace(memory, subtasks=_revision(memory.subtasks, result), revised=True)
            elif operator == "watch":
                memory = self._judged(memory, result)
        return self._with_parent(memory, (state.best,) if state.best is not None else ())

    def _judged(self, memory: RDAMemory, answer: Result) -> RDAMemory:
        """With the answer of a judge on a pending program; one that cannot be read leaves the program without."""
        seen, best = Watched.read(answer.words), memory.best
        for result in memory.pending:
            if result.candidate.id in answer.candidate.parents and seen is not None:
                judged = Judged(result, answer, seen)
                best = judged if best is None or judged.rank > best.rank else best
        left = tuple(r for r in memory.pending if r.candidate.id not in answer.candidate.parents)
        return replace(memory, pending=left, best=best)

    def _best(self, state: State[RDAMemory]) -> Result | None:
        return state.memory.best.result if state.memory.best is not None else state.best

    def owes_votes(self, state: State[RDAMemory]) -> bool:
        return bool(state.memory.pending) and "watch" not in state.declined

    def words_expected(self, candidates: int) -> int:
        iterations = -(-candidates // self.samples)
        return int(self.subtasks and self.revise) * (iterations - 1)  # a judge answers the rest

    def account(self, before: State[RDAMemory], after: State[RDAMemory]) -> dict[str, Any]:
        best = after.memory.best
        subtasks = read_subtasks(after.memory.subtasks.words) if after.memory.subtasks else ()
        return {
            "subtasks": [subtask.name for subtask in subtasks],
            "best": best.result.candidate.id if best else "",
            "visual_score": round(best.watched.score, 4) if best else None,
        }


def _revision(before: Result | None, answer: Result) -> Result | None:
    """The subtasks of an answer, if they have the names of those before: their terms are in every program."""
    if before is None:
        return None
    names = [{subtask.name for subtask in read_subtasks(result.words)} for result in (before, answer)]
    return answer if names[0] == names[1] else before
