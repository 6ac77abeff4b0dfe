"""What the checks need of a task: spec, defaults and transitions."""

from __future__ import annotations

import hashlib
import json
import threading
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np

from jaxreward.errors import InvalidSetting
from jaxreward.programs.play import can_play, how_many, sample_transitions
from jaxreward.programs.program import Half, default_observation, default_reward
from jaxreward.programs.samples import Samples
from jaxreward.programs.spec import InvalidView, Spec
from jaxreward.programs.verify import pack
from jaxreward.programs.worker_reply import Failed
from jaxreward.records import Failure

_FEWEST = 32
_MOST_BYTES = 40 << 20
"""Base64 makes them a third larger; the verifier takes requests of 64 MiB."""


_DEFAULTS = {
    "observation": ("get_observation", "default_observation", default_observation),
    "reward": ("compute_reward", "sparse_reward", default_reward),
}
"""Of each half: the function of a program, the method of a task, and what makes a tape of that."""


@dataclass(frozen=True)
class Packed:
    """Transitions as the verifier takes them, and the key by which it remembers them."""

    key: str
    packed: Any


class Target:
    """Spec, defaults and transitions of a task, computed once; thread-safe."""

    def __init__(self, task: Any, spec: Spec, magnitude: float) -> None:
        self.task, self.spec, self.magnitude = task, spec, magnitude
        self.lock, self._playing = threading.Lock(), threading.Lock()
        self._halves: dict[str, Half] = {}
        self._own: Packed | None = None
        self._played = False

    def samples(self, given: Any) -> Packed | None:
        """`given`, or the task's transitions; None where random arrays must do.

        That is so for a spec, for a task that cannot be played or whose views are very large, and
        where random play leads almost only to numbers that are not finite or huge.

        Raises:
            UserError: samples that do not fit, or a task that fails when it is played.
        """
        if given is not None:
            return self._packed(self._checked(given))
        with self._playing:
            if not self._played:
                self._own = self._sampled()
                self._played = True
            return self._own

    def _sampled(self) -> Packed | None:
        if hasattr(self.task, "sample_transitions"):
            return self._packed(self._checked(self.task.sample_transitions()))
        n = how_many(self.task) if can_play(self.task) else 0
        if n == 0:
            return None
        played = self._checked(sample_transitions(self.task, n))
        bounded = played.bounded(self.magnitude / 10)  # a program may add some up and stay within the limit
        return self._packed(bounded) if len(bounded) >= _FEWEST else None

    def _checked(self, samples: Any) -> Samples:
        found = _unstacked(samples, self.spec)
        size = sum(x.nbytes for x in found.transition())
        if size > _MOST_BYTES:
            message = f"samples of {size / 2**20:.0f} MiB are too large: give at most {_MOST_BYTES >> 20} MiB"
            raise InvalidSetting(message, "samples")
        return found

    def _packed(self, samples: Samples) -> Packed:
        states, nexts = ([pack(a) for a in side] for side in (samples.states, samples.next_states))
        packed = [states, pack(samples.actions), nexts]
        text = json.dumps([packed, self.spec.as_json()])
        return Packed(hashlib.sha256(text.encode()).hexdigest(), packed)

    def default(self, half: str) -> Half:
        function, method, make = _DEFAULTS[half]
        if not hasattr(self.task, method):
            message = f"the program has no {function}, and there is no task whose default could stand in"
            raise Failed(Failure(stage="contract", message=message, hint=f"define {function}"))
        with self.lock:
            if half not in self._halves:
                self._halves[half] = make(self.task, self.spec)
            return self._halves[half]


def _unstacked(samples: Any, spec: Spec) -> Samples:
    if not (isinstance(samples, tuple) and len(samples) == 3):
        raise InvalidSetting("samples are (views, actions, next_views), each with a leading axis", "samples")
    states, actions, nexts = ([np.asarray(x) for x in jax.tree.leaves(tree)] for tree in samples)
    n = len(states[0]) if states else 0
    if not (len(states) == len(nexts) == len(spec.leaves) and len(actions) == 1 and n > 0):
        raise InvalidSetting("samples are (views, actions, next_views) of this task, at least one of them", "samples")
    for leaf, array in zip((*spec.leaves, spec.action, *spec.leaves), (*states, *actions, *nexts), strict=True):
        if array.shape != (n, *leaf.shape) or array.dtype.name != leaf.dtype:
            message = f"samples of {leaf.name} must be {leaf.dtype} ({n}, ...), got {array.dtype} {array.shape}"
            raise InvalidView(message, leaf.name)
    return Samples(states, actions[0], nexts)
