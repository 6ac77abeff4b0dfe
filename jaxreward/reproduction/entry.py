"""An entry: a published table or figure, the cells that reproduce it, and how their numbers are laid out."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import ClassVar

from jaxreward.errors import InvalidSetting, did_you_mean
from jaxreward.reproduction.cell import Budget, Cell, FinishedCell, Plan
from jaxreward.reproduction.layout import ResultTable
from jaxreward.sentences import mention

Results = Mapping[Cell, FinishedCell]
"""The cells that are finished."""


class Entry(ABC):
    """One table or figure.

    Attributes:
        name: PAPER/ENTRY.
        summary: what it is, in a line.
        budget: the default one, for two CPU cores; a quantity that is None is no option of this entry.
        parts: what `--only` chooses from, such as the names of tasks.
        folder: of the cells by default; entries with cells in common have one folder.
    """

    name: ClassVar[str]
    summary: ClassVar[str]
    budget: ClassVar[Budget]
    parts: ClassVar[tuple[str, ...]]
    folder: ClassVar[str]

    @property
    def title(self) -> str:
        """What its files are called."""
        return self.name.partition("/")[2]

    @abstractmethod
    def cells(self, plan: Plan) -> Sequence[Cell]:
        """All cells, each after those that it needs."""

    @abstractmethod
    def tables(self, plan: Plan, results: Results) -> Sequence[ResultTable]:
        """The results beside the published figures; cells that are not finished count as a dash."""

    def draw(self, plan: Plan, results: Results, path: Path) -> bool:
        """Draw a picture into the file, whose ending says which kind; returns whether there is anything to draw."""
        return False

    def seconds(self, plan: Plan) -> float:
        """Seconds on two CPU cores, about, of the cells that can be run."""
        return sum(cell.seconds(plan) for cell in self.cells(plan) if not cell.lacking())

    def chosen(self, only: Sequence[str]) -> tuple[str, ...]:
        """The parts that `only` names, in the entry's order; all where it names none.

        Raises:
            InvalidSetting: there is no such part.
        """
        for name in only:
            if name not in self.parts:
                message = f"{mention('only', [name])}: {self.name} has no {name}; {did_you_mean(name, self.parts)}"
                raise InvalidSetting(message, "only")
        return tuple(part for part in self.parts if part in only) if only else self.parts

    def budgeted(self, seeds: int | None, steps: int | None, candidates: int | None) -> Budget:
        """The default budget with what is given in its place.

        Raises:
            InvalidSetting: something is given that this entry does not have.
        """
        given = {"seeds": seeds, "steps": steps, "candidates": candidates}
        for name, value in given.items():
            if value is not None and getattr(self.budget, name) is None:
                raise InvalidSetting(f"{mention(name)} is of no use to {self.name}: leave it out", name)
        return Budget(**{name: getattr(self.budget, name) if v is None else v for name, v in given.items()})
