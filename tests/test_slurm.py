"""The Slurm script: signals reach the search, what is unfinished is requeued, what has ended is not."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from jaxreward.runs import Finished, Paused, read_log

SCRIPT = Path(__file__).resolve().parents[1] / "scripts" / "slurm.sh"

STAND_IN = """#!{python}
import signal, sys, time
from pathlib import Path
asked = []
signal.signal(signal.SIGUSR1, lambda *_: asked.append(1))
Path("args").write_text(" ".join(sys.argv[1:]))
for _ in range(3000):
    if asked:
        time.sleep(0.3)  # saves its state
        Path("saved").touch()
        sys.exit(75)
    if Path("finish").exists():
        sys.exit(int(Path("finish").read_text()))
    time.sleep(0.01)
"""


class Job:
    """A job of the script in a folder, with a `scontrol` that writes down what it was told."""

    def __init__(self, folder: Path, *args: str, search: str = "", job: str = "4711") -> None:
        self.folder = folder
        tools = folder / "tools"
        tools.mkdir(exist_ok=True)
        self.write(tools / "scontrol", f'#!/bin/sh\necho "$*" >> {folder}/scontrol.log\n')
        self.write(tools / "jaxreward", search or STAND_IN.format(python=sys.executable))
        environment = {**os.environ, "PATH": f"{tools}:{os.environ['PATH']}", "SLURM_JOB_ID": job}
        self.process = subprocess.Popen(
            ["bash", str(SCRIPT), *args], cwd=folder, env=environment, text=True,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )  # fmt: skip

    @staticmethod
    def write(path: Path, text: str) -> None:
        path.write_text(text)
        path.chmod(0o755)

    def wait_for(self, path: str) -> None:
        for _ in range(3000):
            if (self.folder / path).exists():
                return
            assert self.process.poll() is None, self.process.communicate()
            time.sleep(0.01)
        raise AssertionError(f"{path} did not appear")

    def ends(self, timeout: float = 30) -> tuple[int, str]:
        out, err = self.process.communicate(timeout=timeout)
        return self.process.returncode, out + err

    @property
    def requeued(self) -> list[str]:
        log = self.folder / "scontrol.log"
        return log.read_text().splitlines() if log.exists() else []


@pytest.mark.parametrize("warning", [signal.SIGUSR1, signal.SIGTERM])
def test_a_warning_is_handed_on_and_the_job_requeued(tmp_path, warning):
    job = Job(tmp_path, "--task", "xland-easy", "--name", "first")
    job.wait_for("args")
    job.process.send_signal(warning)
    status, said = job.ends()
    assert status == 0 and "back into the queue" in said and job.requeued == ["requeue 4711"]
    assert (tmp_path / "saved").exists(), "it waited until the state was saved"
    assert (tmp_path / "args").read_text() == "evolve --task xland-easy --name first --resume"


@pytest.mark.parametrize("status", [0, 2])
def test_what_has_ended_is_not_requeued(tmp_path, status):
    (tmp_path / "finish").write_text(str(status))
    job = Job(tmp_path, "--name=first")
    assert job.ends()[0] == status and job.requeued == []


def test_a_job_without_a_name_could_not_find_its_run_again(tmp_path):
    status, said = Job(tmp_path, "--task", "xland-easy").ends()
    assert status == 2 and "say --name NAME" in said and not (tmp_path / "args").exists()


@pytest.mark.slow
def test_a_search_goes_on_where_the_job_before_it_stopped(tmp_path):
    search = f'#!/bin/sh\nexec {sys.executable} -m jaxreward.cli "$@"\n'
    args = (
        *("--task", "probe-choice", "--candidates", "6", "--generation", "2", "--seeds", "1", "--steps", "4096"),
        *("--final-seeds", "0", "--baselines", "--name", "first", "--ppo.envs", "8", "--ppo.unroll", "8"),
    )
    job = Job(tmp_path, *args, search=search)
    log = tmp_path / "runs" / "first" / "events.jsonl"
    for _ in range(6000):
        if log.exists() and any(e.event.type == "told" for e in read_log(log)):
            break
        time.sleep(0.01)
    job.process.send_signal(signal.SIGUSR1)
    assert job.ends(120)[0] == 0 and job.requeued == ["requeue 4711"]
    assert isinstance(read_log(log)[-1].event, Paused)
    again = Job(tmp_path, *args, search=search)
    assert again.ends(240)[0] == 0 and again.requeued == ["requeue 4711"], "it ended, and was not requeued again"
    assert isinstance(read_log(log)[-1].event, Finished)


@pytest.mark.parametrize("died", [signal.SIGUSR1, signal.SIGTERM])
def test_a_warning_before_the_search_could_listen_is_no_end(tmp_path, died):
    job = Job(tmp_path, "--name", "first", search=f"#!/bin/sh\ntouch args\nkill -{died.value} $$\n")
    assert job.ends()[0] == 0 and job.requeued == ["requeue 4711"]


def test_outside_slurm_the_status_stays(tmp_path):
    (tmp_path / "finish").write_text("75")
    job = Job(tmp_path, "--name", "first", job="")
    assert job.ends()[0] == 75 and job.requeued == []
