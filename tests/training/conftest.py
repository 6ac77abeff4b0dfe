"""Small programs and a small learner, compiled once for the tests of the trainer."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from jaxreward.programs import Checker, Program
from jaxreward.tasks import Task
from jaxreward.training import PPO, Execution, Learner
from jaxreward.training.compiled import forget_compiled

HEAD = """\
import jax
import jax.numpy as jnp


def where(state):
    found = (state.grid[:, :, 0] == 5) & (state.grid[:, :, 1] == 3)
    k = jnp.argmax(found.reshape(-1))
    return jnp.stack([k // 9, k % 9])


def held(state):
    return (state.agent.pocket[0] == 5).astype(jnp.float32)


def distance(state):
    return jnp.abs(where(state) - state.agent.position).sum().astype(jnp.float32)

"""
OBSERVATIONS = (
    "return jnp.concatenate([(where(state) - state.agent.position) / 8.0, jax.nn.one_hot(state.agent.direction, 4)])",
    "return state.grid.reshape(-1).astype(jnp.float32) / 12.0",
    "return jnp.concatenate([state.agent.position / 8.0, jnp.stack([state.step_num / 80.0])])",
    "return jnp.sin(jnp.arange(40.0) * distance(state))",
)
FUSED, FAST = Execution(collector="fused", compile="full"), Execution(collector="fused", compile="fast")
STEPWISE = Execution(collector="stepwise")
BANK = Execution(collector="fused", compile="full", population="bank")
SEEDS = (3, 11)
UPDATES = 4
REWARDS = (
    "near, h = distance(state) - distance(next_state), held(next_state)\n    return near + h, dict(near=near, held=h)",
    "return held(next_state)",
)


def program_source(observation: str, reward: str) -> str:
    return (
        f"{HEAD}\ndef get_observation(state):\n    {observation}\n\n\n"
        f"def compute_reward(state, action, next_state):\n    {reward}\n"
    )


@pytest.fixture(scope="module", autouse=True)
def compiled_here() -> None:
    """What other modules compiled, perhaps without optimising it, is not used."""
    forget_compiled()


@pytest.fixture(scope="session")
def easy(task_of: Callable[[str], Task]) -> Task:
    return task_of("xland-easy")


@pytest.fixture(scope="session")
def load(checker: Checker, easy: Task) -> Callable[[str, str], Program]:
    """A program for xland-easy from the bodies of its two functions."""

    def load(observation: str, reward: str) -> Program:
        verdict, program = checker.check(program_source(observation, reward), easy)
        assert program is not None, verdict.failure
        return program

    return load


@pytest.fixture(scope="session")
def mixed(load: Callable[[str, str], Program]) -> list[Program]:
    """Eight programs of different widths and terms."""
    return [load(o, r) for o in OBSERVATIONS for r in REWARDS]


@pytest.fixture(scope="session")
def tiny() -> PPO:
    return PPO(envs=8, unroll=8, epochs=1, minibatches=2, hidden=(16,))


def budget(ppo: Learner, updates: int = UPDATES) -> dict[str, Any]:
    return {"seeds": SEEDS, "steps": updates * ppo.batch, "checkpoints": 2, "eval_episodes": 8}


def params(result: Any, candidate: int) -> list[Any]:
    return [result.variables(candidate, s)["params"] for s in range(len(SEEDS))]


def assert_close_trees(a: object, b: object, atol: float = 2e-5) -> None:
    import jax

    for x, y in zip(jax.tree.leaves(a), jax.tree.leaves(b), strict=True):
        np.testing.assert_allclose(x, y, rtol=1e-3, atol=atol)
