"""A task as the checks see it: its spec, its defaults, its transitions."""

from __future__ import annotations

import hashlib
import json
import threading
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np

from jaxreward.errors import UserError
from jaxreward.programs.play import can_play, may_terminate, sample_transitions
from jaxreward.programs.program import Half, default_observation, default_reward
from jaxreward.programs.reply import Failed
from jaxreward.programs.spec import Spec
from jaxreward.programs.verify import pack
from jaxreward.records import Failure


@dataclass(frozen=True)
class Packed:
    """Transitions as the verifier takes them, and the key by which it remembers them."""

    key: str
    packed: Any
    may_terminate: bool


class Target:
    """What is known of a task, worked out once; safe to use from several threads."""

    def __init__(self, task: Any, spec: Spec) -> None:
        self.task, self.spec = task, spec
        self.lock = threading.Lock()
        self._halves: dict[str, Half] = {}
        self._own: Packed | None = None
        self._may_terminate: bool | None = None

    def samples(self, given: Any) -> Packed | None:
        """`given`, or the task's transitions; None for a spec, and for a task that cannot be played."""
        if given is not None:
            return self._packed(given)
        with self.lock:
            if self._own is None and hasattr(self.task, "sample_transitions"):
                self._own = self._packed(self.task.sample_transitions())
            elif self._own is None and can_play(self.task):
                self._own = self._packed(sample_transitions(self.task))
            return self._own

    def _packed(self, samples: Any) -> Packed:
        if self._may_terminate is None:
            self._may_terminate = not hasattr(self.task, "terminated") or may_terminate(self.task)
        packed = _pack(samples, self.spec)
        text = json.dumps([packed, self._may_terminate, self.spec.as_json()])
        return Packed(hashlib.sha256(text.encode()).hexdigest(), packed, self._may_terminate)

    def default(self, half: str) -> Half:
        names = {"observation": "default_observation", "reward": "sparse_reward"}
        functions = {"observation": "get_observation", "reward": "compute_reward"}
        if not hasattr(self.task, names[half]):
            message = f"the program has no {functions[half]}, and there is no task whose default could stand in"
            raise Failed(Failure(stage="contract", message=message, hint=f"define {functions[half]}"))
        with self.lock:
            if half not in self._halves:
                make = default_observation if half == "observation" else default_reward
                self._halves[half] = make(self.task, self.spec)
            return self._halves[half]


def _pack(samples: Any, spec: Spec) -> Any:
    if not (isinstance(samples, tuple) and len(samples) == 3):
        raise UserError("samples are (views, actions, next_views), each with a leading axis")
    states, actions, nexts = ([np.asarray(x) for x in jax.tree.leaves(tree)] for tree in samples)
    n = len(states[0]) if states else 0
    for leaf, array in zip((*spec.leaves, spec.action, *spec.leaves), (*states, *actions, *nexts), strict=True):
        if array.shape != (n, *leaf.shape) or array.dtype.name != leaf.dtype:
            raise UserError(f"samples of {leaf.name} must be {leaf.dtype} ({n}, ...), got {array.dtype} {array.shape}")
    return [[pack(a) for a in states], pack(actions[0]), [pack(a) for a in nexts]]
