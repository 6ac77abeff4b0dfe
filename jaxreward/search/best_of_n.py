"""Best of N: independent samples, the baseline that every search has to beat."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from jaxreward.records import Result
from jaxreward.search.strategy import Draft, SearchStrategy, State


@dataclass(frozen=True)
class BestOfN(SearchStrategy[None]):
    """Every request starts from scratch and sees nothing of the others."""

    name: ClassVar[str] = "best-of-n"
    ablates: ClassVar[bool] = False
    learns: ClassVar[bool] = False

    def _validate(self) -> None:
        return None

    @property
    def asynchronous(self) -> bool:
        return True

    def _init(self) -> None:
        return None

    def _ask(self, state: State[None], n: int, rng: np.random.Generator) -> list[Draft]:
        return [Draft("scratch") for _ in range(n)]

    def _tell(self, state: State[None], results: tuple[Result, ...]) -> None:
        return None
