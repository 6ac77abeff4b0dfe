"""A training finds what was compiled ahead of it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from jaxreward.training import rollout, train
from jaxreward.training.ahead import compile_ahead
from jaxreward.training.compiled import COMMON, POPULATIONS, STRUCTURES, forget_compiled
from tests.training.conftest import FAST, FUSED, SEEDS, STEPWISE, budget

pytestmark = pytest.mark.usefixtures("unoptimised")


@pytest.mark.slow
def test_a_training_finds_what_was_compiled_ahead(easy, mixed, tiny):
    forget_compiled()
    programs, settings = mixed[:3], budget(tiny)
    room = (max(p.observation_size for p in programs), max(len(p.terms) for p in programs))
    execution = replace(STEPWISE, room=room)
    for place, program in enumerate(programs):
        compile_ahead(easy, program, tiny, seeds=SEEDS, steps=settings["steps"], execution=execution, place=place, of=3)
    ahead = set(STRUCTURES)
    assert len(ahead) == 3 and not set(COMMON)
    train(easy, programs, tiny, execution=execution, **settings)
    assert set(STRUCTURES) == ahead and set(COMMON)


@pytest.mark.parametrize("execution", [FUSED, FAST])
def test_nothing_is_compiled_ahead_for_a_fused_collector(easy, mixed, tiny, execution):
    forget_compiled()
    compile_ahead(easy, mixed[0], tiny, seeds=SEEDS, steps=64, execution=execution, place=0, of=2)
    assert not {*STRUCTURES, *COMMON, *POPULATIONS}


def test_a_program_is_compiled_ahead_without_tracing_the_environment(easy, mixed, tiny, monkeypatch):
    def traced(*_):
        raise AssertionError("the environment was traced")

    monkeypatch.setattr(rollout, "batched_step", traced)
    forget_compiled()
    compile_ahead(easy, mixed[0], tiny, seeds=SEEDS, steps=64, execution=STEPWISE, place=0, of=2)
    assert len(set(STRUCTURES)) == 1 and not set(COMMON)
