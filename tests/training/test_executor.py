"""An engine of one's own in place of the devices of this process: what it is asked, and what happens when it fails."""

from __future__ import annotations

import pickle
from concurrent.futures import Future
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxreward.errors import InvalidSetting, UserError
from jaxreward.training import Checkpointing, Execution, Interrupted, Progress, Rung, WorkerLost, train
from jaxreward.training.compiled import POPULATIONS, compile_for, forget_compiled
from jaxreward.training.executor import Done, Job, Supervisor, WorkersLost
from jaxreward.training.local import LocalExecutor
from tests.training.conftest import assert_close_trees, budget
from tests.training.test_bookkeeping import Memory

pytestmark = pytest.mark.usefixtures("unoptimised")


class Losing:
    """Two workers in this process, of which the one that has chunk 1 from update `first` on is lost `losses` times in
    its second update."""

    platform, slots, limit = "cpu", 2, 10**10

    def __init__(self, losses: int, first: int = 0) -> None:
        self.losses, self.first, self.updates, self.submitted = losses, first, 0, list[tuple[int, int]]()
        self.places = set[int]()
        self._local = LocalExecutor(jax.local_devices()[:1])

    def prepare(self, jobs: Any) -> int:
        return 0

    def submit(self, job: Job, supervisor: Supervisor) -> Future[Done]:
        self.submitted.append((job.index, job.first))
        self.places.add(job.place)
        asked = 0

        def should_stop() -> bool:
            nonlocal asked
            asked += 1  # once before the job, and before every update
            if (job.index, job.first) == (1, self.first) and asked == 3 and self.losses:
                self.losses -= 1
                raise WorkerLost("its machine was taken away")
            self.updates += asked > 1
            return supervisor.should_stop()

        kept = jax.tree.map(jnp.copy, job.state)  # as one that is sent away would be
        sent = Job(**{**vars(job), "state": kept})
        return self._local.submit(sent, Supervisor(**{**vars(supervisor), "should_stop": should_stop}))


class Idle:
    """Takes jobs and does nothing, but for the first, which fails; or cannot take the second."""

    platform, slots, limit = "cpu", 2, 10**10

    def __init__(self, refuses: bool = False) -> None:
        self.refuses, self.futures = refuses, list[Future[Done]]()

    def prepare(self, jobs: Any) -> int:
        return 0

    def submit(self, job: Job, supervisor: Supervisor) -> Future[Done]:
        if self.futures and self.refuses:
            raise OSError("the queue is full")
        self.futures.append(Future())
        if job.index == 0 and not self.refuses:
            self.futures[0].set_exception(OSError("no space left"))
        return self.futures[-1]


TEXT = """
import jax.numpy as jnp

def get_observation(state):
    return jnp.stack([state.place / 6.0])

def compute_reward(state, action, next_state):
    return {reward}
"""
REWARDS = ("next_state.hit", "next_state.place - state.place", "2 * next_state.place - state.place", "-action")


@pytest.fixture(scope="module")
def corridor(task_of):
    return task_of("probe-corridor")


@pytest.fixture(scope="module")
def four(checker, corridor):
    return [program for _, program in checker.check_many([TEXT.format(reward=r) for r in REWARDS], corridor)]


@pytest.fixture(scope="module")
def alone(corridor, four, tiny):
    return train(corridor, four, tiny, **budget(tiny))


def agree(found: Any, alone: Any, candidates: Any = range(4)) -> None:
    for k in candidates:
        assert_close_trees(found.agents[k], alone.agents[k])
        np.testing.assert_allclose(found.success[k], alone.success[k], atol=0.13)


def test_a_training_keeps_to_its_slot(corridor, four, tiny, alone):
    executor = Losing(0)
    found = train(corridor, four, tiny, **budget(tiny), execution=Execution(executor=executor, chunk=2, slot=1))
    assert found.chunks == (2, 2) and executor.places == {1}
    agree(found, alone)


@pytest.mark.parametrize("saved", [False, True])
def test_a_chunk_whose_worker_was_lost_is_submitted_again(corridor, four, tiny, alone, saved):
    """From where it was saved, or from the start of its stretch: the result is that of no loss. Nothing is counted
    twice."""
    engine, reports = Losing(losses=2), list[Progress]()
    store = Memory() if saved else None
    with pytest.warns(UserWarning, match=r"is lost \(its machine was taken away\): its chunk goes on elsewhere"):
        found = train(
            corridor,
            four,
            tiny,
            progress=reports.append,
            checkpointing=store and Checkpointing(store, every_s=0.0),
            execution=Execution(executor=engine),
            **budget(tiny),
        )
    assert engine.submitted == [(0, 0), (1, 0), (1, 0), (1, 0)]
    assert found.chunks == (2, 2)
    agree(found, alone)
    assert (found.env_steps, found.eval_steps) == (alone.env_steps, alone.eval_steps)
    assert max(p.steps for p in reports) == found.env_steps == reports[-1].total


@pytest.mark.filterwarnings("ignore:a worker is lost")
def test_a_chunk_lost_after_a_rung_restarts_at_the_rung(corridor, four, tiny, alone):
    engine, rung = Losing(losses=1, first=2), Rung(2 * tiny.batch)
    found = train(corridor, four, tiny, rungs=[rung], execution=Execution(executor=engine), **budget(tiny))
    assert sorted(engine.submitted) == [(0, 0), (0, 2), (1, 0), (1, 2), (1, 2)]
    agree(found, alone)
    with_points = train(corridor, four, tiny, rungs=[rung], **budget(tiny))
    np.testing.assert_allclose(found.success_curve, with_points.success_curve, atol=0.13)


@pytest.mark.filterwarnings("ignore:a worker is lost")
def test_three_lost_workers_of_one_chunk_end_the_training(corridor, four, tiny):
    with pytest.raises(WorkersLost) as error:
        train(corridor, four, tiny, execution=Execution(executor=Losing(losses=9)), **budget(tiny))
    assert (error.value.chunk, error.value.losses) == (1, 3)
    assert isinstance(error.value.__cause__, WorkerLost) and str(error.value.__cause__) in str(error.value)


@pytest.mark.parametrize("refuses", [False, True])
def test_a_failed_job_cancels_those_that_have_not_begun(corridor, four, tiny, refuses):
    engine = Idle(refuses)
    with pytest.raises(OSError, match="the queue is full" if refuses else "no space left"):
        train(corridor, four, tiny, execution=Execution(executor=engine), **budget(tiny))
    assert engine.futures[-1].cancelled()


def test_a_job_can_be_pickled_at_any_time(corridor, four, tiny, alone):
    """Also when its programs have been used, and with the state of agents."""
    sent = list[Job]()

    class Post(Losing):
        def submit(self, job: Job, supervisor: Supervisor) -> Future[Done]:
            state, task = jax.device_get(job.state), job.task
            again: Job = pickle.loads(pickle.dumps(Job(**{**vars(job), "state": state})))
            sent.append(again)
            return super().submit(Job(**{**vars(again), "task": task}), supervisor)

    found = train(
        corridor, four, tiny, rungs=[Rung(2 * tiny.batch)], execution=Execution(executor=Post(losses=0)), **budget(tiny)
    )
    agree(found, alone)
    assert len(sent) == 4 and sent[-1].state is not None


def test_a_resumed_training_reports_restored_steps_as_done(corridor, four, tiny):
    """What was restored counts as done, from the start, and in the end everything is."""
    store, reports, asked = Memory(), list[Progress](), [0]

    def stop() -> bool:
        asked[0] += 1
        return asked[0] > 7

    settings = {
        **budget(tiny), "checkpointing": Checkpointing(store),
        "execution": Execution(chunk=2, devices=jax.local_devices()[:1]),
    }  # fmt: skip
    with pytest.raises(Interrupted):
        train(corridor, four, tiny, should_stop=stop, progress=reports.append, **settings)
    begun = next(k for k, p in enumerate(reports) if p.phase == "train")
    assert reports[begun].steps == 0 and reports[begun - 1].phase == "compile", "said before the first point of a curve"
    reports.clear()
    train(corridor, four, tiny, progress=reports.append, **settings)
    trained = [p for p in reports if p.phase == "train"]
    assert trained[0].steps > 0 and trained[0].success and trained[-1].steps == trained[-1].total
    assert [p.steps for p in trained] == sorted(p.steps for p in trained)


@pytest.mark.long
def test_chunks_that_continue_after_a_rung_are_not_compiled_again(corridor, four, tiny, alone):
    """Whole chunks are stopped, the others keep what they have."""
    execution = Execution(chunk=1, collector="fused", devices=jax.local_devices()[:1])
    compiled = list[int]()

    def counted(*args: Any, **options: Any) -> Any:
        compiled.append(1)
        return compile_for(*args, **options)

    forget_compiled()
    with (
        pytest.MonkeyPatch.context() as patch,
        POPULATIONS.room_for(1),
    ):  # nothing is found again but what a chunk holds
        patch.setattr(POPULATIONS, "at_least", lambda _: None)
        patch.setattr("jaxreward.training.population_training.worth_compacting", lambda *_: False)
        patch.setattr("jaxreward.training.fused.compile_for", counted)
        cut = train(corridor, four, tiny, rungs=[Rung(2 * tiny.batch, keep=0.5)], execution=execution, **budget(tiny))
    assert len(cut.chunks) == 2 and len(compiled) == 4
    agree(cut, alone, np.flatnonzero(cut.stopped == 0))


def test_a_stop_reaches_the_executor(corridor, four, tiny):
    engine = Losing(losses=0)
    with pytest.raises(Interrupted):
        train(
            corridor,
            four,
            tiny,
            should_stop=lambda: engine.updates > 2,
            execution=Execution(executor=engine),
            **budget(tiny, 500),
        )
    assert engine.updates < 10


def test_a_job_of_several_processes_needs_an_executor_of_its_own(corridor, four, tiny, monkeypatch):
    monkeypatch.setattr(jax, "process_count", lambda: 2)
    with pytest.raises(UserError, match=r"LocalExecutor.*Execution\(executor=") as refused:
        train(corridor, four, tiny, **budget(tiny))
    assert "\n" not in str(refused.value)


def test_an_executor_excludes_devices_and_memory_limit(corridor, four, tiny):
    given: Any
    for given in ({"devices": jax.local_devices()}, {"memory_gb": 1.0}):
        with pytest.raises(InvalidSetting) as error:
            train(corridor, four[:1], tiny, execution=Execution(executor=Losing(0), **given), **budget(tiny))
        assert error.value.settings == ("executor", "devices", "memory_gb")
