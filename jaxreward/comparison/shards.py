"""`shards/` in the folder of a comparison: what each process was asked for, by which command and on which device."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Sequence
from pathlib import Path

from pydantic import ValidationError

from jaxreward import files
from jaxreward.comparison.finished_searches import Grid
from jaxreward.config import Malformed, parse_json
from jaxreward.devices import cores
from jaxreward.errors import FileProblem, UnusableFile
from jaxreward.records import Record
from jaxreward.runs.disk import make_folder, write_atomic
from jaxreward.runs.provenance import commit, versions


class Shard(Record):
    """What one process was asked to compare, by which command, on which machine, `at` what Unix time it first was.

    Kept in `shards/` for every process that differs from those before it. `platform` is that whose learner the searches
    have: a CPU's in comparisons that began when it was everybody's.
    """

    grid: Grid
    shard: str
    command: str
    device: str
    cores: int
    versions: dict[str, str]
    platform: str = "cpu"
    commit: str = ""
    at: float = 0.0


def keep_record(out: Path, grid: Grid, part: tuple[int, int], command: str, platform: str = "cpu") -> None:
    """Record what this process is asked for, before it begins; `platform` is that whose learner is the default."""
    import jax

    devices = jax.local_devices()
    kinds = {f"{d.platform} {d.device_kind}" for d in devices}
    shard = Shard(
        grid=grid, shard=f"{part[0]}/{part[1]}", command=command, device=f"{len(devices)} x {', '.join(sorted(kinds))}",
        cores=cores(), versions=versions("jaxlib", "flax", "optax", "xminigrid"), platform=platform, commit=commit(),
    )  # fmt: skip
    # Named by its content: two processes that begin at once do not overwrite each other's.
    digest = hashlib.sha256(shard.model_dump_json().encode()).hexdigest()[:8]
    path = out / "shards" / f"{part[0]}-of-{part[1]}-{digest}.json"
    make_folder(path.parent, below=out)
    if not files.is_there(path):
        text = shard.model_copy(update={"at": time.time()}).model_dump_json(indent=1) + "\n"
        write_atomic(path, text, below=out)


def read_records(folder: Path) -> list[tuple[Path, Shard]]:
    """The records in a folder and their files, the earliest first.

    Raises:
        UnusableFile: a record is damaged, or cannot be read.
    """
    found = []
    for path in sorted((folder / "shards").glob("*-of-*.json"), key=lambda p: (len(p.name), p.name)):
        try:
            found.append((path, Shard.model_validate(parse_json(files.read_text(path, below=folder)))))
        except (ValidationError, Malformed, UnicodeDecodeError) as error:
            message = f"{path} is damaged: delete it, and give the command that wrote it again"
            raise UnusableFile(message, path, FileProblem.DAMAGED) from error
        except OSError as error:  # a directory of that name, too
            reason = error.strerror or error
            raise UnusableFile(
                f"{path} should be the record of a command and cannot be read ({reason}): if it is none, move it away",
                path,
                FileProblem.UNREADABLE,
            ) from error
    return sorted(found, key=lambda record: record[1].at)


def read_shards(folder: Path) -> list[Shard]:
    """As `read_records`, without the files."""
    return [shard for _, shard in read_records(folder)]


def differences(shards: Sequence[Shard]) -> list[str]:
    """A sentence on the commits, versions and devices in which the processes differ; none if they are equal."""
    values_of: dict[str, dict[str, None]] = {}
    for shard in shards:
        for name, value in {"commit": shard.commit, **shard.versions, "device": shard.device}.items():
            values_of.setdefault(name, {})[value or "unknown"] = None
    differing = [f"{name} {' and '.join(values)}" for name, values in values_of.items() if len(values) > 1]
    if not differing:
        return []
    return [f"Not all processes were alike, and figures may differ for that alone: {', '.join(differing)}; `shards` in "
            "comparison.json says which was which."]  # fmt: skip
