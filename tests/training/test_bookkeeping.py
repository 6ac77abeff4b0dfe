"""Trainings that are interrupted, taken up again, mistaken for each other or cut short: the books stay right."""

from __future__ import annotations

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxreward as jr
from jaxreward.errors import JaxrewardWarning
from jaxreward.programs import Program
from jaxreward.tasks import make_task
from jaxreward.training import PPO, Checkpointing, Execution, Interrupted, Rung, train
from jaxreward.training.chunk import Chunk
from jaxreward.training.plan import first_chunk
from jaxreward.training.population import Population, padded_sizes
from tests.training.conftest import FAST, SEEDS, STEPWISE, assert_close_trees, budget, params

pytestmark = [pytest.mark.usefixtures("unoptimised"), pytest.mark.long]


class Memory:
    """A store in memory that counts."""

    def __init__(self) -> None:
        self.trees: dict[str, Any] = {}
        self.sizes: dict[str, Any] = {}
        self.restored = 0
        self.saved_at: list[int] = []

    def save(self, tag: str, tree: Any) -> None:
        if "state" not in tree:  # the size of chunks
            self.sizes[tag] = dict(tree)
            return
        self.saved_at.append(tree["update"])
        self.trees[tag] = jax.tree.map(lambda x: np.array(x) if isinstance(x, np.ndarray | jax.Array) else x, tree)

    def restore(self, tag: str, like: Any) -> Any | None:
        if "state" not in like:
            return self.sizes.get(tag)
        self.restored += tag in self.trees
        return self.trees.get(tag)


@pytest.mark.parametrize("stop_at", [1, 2, 5])
def test_a_resumed_training_equals_an_uninterrupted_one(easy, mixed, tiny, stop_at):
    """Stopped before any update and taken up again: bitwise the same, curves included."""
    programs, settings = mixed[:2], budget(tiny, 6)
    whole = train(easy, programs, tiny, **settings)
    store, asked = Memory(), [0]

    def stop() -> bool:
        asked[0] += 1
        return asked[0] > stop_at

    with pytest.raises(Interrupted):
        train(easy, programs, tiny, should_stop=stop, checkpointing=Checkpointing(store), **settings)
    resumed = train(easy, programs, tiny, checkpointing=Checkpointing(store), **settings)
    assert store.restored == 1
    np.testing.assert_array_equal(whole.success_curve, resumed.success_curve)
    for a, b in zip(whole.histories, resumed.histories, strict=True):
        for field in dataclasses.fields(a):
            np.testing.assert_array_equal(getattr(a, field.name), getattr(b, field.name))
    for a, b in zip(jax.tree.leaves(whole.agents), jax.tree.leaves(resumed.agents), strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.fixture(scope="module")
def corridor(task_of):
    return task_of("probe-corridor")


@pytest.fixture(scope="module")
def walk(checker, corridor):
    """A program for the corridor from its reward, and what it sees of a state."""

    def load(reward, seen="state.place / 6.0"):
        verdict, program = checker.check(
            f"import jax.numpy as jnp\ndef get_observation(state):\n    return jnp.stack([{seen}])\n"
            f"def compute_reward(state, action, next_state):\n    return {reward}\n",
            corridor,
        )
        assert program is not None, verdict.failure
        return program

    return load


def test_a_checkpoint_of_other_programs_chunks_or_budget_is_not_restored(corridor, walk, tiny):
    """The same store and tag, but other candidates, other chunks or another budget."""
    programs = [
        walk("1.0 * next_state.hit"),
        walk("0.1 * (next_state.place - state.place)"),
        walk("1.0 * next_state.hit", "state.t / 18.0, state.place / 6.0"),
    ]
    store, settings = Memory(), budget(tiny, 3)
    train(corridor, programs, tiny, checkpointing=Checkpointing(store), execution=Execution(chunk=1), **settings)
    saved = dict(store.trees)
    assert saved
    others = train(
        corridor, programs[1:], tiny, checkpointing=Checkpointing(store), execution=Execution(chunk=1), **settings
    )
    clean = train(corridor, programs[1:], tiny, execution=Execution(chunk=1), **settings)
    for k in range(2):
        assert_close_trees(params(others, k), params(clean, k), atol=1e-6)
    store.trees, store.restored = saved, 0
    train(corridor, programs, tiny, checkpointing=Checkpointing(store), execution=Execution(chunk=2), **settings)
    train(corridor, programs, tiny, checkpointing=Checkpointing(store), execution=Execution(chunk=1), **budget(tiny, 4))
    assert store.restored == 0


def walking(gain: float) -> Any:
    """A task without a file, as in a notebook; its name and options say nothing of `gain`."""
    return jr.from_functions(
        reset=lambda key: {"at": jnp.zeros(())}, step=lambda state, action: {"at": state["at"] + gain * action},
        success=lambda state: state["at"] > 2.0, action_space=jr.Discrete(2), name="walking", horizon=6,
    )  # fmt: skip


def test_a_checkpoint_of_other_code_under_the_same_name_is_not_restored(tiny):
    store, settings = Memory(), budget(tiny, 1)

    def length(gain: float) -> float:
        task = walking(gain)
        result = train(task, [Program.default(task)], tiny, checkpointing=Checkpointing(store), **settings)
        return float(result.length_curve[0, 0, -1])

    assert length(0.0) == 6.0 and length(3.0) < 6.0 and store.restored == 0
    assert length(0.0) == 6.0 and store.restored == 1


def test_a_training_is_saved_between_points_of_the_curves_too(corridor, walk, tiny):
    store = Memory()
    train(
        corridor, [walk("1.0 * next_state.hit")], tiny, checkpointing=Checkpointing(store, every_s=0.0),
        **{**budget(tiny, 4), "checkpoints": 2},
    )  # fmt: skip
    assert store.saved_at == [1, 2, 3, 4]


def test_a_resumed_training_has_the_chunks_that_it_had_with_less_memory(corridor, walk, tiny):
    programs = [walk("1.0 * next_state.hit"), walk("0.1 * (next_state.place - state.place)")]
    store, settings = Memory(), budget(tiny, 2)
    little, enough = Execution(memory_gb=1e-6), Execution(memory_gb=8.0)
    first = train(corridor, programs, tiny, checkpointing=Checkpointing(store), execution=little, **settings)
    again = train(corridor, programs, tiny, checkpointing=Checkpointing(store), execution=enough, **settings)
    assert first.chunks == again.chunks == (1, 1) and store.restored == 2
    assert train(corridor, programs, tiny, execution=enough, **settings).chunks == (2,)
    other = Memory()
    train(corridor, programs, tiny, checkpointing=Checkpointing(other), execution=enough, **settings)
    with pytest.warns(JaxrewardWarning, match="what was saved of this training needs .* it begins again"):
        fewer = train(corridor, programs, tiny, checkpointing=Checkpointing(other), execution=little, **settings)
    assert fewer.chunks == (1, 1)


def test_terms_keep_their_names_in_any_order(corridor, walk, tiny):
    one = walk('1.0 * next_state.hit, {"far": 9.0 - state.place, "hit": 1.0 * next_state.hit}')
    other = walk('1.0 * next_state.hit, {"hit": 1.0 * next_state.hit, "far": 9.0 - state.place}')
    for program in (one, other):
        result = train(corridor, [program], tiny, **budget(tiny, 2))
        means = {term.name: term.mean[-1] for term in result.feedback(0).terms}
        assert means["far"] > 1.0 > means["hit"]


def test_a_population_with_more_terms_is_compiled_anew(corridor, walk, tiny):
    narrow = walk("1.0 * next_state.hit")
    wide = walk("1.0 * next_state.hit, {" + ", ".join(f'"t{i}": state.place * {i}.0' for i in range(9)) + "}")
    train(corridor, [narrow], tiny, **budget(tiny, 1))
    result = train(corridor, [narrow, wide], tiny, execution=Execution(chunk=1), **budget(tiny, 1))
    assert len(result.feedback(1).terms) == 9


@pytest.fixture(scope="module")
def whole(easy, mixed, tiny):
    """Four programs without a rung."""
    return train(easy, mixed[:4], tiny, **budget(tiny, 6))


@pytest.fixture(scope="module")
def passed(easy, mixed, tiny):
    """The same with a rung that all pass."""
    return train(easy, mixed[:4], tiny, rungs=[Rung(2 * tiny.batch, 0.0)], **budget(tiny, 6))


def test_survivors_of_a_rung_equal_an_uninterrupted_training(whole, passed):
    assert not passed.stopped.any()
    for k in range(4):
        assert_close_trees(params(whole, k), params(passed, k), atol=1e-6)


@pytest.mark.parametrize("execution", [FAST, STEPWISE])
def test_a_rung_stops_and_compacts(easy, mixed, tiny, whole, passed, monkeypatch, execution):
    """With a threshold between the candidates' successes, the rest trains on in a smaller chunk. Stepwise
    chunks are made up to what `common_size` says by rows that nobody asks for."""
    monkeypatch.setattr("jaxreward.training.population_training.worth_compacting", lambda *_: True)
    programs, settings = mixed[:4], budget(tiny, 6)
    point = int(np.flatnonzero(passed.steps == 2 * tiny.batch)[0])
    success = passed.success_curve[:, :, point].mean(1)
    assert np.ptp(success) > 0, "the test needs candidates that differ"
    threshold = float(np.sort(success)[2])
    monkeypatch.setattr("jaxreward.training.stepwise._SIZES", (3, 6))
    cut = train(easy, programs, tiny, rungs=[Rung(2 * tiny.batch, threshold)], execution=execution, **settings)
    stopped = success < threshold
    np.testing.assert_array_equal(cut.stopped > 0, stopped)
    assert cut.chunks == (int((~stopped).sum()),)
    assert cut.env_steps < whole.env_steps
    monkeypatch.setattr("jaxreward.training.population_training.worth_compacting", lambda *_: False)
    beside = train(easy, programs, tiny, rungs=[Rung(2 * tiny.batch, threshold)], execution=execution, **settings)
    assert beside.chunks == (4,) and beside.env_steps == cut.env_steps, "who has stopped does not count beside others"
    for k in map(int, np.flatnonzero(~stopped)):
        assert_close_trees(params(whole, k), params(cut, k))
    for k in np.flatnonzero(stopped):
        np.testing.assert_allclose(cut.success[k].mean(), success[k], atol=1e-6)
        assert np.isnan(cut.success_curve[k, :, -1]).all()


def test_survivors_of_halving_and_pruning_are_those_of_an_uninterrupted_training(
    easy, mixed, tiny, whole, passed, monkeypatch
):
    """Half goes on after two updates, and what cannot win after four does not: the same agents and the same curves."""
    monkeypatch.setattr("jaxreward.training.population_training.worth_compacting", lambda *_: True)
    point = int(np.flatnonzero(passed.steps == 2 * tiny.batch)[0])
    best = sorted(range(4), key=lambda k: -passed.success_curve[k, :, point].mean())[:2]
    rungs = [Rung(2 * tiny.batch, keep=0.5), Rung(4 * tiny.batch, prune=True, incumbent=50.0)]
    cut = train(easy, mixed[:4], tiny, rungs=rungs[:1], **budget(tiny, 6))
    assert set(np.flatnonzero(cut.stopped == 0)) == set(best)
    assert [bool(reason) for reason in cut.reasons] == [k not in best for k in range(4)]
    assert cut.env_steps < whole.env_steps
    for k in best:
        assert_close_trees(params(whole, k), params(cut, k))
        here = np.isin(cut.steps, whole.steps)
        np.testing.assert_allclose(cut.success_curve[k][:, here], whole.success_curve[k], atol=0.26)
    easily = [Rung(2 * tiny.batch, keep=0.5), Rung(4 * tiny.batch, prune=True, incumbent=-50.0)]
    pruned = train(easy, mixed[:4], tiny, rungs=easily, **budget(tiny, 6))
    winners = [k for k in best if not pruned.stopped[k]]
    assert winners
    for k in winners:
        assert_close_trees(params(whole, k), params(pruned, k))
    none = train(easy, mixed[:4], tiny, rungs=rungs, **budget(tiny, 6))
    assert set(none.stopped) == {2 * tiny.batch, 4 * tiny.batch}, "nobody is worth 50 in time"
    assert all("best 2 of 4" in none.reasons[k] or "50 is to be beaten" in none.reasons[k] for k in range(4))


@pytest.mark.slow
def test_seeds_added_later_equal_seeds_trained_at_once(easy, mixed, tiny, passed):
    programs, first = mixed[:4], passed  # its rung stops no candidate
    settings: dict[str, Any] = {**budget(tiny, 6), "rungs": [Rung(2 * tiny.batch)]}
    at_once = train(easy, programs, tiny, **{**settings, "seeds": (*SEEDS, 5)})
    settings["execution"] = Execution(room=padded_sizes(programs))
    later = train(easy, [programs[2], programs[0]], tiny, **{**settings, "seeds": (5,)})
    joined = first.extended([2, 0], later)
    assert joined.seeds == (3, 11, 5) and joined.programs == (programs[2], programs[0])
    assert joined.env_steps == first.env_steps + later.env_steps
    for row, k in enumerate((2, 0)):
        for seed in range(3):
            assert_close_trees(joined.variables(row, seed), at_once.variables(k, seed))
        np.testing.assert_allclose(joined.success_curve[row], at_once.success_curve[k], atol=0.26)
        assert joined.score(row).n == 3 and joined.score(row).episodes == at_once.score(k).episodes
        assert len(joined.feedback(row).terms) == len(at_once.feedback(k).terms)


def test_a_checkpoint_of_another_task_is_not_restored(tiny, tmp_path):
    """The same name, but other options or another file."""
    file, text = tmp_path / "mine.py", (
        "from dataclasses import dataclass\nfrom jaxreward.tasks.probe import Probe\n\n\n"
        "@dataclass(frozen=True)\nclass Mine(Probe):\n    kind: str = 'endless'\n"
    )  # fmt: skip
    file.write_text(text)
    other = tmp_path / "other" / "mine.py"
    other.parent.mkdir()
    other.write_text(text + "\n    def terminated(self, state):\n        return state.t >= 2\n")
    store, saved = Memory(), 0
    tasks = [make_task("probe-endless", length=n) for n in (3, 30)] + [make_task(str(f)) for f in (file, other)]
    for task in tasks:
        # two chunks, whose ends are kept
        trained = train(
            task,
            [Program.default(task)] * 2,
            tiny,
            checkpointing=Checkpointing(store),
            execution=Execution(chunk=1),
            **budget(tiny, 1),
        )
        assert store.restored == 0 and len(store.trees) == saved + 2
        saved = len(store.trees)
        assert trained.length_curve[:, :, -1].max() == min(task.horizon, 2 if task is tasks[-1] else task.horizon)
    again = make_task("probe-endless", length=3)
    train(
        again,
        [Program.default(again)] * 2,
        tiny,
        checkpointing=Checkpointing(store),
        execution=Execution(chunk=1),
        **budget(tiny, 1),
    )
    assert store.restored == 2, "the same task, made again, is the same"


@pytest.mark.parametrize(
    "learner",
    [
        {"hidden": (64, 64), "minibatches": 1},
        {"hidden": (256, 256), "minibatches": 16},
        {"hidden": (8,), "value_hidden": (256, 256)},
    ],
    ids=["one minibatch", "many minibatches", "a large value"],
)
def test_the_estimated_memory_of_a_chunk_is_within_a_factor_of_two(learner):
    task, ppo = make_task("probe-choice"), PPO(**learner)
    population = Population([Program.default(task)] * 2)
    chunk = Chunk(task, population, ppo, (0, 1), jax.devices()[0])
    chunk.compile()
    many = 1000
    guessed = first_chunk(population.width, 2, ppo, many * chunk.peak_bytes() // 2)
    assert many / 2 < guessed < 2 * many
