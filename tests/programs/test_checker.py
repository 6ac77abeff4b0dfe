"""The checker: verdicts and programs, one after the other and side by side, on machines good and bad."""

from __future__ import annotations

import ast
import os
import signal
import threading
import time
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import suite_faulty
import suite_good
from pointtask import GridTask, structs
from suite_parts import HEAD, OBSERVE, PAY, obs, rew

from jaxreward.errors import FileProblem, InvalidSetting, UnusableFile, UserError
from jaxreward.programs import Checker, Limits, Program, ProgramRejected, SandboxError
from jaxreward.programs.process import NoSandbox, Process
from jaxreward.programs.spec import InvalidView
from jaxreward.records import Failure, Verdict

PLAIN = HEAD + OBSERVE + PAY


def failure_of(verdict: Verdict) -> Failure:
    assert verdict.failure is not None
    return verdict.failure


def test_a_summary_lists_sizes_costs_terms_and_inputs(checker, task):
    verdict, program = checker.check(PLAIN, task, name="plain")
    summary = verdict.summary
    assert verdict.ok and program.name == "plain" and program.summary == summary
    assert summary.observation_size == 4 and summary.terms == ("reward",)
    assert summary.observation_reads == ("state.pos", "state.vel")
    assert summary.reward_reads == ("state.pos", "state.goal", "action", "next_state.pos", "next_state.goal")
    assert 0 < summary.operations < 40 and 0 < summary.flops < 200 and summary.elements == 4
    assert summary.reward_nodes == sum(1 for _ in ast.walk(ast.parse(PAY).body[0]))


def test_reward_nodes_count_helpers_once(checker, task):
    one = "def f(x):\n    return jnp.sum(x)\n"
    body = "return f(action) + f(next_state.pos) - f(state.pos)"
    bare, helped = rew(body.replace("f(", "jnp.sum(")), rew(body, one)
    (a, _), (b, _) = checker.check_many([bare, helped], task)
    assert b.summary.reward_nodes > 0 and a.summary.digest == b.summary.digest
    assert checker.check(HEAD + OBSERVE, task)[0].summary.reward_nodes == 0


@pytest.mark.long
def test_a_program_runs_under_jit_and_vmap(checker, task):
    program = checker.load(PLAIN, task)
    views = jax.vmap(lambda k: task.view(task.reset(k)))(jax.random.split(jax.random.key(1), 5))
    actions = jnp.ones((5, 2))
    observations = jax.jit(jax.vmap(program.observe))(views)
    np.testing.assert_array_equal(observations, jnp.concatenate([views.pos, views.vel], axis=1))
    total, terms = jax.jit(jax.vmap(program.reward))(views, actions, views)
    assert total.shape == (5,) and terms.shape == (5, 1) and total.dtype == terms.dtype == jnp.float32
    one = jax.tree.map(lambda x: x[0], views)
    np.testing.assert_allclose(program.observe(one), observations[0])
    assert isinstance(program.observe(jax.tree.map(np.asarray, one)), jax.Array)


def test_a_view_of_another_task_is_refused(checker, task):
    program = checker.load(PLAIN, task)
    with pytest.raises(InvalidView) as error:
        program.observe({"pos": jnp.zeros(2)})
    assert error.value.leaf == ""
    view = task.view(task.reset(jax.random.key(0)))
    with pytest.raises(InvalidView) as error:
        program.observe(view._replace(pos=jnp.zeros(3)))
    assert error.value.leaf == "pos"


def test_discrete_actions_are_integer_scalars(checker):
    task = GridTask()
    program = checker.load(rew("return (action == 2) * 1.0 + state.pos[0]"), task)
    view = task.view(task.reset(jax.random.key(0)))
    for action in (2, jnp.int32(2), np.int8(2)):
        np.testing.assert_allclose(program.reward(view, action, view)[0], 1.0 + view.pos[0], rtol=1e-6)
    verdict, _ = checker.check(rew("return jnp.sum(action ** 2) + action[0]"), task)
    assert failure_of(verdict).stage == "trace"


def test_a_missing_function_comes_from_the_task(checker, task):
    (seen, one), (paid, two) = checker.check_many([HEAD + OBSERVE, HEAD + PAY], task)
    assert seen.summary.terms == ("sparse",) and paid.summary.observation_size == 9
    default = Program.default(task)
    view = task.view(task.reset(jax.random.key(3)))
    np.testing.assert_allclose(two.observe(view), task.default_observation(view))
    np.testing.assert_allclose(default.observe(view), task.default_observation(view))
    near = view._replace(goal=view.pos + 0.01)
    assert float(one.reward(view, jnp.zeros(2), near)[0]) == 1.0 == float(default.reward(view, jnp.zeros(2), near)[0])
    assert float(one.reward(view, jnp.zeros(2), view)[0]) == 0.0


def test_bare_trees_stand_in_for_a_task(checker, task):
    trees = structs(task)
    assert checker.check(PLAIN, trees)[0].summary == checker.check(PLAIN, task)[0].summary
    verdict, _ = checker.check(HEAD + OBSERVE, trees)
    assert failure_of(verdict).stage == "contract" and "compute_reward" in failure_of(verdict).message
    bare, _ = checker.check(
        "def get_observation(state):\n    return state\ndef compute_reward(state, action, next_state):\n"
        "    return (next_state - state).sum()\n",
        (jax.ShapeDtypeStruct((3,), jnp.float32), jax.ShapeDtypeStruct((), jnp.int32)),
    )
    assert bare.ok and bare.summary.observation_reads == ("state",)


@pytest.mark.long
def test_samples_replace_random_inputs(checker, task):
    source = obs("return jnp.log(jnp.stack([state.info['height']]))")
    assert failure_of(checker.check(source, task)[0]).stage == "numeric"
    views = jax.vmap(lambda k: task.view(task.reset(k)))(jax.random.split(jax.random.key(1), 8))
    views = views._replace(info={**views.info, "height": jnp.linspace(0.1, 1.0, 8)})
    samples = (views, jnp.zeros((8, 2)), views)
    verdict, _ = checker.check(source, task, samples=samples)
    assert verdict.ok
    with pytest.raises(InvalidView) as unfit:
        checker.check(source, task, samples=(views, jnp.zeros((8, 3)), views))
    assert unfit.value.leaf == "action"
    with pytest.raises(InvalidSetting) as malformed:
        checker.check(source, task, samples=[1])
    assert malformed.value.settings == ("samples",)


def test_many_are_checked_in_order(checker, task):
    sources = [obs(f"return state.pos * {k}.5") for k in range(6)] + [obs("return None")]
    outcomes = checker.check_many(sources, task)
    assert [v.ok for v, _ in outcomes] == [True] * 6 + [False]
    view = task.view(task.reset(jax.random.key(0)))
    for k, (_, program) in enumerate(outcomes[:6]):
        np.testing.assert_allclose(program.observe(view), view.pos * (k + 0.5))
    assert checker.check_many([], task) == []


def test_a_check_that_was_prefetched_is_not_made_again(checker, task, monkeypatch):
    """The verdict and the program are those of a check at the time, and what fails then fails now."""
    sources, passed, made = [PLAIN, rew("return 1 / 0"), PLAIN], list[Program](), list[str]()
    at_once = checker.check_many(sources[:2], task)
    check, ready = Checker._check, threading.Event()

    def counted(self, worker, source, *rest):
        made.append(source)
        return check(self, worker, source, *rest)

    def then(program: Program) -> None:
        passed.append(program)
        ready.set()

    monkeypatch.setattr(Checker, "_check", counted)
    for source in sources:
        checker.prefetch(source, task, then)
    assert checker.check_many(sources[:2], task, names=["a", "b"])[1] == at_once[1]
    assert sorted(made) == sorted(sources[:2]) and ready.wait(10)
    verdict, program = checker.check(PLAIN, task, name="again")
    assert made.count(PLAIN) == 2, "what was told once is forgotten"
    assert (verdict, program.digest, program.name) == (at_once[0][0], at_once[0][1].digest, "again")
    assert [p.digest for p in passed] == [program.digest]


def test_a_failed_prefetched_check_raises_where_its_result_is_requested(checker, task, monkeypatch):
    def broken(*_):
        raise SandboxError("no process can be started")

    with monkeypatch.context() as during:
        during.setattr(Checker, "_check", broken)
        checker.prefetch(PLAIN, task)
        with pytest.raises(SandboxError, match="no process"):
            checker.check(PLAIN, task)
    assert checker.check(PLAIN, task)[0].ok


@pytest.mark.long
def test_closing_does_not_wait_for_prefetched_checks(task):
    endless = rew("total = sum(i for i in range(10**12))\nreturn 1.0 * total")
    with Checker(Limits(wall_s=60.0, cpu_s=60), workers=1) as slow:
        slow.check(PLAIN, task)
        for k in range(3):
            slow.prefetch(endless + f"# {k}\n", task)
        begun, *_, last = [checked for checked, _ in slow._ahead.values()]
        time.sleep(0.5)
        slow.close()
        assert "the worker was lost" in failure_of(begun.result()[0]).message, "and not: it took too long"
        assert last.cancelled(), "and who waits for it makes it anew"
        assert slow.check(PLAIN, task)[0].ok


def test_load_raises_with_the_verdict(checker, task, tmp_path):
    path = tmp_path / "candidate.py"
    path.write_text(suite_faulty.CASES["shape_mismatch"][1])
    with pytest.raises(ProgramRejected) as rejected:
        checker.load(path, task)
    found = rejected.value
    assert (found.name, found.failure.stage, found.failure.line) == ("candidate.py", "trace", 4)
    assert found.failure == failure_of(found.verdict) and isinstance(found, UserError)
    path.write_bytes(b"\xff\xfe")
    missing = tmp_path / "missing.py"
    for file, problem in (
        (missing, FileProblem.MISSING), (str(path), FileProblem.WRONG_KIND), (tmp_path, FileProblem.WRONG_KIND)
    ):  # fmt: skip
        with pytest.raises(UnusableFile) as unusable:
            checker.load(file, task)
        assert (unusable.value.path, unusable.value.problem) == (Path(file), problem)


def test_the_default_checker_is_shared(task):
    import jaxreward as jr

    assert jr.check_program(PLAIN, task).ok
    assert jr.load_program(PLAIN, task).observation_size == 4
    assert "seccomp" in __import__("jaxreward.programs", fromlist=["x"]).sandbox_status()


# ---- processes that fail


@pytest.fixture
def fragile():
    with Checker(Limits(cpu_s=3, wall_s=12.0, verify_s=20.0), workers=1) as own:
        yield own


def _kill(process: Process) -> None:
    assert process.pid is not None
    os.kill(process.pid, signal.SIGKILL)


@pytest.mark.long
def test_killed_helpers_are_restarted(fragile, task):
    assert fragile.check(PLAIN, task)[0].ok
    worker = fragile._workers[0]
    for process in (worker.tracer, worker.verifier):
        _kill(process)
        time.sleep(0.1)
        assert fragile.check(PLAIN, task)[0].ok


@pytest.mark.long
def test_a_helper_that_dies_at_work_costs_one_candidate(fragile, task):
    assert fragile.check(PLAIN, task)[0].ok
    worker = fragile._workers[0]
    timer = threading.Timer(0.5, _kill, [worker.tracer])
    timer.start()
    verdict, program = fragile.check(suite_faulty.CASES["infinite_for"][1], task)
    timer.join()
    assert (
        program is None and failure_of(verdict).stage == "killed" and "worker was lost" in failure_of(verdict).message
    )
    assert fragile.check(PLAIN, task)[0].ok


@pytest.mark.long
def test_a_stopped_worker_costs_one_candidate(task, monkeypatch):
    """Neither a full pipe nor silence can hold the checker up."""
    monkeypatch.setattr("jaxreward.programs.checker._WAIT_S", 1.0)
    with Checker(Limits(wall_s=0.5), workers=1) as own:
        assert own.check(PLAIN, task)[0].ok
        pid = own._workers[0].tracer.pid
        assert pid is not None
        os.kill(pid, signal.SIGSTOP)
        begun = time.monotonic()
        verdict, _ = own.check(PLAIN + "#" * 30_000, task)
        assert failure_of(verdict).stage == "killed" and time.monotonic() - begun < 15
        assert own.check(PLAIN, task)[0].ok


@pytest.mark.long
def test_a_program_that_compiles_too_long_is_killed(task):
    """Deep chains of moves take XLA exponential time: no limit sees it, the clock does."""
    bomb = obs("x = jnp.tile(state.pos, 2)\nfor i in range(400):\n    x = jnp.sin(x) * 1.0001 + x[::-1]\nreturn x")
    with Checker(Limits(verify_s=4.0), workers=1) as own:
        assert own.check(PLAIN, task)[0].ok
        verdict, _ = own.check(bomb, task)
        assert failure_of(verdict).stage == "killed" and "exponential" in failure_of(verdict).hint
        assert own.check(suite_good.CASES["scan_with_outputs"][0], task)[0].ok


def test_a_helper_that_cannot_start_is_a_sandbox_error(task, monkeypatch):
    with Checker(workers=1) as own:
        own._workers[0].tracer.module = "jaxreward.programs.no_such_module"
        with pytest.raises(SandboxError, match="no_such_module"):
            own.check(PLAIN, task)
        own._workers[0].tracer.module = "jaxreward.programs.worker"
        own._workers[0].verifier.module = "jaxreward.programs.no_such_module"
        with pytest.raises(SandboxError, match="no_such_module"):
            own.check(PLAIN, task)


@pytest.mark.long
def test_checks_without_a_sandbox_are_refused_unless_allowed(task):
    for allowed in (False, True):
        with Checker(workers=1, unsafe_no_sandbox=allowed) as own:
            hello = own._workers[0].tracer.start()
            hello["sandbox"] = {"ok": False, "reason": "the sandbox needs Linux, this is plan9", "landlock": 0}
            with pytest.raises(NoSandbox) as refused:
                own.sandbox_status()
            assert refused.value.reason == hello["sandbox"]["reason"]
            assert "plan9" in str(refused.value) and "unsafe_no_sandbox=True" in str(refused.value)
            if not allowed:
                with pytest.raises(NoSandbox):
                    own.check(PLAIN, task)
                continue
            with pytest.warns(UserWarning, match="without a sandbox"):
                verdict, _ = own.check(PLAIN, task)
            assert verdict.ok and [n.kind for n in verdict.notices] == ["no_sandbox"]
            verdict, _ = own.check(obs("return None"), task)  # warned once only
            assert failure_of(verdict).stage == "contract" and verdict.notices[0].kind == "no_sandbox"


def test_closing_ends_the_processes(task):
    own = Checker(workers=1)
    own.check(PLAIN, task)
    pids = [p.pid for p in (own._workers[0].tracer, own._workers[0].verifier)]
    own.close()
    for pid in pids:
        assert pid is not None
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)


def test_importing_the_package_loads_no_jax():
    import subprocess
    import sys

    code = "import sys, jaxreward.programs; raise SystemExit('jax' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)
