"""What must hold of a population: nothing depends on who trains beside whom."""

from __future__ import annotations

import dataclasses
from typing import Any

import jax
import numpy as np
import pytest

from jaxreward.programs import Spec
from jaxreward.training import PPO, Interrupted, Rung, train
from jaxreward.training.chunk import Chunk
from jaxreward.training.population import Population
from tests.training.conftest import OBSERVATIONS, assert_close_trees, program_source

UPDATES = 4
SEEDS = (3, 11)


def budget(ppo: PPO, updates: int = UPDATES) -> dict[str, Any]:
    return {"seeds": SEEDS, "steps": updates * ppo.batch, "checkpoints": 2, "eval_episodes": 8}


@pytest.fixture(scope="module")
def fused(easy, mixed, tiny):
    return train(easy, mixed, tiny, **budget(tiny))


def params(result, candidate: int) -> list[Any]:
    return [result.params(candidate, s) for s in range(len(SEEDS))]


def test_fused_equals_alone(easy, mixed, tiny, fused):
    """Each of eight mixed programs, in a batch and alone: the same parameters up to rounding."""
    for k, program in enumerate(mixed):
        alone = train(easy, [program], tiny, **budget(tiny))
        assert_close_trees(params(fused, k), params(alone, 0))


def test_candidates_do_differ(fused):
    """The comparison above would see a mistake: other programs give other parameters."""
    first, second = (jax.tree.leaves(params(fused, k)) for k in (0, 1))
    assert max(float(np.abs(a - b).max()) for a, b in zip(first, second, strict=True)) > 1e-3
    one, other = fused.params(0, 0), fused.params(0, 1)
    assert float(np.abs(one["policy"]["kernel"] - other["policy"]["kernel"]).max()) > 1e-3


def test_order_does_not_matter(easy, mixed, tiny, fused):
    order = [5, 2, 7, 0]
    shuffled = train(easy, [mixed[i] for i in order], tiny, **budget(tiny))
    for row, k in enumerate(order):
        assert_close_trees(params(fused, k), params(shuffled, row))


def test_chunks_do_not_matter(easy, mixed, tiny, fused):
    cut = train(easy, mixed, tiny, chunk=3, **budget(tiny))
    assert cut.chunks == (3, 3, 2)
    for k in range(len(mixed)):
        assert_close_trees(params(fused, k), params(cut, k))
    np.testing.assert_allclose(fused.success_curve, cut.success_curve, atol=0.26)
    assert cut.env_steps == fused.env_steps


def test_padding_does_not_matter(easy, mixed, tiny):
    """The same program in a vector of 32 features and of 96."""
    agents = []
    for width in (0, 96):
        chunk = Chunk(easy, Population([mixed[0]], width=width), tiny, SEEDS, jax.devices()[0])
        chunk.compile()
        state, stats = chunk.start(), chunk.fresh_stats()
        for index in range(UPDATES):
            state, stats, _ = chunk.update(state, stats, index, index / UPDATES)
        agents.append(jax.device_get(state.agents.params))
    width = mixed[0].observation_size
    narrow, wide = agents
    assert not wide["encoder_0"]["kernel"][:, :, width:].any()
    for tree in agents:
        tree["encoder_0"]["kernel"] = tree["encoder_0"]["kernel"][:, :, :width]
    assert_close_trees(narrow, wide)


def test_a_nan_stays_home(easy, mixed, tiny, checker):
    """One program among four whose reward is not finite from step 20 of an episode on."""
    source = program_source(
        "return state.agent.position / 8.0", "return jnp.where(state.step_num >= 20, jnp.nan, held(next_state))"
    )
    assert not checker.check(source, easy)[0].ok
    bad = checker.check(source, Spec.of(easy))[1]  # without the task, whose states would give it away
    neighbours = mixed[:3]
    settings = budget(tiny, 5)
    result = train(easy, [*neighbours[:1], bad, *neighbours[1:]], tiny, **settings)
    clean = train(easy, neighbours, tiny, **settings)
    assert result.diverged[1].all() and not result.diverged[[0, 2, 3]].any()
    assert (result.success[1] == 0).all()
    assert result.feedback(1).diverged == len(SEEDS)
    assert all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(result.agents[1]))
    for row, k in ((0, 0), (2, 1), (3, 2)):
        assert_close_trees(params(result, row), params(clean, k))


class Memory:
    """A store in memory that counts."""

    def __init__(self) -> None:
        self.trees: dict[str, Any] = {}
        self.restored = 0

    def save(self, tag: str, tree: Any) -> None:
        self.trees[tag] = jax.tree.map(lambda x: np.array(x) if isinstance(x, np.ndarray | jax.Array) else x, tree)

    def restore(self, tag: str, like: Any) -> Any | None:
        self.restored += tag in self.trees
        return self.trees.get(tag)


@pytest.mark.parametrize("stop_at", [1, 2, 5])
def test_resumed_equals_uninterrupted(easy, mixed, tiny, stop_at):
    """Stopped before any update and taken up again: bitwise the same, curves included."""
    programs, settings = mixed[:2], budget(tiny, 6)
    whole = train(easy, programs, tiny, **settings)
    store, asked = Memory(), [0]

    def stop() -> bool:
        asked[0] += 1
        return asked[0] > stop_at

    with pytest.raises(Interrupted):
        train(easy, programs, tiny, store=store, should_stop=stop, **settings)
    resumed = train(easy, programs, tiny, store=store, **settings)
    assert store.restored == 1
    np.testing.assert_array_equal(whole.success_curve, resumed.success_curve)
    for a, b in zip(whole.histories, resumed.histories, strict=True):
        for field in dataclasses.fields(a):
            np.testing.assert_array_equal(getattr(a, field.name), getattr(b, field.name))
    for a, b in zip(jax.tree.leaves(whole.agents), jax.tree.leaves(resumed.agents), strict=True):
        np.testing.assert_array_equal(a, b)


def test_a_saved_training_is_not_taken_for_that_of_other_programs(easy, mixed, tiny):
    """The same store and tag, but other candidates, other chunks or another budget."""
    store, settings = Memory(), budget(tiny, 3)
    train(easy, mixed[:3], tiny, store=store, chunk=1, **settings)
    saved = dict(store.trees)
    assert saved
    others = train(easy, mixed[1:3], tiny, store=store, chunk=1, **settings)
    clean = train(easy, mixed[1:3], tiny, chunk=1, **settings)
    for k in range(2):
        assert_close_trees(params(others, k), params(clean, k), atol=1e-6)
    store.trees, store.restored = saved, 0
    train(easy, mixed[:3], tiny, store=store, chunk=2, **settings)
    train(easy, mixed[:3], tiny, store=store, chunk=1, **budget(tiny, 4))
    assert store.restored == 0


def test_terms_in_another_order_are_not_taken_for_each_other(easy, load, tiny):
    one = load(OBSERVATIONS[0], 'return held(next_state), {"far": distance(state), "held": held(next_state)}')
    other = load(OBSERVATIONS[0], 'return held(next_state), {"held": held(next_state), "far": distance(state)}')
    for program in (one, other):
        result = train(easy, [program], tiny, **budget(tiny, 2))
        means = {term.name: term.mean[-1] for term in result.feedback(0).terms}
        assert means["far"] > 1.0 > means["held"]


def test_a_population_with_more_terms_is_compiled_anew(easy, mixed, load, tiny):
    terms = ", ".join(f'"t{i}": distance(state) * {i}.0' for i in range(9))
    wide = load(OBSERVATIONS[0], f"return held(next_state), {{{terms}}}")
    train(easy, mixed[:1], tiny, **budget(tiny, 1))
    result = train(easy, [mixed[0], wide], tiny, chunk=1, **budget(tiny, 1))
    assert len(result.feedback(1).terms) == 9


def test_survivors_of_a_rung_go_on_as_if_nothing_had_happened(easy, mixed, tiny):
    programs = mixed[:3]
    whole = train(easy, programs, tiny, **budget(tiny, 6))
    rungs = [Rung(2 * tiny.batch, 0.0)]
    passed = train(easy, programs, tiny, rungs=rungs, **budget(tiny, 6))
    assert not passed.stopped.any()
    for k in range(3):
        assert_close_trees(params(whole, k), params(passed, k), atol=1e-6)


def test_a_rung_stops_and_compacts(easy, mixed, tiny, monkeypatch):
    """With a threshold between the candidates' successes, the rest trains on in a smaller chunk."""
    monkeypatch.setattr("jaxreward.training.executor.worth_compacting", lambda *_: True)
    programs, settings = mixed[:4], budget(tiny, 6)
    whole = train(easy, programs, tiny, **settings)
    at = train(easy, programs, tiny, rungs=[Rung(2 * tiny.batch, 0.0)], **settings)
    point = int(np.flatnonzero(at.steps == 2 * tiny.batch)[0])
    success = at.success_curve[:, :, point].mean(1)
    assert np.ptp(success) > 0, "the test needs candidates that differ"
    threshold = float(np.sort(success)[2])
    cut = train(easy, programs, tiny, rungs=[Rung(2 * tiny.batch, threshold)], **settings)
    stopped = success < threshold
    np.testing.assert_array_equal(cut.stopped > 0, stopped)
    assert cut.chunks == (int((~stopped).sum()),)
    assert cut.env_steps < whole.env_steps
    for k in map(int, np.flatnonzero(~stopped)):
        assert_close_trees(params(whole, k), params(cut, k))
    for k in np.flatnonzero(stopped):
        np.testing.assert_allclose(cut.success[k].mean(), success[k], atol=1e-6)
        assert np.isnan(cut.success_curve[k, :, -1]).all()
