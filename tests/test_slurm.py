"""The Slurm script, and those of docs/cluster.md: signals reach the search, what is unfinished is requeued, what has
ended is not; every command of the page exists."""

from __future__ import annotations

import os
import re
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from jaxreward.cli import main
from jaxreward.commands.resolve import resolve
from jaxreward.commands.table import commands_of
from jaxreward.errors import UserError
from jaxreward.runs import EventLog, Finished, Paused, Run, read_log
from tests.reports import example

ROOT = Path(__file__).resolve().parents[1]
SCRIPT = ROOT / "scripts" / "slurm.sh"

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


SRUN = """#!/bin/sh
said=
while case "$1" in --*) true ;; *) false ;; esac; do said="$said $1"; shift; done
[ -z "$said" ] || echo $said >> {folder}/srun.log
exec "$@"
"""


class Job:
    """A job of a script in a folder. `scontrol` writes down what it was told; `srun` runs here."""

    def __init__(
        self, folder: Path, *args: str, search: str = "", job: str = "4711", script: Path = SCRIPT, array: str = ""
    ) -> None:
        self.folder = folder
        tools = folder / "tools"
        tools.mkdir(exist_ok=True)
        self.write(tools / "scontrol", f'#!/bin/sh\necho "$*" >> {folder}/scontrol.log\n')
        self.write(tools / "jaxreward", search or STAND_IN.format(python=sys.executable))
        self.write(tools / "srun", SRUN.format(folder=folder))
        environment = {**os.environ, "PATH": f"{tools}:{os.environ['PATH']}", "SLURM_JOB_ID": job}
        if array:
            environment |= {"SLURM_ARRAY_JOB_ID": "4700", "SLURM_ARRAY_TASK_ID": array}
        self.process = subprocess.Popen(
            ["bash", str(script), *args], cwd=folder, env=environment, text=True,
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


RAY = """#!/bin/sh
echo "$*" >> {folder}/ray.log
case "$1" in start) echo $RAY_AUTH_TOKEN >> {folder}/tokens; exec sleep 300 ;; get*) echo secret; exit 0 ;; esac
[ -e {folder}/up ]
"""


@pytest.fixture
def nodes(tmp_path, monkeypatch) -> Path:
    """Three nodes: what Slurm tells a job of them, and a stand-in for Ray."""
    (tmp_path / "tools").mkdir()
    Job.write(tmp_path / "tools" / "ray", RAY.format(folder=tmp_path))
    for name, value in {"NNODES": "3", "CPUS_PER_TASK": "8"}.items():
        monkeypatch.setenv(f"SLURM_{name}", value)
    monkeypatch.setenv("SLURMD_NODENAME", "first")
    return tmp_path


def test_a_job_of_several_nodes_begins_a_ray_cluster_that_ends_with_it(nodes):
    (nodes / "up").touch()
    job = Job(nodes, "--name", "first")
    job.wait_for("args")
    assert (nodes / "args").read_text() == "evolve --name first --executor ray --ray-address first:24711 --resume"
    (nodes / "finish").write_text("0")
    assert job.ends()[0] == 0 and job.requeued == [], "its output ends when the last step of the cluster has ended"
    assert sorted((nodes / "ray.log").read_text().splitlines()) == [
        "get-auth-token --generate", "start --address=first:24711 --block", "start --head --port=24711 --block",
        "status --address=first:24711",
    ]  # fmt: skip
    assert (nodes / "tokens").read_text() == "secret\nsecret\n"
    assert sorted((nodes / "srun.log").read_text().splitlines()) == [
        "--overlap --cpus-per-task=8 --nodes=1 --ntasks=1 --nodelist=first",
        "--overlap --cpus-per-task=8 --nodes=2 --ntasks=2 --exclude=first",
    ]


def test_a_warning_while_the_cluster_begins_requeues_the_job(nodes):
    job = Job(nodes, "--name", "first")
    job.wait_for("ray.log")
    job.process.send_signal(signal.SIGUSR1)
    assert job.ends()[0] == 0 and job.requeued == ["requeue 4711"]
    assert not (nodes / "args").exists()


@pytest.mark.slow
def test_a_search_on_several_nodes(nodes):
    """Two nodes of Ray on this machine, with one CPU each."""
    ray = f'[ "$1" != start ] || more=--num-cpus=1\nexec {sys.executable} -m ray.scripts.scripts "$@" $more\n'
    Job.write(nodes / "tools" / "ray", f"#!/bin/sh\n{ray}")
    words = (
        *("--task", "probe-choice", "--candidates", "2", "--generation", "2", "--seeds", "1", "--steps", "4096"),
        *("--final-seeds", "0", "--baselines", "--name", "first", "--ppo.envs", "8", "--ppo.unroll", "8"),
    )
    os.environ["SLURMD_NODENAME"] = "127.0.0.1"  # put back by `monkeypatch`
    job = Job(nodes, *words, search=f'#!/bin/sh\nexec {sys.executable} -m jaxreward.cli "$@"\n')
    status, said = job.ends(timeout=300)
    assert status == 0, said
    assert [e.event.type for e in read_log(nodes / "runs" / "first" / "events.jsonl")][-1] == "finished"


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


# ---- the page

PAGE = (ROOT / "docs" / "cluster.md").read_text()
BLOCKS = re.findall(r"```sh\n(.*?)```", PAGE, re.DOTALL)
SCRIPTS = [block for block in BLOCKS if block.startswith("#!/bin/bash\n")]
LINES = [
    line.partition("#")[0].removeprefix("until ").partition(";")[0].strip()
    for block in BLOCKS if block not in SCRIPTS for line in block.splitlines() if "jaxreward " in line
]  # fmt: skip
OF_SLURM = {
    "gres", "cpus-per-task", "time", "signal", "requeue", "open-mode", "output", "array",
}  # fmt: skip


def script_of(block: str, folder: Path) -> Path:
    """A script of the page in a checkout."""
    (folder / "scripts").symlink_to(ROOT / "scripts")
    script = folder / "search.sh"
    script.write_text(block)
    return script


def arguments_of(folder: Path) -> list[str]:
    return shlex.split((folder / "args").read_text())


def planned(words: list[str], capsys: pytest.CaptureFixture[str]) -> str:
    """What `--dry-run` says of a search or a comparison."""
    assert main([*words, "--dry-run"]) == 0, words
    return capsys.readouterr().out


def test_the_page_has_the_four_scripts():
    assert len(SCRIPTS) == 4
    for block in SCRIPTS:
        said = re.findall(r"^#SBATCH --([a-z-]+)", block, re.MULTILINE)
        assert set(said) <= OF_SLURM and {"gres", "time", "signal", "requeue"} <= set(said)


@pytest.mark.long
@pytest.mark.parametrize("block", SCRIPTS, ids=["one", "eight", "array", "shards"])
def test_a_script_of_the_page_plans_and_is_requeued(block: str, tmp_path, monkeypatch, capsys):
    array = "7" if "--array" in block else ""
    (tmp_path / "finish").write_text("75")
    job = Job(tmp_path, script=script_of(block, tmp_path), array=array)
    job.ends()
    assert job.requeued == [f"requeue {'4700_7' if array else '4711'}"], "one job, not all of an array"
    words = arguments_of(tmp_path)
    monkeypatch.chdir(tmp_path)
    said = planned(words, capsys)
    if words[0] == "compare":
        assert "shard 7 of 12" in said
    elif array:
        assert words[1:7] == ["--task", "xland-medium", "--seed", "3", "--name", "xland-medium-3"]
    assert words[0] == "compare" or words[-1] == "--resume"


@pytest.mark.parametrize("block", SCRIPTS[:3], ids=["one", "eight", "array"])
def test_a_warning_reaches_the_search_of_a_script_of_the_page(block: str, tmp_path):
    """Slurm sends it to the shell that runs the job's script (`B:`)."""
    assert "#SBATCH --signal=B:USR1@" in block
    job = Job(tmp_path, script=script_of(block, tmp_path), array="7" if "--array" in block else "")
    job.wait_for("args")
    job.process.send_signal(signal.SIGUSR1)
    assert job.ends()[0] == 0 and (tmp_path / "saved").exists() and len(job.requeued) == 1


def test_the_other_commands_of_the_page_exist(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    tried = set[str]()
    for line in LINES:
        words = shlex.split(line)[1:]
        name = " ".join(words[: 2 if words[0] == "runs" else 1])
        tried.add(name)
        if name == "evolve":
            planned(words, capsys)
        else:
            resolve(commands_of(words[0])[name], words[len(name.split()) :])
    assert tried == {"evolve", "serve", "runs list", "runs tail"}


def test_a_second_process_of_a_search_is_refused_as_the_page_says(tmp_path):
    run = example.write_run(tmp_path / "medium", example.events()[:12])
    with EventLog(run / "events.jsonl"), pytest.raises(UserError) as refused:
        Run.resume(run)
    assert re.match(r"The run \S+ is being written by process \d+ on \S+:", str(refused.value))
    assert '"The run ... is being written by process ... on ..."' in PAGE.replace("\n", " ")


def test_several_hosts_are_refused_as_the_page_says(monkeypatch):
    import jax

    from jaxreward.training.local import LocalExecutor

    monkeypatch.setattr(jax, "process_count", lambda: 2)
    with pytest.raises(UserError) as refused:
        LocalExecutor()
    (sentence,) = re.findall(r'refused with "this is one of N ([^"]+)"', PAGE.replace("\n", " "))
    assert str(refused.value).startswith(f"this is one of 2 {sentence}")
