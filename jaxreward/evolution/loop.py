"""The search loop: ask, propose, check, train, tell, append."""

from __future__ import annotations

import time
from collections.abc import Sequence
from functools import partial

from jaxreward.errors import End, EndCause
from jaxreward.evolution.budget import ends, next_requests, unconfirmed
from jaxreward.evolution.endings import ending
from jaxreward.evolution.setup import given_objects, require_same_objects, save_files, save_observation
from jaxreward.evolution.steps import Steps
from jaxreward.evolution.vocabulary import write_vocabulary
from jaxreward.programs import Program
from jaxreward.records import Candidate, Request
from jaxreward.runs import Asked, Failed, Finished, Generation, Resumed, RunStarted
from jaxreward.runs.provenance import versions
from jaxreward.search.strategy import was_trained
from jaxreward.timing import CLOCK

MAX_UNTRAINED = 5
"""Generations in a row in which nothing could be trained that end the run."""

NOTHING_TO_TRAIN = End(f"{MAX_UNTRAINED} generations in a row had nothing to train", EndCause.NOTHING_TO_TRAIN)

# Generations in a row of requests for words that end the run: words spend no attempts.
_MAX_WORDS = 10


class Evolution(Steps):
    """One search in one run directory; use `run_search`."""

    _begun = False

    def search(self, generations: int | None = None) -> End | None:
        """Generations until a budget is spent; returns why it ends, None if so many are complete before."""
        self.begin()
        untrained = wordy = done = 0
        while (end := self.spent()) is None:
            if done == generations:
                return None
            before = self.progress
            self._generation()
            done += 1
            if self.progress.spent.words > before.spent.words:  # neither a success nor a failure
                wordy += 1
                if wordy == _MAX_WORDS:
                    reason = f"{_MAX_WORDS} generations in a row asked for nothing but words"
                    return End(reason, EndCause.TEXT_ONLY)
                continue
            new = tuple(self.progress.results.values())[len(before.results) :]
            wordy, untrained = 0, 0 if any(map(was_trained, new)) else untrained + 1
            if untrained == MAX_UNTRAINED:
                return NOTHING_TO_TRAIN
        return end

    def end(self, end: End) -> Finished | Failed:
        """Log that the search ends; returns the event."""
        if note := unconfirmed(self.settings, self.strategy, end, self.progress):
            self.watcher.note(note)
        self.log(event := ending(self.settings, self.progress, end, self.strategy.best(self.progress.state)))
        return event

    def conclude(self) -> None:
        """Have the objective keep what a report shows of the best program, if there is one."""
        best = self.strategy.best(self.progress.state)
        if best is not None and best.score is not None:
            self.objective.conclude(partial(self.program, best.candidate))

    def begin(self) -> None:
        """Log, once, that the run starts or is resumed."""
        if self._begun:
            return
        self._begun = True
        command, soft, objects = self.settings.command, versions(), self.given.identities
        if self.progress.started is not None:
            require_same_objects(self.run.path, given_objects(self.progress.started), objects)
        save_files(self.settings, self.run.path)
        if self.progress.started is None:
            s = self.settings
            for note in self.objective.notes:
                self.watcher.note(note)
            if self.observation is not None:
                save_observation(self.observation, self.run.path, self.checker, self.task)
            if self.derived is not None:
                write_vocabulary(self.run.path, self.derived)
            self.log(RunStarted(config=s.as_config(), versions=soft, task=s.task, strategy=s.strategy,
                                proposer=s.proposer, seed=s.seed, command=command,
                                measure=self.objective.measure,
                                objects={option: of.text for option, of in objects.items()},
                                code={option: of.text for option, of in self.code.items()},
                                parts={option: dict(of.parts) for option, of in {**objects, **self.code}.items()
                                       if of.parts}))  # fmt: skip
        else:
            self.log(Resumed(config=self.settings.as_config(), versions=soft, command=command))

    def spent(self) -> End | None:
        """The exhausted budget, if any; None while a generation is open or votes are missing."""
        if self.progress.open is not None:
            return None
        end, again = ends(self.settings, self.strategy, self.proposer, self.progress)
        free = self.judge is not None and not self.judge.waits  # one that waits for nobody judges after all budgets
        owed = self.strategy.owes_votes(self.progress.state) and (free or not self.progress.exhausted)
        return None if owed or again else end

    @property
    def asks(self) -> bool:
        """Whether no generation is in work, or some of its requests have no answer."""
        return self.progress.open is None or bool(self.progress.open.unproposed())

    def ask(self) -> tuple[Request, ...]:
        """Open a generation, unless one is in work; its requests that have no answer."""
        if self.progress.open is None:
            planned = self.proposer.planned(self.progress.state.generation)
            _, again = ends(self.settings, self.strategy, self.proposer, self.progress)
            self.log(Asked.of(again or next_requests(self.settings, self.strategy, self.progress, planned)))
        return self.opened.unproposed()

    def _generation(self) -> None:
        index, begin = self.progress.state.generation, time.perf_counter()
        CLOCK.take()
        try:
            self._steps_of_generation()
        finally:
            if self.profile is not None:
                self.profile.close()
        if self.profile is not None:
            self.profile.generation(f"generation {index}", time.perf_counter() - begin, *CLOCK.take())

    def _steps_of_generation(self) -> None:
        self.ask()
        index, programs = self.opened.index, dict[str, Program]()
        while True:
            with CLOCK.part("propose"):
                self._propose()
            with CLOCK.part("verify"):
                programs |= self._check()
            if not self.send_back(index):
                break
        waiting = self.opened.untrained()
        if waiting:
            self._train(waiting, programs)
        self.told(index)

    def _propose(self) -> None:
        if not self.opened.unproposed():
            return
        self.stop_here()
        self.answer_own(self.opened)
        if waiting := self.questions(self.opened):
            self.answered([self.opened.index], self.answers(waiting))

    def _check(self) -> dict[str, Program]:
        """Check what was proposed; returns the programs by candidate id."""
        waiting = self.opened.unchecked()
        return self.checked(self.opened.index, waiting, self.verdicts(waiting))

    def _train(self, candidates: Sequence[Candidate], known: dict[str, Program]) -> None:
        index, programs = self.opened.index, [self.program(c, known) for c in candidates]
        begin = time.perf_counter()
        found = self.scores(index, candidates, programs)
        CLOCK.add("training", time.perf_counter() - begin)
        self.scored(index, candidates, found)

    @property
    def opened(self) -> Generation:
        """The generation in work; there must be one."""
        assert self.progress.open is not None
        return self.progress.open
