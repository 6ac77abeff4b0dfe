"""The checks on tapes: contract, limits and numbers. What passes here is what the trainer compiles."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np
from jax.extend import core

from jaxreward.programs.evaluate import Watch, evaluate, still_going
from jaxreward.programs.flops import Cost, measure
from jaxreward.programs.interpret import replay
from jaxreward.programs.limits import Limits
from jaxreward.programs.primitives import replayable
from jaxreward.programs.samples import Samples
from jaxreward.programs.spec import Spec
from jaxreward.programs.tape import Tape, TapeError, check_tape, count, reads
from jaxreward.records import Failure, Notice

Array = np.ndarray[Any, Any]

_SKELETON_SAMPLES = 256
_SAME = 1e-4
"""How far a skeleton may be from the reward, as a fraction: Python computes with more digits where constants meet."""
_COMPILE_DEPTH = 40
_COMPILE_EQUATIONS = 3000
"""A deeper or longer program is compiled here, where it can be killed: XLA's fusion can take
exponential time in the number of operations that move elements, one after the other."""


class Invalid(Exception):
    """The program fails."""

    def __init__(self, stage: Any, message: str, hint: str = "", half: str = "") -> None:
        super().__init__(message)
        self.failure, self.half = Failure(stage=stage, message=message, hint=hint), half


def validate(
    observation: Any,
    reward: Any,
    spec: Spec,
    limits: Limits,
    given: Samples | None = None,
    own: tuple[bool, bool] = (True, True),
    terms: Sequence[str] = (),
    debug: Any = None,
) -> tuple[Cost, tuple[Notice, ...], list[Array] | None]:
    """Check the tapes of a program; returns its cost, without that of `debug`, notices, and what its own reward
    computes on the transitions, for `is_skeleton`.

    Args:
        given: transitions of the task; without, the numeric checks run on random arrays.
        terms: names of the reward's terms, for messages.
        own: whether the program defines its observation and its reward; a task's default is taken as it is.
        debug: the tape of `debug`, if there is one. It is within the limits alone, for it does not run in training; its
            numbers need not be finite.

    Raises:
        Invalid: with the failure.
    """
    random, samples = given is None, given or Samples.random(spec)
    notices: list[Notice] = []
    total = Cost()
    structs = spec.structs()
    closed = []
    for tape, inputs, what in ((observation, structs[0], "observation"), (reward, structs[1], "reward")):
        tape = _sound(tape, inputs, limits)
        closed.append(_trace(tape, inputs, limits, what))
        total += measure(closed[-1], limits)
    _contract(closed[0].out_avals, closed[1].out_avals, limits)
    operations = count(observation) + count(reward)
    if operations > limits.operations:
        raise Invalid("limits", f"{operations} operations; the limit is {limits.operations}", "unroll less")
    _limits(total, limits)
    _dependence(observation, reward, spec, own, notices)
    _compile(closed, structs, total)
    if own[0]:
        _observed(_evaluate(closed[0], samples.states, _Loops(limits, "observation", random)), limits, random, notices)
    paid: list[Array] | None = None
    if own[1]:
        paid = _evaluate(closed[1], samples.transition(), _Loops(limits, "reward", random))
        _rewarded(paid, terms, limits, random, notices)
    if debug is not None:
        try:
            _debug(debug, spec, limits, samples, random)
        except Invalid as invalid:
            failure = invalid.failure
            raise Invalid(failure.stage, f"debug: {failure.message}", failure.hint, "debug") from invalid
    return total, tuple(notices), paid


def _debug(debug: Any, spec: Spec, limits: Limits, samples: Samples, random: bool) -> None:
    structs = spec.structs()[0]
    tape = _sound(debug, structs, limits)
    closed = _trace(tape, structs, limits, "debug")
    outs = closed.out_avals
    size, real = sum(a.size for a in outs), all(np.dtype(a.dtype).kind in "biuf" for a in outs)
    if not (real and 1 <= len(outs) <= limits.terms and size <= limits.debug_numbers):
        raise Invalid("contract", "it must return a dictionary of named arrays of real numbers")
    if (operations := count(tape)) > limits.operations:
        raise Invalid("limits", f"{operations} operations; the limit is {limits.operations}", "unroll less")
    cost = measure(closed, limits)
    _limits(cost, limits)
    _compile([closed], [structs], cost)
    _evaluate(closed, samples.states, _Loops(limits, "debug", random))


def is_skeleton(
    skeleton: Any, constants: Sequence[float], reward: Tape, spec: Spec, limits: Limits, given: Samples | None = None,
    paid: Sequence[Array] | None = None,
) -> bool:  # fmt: skip
    """Whether `skeleton` is a tape like others that computes with `constants` what `reward` does, which has passed;
    `paid` is what that computes on the same transitions, where it is known."""
    structs = spec.structs()[1]
    scalars = [jax.ShapeDtypeStruct((), np.float32)] * len(constants)
    samples = (given or Samples.random(spec)).first(_SKELETON_SAMPLES).transition()
    values = [np.full(len(samples[0]), c, np.float32) for c in constants]
    try:
        tape = _sound(skeleton, [*structs, *scalars], limits)
        closed = _trace(tape, [*structs, *scalars], limits, "skeleton")
        cost = measure(closed, limits)
        _limits(cost, limits)
        _compile([closed], [[*structs, *scalars]], cost)
        found = _evaluate(closed, [*samples, *values])
        known = paid if paid is not None else _evaluate(_trace(reward, structs, limits, ""), samples)
        known = [x[:_SKELETON_SAMPLES] for x in known]
    except Exception:  # the program itself has passed
        return False
    if count(tape) > limits.operations or [x.shape for x in found] != [x.shape for x in known]:
        return False
    return all(
        np.allclose(a, b, rtol=_SAME, atol=_SAME * max(1.0, np.abs(b).max())) for a, b in zip(found, known, strict=True)
    )


def _sound(tape: Any, inputs: list[Any], limits: Limits) -> Tape:
    try:
        checked = check_tape(tape, constant_bytes=limits.constant_bytes, ops=replayable())
    except TapeError as error:
        raise Invalid("killed", error.message, "the worker's answer is not a tape") from error
    if [(tuple(s), d) for s, d in checked["ins"]] != [(i.shape, i.dtype.name) for i in inputs]:
        raise Invalid("killed", "the tape has other inputs than the task", "the worker's answer is not to be trusted")
    return checked


def _trace(tape: Tape, inputs: list[Any], limits: Limits, what: str) -> Any:
    try:
        return jax.make_jaxpr(replay(tape, limits))(*inputs)
    except TapeError as error:
        raise Invalid("killed" if error.stage == "trace" else error.stage, error.message, error.hint) from error
    except Exception as error:  # inconsistent parameters raise various exceptions in JAX
        text = f"the tape of the {what} does not replay: {type(error).__name__}: {str(error)[:200]}"
        raise Invalid("killed", text, "the worker's answer is not to be trusted") from error


def _contract(seen: Any, paid: Any, limits: Limits) -> None:
    shapes = [(a.shape, a.dtype.name) for a in seen]
    if len(seen) != 1 or seen[0].ndim != 1 or seen[0].dtype != np.float32:
        raise Invalid("contract", f"get_observation must return a float32 vector, not {shapes}")
    if not 1 <= seen[0].shape[0] <= limits.features:
        raise Invalid("contract", f"{seen[0].shape[0]} features; 1 to {limits.features} are allowed")
    if not 2 <= len(paid) <= limits.terms + 1 or any(a.shape != () or a.dtype != np.float32 for a in paid):
        raise Invalid("contract", "compute_reward must return a scalar, or (scalar, {name: scalar})")


def _limits(cost: Cost, limits: Limits) -> None:
    if cost.elements > limits.elements:
        message = f"an intermediate array has {cost.elements:,} elements; the limit is {limits.elements:,}"
        raise Invalid("limits", message, "compute with smaller arrays: this runs for thousands of environments at once")
    if cost.flops > limits.flops:
        message = f"{cost.flops:,} floating-point operations a step; the limit is {limits.flops:,}"
        raise Invalid("limits", message, "use fewer iterations or smaller arrays")


def _dependence(observation: Tape, reward: Tape, spec: Spec, own: tuple[bool, bool], notices: list[Notice]) -> None:
    n = len(spec.leaves)
    (seen,), paid = reads(observation), reads(reward)[0]
    if own[0] and not seen:
        hint = "return features of the state"
        raise Invalid(
            "numeric", "the observation is constant: it depends on no field of the state", hint, "observation"
        )
    if not own[1]:
        return
    if not paid:
        hint = "make it depend on next_state"
        raise Invalid(
            "numeric", "the reward is constant: it depends on neither the states nor the action", hint, "reward"
        )
    if min(paid) > n:
        notices.append(Notice(kind="next_state_only", message="the reward reads the next state alone"))
    if paid == {n}:
        notices.append(Notice(kind="action_only", message="the reward reads the action alone"))


def _compile(closed: list[Any], structs: Any, cost: Cost) -> None:
    if cost.depth <= _COMPILE_DEPTH and cost.equations <= _COMPILE_EQUATIONS:
        return
    for jaxpr, inputs in zip(closed, structs, strict=True):
        batched = [jax.ShapeDtypeStruct((2, *i.shape), i.dtype) for i in inputs]
        jax.jit(jax.vmap(core.jaxpr_as_fun(jaxpr))).lower(*batched).compile()


def _evaluate(closed: Any, arrays: list[Any], watch: Watch | None = None) -> list[np.ndarray[Any, Any]]:
    structs = [jax.ShapeDtypeStruct(a.shape, a.dtype) for a in arrays]
    return evaluate(jax.make_jaxpr(jax.vmap(core.jaxpr_as_fun(closed)))(*structs), arrays, watch)


@dataclass(frozen=True)
class _Loops:
    """Watches an evaluation for `while` loops that the tape stops before their condition does.

    Raises:
        Invalid: at the first of them. Its outputs are not those of the source: floats are NaN, integers and booleans
            are those of the last turn.
    """

    limits: Limits
    half: str
    random: bool

    def __call__(self, jaxpr: Any, equation: Any, operands: list[Any], results: list[Any]) -> None:
        if equation.primitive.name != "while":
            return
        turns, most = np.asarray(results[0]), self.limits.while_iterations  # see `replay`: the first of its carry
        if turns.max() < most:
            return
        cut = still_going(equation, operands, [np.zeros_like(turns), *results[1:]])
        share = (cut & (turns >= most)).mean()
        if share > 0:
            where = _where(self.random) if not cut.ndim else f"{share:.0%} of {len(cut)} {_where(self.random)}"
            message = f"a while loop has not ended after {most} turns on {where}"
            hint = "bound its turns, or use jax.lax.fori_loop with constant bounds"
            raise Invalid("limits", message, hint, self.half)


def _where(random: bool) -> str:
    return "random inputs of the task's shapes" if random else "states of the task"


def _finite(values: np.ndarray[Any, Any], what: str, limits: Limits, random: bool) -> None:
    half = "observation" if values.ndim == 2 else "reward"
    bad = ~np.isfinite(values)
    if bad.any():
        share = bad.reshape(len(values), -1).any(1).mean()
        which = sorted({int(i) for i in np.nonzero(bad)[1]})[:8] if values.ndim == 2 else []
        where = f" (features {', '.join(map(str, which))})" if which else ""
        message = f"the {what} is not finite on {share:.0%} of {len(values)} {_where(random)}{where}"
        raise Invalid("numeric", message, "guard divisions, logarithms and roots: jnp.maximum(x, 1e-6)", half)
    if np.abs(values).max() > limits.magnitude:
        message = f"the {what} reaches {np.abs(values).max():.3g} in size; the limit is {limits.magnitude:g}"
        raise Invalid("numeric", message, "scale it to order one, or clip it", half)


def _observed(outputs: list[np.ndarray[Any, Any]], limits: Limits, random: bool, notices: list[Notice]) -> None:
    values = outputs[0]
    _finite(values, "observation", limits, random)
    same = values[0] == values
    constant = np.nonzero(same.all(0))[0]
    if len(constant):
        which = "every feature" if len(constant) == values.shape[1] else f"features {_list(constant)}"
        message = f"{which} had one value on {len(values)} {_where(random)}"
        notices.append(Notice(kind="constant_features", message=message))
    varied = np.setdiff1d(np.arange(values.shape[1]), constant)
    first: dict[bytes, int] = {}
    twice = [i for i in varied if first.setdefault(values[:, i].tobytes(), int(i)) != i]
    if twice:
        message = f"features {_list(twice)} repeat others on {len(values)} {_where(random)}"
        notices.append(Notice(kind="duplicate_features", message=message))


def _rewarded(
    outputs: list[np.ndarray[Any, Any]], names: Sequence[str], limits: Limits, random: bool, notices: list[Notice]
) -> None:
    total, terms = outputs[0], outputs[1:]
    _finite(total, "reward", limits, random)
    for i, term in enumerate(terms):
        _finite(term, f"term '{names[i]}'" if i < len(names) else f"term {i + 1}", limits, random)
    if (total == total[0]).all():
        message = f"the reward was {total[0]:g} on all of {len(total)} {_where(random)}: it may be sparse"
        notices.append(Notice(kind="constant_reward", message=message))
    gap = np.abs(np.sum(terms, axis=0, dtype=np.float64) - total)
    size = np.abs(terms).sum(0, dtype=np.float64)  # terms that cancel are as exact as they are large
    if (gap > 1e-4 * np.maximum(1.0, size)).any():
        message = "the terms do not sum to the reward: what they say about it is incomplete"
        notices.append(Notice(kind="terms_do_not_sum", message=message))


def _list(indices: Any) -> str:
    shown = ", ".join(str(int(i)) for i in indices[:12])
    return shown + (f" and {len(indices) - 12} more" if len(indices) > 12 else "")
