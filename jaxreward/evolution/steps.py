"""What a search does for the requests of a generation: propose, check, train.

Nothing here has state of its own. Every step appends an event, and what is in memory is the fold of the events so far;
so a killed run, resumed, takes the same steps that it would have taken. A step that takes long is a method that
computes, which any thread may call, and one that logs what came of it, for the thread of the search alone.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any

import jax
import numpy as np

from jaxreward.evolution.artifacts import save_interface
from jaxreward.evolution.budget import training_spent
from jaxreward.evolution.endings import withdrawn
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
from jaxreward.evolution.setup import Setup
from jaxreward.evolution.subtask_terms import held_to_contract
from jaxreward.evolution.watcher import Watcher
from jaxreward.objectives.objective import Bench, Scored
from jaxreward.operators import OWN, REPEATS
from jaxreward.programs import Checker, Program
from jaxreward.proposers.proposer import Answers, Context
from jaxreward.records import Candidate, Exchange, Proposal, Request, Score, Verdict
from jaxreward.runs import (
    AskedRequest,
    Checked,
    Entry,
    Event,
    Generation,
    Progress,
    Proposed,
    Repair,
    Run,
    StopSignal,
    Told,
    Trained,
    TranscriptLog,
    advance,
    fold,
)
from jaxreward.runs.checkpoint import Checkpoints
from jaxreward.runs.malformed import explain_malformed
from jaxreward.runs.resume_options import resume_options
from jaxreward.runs.transcripts import TRANSCRIPT
from jaxreward.search.seeding import derive_rng
from jaxreward.timing import CLOCK
from jaxreward.training import Interrupted
from jaxreward.training import Progress as TrainingProgress


class Steps:
    """A run, what is made for it, and the steps of its generations.

    Args:
        part_of: the search whose run a user would resume, if this one is a part of it.
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
        part_of: Steps | None = None,
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
        self.failed = threading.Event()
        self._expanded, self._watching = 0, threading.Lock()
        self.profile = Profile(run.path / "profile", len(jax.local_devices())) if settings.profile else None
        own = None if setup.given.identities else resume_options(run.path, settings, settings.store)
        self.found_by: str | None = own if part_of is None else part_of.found_by
        context = Context(
            folder=run.path,
            transcript=self.transcript,
            should_stop=self.stops,
            note=watcher.note,
            status=watcher.proposing,
            found_by=self.found_by,
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
            lambda: covering_of(self.proposer, settings), self.policies.start, self._watch, self.stops,
            watcher.note,
        )  # fmt: skip
        self.objective.open(self.bench)

    def log(self, event: Event) -> None:
        with CLOCK.part("write"):
            entry = self.run.append(event)
        self.progress = advance(self.progress, event, self.strategy.tell)
        with self._watching:
            self.watcher.logged(entry, self.progress)
        self.on_event(entry)

    def stops(self) -> bool:
        """Whether what computes should end: the search was asked to stop, or another part of it has failed."""
        return self.stop.requested or self.failed.is_set()

    def stop_here(self) -> None:
        """Raise `Interrupted` if the search was asked to stop."""
        if self.stop.requested:
            raise Interrupted(f"stopped by {self.stop.reason}")

    # ---- propose

    def questions(self, generation: Generation) -> tuple[Request, ...]:
        """The requests of a generation that wait for a proposer's answer, with what the objective shows of its data."""
        asked = tuple(request for request in generation.unproposed() if request.operator not in OWN)
        if not getattr(self.proposer, "reads_data", False):
            return asked
        return tuple(self.objective.illustrated(request, partial(self._parent, request)) for request in asked)

    def rng_of(self, request: Request) -> np.random.Generator:
        """The random generator of a request for the proposer."""
        return derive_rng(self.settings.seed, "propose", request.id)

    def answer_own(self, generation: Generation) -> None:
        """Answer, and log, the requests that the search answers by itself."""
        for request in [request for request in generation.unproposed() if request.operator in OWN]:
            program = self.program(request.parents[0].candidate) if request.operator == "expand" else None
            answer = own_answer(request, self.objective, program)
            self.forget(training_of(request))  # what it gave is in files of the run
            self.log(Proposed(proposal=answer))
        if self.given.vocabulary is None:  # one that was given stays as it is
            self._expanded = follow_expansions(self.proposer, self.objective, self.task, self._expanded)

    def answers(self, requests: Sequence[Request]) -> Answers:
        """What the proposer, or the judge, answers; computes."""
        judge = self.judge
        judged = [request for request in requests if judge is not None and request.operator in judge.operators]
        if judge is not None and judged:
            return judge.judge_all(judged, self.rng_of)
        return self.proposer.propose_all(requests, self.rng_of)

    def answered(self, generations: Iterable[int], answers: Answers) -> None:
        """Log answers to the requests of generations, or that they are taken back.

        Raises:
            Interrupted: the search was asked to stop.
            ProposerStopped: the proposer cannot go on.
        """
        for proposal in answers.proposals:
            self.log(Proposed(proposal=self._completed(proposal)))
        self.stop_here()
        if answers.stopped is not None:
            raise answers.stopped
        if answers.spent is not None:
            unanswered = [index for index in generations if self.progress.in_work[index].unproposed()]
            for index in unanswered or list(generations)[:1]:
                ids = {request.id for request in self.progress.in_work[index].unproposed()}
                lost = [e for e in self.transcript.exchanges() if e.request_id in ids]
                self.log(withdrawn(answers.spent, lost, index if self.settings.asynchronous else None))

    def _parent(self, request: Request) -> Program | None:
        """The program of the first parent of a request."""
        return self.program(request.parents[0].candidate) if request.parents else None

    def _prefetch(self, proposal: Proposal) -> None:
        """Check a program, and compile it where its device is known, while the proposer works on others."""
        found = (g for g in self.progress.in_work.values() if proposal.request_id in g.ids)
        asked = [request.id for generation in found for request in generation.unproposed()]
        place = asked.index(proposal.request_id) if proposal.request_id in asked else 0
        source = self._completed(proposal).source
        then = None if self.settings.asynchronous else self.objective.prepare(place, len(asked))
        self.checker.prefetch(source, self.task, then, debug=self.objective.shows_debug)

    def _completed(self, proposal: Proposal) -> Proposal:
        """With the given observation, if there is one."""
        if self.observation is None or not proposal.source:
            return proposal
        return proposal.model_copy(update={"source": self.observation.complete(proposal.source)})

    # ---- check

    def verdicts(self, proposals: Sequence[Proposal]) -> list[tuple[Verdict, Program | None]]:
        """The verdicts on proposed programs, with the programs of those that passed; computes."""
        return self.checker.check_many([p.source for p in proposals], self.task, debug=self.objective.shows_debug)

    def checked(
        self, index: int, proposals: Sequence[Proposal], outcomes: Sequence[tuple[Verdict, Program | None]]
    ) -> dict[str, Program]:
        """Log the verdicts on proposals of a generation; returns the programs that go on by candidate id."""
        known = dict[str, Program]()
        asked = {request.id: request for request in self.progress.in_work[index].requests}
        for proposal, (verdict, program) in zip(proposals, outcomes, strict=True):
            self.stop_here()
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

    def send_back(self, index: int) -> bool:
        """Log requests for repairs of rejected candidates, within the budget of attempts; whether there are any."""
        if not self.proposer.accepts_repairs:
            return False
        found = repair_requests(self.progress.in_work[index], self.settings.llm.repairs)
        if self.settings.asynchronous and getattr(self.proposer, "order", ()):
            # when a budget ended may depend on what took how long: not so in a repetition
            found = [request for request in found if self.proposer.answers(request.id)]
        elif self.progress.exhausted or (self.settings.asynchronous and training_spent(self.settings, self.progress)):
            return False
        else:
            found = found[: max(0, self.settings.attempts - self.progress.spent.attempts - self.progress.unproposed)]
        requests = tuple(map(AskedRequest.of, found))
        if requests:
            self.log(Repair(requests=requests))
        return bool(requests)

    def program(self, candidate: Candidate, known: dict[str, Program] | None = None) -> Program:
        """The program of a candidate that passed its check, maybe in an earlier process."""
        known = {} if known is None else known
        if candidate.id not in known:
            known[candidate.id] = checked_again(self.checker, candidate, self.task, self.objective.shows_debug)
        return known[candidate.id]

    # ---- train

    def scores(
        self, index: int, candidates: Sequence[Candidate], programs: Sequence[Program], slot: int | None = None
    ) -> Scored:
        """Candidates of a generation after their objective, computed with one of its slots or all of them."""
        best = self.strategy.best(self.progress.state)
        if self.settings.asynchronous:  # what is told meanwhile depends on what takes how long
            best = self.progress.in_work[index].incumbent
        label = f"generation {index}"
        return self.objective.score(_tag(index), label, candidates, programs, best and best.score, slot)

    def scored(self, index: int, candidates: Sequence[Candidate], scored: Scored) -> None:
        """Log the scores of candidates of a generation, and keep the policies that are wanted."""
        with CLOCK.part("write"):
            for program in scored.programs:  # with other weights, some may be new
                self.run.save_program(program.digest, program.source)
            sound = [agents for agents in scored.agents if agents.sound]
            untold = [r for g in self.progress.in_work.values() for r in g.trained.values()]
            self.policies.save(sound, candidates, scored.results, self.progress.state, untold)
        self.log(Trained(results=scored.results, compile_s=scored.compile_s, run_s=scored.run_s))
        self.forget(_tag(index))

    def told(self, index: int) -> None:
        """Tell the strategy the results of a complete generation."""
        done, before = self.progress.in_work[index], self.progress.state
        after = self.strategy.tell(before, done.results())
        self.log(Told(generation=index, account=self.strategy.account(before, after)))
        self.store_best()
        self.watcher.generation(index, done.results(), self.strategy.best(self.progress.state), self.progress.spent)

    def forget(self, tag: str) -> None:
        """Delete the checkpoints of a training that is logged."""
        for leftover in self.store.tags():
            if leftover.startswith(f"{tag}-"):
                self.store.delete(leftover)

    def _watch(self, label: str, progress: TrainingProgress) -> None:
        with self._watching:
            self.watcher.training(label, progress)
            if self.profile is not None and self.progress.in_work:  # a final training has no page
                self.profile.progress(progress)

    def store_best(self, score: Score | None = None) -> None:
        """Write `best_interface.py`, with `score` in place of that of the search."""
        best = self.strategy.best(self.progress.state)
        self.policies.keep_best(best)
        save_interface(self.run, self.settings, self.progress, best, score)


def _tag(index: int) -> str:
    """What the checkpoints of a generation begin with."""
    return f"generation-{index}"
