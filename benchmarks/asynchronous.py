"""What a search gains that does not wait for its slowest device, what it loses by asking before it was told, and how
many devices one loop keeps busy.

    python benchmarks/asynchronous.py --out benchmarks/results/asynchronous.json
    python benchmarks/asynchronous_page.py        # the tables and the picture of docs/appendix/asynchronous.md

The loop, the log and the strategies are the real ones, in virtual time (`benchmarks/virtual_time.py`): formulas stand
in place of proposing, checking and training. Only how long trainings of equal budget take is measured in a real search,
by part `times`; the same command goes on with the parts that its file lacks.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.command import begun, save, status_of
from benchmarks.landscapes import LANDSCAPES
from benchmarks.machine import machine, peak_resident, start_peak
from benchmarks.search_landscapes import Interval, paired
from benchmarks.virtual_time import Simulated, Simulation, Times, simulate
from jaxreward.commands.resolve import parse
from jaxreward.config import Arg, check_bounds
from jaxreward.errors import UserError
from jaxreward.evolution.settings import plain
from jaxreward.runs import Trained, read_log

PARTS = ("times", "staleness", "scale")
STRATEGIES = ("limen", "revolve")


@dataclass(frozen=True)
class AsynchronousSettings:
    """Simulate searches that wait for all devices, and searches that do not."""

    parts: tuple[str, ...] = PARTS
    """What to do: times of real trainings, what staleness costs, and how far the loop scales."""
    generations: Annotated[int, Arg(least=2)] = 40
    """Of the real search, on one device."""
    steps: Annotated[int, Arg(least=1)] = 60_000
    """Environment steps of each of its candidates."""
    landscapes: tuple[str, ...] = ("smooth", "noisy", "modular")
    """Where staleness is measured."""
    candidates: Annotated[int, Arg(least=1)] = 512
    """Of such a search."""
    devices: Annotated[int, Arg(least=1)] = 8
    """Of such a search."""
    batch: Annotated[int, Arg(least=1)] = 4
    """Candidates that a device trains at a time."""
    seeds: Annotated[int, Arg(least=2)] = 20
    """Searches of each kind."""
    scale: tuple[int, ...] = (1, 10, 100, 1000)
    """Devices, each with one candidate at a time."""
    scale_candidates: Annotated[int, Arg(least=1)] = 10_000
    """Of a search on so many devices."""
    out: Path | None = None
    """File for the results, written after every part."""

    def check(self) -> None:
        """Raise a UserError for the first invalid setting."""
        check_bounds(self)
        for name, known in (("parts", PARTS), ("landscapes", LANDSCAPES)):
            for value in getattr(self, name):
                if value not in known:
                    raise UserError(f"--{name} has no {value!r}: choose from {', '.join(known)}")


def times(s: AsynchronousSettings) -> dict[str, Any]:
    """How long trainings of one budget take, one after another on this machine."""
    from jaxreward import evolve

    with tempfile.TemporaryDirectory() as folder:
        evolve(
            "xland-easy", candidates=s.batch * s.generations, generation=s.batch, steps=s.steps, seeds=1, baselines=(),
            final_seeds=0, out=folder, name="run", progress=False,
        )  # fmt: skip
        entries = read_log(Path(folder) / "run" / "events.jsonl")
    trained = [entry.event for entry in entries if isinstance(entry.event, Trained)]
    seconds = [event.compile_s + event.run_s for event in trained if len(event.results) == s.batch]
    median, low, high = (float(q) for q in _quantiles(seconds, (0.5, 0.16, 0.84)))
    return {
        "seconds": [round(x, 3) for x in seconds], "median_s": median, "spread": (math.log(high) - math.log(low)) / 2,
        "slowest": max(seconds) / median, "load": round(os.getloadavg()[0], 1), "steps": s.steps, "batch": s.batch,
    }  # fmt: skip


def _quantiles(values: list[float], shares: tuple[float, ...]) -> Iterator[float]:
    values = sorted(values)
    for share in shares:
        yield values[min(len(values) - 1, int(share * len(values)))]


def ways(s: AsynchronousSettings, spread: float) -> dict[str, Simulation]:
    """The searches that are compared, but for their landscape, strategy and seed."""
    usual = Simulation("", "", s.candidates, 0, s.devices, s.batch, times=Times(spread=spread))
    d = s.devices
    return {
        "one device": dataclasses.replace(usual, devices=1, asynchronous=False),
        "waits": dataclasses.replace(usual, asynchronous=False),
        f"asynchronous, {d + 1}": dataclasses.replace(usual, in_flight=d + 1),
        f"asynchronous, {d + d // 2}": dataclasses.replace(usual, in_flight=d + d // 2),
        f"asynchronous, {2 * d}": dataclasses.replace(usual, in_flight=2 * d),
    }


def staleness(s: AsynchronousSettings, spread: float, rows: list[dict[str, Any]]) -> Iterator[None]:
    """Add how good the best of a search is after the same candidates, and after the same time; a step for each
    landscape and strategy that `rows` lack."""
    known = {(row["landscape"], row["strategy"]) for row in rows}
    for landscape, strategy in itertools.product(s.landscapes, STRATEGIES):
        if (landscape, strategy) in known:
            continue
        found = {
            name: [_simulated(dataclasses.replace(way, landscape=landscape, strategy=strategy, seed=seed))
                   for seed in range(s.seeds)]
            for name, way in ways(s, spread).items()
        }  # fmt: skip
        rows += [_row(landscape, strategy, name, found) for name in found]
        shown = ", ".join(f"{row['way']} {row['truth']:.3f}" for row in rows[-len(found) :])
        print(f"{landscape}, {strategy}: {shown}", flush=True)
        yield


def _row(landscape: str, strategy: str, name: str, found: dict[str, list[Simulated]]) -> dict[str, Any]:
    mine, waits = found[name], found["waits"]
    ends = [a.seconds for a in found[[*found][2]]]  # those of the asynchronous search with the default
    truths, others = [one.truth for one in mine], [one.truth for one in waits]
    in_time = [one.truth_after(end) for one, end in zip(mine, ends, strict=True)]
    waits_in_time = [one.truth_after(end) for one, end in zip(waits, ends, strict=True)]
    of = paired(truths, others), paired(in_time, waits_in_time)
    grid = [k / 20 for k in range(1, 21)]
    longest = statistics.fmean(one.seconds for one in waits)
    return {
        "landscape": landscape, "strategy": strategy, "way": name,
        "truth": Interval.of(truths).mean, "half": Interval.of(truths).half,
        "difference": of[0].mean, "difference_half": of[0].half,
        "in_time": Interval.of(in_time).mean, "in_time_difference": of[1].mean, "in_time_half": of[1].half,
        "seconds": statistics.fmean(one.seconds for one in mine), "idle": statistics.fmean(one.idle for one in mine),
        "staleness": statistics.fmean(one.staleness for one in mine),
        "curve": [[round(share * longest), statistics.fmean(one.truth_after(share * longest) for one in mine)]
                  for share in grid],
    }  # fmt: skip


def _simulated(sim: Simulation) -> Simulated:
    with tempfile.TemporaryDirectory() as folder, unsynced():
        return simulate(sim, Path(folder))


@contextmanager
def unsynced() -> Iterator[None]:
    """Logs are not forced onto the disk: many short searches would measure that alone."""
    fsync, os.fsync = os.fsync, lambda _: None
    try:
        yield
    finally:
        os.fsync = fsync


def scale(s: AsynchronousSettings, spread: float, rows: list[dict[str, Any]]) -> Iterator[None]:
    """Add one search on more and more devices, its log on the disk of this machine; a step for each that `rows`
    lack."""
    known = {(row["devices"], row["asynchronous"]) for row in rows}
    for devices, asynchronous in itertools.product(s.scale, (False, True)):
        if (devices, asynchronous) in known:
            continue
        sim = Simulation(
            "smooth", "limen", s.scale_candidates, 0, devices, 1, asynchronous,
            in_flight=2 * devices if asynchronous else 0, times=Times(spread=spread),
        )  # fmt: skip
        start_peak()
        before, begin = peak_resident(), time.perf_counter()
        with tempfile.TemporaryDirectory() as folder:
            one = simulate(sim, Path(folder))
            log = (Path(folder) / "run" / "events.jsonl").stat().st_size
        wall = time.perf_counter() - begin
        rows.append({
            "devices": devices, "asynchronous": asynchronous, "trained": one.trained, "truth": one.truth,
            "seconds": one.seconds, "idle": one.idle, "staleness": one.staleness, "events": one.events,
            "events_per_s": one.events / wall, "needed_per_s": one.events / one.seconds, "loop_s": one.loop_s,
            "wall_s": wall, "log_mb": log / 1e6, "grown_mb": (peak_resident() - before) / 1e6,
        })  # fmt: skip
        way, row = "asynchronous" if asynchronous else "waits", rows[-1]
        print(f"{devices} devices, {way}: idle {one.idle:.2f}, {row['events_per_s']:.0f} events a second, "
              f"{row['needed_per_s']:.1f} needed", flush=True)  # fmt: skip
        yield


def run(s: AsynchronousSettings) -> dict[str, Any]:
    """The parts that the file of results lacks."""
    s.check()
    names = ("landscapes", "candidates", "devices", "batch", "seeds", "scale", "scale_candidates")
    searches = {name: plain(getattr(s, name)) for name in names}
    how = {"benchmark": "asynchronous", "searches": searches}
    report = begun(s.out, how) or {**how, **machine(), "assumed": dataclasses.asdict(Times())}
    if "times" in s.parts and "times" not in report:
        report["times"] = times(s)
        print(f"a training takes {report['times']['median_s']:.1f} s, spread {report['times']['spread']:.2f}, the "
              f"slowest {report['times']['slowest']:.1f} times as long", flush=True)  # fmt: skip
        save(report, s.out)
    spread = report["times"]["spread"] if "times" in report else Times.spread
    for part, of in (("staleness", staleness), ("scale", scale)):
        for _ in of(s, spread, report.setdefault(part, [])) if part in s.parts else ():
            save(report, s.out)
    return report


def main(argv: list[str] | None = None) -> int:
    return status_of("asynchronous", lambda: run(parse(AsynchronousSettings, None, argv, "asynchronous.py")) and 0)


if __name__ == "__main__":
    sys.exit(main())
