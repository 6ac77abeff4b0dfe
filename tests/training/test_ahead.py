"""What is compiled for a program before it is known who trains beside it is what the training looks for."""

from __future__ import annotations

import pytest

from jaxreward.training import train
from jaxreward.training.ahead import compile_ahead
from jaxreward.training.compiled import COMMON, POPULATIONS, STRUCTURES, forget_compiled
from tests.training.conftest import SEEDS, budget

pytestmark = pytest.mark.usefixtures("hasty")


def test_a_training_finds_what_was_compiled_ahead(easy, mixed, tiny):
    forget_compiled()
    programs, settings = mixed[:3], budget(tiny)
    room = (max(p.observation_size for p in programs), max(len(p.terms) for p in programs))
    for place, program in enumerate(programs):
        compile_ahead(
            easy, program, tiny, seeds=SEEDS, steps=settings["steps"], collector="linked", room=room, place=place, of=3
        )
    ahead = set(STRUCTURES)
    assert len(ahead) == 3 and not set(COMMON)
    train(easy, programs, tiny, collector="linked", room=room, **settings)
    assert set(STRUCTURES) == ahead and set(COMMON)


@pytest.mark.parametrize("collector", ["fused", "hasty"])
def test_nothing_is_compiled_ahead_for_one_function_of_all(easy, mixed, tiny, collector):
    forget_compiled()
    compile_ahead(easy, mixed[0], tiny, seeds=SEEDS, steps=64, collector=collector, room=(0, 0), place=0, of=2)
    assert not {*STRUCTURES, *COMMON, *POPULATIONS}
