"""Training on a Ray cluster: the same results as here, also where workers and nodes are lost while it runs."""

from __future__ import annotations

import asyncio
import os
import pickle
import signal
import socket
import subprocess
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import jax
import numpy as np
import pytest

from jaxreward.errors import InvalidSetting, UserError
from jaxreward.evolution.settings import EvolveSettings
from jaxreward.programs import Program
from jaxreward.runs import fold, read_log
from jaxreward.tasks import make_task_of
from jaxreward.training import Checkpointing, Execution, Interrupted, Progress, Rung, train
from jaxreward.training.executor import WorkersLost
from jaxreward.training.ray_cluster import by_value, cluster_at, difference
from jaxreward.training.ray_executor import RayExecutor
from jaxreward.training.ray_worker import Mailbox, _pickled, versions
from tests.training.conftest import assert_close_trees, budget
from tests.training.test_bookkeeping import Memory
from tests.training.test_executor import REWARDS, TEXT

# Ray begins nodes by a function between fork and exec
pytestmark = pytest.mark.filterwarnings(
    "ignore:os.fork", "ignore:.*_at_fork:pytest.PytestUnraisableExceptionWarning", "ignore:a worker is lost"
)

KEY_DOOR = Path(__file__).parents[1] / "tasks" / "key_door.py"


# ---- without a cluster


def test_the_mailbox_hands_over_letters_and_answers():
    async def exchange() -> Any:
        mailbox = Mailbox()
        assert await mailbox.collect(0.01) == []
        await mailbox.tell(3, "compiling")
        asked = asyncio.create_task(mailbox.ask(3, "save", "tag", b"tree"))
        await asyncio.sleep(0)
        told, question = await mailbox.collect(1.0)
        assert (told.job, told.what, told.answer) == (3, "compiling", None)
        assert (question.what, question.content) == ("save", ("tag", b"tree")) and question.answer is not None
        await mailbox.answer(question.answer, (b"saved", b""))
        await mailbox.answer(question.answer + 7, "nobody waits for this")
        assert not await mailbox.stopped(3)
        await mailbox.stop({3})
        assert await mailbox.stopped(3) and not await mailbox.stopped(4)
        return await asked

    assert asyncio.run(exchange()) == (b"saved", b"")


def test_errors_are_sent_as_they_are_or_in_their_words():
    class Local(Exception):
        pass

    known = pickle.loads(_pickled(InvalidSetting("no", "ppo.envs")))
    assert isinstance(known, InvalidSetting) and known.settings == ("ppo.envs",)
    assert str(pickle.loads(_pickled(Local("gone")))) == "Local: gone"


def test_other_versions_are_named():
    mine = {"jaxreward": "1", "jax": "0.10.2"}
    assert difference(mine, dict(mine)) == ""
    assert difference(mine, {**mine, "jax": "0.9"}) == "jax 0.9, not 0.10.2"


def test_a_worker_that_cannot_begin_is_said_once_and_tried_ever_later(monkeypatch):
    def begun(versions: dict[str, str]) -> Future[dict[str, Any]]:
        found: Future[dict[str, Any]] = Future()
        found.set_result({"versions": versions})
        return found

    executor = RayExecutor.__new__(RayExecutor)
    killed = list[str]()
    vars(executor).update(
        _lock=threading.RLock(), _closed=threading.Event(), _ray=SimpleNamespace(kill=killed.append), _orders={},
        _seats=[], _beginning=4, _failure="", _grow_s=5.0, _told="",
    )  # fmt: skip
    executor._begun("right", begun(versions()))
    other = begun({**versions(), "jax": "0.1"})
    with pytest.warns(UserWarning, match=r"has jax 0\.1, not .*: install the same on all nodes"):
        executor._begun("wrong", other)
    with warnings.catch_warnings(action="error"):
        executor._begun("wrong", other)
    assert killed == ["wrong", "wrong"] and executor._grow_s == 20.0
    executor._begun("right", begun(versions()))
    assert executor._grow_s == 5.0 and len(executor._seats) == 2


def test_what_workers_cannot_import_is_sent_as_text():
    from ray import cloudpickle

    module = ModuleType("a_file_of_mine")
    exec("class Task:\n    horizon = 3\n", vars(module))
    sys.modules["a_file_of_mine"] = module
    try:
        by_value("a_file_of_mine")
        text = cloudpickle.dumps(vars(module)["Task"]())
    finally:
        del sys.modules["a_file_of_mine"]
    assert pickle.loads(text).horizon == 3


def test_an_address_where_nothing_listens_is_refused_at_once(tmp_path, monkeypatch):
    """Ray would ask there for minutes, and would join what was begun last on the machine where no address is given."""
    with socket.create_server(("127.0.0.1", 0)) as head:
        alive = f"127.0.0.1:{head.getsockname()[1]}"
        with socket.create_server(("127.0.0.1", 0)) as other:
            gone = f"127.0.0.1:{other.getsockname()[1]}"
        monkeypatch.setenv("RAY_TMPDIR", str(tmp_path))
        monkeypatch.delenv("RAY_ADDRESS", raising=False)
        assert (cluster_at(None), cluster_at(alive), cluster_at("auto")) == ("local", alive, "auto")
        last = tmp_path / "ray" / "ray_current_cluster"
        last.parent.mkdir()
        last.write_text(f"{gone}\n")
        assert cluster_at(None) == "local"
        for address in ("auto", gone):
            with pytest.raises(InvalidSetting, match=rf"there is no Ray cluster at {gone} \(Connection refused\)"):
                cluster_at(address)
        monkeypatch.setenv("RAY_ADDRESS", alive)
        assert (cluster_at(None), cluster_at("auto")) == (alive, alive)


@pytest.mark.parametrize("option", [{"ray_address": "auto"}, {"ray_workers": 2}])
def test_options_of_a_cluster_are_for_ray(option):
    with pytest.raises(InvalidSetting, match="is for --executor ray"):
        EvolveSettings(**option).check()


# ---- with one


@pytest.mark.slow
def test_a_search_runs_on_a_cluster_of_its_own(tmp_path: Path):
    """From the command line: what is found is what is found on the devices of the process."""
    words = [
        *("--task", "probe-choice", "--candidates", "4", "--generation", "4", "--steps", "512", "--seeds", "1"),
        *("--final-seeds", "1", "--ppo.envs", "8", "--ppo.unroll", "8", "--ppo.minibatches", "2"),
    ]
    env = {name: value for name, value in os.environ.items() if name != "RAY_ADDRESS"}
    scores = {}
    for name, more in (("ray", ["--executor", "ray", "--ray-workers", "2"]), ("local", [])):
        command = [sys.executable, "-m", "jaxreward", "evolve", *words, "--name", name, "--json", *more]
        ended = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True, timeout=400, check=False)
        assert ended.returncode == 0, ended.stderr[-2000:]
        scores[name] = (tmp_path / "runs" / name / "best_interface.py").read_text().partition("import jax.numpy")[2]
    assert scores["ray"] == scores["local"] != ""


@pytest.mark.slow
def test_an_asynchronous_search_trains_a_generation_on_each_worker(tmp_path):
    words = ["--task", "probe-corridor", "--candidates", "6", "--generation", "2", "--seeds", "1", "--steps", "40000"]
    words += ["--baselines", "--final-seeds", "0", "--asynchronous", "--executor", "ray", "--ray-workers", "2"]
    env = {name: value for name, value in os.environ.items() if name != "RAY_ADDRESS"}
    command = [sys.executable, "-m", "jaxreward", "evolve", *words, "--name", "it", "--json"]
    ended = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True, timeout=400, check=False)
    assert ended.returncode == 0, ended.stderr[-2000:]
    entries = read_log(tmp_path / "runs" / "it" / "events.jsonl")
    found = [entry.event.type for entry in entries if entry.event.type in ("asked", "told")]
    assert found[:3] == ["asked"] * 3 and found.count("told") >= 3
    progress = fold([entry.event for entry in entries], None, lambda state, _: state)
    assert progress.spent.trained == 6


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    """Two nodes of one CPU each, on this machine."""
    from ray.cluster_utils import Cluster

    nodes: Any = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False})
    nodes.second = nodes.add_node(num_cpus=1)
    yield nodes
    nodes.shutdown()


@pytest.fixture(scope="module")
def executor(cluster: Any) -> Iterator[RayExecutor]:
    with RayExecutor(cluster.address) as found:
        yield found


@pytest.fixture(scope="module")
def corridor(task_of: Any) -> Any:
    return task_of("probe-corridor")


@pytest.fixture(scope="module")
def four(checker: Any, corridor: Any) -> list[Program]:
    return [program for _, program in checker.check_many([TEXT.format(reward=r) for r in REWARDS], corridor)]


@pytest.fixture(scope="module")
def alone(corridor: Any, four: Any, tiny: Any) -> Any:
    return train(corridor, four, tiny, **budget(tiny, 40))


def until(condition: Callable[[], bool], seconds: float = 120.0) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.1)


def agree(found: Any, alone: Any) -> None:
    for one, other in zip(found.agents, alone.agents, strict=True):
        assert_close_trees(one, other)
    assert (found.env_steps, found.eval_steps) == (alone.env_steps, alone.eval_steps)


def at_the_third_report(do: Callable[[], None]) -> Callable[[Progress], None]:
    """Once some steps are done."""
    seen = list[int]()

    def progress(report: Progress) -> None:
        if report.phase == "train" and report.steps:
            seen.append(report.steps)
            if len(seen) == 3:
                do()

    return progress


def kill_a_worker() -> None:
    found = subprocess.run(["pgrep", "-f", "ray::Worker"], capture_output=True, text=True, check=True).stdout.split()
    os.kill(int(found[0]), signal.SIGKILL)


@pytest.mark.slow
@pytest.mark.parametrize("rungs", [[], [2]])
def test_it_trains_as_this_process_does(executor, corridor, four, tiny, rungs):
    rungs = [Rung(at * tiny.batch, keep=0.5) for at in rungs]
    here = train(corridor, four, tiny, rungs=rungs, **budget(tiny, 40))
    found = train(corridor, four, tiny, rungs=rungs, execution=Execution(executor=executor), **budget(tiny, 40))
    agree(found, here)
    assert found.stopped.tolist() == here.stopped.tolist()


@pytest.mark.slow
def test_a_second_training_compiles_nothing(executor, corridor, four, tiny, alone):
    execution = Execution(executor=executor)
    train(corridor, four, tiny, execution=execution, **budget(tiny, 40))
    again = train(corridor, four, tiny, execution=execution, **budget(tiny, 40))
    agree(again, alone)
    assert again.compile_s == 0.0


@pytest.mark.slow
@pytest.mark.parametrize("saved", [False, True])
def test_the_job_of_a_killed_worker_goes_on_elsewhere(executor, corridor, four, tiny, alone, saved):
    until(lambda: len(executor._seats) == 2)
    store = Memory() if saved else None
    found = train(
        corridor, four, tiny, execution=Execution(executor=executor), progress=at_the_third_report(kill_a_worker),
        checkpointing=store and Checkpointing(store, every_s=0.0), **budget(tiny, 40),
    )  # fmt: skip
    agree(found, alone)
    until(lambda: len(executor._seats) == 2)


@pytest.mark.slow
def test_a_node_may_die_and_another_join(cluster, executor, corridor, four, tiny, alone):
    until(lambda: len(executor._seats) == 2)

    def kill() -> None:
        cluster.remove_node(cluster.second, allow_graceful=False)

    found = train(
        corridor, four, tiny, execution=Execution(executor=executor), progress=at_the_third_report(kill),
        checkpointing=Checkpointing(Memory(), every_s=0.0), **budget(tiny, 40),
    )  # fmt: skip
    agree(found, alone)
    cluster.second = cluster.add_node(num_cpus=1)
    until(lambda: len(executor._seats) == 2)
    agree(train(corridor, four, tiny, execution=Execution(executor=executor), **budget(tiny, 40)), alone)


@pytest.mark.slow
def test_workers_stop_and_pass_on_errors_of_this_process(executor, corridor, four, tiny):
    asked = [0]

    def stop() -> bool:
        asked[0] += 1
        return asked[0] > 3

    def fails(report: Progress) -> None:
        if report.phase == "train":
            raise OSError("no space left")

    execution = Execution(executor=executor)
    with pytest.raises(Interrupted):
        train(corridor, four, tiny, should_stop=stop, execution=execution, **budget(tiny, 4000))
    with pytest.raises(OSError, match="no space left"):
        train(corridor, four, tiny, progress=fails, execution=execution, **budget(tiny, 40))


@pytest.mark.slow
def test_a_store_that_fails_ends_the_training_with_its_error(executor, corridor, four, tiny):
    class Full(Memory):
        def save(self, tag: str, tree: Any) -> None:
            raise UserError("the disk is full")

    with pytest.raises(UserError, match="the disk is full"):
        train(
            corridor, four, tiny, execution=Execution(executor=executor), checkpointing=Checkpointing(Full()),
            **budget(tiny, 40),
        )  # fmt: skip


@pytest.mark.slow
def test_a_task_in_a_file_trains(executor, tiny):
    task = make_task_of(f"{KEY_DOOR}:KeyDoor")
    own = Program.own(task)[:1]
    here = train(task, own, tiny, **budget(tiny))
    found = train(task, own, tiny, execution=Execution(executor=executor), **budget(tiny))
    agree(found, here)


@pytest.mark.slow
def test_a_chunk_that_kills_its_workers_ends_the_training(executor, corridor, four, tiny):
    until(lambda: len(executor._seats) == 2)

    over = False

    def progress(report: Progress) -> None:
        if report.phase == "train" and not over:
            kill_a_worker()

    with pytest.raises(WorkersLost):
        train(corridor, four, tiny, execution=Execution(executor=executor), progress=progress, **budget(tiny, 4000))
    over = True


def test_random_keys_survive_the_way():
    tree = jax.device_get({"key": jax.random.key(0), "x": jax.numpy.ones(3)})
    again = pickle.loads(pickle.dumps(tree))
    np.testing.assert_array_equal(again["x"], np.ones(3))
    assert jax.random.key_data(again["key"]).tolist() == jax.random.key_data(jax.random.key(0)).tolist()
