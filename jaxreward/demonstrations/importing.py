"""Episodes from a user's own arrays, and from data sets of Minari."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import jax
import numpy as np

from jaxreward.demonstrations.trajectories import Array, Source, Trajectories, WrongTrajectories, joined
from jaxreward.errors import UserError, in_a_line
from jaxreward.extras import require
from jaxreward.programs.spec import InvalidView, Spec, dtype_of
from jaxreward.tasks import Box, Task, measure_of


def from_arrays(
    task: Task, states: Sequence[Any], actions: Sequence[Any], *, log_probabilities: Sequence[Any] | None = None,
    success: Sequence[float] | None = None, ended: Sequence[bool] | None = None,
    solves: Sequence[Any] | None = None, texts: Sequence[str] = (),
    source: Source = "imported", task_arg: Sequence[str] = (),
) -> Trajectories:  # fmt: skip
    """Episodes of arrays, for a task.

    Args:
        states: of each episode a tree like `task.view(state)`, or a dictionary of arrays by their path in it, such as
            `{"agent.position": ...}`; every array (or list of numbers) has a leading axis of one more than the
            episode's actions. Where the view is a single array, an array.
        actions: of each episode, (steps, ...).
        log_probabilities: of each episode, float (steps,), under the policy that acted.
        success: of each episode, by the task's metric: where that is a rate, from 0 to 1.
        ended: of each episode, whether the task ended it; by default it is not known to have.
        solves: of each episode, (steps,), whether a step leads to a state that solves the task: true or false, or 1, 0,
            and -1 where that is not known.
        texts: of each episode, such as its mission.

    Raises:
        WrongTrajectories: arrays that do not fit, with the episode.
    """
    spec = Spec.of(task)
    states, actions = list(states), list(actions)
    given = (log_probabilities, success, ended, solves)
    if any(x is not None and not hasattr(x, "__len__") for x in given):
        raise WrongTrajectories("success, ended, solves and log_probabilities have an entry for each episode")
    if success is not None and measure_of(task).rate and any(x < 0.0 or x > 1.0 for x in success):
        raise WrongTrajectories(f"the success of an episode of {task.name} is from 0 to 1")
    if ended is not None and any(not isinstance(x, bool | np.bool_) and x not in (0, 1) for x in ended):
        raise WrongTrajectories("ended is true or false for each episode")
    if any(x is not None and len(x) != len(actions) for x in (states, *given)) or len(texts) not in (0, len(actions)):
        raise WrongTrajectories(f"give one entry for each of the {len(actions)} episodes")
    episodes = list[Trajectories]()
    for k, (own, acts) in enumerate(zip(states, actions, strict=True)):
        try:
            arrays, chosen = _leaves(spec, own), _as(np.asarray(acts), spec.action.dtype, "action")
            _require_inside(task, chosen)
            logp = np.full(len(chosen), np.nan) if log_probabilities is None else np.asarray(log_probabilities[k])
            episodes.append(Trajectories(
                spec=spec, states=arrays, actions=chosen, lengths=np.array([len(chosen)], np.int32),
                log_probabilities=logp.astype(np.float32),
                success=np.array([np.nan if success is None else success[k]], np.float32),
                ended=np.array([False if ended is None else ended[k]], bool),
                solves=None if solves is None else _as(np.asarray(solves[k]), "int8", "solves"),
                texts=tuple(texts[k : k + 1]), task=task.name, task_arg=tuple(task_arg), source=source,
            ))  # fmt: skip
        except (UserError, ValueError, TypeError) as error:
            why = str(error) if isinstance(error, UserError) else in_a_line(error)
            raise WrongTrajectories(f"episode {k}: {why}") from error
    if not episodes:
        raise WrongTrajectories("there are no episodes")
    return joined(episodes)


def from_minari(
    task: Task, data: Any, *, view: Callable[[Any], Any] = lambda observations: observations,
    most: int | None = None, task_arg: Sequence[str] = (),
) -> Trajectories:  # fmt: skip
    """Episodes of a data set of Minari (the extra `minari`).

    Args:
        data: a `minari.MinariDataset`, or the id of one that is on this machine (`minari download` fetches it).
        view: the observations of an episode, with a leading axis of its steps and one more, to what `from_arrays` takes
            as its states. By default they are what the task's view is.
        most: episodes to take, the first ones; by default all.

    Raises:
        MissingPackage: Minari is not installed.
        WrongTrajectories: no such data set, or one that does not fit.
    """
    if isinstance(data, str):
        require("minari", f"the data set {data}")
        import minari  # pyright: ignore[reportMissingImports]

        try:
            data = minari.load_dataset(data)
        except Exception as error:
            raise WrongTrajectories(f"there is no data set {data} of Minari: {in_a_line(error)}") from error
    episodes: Iterable[Any] = data.iterate_episodes(range(most) if most is not None else None)
    states, actions, ended = list[Any](), list[Any](), list[bool]()
    for episode in episodes:
        states.append(view(episode.observations))
        actions.append(episode.actions)
        ended.append(bool(np.asarray(episode.terminations)[-1]))
    return from_arrays(task, states, actions, ended=ended, task_arg=task_arg)


def _require_inside(task: Task, actions: Array) -> None:
    """Raise `WrongTrajectories` for continuous actions beyond their bounds, which agents never take."""
    space = task.action_space
    if isinstance(space, Box) and actions.size:
        low, high = float(actions.min()), float(actions.max())
        if low < space.low - _ROUNDING or high > space.high + _ROUNDING:
            raise WrongTrajectories(
                f"actions are from {low:.4g} to {high:.4g}, and those of {task.name} from {space.low:g} to "
                f"{space.high:g}: clip them, if that is what the simulator did, or scale them"
            )


_ROUNDING = 1e-3


def _leaves(spec: Spec, states: Any) -> tuple[Array, ...]:
    """The arrays of the states of an episode in the order of `spec.leaves`."""
    names = [leaf.name for leaf in spec.leaves]
    found = jax.tree_util.tree_flatten_with_path(states, is_leaf=_is_numbers)[0]
    given = {jax.tree_util.keystr(path, simple=True, separator="."): array for path, array in found}
    arrays = [array for _, array in found]
    if set(given) == set(names):  # keys of dictionaries come in another order than fields
        arrays = [given[name] for name in names]
    elif len(arrays) != len(names) or isinstance(states, dict):
        these = ", ".join([f"{len(arrays)} arrays", *filter(None, given)])
        known = f"{len(names)} arrays, {', '.join(names)}"
        raise InvalidView(f"its states are {these}, and the view of the task is {known}")
    return tuple(
        _as(np.asarray(x), leaf.dtype, leaf.name) for leaf, x in zip(spec.leaves, arrays, strict=True)
    )  # fmt: skip


def _is_numbers(x: Any) -> bool:
    """Whether `x` is an array in Python's lists, which JAX would take for a tree of its numbers."""
    if not isinstance(x, list):
        return False
    while isinstance(x, list) and x:
        x = x[0]
    return np.isscalar(x)


def _as(array: Array, dtype: str, name: str) -> Array:
    """`array` in a dtype that holds its values: wider integers and floats of a simulator are narrowed."""
    kind = dtype_of(dtype)
    if array.dtype == kind:
        return array
    with np.errstate(over="ignore", invalid="ignore"):
        narrowed = array.astype(kind)
    whole = kind.kind in "biu"
    if (whole and not (narrowed == array).all()) or (not whole and array.dtype.kind not in "biuf"):
        raise WrongTrajectories(f"{name} is {array.dtype.name}, and its values do not fit into {dtype}")
    return narrowed
