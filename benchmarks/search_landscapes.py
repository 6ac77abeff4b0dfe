"""Search strategies against best-of-n on landscapes whose optimum is known, without training.

    python benchmarks/search_landscapes.py --processes 2     # minutes; writes benchmarks/results/search_landscapes.json
    python benchmarks/landscape_table.py                     # its tables and picture, in docs/appendix/landscapes.md

docs/appendix/landscapes.md says what is measured and how to read it.
"""

from __future__ import annotations

import dataclasses
import math
import multiprocessing
import statistics
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from scipy.special import stdtrit

from benchmarks.command import save, status_of
from benchmarks.landscape_entries import ABLATIONS, BASELINE, EXPECTED, FULL, STRATEGIES, Entry
from benchmarks.landscape_trial import Outcome, Trial, run
from benchmarks.landscapes import LANDSCAPES
from jaxreward.commands.resolve import parse
from jaxreward.errors import UserError

RESULTS = Path(__file__).resolve().parent / "results" / "search_landscapes.json"
PARTS = ("strategies", "insight", "ablations", "long")


@dataclass(frozen=True)
class LandscapeSettings:
    """Compare search strategies on landscapes whose optimum is known; nothing is trained."""

    parts: tuple[str, ...] = PARTS
    """What to run: strategies, the same without insight, ablations of rf-agent, one long search each."""
    landscapes: tuple[str, ...] = tuple(LANDSCAPES)
    """On which landscapes."""
    budgets: tuple[int, ...] = (30, 80, 512)
    """Candidates of a search."""
    ablation_budgets: tuple[int, ...] = (80, 512)
    """Candidates of a search of the ablations."""
    seeds: int = 20
    """Searches of each kind; every seed has a landscape of its own, the same for all strategies."""
    long: int = 10_000
    """Candidates of the long search."""
    generation: int = 8
    """Candidates of a generation."""
    insight: float = 0.25
    """The chance that an edit goes where feedback rightly points."""
    processes: int = 1
    """Processes that share the work; the long searches, which are timed, run one by one."""
    tiny: bool = False
    """The smallest run of everything, to see that it works; writes only to --out."""
    out: Path | None = None
    """File for the results; benchmarks/results/search_landscapes.json unless --tiny."""

    def check(self) -> None:
        """Raise a UserError for the first invalid setting."""
        for name, known in (("parts", PARTS), ("landscapes", LANDSCAPES)):
            for value in getattr(self, name):
                if value not in known:
                    raise UserError(f"--{name} has no {value!r}: choose from {', '.join(known)}")
        if self.seeds < 2:
            raise UserError("--seeds must be at least 2, or there is no interval")
        counts = (*self.budgets, *self.ablation_budgets, self.long, self.generation, self.processes)
        if min(counts) < 1:
            raise UserError("budgets, --long, --generation and --processes must be at least 1")
        if not 0.0 <= self.insight <= 0.5:
            raise UserError("--insight must be from 0 to 0.5")

    def smallest(self) -> LandscapeSettings:
        return dataclasses.replace(
            self, landscapes=self.landscapes[:2], budgets=(16,), ablation_budgets=(16,), seeds=2, long=48, tiny=True
        )


@dataclass(frozen=True)
class Interval:
    """A mean over seeds with half the width of its 95 % interval (Student's t)."""

    mean: float
    half: float

    @classmethod
    def of(cls, values: Sequence[float]) -> Interval:
        n = len(values)
        width = float(stdtrit(n - 1, 0.975)) * statistics.stdev(values) / math.sqrt(n)
        return cls(statistics.fmean(values), width)

    @property
    def verdict(self) -> str:
        """What the interval of a difference says."""
        if self.mean - self.half > 0.0:
            return "better"
        return "worse" if self.mean + self.half < 0.0 else "no difference"


def paired(values: Sequence[float], others: Sequence[float]) -> Interval:
    """The mean difference of two searches of the same seeds."""
    return Interval.of([value - other for value, other in zip(values, others, strict=True)])


Runner = Callable[[Sequence[Trial]], Iterable[Outcome]]


class Comparison:
    """The report of one benchmark, in the making."""

    def __init__(self, settings: LandscapeSettings, runner: Runner, note: Callable[[str], None]) -> None:
        self.settings, self.runner, self.note = settings, runner, note

    def strategies(self, budgets: Sequence[int], insight: float) -> list[dict[str, Any]]:
        """A row for each landscape, budget and strategy: the truth, and the difference to best-of-n."""
        rows = []
        for (landscape, budget), found in self._all(STRATEGIES, budgets, insight).items():
            base = [outcome.truth for outcome in found[BASELINE.label]]
            for entry in STRATEGIES:
                outcomes = found[entry.label]
                row = self._row(entry, landscape, budget, outcomes)
                difference = paired(row["truth"], base)
                row |= {"difference": difference.mean, "difference_half": difference.half}
                row |= {"verdict": difference.verdict, "expected": landscape in EXPECTED[entry.strategy]}
                row["curve"] = _mean_curve(outcomes, budget)
                rows.append(row)
        return rows

    def ablations(self) -> list[dict[str, Any]]:
        """A row for each landscape, budget and ablation: the difference to the full strategy in percent of it.

        The landscape `all` is the mean over the landscapes with structure, seed by seed.
        """
        entries = (FULL, *{e.label: e for group in ABLATIONS.values() for e in group}.values())
        found = self._all(entries, self.settings.ablation_budgets, self.settings.insight)
        groups = {entry.label: name for name, group in ABLATIONS.items() for entry in group}
        rows = []
        for budget in self.settings.ablation_budgets:
            truths = {name: _truths(found[name, budget]) for name in self.settings.landscapes}
            informative = [truths[name] for name in truths if name != "needle"]
            truths["all"] = {e.label: _seedwise([t[e.label] for t in informative]) for e in entries}
            for landscape, truth in truths.items():
                whole = statistics.fmean(truth["full"])
                for label in truth:
                    change = paired(truth[label], truth["full"])
                    scale = 100.0 / whole if whole else 0.0
                    row = {"group": groups.get(label, ""), "entry": label, "landscape": landscape, "budget": budget}
                    row |= {"mean": statistics.fmean(truth[label]), "percent": scale * change.mean}
                    rows.append({**row, "percent_half": scale * change.half, "verdict": change.verdict})
        return rows

    def long(self) -> list[dict[str, Any]]:
        """One search of many candidates for each landscape and strategy, and the processor seconds that it takes."""
        rows = []
        for landscape in self.settings.landscapes:
            for entry in STRATEGIES:
                trial = self._trial(entry, landscape, self.settings.long, 0, self.settings.insight)
                outcome = run(trial)
                row = {"entry": entry.label, "landscape": landscape, "candidates": outcome.trained}
                row |= {"truth": outcome.truth, "seconds": outcome.seconds, "strategy_seconds": outcome.strategy_s}
                rows.append({**row, "ended": outcome.ended})
            self.note(f"{landscape}: {self.settings.long:,} candidates each")
        return rows

    def _trial(self, entry: Entry, landscape: str, budget: int, seed: int, insight: float) -> Trial:
        options, generation = dict(entry.options), self.settings.generation
        return Trial(landscape, entry.strategy, budget, seed, options, entry.words, entry.fidelity, insight, generation)

    def _all(
        self, entries: Sequence[Entry], budgets: Sequence[int], insight: float
    ) -> dict[tuple[str, int], dict[str, list[Outcome]]]:
        """The outcomes of all seeds by landscape and budget, then by entry."""
        places = [(name, budget, e) for name in self.settings.landscapes for budget in budgets for e in entries]
        seeds = range(self.settings.seeds)
        trials = [self._trial(entry, name, budget, s, insight) for name, budget, entry in places for s in seeds]
        different = {repr(trial): trial for trial in trials}  # two tables ask for the same ablation
        self.note(f"{len(different):,} searches of {', '.join(map(str, budgets))} candidates")
        known = dict(zip(different, self.runner(list(different.values())), strict=True))
        outcomes = (known[repr(trial)] for trial in trials)
        found: dict[tuple[str, int], dict[str, list[Outcome]]] = {}
        for name, budget, entry in places:
            group = found.setdefault((name, budget), {})
            group[entry.label] = [next(outcomes) for _ in seeds]
        return found

    @staticmethod
    def _row(entry: Entry, landscape: str, budget: int, outcomes: Sequence[Outcome]) -> dict[str, Any]:
        truth = [outcome.truth for outcome in outcomes]
        interval = Interval.of(truth)
        row = {"entry": entry.label, "landscape": landscape, "budget": budget, "mean": interval.mean}
        row |= {"half": interval.half, "truth": truth}
        for name in ("trained", "attempts", "asked"):
            row[name] = statistics.fmean(getattr(outcome, name) for outcome in outcomes)
        return row


def _truths(outcomes: dict[str, list[Outcome]]) -> dict[str, list[float]]:
    return {label: [outcome.truth for outcome in found] for label, found in outcomes.items()}


def _seedwise(columns: Sequence[Sequence[float]]) -> list[float]:
    """The mean over landscapes, seed by seed."""
    return [statistics.fmean(values) for values in zip(*columns, strict=True)]


def _mean_curve(outcomes: Sequence[Outcome], budget: int) -> list[tuple[int, float]]:
    """The truth of the best so far, mean over seeds, at some numbers of trained candidates."""
    points = sorted({min(budget, round(budget * k / 32)) for k in range(1, 33)} - {0})

    def at(outcome: Outcome, point: int) -> float:
        return next((truth for trained, truth in reversed(outcome.curve) if trained <= point), 0.0)

    return [(point, statistics.fmean(at(outcome, point) for outcome in outcomes)) for point in points]


def compare(settings: LandscapeSettings, note: Callable[[str], None]) -> dict[str, Any]:
    """The report: rows of every part that was asked for, and what it was made on."""
    report: dict[str, Any] = {"benchmark": "search_landscapes", "settings": _plain(settings)}
    with _runner(settings.processes) as runner:
        comparison = Comparison(settings, runner, note)
        if "strategies" in settings.parts:
            report["strategies"] = comparison.strategies(settings.budgets, settings.insight)
        if "insight" in settings.parts:
            report["without_insight"] = comparison.strategies(settings.ablation_budgets[:1], 0.0)
        if "ablations" in settings.parts:
            report["ablations"] = comparison.ablations()
    if "long" in settings.parts:
        report["long"] = comparison.long()
    from benchmarks.machine import machine  # imports JAX, which the searches do without

    return {**report, **machine()}


@contextmanager
def _runner(processes: int) -> Iterator[Runner]:
    """Runs trials in order of the list, in this process or in several."""
    if processes == 1:
        yield lambda trials: map(run, trials)
        return
    with ProcessPoolExecutor(processes, multiprocessing.get_context("spawn")) as pool:
        yield lambda trials: pool.map(run, trials, chunksize=8)


def _plain(settings: LandscapeSettings) -> dict[str, Any]:
    values = dataclasses.asdict(settings)
    del values["out"]
    return values


def measure(settings: LandscapeSettings) -> None:
    """Compare, and write the results where they belong."""
    settings = settings.smallest() if settings.tiny else settings
    settings.check()
    report = compare(settings, lambda text: print(text, file=sys.stderr, flush=True))
    out = settings.out or (None if settings.tiny else RESULTS)
    save(report, out, indent=None)
    if out is not None:
        print(f"wrote {out}")


def main(argv: list[str] | None = None) -> int:
    read = lambda: parse(LandscapeSettings, None, argv, "search_landscapes.py")  # noqa: E731
    return status_of("search_landscapes", lambda: measure(read()))


if __name__ == "__main__":
    sys.exit(main())
