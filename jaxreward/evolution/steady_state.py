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
from itertools import pairwise
from typing import Any

from jaxreward.errors import End, InvalidSetting, ProposerStopped, UserError
from jaxreward.evolution.background import Background, Kind, Threads, Work
from jaxreward.evolution.budget import budget_spent, ends, room_for, training_spent
from jaxreward.evolution.endings import withdrawn
from jaxreward.evolution.loop import MAX_UNTRAINED, NOTHING_TO_TRAIN, Evolution
from jaxreward.objectives.objective import Scored
from jaxreward.programs import Program
from jaxreward.proposers.proposer import Move
from jaxreward.records import Candidate, Proposal, Request
from jaxreward.runs import Asked
from jaxreward.search.seeding import derive_rng
from jaxreward.search.strategy import was_trained
from jaxreward.sentences import mention
from jaxreward.training import Interrupted

_OTHER_SETTINGS = "the recording cannot be repeated with these settings: repeat it with those of the recorded run"


def in_flight(slots: int) -> int:
    """Generations in work at most, by default."""
    return slots + max(1, slots // 2)


def recorded(main: Evolution) -> Sequence[Move]:
    """What a recording that is repeated asked and told, in its order; nothing without one."""
    return getattr(main.proposer, "order", ())  # which proposers from before this lack


def searched(main: Evolution, generations: int | None = None) -> End | None:
    """`main.search`, asynchronous where its settings say so."""
    if not main.settings.asynchronous:
        if any(one[0] == other[0] for one, other in pairwise(recorded(main))):
            raise InvalidSetting(
                f"the recording is of an asynchronous search: repeat it with {mention('asynchronous', True)}",
                "asynchronous",
            )
        return main.search(generations)
    with Threads() as threads:
        return SteadyState(main, threads, recorded(main)).search(generations)


class SteadyState:
    """Runs a search with several generations in work, as many as there are slots and one more unless its settings say
    how many.

    Args:
        main: the search.
        background: does what takes long.
        order: what a recording asked and told, to do the same in this order.
    """

    def __init__(self, main: Evolution, background: Background, order: Sequence[Move] = ()) -> None:
        self.main, self._background = main, background
        slots = main.objective.slots
        self._most = main.settings.in_flight or in_flight(slots)
        state, working = main.progress.state, len(main.progress.in_work)
        self._order = deque(order[2 * state.generation + working :])  # without what a resumed replay has done
        self._free = deque(range(slots))  # slots that do not train
        self._ready = deque[int]()  # generations that wait for a slot
        self._busy = set[int]()  # generations of which something computes
        self._kinds = set[Kind]()  # what computes, apart from trainings
        self._programs = dict[int, dict[str, Program]]()
        self._complete = self._untrained = 0  # generations told, and those in a row with nothing to train
        self._stopped: ProposerStopped | None = None

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
                    self._log_ended(*self._background.ended())
                elif self._stopped is not None:
                    raise self._stopped
                elif self.main.progress.in_work or (self._order and self._order[0][0] == "told"):
                    raise UserError(_OTHER_SETTINGS)
                else:
                    break
        except BaseException:
            self._give_up()
            raise
        return NOTHING_TO_TRAIN if self._untrained >= MAX_UNTRAINED else self.main.spent()

    # ---- ask and tell

    def _asks(self, generations: int | None) -> bool:
        """Whether the strategy is asked now."""
        main, progress = self.main, self.main.progress
        main.stop_here()
        working = len(progress.in_work)
        if self._stopped is not None or self._untrained >= MAX_UNTRAINED:
            return False
        if generations is not None and self._complete + working >= generations:
            return False
        if self._order:
            return self._order[0][0] == "asked"
        if not working:
            return main.spent() is None
        room = working < self._most and room_for(main.settings, progress) > 0
        return room and budget_spent(main.settings, main.strategy, main.proposer, progress) is None

    def _ask(self) -> None:
        main, progress = self.main, self.main.progress
        working = progress.in_work.values()
        requests = [] if working else ends(main.settings, main.strategy, main.proposer, progress)[1]
        if not requests:
            # not those that were sent back: so a replay, in which they may be sooner or later, asks for the same
            pending = tuple(r for generation in working for r in generation.requests if r.failed is None)
            state = dataclasses.replace(progress.state, pending=pending, in_work=len(working))
            index = state.generation + state.in_work
            n = main.proposer.planned(index) or room_for(main.settings, progress)
            requests = main.strategy.ask(state, max(1, n), derive_rng(main.settings.seed, "ask", index))
        best = main.strategy.best(progress.state)
        main.log(Asked.of(requests, best.candidate.id if best is not None else ""))
        self._moved(("asked", requests[0].generation))

    def _tell(self, index: int) -> None:
        new = self.main.progress.in_work[index].results()
        self.main.told(index)
        self._moved(("told", index))
        self._programs.pop(index, None)
        self._complete += 1
        self._untrained = 0 if self._order or any(map(was_trained, new)) else self._untrained + 1

    def _moved(self, move: Move) -> None:
        if self._order and self._order.popleft() != move:
            raise UserError(_OTHER_SETTINGS)

    # ---- the steps of a generation

    def _go_on(self) -> None:
        """Take every step that nothing keeps waiting. What waits for the proposer, or to be checked, goes together."""
        again = True
        if not self._order and (end := training_spent(self.main.settings, self.main.progress)) is not None:
            self._withdraw(end)
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
            if questions and "propose" not in self._kinds and self._stopped is None:
                asked = [request for one in questions.values() for request in one]
                self._begin("propose", questions, partial(self.main.answers, asked))
            if proposals and "check" not in self._kinds:
                self._begin("check", proposals, partial(self._verdicts, proposals))

    def _questions(self, index: int) -> Sequence[Request]:
        """What the proposer is to answer for a generation."""
        if not self.main.progress.in_work[index].unproposed() or "propose" in self._kinds or self._stopped is not None:
            return self.main.progress.in_work[index].unproposed()
        self.main.answer_own(self.main.progress.in_work[index])
        return self.main.questions(self.main.progress.in_work[index])

    def _withdraw(self, end: End) -> None:
        """Ask for nothing more once what trainings may take is spent."""
        for index in self.main.progress.in_work.keys() - self._busy:
            if self.main.progress.in_work[index].unproposed():
                self.main.log(withdrawn(end, (), index))

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
        self._kinds |= {kind} - {"train"}
        self._background.begin(work)

    def _log_ended(self, work: Work, future: Future[Any]) -> None:
        """Log what some work came to, or raise its error."""
        self._busy -= set(work.generations)
        self._kinds.discard(work.kind)
        if work.slot is not None:
            self._free.append(work.slot)
        result = future.result()
        if work.kind == "propose":
            try:
                self.main.answered(work.generations, result)
            except ProposerStopped as error:  # what it has answered is trained before
                self._stopped = error
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
            work, future = self._background.ended()
            with suppress(Exception):  # the first error is raised
                self._log_ended(work, future)
