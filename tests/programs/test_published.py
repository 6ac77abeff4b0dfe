"""The five interfaces that LIMEN published (its appendix D prints them with gaps, filled here in our
words) load as they are, and their tapes compute what their sources compute."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests.compilation import jit

pytestmark = pytest.mark.usefixtures("unoptimised")

FOLDER = Path(__file__).parent / "published"


class Agent(NamedTuple):
    position: Any
    direction: Any
    pocket: Any


class Grid(NamedTuple):
    grid: Any
    agent: Agent
    step_num: Any


class Data(NamedTuple):
    qpos: Any
    qvel: Any
    ctrl: Any
    actuator_force: Any


class Robot(NamedTuple):
    data: Data
    info: dict[str, Any]


def grid(size: int, rng: np.random.Generator) -> Grid:
    cells = rng.choice([1, 2, 3, 4, 5, 11], (size, size, 2)).astype(np.uint8)
    agent = Agent(
        rng.integers(0, size, 2).astype(np.int32), np.int32(rng.integers(4)), rng.choice([0, 3, 5], 2).astype(np.uint8)
    )
    return Grid(cells, agent, np.int32(rng.integers(80)))


def go1(rng: np.random.Generator) -> Robot:
    def real(*shape: int) -> Any:
        return rng.normal(size=shape).astype(np.float32)

    info = {name: real(3) for name in ("gyro", "gravity", "local_linvel", "upvector", "push_force")}
    info |= {"pos_xy": real(2), "height": real(), "heading": real(), "last_act": real(12), "cum_pos_error": real()}
    info |= {"step_count": np.int32(rng.integers(500)), "push_count": np.int32(1)}
    return Robot(Data(real(19), real(18), real(12), real(12)), info)


def panda(rng: np.random.Generator) -> Robot:
    def real(*shape: int) -> Any:
        return rng.normal(size=shape).astype(np.float32)

    info: dict[str, Any] = {name: real(3) for name in ("target_pos", "target_vel", "gripper_pos")}
    info |= {"gripper_target_dist": np.abs(real()), "prev_ctrl": real(8), "cumulative_tracking_error": real()}
    info["traj_params"] = {name: np.abs(real()) for name in ("freq_x", "freq_y", "freq_z", "phase_x", "phase_y")}
    info |= {"step_count": np.int32(rng.integers(500)), "tracking_steps": np.int32(3)}
    return Robot(Data(real(9), real(9), real(8), real(9)), info)


CASES = {
    "xland_easy": (lambda rng: grid(9, rng), 174, ()),
    "xland_medium": (lambda rng: grid(9, rng), 102, ()),
    "xland_hard": (lambda rng: grid(13, rng), 147, ()),
    "go1": (go1, 98, (12,)),
    "panda": (panda, 94, (8,)),
}


def act(shape: tuple[int, ...], rng: np.random.Generator) -> Any:
    return rng.uniform(-1, 1, shape).astype(np.float32) if shape else np.int32(rng.integers(6))


def structs(tree: Any) -> Any:
    return jax.tree.map(lambda x: jax.ShapeDtypeStruct(np.shape(x), np.asarray(x).dtype), tree)


@pytest.mark.long
@pytest.mark.parametrize("name", CASES)
def test_published_programs_pass_the_checks_unchanged(checker, name):
    make, size, shape = CASES[name]
    rng = np.random.default_rng(0)
    path = FOLDER / f"{name}.py"
    program = checker.load(path, structs((make(rng), act(shape, rng))))
    assert program.observation_size == size
    assert program.source == path.read_text()

    # This source is ours: it may be executed here.
    names: dict[str, Any] = {}
    exec(program.source, names)
    # Both sides unjitted would differ by what XLA fuses, both jitted are the same computation.
    observe, reward = jit(program.observe), jit(program.reward)
    true_observe, true_reward = jit(names["get_observation"]), jit(names["compute_reward"])
    for _ in range(8):
        state, action, next_state = make(rng), act(shape, rng), make(rng)
        np.testing.assert_allclose(observe(state), true_observe(state), rtol=2e-6, atol=2e-6)
        total, terms = reward(state, action, next_state)
        np.testing.assert_allclose(total, true_reward(state, action, next_state), rtol=2e-5, atol=1e-5)
        assert terms.shape == (1,) and total.dtype == jnp.float32


@pytest.mark.parametrize("name", CASES)
def test_published_programs_keep_their_digests(checker, name):
    make, _, shape = CASES[name]
    rng = np.random.default_rng(0)
    tree = structs((make(rng), act(shape, rng)))
    source = (FOLDER / f"{name}.py").read_text()
    renamed = source.replace("reward", "payment").replace("compute_payment", "compute_reward").replace("front", "ahead")
    (first, _), (second, _) = checker.check_many([source, renamed], tree)
    assert first.ok and second.ok and first.summary.digest == second.summary.digest
