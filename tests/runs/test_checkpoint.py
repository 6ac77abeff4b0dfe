"""Checkpoints: bit for bit, atomic, and never trusted when damaged."""

from __future__ import annotations

import collections
import os
import shutil
import signal
import subprocess
import sys
import time

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import struct

from jaxreward.errors import FileProblem, InvalidSetting, UnusableFile
from jaxreward.runs.checkpoint import Checkpoints

Pair = collections.namedtuple("Pair", "left right")


class Old(struct.PyTreeNode):
    lanes: jax.Array
    beside: jax.Array


class New(struct.PyTreeNode):
    rollout: jax.Array
    extra: jax.Array


def test_leaves_are_found_under_their_names_of_before(tmp_path):
    store = Checkpoints(tmp_path)
    store.save("training", {"state": Old(jnp.arange(3), jnp.ones(2)), "stats": Old(jnp.zeros(1), jnp.zeros(4))})
    like = {"state": New(jnp.zeros(3, int), jnp.zeros(2)), "stats": New(jnp.ones(1), jnp.ones(4))}
    with pytest.warns(UserWarning, match="another structure"):
        assert store.restore("training", like) is None, "lanes are of a state alone"
    store.save("training", {"state": Old(jnp.arange(3), jnp.ones(2))})
    found = store.restore("training", {"state": like["state"]})
    assert (
        found is not None and found["state"].rollout.tolist() == [0, 1, 2] and found["state"].extra.tolist() == [1, 1]
    )


def make_tree(seed=0):
    key = jax.random.key(seed)
    return {
        "params": [{"w": jax.random.normal(key, (7, 5)), "b": jnp.full((5,), seed, jnp.bfloat16)} for _ in range(3)],
        "keys": Pair(key, jax.random.split(jax.random.key(seed, impl="rbg"), (2, 3))),
        "nan": jnp.asarray([jnp.nan, -0.0, jnp.inf]),
        "empty": jnp.zeros((0, 4)),
        "numpy": np.arange(3, dtype=np.int64) + seed,
        "flags": jnp.asarray([True, False]),
        "scalar": jnp.int32(seed),
        "step": seed,
        "share": 0.25,
        "done": True,
        "nothing": None,
    }


def bits(leaf):
    if isinstance(leaf, jax.Array) and jax.dtypes.issubdtype(leaf.dtype, jax.dtypes.prng_key):  # pyright: ignore
        return str(leaf.dtype), bits(jax.random.key_data(leaf))
    return type(leaf).__name__, str(np.asarray(leaf).dtype), np.shape(leaf), np.asarray(leaf).tobytes()


def same(a, b):
    return jax.tree.structure(a) == jax.tree.structure(b) and jax.tree.all(
        jax.tree.map(lambda x, y: bits(x) == bits(y), a, b)
    )


@pytest.fixture
def checkpoints(tmp_path):
    return Checkpoints(tmp_path / "checkpoints")


@pytest.mark.long
def test_a_tree_comes_back_bit_for_bit(checkpoints):
    tree = make_tree(3)
    checkpoints.save("generation-0003", tree)
    restored = checkpoints.restore("generation-0003", tree)
    assert restored is not None and same(restored, tree)
    assert same(jax.random.normal(restored["keys"].left), jax.random.normal(tree["keys"].left))
    assert checkpoints.tags() == ["generation-0003"]


def test_shapes_alone_are_enough_to_restore(checkpoints):
    tree = {name: make_tree()[name] for name in ("params", "keys", "empty")}
    checkpoints.save("a", tree)
    assert same(checkpoints.restore("a", jax.eval_shape(lambda: tree)), tree)


def test_the_latest_wins_and_tags_are_apart(checkpoints):
    for seed in range(3):
        checkpoints.save("a", make_tree(seed))
    checkpoints.save("a.b", make_tree(7))
    assert same(checkpoints.restore("a", make_tree()), make_tree(2))
    assert same(checkpoints.restore("a.b", make_tree()), make_tree(7))
    assert checkpoints.tags() == ["a", "a.b"]
    checkpoints.delete("a")
    checkpoints.delete("a")
    assert checkpoints.tags() == ["a.b"] and checkpoints.restore("a", make_tree()) is None
    assert same(checkpoints.restore("a.b", make_tree()), make_tree(7))


def test_a_copy_is_the_same_tree_and_damage_is_not_copied(checkpoints):
    assert checkpoints.copy("a", "b") is False and checkpoints.tags() == []
    checkpoints.save("a", make_tree(1))
    checkpoints.save("b", make_tree(2))
    assert checkpoints.copy("a", "b") is True
    checkpoints.delete("a")
    assert same(checkpoints.restore("b", make_tree()), make_tree(1))
    damaged = files(checkpoints)[0]
    damaged.write_bytes(damaged.read_bytes()[:-1] + b"?")
    with pytest.warns(UserWarning, match="is ignored"):
        assert checkpoints.copy("b", "c") is False
    assert checkpoints.tags() == ["b"]


def test_restoring_what_was_never_saved_gives_none_without_a_warning(checkpoints):
    assert checkpoints.restore("a", make_tree()) is None and checkpoints.tags() == []


def test_a_failed_save_keeps_the_one_before(checkpoints, monkeypatch):
    import orbax.checkpoint as ocp

    checkpoints.save("a", make_tree(1))

    def fail(*args, **kwargs):
        raise RuntimeError("killed")

    with monkeypatch.context() as patch:
        patch.setattr(ocp.PyTreeCheckpointer, "save", fail)
        with pytest.raises(RuntimeError, match="killed"):
            checkpoints.save("a", make_tree(2))
    assert same(checkpoints.restore("a", make_tree()), make_tree(1))


def test_a_full_disk_is_an_error_before_writing(checkpoints, monkeypatch):
    checkpoints.save("a", make_tree(1))
    usage = shutil.disk_usage(checkpoints.root)
    monkeypatch.setattr(shutil, "disk_usage", lambda path: usage._replace(free=1000))
    with pytest.raises(UnusableFile, check=lambda e: e.problem is FileProblem.FULL and e.path == checkpoints.root):
        checkpoints.save("a", make_tree(2))
    assert same(checkpoints.restore("a", make_tree()), make_tree(1))


def files(checkpoints):
    return [path for path in sorted(checkpoints.root.rglob("*")) if path.is_file() and path.stat().st_size]


def test_damage_to_any_file_is_noticed(checkpoints):
    """Cut each file in half, and flip one byte of each."""
    tree = make_tree(1)
    checkpoints.save("a", tree)
    assert len(files(checkpoints)) > 4
    for path in files(checkpoints):
        whole = path.read_bytes()
        middle = len(whole) // 2
        for damaged in (whole[:middle], whole[:middle] + bytes([whole[middle] ^ 255]) + whole[middle + 1 :]):
            path.write_bytes(damaged)
            with pytest.warns(UserWarning, match="is ignored"):
                assert checkpoints.restore("a", tree) is None
        path.write_bytes(whole)
    assert same(checkpoints.restore("a", tree), tree)


def test_an_incomplete_version_is_passed_over_in_silence(checkpoints):
    checkpoints.save("a", make_tree(1))
    shutil.copytree(checkpoints.root / "a.0", checkpoints.root / "a.1")
    (checkpoints.root / "a.1" / "checksums.json").unlink()  # killed before the last step
    assert same(checkpoints.restore("a", make_tree()), make_tree(1))
    checkpoints.save("a", make_tree(2))
    assert same(checkpoints.restore("a", make_tree()), make_tree(2))
    assert [path.name for path in checkpoints.root.iterdir()] == ["a.1"]


@pytest.mark.parametrize(
    "change",
    [
        lambda tree: {**tree, "extra": jnp.zeros(2)},
        lambda tree: {**tree, "flags": jnp.zeros((3,), bool)},
        lambda tree: {**tree, "scalar": jnp.float32(0)},
        lambda tree: {**tree, "keys": Pair(tree["keys"].left, tree["keys"].left)},
    ],
)
def test_a_checkpoint_of_another_tree_is_ignored_with_a_warning(checkpoints, change):
    checkpoints.save("a", make_tree())
    with pytest.warns(UserWarning, match=r"checkpoint .*a\.0 is ignored"):
        assert checkpoints.restore("a", change(make_tree())) is None


def test_damage_falls_back_on_the_version_before(checkpoints):
    checkpoints.save("a", make_tree(1))
    shutil.copytree(checkpoints.root / "a.0", checkpoints.root / "a.1")  # killed before the old one was deleted
    for path in files(checkpoints):
        if "a.1" in str(path):
            path.write_bytes(b"")
    with pytest.warns(UserWarning, match=r"a\.1 is ignored"):
        assert same(checkpoints.restore("a", make_tree()), make_tree(1))


@pytest.mark.parametrize("tag", ["", "../up", "a/b", ".x"])
def test_unsafe_tags_are_refused(checkpoints, tag):
    with pytest.raises(InvalidSetting, match="the name of a checkpoint"):
        checkpoints.save(tag, make_tree())


SAVE_FOREVER = """
import sys, pathlib, numpy as np
from jaxreward.runs.checkpoint import Checkpoints
checkpoints = Checkpoints(pathlib.Path(sys.argv[1]))
for k in range(10**9):
    checkpoints.save("a", {"x": np.full((300, 300), k), "k": k})
    print(k, flush=True)
"""


@pytest.mark.long
def test_killed_while_saving_a_whole_checkpoint_remains(checkpoints):
    saved = -1
    for delay in (0.013, 0.031):
        command = [sys.executable, "-c", SAVE_FOREVER, str(checkpoints.root)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, env={**os.environ, "PYTHONPATH": "."}) as child:
            assert child.stdout is not None
            child.stdout.readline()
            time.sleep(delay)
            child.send_signal(signal.SIGKILL)
        saved = checkpoints.restore("a", {"x": np.zeros((300, 300), np.int64), "k": 0})
        assert saved is not None and (saved["x"] == saved["k"]).all()
    checkpoints.save("a", {"x": np.zeros(1)})
    assert [path.name.split(".")[0] for path in checkpoints.root.iterdir()] == ["a"], "leftovers are swept"


def test_saving_a_megabyte_is_fast(checkpoints):
    tree = {f"layer{k}": jnp.ones((64, 65)) * k for k in range(60)}
    checkpoints.save("a", tree)  # imports orbax
    started = time.perf_counter()
    for _ in range(3):
        checkpoints.save("a", tree)
    assert (time.perf_counter() - started) / 3 < 1.0  # 0.04 s on a quiet machine
