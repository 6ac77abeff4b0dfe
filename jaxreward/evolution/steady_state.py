"""An asynchronous search: the strategy is asked again as soon as there is room, not when a generation is complete.

Several generations are in work at a time. Each goes through the same steps as in `loop`, and the strategy is told it
when it is complete, whatever was asked for before: so it knows what it knows in the order of the log, and the log alone
gives its state again.
"""

from __future__ import annotations

import dataclasses
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future
from contextlib import suppress
from functools import partial
from typing import Any

from jaxreward.errors import End
from jaxreward.evolution.background import Background, Kind, Threads, Work
from jaxreward.evolution.budget import budget_spent, ends, room_for
from jaxreward.evolution.loop import MAX_UNTRAINED, NOTHING_TO_TRAIN, Evolution
from jaxreward.objectives.objective import Scored
from jaxreward.programs import Program
from jaxreward.proposers.proposer import Move
from jaxreward.records import Candidate, Proposal, Request
from jaxreward.runs import Asked
from jaxreward.search.seeding import derive_rng
from jaxreward.search.strategy import was_trained
from jaxreward.training import Interrupted


def searched(main: Evolution, generations: int | None = None) -> End | None:
    """`main.search`, asynchronous where its settings say so."""
    if not main.settings.asynchronous:
        return main.search(generations)
    with Threads() as threads:
        return SteadyState(main, threads, main.proposer.order).search(generations)


class SteadyState:
    """Runs a search with several generations in work, as many as there are slots and one more unless its settings say
    how many.

    Args:
        main: the search.
        background: does what takes long.
        order: what a recording asked and told, to do the same in this order.
    """

    def __init__(self, main: Evolution, background: Background, order: Sequence[Move] = ()) -> None:
        self.main, self.background = main, background
        self.slots = main.objective.slots
        self.most = main.settings.in_flight or self.slots + 1
        state, working = main.progress.state, len(main.progress.in_work)
        self._order = deque(order[2 * state.generation + working :])  # without what a resumed replay has done
        self._free, self._ready = deque(range(self.slots)), deque[int]()  # generations that wait for a slot
        self._busy, self._begun = set[int](), set[Kind]()
        self._programs = dict[int, dict[str, Program]]()
        self._told = self._untrained = 0

    def search(self, generations: int | None = None) -> End | None:
        """Go on until a budget is spent; returns why the search ends, None if so many generations are told before."""
        self.main.begin()
        try:
            while True:
                self._go_on()
                if self._asks(generations):
                    while self._asks(generations):  # so that they are proposed together
                        self._ask()
                elif self._busy:
                    self._log_ended(*self.background.ended())
                elif self.main.progress.in_work and self._order:
                    self._order.clear()  # it was recorded with other settings
                else:
                    break
        except BaseException:
            self._give_up()
            raise
        if self._untrained >= MAX_UNTRAINED:
            return NOTHING_TO_TRAIN
        return None if self._told == generations else self.main.spent()

    # ---- ask and tell

    def _asks(self, generations: int | None) -> bool:
        """Whether the strategy is asked now."""
        main, progress = self.main, self.main.progress
        main.stop_here()
        working = len(progress.in_work)
        if self._untrained >= MAX_UNTRAINED or (generations is not None and self._told + working >= generations):
            return False
        if self._order:
            return self._order[0][0] == "asked"
        if not working:
            return main.spent() is None
        room = working < self.most and room_for(main.settings, progress) > 0
        return room and budget_spent(main.settings, main.strategy, main.proposer, progress) is None

    def _ask(self) -> None:
        main, progress = self.main, self.main.progress
        working = progress.in_work.values()
        again = [] if working else ends(main.settings, main.strategy, main.proposer, progress)[1]
        if not again:
            # not those that were sent back: so a replay, in which they may be sooner or later, asks for the same
            pending = tuple(r for generation in working for r in generation.requests if r.failed is None)
            state = dataclasses.replace(progress.state, pending=pending, in_work=len(working))
            index = state.generation + state.in_work
            n = main.proposer.planned(index) or room_for(main.settings, progress)
            again = main.strategy.ask(state, max(1, n), derive_rng(main.settings.seed, "ask", index))
        main.log(Asked.of(again))
        self._moved(("asked", again[0].generation))

    def _tell(self, index: int) -> None:
        new = self.main.progress.in_work[index].results()
        self.main.told(index)
        self._moved(("told", index))
        self._programs.pop(index, None)
        self._told += 1
        self._untrained = 0 if any(map(was_trained, new)) else self._untrained + 1

    def _moved(self, move: Move) -> None:
        if self._order and self._order.popleft() != move:
            self._order.clear()

    # ---- the steps of a generation

    def _go_on(self) -> None:
        """Take every step that nothing keeps waiting. What waits for the proposer, or to be checked, goes together."""
        again = True
        while again:
            again, questions, proposals = False, dict[int, Sequence[Request]](), dict[int, Sequence[Proposal]]()
            for index in sorted(self.main.progress.in_work.keys() - self._busy - set(self._ready)):
                if asked := self._questions(index):
                    questions[index] = asked
                elif unchecked := self.main.progress.in_work[index].unchecked():
                    proposals[index] = unchecked
                else:
                    again |= self._train_or_tell(index)
            while self._free and self._ready:
                index = self._ready.popleft()
                waiting = self.main.progress.in_work[index].untrained()
                self._begin("train", [index], partial(self._scores, index, waiting, self._free[0]))
            if questions and "propose" not in self._begun:
                asked = [request for one in questions.values() for request in one]
                self._begin("propose", questions, partial(self.main.answers, asked))
            if proposals and "check" not in self._begun:
                self._begin("check", proposals, partial(self._verdicts, proposals))

    def _questions(self, index: int) -> Sequence[Request]:
        """What the proposer is to answer for a generation."""
        if not self.main.progress.in_work[index].unproposed() or "propose" in self._begun:
            return self.main.progress.in_work[index].unproposed()
        self.main.answer_own(self.main.progress.in_work[index])
        return self.main.questions(self.main.progress.in_work[index])

    def _train_or_tell(self, index: int) -> bool:
        """The last steps of a generation; whether there may be others then."""
        if self.main.send_back(index):
            return True
        if self.main.progress.in_work[index].untrained():
            self._ready.append(index)
            return False
        if self._order and self._order[0] != ("told", index):
            return False
        self._tell(index)
        return True

    def _verdicts(self, proposals: Mapping[int, Sequence[Proposal]]) -> dict[int, Any]:
        """Proposals with the verdicts on them, by generation."""
        outcomes = iter(self.main.verdicts([proposal for of in proposals.values() for proposal in of]))
        return {index: (of, [next(outcomes) for _ in of]) for index, of in proposals.items()}

    def _scores(self, index: int, candidates: Sequence[Candidate], slot: int) -> tuple[Sequence[Candidate], Scored]:
        programs = [self.main.program(c, self._programs.get(index)) for c in candidates]
        return candidates, self.main.scores(index, candidates, programs, slot)

    def _begin(self, kind: Kind, generations: Iterable[int], compute: Callable[[], Any]) -> None:
        def unless_stopped() -> Any:
            if self.main.stops():
                raise Interrupted(f"stopped by {self.main.stop.reason}")
            return compute()

        work = Work(kind, tuple(generations), unless_stopped, self._free.popleft() if kind == "train" else None)
        self._busy |= set(work.generations)
        self._begun.add(kind)
        self.background.begin(work)

    def _log_ended(self, work: Work, future: Future[Any]) -> None:
        """Log what some work came to, or raise its error."""
        self._busy -= set(work.generations)
        self._begun.discard(work.kind)
        if work.slot is not None:
            self._free.append(work.slot)
        result = future.result()
        if work.kind == "propose":
            self.main.answered(work.generations, result)
        elif work.kind == "check":
            for index, outcomes in result.items():
                self._programs.setdefault(index, {}).update(self.main.checked(index, *outcomes))
        else:
            (index,) = work.generations
            self.main.scored(index, *result)

    def _give_up(self) -> None:
        """Have all that computes end, and log what it came to."""
        self.main.failed.set()
        while self._busy:
            work, future = self.background.ended()
            with suppress(Exception):  # the first error is raised
                self._log_ended(work, future)
