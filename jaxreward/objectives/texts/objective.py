"""The objective of a search on text: how well a reward tells an expert's states from others, and nothing else."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import ClassVar

import numpy as np

from jaxreward.objectives.demonstrations.results import FITNESS, result_of
from jaxreward.objectives.demonstrations.scoring import Separation, separations
from jaxreward.objectives.objective import Bench, Expansion, Scored
from jaxreward.objectives.texts.illustrations import illustrations
from jaxreward.objectives.texts.text_sets import TextSets
from jaxreward.programs.host.program import TextProgram
from jaxreward.records import Candidate, ExampleChoice, Measure, Request, Score
from jaxreward.search.seeding import derive_rng


class TextObjective:
    """Scores programs by the rewards that they were checked with, see `programs.host.checker`.

    No policy is trained: a program on text cannot be part of a compiled training. So data are never expanded.
    """

    name: ClassVar[str] = "demonstrations"
    shows_debug: ClassVar[bool] = False

    def __init__(self, sets: TextSets, seed: int) -> None:
        self.sets, self._seed = sets, seed
        self._bench: Bench | None = None

    @property
    def measure(self) -> Measure:
        return FITNESS

    @property
    def slots(self) -> int:
        return 1

    @property
    def notes(self) -> tuple[str, ...]:
        return ()

    def open(self, bench: Bench) -> None:
        self._bench = bench
        self.sets.write(bench.folder)

    def prepare(self, place: int, of: int) -> Callable[[TextProgram], None] | None:
        return None

    def illustrated(self, request: Request, program: Callable[[], TextProgram | None]) -> Request:
        choice, parent = request.examples or ExampleChoice(trajectory=not request.parents), program()
        found = self.separated([parent])[0] if parent is not None else None
        rng = derive_rng(self._seed, "illustrations", request.id)
        lines = illustrations(choice, found, self.sets, rng)
        shared = self._bench.shared_functions(request) if self._bench is not None else ()
        return request.model_copy(update={"illustrations": lines, "shared_functions": shared})

    def separated(self, programs: Sequence[TextProgram]) -> tuple[Separation, ...]:
        """What programs make of the data, and of those held out if there are any."""
        sets = [self.sets.data, *([self.sets.held_out] if self.sets.held_out is not None else [])]
        return separations(np.stack([program.rewards for program in programs]), *sets)

    def score(
        self, tag: str, label: str, candidates: Sequence[Candidate], programs: Sequence[TextProgram],
        best: Score | None, slot: int | None = None,
    ) -> Scored:  # fmt: skip
        found, *rest = self.separated(programs)
        episodes = len(self.sets.expert) + len(self.sets.negative)
        results = [result_of(c, k, found, rest[0] if rest else None, episodes, {}) for k, c in enumerate(candidates)]
        return Scored(tuple(programs), tuple(results))

    def conclude(self, best: Callable[[], TextProgram]) -> None:
        """Nothing: rewards along episodes are drawn of states that are arrays."""

    def expand(self, tag: str, label: str, request: Request, program: TextProgram) -> Expansion | None:
        return None
