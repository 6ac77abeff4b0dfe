"""Validation of a task against the protocol, by tracing its methods and a few real steps."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Sequence
from typing import Any, cast

import jax
import jax.numpy as jnp

from jaxreward.errors import UserError
from jaxreward.records import SUCCESS, Measure, Vocabulary
from jaxreward.tasks.base import derived_methods
from jaxreward.tasks.contract import METHODS, METRIC, OPTIONAL, SOURCES, check_attributes, check_signatures, described
from jaxreward.tasks.finding import Finding, Location
from jaxreward.tasks.metrics import Mean, Reached, Sum
from jaxreward.tasks.smoke_test import smoke_test
from jaxreward.tasks.source_locator import ADAPTERS, SourceLocator
from jaxreward.tasks.task import Box, ExtraMetrics, Progressive
from jaxreward.tasks.traces import (
    InvalidMethod,
    Traced,
    check_state_words,
    described_tree,
    dtype_and_shape,
    method_error,
    require_deterministic,
    require_scalar,
    require_vector,
    traced,
    tree_changes,
)
from jaxreward.tasks.unchanged import require_unchanged
from jaxreward.tasks.wording import wording_of

_NUMBER, _BOOL = "a real number, shape ()", "a bool of shape ()"


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
    locator, wording = SourceLocator(task), wording_of(task)
    sources = set().union(*derived_methods(task).values())
    more = {name: given for name, given in SOURCES.items() if name in sources}
    more |= {name: given for name, given in OPTIONAL.items() if hasattr(task, name)}
    try:
        found = [*check_attributes(task, locator), *check_signatures(task, {**METHODS, **more}, locator, wording)]
        return tuple(found or _Validation(task, locator).findings(quick))
    except InvalidMethod as invalid:
        return (invalid.finding,)


def require_sound(task: Any) -> None:
    """Require that a task has no mistake. Tasks of this package are taken to have none; others are checked once.

    Raises:
        InvalidTask: it has some.
        InvalidSetting: it has been changed since it was checked.
    """
    if not _is_ours(task):
        require_unchanged(task)
    require_none(task, _VALID, lambda: mistakes_in(task, quick=True))


_MAX_VALID = 32
_VALID = dict[int, Any]()


def require_none(task: Any, valid: dict[int, Any], find: Callable[[], tuple[Finding, ...]]) -> None:
    """Require that `find` returns no mistake in `task`, one of this package or one that is `valid` already apart.

    Args:
        valid: some tasks without mistakes by id, referenced so that no other object gets the same id; `task` is added.

    Raises:
        InvalidTask: it has some.
    """
    if _is_ours(task) or id(task) in valid:
        return
    if found := find():
        raise InvalidTask(found)
    valid[id(task)] = task
    if len(valid) > _MAX_VALID:
        del valid[next(iter(valid))]


def _is_ours(task: Any) -> bool:
    module = type(task).__module__
    return module.startswith("jaxreward.tasks.") and not module.startswith(ADAPTERS)


class _Validation:
    """Checks what the methods of a task return; its attributes and signatures are valid."""

    def __init__(self, task: Any, locator: SourceLocator) -> None:
        self.task, self.locator, self.wording = task, locator, wording_of(task)
        self.derived, self.faulty = derived_methods(task), set[str]()
        self.traces: dict[str, Traced] = {}
        space = task.action_space
        real = isinstance(space, Box)
        self.action = jax.ShapeDtypeStruct(space.shape if real else (), jnp.float32 if real else jnp.int32)

    def findings(self, quick: bool) -> Iterator[Finding]:
        """All findings; raises `InvalidMethod` where nothing else can be checked."""
        self._trace("reset", (jax.eval_shape(lambda: jax.random.key(0)),))
        state = self.traces["reset"].out
        if not jax.tree.leaves(state):
            location = self.locator.line_of_result(self.task.reset)
            raise InvalidMethod("`reset` returns a state without arrays: put what changes into it", location)
        checks = {
            "step": self._step, "success": self._success, "terminated": self._terminated, "score": self._metric,
            "view": self._view, "vocabulary": self._vocabulary,
        }  # fmt: skip
        if "sparse_reward" in self.derived.get("score", ()):
            checks["score"] = checks.pop("score")  # after what it is computed from
        found = [finding for name, check in checks.items() for finding in self._collect(name, check, state)]
        yield from found
        if not found:
            yield from smoke_test(self.task, self.traces, self.metric, self.locator, quick)

    def _collect(self, name: str, check: Callable[..., Iterator[Finding]], *arguments: Any) -> Iterator[Finding]:
        """What is wrong with the method `name`; nothing where that follows from another's mistake."""
        if self.faulty.intersection(self.derived.get(name, ())):
            self.faulty.add(name)
            return
        try:
            for finding in check(*arguments):
                self.faulty.add(name)
                yield finding
        except InvalidMethod as invalid:
            self.faulty.add(name)
            yield invalid.finding

    def _trace(self, name: str, arguments: tuple[Any, ...]) -> Traced:
        """Trace a method of the task, and require that a second trace is the same."""
        method, called = getattr(self.task, name), self.wording.name(name)
        found = self.traces[name] = traced(called, method, arguments, self.locator)
        require_deterministic(called, method, arguments, found, self.locator)
        return found

    def _step(self, state: Any) -> Iterator[Finding]:
        try:
            found = self._trace("step", (state, self.action))
        except InvalidMethod as invalid:
            yield dataclasses.replace(invalid.finding, message=invalid.finding.message + self._given(state, invalid))
            return
        yield from tree_changes("step", state, found, self.task.step, self.locator)

    def _given(self, state: Any, invalid: InvalidMethod) -> str:
        """What `step` is given, where that may be why it fails, as the end of a sentence."""
        told = isinstance(invalid.__cause__, jax.errors.JAXTypeError | jax.errors.JAXIndexError)  # what to do, already
        if told or not isinstance(invalid.__cause__, TypeError | IndexError):
            return ""
        if type(state) is tuple:
            return f"; its state is all that `reset` returns, {described_tree(state)}: return the state alone there"
        space = type(self.task.action_space).__name__
        return f"; it is given a state of `reset` and an action of the {space}, {dtype_and_shape(self.action)}"

    def _success(self, state: Any) -> Iterator[Finding]:
        if any("success" in sources for sources in self.derived.values()):
            self._require_bool("success", state)
        yield from ()

    def _terminated(self, state: Any) -> Iterator[Finding]:
        self._require_bool("terminated", state)
        yield from ()

    def _require_bool(self, name: str, state: Any) -> None:
        found = self._trace(name, (state,))
        require_scalar(self.wording.name(name), found, "b", _BOOL, getattr(self.task, name), self.locator)

    def _metric(self, state: Any) -> Iterator[Finding]:
        locator, wording = self.locator, self.wording
        score, verb, give = (wording.name("score"), *(("returns", "return") if wording.methods else ("is", "give")))
        try:
            self.metric = metric = cast(Any, self.task.score())
        except (Exception, SystemExit) as error:
            raise method_error(score, error, locator) from error
        location = locator.line_of_result(self.task.score)
        if metric is None:
            raise InvalidMethod(
                "`score` returns None: end it with a return statement, such as return Reached(...)", location
            )
        if isinstance(metric, type):
            kind = metric.__name__
            raise InvalidMethod(f"`{score}` {verb} the class {kind}: {give} an object of it, {kind}(...)", location)
        if missing := [name for name in METRIC if not hasattr(metric, name)]:
            text = f"`{score}` {verb} {described(metric)} without {', '.join(missing)}: {give} a metric, such as those"
            raise InvalidMethod(f"{text} of jaxreward.tasks.metrics", location)
        of = SourceLocator(metric if locator.is_user_class(metric) else self.task, location)
        init, update, value, also = map(wording.of_metric, ("init", "update", "value", "also"))
        bad = list(check_signatures(metric, METRIC, of, of=wording.of_metric("")))
        yield from bad
        if bad:
            return
        measure = getattr(metric, "measure", SUCCESS)
        if not isinstance(measure, Measure):
            yield Finding(f"the metric's `measure` is {described(measure)}: use a jaxreward.records.Measure", *location)
            return
        self._figure(metric, state, of)
        gathered = self.traces["init"] = traced(init, metric.init, (), of)
        step = (gathered.out, state, self.action, state)
        updated = self.traces["update"] = traced(update, metric.update, step, of)
        require_deterministic(update, metric.update, step, updated, of)
        yield from tree_changes(update, gathered.out, updated, metric.update, of)
        found = self.traces["value"] = traced(value, metric.value, (gathered.out,), of)
        require_scalar(value, found, "biuf", _NUMBER, metric.value, of)
        if isinstance(metric, ExtraMetrics):
            extra = traced(also, metric.also, (gathered.out,), of)
            if getattr(extra.out, "shape", None) == (len(metric.names),):
                self.traces["also"] = extra
            else:
                text = f"`{also}` must return an array of shape ({len(metric.names)},), one number for each name"
                yield Finding(text, *of.line_of_result(metric.also))
        if isinstance(metric, Progressive):
            yield from self._progress(metric, location)

    def _progress(self, metric: Any, location: Location) -> Iterator[Finding]:
        """Stages are names of extra metrics."""
        named, names = metric.progress, tuple(metric.names) if isinstance(metric, ExtraMetrics) else ()
        if isinstance(named, str) or not isinstance(named, Sequence):
            text = f"the metric's `progress` is {described(named)}: make it a tuple of names of extra metrics"
            yield Finding(text, *location)
        elif wrong := [name for name in named if name not in names]:
            text = f"the metric's `progress` names {wrong[0]!r}, which is none of its extra metrics"
            yield Finding(f"{text}: they are {', '.join(names) or 'none'}", *location)

    def _figure(self, metric: Any, state: Any, locator: SourceLocator) -> None:
        """Check the function that a metric of this package was given."""
        if not isinstance(metric, Sum | Mean | Reached):
            return
        bool_only = isinstance(metric, Reached)
        function, given = (metric.goal, (state,)) if bool_only else (metric.figure, (state, self.action, state))
        name = self.wording.name(f"{type(metric).__name__}.{'goal' if bool_only else 'figure'}")
        found = traced(name, function, given, locator)
        require_scalar(name, found, *(("b", _BOOL) if bool_only else ("biuf", _NUMBER)), function, locator)

    def _view(self, state: Any) -> Iterator[Finding]:
        task, locator = self.task, self.locator
        found = self.traces["view"] = traced("view", task.view, (state,), locator)
        view = found.out
        leaves = jax.tree.leaves(view)
        location = locator.line_of_result(task.view)
        if not leaves:
            raise InvalidMethod("`view` returns no array: programs would have nothing to read", location)
        if any(jax.dtypes.issubdtype(leaf.dtype, jax.dtypes.prng_key) for leaf in leaves):
            raise InvalidMethod(
                "`view` shows a random key: leave it out, programs may not foresee what it draws", location
            )
        yield from check_state_words(view, task, locator)
        yield from self._collect("observation", self._raw_observation, view)
        yield from self._collect("default_observation", self._default_observation, view)
        yield from self._collect("sparse_reward", self._reward, "sparse_reward", view)
        if hasattr(task, "dense_reward"):
            yield from self._collect("dense_reward", self._reward, "dense_reward", view)

    def _raw_observation(self, view: Any) -> Iterator[Finding]:
        if "observation" not in self.derived.get("default_observation", ()):
            return
        found = self._trace("observation", (view,))
        if not jax.tree.leaves(found.out):
            location = self.locator.line_of_result(self.task.observation)
            yield Finding("`observation` returns no array: return at least one", *location)

    def _default_observation(self, view: Any) -> Iterator[Finding]:
        name = self.wording.name("default_observation")
        found = self._trace("default_observation", (view,))
        require_vector(name, found, self.task.default_observation, self.locator)
        yield from ()

    def _reward(self, name: str, view: Any) -> Iterator[Finding]:
        found = self._trace(name, (view, self.action, view))
        wanted = f"{_NUMBER}: the total alone, terms are for programs" if type(found.out) is tuple else _NUMBER
        require_scalar(self.wording.name(name), found, "biuf", wanted, getattr(self.task, name), self.locator)
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
