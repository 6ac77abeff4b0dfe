"""From source to verdict: the worker and the verifier behind one object."""

from __future__ import annotations

import dataclasses
import json
import threading
import warnings
from collections.abc import Callable, Sequence
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any

from jaxreward import files
from jaxreward.devices import cores
from jaxreward.errors import InvalidSetting, JaxrewardWarning, UnusableFile, problem_of, why_unreadable
from jaxreward.function_source import source_of
from jaxreward.programs.constants import FloatLiteral
from jaxreward.programs.flops import Cost
from jaxreward.programs.functions import Functions, ProgramLike, explained, functions_of, label, text_of, traced
from jaxreward.programs.limits import Limits
from jaxreward.programs.play import UnplayableTask
from jaxreward.programs.process import Lost, NoSandbox, Process, SandboxError
from jaxreward.programs.program import Half, Program, ProgramRejected, Skeleton, assemble
from jaxreward.programs.spec import Spec
from jaxreward.programs.target import Packed, Target
from jaxreward.programs.worker_reply import Failed, read_reply
from jaxreward.records import Failure, Notice, Verdict

_WAIT_S = 10.0
_HAND_OVER_S = 120.0


class _Worker:
    """A process that traces programs and one that verifies the traces, used by one thread at a time."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        # A backend that does not exist: an array that is computed rather than traced is an error.
        self.tracer = Process("jaxreward.programs.worker", JAX_PLATFORMS="none_such", JAX_TRACEBACK_FILTERING="off")
        self.verifier = Process("jaxreward.programs.verify", JAX_PLATFORMS="cpu")

    def stop(self) -> None:
        self.tracer.stop()
        self.verifier.stop()


class Checker:
    """Checks programs, one process after the other and as many at a time as there are cores.

    Use it as a context manager, or one for the life of a process. It is thread-safe.

    Args:
        limits: what a program may cost.
        unsafe_no_sandbox: check without the sandbox where the system has none. The source is then
            executed with the rights of the user, after the allow-list alone.
        workers: programs in flight, by default as many as there are cores.

    Raises:
        NoSandbox: on first use, where there is no sandbox and `unsafe_no_sandbox` is not set.
        SandboxError: the processes cannot be started. Never the fault of a program.
    """

    def __init__(
        self, limits: Limits | None = None, *, unsafe_no_sandbox: bool = False, workers: int | None = None
    ) -> None:
        self.limits = limits or Limits()
        self.unsafe = unsafe_no_sandbox
        self._workers = [_Worker() for _ in range(workers or cores())]
        self._targets: dict[int, Target] = {}
        self._warned = False
        self._ahead: dict[tuple[str, int, bool], tuple[Future[tuple[Verdict, Program | None]], Any]] = {}
        self._pools: tuple[ThreadPoolExecutor, ThreadPoolExecutor] | None = None
        self._prefetching = threading.Lock()

    def __enter__(self) -> Checker:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the processes; the next check starts them again."""
        with self._prefetching:
            pools, self._pools = self._pools, None
            self._ahead.clear()
        for threads in pools or ():
            threads.shutdown(wait=False, cancel_futures=True)
        self._stop()  # so that the threads do not wait for a slow program
        for threads in pools or ():
            threads.shutdown()
        self._stop()

    def _stop(self) -> None:
        for worker in self._workers:
            worker.stop()

    # ---- public

    def check(
        self, source: str, task: Any, *, samples: Any = None, name: str = "program", debug: bool = False
    ) -> tuple[Verdict, Program | None]:
        """The verdict on `source`, and the program if it passed.

        Args:
            task: a task, a `Spec`, or a pair `(state, action)` of trees of `jax.ShapeDtypeStruct`.
            samples: `(views, actions, next_views)` with a leading axis, for the numeric checks; by default
                `task.sample_transitions()` if the task has that method, else transitions of random actions, and
                random arrays where there is no task.
            debug: trace and check a function `debug(state)` too, if the program defines one; otherwise it is a function
                like any other.
        """
        ahead, _ = self._ahead.pop((source, id(task), debug), (None, None)) if samples is None else (None, None)
        if ahead is not None and not ahead.cancel():  # one that has not begun is checked here instead
            with suppress(CancelledError):
                verdict, program = ahead.result()
                return verdict, program and dataclasses.replace(program, name=name)
        return self._checked(source, task, samples, name, debug)

    def prefetch(
        self, source: str, task: Any, then: Callable[[Program], None] | None = None, *, debug: bool = False
    ) -> None:
        """Begin to check a program in a thread; `check` and `check_many` of this text wait for the result.

        Args:
            then: called in another thread with a program that passed. Its exceptions are ignored.
        """

        def passed(checked: Future[tuple[Verdict, Program | None]]) -> None:
            if checked.cancelled() or checked.exception() is not None or then is None:
                return
            _, program = checked.result()
            if program is not None:
                with suppress(RuntimeError):  # closed meanwhile
                    later.submit(then, program)

        with self._prefetching:
            if self._pools is None:
                n = len(self._workers)
                self._pools = ThreadPoolExecutor(n, "check"), ThreadPoolExecutor(n, "then")
            now, later = self._pools
            if (source, id(task), debug) in self._ahead:
                return
            checked = now.submit(self._checked, source, task, None, "program", debug)
            self._ahead[source, id(task), debug] = (checked, task)  # holds the task, so that its id stays unique
        checked.add_done_callback(passed)

    foresee = prefetch  # its name in earlier versions

    def check_many(
        self,
        sources: Sequence[str],
        task: Any,
        *,
        samples: Any = None,
        names: Sequence[str] | None = None,
        debug: bool = False,
    ) -> list[tuple[Verdict, Program | None]]:
        """`check` for each source, in order, as many at a time as there are workers."""
        names = names or [f"program {i}" for i in range(len(sources))]
        if len(sources) <= 1 or len(self._workers) == 1:
            pairs = zip(sources, names, strict=True)
            return [self.check(s, task, samples=samples, name=n, debug=debug) for s, n in pairs]
        self._target(task)  # fails once, not in every thread
        with ThreadPoolExecutor(len(self._workers), "check") as pool:
            check = partial(self.check, task=task, samples=samples, debug=debug)
            return list(pool.map(lambda source, label: check(source, name=label), sources, names))

    def load(self, program: ProgramLike, task: Any, *, samples: Any = None, trusted: bool = False) -> Program:
        """The program in a file, of a source text, or of functions, as `load_program` describes it."""
        functions = functions_of(program)
        if trusted:
            return self._trusted(functions, task, samples)
        source, name = (source_of(*functions), label(functions)) if functions else _read(program)
        verdict, loaded = self.check(source, task, samples=samples, name=name)
        if loaded is None:
            if functions and verdict.failure is not None:
                told = explained(verdict.failure, source, self._target(task).spec, self.limits)
                verdict = verdict.model_copy(update={"failure": told})
            raise ProgramRejected(name, verdict)
        return loaded

    def _trusted(self, functions: Functions, task: Any, given: Any) -> Program:
        """A program of functions that are traced in this process."""
        if not functions:
            raise InvalidSetting("trusted=True is for functions: import the file, and give those of it", "trusted")
        target, name = self._target(task), label(functions)
        source, nodes = text_of(functions)
        try:
            halves = traced(functions, task, target.spec, self.limits)
            own = {"observation": halves[0] is not None, "reward": halves[1] is not None}
            observation, reward = halves[0] or target.default("observation"), halves[1] or target.default("reward")
            samples = target.samples(given)
            with self._worker() as worker:
                cost, *_ = self._verify(worker, observation, reward, {**own, "lines": {}}, target.spec, samples)
        except Failed as bad:
            raise ProgramRejected(name, Verdict(failure=bad.failure)) from bad.__cause__
        return assemble(source, name, target.spec, observation, reward, nodes, cost)

    def sandbox_status(self) -> str:
        """The sandbox of this machine, in words.

        Raises:
            NoSandbox: there is none here.
        """
        with self._worker() as worker:
            sandbox = worker.tracer.start()["sandbox"]
            if not sandbox["ok"]:
                raise NoSandbox(sandbox["reason"])
            abi = sandbox["landlock"]
            extra = f" and landlock (ABI {abi})" if abi else "; no landlock"
            return f"seccomp on {worker.tracer.hello['machine']}{extra}"

    # ---- one check

    @contextmanager
    def _worker(self) -> Any:
        for worker in self._workers:
            if worker.lock.acquire(blocking=False):
                break
        else:
            worker = self._workers[threading.get_ident() % len(self._workers)]
            worker.lock.acquire()
        try:
            yield worker
        finally:
            worker.lock.release()

    def _target(self, task: Any) -> Target:
        known = self._targets.get(id(task))
        if known is None or known.task is not task:
            if len(self._targets) >= 16:
                self._targets.clear()
            known = self._targets[id(task)] = Target(task, Spec.of(task), self.limits.magnitude)
        return known

    def _sandboxed(self, worker: _Worker) -> bool:
        """Whether the worker locks its children down; raises where it cannot and `unsafe` is not set."""
        sandbox = worker.tracer.start()["sandbox"]
        if sandbox["ok"]:
            return True
        if not self.unsafe:
            raise NoSandbox(sandbox["reason"])
        if not self._warned:
            self._warned = True
            warnings.warn(
                f"programs are executed without a sandbox: {sandbox['reason']}", JaxrewardWarning, stacklevel=5
            )
        return False

    def _checked(
        self, source: str, task: Any, given: Any, name: str, debug: bool = False
    ) -> tuple[Verdict, Program | None]:
        target = self._target(task)
        with self._worker() as worker:
            return self._check(worker, source, target, given, name, debug)

    def _check(
        self, worker: _Worker, source: str, target: Target, given: Any, name: str, debug: bool
    ) -> tuple[Verdict, Program | None]:
        sandboxed = self._sandboxed(worker)
        aside = () if sandboxed else (Notice(kind="no_sandbox", message="checked without a sandbox"),)
        try:
            guarded, traced = self._work(worker, source, target.spec, sandboxed, debug)
            own = (bool(guarded["observation"]), bool(guarded["reward"]))
            observation = Half(traced["observation"]) if own[0] else target.default("observation")
            reward = _reward_of(traced, guarded) if own[1] else target.default("reward")
            shown = Half(traced["debug"], traced["debug_names"]) if guarded.get("debug") else None
            samples = target.samples(given)  # after the trace: rejected programs need no samples
            cost, notices, lifts = self._verify(worker, observation, reward, guarded, target.spec, samples, shown)
            reward = reward if lifts else dataclasses.replace(reward, skeleton=None)
            nodes = guarded["reward_nodes"] if own[1] else 0
            program = assemble(source, name, target.spec, observation, reward, nodes, cost, shown)
        except Failed as bad:
            return Verdict(failure=bad.failure, notices=aside), None
        return Verdict(summary=program.summary, notices=(*aside, *notices)), program

    def _work(
        self, worker: _Worker, source: str, spec: Spec, sandboxed: bool, debug: bool
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """The guard's verdict, and the trace, which is untrusted."""
        limits = self.limits
        if len(source) > 4 * limits.source_bytes:
            hint = "write loops instead of long lists"
            raise Failed(Failure(stage="limits", message=f"the source has {len(source)} characters", hint=hint))
        try:
            source.encode()
        except UnicodeEncodeError as error:
            raise Failed(Failure(stage="guard", message="the source is not valid Unicode text")) from error
        request = {
            "source": source, "spec": spec.as_json(), "limits": limits.as_json(), "sandbox": sandboxed, "debug": debug,
        }  # fmt: skip
        try:
            patience, most = limits.wall_s + _WAIT_S, limits.reply_bytes + (1 << 20)
            reply = worker.tracer.ask(json.dumps(request).encode(), patience, most)
        except Lost as lost:
            raise Failed(Failure(stage="killed", message=f"the worker was lost: {lost}")) from lost
        return read_reply(reply, limits)

    def _verify(
        self, worker: _Worker, observation: Half, reward: Half, guarded: dict[str, Any], spec: Spec,
        samples: Packed | None, debug: Half | None = None,
    ) -> tuple[Cost, tuple[Notice, ...], bool]:  # fmt: skip
        """The verifier's answer: cost, notices, and whether the skeleton of the reward is one."""
        lifted = reward.skeleton
        request = {
            "observation": observation.tape, "reward": reward.tape, "terms": reward.terms, "spec": spec.as_json(),
            "own": [bool(guarded["observation"]), bool(guarded["reward"])], "limits": self.limits.as_json(),
            "inputs": samples.key if samples else None,
            "skeleton": [lifted.tape, [c.value for c in lifted.constants]] if lifted else None,
            "debug": debug.tape if debug else None,
        }  # fmt: skip
        answer = self._judged(worker, request)
        if "unknown" in answer and samples is not None:  # a fresh verifier
            self._hand_over(worker, samples, request["spec"])
            answer = self._judged(worker, request)
        if "failure" in answer:
            line = guarded["lines"].get(answer.get("half"))
            raise Failed(Failure(**{"line": line, **{k: v for k, v in answer["failure"].items() if v is not None}}))
        return Cost(**answer["cost"]), tuple(Notice(**n) for n in answer["notices"]), bool(answer["lifts"])

    def _hand_over(self, worker: _Worker, samples: Packed, spec: dict[str, Any]) -> None:
        """Send the verifier a task's transitions. A failure here is not the program's."""
        request = {"inputs": samples.key, "samples": samples.packed, "spec": spec}
        try:
            answer = json.loads(worker.verifier.ask(json.dumps(request).encode(), _HAND_OVER_S, 1 << 20))
        except Lost as lost:
            raise SandboxError(f"the verifier was lost while it took in transitions of the task: {lost}") from lost
        if "fault" in answer:
            raise UnplayableTask(f"programs cannot be judged on the transitions of this task: {answer['fault']}")

    def _judged(self, worker: _Worker, request: dict[str, Any]) -> dict[str, Any]:
        try:
            return json.loads(worker.verifier.ask(json.dumps(request).encode(), self.limits.verify_s, 1 << 20))
        except Lost as lost:
            message = f"compiling and evaluating it did not end well in {self.limits.verify_s:g} s: {lost}"
            hint = "long chains of x[::-1], jnp.roll, jnp.stack and slices take XLA exponential time: shorten them"
            raise Failed(Failure(stage="killed", message=message, hint=hint)) from lost


def _reward_of(traced: dict[str, Any], guarded: dict[str, Any]) -> Half:
    """The reward's half as the worker gives it, not yet checked."""
    skeleton = None
    if traced["lifted"]:
        tape, which = traced["lifted"]
        skeleton = Skeleton(tape, tuple(FloatLiteral(*guarded["constants"][i]) for i in which))
    return Half(traced["reward"], traced["terms"], skeleton)


def _read(path_or_source: Any) -> tuple[str, str]:
    text = str(path_or_source)
    if isinstance(path_or_source, str) and not text.strip():
        raise InvalidSetting("the program is empty: give a path, a text, a function or a pair of functions", "programs")
    if isinstance(path_or_source, str) and ("\n" in text or len(text) > 4096):
        return text, "program"
    path = Path(text)
    return read_program(path), path.name


def read_program(path: Path, *, links: bool = True) -> str:
    """The source in a file that the user named, maybe by a link, or, without `links`, in that of a run; `UnusableFile`
    where it cannot be read."""
    try:
        return files.read_text(path, links=links)
    except (OSError, UnicodeDecodeError) as error:
        message = f"cannot read the program {path}: {why_unreadable(error)}"
        raise UnusableFile(message, path, problem_of(error)) from error
