"""An observation that is given: every program of a reward gets it."""

from __future__ import annotations

import sys

import pytest

from jaxreward.errors import FileProblem, UnusableFile
from jaxreward.proposers.fixed import FixedObservation

REWARD = """import jax.numpy as jnp

SCALE = 2.0


def size(x):
    return SCALE * x


def compute_reward(state, action, next_state):
    return size(next_state.hit.astype(jnp.float32)), {}
"""
OPAQUE = '''import jax.numpy as jnp

SCALE = 5.0


def size(x):
    return x / SCALE


def get_observation(state):
    """All of it."""
    seen = [size(state.signal)]
    return jnp.stack(seen)


def compute_reward(state, action, next_state):
    return 99.0
'''
GENES = """import jax.numpy as jnp


def signal(state):
    return jnp.stack([state.signal])


def get_observation_part(state):
    # its name begins like the function that uses it
    return jnp.stack([state.signal])


# def get_observation stands below
def get_observation(state):
    return jnp.concatenate([signal(state), 0.5 * get_observation_part(state)])
"""


def fixed(tmp_path, text: str) -> FixedObservation:
    path = tmp_path / "observation.py"
    path.write_text(text)
    return FixedObservation(path)


class State:
    """Enough of a state for these programs, run here because they are ours."""

    def __init__(self) -> None:
        import jax.numpy as jnp

        self.signal, self.hit = jnp.float32(10.0), jnp.array(True)


def run(source: str) -> tuple[list[float], float]:
    names: dict = {}
    exec(source, names)
    reward = names["compute_reward"](State(), 0, State())
    return names["get_observation"](State()).tolist(), float(reward[0] if isinstance(reward, tuple) else reward)


@pytest.mark.parametrize(("text", "seen"), [(OPAQUE, [2.0]), (GENES, [10.0, 5.0])])
def test_both_functions_compute_what_they_did_where_names_clash(tmp_path, text, seen):
    assert run(fixed(tmp_path, text).complete(REWARD)) == (seen, 2.0)


def long_sum(terms: int) -> str:
    added = "\n        + ".join(f"size(state.signal, {k})" for k in range(terms))
    helper = "def size(x, k):\n    return x[None] + k\n"
    return f"{helper}\n\ndef get_observation(state):\n    return (\n        {added}\n    )\n"


@pytest.mark.parametrize("terms", [300, 800])
def test_an_observation_may_be_a_long_sum(tmp_path, terms):
    usual = sys.getrecursionlimit()
    completed = fixed(tmp_path, long_sum(terms)).complete(REWARD)
    assert completed.count("size_2(state.signal") == terms and sys.getrecursionlimit() == usual
    if terms == 300:
        assert run(completed) == ([300 * 10.0 + 299 * 150], 2.0)


def test_a_sum_that_is_too_long_is_a_mistake(tmp_path, monkeypatch):
    monkeypatch.setattr("jaxreward.proposers.fixed._FRAMES", 0)
    with pytest.raises(
        UnusableFile, check=lambda e: e.problem is FileProblem.TOO_LARGE and e.path.name == "observation.py"
    ):
        fixed(tmp_path, long_sum(800)).complete(REWARD)


MUTATED = """import jax.numpy as np
SCALE = [1.0, 2.0]
SCALE[0] = 9.0
for step in (1.0, 2.0):
    SCALE.append(step)
get_observation_part = 3.0
TABLE = {"near": 1.0}
TABLE["far"] = 0.5


def {name}({parameters}):
    return {state}.hit.astype(np.float32) * SCALE[0] + TABLE["far"] + SCALE[3] * get_observation_part
"""


@pytest.mark.parametrize(("text", "seen"), [(OPAQUE, [2.0]), (GENES, [10.0, 5.0])])
@pytest.mark.parametrize(
    ("name", "parameters", "state"),
    [("compute_reward", "state, action, next_state", "next_state"), ("reward", "state", "state")],
)
def test_the_reward_stays_as_it_was_written(tmp_path, text, seen, name, parameters, state):
    written = MUTATED.replace("{name}", name).replace("{parameters}", parameters).replace("{state}", state)
    completed = fixed(tmp_path, text).complete(written)
    assert completed.startswith(written.rstrip())
    names: dict = {}
    exec(completed, names)
    arguments = (State(), 0, State())[: len(parameters.split(", "))]
    assert float(names[name](*arguments)) == 9.0 + 0.5 + 2.0 * 3.0
    assert names["get_observation"](State()).tolist() == seen


@pytest.mark.parametrize("text", [OPAQUE, GENES])
def test_completing_twice_changes_nothing(tmp_path, text):
    observation = fixed(tmp_path, text)
    once = observation.complete(REWARD)
    assert observation.complete(once) == once


def test_an_observation_that_a_program_brings_is_replaced(tmp_path):
    assert run(fixed(tmp_path, OPAQUE).complete(GENES + "\n\n" + REWARD)) == ([2.0], 2.0)


def test_a_source_that_cannot_be_parsed_is_left_for_its_check(tmp_path):
    assert fixed(tmp_path, OPAQUE).complete("def f(:") == "def f(:"


@pytest.mark.parametrize(
    ("text", "problem", "line"),
    [
        ("\ndef f(:", FileProblem.DAMAGED, 2),
        (REWARD, FileProblem.WRONG_KIND, None),
        (None, FileProblem.MISSING, None),
    ],
)
def test_a_file_that_gives_none_is_a_mistake(tmp_path, text, problem, line):
    path = tmp_path / "observation.py"
    if text is not None:
        path.write_text(text)
    with pytest.raises(UnusableFile, check=lambda e: (e.path, e.problem, e.line) == (path, problem, line)):
        FixedObservation(path)


def test_a_prompt_shows_the_observation_that_is_given_and_a_run_keeps_it(tmp_path):
    import dataclasses

    import numpy as np

    from jaxreward.evolution.settings import EvolveSettings
    from jaxreward.evolution.setup import given_observation, task_card
    from jaxreward.proposers.prompts.prompt_builder import PromptBook
    from jaxreward.records import Request
    from jaxreward.tasks import make_task

    path = tmp_path / "observation.py"
    path.write_text(GENES)
    settings = EvolveSettings(task="probe-choice", strategy="eureka", observation=path, out=tmp_path, name="run")
    settings.check()
    card = task_card(make_task("probe-choice"), given_observation(settings), settings.ppo)
    request = Request(id="g0000-00", generation=0, operator="scratch", evolve="reward")
    system, user = PromptBook(card).messages(request, np.random.default_rng(0))
    assert "0.5 * get_observation_part(state)" in user["content"] and "the one above is used" in user["content"]
    assert "it is shown with the task" in system["content"]
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "observation.py").write_text(OPAQUE)
    path.unlink()
    kept = given_observation(dataclasses.replace(settings, resume=True))
    assert kept is not None and "SCALE" in kept.source
    with pytest.raises(UnusableFile, check=lambda e: e.problem is FileProblem.MISSING):
        settings.check()
