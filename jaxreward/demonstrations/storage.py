"""Episodes on the disk: one .npz file of plain arrays with a manifest, read without pickle.

    manifest             JSON in UTF-8, uint8 (bytes,)
    state/<leaf>         an array of the views, (states, ...)
    action               (steps, ...)
    lengths, ended, success, log_probability
    solves               int8 (steps,), where steps are marked as solving the task: 1, 0, or -1 for not known

bfloat16, which .npz does not know, is stored as uint16; the manifest has the true dtypes.
"""

from __future__ import annotations

import io
import json
import math
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from pydantic import ValidationError

from jaxreward import files
from jaxreward.config import Malformed, parse_json
from jaxreward.demonstrations.texts import SUFFIX as TEXTS
from jaxreward.demonstrations.trajectories import Array, Source, Trajectories, WrongTrajectories
from jaxreward.errors import FileProblem, UnusableFile, problem_of, why_unreadable
from jaxreward.programs.spec import Spec, dtype_of
from jaxreward.records import Record

FORMAT = 1
LARGEST = 4 << 30
"""Bytes of the arrays of a file, unpacked."""

R = TypeVar("R")

_MANIFEST, _STATE = "manifest", "state/"
_MOST_MANIFEST = 16 << 20
_DAMAGED = (zipfile.BadZipFile, zlib.error, ValueError, LookupError, EOFError, OSError, RuntimeError)
"""What reading a damaged file of this kind raises."""


class Manifest(Record):
    """What a file of episodes says of itself. `versions` are those of the packages that wrote it, `spec` the view and
    the action of the task as JSON; the other fields are those of `Trajectories`."""

    format: int = FORMAT
    task: str = ""
    task_arg: tuple[str, ...] = ()
    source: Source = "imported"
    seed: int | None = None
    episodes: int
    steps: int
    texts: tuple[str, ...] = ()
    versions: dict[str, str] = {}
    spec: dict[str, Any]


def save_trajectories(path: Path | str, trajectories: Trajectories, versions: dict[str, str] | None = None) -> None:
    """Write episodes to a file, which is new or whole at any time.

    Args:
        versions: of packages, for the manifest.

    Raises:
        UnusableFile: the file cannot be written.
    """
    path, t = Path(path), trajectories
    if path.suffix != ".npz":
        raise UnusableFile(f"{path}: episodes are kept in .npz files; name it {path}.npz", path, FileProblem.WRONG_KIND)
    manifest = Manifest(
        task=t.task, task_arg=t.task_arg, source=t.source, seed=t.seed, episodes=len(t), steps=t.steps, texts=t.texts,
        versions=versions or {}, spec=t.spec.as_json(),
    )  # fmt: skip
    text = json.dumps(manifest.model_dump(mode="json")).encode()
    arrays = {_MANIFEST: np.frombuffer(text, np.uint8)}
    arrays |= {f"{_STATE}{leaf.name}": _plain(x) for leaf, x in zip(t.spec.leaves, t.states, strict=True)}
    arrays |= {
        "action": _plain(t.actions), "lengths": t.lengths, "ended": t.ended, "success": t.success,
        "log_probability": t.log_probabilities,
    }  # fmt: skip
    if t.solves is not None:
        arrays["solves"] = t.solves
    packed = io.BytesIO()
    np.savez_compressed(packed, **arrays)  # type: ignore[arg-type]
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        files.replace(path, packed.getvalue())
    except OSError as error:
        raise UnusableFile(
            f"the episodes cannot be written to {path}: {why_unreadable(error)}", path, FileProblem.UNWRITABLE
        ) from error


def load_trajectories(path: Path | str, largest: int = LARGEST) -> Trajectories:
    """Read a file of episodes. Nothing in it is executed, and no more than `largest` bytes are unpacked.

    Raises:
        UnusableFile: it cannot be read, or is no such file.
    """
    return _opened(Path(path), largest, _read)


def task_of_episodes(path: Path | str) -> tuple[str, tuple[str, ...]]:
    """The task that a file of episodes names, empty for none, and its options as KEY=VALUE. The episodes are not read.

    Raises:
        UnusableFile: it cannot be read, or is no such file.
    """
    manifest = _opened(Path(path), LARGEST, _manifest)
    return manifest.task, manifest.task_arg


def _opened(path: Path, largest: int, read: Callable[[Path, zipfile.ZipFile], R]) -> R:
    """What `read` finds in the archive."""
    if path.suffix == TEXTS:
        raise UnusableFile(
            f"{path} holds episodes of text, which no task has: search on them from Python, with "
            "jaxreward.evolve_texts (docs/demonstrations.md)", path, FileProblem.WRONG_KIND,
        )  # fmt: skip
    try:
        data = files.read_bytes(path, links=True, largest=largest)
    except OSError as error:
        raise UnusableFile(
            f"the episodes {path} cannot be read: {why_unreadable(error)}", path, problem_of(error)
        ) from error
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            if sum(info.file_size for info in archive.infolist()) > largest:
                raise _no_file(path, f"its arrays have more than {largest >> 20} MiB", FileProblem.TOO_LARGE)
            return read(path, archive)
    except UnusableFile:
        raise
    except ValidationError as error:
        first = error.errors()[0]
        raise _no_file(path, f"its manifest: {'.'.join(map(str, first['loc']))}: {first['msg']}") from error
    except (TypeError, IndexError, Malformed, WrongTrajectories) as error:
        raise _no_file(path, str(error)) from error
    except _DAMAGED as error:
        raise _no_file(path, str(error) or type(error).__name__) from error


def _manifest(path: Path, archive: zipfile.ZipFile) -> Manifest:
    sizes = {info.filename: info.file_size for info in archive.infolist()}
    if sizes.get(f"{_MANIFEST}.npy", _MOST_MANIFEST + 1) > _MOST_MANIFEST:
        raise _no_file(path, "it has no manifest")
    written = parse_json(_array(archive, _MANIFEST).astype(np.uint8).tobytes().decode())
    version = written.get("format") if isinstance(written, dict) else None
    if version != FORMAT:
        raise UnusableFile(
            f"{path} has episodes in format {version!r}, and this version reads {FORMAT}: record them again, or "
            "use the version that wrote them", path, FileProblem.OTHER_VERSION,
        )  # fmt: skip
    return Manifest.model_validate(written)


def _read(path: Path, archive: zipfile.ZipFile) -> Trajectories:
    manifest = _manifest(path, archive)
    spec = Spec.from_json(manifest.spec)
    return Trajectories(
        spec=spec,
        states=tuple(_typed(_array(archive, f"{_STATE}{leaf.name}"), leaf.dtype) for leaf in spec.leaves),
        actions=_typed(_array(archive, "action"), spec.action.dtype),
        lengths=_array(archive, "lengths"), log_probabilities=_array(archive, "log_probability"),
        success=_array(archive, "success"), ended=_array(archive, "ended"),
        solves=_array(archive, "solves") if "solves.npy" in archive.namelist() else None, texts=manifest.texts,
        task=manifest.task, task_arg=manifest.task_arg, source=manifest.source, seed=manifest.seed,
    )  # fmt: skip


def _array(archive: zipfile.ZipFile, name: str) -> Array:
    """An array of the file, whose header must agree with its size: NumPy would believe it, and allocate."""
    info = archive.getinfo(f"{name}.npy")
    with archive.open(info) as file:
        version = np.lib.format.read_magic(file)
        read_header = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}
        shape, fortran, dtype = read_header[version](file)
        if dtype.hasobject or math.prod(shape) * dtype.itemsize != info.file_size - file.tell():
            raise ValueError(f"{name} is no plain array")
        array = np.frombuffer(file.read(), dtype)
    return array.reshape(shape[::-1]).T if fortran else array.reshape(shape)


def _plain(array: Array) -> Array:
    return array.view(np.uint16) if array.dtype.name == "bfloat16" else array


def _typed(array: Array, dtype: str) -> Array:
    return array.view(dtype_of(dtype)) if dtype == "bfloat16" and array.dtype == np.uint16 else array


def _no_file(path: Path, why: str, problem: FileProblem = FileProblem.DAMAGED) -> UnusableFile:
    return UnusableFile(f"{path} is no file of episodes: {why}; record one with `jaxreward record`", path, problem)
