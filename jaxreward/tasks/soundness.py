"""Whether a task keeps the protocol: every mistake that tracing it and a few real steps can find."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator
from typing import Any, cast

import jax
import jax.numpy as jnp

from jaxreward.errors import UserError
from jaxreward.records import SUCCESS, Measure, Vocabulary
from jaxreward.tasks.contract import METHODS, METRIC, OPTIONAL, a, attributes, signatures
from jaxreward.tasks.findings import Author, Finding
from jaxreward.tasks.task import Box, ExtraMetrics
from jaxreward.tasks.traces import Traced, Wrong, changed, failed, pure, scalar, traced, vector, words
from jaxreward.tasks.trial import tried

_NUMBER, _BOOL = "a real number, shape ()", "a bool of shape (): compare, or add .astype(bool)"


def mistakes_in(task: Any, *, quick: bool = False) -> tuple[Finding, ...]:
    """The mistakes in a task, those that others follow from first; none in a sound one.

    Its methods are traced on abstract arrays, and a few steps with random actions are computed; `quick` leaves out
    steps that take long to compile. The fragments of its vocabulary, which are text, are not looked at: see
    `jaxreward.check_task`.
    """
    author = Author(task)
    try:
        found = [*attributes(task, author), *signatures(task, METHODS, author)]
        found += signatures(task, {n: g for n, g in OPTIONAL.items() if hasattr(task, n)}, author)
        return tuple(found or _Examined(task, author).findings(quick))
    except Wrong as wrong:
        return (wrong.finding,)


def require_sound(task: Any) -> None:
    """That a task has no mistake. A task of this package is taken to have none; any other is examined once.

    Raises:
        UserError: it has: the first, and how many more there are.
    """
    if is_shipped(task) or id(task) in _SOUND:
        return
    if found := mistakes_in(task, quick=True):
        raise UserError(in_a_sentence(found))
    _SOUND[id(task)] = task
    while len(_SOUND) > _KEPT:
        _SOUND.popitem(last=False)


def is_shipped(task: Any) -> bool:
    """Whether the class of `task` is one of this package, which its own tests hold."""
    return type(task).__module__.startswith("jaxreward.tasks.")


_KEPT = 32
_SOUND: OrderedDict[int, Any] = OrderedDict()
"""Tasks without a mistake, which are kept so that no other has their id."""


def in_a_sentence(found: tuple[Finding, ...]) -> str:
    """The first finding, and how many more there are."""
    more = len(found) - 1
    rest = f"; and {more} more mistake{'s' * (more > 1)}, which `jaxreward check` lists" if more else ""
    return f"{found[0]}{rest}"


class _Examined:
    """A task whose attributes and arguments are sound: what its methods return."""

    def __init__(self, task: Any, author: Author) -> None:
        self.task, self.author = task, author
        self.traces: dict[str, Traced] = {}
        space = task.action_space
        real = isinstance(space, Box)
        self.action = jax.ShapeDtypeStruct(space.shape if real else (), jnp.float32 if real else jnp.int32)

    def findings(self, quick: bool) -> Iterator[Finding]:
        """All of them; `Wrong` where one keeps all others from being looked for."""
        self._trace("reset", (jax.eval_shape(lambda: jax.random.key(0)),), again=True)
        state = self.traces["reset"].out
        if not jax.tree.leaves(state):
            place = self.author.line_of_result(self.task.reset)
            raise Wrong("`reset` returns a state without arrays: put what changes into it", place)
        parts = (self._step, self._terminated, self._metric, self._seen, self._vocabulary)
        found = [finding for part in parts for finding in self._caught(part, state)]
        yield from found
        if not found:
            yield from tried(self.task, self.traces, self.metric, self.author, quick)

    def _caught(self, part: Callable[..., Iterator[Finding]], *arguments: Any) -> Iterator[Finding]:
        try:
            yield from part(*arguments)
        except Wrong as wrong:
            yield wrong.finding

    def _trace(self, name: str, arguments: tuple[Any, ...], again: bool = False) -> Traced:
        """Trace a method of the task, a second time to see whether it computes the same `again`."""
        method = getattr(self.task, name)
        found = self.traces[name] = traced(name, method, arguments, self.author)
        if again:
            pure(name, method, arguments, found, self.author)
        return found

    def _step(self, state: Any) -> Iterator[Finding]:
        found = self._trace("step", (state, self.action), again=True)
        yield from changed("step", state, found, self.task.step, self.author)

    def _terminated(self, state: Any) -> Iterator[Finding]:
        found = self._trace("terminated", (state,), again=True)
        scalar("terminated", found, "b", _BOOL, self.task.terminated, self.author)
        yield from ()

    def _metric(self, state: Any) -> Iterator[Finding]:
        author = self.author
        try:
            self.metric = metric = cast(Any, self.task.score())
        except (Exception, SystemExit) as error:
            raise failed("score", error, author) from error
        place = author.line_of_result(self.task.score)
        if metric is None:
            raise Wrong("`score` returns None: end it with a return statement, such as return Reached(...)", place)
        if isinstance(metric, type):
            kind = metric.__name__
            raise Wrong(f"`score` returns the class {kind}: return one of it, {kind}()", place)
        if missing := [name for name in METRIC if not hasattr(metric, name)]:
            text = f"`score` returns {a(metric)} without {', '.join(missing)}: return a metric, such as those of "
            raise Wrong(f"{text}jaxreward.tasks.metrics", place)
        of = Author(metric if author.is_of(metric) else self.task, place)
        bad = list(signatures(metric, METRIC, of, "score()."))
        yield from bad
        if bad:
            return
        measure = getattr(metric, "measure", SUCCESS)
        if not isinstance(measure, Measure):
            yield Finding(f"the metric's `measure` is {a(measure)}: use a jaxreward.records.Measure", *place)
            return
        gathered = self.traces["init"] = traced("score().init", metric.init, (), of)
        update = traced("score().update", metric.update, (gathered.out, state, self.action, state), of)
        self.traces["update"] = update
        pure("score().update", metric.update, (gathered.out, state, self.action, state), update, of)
        yield from changed("score().update", gathered.out, update, metric.update, of)
        value = self.traces["value"] = traced("score().value", metric.value, (gathered.out,), of)
        scalar("score().value", value, "biuf", _NUMBER, metric.value, of)
        if isinstance(metric, ExtraMetrics):
            told = traced("score().also", metric.also, (gathered.out,), of).out
            if getattr(told, "shape", None) != (len(metric.names),):
                text = f"`score().also` must return an array of shape ({len(metric.names)},), one number for each name"
                yield Finding(text, *of.line_of_result(metric.also))

    def _seen(self, state: Any) -> Iterator[Finding]:
        task, author = self.task, self.author
        view = self._trace("view", (state,)).out
        leaves = jax.tree.leaves(view)
        place = author.line_of_result(task.view)
        if not leaves:
            raise Wrong("`view` returns no array: programs would have nothing to read", place)
        if any(jax.dtypes.issubdtype(leaf.dtype, jax.dtypes.prng_key) for leaf in leaves):
            raise Wrong("`view` shows a random key: leave it out, programs may not foresee what it draws", place)
        yield from words(view, task.state_words, author)
        yield from self._caught(self._observed, view)
        yield from self._caught(self._paid, "sparse_reward", view)
        if hasattr(task, "dense_reward"):
            yield from self._caught(self._paid, "dense_reward", view)

    def _observed(self, view: Any) -> Iterator[Finding]:
        vector("default_observation", self._trace("default_observation", (view,), again=True),
               self.task.default_observation, self.author)  # fmt: skip
        yield from ()

    def _paid(self, name: str, view: Any) -> Iterator[Finding]:
        found = self._trace(name, (view, self.action, view), again=True)
        scalar(name, found, "biuf", _NUMBER, getattr(self.task, name), self.author)
        yield from ()

    def _vocabulary(self, _: Any) -> Iterator[Finding]:
        try:
            found = self.task.vocabulary()
        except (Exception, SystemExit) as error:
            raise failed("vocabulary", error, self.author) from error
        if not isinstance(found, Vocabulary):
            place = self.author.line_of_result(self.task.vocabulary)
            text = f"`vocabulary` returns {a(found)}: return a jaxreward.records.Vocabulary, Vocabulary() for none"
            yield Finding(text, *place)
