"""Whether two programs are the same candidate although their digests differ.

A sketch is a few numbers that depend on what a program puts out and on nothing else. It is taken on a
fixed batch: transitions of the task and distortions of them. Two programs with one sketch show the
agent the same and pay it the same up to a positive factor, which training does not notice, because
the trainer divides rewards by their running root mean square (`PPO.scale_rewards`). A constant added to
every step, a living bonus, does change what is best where an episode can end early; only where the task
never ends before its horizon is it ignored too. The names of the terms and how a reward is split into
them leave no trace in a sketch.

Equal outputs on a batch say nothing about what never happened in it. So a program has a sketch only if
each of its decisions went each way often enough on the batch (`coverage`); a bonus for an event that never
occurred leaves it without one, and it equals nothing. And where a threshold lies shows only if some input falls
between it and another, which behind a rare condition none may do: so the numbers with which a program
compares are part of its sketch, as a hash.
"""

from __future__ import annotations

import hashlib
from typing import Any

import jax
import numpy as np
from jax.extend import core

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


def same_outputs(a: ProgramSummary, b: ProgramSummary) -> bool:
    """Whether two programs of one task are the same candidate; False where either has no sketch."""
    if not a.sketch or not b.sketch or a.observation_size != b.observation_size or len(a.sketch) != len(b.sketch):
        return False
    return float(np.abs(np.subtract(a.sketch, b.sketch)).max()) <= TOLERANCE


def sketch(
    observation: Any, reward: Any, batch: Samples, real: int, own: tuple[bool, bool], may_terminate: bool
) -> tuple[float, ...]:
    """The sketch of a program, or nothing where the batch is not conclusive.

    Args:
        observation, reward: closed jaxprs of one input, unbatched.
        batch: `coverage.BATCH` transitions.
        real: how many of them, from the first, are true ones of the task.
        own: whether each half is the program's own. A default that is inconclusive is known by that.
        may_terminate: whether an episode can end before the horizon.
    """
    parts: list[Array] = []
    for closed, arrays, is_own, normalise in (
        (observation, batch.states, own[0], lambda x: x),
        (reward, batch.transition(), own[1], lambda x: _normalised(x, real, may_terminate)),
    ):
        found = _outputs(closed, arrays)
        values = normalise(found[0]) if found is not None else None
        if found is not None and values is not None:
            parts.append(np.append(_projections(values), _hash(found[1])))
        elif is_own:
            return ()
        else:
            parts.append(np.zeros(_PROJECTIONS + 1))
    return tuple(float(f"{v:.7g}") for v in np.concatenate(parts))


def _outputs(closed: Any, arrays: list[Array]) -> tuple[Array, tuple[float, ...]] | None:
    """The first output on the batch, float64 (n, d), and thresholds; None if some decision was one-sided."""
    structs = [jax.ShapeDtypeStruct(a.shape, a.dtype) for a in arrays]
    jaxpr = jax.make_jaxpr(lambda *x: jax.vmap(core.jaxpr_as_fun(closed))(*x)[0])(*structs)
    coverage = Coverage(ENOUGH)
    values = evaluate(jaxpr, arrays, coverage)[0]
    if coverage.dormant():
        return None
    values = np.nan_to_num(values.astype(np.float64).reshape(len(values), -1), nan=-7.0, posinf=1e30, neginf=-1e30)
    return values, coverage.thresholds()


def _hash(thresholds: tuple[float, ...]) -> float:
    """A number from 0 to 1000."""
    return int(hashlib.sha256(repr(thresholds).encode()).hexdigest()[:8], 16) / 2**32 * 1000


def _normalised(values: Array, real: int, may_terminate: bool) -> Array | None:
    """A reward without its scale, and without its mean where that does not matter; None if it is constant."""
    true = values[:real]
    if (true == true[0]).all():
        return None
    mean = 0.0 if may_terminate else true.mean()
    return (values - mean) / np.sqrt(np.square(true - mean).mean())


def _projections(values: Array) -> Array:
    """Fixed random projections of (n, d) outputs, compressed so that a few large values do not drown the rest."""
    rng = np.random.RandomState(0)
    n, d = values.shape
    rows, columns = rng.normal(size=(_PROJECTIONS, n)), rng.normal(size=(_PROJECTIONS, d))
    return np.einsum("kd,kd->k", rows @ np.arcsinh(values), columns) / np.sqrt(n * d)
