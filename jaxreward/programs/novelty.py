"""Whether two programs are the same candidate although their digests differ.

A sketch is a few numbers that depend on what a program puts out and on nothing else. It is taken on a
fixed batch: transitions of the task and distortions of them. Two programs with one sketch show the
agent the same and pay it the same up to a positive factor, which training does not notice, because
the trainer divides rewards by their running root mean square (`PPO.scale_rewards`). A constant added to
every step is never ignored: it changes what is best where episodes end early, and everywhere it swells the
root mean square by which the rest is divided. The names of the terms and how a reward is split into
them leave no trace.

Equal outputs on a batch say nothing about what never happened in it. Two safeguards, each of which is to
be enough where the other fails: a program has a sketch only if the batch shows all that it does
(`coverage`), and two programs are the same only if the same numbers stand in both, those of the rewards up
to the factor between them. Where in doubt, programs differ, and both are trained.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np
from jax.extend import core
from jax.interpreters import partial_eval

from jaxreward.programs.coverage import Coverage
from jaxreward.programs.evaluate import evaluate
from jaxreward.programs.samples import Samples
from jaxreward.records import ProgramSummary

Array = np.ndarray[Any, Any]

ENOUGH = 8
TOLERANCE = 2e-5
"""Of projections of order one. Sums in another order moved them by up to 1e-6, a weight changed by one
per cent by 1e-3 (measured on programs of the XLand tasks)."""

_PROJECTIONS = 8
_GAIN = 100.0
_MOST_CONSTANTS = 128
_LEAST_RMS = 1e-3
_SAME_FACTOR = 1e-5


@dataclass(frozen=True)
class Sketch:
    """What a summary says of a program's outputs; see `ProgramSummary`."""

    numbers: tuple[float, ...]
    reward_rms: float
    constants: tuple[tuple[float, ...], tuple[float, ...]]


def same_outputs(a: ProgramSummary, b: ProgramSummary) -> bool:
    """Whether two programs of one task are the same candidate; False where either has no sketch.

    Only for a trainer that scales rewards: one reward may be a positive multiple of the other.
    """
    if not a.sketch or not b.sketch or a.observation_size != b.observation_size or len(a.sketch) != len(b.sketch):
        return False
    if min(a.reward_rms, b.reward_rms) <= 0 or a.constants[0] != b.constants[0]:
        return False
    if not _multiples(a.constants[1], b.constants[1], b.reward_rms / a.reward_rms):
        return False
    return float(np.abs(np.subtract(a.sketch, b.sketch)).max()) <= TOLERANCE


def _multiples(a: tuple[float, ...], b: tuple[float, ...], factor: float) -> bool:
    """Whether the numbers in `b` are those in `a`, each as it is or times the factor, that itself aside."""
    if abs(factor - 1) <= _SAME_FACTOR:
        return set(a) - {1.0} == set(b) - {1.0}

    def found(these: tuple[float, ...], those: tuple[float, ...], factor: float) -> bool:
        return all(v in those or _near(v * factor, those) or _near(v, (factor, 1 / factor)) for v in these)

    return found(a, b, factor) and found(b, a, 1 / factor)


def _near(value: float, others: tuple[float, ...]) -> bool:
    return any(abs(value - other) <= _SAME_FACTOR * value for other in others)


def sketch(observation: Any, reward: Any, batch: Samples, real: int, own: tuple[bool, bool]) -> Sketch | None:
    """The sketch of a program, or nothing where the batch is not conclusive.

    Args:
        observation, reward: closed jaxprs of one input, unbatched.
        batch: `coverage.BATCH` transitions.
        real: how many of them, from the first, are true ones of the task.
        own: whether each half is the program's own. A default that is inconclusive is known by that.
    """
    parts: list[Array] = []
    constants: list[tuple[float, ...]] = []
    rms = 1.0
    halves = (("observation", observation, batch.states, own[0]), ("reward", reward, batch.transition(), own[1]))
    for half, closed, arrays, is_own in halves:
        closed = _first_output(closed)
        numbers, values = _constants(closed), _outputs(closed, arrays)
        if values is not None and half == "reward":
            true = values[:real]
            rms = float(np.sqrt(np.square(true).mean()))
            values = None if rms < _LEAST_RMS or (true == true[0]).all() else values / rms
        if values is not None and len(numbers) <= _MOST_CONSTANTS:
            parts.append(_projections(values))
            constants.append(numbers)
        elif is_own:
            return None
        else:
            parts.append(np.zeros(_PROJECTIONS))
            constants.append(())
            rms = 1.0
    rounded = tuple(float(f"{v:.7g}") for v in np.concatenate(parts))
    return Sketch(rounded, rms, (constants[0], constants[1]))


def _first_output(closed: Any) -> Any:
    """What reaches the first output, which is the observation or the reward; the others are terms."""
    outputs = [k == 0 for k in range(len(closed.jaxpr.outvars))]
    jaxpr, _ = partial_eval.dce_jaxpr(closed.jaxpr, outputs, instantiate=True)
    return core.ClosedJaxpr(jaxpr, closed.consts)


def _outputs(closed: Any, arrays: list[Array]) -> Array | None:
    """The output on the batch, float64 (n, d); None if the batch does not show all of it."""
    structs = [jax.ShapeDtypeStruct(a.shape, a.dtype) for a in arrays]
    batched = _first_output(jax.make_jaxpr(lambda *x: jax.vmap(core.jaxpr_as_fun(closed))(*x)[0])(*structs))
    coverage = Coverage(batched, ENOUGH)
    values = evaluate(batched, arrays, coverage)[0]
    if coverage.dormant():
        return None
    return np.nan_to_num(values.astype(np.float64).reshape(len(values), -1), nan=-7.0, posinf=1e30, neginf=-1e30)


def _constants(closed: Any) -> tuple[float, ...]:
    """The different numbers that stand in a computation, exponents among them, by size and without 0."""

    def walk(jaxpr: Any, consts: Iterable[Any]) -> Iterable[Any]:
        used = {v for e in jaxpr.eqns for v in (*e.invars, *jaxpr.outvars) if not isinstance(v, core.Literal)}
        yield from (value for v, value in zip(jaxpr.constvars, consts, strict=True) if v in used)
        for e in jaxpr.eqns:
            yield from (v.val for v in e.invars if isinstance(v, core.Literal))
            for name, p in e.params.items():
                if name == "y":
                    yield p
                for inner in p if isinstance(p, tuple) else (p,):
                    if isinstance(inner, core.ClosedJaxpr):
                        yield from walk(inner.jaxpr, inner.consts)

    found: set[float] = set()
    for value in walk(closed.jaxpr, closed.consts):
        array = np.abs(np.asarray(value).astype(np.float32))
        found.update(float(str(v)) for v in np.unique(np.nan_to_num(array, nan=7e37)))
    return tuple(sorted(found - {0.0}))


def _projections(values: Array) -> Array:
    """Fixed random projections of (n, d) outputs, compressed so that a few large values do not drown the rest."""
    rng = np.random.RandomState(0)
    n, d = values.shape
    rows, columns = rng.normal(size=(_PROJECTIONS, n)), rng.normal(size=(_PROJECTIONS, d))
    return np.einsum("kd,kd->k", rows @ np.arcsinh(_GAIN * values), columns) / np.sqrt(n * d)
