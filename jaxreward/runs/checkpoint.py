"""Checkpoints of pytrees by tag, on orbax: atomic, verified, the last one kept until the next is whole.

A tag is a row of numbered orbax directories, of which normally one exists: `save` writes the next
number, then the checksums of its files, which make it complete, and only then deletes the one
before. `restore` compares the checksums first: orbax takes some damage for data and trips over
other damage in its threads. Leaves are stored flat with a manifest, so that any pytree of arrays
can be restored without its node types being known to orbax.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from jaxreward import files
from jaxreward.config import parse_json
from jaxreward.errors import FileProblem, JaxrewardWarning, UnusableFile
from jaxreward.runs.disk import explain_full_disk, write_atomic
from jaxreward.runs.run import check_name

MANIFEST = "manifest"
CHECKSUMS = "checksums.json"
_OLD_NAMES = {"['state'].lanes": "['state'].rollout", "].beside": "].extra"}
"""Names that leaves of a training had in earlier versions."""


class CheckpointMismatchError(Exception):
    """A checkpoint that is readable but not of the tree that was asked for, or damaged."""


class Checkpoints:
    """The checkpoints in one directory.

    orbax opens files by itself, so every call first makes sure that there is nothing but files and folders: a
    `UserError` for a link or a special file, before anything is read or written.
    """

    def __init__(self, root: Path) -> None:
        self.root = root.absolute()

    def save(self, tag: str, tree: Any) -> None:
        """Store `tree` under `tag` in place of what was there; on return it is on the disk.

        Leaves are jax or numpy arrays of any shape and dtype, typed PRNG keys, and Python numbers.
        """
        self._store(tag, _encode(tree))

    def _store(self, tag: str, arrays: dict[str, np.ndarray]) -> None:
        import orbax.checkpoint as ocp

        check_name(tag, "checkpoint")
        with explain_full_disk(self.root / tag):
            self.root.mkdir(parents=True, exist_ok=True)
            self._require_files()
            older = self._versions(tag)
            self._sweep(tag, keep=older)
            # orbax reports a full disk in words of its own
            self._require_space(sum(array.nbytes for array in arrays.values()))
            path = self._path(tag, older[0] + 1 if older else 0)
            ocp.PyTreeCheckpointer().save(path, arrays)
            write_atomic(path / CHECKSUMS, json.dumps(_checksums(path)))
            files.sync_folder(self.root)
            self._sweep(tag, keep=[older[0] + 1 if older else 0])

    def restore(self, tag: str, like: Any) -> Any | None:
        """The tree saved under `tag`, or None (with a warning) where there is none to be trusted.

        `like` gives the structure, shapes and dtypes; its leaves are arrays or ShapeDtypeStructs.
        jax arrays come back as jax arrays on the default device, other leaves as what they were.
        """
        return self._read(tag, lambda path: _decode(_load(path), like))

    def _read(self, tag: str, what: Callable[[Path], Any]) -> Any | None:
        """`what` is made of the newest version of a tag that is not damaged, None (with a warning) without one."""
        check_name(tag, "checkpoint")
        self._require_files()
        for version in self._versions(tag):
            path = self._path(tag, version)
            try:
                _require_undamaged(path)
                return what(path)
            except Exception as error:  # orbax and its storage raise many types for a damaged directory
                reason = f"{type(error).__name__}: {error}".splitlines()[0][:300]
                warnings.warn(f"checkpoint {path} is ignored ({reason})", JaxrewardWarning, stacklevel=2)
        return None

    def copy(self, tag: str, to: str) -> bool:
        """Store what is under `tag` under `to` as well; False (with a warning) where there is nothing to be trusted."""
        arrays = self._read(tag, _load)
        if arrays is not None:
            self._store(to, arrays)
        return arrays is not None

    def delete(self, tag: str) -> None:
        """Remove what is stored under `tag`; nothing happens where nothing is."""
        check_name(tag, "checkpoint")
        self._require_files()
        self._sweep(tag, keep=[])

    def tags(self) -> list[str]:
        """The tags with a complete checkpoint, sorted."""
        self._require_files()
        names = (path.parent.name.rpartition(".") for path in self.root.glob(f"*/{CHECKSUMS}"))
        return sorted({tag for tag, _, version in names if version.isdigit()})

    def _require_files(self) -> None:
        with explain_full_disk(self.root):
            files.require_tree(self.root)

    def _path(self, tag: str, version: int) -> Path:
        return self.root / f"{tag}.{version}"

    def _versions(self, tag: str) -> list[int]:
        """Complete versions of a tag, newest first."""
        found = (path.parent.name.rpartition(".") for path in self.root.glob(f"{tag}.*/{CHECKSUMS}"))
        return sorted((int(v) for name, _, v in found if name == tag and v.isdigit()), reverse=True)

    def _sweep(self, tag: str, keep: list[int]) -> None:
        """Remove versions of a tag, and what a save that was killed left behind."""
        for path in self.root.glob(f"{tag}.*"):
            # orbax writes to `<tag>.<version>.orbax-checkpoint-tmp...` before it renames
            version, _, rest = path.name.removeprefix(f"{tag}.").partition(".")
            unfinished = version.isdigit() and rest.startswith("orbax")
            if unfinished or (version.isdigit() and not rest and int(version) not in keep):
                shutil.rmtree(path, ignore_errors=True)

    def _require_space(self, size: int) -> None:
        free = shutil.disk_usage(self.root).free
        if free < size + (1 << 20):
            raise UnusableFile(
                f"A checkpoint of {size / 1e6:.1f} MB does not fit on the disk that holds {self.root} "
                f"({free / 1e6:.1f} MB free): free some space there, then resume the run.",
                self.root,
                FileProblem.FULL,
            )


def _load(path: Path) -> dict[str, np.ndarray]:
    import jax
    import orbax.checkpoint as ocp

    checkpointer = ocp.PyTreeCheckpointer()
    metadata = checkpointer.metadata(path).item_metadata
    if metadata is None:
        raise CheckpointMismatchError("it has no metadata")
    # Restoring as numpy keeps what is on the disk: no device, no change of a 64-bit dtype.
    how = jax.tree.map(lambda _: ocp.RestoreArgs(restore_type=np.ndarray), dict(metadata.tree))
    return checkpointer.restore(path, restore_args=how)


def _encode(tree: Any) -> dict[str, np.ndarray]:
    """The non-empty leaves as numpy arrays, and the manifest of all leaves as bytes."""
    import jax

    arrays: dict[str, np.ndarray] = {}
    entries = []
    for index, (path, leaf) in enumerate(jax.tree_util.tree_flatten_with_path(tree)[0]):
        kind, array = _to_numpy(leaf)
        name = f"leaf{index:06d}"
        entries.append(
            {"path": jax.tree_util.keystr(path), "kind": kind, "shape": list(array.shape), "dtype": str(array.dtype)}
        )
        if array.size:  # orbax refuses to store an empty array
            arrays[name] = array
    arrays[MANIFEST] = np.frombuffer(json.dumps(entries).encode(), np.uint8)
    return arrays


def _decode(arrays: dict[str, np.ndarray], like: Any) -> Any:
    import jax
    import jax.numpy as jnp

    entries = json.loads(np.asarray(arrays[MANIFEST]).tobytes())
    expected, structure = jax.tree_util.tree_flatten_with_path(like)
    if [_renamed(entry["path"]) for entry in entries] != [jax.tree_util.keystr(path) for path, _ in expected]:
        raise CheckpointMismatchError("it holds a tree of another structure")
    leaves = []
    for index, (entry, (_, leaf)) in enumerate(zip(entries, expected, strict=True)):
        empty = np.zeros(entry["shape"], jnp.dtype(entry["dtype"]))
        array = np.asarray(arrays[f"leaf{index:06d}"]) if empty.size else empty
        restored = _from_numpy(entry["kind"], array)
        _require_alike(entry["path"], restored, leaf)
        leaves.append(restored)
    return jax.tree_util.tree_unflatten(structure, leaves)


def _renamed(path: str) -> str:
    """The path of a leaf by its name of today."""
    for old, new in _OLD_NAMES.items():
        path = path.replace(old, new)
    return path


def _to_numpy(leaf: Any) -> tuple[str, np.ndarray]:
    """What kind of leaf it is, and its content."""
    import jax
    import jax.numpy as jnp

    if isinstance(leaf, jax.Array):
        if jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key):
            return f"key:{jax.random.key_impl(leaf)}", np.asarray(jax.random.key_data(leaf))
        return "jax", np.asarray(leaf)
    if isinstance(leaf, bool | int | float) and not isinstance(leaf, np.generic):
        return type(leaf).__name__, np.asarray(leaf)
    return "numpy", np.asarray(leaf)


def _from_numpy(kind: str, array: np.ndarray) -> Any:
    import jax
    import jax.numpy as jnp

    if kind.startswith("key:"):
        return jax.random.wrap_key_data(jnp.asarray(array), impl=kind.removeprefix("key:"))
    if kind == "jax":
        return jnp.asarray(array)
    return array if kind == "numpy" else array.item()


def _require_alike(path: str, restored: Any, like: Any) -> None:
    def form(leaf: Any) -> tuple[Any, Any]:
        return np.shape(leaf), getattr(leaf, "dtype", type(leaf))

    if form(restored) != form(like):
        raise CheckpointMismatchError(f"{path} is {form(restored)} where {form(like)} is expected")


def _checksums(path: Path) -> dict[str, str]:
    """A digest of every file of a checkpoint, by its name within it."""
    found = sorted(file for file in path.rglob("*") if file.is_file() and file.name != CHECKSUMS)
    return {str(file.relative_to(path)): _digest(file) for file in found}


def _digest(path: Path) -> str:
    with files.open_binary(path) as file:
        return hashlib.file_digest(file, "blake2b").hexdigest()[:32]


def _require_undamaged(path: Path) -> None:
    expected, found = parse_json(files.read_text(path / CHECKSUMS)), _checksums(path)
    if expected != found:
        changed = sorted(name for name in expected | found if expected.get(name) != found.get(name))
        raise CheckpointMismatchError(f"{changed[0]} is missing, new or damaged")
