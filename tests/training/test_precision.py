"""The precision of matrix products: float32 for simulations and programs, as asked for by networks."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxreward.errors import UserError
from jaxreward.programs import Checker, Program
from jaxreward.tasks.probe import Probe
from jaxreward.training import PPO, chunk, compiled, networks, train
from jaxreward.training.population import Population
from tests.training.conftest import FUSED, STEPWISE

PHYSICS, PROGRAM, HIDDEN = 5, 7, 24
"""Sizes of the products of the task, the program and the network, by which they are told apart."""
SMALL = PPO(envs=8, unroll=4, minibatches=2, epochs=1, hidden=(HIDDEN, HIDDEN))

SOURCE = f"""
import jax.numpy as jnp


def get_observation(state):
    x = jnp.full(({PROGRAM}, {PROGRAM}), state.signal)
    return (x @ x)[0]


def compute_reward(state, action, next_state):
    return state.signal
"""


@dataclass(frozen=True)
class Turning(Probe):
    """A probe whose steps and resets have a matrix product in them, as those of robots do."""

    kind: str = "aim"

    def reset(self, key: Any) -> Any:
        return self._turned(super().reset(key))

    def step(self, state: Any, action: Any) -> Any:
        return self._turned(super().step(state, action))

    def _turned(self, state: Any) -> Any:
        x = jnp.eye(PHYSICS) * state.signal
        return state.replace(signal=(x @ x @ x)[0, 0])


def products(text: str) -> set[tuple[int, str]]:
    """Sizes and precisions of the products of a module in StableHLO."""
    found = set[tuple[int, str]]()
    for line in text.splitlines():
        if "stablehlo.dot_general" in line:
            sizes = set(map(int, re.findall(r"\d+(?=x)", line.rsplit(":", 1)[1])))
            algorithm = re.search(r"lhs_precision_type = (\w+)", line)
            precision = algorithm[1] if algorithm else re.findall(r"precision = \[(\w+)", line)[0]
            found.add((next((size for size in (HIDDEN, PROGRAM, PHYSICS) if size in sizes), 0), precision))
    return found


@pytest.fixture(scope="module")
def program(checker: Checker) -> Program:
    verdict, program = checker.check(SOURCE, Turning())
    assert program is not None, verdict.failure
    return program


@pytest.mark.long
@pytest.mark.usefixtures("unoptimised")
@pytest.mark.parametrize("collector", ["fused", "stepwise"])
@pytest.mark.parametrize(("name", "said"), [("float32", "HIGHEST"), ("tf32", "HIGH"), ("bfloat16", "bf16")])
def test_networks_have_the_precision_asked_for_and_all_else_float32(name, said, collector, program):
    device = jax.local_devices()[0]
    whole = chunk.Chunk(Turning(), Population([program]), SMALL.replace(precision=name), (0,), device, collector)
    compiled.forget_compiled()
    with compiled.compilations() as found:
        whole.compiled_for(device)
    *collect, learn = [products(made.lowered.as_text()) for made in found]
    assert set[Any]().union(*collect) == {(HIDDEN, said), (PROGRAM, "HIGHEST"), (PHYSICS, "HIGHEST")}
    assert learn == {(HIDDEN, said)}, "gradients too"


@pytest.mark.long
@pytest.mark.usefixtures("unoptimised")
@pytest.mark.parametrize(("name", "said"), [("float32", "HIGHEST"), ("bfloat16", "bf16")])
def test_a_gru_and_its_gradient_have_the_precision_asked_for(name, said, program):
    ppo = SMALL.replace(gru=HIDDEN, hidden=(HIDDEN,), action_embedding=HIDDEN, precision=name)
    whole = chunk.Chunk(Turning(), Population([program]), ppo, (0,), jax.local_devices()[0])
    compiled.forget_compiled()
    with compiled.compilations() as found:
        whole.compiled_for(jax.local_devices()[0])
    assert {precision for _, precision in products(found[-1].lowered.as_text())} == {said}


def test_initial_states_are_computed_in_float32():
    lowered = chunk._resets_of(Turning(), 4, "cpu").lower(jax.random.split(jax.random.key(0), 2))  # type: ignore[attr-defined]
    assert products(lowered.as_text()) == {(PHYSICS, "HIGHEST")}


@pytest.mark.long
@pytest.mark.parametrize("execution", [FUSED, STEPWISE])
def test_on_a_cpu_float32_is_what_jax_computes_unasked(execution, program, monkeypatch):
    def trained() -> Any:
        compiled.forget_compiled()
        chunk._resets_of.cache_clear()
        options: dict[str, Any] = {"steps": 4 * SMALL.batch, "checkpoints": 1, "eval_episodes": 8}
        return jax.tree.leaves(
            train(Turning(), [program], SMALL, seeds=1, execution=execution, **options).variables(0, 0)
        )

    said = trained()
    monkeypatch.setattr(compiled, "EXACT", None)
    monkeypatch.setattr("jaxreward.devices.EXACT", None)
    monkeypatch.setattr(networks, "PRECISIONS", {"float32": None})
    for one, other in zip(said, trained(), strict=True):
        np.testing.assert_array_equal(one, other)


def test_another_precision_is_refused():
    with pytest.raises(UserError, match="float32, tf32, bfloat16, not 'half'"):
        PPO(precision="half").check()
