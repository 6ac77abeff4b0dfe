"""Searches in virtual time: the real loop, log and strategy, and formulas in place of proposing, checking, training.

What a search asks, logs and tells is what it would do with so many devices; only the clock is not the wall's.
"""

from __future__ import annotations

import hashlib
import heapq
import itertools
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar, cast

import numpy as np

from benchmarks.landscape_proposer import SyntheticProposer
from benchmarks.landscapes import LANDSCAPES, Landscape, read
from jaxreward.evolution.background import Work
from jaxreward.evolution.loop import Evolution
from jaxreward.evolution.settings import EvolveSettings
from jaxreward.evolution.setup import Setup
from jaxreward.evolution.steady_state import SteadyState
from jaxreward.objectives.objective import Bench, Expansion, Scored
from jaxreward.programs import Checker
from jaxreward.proposers.proposer import Answers, OneByOne, RngOf
from jaxreward.records import SUCCESS, Failure, Measure, ProgramSummary, Proposal, Request, Result, Score, Verdict
from jaxreward.runs import Run, StopSignal
from jaxreward.search import make_strategy
from jaxreward.search.seeding import derive_rng
from jaxreward.tasks import make_task

NODES = 50
"""Reward nodes of a term, for strategies that look at a program's size."""


class Clock:
    """Virtual seconds, and how long devices were busy."""

    def __init__(self) -> None:
        self.now = self.busy_s = 0.0


@dataclass(frozen=True)
class Times:
    """How long things take, in seconds.

    Attributes:
        propose: to answer any number of requests that are asked together, as a language model does.
        check: to check any number of programs.
        train: of a generation on a device, median.
        spread: standard deviation of its logarithm.
        stragglers: the chance that it takes `slower` times as long.
    """

    propose: float = 20.0
    check: float = 1.0
    train: float = 60.0
    spread: float = 0.3
    stragglers: float = 0.02
    slower: float = 5.0

    def training(self, seed: int, of: Sequence[str | int]) -> float:
        """Of the candidates of a device, by whatever names them; the same whenever it is asked for."""
        rng = derive_rng(seed, "seconds", *of)
        usual = self.train * float(np.exp(self.spread * rng.standard_normal()))
        return usual * (self.slower if rng.random() < self.stragglers else 1.0)


class VirtualTime:
    """A `Background` in which work takes as many virtual seconds as `seconds` says."""

    def __init__(self, clock: Clock, seconds: Callable[[Work], float]) -> None:
        self.clock, self._seconds = clock, seconds
        self._running, self._numbers = list[tuple[float, int, Work, Future[Any]]](), itertools.count()

    def begin(self, work: Work) -> None:
        future: Future[Any] = Future()
        try:
            future.set_result(work.compute())
        except BaseException as error:
            future.set_exception(error)
        took = self._seconds(work)
        if work.kind == "train":
            self.clock.busy_s += took
        heapq.heappush(self._running, (self.clock.now + took, next(self._numbers), work, future))

    def ended(self) -> tuple[Work, Future[Any]]:
        self.clock.now, _, work, future = heapq.heappop(self._running)
        return work, future


class LandscapeProposer(OneByOne):
    """Programs of a landscape; a request of a name gets the same in every search of a seed that shows it the same."""

    name = "landscape"

    def __init__(self, proposer: SyntheticProposer, times: Times, clock: Clock | None) -> None:
        self._proposer, self._times, self._clock = proposer, times, clock

    def propose_all(self, requests: Sequence[Request], rng_of: RngOf) -> Answers:
        if self._clock is not None:
            self._clock.now += self._times.propose
        return super().propose_all(requests, rng_of)

    def propose(self, request: Request, rng: np.random.Generator) -> Proposal:
        return self._proposer.propose(request, rng)


class LandscapeChecker:
    """Rejects programs as their landscape does; a duplicate is one of the same source."""

    def __init__(self, failure: Callable[[Any], Any], times: Times, clock: Clock | None) -> None:
        self._failure, self._times, self._clock = failure, times, clock

    def check_many(self, sources: Sequence[str], task: Any, *, debug: bool = False) -> list[tuple[Verdict, Any]]:
        if self._clock is not None and sources:
            self._clock.now += self._times.check
        return [self._checked(source) for source in sources]

    def _checked(self, source: str) -> tuple[Verdict, Any]:
        stage, digest = self._failure(read(source)), hashlib.sha256(source.encode()).hexdigest()
        summary = ProgramSummary(digest=digest, observation_size=10, reward_nodes=NODES * len(read(source)))
        if stage is not None:
            return Verdict(failure=Failure(stage=stage, message="two terms do not go together")), None
        return Verdict(summary=summary), SimpleNamespace(digest=digest, source=source)


@dataclass(frozen=True)
class LandscapeObjective:
    """Scores by formula; where it is given a clock, a training of all devices goes by on it."""

    landscape: Landscape
    sim: Simulation
    clock: Clock | None = None
    name: ClassVar[str] = "training"
    shows_debug: ClassVar[bool] = False
    notes: ClassVar[tuple[str, ...]] = ()
    measure: ClassVar[Measure] = SUCCESS

    @property
    def slots(self) -> int:
        return self.sim.devices

    def open(self, bench: Bench) -> None:
        return None

    def prepare(self, place: int, of: int) -> None:
        return None

    def illustrated(self, request: Request, program: Any) -> Request:
        return request

    def score(self, tag: str, label: str, candidates: Any, programs: Any, best: Any, slot: int | None = None) -> Scored:
        if self.clock is not None:  # all devices, and the slowest ends it
            size = self.sim.batch
            parts = [candidates[k : k + size] for k in range(0, len(candidates), size)]
            each = [self.sim.times.training(self.sim.seed, [c.id for c in part]) for part in parts]
            self.clock.now += max(each)
            self.clock.busy_s += sum(each)
        results = []
        for candidate in candidates:
            rng = derive_rng(self.sim.seed, "score", candidate.id)
            mean = self.landscape.score(read(candidate.source), rng)
            score = Score(mean=mean, se=self.landscape.noise, n=3, episodes=96)
            results.append(Result(candidate=candidate, score=score, env_steps=1))
        return Scored(tuple(programs), tuple(results), compile_s=0.0, run_s=0.0)

    def expand(self, tag: str, label: str, request: Request, program: Any) -> Expansion | None:
        return None

    def conclude(self, best: Any) -> None:
        return None


class Watch:
    """A watcher that keeps the truth of the best over virtual time, and what was told while generations were in work.

    Attributes:
        curve: (trained candidates, virtual seconds, truth of the best) after every generation.
        staleness: of each generation, the results that the strategy was told between asking for it and being told it.
    """

    def __init__(self, truth: Callable[[Result | None], float], clock: Clock) -> None:
        self._truth, self._clock = truth, clock
        self._asked, self._known = dict[int, int](), 0
        self.curve, self.staleness = list[tuple[int, float, float]](), list[int]()
        self.events = self.in_work = 0

    def generation(self, index: int, results: Any, best: Result | None, spent: Any) -> None:
        self.curve.append((spent.trained, self._clock.now, self._truth(best)))

    def logged(self, entry: Any, progress: Any) -> None:
        event, before = entry.event, self._known
        self.events, self._known = self.events + 1, progress.state.num_results
        self.in_work = max(self.in_work, len(progress.in_work))
        if event.type == "asked":
            self._asked[event.generation] = before
        elif event.type == "told":
            self.staleness.append(before - self._asked.pop(event.generation, before))

    def note(self, text: str) -> None: ...
    def training(self, label: str, progress: Any) -> None: ...
    def proposing(self, text: str) -> None: ...


@dataclass(frozen=True)
class Simulation:
    """A search to simulate.

    Attributes:
        batch: candidates that a device trains at a time.
        asynchronous: whether devices wait for each other; otherwise a generation has a batch for each.
        in_flight: as the option of the search, in batches.
    """

    landscape: str
    strategy: str
    candidates: int
    seed: int
    devices: int
    batch: int = 1
    asynchronous: bool = True
    in_flight: int = 0
    times: Times = Times()
    options: tuple[str, ...] = ()
    insight: float = 0.25

    def settings(self, out: Path) -> EvolveSettings:
        """Of the search, in a folder `run` of `out`."""
        return EvolveSettings(
            task="probe-corridor", strategy=self.strategy, option=self.options, candidates=self.candidates,
            generation=self.batch if self.asynchronous else self.batch * self.devices, seed=self.seed,
            asynchronous=self.asynchronous, in_flight=self.in_flight, surrogate=0, final_seeds=0, baselines=(), out=out,
            name="run",
        )  # fmt: skip

    def seconds(self, work: Work) -> float:
        """Of work beside the loop."""
        if work.kind == "train":
            return self.times.training(self.seed, work.generations)
        return self.times.propose if work.kind == "propose" else self.times.check


@contextmanager
def opened(sim: Simulation, out: Path) -> Iterator[tuple[Evolution, Watch, Clock]]:
    """The search of a simulation, begun or resumed."""
    settings, clock = sim.settings(out), Clock()
    landscape = LANDSCAPES[sim.landscape](sim.seed)
    own = None if sim.asynchronous else clock  # of what the loop itself waits for
    objective = LandscapeObjective(landscape, sim, own)
    setup = Setup(
        make_task(settings.task), cast(Any, objective), make_strategy(sim.strategy, **settings.strategy_options()),
        LandscapeProposer(SyntheticProposer(landscape, sim.insight), sim.times, own),
    )  # fmt: skip
    watch = Watch(lambda best: landscape.truth(read(best.candidate.source)) if best else 0.0, clock)
    path = out / "run"
    with Run.resume(path) if path.exists() else Run.create(path, settings.as_config()) as run:
        checker = cast(Checker, LandscapeChecker(landscape.failure, sim.times, own))
        yield Evolution(run, settings, setup, checker, watch, StopSignal()), watch, clock


@dataclass(frozen=True)
class Simulated:
    """What a simulated search came to.

    Attributes:
        truth: of the best that it names.
        seconds: virtual ones.
        idle: the share of the devices' time in which they did not train.
        staleness: mean over generations, see `Watch`.
        loop_s: processor seconds of this process.
    """

    truth: float
    trained: int
    seconds: float
    idle: float
    staleness: float
    events: int
    loop_s: float
    curve: tuple[tuple[int, float, float], ...]

    def truth_after(self, seconds: float) -> float:
        """Of the best by a virtual time."""
        return next((truth for _, at, truth in reversed(self.curve) if at <= seconds), 0.0)


def simulate(sim: Simulation, out: Path) -> Simulated:
    """Run a search in virtual time; the same simulation, the same outcome but for `loop_s`."""
    begin = time.process_time()
    with opened(sim, out) as (main, watch, clock):
        if sim.asynchronous:
            SteadyState(main, VirtualTime(clock, sim.seconds)).search()
        else:
            main.search()
        took = time.process_time() - begin
        stale = sum(watch.staleness) / max(1, len(watch.staleness))
        truth = watch.curve[-1][2] if watch.curve else 0.0
        idle = 1.0 - clock.busy_s / (sim.devices * clock.now) if clock.now else 0.0
        return Simulated(
            truth, main.progress.spent.trained, clock.now, idle, stale, watch.events, took, tuple(watch.curve)
        )  # fmt: skip
