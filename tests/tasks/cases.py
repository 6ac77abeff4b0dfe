"""What tests of tasks have in common: vocabularies that are run, metrics that are folded, episodes that end."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from types import SimpleNamespace
from typing import Any

import jax
import jax.numpy as jnp
import mujoco as compiled
import numpy as np

from jaxreward.programs.encode import trace
from jaxreward.programs.limits import Limits
from jaxreward.programs.program import Half, assemble, default_reward
from jaxreward.programs.spec import Spec
from jaxreward.tasks.documentation import state_leaves, subgoals_of
from jaxreward.training import PPO
from jaxreward.training.networks import ActorCritic, init_padded
from jaxreward.training.population import Population
from jaxreward.training.rollout import action_noise, collect, reset_pool, start_rollout
from jaxreward.training.rollout_statistics import Stats
from tests.compilation import jit

mujoco: Any = compiled  # its functions are known to no type checker


def functions_of(source: str) -> dict[str, Any]:
    """What our own text, not a candidate's, defines."""
    names: dict[str, Any] = {}
    exec(source, names)
    return names


def evaluate_metric(metric: Any, states: Iterable[Any], first: Any = None) -> tuple[float, dict[str, float]]:
    """The value of an episode whose steps end in `states`, and the extra metrics by name."""
    acc, before = metric.init(), first
    for state in states:
        acc = metric.update(acc, before, jnp.zeros(8), state)
        before = state
    extra = [float(x) for x in metric.also(acc)] if hasattr(metric, "also") else []
    return float(metric.value(acc)), dict(zip(getattr(metric, "names", ()), extra, strict=True))


def every_array_has_words(task: Any) -> None:
    """The words are those of the arrays that programs see, no fewer and no more."""
    assert set(state_leaves(task)) | {"action"} == set(task.state_words)
    assert not [path for path, words in task.state_words.items() if len(words.strip()) < 4]


def actions_are_clipped(task: Any, step: Any, reset: Any) -> None:
    """A step by far too large an action is that by the largest."""
    state = reset(jax.random.key(0))
    for size in (1.0, -1.0):
        wild, cut = (step(state, np.full(task.action_space.shape, x, np.float32)) for x in (7 * size, size))
        jax.tree.map(np.testing.assert_array_equal, wild, cut)


# ---- vocabularies


def every_fragment_is_what_it_says(task: Any, views: Any, actions: Any, next_views: Any, most: float = 20.0) -> None:
    """Each has its size, finite values of a sensible size, and a name of its own; none is the sparse reward, but the
    one that the task's subgoals say is.

    All arrays have one leading axis of steps, on some of which, but not on all, the sparse reward is paid.
    """
    subgoals = subgoals_of(task)
    vocabulary = subgoals.joined(task.vocabulary())
    fragments = vocabulary.fragments
    parts = ["import jax", "import jax.numpy as jnp"]
    parts += [f"{constant} = {value}" for constant, value in vocabulary.constants.items()]
    functions = functions_of("\n".join([*parts, *vocabulary.helpers.values(), *(f.source for f in fragments)]))

    @jit
    @jax.vmap
    def evaluate(view: Any, action: jax.Array, after: Any) -> tuple[jax.Array, dict[str, jax.Array]]:
        return task.sparse_reward(view, action, after), {
            f.name: functions[f.name](after) if f.kind == "feature" else functions[f.name](view, action, after)
            for f in fragments
        }

    paid, values = jax.device_get(evaluate(views, actions, next_views))
    assert set(paid.tolist()) == {0.0, 1.0}, "the steps cannot tell what the sparse reward is"
    for fragment in fragments:
        feature, value = fragment.kind == "feature", values[fragment.name]
        assert value.shape == (len(paid), *((fragment.size,) if feature else ())), fragment.name
        assert value.dtype == np.float32 and np.isfinite(value).all(), fragment.name
        size = np.abs(value).max() * (1.0 if feature else fragment.scales[0])
        assert size <= most, (fragment.name, size)
        if fragment.name == subgoals.reward:
            assert np.array_equal(value, paid), fragment.name
            continue
        for column in value.reshape(len(paid), -1).T:
            assert not _tells(column, paid), f"{fragment.name} is the sparse reward"
    names = [f.name for f in fragments]
    assert len(set(names)) == len(names) > 30
    assert not set(names) & {*vocabulary.helpers, *vocabulary.constants}, "one would hide the other"


def _tells(column: np.ndarray, paid: np.ndarray) -> bool:
    """Whether `column` has one value where the sparse reward is paid, and one other where it is not."""
    yes, no = column[paid == 1.0], column[paid == 0.0]
    return np.ptp(yes) < 1e-6 and np.ptp(no) < 1e-6 and abs(yes[0] - no[0]) > 1e-6


def reached(m: Any, begin: np.ndarray, at: np.ndarray) -> np.ndarray:
    """Positions of the arm with the gripper at `at`, pointing down, one finger behind the other along x."""
    d = mujoco.MjData(m)
    d.qpos[:] = begin
    for _ in range(100):
        mujoco.mj_forward(m, d)
        hand = d.body("hand").xmat.reshape(3, 3)
        turn = np.cross(hand[:, 2], [0, 0, -1]) + np.cross(hand[:, 1], [1, 0, 0])
        jacobian = np.zeros((6, m.nv))
        mujoco.mj_jacSite(m, d, jacobian[:3], jacobian[3:], m.site("gripper").id)
        wrong = np.concatenate([at - d.site("gripper").xpos, turn])
        d.qpos[:7] += 0.5 * np.linalg.lstsq(jacobian[:, :7], wrong, rcond=None)[0]
    return d.qpos.copy()


def near_the_goal(task: Any, state: Any, far: float, rng: np.random.Generator) -> Any:
    """`state` so changed that a robot is `far` times the distance from its goal within which the sparse reward is paid,
    or, of a velocity or a drawer, in a place that means the same."""
    data, info = state.data, state.info
    model, place = task.physics.model, np.array(data.qpos, float)
    way = rng.normal(size=3)
    way /= np.linalg.norm(way)
    flat = np.array([*(way[:2] / np.linalg.norm(way[:2])), 0.0])
    if task.name == "go1-push-recovery":
        place[:2] += far * 0.1 * flat[:2]
    elif task.name == "quadruped-velocity":
        info = info | {"command": jnp.asarray(far * 0.25 * flat, jnp.float32)}
    elif task.name == "quadcopter-hover":
        place[:3] = [0.0, 0.0, 4.0] + far * 0.1 * way
    elif task.name == "panda-cabinet":
        place[9] = 0.39 + 0.03 * (1.0 - far)
    elif task.name == "ball-roll":
        place[3:5] = np.asarray(info["goal_pos"]) + far * 0.25 * flat[:2]
    elif task.name == "door-open":
        place[0] = 1.9 + 0.1 * (1.0 - far)
    elif task.name == "package-push":
        place[3:5] = np.asarray(info["goal_pos"]) + far * 0.15 * flat[:2]
    elif task.name == "peg-insert":
        place = np.array([float(info["hole_x"]), 0.15 + 0.16 - 0.09 - 0.01 * (1.0 - far), 0.0])
    elif task.name in ("cube-place", "cube-stack"):
        size = 0.02 if task.name == "cube-place" else 0.012
        place[4:6] = np.asarray(info["goal_pos"]) + far * size * np.array([np.sign(flat[0]), 0.0])
    elif task.name == "panda-push":
        place[9:11] = np.asarray(info["goal_pos"])[:2] + far * 0.05 * flat[:2]
    else:
        place = reached(model, place, np.asarray(info["target_pos"], float) + far * 0.02 * way)
        lag = task.physics.on_host(data).qfrc_bias[:7] / model.actuator_gainprm[:7, 0]  # or gravity would have its way
        data = data.replace(ctrl=jnp.asarray([*(place[:7] + lag), rng.uniform(0.0, 0.04)], jnp.float32))
    return state.replace(data=data.replace(qpos=jnp.asarray(place, jnp.float32)), info=info)


def visited(task: Any, step: Any, reset: Any) -> tuple[Any, Any, Any]:
    """Views, actions and next views of some steps (n, ...), at the goal of a robot's task and on either side of it."""
    rng = np.random.default_rng(0)
    draw = lambda size: jnp.asarray(rng.uniform(-size, size, task.action_space.shape), jnp.float32)  # noqa: E731
    steps = []
    for k in range(4):
        first = reset(jax.random.key(k))
        near, further = (near_the_goal(task, first, far, rng) for far in (0.4, 1.8))
        for edited, size in ((first, 1.0), (near, 0.1), (further, 0.1)):
            state, action = step(edited, draw(size)), draw(size)  # the first step makes `info` agree with the edit
            steps.append((task.view(state), action, task.view(step(state, action))))
    return jax.tree.map(lambda *leaves: np.stack(leaves), *steps)


# ---- episodes


def nothing_simulated(self: Any, data: Any, ctrl: Any, substeps: int, push: Any = None, body: str = "") -> Any:
    """In place of `Physics.step`: only the state outside the simulation advances, which compiles in seconds."""
    return data.replace(
        qpos=data.qpos + 1e-3, qvel=data.qvel + 1e-2, ctrl=ctrl, actuator_force=data.actuator_force + 1.0
    )


def nothing_framed(self: Any, data: Any) -> Any:
    """In place of `Physics.frames`: kinematics that follow the first joint alone."""
    sites = data.qpos[0] + jnp.arange(self.model.nsite, dtype=jnp.float32)[:, None]
    return SimpleNamespace(
        site_xpos=jnp.broadcast_to(sites, (self.model.nsite, 3)), xmat=jnp.zeros((self.model.nbody, 9))
    )


def seen_across_an_end(task: Any, lanes: int = 3) -> dict[str, np.ndarray]:
    """What programs see of the trainer's own rollout, (horizon + 2, lanes, ...) by path: one episode and the beginning
    of the next."""
    shapes = state_leaves(task)
    sizes = [int(np.prod(leaf.shape)) for leaf in shapes.values()]

    def everything(*arrays: Any) -> list[jax.Array]:
        return [jnp.concatenate([jnp.ravel(x).astype(jnp.float32) for x in arrays])]

    spec = Spec.of(task)
    seen = Half(trace(everything, spec.structs()[0], spec.labels()[0], Limits()))
    program = assemble("", "everything", spec, seen, default_reward(task, spec), reward_nodes=0)
    population = Population([program])
    network = ActorCritic.of(task, PPO(hidden=(4,)))
    params = init_padded(network, 0, sum(sizes), population.width)
    variables = {"params": jax.tree.map(lambda x: jnp.asarray(x)[None, None], params)}
    extra = len(getattr(task.score(), "names", ()))

    @jit
    def play(keys: jax.Array) -> jax.Array:
        fresh = jax.vmap(lambda key: reset_pool(task, key[None], lanes))(keys[:2])
        first, pool = (jax.tree.map(lambda x, k=k: x[k], fresh) for k in (0, 1))
        begun, stats = start_rollout(task, first, 1), Stats.zeros(1, 1, population.width, population.terms, extra=extra)
        _, trajectory, _ = collect(
            task,
            population,
            network,
            task.horizon + 1,
            1,
            "cpu",
            jnp.asarray(population.constants),
            variables,
            begun,
            pool,
            action_noise(network.distribution, lanes, task.horizon + 2, keys[2:]),
            stats,
        )
        return trajectory.obs[:, 0, 0, :, : sum(sizes)]

    found = np.split(np.asarray(play(jax.random.split(jax.random.key(0), 3))), np.cumsum(sizes)[:-1], axis=-1)
    return {path: x.reshape(*x.shape[:2], *leaf.shape) for (path, leaf), x in zip(shapes.items(), found, strict=True)}


COUNTED = (
    "step_count", "cum_pos_error", "push_count", "push_force", "last_act", "cumulative_tracking_error",
    "tracking_steps",
)  # fmt: skip
"""Of `info`, what begins at zero."""


def an_end_makes_all_new(seen: dict[str, np.ndarray], new: Sequence[str], drawn: Sequence[str]) -> None:
    """Between episodes: arrays `new` are as at the beginning of the first, those `drawn` are drawn again."""
    count = seen["info.step_count"][:, 0]
    end = len(count) - 2  # the first moment of the second episode
    assert count.tolist() == [*range(end), 0, 1]
    for path in ("info.step_count", *new):
        first, last, again = seen[path][0], seen[path][end - 1], seen[path][end]
        np.testing.assert_array_equal(again, first, err_msg=path)
        for lane in range(first.shape[0]):
            assert (last[lane] != first[lane]).any(), f"{path} did not change: this test says nothing of it"
    for path in {f"info.{name}" for name in COUNTED} & set(seen):
        assert not seen[path][[0, end]].any(), path
    if "info.prev_ctrl" in seen:
        np.testing.assert_array_equal(seen["info.prev_ctrl"][[0, end]], seen["data.ctrl"][[0, end]])
    for path in drawn:
        both = np.concatenate([seen[path][0], seen[path][end]])
        assert len({x.tobytes() for x in both}) == len(both), f"{path} is the same in two episodes"
