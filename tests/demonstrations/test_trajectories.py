"""Episodes: recorded, taken apart, kept in files, and refused where they are not what they should be."""

from __future__ import annotations

import io
import json
import zipfile
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxreward.demonstrations import (
    Trajectories,
    WrongTrajectories,
    from_arrays,
    joined,
    load_trajectories,
    record,
    record_actions,
    record_random,
    reset_keys,
    save_trajectories,
    uniform_log_probability,
)
from jaxreward.errors import UnusableFile
from jaxreward.programs import Spec
from jaxreward.tasks import Task, make_task
from jaxreward.tasks.task import Box


@pytest.fixture(scope="module")
def corridor() -> Task:
    return make_task("probe-corridor")


@pytest.fixture(scope="module")
def random_play(corridor: Task) -> Trajectories:
    return record_random(corridor, 6, seed=3)


def same(a: Trajectories, b: Trajectories) -> bool:
    arrays = ("actions", "lengths", "log_probabilities", "success", "ended")
    pairs = [*zip(a.states, b.states, strict=True), *((getattr(a, n), getattr(b, n)) for n in arrays)]
    plain = ("spec", "texts", "task", "task_arg", "source", "seed")
    return all(np.array_equal(x, y, equal_nan=x.dtype.kind == "f") and x.dtype == y.dtype for x, y in pairs) and all(
        getattr(a, n) == getattr(b, n) for n in plain
    )


def test_episodes_are_those_of_the_task(corridor: Task, random_play: Trajectories) -> None:
    """Played step by step from the recorded actions, the task gives the recorded states."""
    spec, at = Spec.of(corridor), 0
    for k, key in enumerate(reset_keys(6, 3)):
        own = random_play.take([k])
        state = corridor.reset(key)
        for t in range(int(own.lengths[0])):
            for leaf, array in zip(spec.flatten(corridor.view(state)), own.states, strict=True):
                np.testing.assert_array_equal(leaf, array[t])
            assert not corridor.terminated(state)
            state = corridor.step(state, jnp.asarray(own.actions[t]))
        assert bool(corridor.terminated(state)) == own.ended[0]
        assert own.ended[0] or own.lengths[0] == corridor.horizon
        at += int(own.lengths[0])
    assert at == random_play.steps


def test_transitions_join_states_with_those_that_follow(random_play: Trajectories) -> None:
    whole, last = random_play.transitions(), random_play.transitions(random_play.last_steps)
    assert len(whole) == random_play.steps and len(last) == len(random_play)
    for k in range(len(random_play)):
        own = random_play.take([k])
        mine = random_play.episode_of_step == k
        for x, before, after in zip(own.states, whole.states, whole.next_states, strict=True):
            np.testing.assert_array_equal(x[:-1], before[mine])
            np.testing.assert_array_equal(x[1:], after[mine])
            np.testing.assert_array_equal(x[-1], after[mine][-1])


def test_taking_all_in_order_and_joining_changes_nothing(random_play: Trajectories) -> None:
    assert same(random_play, joined([random_play.take([0, 1]), random_play.take([2]), random_play.take([3, 4, 5])]))


def test_random_actions_have_their_log_probability(corridor: Task, random_play: Trajectories) -> None:
    n = corridor.action_space.n  # type: ignore[union-attr]
    np.testing.assert_allclose(np.exp(random_play.log_probabilities), 1 / n, rtol=1e-6)
    assert uniform_log_probability(Box((2,), -2.0, 2.0)) == pytest.approx(-2 * np.log(4.0))


def test_an_actor_that_does_not_measure_records_no_probability(corridor: Task) -> None:
    class Right:
        def start(self, state: Any) -> None:
            return None

        def step(self, carry: None, state: Any, key: jax.Array) -> tuple[jax.Array, None]:
            return jnp.int32(1), None

    found = record(corridor, Right(), 2)
    assert np.isnan(found.log_probabilities).all() and (found.actions == 1).all() and found.source == "policy"


def test_planned_actions_end_where_the_plan_or_the_task_does(corridor: Task) -> None:
    keys = reset_keys(2, 0)
    found = record_actions(corridor, keys, [[0, 0, 0], [1] * corridor.horizon], texts=("stay", "go"))
    assert found.lengths[0] == 3 and not found.ended[0] and found.source == "expert"
    assert found.ended[1] and found.success[1] == 1 and found.lengths[1] <= corridor.horizon
    assert found.take([1]).texts == ("go",)
    with pytest.raises(WrongTrajectories, match=f"1 to {corridor.horizon} actions"):
        record_actions(corridor, keys, [[], [1]])


def test_a_file_gives_back_what_was_written(random_play: Trajectories, tmp_path: Path) -> None:
    save_trajectories(tmp_path / "a.npz", random_play, {"jaxreward": "1"})
    assert same(random_play, load_trajectories(tmp_path / "a.npz"))


def test_bfloat16_survives_a_file(tmp_path: Path) -> None:
    spec = Spec.of(jax.ShapeDtypeStruct((2,), jnp.bfloat16), jax.ShapeDtypeStruct((), jnp.int32))
    states = np.asarray(jnp.arange(6.0).reshape(3, 2), jnp.bfloat16)
    own = Trajectories(
        spec, (states,), np.zeros(2, np.int32), np.array([2], np.int32), np.full(2, np.nan, np.float32),
        np.ones(1, np.float32), np.ones(1, bool),
    )  # fmt: skip
    save_trajectories(tmp_path / "a.npz", own)
    assert same(own, load_trajectories(tmp_path / "a.npz"))


def test_the_arrays_of_a_user_become_episodes(corridor: Task, random_play: Trajectories) -> None:
    spec, parts = random_play.spec, [random_play.take([k]) for k in range(6)]
    names = [leaf.name for leaf in spec.leaves]
    given = [dict(zip(names, (x.astype(np.float64) for x in p.states), strict=True)) for p in parts]
    found = from_arrays(corridor, given, [p.actions.astype(np.int64) for p in parts],
                        log_probabilities=[p.log_probabilities for p in parts], success=random_play.success.tolist(),
                        ended=random_play.ended.tolist())  # fmt: skip
    assert all(np.array_equal(a, b) for a, b in zip(found.states, random_play.states, strict=True))
    assert found.source == "imported" and found.actions.dtype == np.int32


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"actions": [[7, 1]]}, "episode 0: an action is not one of 0 to 1"),
        ({"actions": [[0.5, 1]]}, "episode 0: action is float64, and its values do not fit into int32"),
        ({"actions": [[0]]}, "episode 0: .* is wanted, not"),
        ({"actions": []}, "give one entry for each of the 0 episodes"),
        ({"states": [[np.zeros(3), np.zeros(3), np.zeros(3)]]}, "episode 0: its states are 3 arrays"),
        ({"states": [[np.full((3,), np.nan)]]}, "episode 0: "),
    ],
)
def test_arrays_that_do_not_fit_are_refused(change: dict[str, Any], message: str, corridor: Task) -> None:
    own = record_actions(corridor, reset_keys(1, 0), [[0, 0]])
    arrays = {"states": [list(own.states)], "actions": [own.actions]} | change
    with pytest.raises(WrongTrajectories, match=message):
        from_arrays(corridor, arrays["states"], arrays["actions"])


def test_episodes_of_another_task_are_refused(random_play: Trajectories) -> None:
    with pytest.raises(WrongTrajectories, match="these episodes are of probe-corridor: "):
        random_play.require_of(Spec.of(make_task("probe-aim")))
    random_play.require_of(random_play.spec)


# ---- files of others


def rewritten(path: Path, name: str, data: bytes | None) -> None:
    """Replace, or drop, one member of an archive."""
    with zipfile.ZipFile(path) as archive:
        members = {n: archive.read(n) for n in archive.namelist()}
    members.pop(name, None)
    with zipfile.ZipFile(path, "w") as archive:
        for n, content in (members | ({name: data} if data is not None else {})).items():
            archive.writestr(n, content)


def npy(array: Any, **options: Any) -> bytes:
    found = io.BytesIO()
    np.save(found, array, **options)
    return found.getvalue()


def manifest_of(path: Path) -> dict[str, Any]:
    with np.load(path) as data:
        return json.loads(data["manifest"].tobytes())


def huge() -> bytes:
    """A header that promises a terabyte."""
    found = io.BytesIO()
    np.lib.format.write_array_header_1_0(found, {"descr": "<i4", "fortran_order": False, "shape": (1 << 38,)})
    return found.getvalue()


class Loaded:
    """An object that tells if it is unpickled."""

    def __reduce__(self) -> Any:
        return (Path("/nonexistent/pickle").mkdir, ())


@pytest.mark.parametrize(
    ("member", "data"),
    [
        ("manifest.npy", None),
        ("action.npy", None),
        ("action.npy", b"junk"),
        ("action.npy", huge()),
        ("action.npy", npy(np.array([Loaded()], object), allow_pickle=True)),
        ("lengths.npy", npy(np.array([-1, 4], np.int32))),
        ("lengths.npy", npy(np.zeros((), np.int32))),
        *(("lengths.npy", npy(np.ones(6, kind))) for kind in (np.float64, np.uint64, np.complex64)),
        ("lengths.npy", npy(np.ones((2, 3), np.int32))),
        ("solves.npy", npy(np.ones(3, np.int8))),
        ("solves.npy", npy(np.ones(3, bool))),
        ("success.npy", npy(np.zeros(3))),
        ("manifest.npy", npy(np.frombuffer(b"{", np.uint8))),
        ("manifest.npy", npy(np.frombuffer(b'{"format": 1}', np.uint8))),
        ("manifest.npy", npy(np.frombuffer(b'{"format": 1, "episodes": 6, "steps": 1, "spec": {}}', np.uint8))),
    ],
)
def test_a_damaged_file_is_refused_in_a_sentence(
    member: str, data: bytes | None, random_play: Trajectories, tmp_path: Path
) -> None:
    path = tmp_path / "a.npz"
    save_trajectories(path, random_play)
    rewritten(path, member, data)
    with pytest.raises(UnusableFile, match="is no file of episodes: .*; record one with"):
        load_trajectories(path)


def test_other_files_are_refused(random_play: Trajectories, tmp_path: Path) -> None:
    path = tmp_path / "a.npz"
    with pytest.raises(UnusableFile, match="cannot be read"):
        load_trajectories(path)
    path.write_bytes(b"not a zip file")
    with pytest.raises(UnusableFile, match="is no file of episodes"):
        load_trajectories(path)
    save_trajectories(path, random_play)
    with pytest.raises(UnusableFile, match="more than 0 MiB"):
        load_trajectories(path, largest=path.stat().st_size)
    rewritten(
        path, "manifest.npy", npy(np.frombuffer(json.dumps(manifest_of(path) | {"format": 9}).encode(), np.uint8))
    )
    with pytest.raises(UnusableFile, match="format 9, and this version reads 1"):
        load_trajectories(path)
    with pytest.raises(UnusableFile, match=r"name it .*b\.txt\.npz"):
        save_trajectories(tmp_path / "b.txt", random_play)
    (tmp_path / "file").write_text("")
    with pytest.raises(UnusableFile, match="cannot be written"):
        save_trajectories(tmp_path / "file" / "a.npz", random_play)


def test_arrays_of_other_names_are_refused(corridor):
    names = [leaf.name for leaf in Spec.of(corridor).leaves]
    episode = record_actions(corridor, reset_keys(1, 0), [[1, 1]])
    right = dict(zip(names, episode.states, strict=True))
    found = from_arrays(corridor, [dict(reversed(right.items()))], [episode.actions])
    np.testing.assert_array_equal(found.states[0], episode.states[0])
    lists = from_arrays(corridor, [{name: array.tolist() for name, array in right.items()}], [episode.actions.tolist()])
    np.testing.assert_array_equal(lists.states[0], episode.states[0])
    wrong = {f"my_{name}": array for name, array in right.items()}
    with pytest.raises(WrongTrajectories, match=f"its states are .* arrays, .*my_{names[0]}.*, and the view of .*"):
        from_arrays(corridor, [wrong], [episode.actions])


def test_actions_of_another_kind_are_told(corridor):
    with pytest.raises(WrongTrajectories, match="actions of probe-corridor are int32: "):
        record_actions(corridor, reset_keys(1, 0), ["ab"])
