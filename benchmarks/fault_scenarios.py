"""The faults of `faults.py`: how a search is run, and what is done to it."""

from __future__ import annotations

import dataclasses
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jaxreward.errors import UserError
from jaxreward.runs import Asked, Checked, Proposed, Told, Trained, read_log

ROOT = Path(__file__).resolve().parents[1]

SEARCH = (
    "evolve", "--task", "probe-choice", "--candidates", "4", "--generation", "2", "--seeds", "1", "--baselines",
    "--final-seeds", "0", "--ppo.envs", "16", "--ppo.unroll", "16", "--name", "run",
)  # fmt: skip
ASYNCHRONOUS = ("--asynchronous", "--in-flight", "3", "--candidates", "8")
VIA = ("-m", "jaxreward.cli")
LIMIT_S = 300


@dataclass
class Victim:
    """A search in a folder, as a command.

    Attributes:
        steps: environment steps of each candidate.
        cache: of what JAX compiles, so that a training begins soon after its programs were checked.
        training_s: about how long one takes.
        more: further options.
        asynchronous: whether it searches so, on two devices.
        seen: what the last command wrote at its end.
    """

    folder: Path
    steps: int
    cache: Path
    training_s: float = 0.0
    more: tuple[str, ...] = ()
    asynchronous: bool = False
    seen: str = ""

    @property
    def env(self) -> dict[str, str]:
        cache = {"JAX_COMPILATION_CACHE_DIR": str(self.cache), "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0"}
        devices = {"JAX_NUM_CPU_DEVICES": "2"} if self.asynchronous else {}
        return {**os.environ, "PYTHONPATH": str(ROOT), "JAX_PLATFORMS": "cpu", **cache, **devices}

    @property
    def log(self) -> Path:
        return self.folder / "run" / "events.jsonl"

    def words(self, *more: str) -> list[str]:
        """The command."""
        kind = ASYNCHRONOUS if self.asynchronous else ()
        return [*SEARCH, "--steps", str(self.steps), "--out", str(self.folder), *kind, *self.more, *more]

    def start(self, *more: str) -> subprocess.Popen[str]:
        return self.process(self.words(*more))

    def process(self, words: Sequence[str], via: tuple[str, ...] = VIA) -> subprocess.Popen[str]:
        """A process of jaxreward."""
        words = [sys.executable, *via, *words]
        return subprocess.Popen(words, env=self.env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)

    def end(self, process: subprocess.Popen[str]) -> int:
        """Wait for it; its exit status."""
        out, _ = process.communicate(timeout=LIMIT_S)
        self.seen = last_words(out)
        return process.returncode

    def run(self, *more: str) -> int:
        return self.end(self.start(*more))

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
        """What of its log an undisturbed search has too. Of an asynchronous one, first the order in which generations
        were asked for and told, and the rest sorted: what several devices finish comes in any order."""
        order, kept = list[Any](), list[Any]()
        for entry in read_log(self.log):
            if isinstance(event := entry.event, Trained):
                event = event.model_copy(update={"compile_s": 0.0, "run_s": 0.0})
            if isinstance(event, Asked | Told):
                order.append((event.type, event.generation))
            if isinstance(event, Proposed | Checked | Trained | Told):
                kept.append(event)
        return [order, *sorted(kept, key=str)] if self.asynchronous else kept

    def replayed(self) -> Victim:
        """Its recording, searched again undisturbed."""
        again = dataclasses.replace(self, folder=self.folder.with_name("replay"))
        words = ("--proposer", "replay", "--recording", str(self.log.parent), "--out", str(again.folder))
        if again.end(again.process(["evolve", *words, "--name", "run"])):
            raise UserError(f"its recording is not replayed: {again.seen}")
        return again


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
        victim.until('"trained"' if victim.asynchronous else '"checked"', process)  # then the others are training
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
        words = ["unshare", "-rm", "sh", "-c", script, "sh", sys.executable, *VIA, *here.words()]
        done = subprocess.run(words, env=env, timeout=LIMIT_S, check=False)
        if done.returncode == 99 or not out.exists():
            raise UserError("no file system can be mounted here")
        victim.seen = last_words(out.read_text())
        return Met(done.returncode, victim.seen, log.read_text().split("\n")[:-1])

    return on_it


def machine_with(what: str) -> Fault:
    """A fault of `benchmarks/faulty.py`."""

    def fault(victim: Victim) -> Met:
        status = victim.end(victim.process(victim.words(), (str(ROOT / "benchmarks" / "faulty.py"), what)))
        return met(victim, status, resume=status != 0)

    return fault


def asynchronously(fault: Fault) -> Fault:
    """The fault, in an asynchronous search."""

    def on_it(victim: Victim) -> Met:
        victim.asynchronous = True
        return fault(victim)

    return on_it


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


def kill_mailbox(nodes: Any, process: subprocess.Popen[str]) -> None:
    found = [pid for pid, command in descendants(os.getpid()).items() if command.startswith("ray::Mailbox")]
    if not found:
        raise UserError("there is no mailbox of Ray to kill")
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
    "SIGKILL of Ray's mailbox": ("by which workers report, while they train", of_ray(kill_mailbox)),
    "SIGKILL of Ray's driver": ("the command, while workers train", of_ray(kill_driver)),
    "asynchronous: SIGKILL of the command": ("while two devices train", asynchronously(killed(signal.SIGKILL))),
    "asynchronous: SIGTERM": ("while two devices train", asynchronously(killed(signal.SIGTERM))),
    "asynchronous: loss of power": ("the last line of the log torn", asynchronously(torn)),
    "asynchronous: disk full": (
        "filled up after the first check",
        asynchronously(file_system('cat /dev/zero > "$DISK/ballast" 2>/dev/null', 'rm "$DISK/ballast"')),
    ),
    "asynchronous: a Ray node dies": ("one of two, while both train", asynchronously(of_ray(kill_node))),
}  # fmt: skip
