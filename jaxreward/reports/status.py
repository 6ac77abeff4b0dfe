"""The state of a search or a training while it runs, as a few lines for a terminal or a sentence for a log."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from functools import reduce
from typing import Any

from jaxreward.formatting import count, span
from jaxreward.operators import WORDS
from jaxreward.records import Measure
from jaxreward.reports.model_costs import cost_line
from jaxreward.reports.run_tables import score_text
from jaxreward.reports.tables import figure
from jaxreward.reports.timeline import CHECKING, PROPOSING, TRAINING, Timeline, better
from jaxreward.runs import Asked, Baseline, Entry, Generation, Progress, Spent, Told, Trained

STATES: tuple[str, ...] = (
    "waiting for a proposal",
    "being checked",
    "training",
    "scored",
    "answered",
    "failed",
    "duplicate",
)

_IN_A_LINE = 2
"""Trainings that a sentence says more of than that there are some."""

_PHASES = (PROPOSING, CHECKING, TRAINING)


def states(generation: Generation) -> dict[str, int]:
    """The number of candidates of an unfinished generation in each of `STATES`, without those that are 0."""
    found = dict.fromkeys(STATES, 0)
    for request in generation.requests:
        found[_state(generation, request.id, request.operator in WORDS)] += 1
    return {state: number for state, number in found.items() if number}


def named(indices: Iterable[int]) -> str:
    """Generations by their indices: `generation 3`, `generations 3, 4`; empty for none."""
    numbers = [str(index) for index in indices]
    return f"generation{'s' * (len(numbers) > 1)} {', '.join(numbers)}" if numbers else ""


def doing(generations: Iterable[Generation]) -> str:
    """The unfinished generations and the number of their candidates in each state; empty for none."""
    generations, counts = list(generations), Counter[str]()
    for generation in generations:
        counts.update(states(generation))
    listed = ", ".join(f"{counts[state]} {state}" for state in STATES if counts[state])
    return ": ".join(filter(None, (named(generation.index for generation in generations), listed)))


def _state(generation: Generation, id: str, words: bool) -> str:
    if (result := generation.trained.get(id)) is not None:
        return "scored" if result.score else "failed"
    proposal, check = generation.proposals.get(id), generation.checks.get(id)
    if proposal is None:
        return STATES[0]
    if proposal.failure is not None or (check is not None and check.verdict.failure is not None):
        return "failed"
    if words:
        return "answered"
    if check is None:
        return "being checked"
    return "duplicate" if check.duplicate_of is not None else "training"


class TrainingBar:
    """The progress of a training.

    Its rate is that between the first and the last report: neither compilation before the first nor steps of an earlier
    process count.
    """

    def __init__(self, label: str, progress: Any, now: float) -> None:
        self.label, self.began = label, now
        self.latest: dict[int, float] = {}
        self.first: tuple[float, int] | None = None
        self.last: tuple[float, int] | None = None
        self.report(progress, now)

    def report(self, progress: Any, now: float) -> None:
        """Update it by a `jaxreward.training.Progress`."""
        self.progress, self.total, self.compiling = progress, max(1, progress.total), progress.phase == "compile"
        self.latest = {**self.latest, **progress.success}  # new: the drawing thread reads the old one
        if not self.compiling:
            self.last = (now, progress.steps)
            self.first = self.first or self.last

    @property
    def share(self) -> float:
        return min(1.0, self.progress.steps / self.total)

    @property
    def rate(self) -> float | None:
        """Environment steps a second, once they are known."""
        if self.first is None or self.last is None or self.last[0] <= self.first[0]:
            return None
        return (self.last[1] - self.first[1]) / (self.last[0] - self.first[0]) or None

    def left(self, now: float) -> float | None:
        """Seconds until it ends."""
        if self.rate is None or self.last is None:
            return None
        return max(0.0, (self.total - self.progress.steps) / self.rate - (now - self.last[0]))

    @property
    def best(self) -> str:
        """The best value of its candidates so far."""
        measure: Measure = self.progress.measure
        if not self.latest:
            return ""
        value = max(self.latest.values(), key=measure.oriented)
        return f"best {figure(value, 2 if measure.rate else 3, rate=measure.rate)}"

    def words(self, now: float) -> list[str]:
        """Its state in parts, the most important first."""
        p, parts = self.progress, list[str]()
        if self.compiling:
            parts.append("compiling" if p.steps else f"compiling for {span(now - self.began)}")
        if p.steps or not self.compiling:
            parts.append(f"{count(p.steps)} of {count(self.total)} steps")
        if self.rate is not None:
            parts.append(f"{count(self.rate)} steps/s")
        if (left := self.left(now)) is not None:
            parts.append(f"{span(left)} left")
        where = f"chunk {p.chunk + 1} of {p.chunks}" if p.chunks > 1 else ""
        return [*parts, *filter(None, (self.best, where))]


class Status:
    """The state of a search by the events and reports so far. Times are in seconds of any monotonic clock.

    Text is made when it is asked for, not when an event comes.
    """

    def __init__(self, now: float) -> None:
        self.bars: Mapping[str, TrainingBar] = {}  # of what trains, by its label without what is in brackets
        self.asking = ""  # what the proposer is doing
        self._progress: Progress[Any] | None = None
        self._began, self._before = now, Spent()
        self._timeline = Timeline()
        self._compiling, self._trainings = 0.0, 0
        self._compared = False  # the training on fresh seeds has ended

    # ---- input

    def logged(self, entry: Entry, progress: Progress[Any], now: float) -> None:
        """An event was logged, and `progress` is the run after it."""
        if self._progress is None or progress.started is not self._progress.started:
            self._begin(progress, now)
        self._progress = progress
        took = self._timeline.add(entry)
        match entry.event:
            case Trained(compile_s=compile_s, run_s=run_s):
                self._trainings += 1
                self._compiling += took * compile_s / (compile_s + run_s) if compile_s else 0.0
            case Baseline() | Asked():
                self._compared = isinstance(entry.event, Baseline)
            case _:
                pass
        if isinstance(entry.event, Trained) and progress.config.get("asynchronous"):
            index = self._timeline.of(entry.event).index
            self.bars = {key: bar for key, bar in self.bars.items() if not key.endswith(f"generation {index}")}
        elif isinstance(entry.event, Trained | Baseline) or (
            isinstance(entry.event, Asked | Told) and not progress.config.get("asynchronous")
        ):
            self.bars = {}
        if not any(generation.unproposed() for generation in progress.in_work.values()):
            self.asking = ""

    def _begin(self, progress: Progress[Any], now: float) -> None:
        """Begin with a search: a new or a resumed one, one inside another, or the outer one again."""
        trained = [result for generation in progress.in_work.values() for result in generation.trained.values()]
        best = reduce(better, (*progress.results.values(), *trained), None)
        self._began, self._before, self._timeline = now, progress.spent, Timeline(best=best)
        self._compiling, self._trainings, self.bars = 0.0, 0, {}

    def training(self, label: str, progress: Any, now: float) -> None:
        """A report of a training: `progress` is a `jaxreward.training.Progress`."""
        key = label.partition(" (")[0]
        if (bar := self.bars.get(key)) is not None and bar.label == label:
            bar.report(progress, now)
        else:  # a new mapping: the drawing thread reads the old one
            others = self.bars if self._overlapping else {}
            self.bars = {**others, key: TrainingBar(label, progress, now)}

    # ---- output

    @property
    def under_way(self) -> bool:
        """Whether something is running."""
        return bool(self.bars or self.asking) or (self._progress is not None and self._progress.ended is None)

    def head(self) -> list[str]:
        """The search: candidates trained, the best of them."""
        p = self._progress
        if p is None or p.started is None:
            return []
        trained = f"{p.spent.trained} of {p.config.get('candidates', '?')} candidates trained"
        best = self._timeline.best
        return [trained, f"best {score_text(best.score)} {best.candidate.id}"] if best else [trained]

    def now_doing(self) -> str:
        """The current activity, where nothing trains."""
        if self.asking or any(generation.unproposed() for generation in self._working):
            return self.asking or "asking the proposer"
        return "checking programs" if any(generation.unchecked() for generation in self._working) else ""

    def generation(self) -> str:
        """The unfinished generations and the number of their candidates in each state."""
        return doing(self._working)

    @property
    def bar(self) -> TrainingBar | None:
        """Of what trains, the first."""
        return next(iter(self.bars.values()), None)

    @property
    def _working(self) -> list[Generation]:
        return list(self._progress.in_work.values()) if self._progress else []

    @property
    def _overlapping(self) -> bool:
        """Whether several generations train at a time."""
        return self._progress is not None and bool(self._progress.config.get("asynchronous"))

    def times(self, now: float) -> list[str]:
        """Time elapsed and time left."""
        if self._progress is None:
            return []
        parts = [f"{span(now - self._began)} so far"]
        if (left := self.left(now)) is not None:
            parts.append(f"about {span(left)} left")
        return parts

    def shares(self) -> list[str]:
        """Shares of the wall time, the largest first, once a generation has trained."""
        seconds, total = {name: self._timeline.seconds.get(name, 0.0) for name in _PHASES}, self._timeline.wall_s
        seconds["compiling"] = self._compiling
        seconds[TRAINING] -= self._compiling
        if not seconds[TRAINING] or self._overlapping:  # the time between two events is of several generations
            return []
        listed = sorted(seconds.items(), key=lambda item: item[1], reverse=True)
        return [f"{s / total:.0%} {name}" for name, s in listed if s / total >= 0.005]

    def left(self, now: float) -> float | None:
        """Seconds until the run ends, by its budgets and its rate so far."""
        p, bar, working = self._progress, self.bar, self._working
        if p is None or p.started is None or now <= self._began:
            return None
        config, spent, before = p.config, p.spent, self._before
        if bar is not None and not working:
            return bar.left(now)  # the final training
        training = sum(
            states(generation).get("training", 0) * bar.share
            for generation in working for key, bar in self.bars.items()
            if not self._overlapping or key.endswith(f"generation {generation.index}")
        )  # fmt: skip
        done, passed = spent.trained - before.trained + training, now - self._began
        if done < 1 or self._compared:
            return None
        each = passed / done
        left = max(0.0, config.get("candidates", 0) - spent.trained - training) * each
        for used, at_first, limit in _limits(spent, before, config):
            if limit and used > at_first:
                left = min(left, max(0.0, limit - used) * passed / (used - at_first))
        return left + self._final(config, each, spent.env_steps - before.env_steps)

    def _final(self, config: Mapping[str, Any], each: float, steps: int) -> float:
        """Seconds that the training on fresh seeds takes, compiled in the time of a generation and at the rate of the
        `steps` so far, with the best-of-n search where there is one."""
        baselines = config.get("baselines", ())
        samples = config.get("candidates", 0) * each if "best-of-n" in baselines else 0.0
        of_agent = config.get("final_steps") or config.get("steps", 0)
        final = (1 + len(baselines)) * config.get("final_seeds", 0) * of_agent
        running = self._timeline.seconds.get(TRAINING, 0.0) - self._compiling
        if not (self._trainings and steps and final):
            return samples
        return samples + self._compiling / self._trainings + final * running / steps

    def cost(self) -> str:
        """The cost of language models."""
        return cost_line(self._progress.spent) if self._progress and self._progress.spent.calls else ""

    def sentence(self, now: float) -> str:
        """One sentence for a log: activity, progress, time elapsed and left."""
        if self.bars:
            parts = [f"{bar.label}: {', '.join(bar.words(now))}" for bar in list(self.bars.values())[:_IN_A_LINE]]
            parts += [f"{len(self.bars) - _IN_A_LINE} more in training"] * (len(self.bars) > _IN_A_LINE)
        else:
            where = named(generation.index for generation in self._working)
            parts = [": ".join(filter(None, (where, self.now_doing())))]
        return "; ".join(filter(None, (*parts, ", ".join(self.times(now)))))


def _limits(spent: Spent, before: Spent, config: Mapping[str, Any]) -> list[tuple[float, float, float]]:
    """Of every other budget what is used, what was used at first, and the limit, 0 for none."""
    llm = config.get("llm", {})
    return [
        (spent.env_steps, before.env_steps, config.get("max_env_steps") or 0),
        (spent.compile_s + spent.run_s, before.compile_s + before.run_s, config.get("max_device_s") or 0),
        (spent.attempts, before.attempts, config.get("max_attempts") or 0),
        (spent.cost_usd, before.cost_usd, llm.get("max_usd") or 0),
        (spent.tokens, before.tokens, llm.get("max_tokens_total") or 0),
        (spent.calls, before.calls, llm.get("max_requests") or 0),
    ]
