"""Episodes of scripted experts, who plan on the host, with or without random actions in between."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
import numpy as np

from jaxreward.demonstrations.recording import record_actions, reset_keys
from jaxreward.demonstrations.trajectories import Trajectories, joined
from jaxreward.errors import InvalidSetting, UserError
from jaxreward.sentences import mention
from jaxreward.tasks import Demonstrated, Discrete, Task, compiler_options, measure_of, mission_of

_AT_ONCE = 64
MOST_TRIES = 20
"""Episodes that are played for each one that is kept, at most, where only those with success are."""


def record_expert(
    task: Task, episodes: int, *, seed: int = 0, noise: float = 0.0, solved: bool = False, task_arg: Sequence[str] = ()
) -> Trajectories:
    """Episodes of the task's scripted expert; the same `seed` gives the initial states that `record` gives.

    Args:
        noise: the chance of each action to be a random one; the expert then goes on from where that leads. Log
            probabilities are not known.
        solved: leave out episodes without success, and play others in their place.

    Raises:
        UserError: the task has no expert, or it hardly ever succeeds.
        InvalidSetting: `noise` is no probability, or `solved` is given for a task whose metric is no rate.
    """
    if not isinstance(task, Demonstrated):
        raise UserError(
            f"{task.name} has no scripted expert: write expert_actions(self, state), which plans the actions from a "
            f"state to success; or record a trained policy ({mention('by', 'RUN')}), or import episodes of your own "
            "(jaxreward.demonstrations.from_arrays)"
        )
    if solved and not measure_of(task).rate:
        raise InvalidSetting(f"{mention('solved')} is for tasks that are solved or not; {task.name} is not", "solved")
    if not 0.0 <= noise <= 1.0:
        raise InvalidSetting(f"{mention('noise', noise)} must be a probability", "noise")
    kept, taken, most = list[Trajectories](), 0, episodes * (MOST_TRIES if solved else 1)
    keys = reset_keys(most, seed)
    rng = np.random.default_rng([seed, 1])
    run = _Stepper(task)
    while taken < most and sum(map(len, kept)) < episodes:
        own = keys[taken : taken + min(_AT_ONCE, most - taken, episodes if not solved else _AT_ONCE)]
        plans = [run.plan(key, noise, rng) for key in own]
        found = record_actions(task, own, plans, seed=seed, task_arg=task_arg, texts=run.texts(own))
        good = np.flatnonzero(found.success >= 1.0) if solved else np.arange(len(found))
        kept += [found.take(good)] if len(good) else []
        taken += len(own)
    if sum(map(len, kept)) < episodes:
        raise UserError(f"only {sum(map(len, kept))} of {taken} episodes of the expert on {task.name} succeed")
    return joined(kept).take(np.arange(episodes))


class _Stepper:
    """Plans episodes of a task step by step."""

    def __init__(self, task: Any) -> None:
        self.task = task
        options = compiler_options(task, jax.default_backend()) or None
        self._reset = jax.jit(task.reset, compiler_options=options)
        self._step = jax.jit(task.step, compiler_options=options)
        self._over = jax.jit(task.terminated)

    def plan(self, key: jax.Array, noise: float, rng: np.random.Generator) -> list[Any]:
        """The actions of one episode, at most as many as the horizon; a random one where the expert has none."""
        task, state, actions = self.task, jax.device_get(self._reset(key)), list[Any]()
        planned = list(task.expert_actions(state))
        while len(actions) < task.horizon:
            if noise == 0.0:
                actions += planned[: task.horizon - len(actions)]
                break
            chance = rng.random() < noise
            action = self._random(rng) if chance or not planned else planned.pop(0)
            actions.append(action)
            state = jax.device_get(self._step(state, np.asarray(action)))
            if bool(self._over(state)):
                break
            if chance:
                planned = list(task.expert_actions(state))
        return actions or [self._random(rng)]

    def _random(self, rng: np.random.Generator) -> Any:
        space = self.task.action_space
        if isinstance(space, Discrete):
            return np.int32(rng.integers(space.n))
        return rng.uniform(space.low, space.high, space.shape).astype(np.float32)

    def texts(self, keys: jax.Array) -> tuple[str, ...]:
        """The missions of episodes, of tasks that have them."""
        if not callable(getattr(self.task, "mission", None)):
            return ()
        return tuple(mission_of(self.task, jax.device_get(self._reset(key))) for key in keys)
