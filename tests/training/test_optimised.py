"""Populations with the optimisations of XLA that users get, which most tests of the trainer do without."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import jax
import pytest

from jaxreward.training import Execution, train
from jaxreward.training.chunk import Chunk
from jaxreward.training.fused import Fused
from jaxreward.training.population import Population
from tests.compilation import OPTIMISED
from tests.training.conftest import BANK, FAST, FUSED, SEEDS, STEPWISE, assert_close_trees, budget, params

ROOT = Path(__file__).resolve().parents[2]
IDENTITIES = ("test_identities.py", "test_robot_identities.py", "test_bank.py")

pytestmark = pytest.mark.long


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("name", IDENTITIES)
def test_the_identities_hold_with_all_optimisations(name: str):
    command = [sys.executable, "-m", "pytest", "-q", "-m", "not slow", f"tests/training/{name}"]
    done = subprocess.run(command, cwd=ROOT, env={**os.environ, OPTIMISED: "1"}, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-3000:]


@pytest.fixture(scope="module")
def fused(easy, mixed, tiny) -> Any:
    """Three programs of different widths and terms."""
    return train(easy, mixed[:6:2], tiny, execution=FUSED, **budget(tiny))


def test_a_candidate_trained_together_equals_itself_alone(easy, mixed, tiny, fused):
    alone = train(easy, [mixed[2]], tiny, execution=FUSED, **budget(tiny))
    assert_close_trees(params(fused, 1), params(alone, 0))


@pytest.mark.parametrize("execution", [FAST, *(pytest.param(e, marks=pytest.mark.slow) for e in (STEPWISE, BANK))])
def test_collectors_and_compilations_agree(easy, mixed, tiny, fused, execution: Execution):
    other = train(easy, mixed[:6:2], tiny, execution=execution, **budget(tiny))
    for k in range(3):
        assert_close_trees(params(fused, k), params(other, k))


def test_the_fused_collector_separates_views_from_the_environment(easy, mixed, tiny):
    """What does so has no effect but on time, so that nothing else would tell if a compiler undid it."""
    chunk = Chunk(easy, Population(mixed[:6:2]), tiny, SEEDS, jax.devices()[0], "fused")
    chunk.compile()
    assert isinstance(chunk._collect, Fused)
    assert " conditional(" in chunk._collect._collect.as_text()
