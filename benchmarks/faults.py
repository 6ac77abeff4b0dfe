"""What happens to a search when its disk is full, its processes are killed, its machine or its clock gives out.

    python benchmarks/faults.py --out benchmarks/results/faults.json
    python benchmarks/faults.py --page                  # its table in docs/appendix/faults.md

A small search runs undisturbed; then the same search meets each fault, is resumed, and its end is compared. What is
lost are complete lines of its log that are not at their place afterwards; what the user saw is the end of what the
command wrote. Full and read-only disks are file systems in memory, in a namespace of their own: where the system allows
none, these two are said to be left out. Those of Ray need the extra `ray`. The same command goes on with the faults
that its file lacks.
"""

from __future__ import annotations

import dataclasses
import importlib.util
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.command import begun, save, status_of
from benchmarks.table import between
from jaxreward.commands.resolve import parse
from jaxreward.errors import UserError
from jaxreward.formatting import counted
from jaxreward.runs import Checked, Proposed, Told, Trained, read_log

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "benchmarks" / "results" / "faults.json"
PAGE = ROOT / "docs" / "appendix" / "faults.md"
START, END = "<!-- results -->", "<!-- /results -->"

SEARCH = (
    "evolve", "--task", "probe-choice", "--candidates", "4", "--generation", "2", "--seeds", "1", "--baselines",
    "--final-seeds", "0", "--ppo.envs", "16", "--ppo.unroll", "16", "--name", "run",
)  # fmt: skip
LIMIT_S = 300


@dataclass
class Victim:
    """A search in a folder, as a command.

    Attributes:
        steps: environment steps of each candidate.
        cache: of what JAX compiles, so that a training begins soon after its programs were checked.
        training_s: about how long one takes.
        more: further options.
        seen: what the last command wrote at its end.
    """

    folder: Path
    steps: int
    cache: Path
    training_s: float = 0.0
    more: tuple[str, ...] = ()
    seen: str = ""

    @property
    def env(self) -> dict[str, str]:
        cache = {"JAX_COMPILATION_CACHE_DIR": str(self.cache), "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0"}
        return {**os.environ, "PYTHONPATH": str(ROOT), "JAX_PLATFORMS": "cpu", **cache}

    @property
    def log(self) -> Path:
        return self.folder / "run" / "events.jsonl"

    def words(self, *more: str, via: tuple[str, ...] = ("-m", "jaxreward.cli")) -> list[str]:
        """The command."""
        search = (*SEARCH, "--steps", str(self.steps), "--out", str(self.folder), *self.more, *more)
        return [sys.executable, *via, *search]

    def start(self, *more: str, via: tuple[str, ...] = ("-m", "jaxreward.cli")) -> subprocess.Popen[str]:
        return subprocess.Popen(
            self.words(*more, via=via), env=self.env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )

    def end(self, process: subprocess.Popen[str]) -> int:
        """Wait for it; its exit status."""
        out, _ = process.communicate(timeout=LIMIT_S)
        self.seen = last_words(out)
        return process.returncode

    def run(self, *more: str, via: tuple[str, ...] = ("-m", "jaxreward.cli")) -> int:
        return self.end(self.start(*more, via=via))

    def until(self, text: str, process: subprocess.Popen[str]) -> None:
        """Wait until its log has `text`."""
        end = time.monotonic() + LIMIT_S
        while time.monotonic() < end and process.poll() is None:
            if self.log.exists() and text in self.log.read_text():
                return
            time.sleep(0.02)
        raise UserError(f"{text} did not come: {self.end(process)} {self.seen}")

    def lines(self) -> list[str]:
        """The complete lines of its log."""
        return self.log.read_text().split("\n")[:-1] if self.log.exists() else []

    def substance(self) -> list[Any]:
        """What of its log an undisturbed search has too."""
        kept = []
        for entry in read_log(self.log):
            if isinstance(event := entry.event, Trained):
                event = event.model_copy(update={"compile_s": 0.0, "run_s": 0.0})
            if isinstance(event, Proposed | Checked | Trained | Told):
                kept.append(event)
        return kept


def last_words(out: str) -> str:
    """The end of what a command wrote, in a line; all of a traceback's last line."""
    lines = [line.strip() for line in out.strip().splitlines() if line.strip()]
    if any(line.startswith("Traceback") for line in lines):
        return f"Traceback: {lines[-1]}"
    return lines[-1].replace(str(ROOT), ".") if lines else ""


@dataclass
class Met:
    """How a search met a fault: its exit status, what the user saw, its log then, and whether it is to be resumed, or
    the exit status of having been resumed."""

    status: int | None
    seen: str
    lines: list[str]
    resume: bool = True
    resumed: int | None = None


Fault = Callable[[Victim], Met]


def met(victim: Victim, status: int | None, resume: bool = True) -> Met:
    return Met(status, victim.seen, victim.lines(), resume)


# ---- processes


def killed(how: signal.Signals) -> Fault:
    """The command, while it trains."""

    def fault(victim: Victim) -> Met:
        process = victim.start()
        victim.until('"checked"', process)
        time.sleep(1.5 + 0.4 * victim.training_s)
        process.send_signal(how)
        return met(victim, victim.end(process))

    return fault


def descendants(pid: int) -> dict[int, str]:
    """The processes below one, with their commands."""
    parents = dict[int, int]()
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            parents[int(path.parent.name)] = int(path.read_text().rpartition(")")[2].split()[1])
        except OSError:
            continue
    found, more = dict[int, str](), {pid}
    while more := {child for child, parent in parents.items() if parent in more}:
        for child in more:
            try:
                found[child] = Path(f"/proc/{child}/cmdline").read_text().replace("\0", " ")
            except OSError:
                continue
    return found


def checker_killed(victim: Victim) -> Met:
    """All helpers that check programs, as soon as they are there."""
    process, count = victim.start(), 0
    end = time.monotonic() + LIMIT_S
    while not count and time.monotonic() < end and process.poll() is None:
        for pid, command in descendants(process.pid).items():
            if "jaxreward.programs" in command:
                os.kill(pid, signal.SIGKILL)
                count += 1
        time.sleep(0.02)
    status = victim.end(process)
    return met(victim, status, resume=status != 0)


def two_on_a_run(victim: Victim) -> Met:
    """A second command on the run that the first one writes."""
    first = victim.start()
    victim.until('"checked"', first)
    status = victim.run("--resume")
    found = met(victim, status, resume=False)
    victim.end(first)
    return found


def torn(victim: Victim) -> Met:
    """The last line of the log is half there, as after a loss of power."""
    process = victim.start()
    victim.until('"told"', process)
    process.kill()
    victim.end(process)
    with victim.log.open("rb+") as file:
        file.truncate(victim.log.stat().st_size - 40)
    return met(victim, process.returncode)


# ---- disks and clocks


def file_system(fault: str, mend: str, again: bool = False) -> Fault:
    """On a file system in memory, `$DISK`: commands of the shell for the fault, once a program was checked, and to mend
    it when the command has ended. With `again` the command is stopped before the fault, and resumed in it."""

    def on_it(victim: Victim) -> Met:
        disk, out, log = victim.folder / "disk", victim.folder / "out.txt", victim.folder / "log.jsonl"
        disk.mkdir(parents=True)
        here = dataclasses.replace(victim, folder=disk)
        script = f"""
            mount -t tmpfs -o size=4m none "$DISK" || exit 99
            "$@" > '{out}' 2>&1 & pid=$!
            until grep -qs '"checked"' "$DISK/run/events.jsonl" || ! kill -0 $pid 2>/dev/null; do sleep 0.05; done
            {f'kill -TERM $pid; wait $pid; {fault}; "$@" --resume > {out} 2>&1 & pid=$!' if again else fault}
            wait $pid; status=$?
            cp "$DISK/run/events.jsonl" '{log}'
            {mend}
            cp -r "$DISK/run" '{victim.folder}/run'
            exit $status
        """
        env = {**victim.env, "DISK": str(disk)}
        words = ["unshare", "-rm", "sh", "-c", script, "sh", *here.words()]
        done = subprocess.run(words, env=env, timeout=LIMIT_S, check=False)
        if done.returncode == 99 or not out.exists():
            raise UserError("no file system can be mounted here")
        victim.seen = last_words(out.read_text())
        return Met(done.returncode, victim.seen, log.read_text().split("\n")[:-1])

    return on_it


def machine_with(what: str) -> Fault:
    """A fault of `benchmarks/faulty.py`."""

    def fault(victim: Victim) -> Met:
        status = victim.run(via=(str(ROOT / "benchmarks" / "faulty.py"), what))
        return met(victim, status, resume=status != 0)

    return fault


# ---- Ray


@contextmanager
def cluster() -> Iterator[Any]:
    """Two nodes of one CPU on this machine."""
    from ray.cluster_utils import Cluster

    nodes: Any = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False})
    nodes.second = nodes.add_node(num_cpus=1)
    try:
        yield nodes
    finally:
        nodes.shutdown()


def of_ray(what: Callable[[Any, subprocess.Popen[str]], None]) -> Fault:
    """On a cluster of two nodes, while it trains; it is resumed there."""

    def fault(victim: Victim) -> Met:
        with cluster() as nodes:
            victim.more = ("--executor", "ray", "--ray-address", nodes.address)
            process = victim.start()
            victim.until('"checked"', process)
            end = time.monotonic() + LIMIT_S
            while not workers_of_ray() and process.poll() is None and time.monotonic() < end:
                time.sleep(0.2)
            time.sleep(3.0 + 0.4 * victim.training_s)
            what(nodes, process)
            then = met(victim, victim.end(process), resume=False)
            if then.status:
                then.resumed = victim.run("--resume")
        return then

    return fault


def workers_of_ray() -> list[int]:
    """Those of nodes below this process: there may be others on the machine."""
    return [pid for pid, command in descendants(os.getpid()).items() if command.startswith("ray::Worker")]


def kill_actor(nodes: Any, process: subprocess.Popen[str]) -> None:
    if not (found := workers_of_ray()):
        raise UserError("there is no worker of Ray to kill")
    os.kill(found[0], signal.SIGKILL)


def kill_node(nodes: Any, process: subprocess.Popen[str]) -> None:
    nodes.remove_node(nodes.second, allow_graceful=False)


def kill_driver(nodes: Any, process: subprocess.Popen[str]) -> None:
    process.kill()


FAULTS: dict[str, tuple[str, Fault]] = {
    "SIGKILL of the command": ("while it trains", killed(signal.SIGKILL)),
    "SIGTERM": ("while it trains, as a scheduler preempts", killed(signal.SIGTERM)),
    "SIGKILL of the checker": ("all helper processes, at once", checker_killed),
    "two processes on a run": ("a second `--resume` while the first trains", two_on_a_run),
    "loss of power": ("killed, the last line of the log torn", torn),
    "disk full": (
        "filled up after the first check",
        file_system('cat /dev/zero > "$DISK/ballast" 2>/dev/null', 'rm "$DISK/ballast"'),
    ),
    "disk read-only": (
        "when a stopped run is resumed",
        file_system('mount -o remount,ro "$DISK"', 'mount -o remount,rw "$DISK"', again=True),
    ),
    "clock goes back": ("by a day, while it runs", machine_with("clock")),
    "slow file system": ("every fsync takes 0.25 s", machine_with("slow")),
    "SIGKILL of a Ray worker": ("while it trains", of_ray(kill_actor)),
    "a Ray node dies": ("one of two, while it trains", of_ray(kill_node)),
    "SIGKILL of Ray's driver": ("the command, while workers train", of_ray(kill_driver)),
}  # fmt: skip


@dataclass(frozen=True)
class FaultSettings:
    """Have a search meet faults, resume it, and say what was lost."""

    faults: tuple[str, ...] = tuple(FAULTS)
    """Which."""
    steps: int = 300_000
    """Environment steps of each candidate; a training must take some seconds, to be hit."""
    page: bool = False
    """Write the results that are there into the page of the documentation."""
    out: Path | None = None
    """File for the results, written after every fault."""


def suffered(name: str, undisturbed: Victim) -> dict[str, Any]:
    """What became of a search that met a fault."""
    how, fault = FAULTS[name]
    if "Ray" in name and importlib.util.find_spec("ray") is None:
        return {"fault": name, "how": how, "left_out": 'the extra "ray" is not installed'}
    with tempfile.TemporaryDirectory() as folder:
        victim = dataclasses.replace(undisturbed, folder=Path(folder) / "it")
        try:
            then = fault(victim)
        except UserError as error:
            return {"fault": name, "how": how, "left_out": str(error)}
        seen = then.seen.replace(folder, "...")
        resumed = victim.run("--resume") if then.resume else then.resumed
        lines = victim.lines()
        lost = sum(k >= len(lines) or line != lines[k] for k, line in enumerate(then.lines))
        return {
            "fault": name, "how": how, "status": then.status, "seen": seen, "events": len(then.lines),
            "resumed": resumed, "resumed_seen": victim.seen.replace(folder, "...") if resumed else "", "lost": lost,
            "same": victim.substance() == undisturbed.substance(),
        }  # fmt: skip


def run(s: FaultSettings) -> dict[str, Any]:
    """Every fault that the file of results lacks."""
    from benchmarks.machine import machine

    unknown = [name for name in s.faults if name not in FAULTS]
    if unknown:
        raise UserError(f"there is no fault {unknown[0]!r}: choose from {', '.join(FAULTS)}")
    how = {"benchmark": "faults", "steps": s.steps}
    report = begun(s.out, how) or {**how, **machine(), "rows": []}
    known = {row["fault"] for row in report["rows"]}
    with tempfile.TemporaryDirectory() as folder:
        undisturbed = Victim(Path(folder), s.steps, Path(folder) / "cache")
        if set(s.faults) - known:
            if undisturbed.run():
                raise UserError(f"the undisturbed search failed: {undisturbed.seen}")
            trained = [e.event for e in read_log(undisturbed.log) if isinstance(e.event, Trained)]
            undisturbed.training_s = trained[0].run_s
        on_ray: Victim | None = None  # where chunks are others, which round differently
        for name in (name for name in s.faults if name not in known):
            if "Ray" in name and on_ray is None and importlib.util.find_spec("ray") is not None:
                on_ray = dataclasses.replace(undisturbed, folder=Path(folder) / "ray")
                of_ray(lambda nodes, process: None)(on_ray)
                on_ray.more = ()
            beside = on_ray if "Ray" in name and on_ray is not None else undisturbed
            report["rows"].append(row := suffered(name, beside))
            print(f"{name}: {row.get('left_out') or row}", flush=True)
            save(report, s.out)
    return report


def markdown(report: dict[str, Any]) -> str:
    """The table of a report."""
    cells = []
    for row in report["rows"]:
        if "left_out" in row:
            cells.append([row["fault"], row["how"], "", f"left out: {row['left_out']}", "", ""])
            continue
        status = {-9: "killed", 0: "0"}.get(row["status"], str(row["status"]))
        ended = "same end" if row["same"] else "**another end**"
        after = "" if row["resumed"] is None else f"resumed (status {row['resumed']}), "
        said = row["seen"].replace("|", "\\|").replace("<", "&lt;")
        cells.append([row["fault"], row["how"], status, said, after + ended, f"{row['lost']} of {row['events']}"])
    columns = ("fault", "", "exit status", "the last line that the user saw", "then", "events lost")
    head, *body = (f"| {' | '.join(line)} |" for line in (columns, *cells))
    where = f"{report['cpu']}, {counted(report['cores'], 'core')}"
    about = f"{where}; jax {report['versions']['jax']}; commit {report['commit']}."
    return "\n".join([about, "", head, "|---|---|--:|---|---|--:|", *body]) + "\n"


def page(path: Path = RESULTS) -> None:
    """Write the table into the page."""
    PAGE.write_text(between(PAGE.read_text(), START, END, markdown(json.loads(path.read_text()))))


def main(argv: list[str] | None = None) -> int:
    s = parse(FaultSettings, None, argv, "faults.py")
    return status_of("faults", lambda: page(s.out or RESULTS) if s.page else run(s) and 0)


if __name__ == "__main__":
    sys.exit(main())
