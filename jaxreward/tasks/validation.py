"""Validation of a task against the protocol, by tracing its methods and a few real steps."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, cast

import jax
import jax.numpy as jnp

from jaxreward.errors import UserError
from jaxreward.records import SUCCESS, Measure, Vocabulary
from jaxreward.tasks.contract import METHODS, METRIC, OPTIONAL, check_attributes, check_signatures, described
from jaxreward.tasks.finding import Finding
from jaxreward.tasks.smoke_test import smoke_test
from jaxreward.tasks.source_locator import SourceLocator
from jaxreward.tasks.task import Box, ExtraMetrics
from jaxreward.tasks.traces import (
    InvalidMethod,
    Traced,
    check_state_words,
    method_error,
    require_deterministic,
    require_scalar,
    require_vector,
    traced,
    tree_changes,
)

_NUMBER, _BOOL = "a real number, shape ()", "a bool of shape (): compare, or add .astype(bool)"


class InvalidTask(UserError):
    """A task with mistakes: the sentence of the first, and the number of others.

    Attributes:
        findings: all of them.
    """

    def __init__(self, findings: Sequence[Finding]) -> None:
        more = len(findings) - 1
        rest = f"; and {more} more mistake{'s' * (more > 1)}, which `jaxreward check` lists" if more else ""
        super().__init__(f"{findings[0]}{rest}")
        self.findings = tuple(findings)


def mistakes_in(task: Any, *, quick: bool = False) -> tuple[Finding, ...]:
    """The mistakes in a task, causes before their consequences; empty for a sound task.

    Its methods are traced on abstract arrays, and a few steps with random actions are computed; `quick` skips steps
    that take long to compile. Fragments of the vocabulary are not checked: see `jaxreward.check_task`.
    """
    locator = SourceLocator(task)
    try:
        found = [*check_attributes(task, locator), *check_signatures(task, METHODS, locator)]
        found += check_signatures(task, {n: g for n, g in OPTIONAL.items() if hasattr(task, n)}, locator)
        return tuple(found or _Validation(task, locator).findings(quick))
    except InvalidMethod as invalid:
        return (invalid.finding,)


def require_sound(task: Any) -> None:
    """Require that a task has no mistake. Tasks of this package are taken to have none; others are checked once.

    Raises:
        InvalidTask: it has some.
    """
    require_none(task, _VALID, lambda: mistakes_in(task, quick=True))


_OTHERS = "jaxreward.tasks.adapters."
"""Modules of tasks that consist of others' code."""
_MAX_VALID = 32
_VALID = dict[int, Any]()


def require_none(task: Any, valid: dict[int, Any], find: Callable[[], tuple[Finding, ...]]) -> None:
    """Require that `find` returns no mistake in `task`, one of this package or one that is `valid` already apart.

    Args:
        valid: some tasks without mistakes by id, referenced so that no other object gets the same id; `task` is added.

    Raises:
        InvalidTask: it has some.
    """
    module = type(task).__module__
    ours = module.startswith("jaxreward.tasks.") and not module.startswith(_OTHERS)
    if ours or id(task) in valid:
        return
    if found := find():
        raise InvalidTask(found)
    valid[id(task)] = task
    if len(valid) > _MAX_VALID:
        del valid[next(iter(valid))]


class _Validation:
    """Checks what the methods of a task return; its attributes and signatures are valid."""

    def __init__(self, task: Any, locator: SourceLocator) -> None:
        self.task, self.locator = task, locator
        self.traces: dict[str, Traced] = {}
        space = task.action_space
        real = isinstance(space, Box)
        self.action = jax.ShapeDtypeStruct(space.shape if real else (), jnp.float32 if real else jnp.int32)

    def findings(self, quick: bool) -> Iterator[Finding]:
        """All findings; raises `InvalidMethod` where nothing else can be checked."""
        self._trace("reset", (jax.eval_shape(lambda: jax.random.key(0)),), again=True)
        state = self.traces["reset"].out
        if not jax.tree.leaves(state):
            location = self.locator.line_of_result(self.task.reset)
            raise InvalidMethod("`reset` returns a state without arrays: put what changes into it", location)
        checks = (self._step, self._terminated, self._metric, self._view, self._vocabulary)
        found = [finding for check in checks for finding in self._collect(check, state)]
        yield from found
        if not found:
            yield from smoke_test(self.task, self.traces, self.metric, self.locator, quick)

    def _collect(self, check: Callable[..., Iterator[Finding]], *arguments: Any) -> Iterator[Finding]:
        try:
            yield from check(*arguments)
        except InvalidMethod as invalid:
            yield invalid.finding

    def _trace(self, name: str, arguments: tuple[Any, ...], again: bool = False) -> Traced:
        """Trace a method of the task; with `again` require that a second trace is the same."""
        method = getattr(self.task, name)
        found = self.traces[name] = traced(name, method, arguments, self.locator)
        if again:
            require_deterministic(name, method, arguments, found, self.locator)
        return found

    def _step(self, state: Any) -> Iterator[Finding]:
        found = self._trace("step", (state, self.action), again=True)
        yield from tree_changes("step", state, found, self.task.step, self.locator)

    def _terminated(self, state: Any) -> Iterator[Finding]:
        found = self._trace("terminated", (state,), again=True)
        require_scalar("terminated", found, "b", _BOOL, self.task.terminated, self.locator)
        yield from ()

    def _metric(self, state: Any) -> Iterator[Finding]:
        locator = self.locator
        try:
            self.metric = metric = cast(Any, self.task.score())
        except (Exception, SystemExit) as error:
            raise method_error("score", error, locator) from error
        location = locator.line_of_result(self.task.score)
        if metric is None:
            raise InvalidMethod(
                "`score` returns None: end it with a return statement, such as return Reached(...)", location
            )
        if isinstance(metric, type):
            kind = metric.__name__
            raise InvalidMethod(f"`score` returns the class {kind}: return one of it, {kind}()", location)
        if missing := [name for name in METRIC if not hasattr(metric, name)]:
            text = (
                f"`score` returns {described(metric)} without {', '.join(missing)}: return a metric, such as those of "
            )
            raise InvalidMethod(f"{text}jaxreward.tasks.metrics", location)
        of = SourceLocator(metric if locator.is_user_class(metric) else self.task, location)
        bad = list(check_signatures(metric, METRIC, of, "score()."))
        yield from bad
        if bad:
            return
        measure = getattr(metric, "measure", SUCCESS)
        if not isinstance(measure, Measure):
            yield Finding(f"the metric's `measure` is {described(measure)}: use a jaxreward.records.Measure", *location)
            return
        gathered = self.traces["init"] = traced("score().init", metric.init, (), of)
        update = traced("score().update", metric.update, (gathered.out, state, self.action, state), of)
        self.traces["update"] = update
        require_deterministic("score().update", metric.update, (gathered.out, state, self.action, state), update, of)
        yield from tree_changes("score().update", gathered.out, update, metric.update, of)
        value = self.traces["value"] = traced("score().value", metric.value, (gathered.out,), of)
        require_scalar("score().value", value, "biuf", _NUMBER, metric.value, of)
        if isinstance(metric, ExtraMetrics):
            extra = traced("score().also", metric.also, (gathered.out,), of).out
            if getattr(extra, "shape", None) != (len(metric.names),):
                text = f"`score().also` must return an array of shape ({len(metric.names)},), one number for each name"
                yield Finding(text, *of.line_of_result(metric.also))

    def _view(self, state: Any) -> Iterator[Finding]:
        task, locator = self.task, self.locator
        view = self._trace("view", (state,)).out
        leaves = jax.tree.leaves(view)
        location = locator.line_of_result(task.view)
        if not leaves:
            raise InvalidMethod("`view` returns no array: programs would have nothing to read", location)
        if any(jax.dtypes.issubdtype(leaf.dtype, jax.dtypes.prng_key) for leaf in leaves):
            raise InvalidMethod(
                "`view` shows a random key: leave it out, programs may not foresee what it draws", location
            )
        yield from check_state_words(view, task.state_words, locator)
        yield from self._collect(self._observation, view)
        yield from self._collect(self._reward, "sparse_reward", view)
        if hasattr(task, "dense_reward"):
            yield from self._collect(self._reward, "dense_reward", view)

    def _observation(self, view: Any) -> Iterator[Finding]:
        require_vector("default_observation", self._trace("default_observation", (view,), again=True),
               self.task.default_observation, self.locator)  # fmt: skip
        yield from ()

    def _reward(self, name: str, view: Any) -> Iterator[Finding]:
        found = self._trace(name, (view, self.action, view), again=True)
        require_scalar(name, found, "biuf", _NUMBER, getattr(self.task, name), self.locator)
        yield from ()

    def _vocabulary(self, _: Any) -> Iterator[Finding]:
        try:
            found = self.task.vocabulary()
        except (Exception, SystemExit) as error:
            raise method_error("vocabulary", error, self.locator) from error
        if not isinstance(found, Vocabulary):
            location = self.locator.line_of_result(self.task.vocabulary)
            text = (
                f"`vocabulary` returns {described(found)}: return a jaxreward.records.Vocabulary, Vocabulary() for none"
            )
            yield Finding(text, *location)
