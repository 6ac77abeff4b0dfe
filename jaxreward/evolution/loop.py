"""The search loop: ask, propose, check, train, tell, append.

It owns no state of its own. Every step appends an event, and what is in memory is the fold of the
events so far; so a killed run, resumed, takes the same steps that it would have taken.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import jax
import numpy as np

from jaxreward.errors import End, EndCause
from jaxreward.evolution.artifacts import save_interface
from jaxreward.evolution.budget import ends, next_requests, unconfirmed
from jaxreward.evolution.endings import ending, withdrawn
from jaxreward.evolution.own_answers import (
    covering_of,
    expansions_of,
    follow_expansions,
    known_of,
    own_answer,
    room_of,
    training_of,
)
from jaxreward.evolution.policies import Policies
from jaxreward.evolution.profiling import Profile
from jaxreward.evolution.recheck import checked_again
from jaxreward.evolution.repair import repair_requests
from jaxreward.evolution.settings import EvolveSettings
from jaxreward.evolution.setup import Setup, given_objects, require_same_objects, save_files, save_observation
from jaxreward.evolution.subtask_terms import held_to_contract
from jaxreward.evolution.vocabulary import write_vocabulary
from jaxreward.evolution.watcher import Watcher
from jaxreward.objectives.objective import Bench
from jaxreward.operators import OWN, REPEATS
from jaxreward.programs import Checker, Program
from jaxreward.proposers.proposer import Context
from jaxreward.records import Candidate, Exchange, Proposal, Request, Score
from jaxreward.runs import (
    Asked,
    AskedRequest,
    Checked,
    Entry,
    Event,
    Failed,
    Finished,
    Generation,
    Progress,
    Proposed,
    Repair,
    Resumed,
    Run,
    RunStarted,
    StopSignal,
    Told,
    Trained,
    TranscriptLog,
    advance,
    fold,
)
from jaxreward.runs.checkpoint import Checkpoints
from jaxreward.runs.malformed import explain_malformed
from jaxreward.runs.provenance import versions
from jaxreward.runs.transcripts import TRANSCRIPT
from jaxreward.search.seeding import derive_rng
from jaxreward.search.strategy import was_trained
from jaxreward.timing import CLOCK
from jaxreward.training import Interrupted
from jaxreward.training import Progress as TrainingProgress

# Generations in a row in which nothing could be trained that end the run.
_MAX_UNTRAINED = 5

# Generations in a row of requests for words that end the run: words spend no attempts.
_MAX_WORDS = 10


class Evolution:
    """One search in one run directory; use `run_search`.

    Args:
        name: the run that a user would resume, if this search is part of another.
        elsewhere: exchanges of other searches under the same budgets.
        on_event: called with every event that is logged.
    """

    def __init__(
        self,
        run: Run,
        settings: EvolveSettings,
        setup: Setup,
        checker: Checker,
        watcher: Watcher,
        stop: StopSignal,
        name: str = "",
        elsewhere: Sequence[Exchange] = (),
        on_event: Callable[[Entry], None] = lambda _: None,
    ) -> None:
        self.run, self.settings, self.checker, self.watcher, self.stop = run, settings, checker, watcher, stop
        self.task, self.strategy, self.proposer = setup.task, setup.strategy, setup.proposer
        self.observation, self.judge, self.given = setup.observation, setup.judge, setup.given
        self.derived, self.code, self.objective = setup.derived, setup.code, setup.objective
        self.on_event = on_event
        self.store = Checkpoints(run.checkpoints)
        events = [entry.event for entry in run.entries]
        with explain_malformed(run.path):
            self.progress: Progress[Any] = fold(events, self.strategy.init(), self.strategy.tell)
        self.transcript = TranscriptLog(run.transcripts / TRANSCRIPT)
        self._begun, self._expanded = False, 0
        self.profile = Profile(run.path / "profile", len(jax.local_devices())) if settings.profile else None
        context = Context(
            folder=run.path,
            transcript=self.transcript,
            should_stop=lambda: stop.requested,
            note=watcher.note,
            status=watcher.proposing,
            name=name or run.path.name,
            shared_exchanges=elsewhere,
            prefetch=self._prefetch,
            known=lambda: known_of(self.progress),
            on_endpoint=watcher.note,
        )
        self.proposer.open(context)
        if self.judge is not None:
            self.judge.open(context)
        self.policies = Policies(run, self.store, self.task, settings, self.strategy, self.judge, watcher.note)
        self.bench = Bench(
            run.path, self.store, checker, lambda: expansions_of(self.progress),
            lambda: tuple(self.progress.results.values()), lambda: room_of(self.progress),
            lambda: covering_of(self.proposer, settings), self.policies.start, self._watch, lambda: stop.requested,
            watcher.note,
        )  # fmt: skip
        self.objective.open(self.bench)

    def log(self, event: Event) -> None:
        with CLOCK.part("write"):
            entry = self.run.append(event)
        self.progress = advance(self.progress, event, self.strategy.tell)
        self.watcher.logged(entry, self.progress)
        self.on_event(entry)

    # ---- the run

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
            if untrained == _MAX_UNTRAINED:
                reason = f"{_MAX_UNTRAINED} generations in a row had nothing to train"
                return End(reason, EndCause.NOTHING_TO_TRAIN)
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
        return self._open.unproposed()

    def questions(self) -> tuple[Request, ...]:
        """The requests in work that wait for a proposer's answer, with what the objective shows of its data."""
        asked = tuple(request for request in self._open.unproposed() if request.operator not in OWN)
        if not getattr(self.proposer, "reads_data", False):
            return asked
        return tuple(self.objective.illustrated(request, partial(self._parent, request)) for request in asked)

    def rng_of(self, request: Request) -> np.random.Generator:
        """The random generator of a request for the proposer."""
        return derive_rng(self.settings.seed, "propose", request.id)

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
        programs: dict[str, Program] = {}
        while True:
            with CLOCK.part("propose"):
                self._propose()
            with CLOCK.part("verify"):
                programs |= self._check()
            repairs = self._repairs()
            if not repairs:
                break
            self.log(Repair(requests=repairs))
        waiting = self._open.untrained()
        if waiting:
            self._train(waiting, programs)
        done, before = self._open, self.progress.state
        after = self.strategy.tell(before, done.results())
        self.log(Told(generation=done.index, account=self.strategy.account(before, after)))
        self.store_best()
        self.watcher.generation(
            done.index, done.results(), self.strategy.best(self.progress.state), self.progress.spent
        )

    def _propose(self) -> None:
        waiting = self._open.unproposed()
        if not waiting:
            return
        self._stop_here()
        for request in [request for request in waiting if request.operator in OWN]:
            program = self.program(request.parents[0].candidate) if request.operator == "expand" else None
            answer = own_answer(request, self.objective, program)
            self.forget(training_of(request))  # what it gave is in files of the run
            self.log(Proposed(proposal=answer))
        waiting = self.questions()
        if not waiting:
            return
        if self.given.vocabulary is None:  # one that was given stays as it is
            self._expanded = follow_expansions(self.proposer, self.objective, self.task, self._expanded)
        judge = self.judge
        judged = [request for request in waiting if judge is not None and request.operator in judge.operators]
        if judge is not None and judged:
            answers = judge.judge_all(judged, self.rng_of)
        else:
            answers = self.proposer.propose_all(waiting, self.rng_of)
        for proposal in answers.proposals:
            self.log(Proposed(proposal=self._completed(proposal)))
        self._stop_here()
        if answers.stopped is not None:
            raise answers.stopped
        if answers.spent is not None:
            ids = {request.id for request in self._open.unproposed()}
            self.log(withdrawn(answers.spent, [e for e in self.transcript.exchanges() if e.request_id in ids]))

    def _parent(self, request: Request) -> Program | None:
        """The program of the first parent of a request."""
        return self.program(request.parents[0].candidate) if request.parents else None

    def _prefetch(self, proposal: Proposal) -> None:
        """Check a program, and compile it, while the proposer works on others."""
        asked = [request.id for request in self._open.unproposed()]
        place = asked.index(proposal.request_id) if proposal.request_id in asked else 0
        source = self._completed(proposal).source
        then = self.objective.prepare(place, len(asked))
        self.checker.prefetch(source, self.task, then, debug=self.objective.shows_debug)

    def _completed(self, proposal: Proposal) -> Proposal:
        """With the given observation, if there is one."""
        if self.observation is None or not proposal.source:
            return proposal
        return proposal.model_copy(update={"source": self.observation.complete(proposal.source)})

    def _repairs(self) -> tuple[AskedRequest, ...]:
        """Requests for repairs of rejected candidates, within the budget of attempts."""
        if not self.proposer.accepts_repairs or self.progress.exhausted:
            return ()
        room = self.settings.attempts - self.progress.spent.attempts
        found = repair_requests(self._open, self.settings.llm.repairs)
        return tuple(map(AskedRequest.of, found[: max(0, room)]))

    @property
    def _open(self) -> Generation:
        assert self.progress.open is not None
        return self.progress.open

    def _stop_here(self) -> None:
        if self.stop.requested:
            raise Interrupted(f"stopped by {self.stop.reason}")

    def _check(self) -> dict[str, Program]:
        """Check what was proposed; returns the programs by candidate id."""
        known: dict[str, Program] = {}
        unchecked = self._open.unchecked()
        asked = {request.id: request for request in self._open.requests}
        outcomes = self.checker.check_many([p.source for p in unchecked], self.task, debug=self.objective.shows_debug)
        for proposal, (verdict, program) in zip(unchecked, outcomes, strict=True):
            self._stop_here()
            earlier = self.progress.digests.get(verdict.summary.digest) if verdict.summary is not None else None
            if asked[proposal.request_id].operator in REPEATS:
                earlier = None  # it is the same program, whose score is of other data
            if earlier is None:
                verdict, program = held_to_contract(asked[proposal.request_id], verdict, program)
            if program is not None and earlier is None:
                self.run.save_program(program.digest, proposal.source)
                known[proposal.request_id] = program
            self.log(Checked(request_id=proposal.request_id, verdict=verdict, duplicate_of=earlier))
        return known

    def program(self, candidate: Candidate, known: dict[str, Program] | None = None) -> Program:
        """The program of a candidate that passed its check, maybe in an earlier process."""
        known = {} if known is None else known
        if candidate.id not in known:
            known[candidate.id] = checked_again(self.checker, candidate, self.task, self.objective.shows_debug)
        return known[candidate.id]

    # ---- training

    def _train(self, candidates: Sequence[Candidate], known: dict[str, Program]) -> None:
        index, best = self._open.index, self.strategy.best(self.progress.state)
        tag = f"generation-{index}"
        programs, begin = [self.program(c, known) for c in candidates], time.perf_counter()
        scored = self.objective.score(tag, f"generation {index}", candidates, programs, best and best.score)
        CLOCK.add("training", time.perf_counter() - begin)
        with CLOCK.part("write"):
            for program in scored.programs:  # with other weights, some may be new
                self.run.save_program(program.digest, program.source)
            sound = [agents for agents in scored.agents if agents.sound]
            self.policies.save(sound, candidates, self.progress.state)
        self.log(Trained(results=scored.results, compile_s=scored.compile_s, run_s=scored.run_s))
        self.forget(tag)

    def forget(self, tag: str) -> None:
        """Delete the checkpoints of a training that is logged."""
        for leftover in self.store.tags():
            if leftover.startswith(f"{tag}-"):
                self.store.delete(leftover)

    def _watch(self, label: str, progress: TrainingProgress) -> None:
        self.watcher.training(label, progress)
        if self.profile is not None and self.progress.open is not None:  # a final training has no page
            self.profile.progress(progress)

    def store_best(self, score: Score | None = None) -> None:
        """Write `best_interface.py`, with `score` in place of that of the search."""
        best = self.strategy.best(self.progress.state)
        self.policies.keep_best(best)
        save_interface(self.run, self.settings, self.progress, best, score)
