"""Policies of earlier trainings that agents begin with."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxreward.errors import InvalidSetting
from jaxreward.programs import Program
from jaxreward.tasks import Task
from jaxreward.training.algorithms import network_of
from jaxreward.training.networks import Variables
from jaxreward.training.sac_hyperparameters import Learner


def policy_shapes(task: Task, program: Program, learner: Learner) -> Any:
    """Shapes of the variables of an agent, as `TrainResult.variables` returns them."""
    network: Any = network_of(task, learner)
    return jax.eval_shape(network.init, jax.random.key(0), jnp.zeros(program.observation_size), network.memory(()))


def require_policy(start: Variables, task: Task, programs: Sequence[Program], learner: Learner) -> None:
    """Require variables that agents of all programs can begin with.

    Raises:
        InvalidSetting: their network is another, or their observations are of another size.
    """
    sizes = sorted({program.observation_size for program in programs})
    if len(sizes) > 1:
        message = (
            f"programs that begin with one policy observe alike, and these have {sizes[0]} to {sizes[-1]} features"
        )
        raise InvalidSetting(message, "start")
    wanted, given = (_described(tree) for tree in (policy_shapes(task, programs[0], learner), start))
    if wanted != given:
        different = next(k for k in sorted({*wanted, *given}) if wanted.get(k) != given.get(k))
        message = f"agents cannot begin with this policy: {different} is {given.get(different, 'not there')}, and the"
        raise InvalidSetting(f"{message} network's is {wanted.get(different, 'not there')}", "start")


def digest_of(start: Variables) -> str:
    """A hash of variables, the same for equal ones."""
    found = hashlib.sha256()
    for path, leaf in jax.tree.leaves_with_path(jax.device_get(start)):
        found.update(f"{jax.tree_util.keystr(path)} {np.shape(leaf)}".encode())
        found.update(np.ascontiguousarray(leaf).tobytes())
    return found.hexdigest()[:16]


def _described(tree: Any) -> dict[str, str]:
    leaves = jax.tree.leaves_with_path(tree)
    return {jax.tree_util.keystr(path): f"{tuple(np.shape(leaf))}" for path, leaf in leaves}
