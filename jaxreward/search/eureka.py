"""Eureka: samples, then reflection on the best of them, again and again (arXiv 2310.12931)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal, get_args

import numpy as np

from jaxreward.records import Evolve, Result
from jaxreward.search.draft import Draft
from jaxreward.search.selection import top
from jaxreward.search.strategy import SearchStrategy, State
from jaxreward.search.strategy_options import require_choice, require_integer

Carry = Literal["global", "iteration"]


@dataclass(frozen=True)
class Eureka(SearchStrategy[Result | None]):
    """Every generation is an iteration: all of it reflects on one program, the first starts from scratch.

    `carry` selects that program: the best so far (`global`), or the best of the last iteration that had a
    score (`iteration`, as Eureka's code does, which can drift downwards). A request shows
    `show_failures` recent failures. While nothing has a score, everything starts from scratch. Its memory is the
    best of the last iteration that had a score.
    """

    name: ClassVar[str] = "eureka"
    natural: ClassVar[Evolve] = "reward"
    carry: Carry = "global"
    show_failures: int = 2

    def _validate(self) -> None:
        require_choice(self.name, "carry", self.carry, get_args(Carry))
        require_integer(self.name, "show_failures", self.show_failures, 0)

    def _init(self) -> None:
        return None

    def _ask(self, state: State[Result | None], n: int, rng: np.random.Generator) -> list[Draft]:
        failures = state.failures[: self.show_failures]
        carried = state.best if self.carry == "global" else state.memory
        if carried is None:
            return [Draft("scratch", failures=failures)] * n
        return [Draft("reflect", parents=(carried,), failures=failures)] * n

    def _tell(self, state: State[Result | None], results: tuple[Result, ...]) -> Result | None:
        scored = [result for result in results if result.score is not None]
        return top(scored, 1)[0] if scored else state.memory

    def _tell_ablated(self, state: State[Result | None], results: tuple[Result, ...]) -> Result | None:
        """They are of the same iteration as the programs before them."""
        scored = [result for result in (state.memory, *results) if result is not None and result.score is not None]
        return top(scored, 1)[0] if scored else None
